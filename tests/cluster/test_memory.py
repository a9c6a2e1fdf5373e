"""How much memory a worker and the driver need, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def figures(n):
    """What the benchmark finds for n rows on two workers."""
    asked = [sys.executable, "-m", "paper.bench.cluster", "--rows", str(n), "--scans", "1"]
    found = subprocess.run([*asked, "--json"], check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.ci
def test_memory_of_workers_and_driver():
    """Blocks take 36 bytes per observation; 1.5 times that, and the ring, is the most."""
    few, many = figures(3_000_000), figures(6_000_000)
    share = many["MB of blocks per worker"]
    assert share == pytest.approx(6e6 * 36 / 2 / 1e6)
    peak = many["peak MB per worker beyond the start"]
    assert share < peak < 1.5 * share + 4 * many["MB of the ring"]
    assert many["peak MB of the driver"] < few["peak MB of the driver"] + 30
