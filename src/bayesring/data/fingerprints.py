"""What tells data apart that are never in one place: digests of rows, and sums of their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bayesring.data.observations import Observations
from bayesring.model.types import IntArray

STEP = 0x9E3779B97F4A7C15
SHIFTS = (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)
"""Constants of the generator SplitMix64, whose last step mixes the bits of a number."""
KEYS = (1, 2)
"""A sum for each: together they have 128 bits."""


def digest_of_rows(parts: Iterable[IntArray]) -> str:
    """Of coded rows in their order, which come in parts."""
    total = hashlib.sha256()
    for rows in parts:
        total.update(np.ascontiguousarray(rows).data)
    return total.hexdigest()


def sum_of_hashes(data: Observations) -> NDArray[np.uint64]:
    """Sums over all observations, which do not depend on their order or on how they are cut up."""
    fields = [each for each in data.given if each is not None]
    columns = [*data.coords.T, data.values, *fields]
    return np.array([_hashes(columns, key).sum() for key in KEYS], dtype=np.uint64)


def _hashes(columns: list[NDArray[np.generic]], key: int) -> NDArray[np.uint64]:
    """One number for each row, given its columns."""
    state = np.full(len(columns[0]), key, dtype=np.uint64)
    for column in columns:
        bits = np.asarray(column, dtype=np.float64) + 0.0  # a zero has no sign
        state = _mixed(state ^ bits.view(np.uint64))
    return state


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = state + np.uint64(STEP)
    for shift, factor in SHIFTS:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return state
