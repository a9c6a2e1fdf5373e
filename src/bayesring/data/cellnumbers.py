"""One number per cell or fibre, by which cells are found again; also in tensors of 2^63 cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayesring.model.types import IntArray

MOST = 2**62


def cell_numbers(coords: IntArray, shape: Sequence[int]) -> IntArray:
    """A number (n,) for every row of `coords`, the same for the same cells and no others.

    Numbers of two calls can be compared only if the tensor has fewer than 2^62 cells.
    """
    numbers, bound = np.zeros(len(coords), dtype=np.int64), 1
    for column, size in zip(coords.T, shape, strict=True):
        if bound * size > MOST:
            found, numbers = np.unique(numbers, return_inverse=True)
            bound = len(found)
        numbers = numbers * size + column
        bound *= size
    return numbers


def numbers_in_both(
    one: IntArray, other: IntArray, shape: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Numbers of two sets of cells that can be compared with each other."""
    numbers = cell_numbers(np.concatenate([one, other]), shape)
    return numbers[: len(one)], numbers[len(one) :]


def rows_among(cells: IntArray, others: IntArray, shape: Sequence[int]) -> NDArray[np.bool_]:
    """Which of some cells (n, D) are among others."""
    return np.isin(*numbers_in_both(cells, others, shape))
