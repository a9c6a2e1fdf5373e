"""Measurements that need a separate process: import, first fits, peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paper.bench.timing import Measurement

ROOT = Path(__file__).parents[2]
"""Root of the repository, where programs find the package `paper`."""

FIRST_FIT = """
import json, time
begin = time.perf_counter()
from bayesring import TensorRing
imported = time.perf_counter()
import numpy as np
rng = np.random.default_rng(0)
X = rng.integers(0, 20, (1000, 3))
TensorRing(3, warmup=5, draws=5, random_state=0, progress=False).fit(X, rng.standard_normal(1000))
print(json.dumps({"import": imported - begin, "fit": time.perf_counter() - imported}))
"""

PEAK = """
import json, sys
import numpy as np
from bayesring import TensorRing
from bayesring.infer import gibbs
try:
    from bayesring.data import observations
    from bayesring.infer import chains
except ImportError:  # commits of before, for `paper.bench.against`
    from bayesring import observations
    from bayesring.infer import run as chains

def memory(field):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

held = []
step = gibbs.step

def watched_step(*arguments):
    held.append(memory("VmRSS"))
    return step(*arguments)

gibbs.step = watched_step
chains.CALIBRATE_AFTER = 0  # hold out some observations even in the shortest warm-up
observations.COMPACT = 1000  # values in float32 in the small fit too, which loads the kernels

def fit(n):
    rng = np.random.default_rng(0)
    X = np.empty((n, 3), dtype=np.int32)
    for mode in range(3):
        X[:, mode] = rng.integers(0, 1000, n, dtype=np.int32)
    y = rng.standard_normal(n, dtype=np.float32)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = memory("VmRSS")
    ring = TensorRing(3, prior="paper", warmup=4, draws=1, chains=1, shape=(1000, 1000, 1000),
                      random_state=0, progress=False)
    ring.fit(X, y)
    return {"peak": memory("VmHWM") - before, "held": max(held) - before}

fit(2000)
print(json.dumps(fit(int(sys.argv[1]))))
"""


def first_fits() -> Iterator[Measurement]:
    """Import, and the first fit with an empty and a full cache of compiled kernels."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = (run_alone(FIRST_FIT, NUMBA_CACHE_DIR=cache) for _ in range(2))
        again = run_alone(FIRST_FIT, NUMBA_CACHE_DIR=cache)
        warm = min(warm, again, key=lambda times: times["import"])
    yield Measurement("from bayesring import TensorRing", warm["import"], "s", 2.0, at_least=False)
    yield Measurement("first fit, nothing compiled yet", cold["fit"], "s", 20.0, at_least=False)
    yield Measurement("first fit, kernels in the cache", warm["fit"], "s", 2.0, at_least=False)


def memory(*counts: int) -> Iterator[Measurement]:
    """Peak memory of a fit beyond the caller's own arrays, with held-out calibration."""
    for n in counts:
        name = f"peak memory, D = 3, M = {n:.0e}"
        if not os.path.exists("/proc/self/clear_refs"):
            yield Measurement(name, None, "bytes/observation", note="needs Linux")
            continue
        found = run_alone(PEAK, str(n))
        note = f"{found['held'] / n:.1f} held while sampling"
        yield Measurement(
            name, found["peak"] / n, "bytes/observation", 45.0, at_least=False, note=note
        )


def run_alone(code: str, *arguments: str, **environment: str) -> Any:
    """The JSON in the last line that a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a measurement in a process of its own failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
