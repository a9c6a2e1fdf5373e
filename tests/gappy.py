"""A small array with gaps, and the same as a long table."""

from __future__ import annotations

import datetime

import numpy as np

QUICK = {
    "rank": 2,
    "order": None,
    "warmup": 20,
    "draws": 20,
    "chains": 1,
    "random_state": 0,
    "progress": False,
}
SHAPE = (5, 6, 4)
STATIONS = np.array(["Aix", "Bonn", "Cork", "Delft", "Essen"])
MONTHS = np.array([datetime.date(2020, month, 1) for month in range(1, 7)])
NUMBERS = np.array([2, 3, 5, 10])
KEYS = ["station", "month", "number"]
STATISTICS = ("mean", "std", "lower", "upper")


def gappy_array():
    """A sum of waves in units of its own; a third of it NaN."""
    rng = np.random.default_rng(7)
    grids = np.meshgrid(*(np.linspace(0, 2, size) for size in SHAPE), indexing="ij")
    values = 30 + 5 * np.sin(sum(grids)) + 0.1 * rng.standard_normal(SHAPE)
    values[rng.random(SHAPE) < 1 / 3] = np.nan
    return values


def long_columns(array, rows=None):
    """The array as columns of a long table."""
    cells = np.argwhere(np.ones(SHAPE, dtype=bool))
    values = array[tuple(cells.T)]
    rows = np.arange(len(cells)) if rows is None else rows
    return {
        "station": STATIONS[cells[rows, 0]].tolist(),
        "month": MONTHS[cells[rows, 1]].tolist(),
        "number": NUMBERS[cells[rows, 2]].tolist(),
        "t": [None if np.isnan(v) else float(v) for v in values[rows]],
    }
