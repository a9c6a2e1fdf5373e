"""Blocks of slices, the unit of work everywhere: one task, one random stream, one term of a sum.

The observations are stored once per mode, sorted by that mode's index and cut into blocks of
consecutive slices with about equal numbers of observations. Block boundaries depend on the data
alone, so results do not depend on where a block is processed. A block holds everything that its
kernels need and nothing else, so it can be sent to another process and stay there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesring.data.observations import Observations, in_order
from bayesring.kernels import sorting
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray

BLOCK_SIZE = 8192
MAX_BLOCKS = 256


class Block(NamedTuple):
    """Consecutive slices of one mode with their observations, or a part of one large slice."""

    mode: int
    number: int
    """Position among the mode's blocks; the key of the block's random stream."""
    first: int
    """Index of the first slice."""
    bounds: IntArray
    """(J + 1,) observations of slice ``first + j`` are ``bounds[j]:bounds[j + 1]`` of the block."""
    others: IntArray
    """(D - 1, n) int32, indices of the other modes in ring order."""
    values: FloatArray
    """(n,)."""
    is_part: bool
    """Whether the block has a single slice, with more of its observations in other blocks."""
    given: Given = NOTHING
    """What else is known about the observations."""

    @property
    def slices(self) -> slice:
        """Positions of its slices in the core."""
        return slice(self.first, self.first + self.bounds.size - 1)

    @property
    def own(self) -> IntArray:
        """(n,) the mode's own index of each observation."""
        indices = np.arange(self.slices.start, self.slices.stop, dtype=np.int32)
        return np.repeat(indices, np.diff(self.bounds))

    def along(self, mode: int) -> IntArray:
        """(n,) index of each observation in any mode."""
        place = (mode - self.mode) % (len(self.others) + 1)
        return self.others[place - 1] if place else self.own


def blocks_of_modes(
    data: Observations, block_size: int | None = None, cut_slices: bool | Sequence[bool] = True
) -> tuple[tuple[Block, ...], ...]:
    """The blocks of every mode.

    Parameters
    ----------
    block_size : target number of observations per block; by default `BLOCK_SIZE`, or more if that
        would give more than `MAX_BLOCKS` blocks
    cut_slices : whether a slice larger than a block may be cut into parts, for all modes or each
    """
    size = size_for(len(data.values), block_size)
    data, shape = in_order(data), data.shape
    cut = [cut_slices] * len(shape) if isinstance(cut_slices, bool) else cut_slices
    starts = [sorting.slice_starts(data.coords.T[mode], n) for mode, n in enumerate(shape)]
    orders = [
        None if data.given.is_empty else np.argsort(column, kind="stable")
        for column in data.coords.T
    ]
    given = data.given
    first = _blocks_of_mode(
        [(data.coords.T, data.values)], 0, starts[0], size, cut[0], given.at(orders[0])
    )
    del data  # the other modes are built from the first, so the caller can release the data
    rest = (
        _blocks_of_mode(
            ((np.vstack([block.own, block.others]), block.values) for block in first),
            mode,
            starts[mode],
            size,
            cut[mode],
            given.at(orders[mode]),
        )
        for mode in range(1, len(shape))
    )
    return (first, *rest)


def size_for(n: int, block_size: int | None = None) -> int:
    """Target number of observations per block, of `n` in all."""
    return block_size or max(BLOCK_SIZE, -(-n // MAX_BLOCKS))


def heads_of_mode(mode: int, counts: IntArray, size: int, cut_slices: bool) -> tuple[Block, ...]:
    """One mode's blocks, without their observations, given the number of these in each slice."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    return tuple(
        Block(
            mode,
            number,
            first,
            np.clip(starts[first : last + 1], begin, end) - begin,
            np.empty((0, 0), dtype=np.int32),
            np.empty(0),
            end - begin < starts[last] - starts[first],
        )
        for number, (first, last, begin, end) in enumerate(_cuts(starts, size, cut_slices))
    )


def _blocks_of_mode(
    parts: Iterable[tuple[IntArray, FloatArray]],
    mode: int,
    starts: IntArray,
    size: int,
    cut_slices: bool,
    given: Given,
) -> tuple[Block, ...]:
    """One mode's view of data given in parts (columns and values), block after block."""
    n_slices, n = len(starts) - 1, int(starts[-1])
    cuts = _cuts(starts, size, cut_slices)
    edges = np.array([0, *(end for *_, end in cuts)], dtype=np.int64)
    block_of = np.zeros(n_slices, dtype=np.int64)
    for number, (first, last, *_) in reversed(list(enumerate(cuts))):
        block_of[first:last] = number  # the first part of a slice that is cut
    following, others = starts.copy(), np.empty(0, dtype=np.int32)
    for columns, part in parts:
        if not others.size:
            order = len(columns)
            others, values = np.empty((order - 1) * n, np.int32), np.empty(n, part.dtype)
        sorting.add_to_view(columns, part, mode, following, edges, block_of, others, values)
    blocks = []
    for number, (first, last, begin, end) in enumerate(cuts):
        blocks.append(
            Block(
                mode,
                number,
                first,
                np.clip(starts[first : last + 1], begin, end) - begin,
                others[(order - 1) * begin : (order - 1) * end].reshape(order - 1, end - begin),
                values[begin:end],
                end - begin < starts[last] - starts[first],
                given.at(slice(begin, end)),
            )
        )
    return tuple(blocks)


def observations_of(blocks: Sequence[Block], shape: tuple[int, ...]) -> Observations:
    """The sorted observations from which the blocks of the first mode were made."""
    n = sum(block.values.size for block in blocks)
    columns = np.empty((len(shape), n), dtype=np.int32)
    values = np.empty(n, dtype=blocks[0].values.dtype)
    end = 0
    for block in blocks:
        begin, end = end, end + block.values.size
        columns[0, begin:end], columns[1:, begin:end] = block.own, block.others
        values[begin:end] = block.values
    carried = zip(*(block.given for block in blocks), strict=True)
    given = Given(*(None if parts[0] is None else np.concatenate(parts) for parts in carried))
    return Observations(columns.T, values, shape, given=given)


def _cuts(starts: IntArray, size: int, cut_slices: bool) -> list[tuple[int, int, int, int]]:
    """Cut slices into (first slice, slice after the last, first observation, end) per block.

    A run of slices ends when it reaches `size` observations. A slice with more than one and a half
    times that is cut into equal parts. Each slice counts as one observation more than it has, so
    that slices without observations need no special treatment.
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


def shares(sizes: Sequence[int], n: int) -> list[slice]:
    """Runs of pieces, at most `n`, of about equal total size."""
    ends = np.cumsum([0, *(size + 1 for size in sizes)])
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n + 1)[1:-1])
    edges = np.unique([0, *cuts, len(sizes)])
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]
