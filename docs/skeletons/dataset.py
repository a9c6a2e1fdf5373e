"""Skeleton of a data set: a small table, one row per known cell.

Copy it to `src/bayesring/datasets/`, replace `TABLE` with a file that
`bayesring.datasets.cache.fetch` downloads and verifies by checksum, rename the loader to
`load_<name>`, list it in that folder's `__init__.py`, and describe the data in `docs/datasets.md`.
"""

from __future__ import annotations

import csv
from io import StringIO

import numpy as np

from bayesring.datasets import Dataset, Description, Fold
from bayesring.datasets.dataset import N_FOLDS
from bayesring.model.types import Observations

TABLE = """\
station,variable,month,value
harbour,rain,2024-01,61.0
harbour,rain,2024-02,48.5
harbour,sun,2024-01,52.1
harbour,sun,2024-02,79.4
harbour,sun,2024-03,118.0
hill,rain,2024-01,93.2
hill,rain,2024-03,70.4
hill,sun,2024-02,66.3
hill,sun,2024-03,101.7
valley,rain,2024-02,39.9
valley,rain,2024-03,44.6
valley,sun,2024-01,47.8
"""
MODES = ("station", "variable", "month")
DESCRIPTION = Description(
    name="Skeleton",
    content="Made-up monthly rain (mm) and sun (h); station x variable x month, two thirds known.",
    source="this file",
    licence="BSD-3-Clause, as for bayesring.",
    citation="None: the numbers are made up.",
    protocol="Rows assigned to five folds at random; each fold is the test set once. RMSE.",
)


def load_skeleton() -> Dataset:
    """Rain and sun (3, 2, 3): station, variable, month."""
    rows = list(csv.DictReader(StringIO(TABLE)))
    labels, columns = {}, []
    for mode in MODES:
        labels[mode], codes = np.unique([row[mode] for row in rows], return_inverse=True)
        columns.append(codes)
    shape = tuple(len(levels) for levels in labels.values())
    values = np.array([float(row["value"]) for row in rows])
    known = Observations(np.stack(columns, axis=1), values, shape)
    return Dataset(DESCRIPTION, shape, labels, lambda: known, lambda fold: split(known, fold))


def split(known: Observations, fold: int) -> Fold:
    """Training and test sets of one fold, the same on every call."""
    order = np.random.default_rng(0).permutation(len(known.values))
    is_test = order % N_FOLDS == fold
    return Fold(*(part(known, chosen) for chosen in (~is_test, is_test)))


def part(known: Observations, chosen: np.ndarray) -> Observations:
    """Select some of the observations."""
    return Observations(known.coords[chosen], known.values[chosen], known.shape)
