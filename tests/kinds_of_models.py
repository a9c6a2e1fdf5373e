"""Small models of several kinds of values, as they are kept in `tests/data` to be altered.

python -m tests.kinds_of_models tests/data
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

from bayesring import TensorRing, TensorRingClassifier

SETTINGS = {"warmup": 4, "draws": 4, "chains": 2, "random_state": 1, "n_jobs": 1, "progress": False}
NAMES = ("model-v3-classifier", "model-v3-counts", "model-v3-ratings", "model-v3-outliers")


def table(rng: np.random.Generator, n: int, shape: tuple[int, ...], **more: np.ndarray) -> pa.Table:
    """Keys of which every one occurs, and more columns."""
    keys = {}
    for name, size in zip("abc", shape, strict=True):
        codes = np.append(np.arange(size), rng.integers(0, size, n - size))
        keys[name] = np.array([f"{name}{code}" for code in range(size)])[codes]
    return pa.table(keys | more)


def classifier(rng: np.random.Generator) -> TensorRing:
    """Two labels, with weights."""
    X, y = table(rng, 40, (5, 4, 3)), np.where(rng.random(40) < 0.4, "yes", "no")
    ring = TensorRingClassifier(2, **SETTINGS)
    return ring.fit(X, y, rng.integers(1, 3, 40).astype(float))


def counts(rng: np.random.Generator) -> TensorRing:
    """Counts, with exposures."""
    values = {"v": rng.poisson(4.0, 40).astype(float), "hours": rng.uniform(0.5, 2.0, 40)}
    ring = TensorRing(2, likelihood="negative-binomial", **SETTINGS)
    X = table(rng, 40, (5, 4, 3), **values)
    return ring.fit(X, modes=["a", "b", "c"], value="v", exposure="hours")


def ratings(rng: np.random.Generator) -> TensorRing:
    """Ordered categories."""
    X = table(rng, 40, (5, 4, 3), v=rng.integers(1, 6, 40).astype(float))
    return TensorRing(2, likelihood="ordinal", **SETTINGS).fit(X, modes=["a", "b", "c"], value="v")


def outliers(rng: np.random.Generator) -> TensorRing:
    """Heavy tails, values known by their ends, held-out values, calibrated tails."""
    v, low, high = rng.standard_t(3, 540), np.full(540, np.nan), np.full(540, np.nan)
    v[:9], low[:9], high[3:9] = np.nan, -1.0, 0.5
    X = table(rng, 540, (6, 4, 3), v=v, low=low, high=high)
    ring = TensorRing(2, likelihood="student-t", **SETTINGS | {"warmup": 80})
    ends = {"value_lower": "low", "value_upper": "high"}
    return ring.fit(X, modes=["a", "b", "c"], value="v", **ends)


def main(folder: str) -> None:
    warnings.simplefilter("ignore")
    for name in NAMES:
        make = globals()[name.removeprefix("model-v3-")]
        make(np.random.default_rng(0)).save(Path(folder) / f"{name}.ring")


if __name__ == "__main__":
    main(sys.argv[1])
