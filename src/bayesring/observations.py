"""Observed entries, and the sorted views and blocks in which the samplers read them.

For each mode the observations are stored once more, sorted by that mode's index, and cut into
blocks of consecutive slices with about equal numbers of observations. A block is the unit of
work everywhere: one task of a thread pool, one random stream, one term of a sum. Cuts depend on
the data alone, so results do not depend on who works on which block.

Large data are kept small: with three modes, 40 bytes per observation in all. Indices are int32,
values float32 from `COMPACT` observations on, and the first mode's view is the sorted data.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bayesring.kernels import sorting
from bayesring.types import FloatArray, IntArray
from bayesring.types import Observations as Observations

BLOCK_SIZE = 8192
MAX_BLOCKS = 256
COMPACT = 500_000
"""Observations from which on their values are kept in float32."""


class HeldOut(NamedTuple):
    """Predictions for training values made before the chains saw them, in the units of the data."""

    coords: IntArray
    """(n, D)."""
    values: FloatArray
    """(n,), what was observed."""
    mean: FloatArray
    """(n,), of a new observation; for binary data the probability of a one."""
    std: FloatArray
    """(n,), of a new observation."""


class Block(NamedTuple):
    """Consecutive slices of one mode with their observations, or a part of one large slice."""

    number: int
    """Place among the mode's blocks; keys the block's random stream."""
    first: int
    """Index of the first slice."""
    bounds: IntArray
    """(J + 1,) observations of slice ``first + j`` are ``bounds[j]:bounds[j + 1]`` of the view."""
    others: IntArray
    """(D - 1, M) int32, the whole view: indices of the other modes in ring order."""
    values: FloatArray
    """(n,), those of the block."""
    is_part: bool
    """Whether other blocks hold more observations of the same, only, slice."""

    @property
    def own(self) -> IntArray:
        """(n,) the mode's own index of each observation."""
        indices = np.arange(self.first, self.first + self.bounds.size - 1, dtype=np.int32)
        return np.repeat(indices, np.diff(self.bounds))


def in_order(data: Observations) -> Observations:
    """The same observations, sorted by coordinates, then value: arrival cannot matter after.

    Coordinates come as int32, column after column, values in standard units. Data that are so
    already are returned.
    """
    n, value_type = len(data.values), _value_type(len(data.values))
    tidy = data.coords.dtype == np.int32 and data.coords.flags.f_contiguous
    tidy = tidy and data.values.dtype == value_type and (data.location, data.scale) == (0.0, 1.0)
    if tidy and sorting.is_sorted(data.coords.T, data.values):
        return data
    columns = np.empty((len(data.shape), n), dtype=np.int32)
    values = np.empty(n, dtype=value_type)
    order, ordered, column = np.empty((3, n), dtype=np.int32 if n < 2**31 else np.int64)
    order[:] = np.arange(n, dtype=order.dtype)
    for mode in reversed(range(len(data.shape))):
        column[:] = data.coords[:, mode]
        starts = sorting.slice_starts(column, data.shape[mode])
        sorting.sort_by(column, starts, order, ordered)
        order, ordered = ordered, order
    for mode in range(len(data.shape)):
        column[:] = data.coords[:, mode]
        sorting.take(column, order, columns[mode])
    sorting.take_standard(data.values, order, data.location, data.scale, values)
    sorting.sort_ties(columns, values)
    return Observations(columns.T, values, data.shape)


def _value_type(n: int) -> type[np.floating[Any]]:
    return np.float64 if n < COMPACT else np.float32


def mode_views(
    data: Observations, block_size: int | None = None, cut_slices: bool = True
) -> tuple[tuple[Block, ...], ...]:
    """The blocks of every mode.

    Observations are first put into an order that their arrival cannot influence (coordinates,
    then value), then sorted by each mode's index.

    Parameters
    ----------
    block_size : observations per block that the cuts aim at; by default `BLOCK_SIZE`, or more
        when that would give over `MAX_BLOCKS` blocks
    cut_slices : whether a slice larger than a block may be cut into parts
    """
    size = block_size or max(BLOCK_SIZE, -(-len(data.values) // MAX_BLOCKS))
    data = in_order(data)
    columns = data.coords.T
    views = []
    for mode, n_slices in enumerate(data.shape):
        starts = sorting.slice_starts(columns[mode], n_slices)
        if mode == 0:
            others, values = columns[1:], data.values
        else:
            others, values = sorting.view_of_mode(columns, data.values, mode, starts)
        views.append(_blocks(others, values, starts, size, cut_slices))
    return tuple(views)


def _blocks(
    others: IntArray, values: FloatArray, starts: IntArray, size: int, cut_slices: bool
) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for first, last, begin, end in _cuts(starts, size, cut_slices):
        is_part = end - begin < starts[last] - starts[first]
        bounds = np.clip(starts[first : last + 1], begin, end)
        blocks.append(Block(len(blocks), first, bounds, others, values[begin:end], is_part))
    return tuple(blocks)


def _cuts(starts: IntArray, size: int, cut_slices: bool) -> list[tuple[int, int, int, int]]:
    """Cut slices into (first slice, slice after the last, first observation, end) per block.

    A run of slices is closed when it reaches `size` observations; a slice of more than one and a
    half times that is cut into equal parts of its own. So that slices without observations cost
    nothing special, each counts as one observation more than it has.
    """
    cuts = []
    first = 0
    n_slices = len(starts) - 1
    for i in range(n_slices):
        begin, end = int(starts[i]), int(starts[i + 1])
        if cut_slices and end - begin > 1.5 * size:
            if first < i:
                cuts.append((first, i, int(starts[first]), begin))
            edges = np.linspace(begin, end, round((end - begin) / size) + 1).astype(int)
            cuts += [(i, i + 1, int(a), int(b)) for a, b in pairwise(edges)]
            first = i + 1
        elif end - starts[first] + i + 1 - first >= size:
            cuts.append((first, i + 1, int(starts[first]), end))
            first = i + 1
    if first < n_slices:
        cuts.append((first, n_slices, int(starts[first]), int(starts[n_slices])))
    return cuts
