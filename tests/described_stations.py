"""Values by station, kind and day, with features that tell of most of what stations do."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesring import TensorRing

FEW = {"rank": 2, "warmup": 60, "draws": 40, "chains": 2, "random_state": 3, "progress": False}
KEYS = ["station", "kind", "day"]
N, KNOWN = 40, 30
"""Stations, and those with observations."""


def simulated_stations():
    """A ring whose stations follow two of four features but for a third of the variance."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((N, 4))
    explained = x[:, :2] @ rng.standard_normal((2, 2))
    stations = explained + 0.5 * rng.standard_normal((N, 2))
    kinds, days = rng.standard_normal((6, 2)), rng.standard_normal((7, 2))
    cores = (stations, kinds, days)
    cells = np.argwhere(np.ones((N, 6, 7), dtype=bool))
    truth = np.einsum("nr,nr,nr->n", *(g[i] for g, i in zip(cores, cells.T, strict=True)))
    table = pd.DataFrame(cells, columns=KEYS)
    table["station"] = [f"s{i:02d}" for i in cells[:, 0]]
    table["value"] = truth + 0.1 * rng.standard_normal(len(truth))
    features = pd.DataFrame(x, columns=list("abcd"))
    others = (kinds.T @ kinds / 6) * (days.T @ days / 7)
    parts = [np.trace(others @ np.cov(g.T)) for g in (explained, stations - explained)]
    features.attrs["share"] = parts[0] / sum(parts)
    features.insert(0, "station", [f"s{i:02d}" for i in range(N)])
    known = cells[:, 0] < KNOWN
    some = rng.random(len(cells)) < 0.5
    return table[known & some], table[~known], features


def fitted_with(table, features):
    """A ring of the table whose stations have these features."""
    ring = TensorRing(**FEW, order=None)
    return ring.fit(table, value="value", modes=KEYS, features={"station": features})
