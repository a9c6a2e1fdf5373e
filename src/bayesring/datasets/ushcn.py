"""USHCN: monthly climate series, 17 variables x 125 places x 156 months, standardised per series.

From the United States Historical Climatology Network, as prepared for the tensor ring paper
(repository taozerui/scalable_btr).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from bayesring.datasets.cache import fetch
from bayesring.datasets.splits import random_split
from bayesring.types import FloatArray

FIRST_MONTH, N_MONTHS = np.datetime64("1990-01"), 156
"""The months that the source of the series covers, 1990 to 2002; the file itself has no dates."""


def load_ushcn() -> FloatArray:
    """Standardised values (17, 125, 156): variable, place, month."""
    series = _content()["data_series"]
    return np.stack([series[variable][0] for variable in range(len(series))])


def ushcn_labels() -> dict[str, NDArray[Any]]:
    """Labels of each mode: variables such as TMP, places such as 30.475N 114.75W, first days."""
    content = _content()
    variables = np.array([str(name[0]) for name in content["variable_names"][0]])
    places = np.array([f"{north}N {-east}W" for north, east in content["locations"]])
    months = (FIRST_MONTH + np.arange(N_MONTHS)).astype("M8[D]")
    return {"variable": variables, "place": places, "month": months}


def ushcn_table(share: float = 1.0, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Columns of the long table variable, place, month, value, with a share of the values known.

    The others are NaN. The known ones are those that `random_split` draws for training.
    """
    values, labels = load_ushcn(), ushcn_labels()
    known = np.zeros(values.shape, dtype=bool)
    known[tuple(random_split(values.shape, share, seed).train.T)] = True
    cells = np.indices(values.shape).reshape(values.ndim, -1)
    columns = {
        name: levels[places] for (name, levels), places in zip(labels.items(), cells, strict=True)
    }
    return columns | {"value": np.where(known, values, np.nan).ravel()}


def _content() -> dict[str, Any]:
    path = fetch(
        "ushcn/USHCN.mat",
        "67a48fc1dd6077d650aa54d9795d0a6f3dc0756efebbfc4d722f47b61f9ae967",
        "taozerui/scalable_btr",
        "197ea39a9bf7ab0a530363d022d61e3f2b066c7d",
        "data/USHCN.mat",
    )
    return dict(loadmat(path))
