"""A process that compiles a kernel and one that finds it compiled give the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import numpy as np
from bayesring.kernels import mixtures

rng = np.random.default_rng(0)
ends = np.full(2, 0.05), np.full(2, 1.64), np.array([1.0, -1.0])
centres, roots = rng.standard_normal((40, 33)), rng.gamma(3.0, 1.0, 33)
found = mixtures.normal_mixture_quantiles(*ends, centres, roots)
print(hashlib.sha256(found.tobytes()).hexdigest())
"""


@pytest.mark.ci
def test_ends_of_intervals(tmp_path):
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=own, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert any(tmp_path.rglob("*.nbc"))
    assert found[0] == found[1]
