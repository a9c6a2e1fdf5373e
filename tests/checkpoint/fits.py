"""Small fits of every kind, to be killed and resumed."""

from __future__ import annotations

import copy
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesring import TensorRing, complete
from bayesring.model.rank import StrandGrowth
from bayesring.priors import NormalGamma

SHAPE = (12, 9, 8)
BEGUN = 500
"""Observations of a model that goes on with others."""
FITS: dict[str, dict[str, Any]] = {
    "gibbs": {"warmup": 80, "draws": 30, "chains": 3},
    "gibbs, binary": {"likelihood": "bernoulli", "warmup": 80, "draws": 20, "chains": 2},
    "gibbs, one entry at a time": {
        "prior": NormalGamma(),
        "update": "entry",
        "rank": 2,
        "warmup": 60,
        "draws": 40,
        "chains": 2,
    },
    "gibbs, automatic length": {"rank": 2, "chains": 2},
    "gibbs, complete": {"warmup": 40, "draws": 20, "chains": 2},
    "gibbs, thinned": {"rank": 2, "warmup": 20, "draws": 60, "chains": 2, "max_memory": 30_000},
    "online EM": {
        "inference": "online-em",
        "rank": StrandGrowth(most=8, fewest=8),
        "epochs": 12,
        "draws": 20,
        "chains": 2,
    },
    "online EM, more": {
        "inference": "online-em",
        "rank": 2,
        "epochs": 12,
        "draws": 20,
        "chains": 2,
    },
    "online EM, Parquet": {"inference": "online-em", "rank": 2, "epochs": 12, "draws": 20},
}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and values."""
    rng = np.random.default_rng(7)
    coords = np.stack([rng.integers(0, n, 700) for n in SHAPE], axis=1)
    factors = [rng.standard_normal((n, 2)) for n in SHAPE]
    entries = np.prod([each[coords[:, d]] for d, each in enumerate(factors)], axis=0).sum(axis=1)
    values = entries + 0.3 * rng.standard_normal(len(entries))
    return coords, (values > 0).astype(float) if "binary" in name else values


def write_parquet(folder: Path) -> Path:
    """The same as a file."""
    coords, values = data("")
    columns = {mode: coords[:, d] for d, mode in enumerate("abc")}
    path = folder / "data.parquet"
    pq.write_table(pa.table(columns | {"y": values}), path, row_group_size=150)
    return path


def run(
    name: str,
    folder: Path | None,
    *,
    n_jobs: int = 1,
    source: Path | None = None,
    every: float = 0.0,
    **settings: Any,
) -> TensorRing:
    """Fit from the start, or on from the folder; `source` has the Parquet data."""
    own = {"random_state": 3, "progress": False, "n_jobs": n_jobs, **FITS[name], **settings}
    ring = TensorRing(**own)
    keep: dict[str, Any] = {"checkpoint": folder, "checkpoint_every": every}
    if "Parquet" in name:
        assert source is not None
        return ring.fit(source, modes=["a", "b", "c"], value="y", **keep)
    X, y = data(name)
    if "complete" in name:
        table = pd.DataFrame({mode: X[:, d] for d, mode in enumerate("abc")} | {"y": y})
        table.loc[::50, "y"] = np.nan
        return complete(table, modes=["a", "b", "c"], value="y", **keep, **own).model
    if "more" in name:
        goes_on = copy.deepcopy(begun(name)).set_params(n_jobs=n_jobs)
        return goes_on.partial_fit(X[BEGUN:], y[BEGUN:], **keep)
    return ring.fit(X, y, **keep)


@cache
def begun(name: str) -> TensorRing:
    """A model of the first observations, which the fit of that name goes on with."""
    X, y = data(name)
    ring = TensorRing(random_state=3, progress=False, n_jobs=1, **FITS[name])
    return ring.fit(X[:BEGUN], y[:BEGUN])


def fingerprint(ring: TensorRing) -> str:
    """All that a fit found, to the bit."""
    total = hashlib.sha256()
    for draws, trace in zip(ring.posterior_.chains, ring.trace_, strict=True):
        for each in (*draws, *trace[:2], *trace.described.values()):
            total.update(np.ascontiguousarray(each).tobytes())
    total.update(repr(ring.posterior_.likelihood).encode())
    held = ring.held_out_
    for each in () if held is None else held:
        total.update(np.ascontiguousarray(each).tobytes())
    for each in ring.estimates_:
        total.update(each.cores.tobytes() + each.curvature.tobytes())
    return total.hexdigest()
