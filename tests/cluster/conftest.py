"""A cluster of two worker processes on this machine, shared by all tests of a session."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster

from tests.cluster.local import OPTIONS


@pytest.fixture(scope="session")
def client():
    with LocalCluster(n_workers=2, **OPTIONS) as cluster, Client(cluster) as client:
        yield client
