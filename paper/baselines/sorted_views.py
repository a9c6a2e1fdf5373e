"""Observations sorted by one mode and then by the others, for the nested sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray


class SortedView(NamedTuple):
    """All observations, sorted by the index of a mode, then by the other indices."""

    bounds: IntArray
    """(I_d + 1,), the observations of slice i are ``bounds[i]:bounds[i + 1]``."""
    modes: tuple[int, ...]
    """The other modes, in the order of `others`."""
    others: IntArray
    """(D - 1, M) int32, their indices."""
    values: FloatArray
    """(M,)."""


def sorted_view(data: Observations, mode: int, others: Sequence[int]) -> SortedView:
    """Sort by `mode`, then by `others` in their order."""
    columns = data.coords.T
    order = np.lexsort([*(columns[other] for other in reversed(others)), columns[mode]])
    counts = np.bincount(columns[mode], minlength=data.shape[mode])
    return SortedView(
        np.concatenate([[0], np.cumsum(counts)]),
        tuple(others),
        np.ascontiguousarray(columns[list(others)][:, order], dtype=np.int32),
        data.values[order].astype(float),
    )


def lay_out(tables: Sequence[FloatArray]) -> tuple[FloatArray, IntArray]:
    """Tables end to end as one flat array, and the start of each."""
    flat = np.concatenate([np.ravel(table) for table in tables])
    sizes = [table.size for table in tables]
    return flat, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
