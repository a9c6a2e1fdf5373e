"""How cells to predict are cut into pieces of work, by the cells alone, so for any threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bayesring.model.types import IntArray

PIECE_BYTES = 2**23
"""Entries of a piece."""
FEWEST, MOST = 64, 2**13
"""Cells of a piece."""
WIDE = 64
"""Levels of the longest mode in a piece, if cells are close together."""
MOST_NUMBERED = 2**62
"""Cells of a tensor that can be numbered."""


def cut(
    coords: IntArray, shape: Sequence[int], n_draws: int
) -> tuple[IntArray, list[tuple[int, int]]]:
    """An order of cells and where to cut it, so that pieces have few slices for their cells.

    Cells are grouped by their slices of all modes but the longest, and by `WIDE` slices of that.
    """
    n, modes, longest = len(coords), len(shape), int(np.argmax(shape))
    most = min(max(PIECE_BYTES // (8 * n_draws), FEWEST), MOST)
    around = [(longest + 1 + step) % modes for step in range(modes)]
    order = _sorted(coords[:, around], [shape[mode] for mode in around])
    rows = coords[order]
    new = np.any(rows[1:, around[:-1]] != rows[:-1, around[:-1]], axis=1)
    strip = np.concatenate([[0], np.cumsum(new)])[:n] // max(1, most // WIDE)
    box = strip * (shape[longest] // WIDE + 1) + rows[:, longest] // WIDE
    again = np.argsort(box, kind="stable")
    order, box = order[again], box[again]
    starts = np.flatnonzero(np.concatenate([[True], box[1:] != box[:-1]])[:n])
    starts = starts[np.concatenate([[True], np.diff(starts // most) > 0])[: len(starts)]]
    return order, list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=False))


def _sorted(coords: IntArray, shape: Sequence[int]) -> IntArray:
    """Order of cells by their first index, then by the next."""
    if prod(shape) > MOST_NUMBERED:
        return np.asarray(np.lexsort(coords.T[::-1]))
    return np.argsort(np.ravel_multi_index(tuple(coords.T), tuple(shape)))
