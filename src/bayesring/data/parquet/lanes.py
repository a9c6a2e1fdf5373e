"""Large batches of Parquet rows, in blocks that can be read and worked on anywhere.

Row groups are divided into `LANES` lanes of consecutive groups, always the same. Every pass reads
the groups of a lane in another order, a few batches of rows in turn, shuffles these, and gives an
equal share of them to each of the next large batches. A block of a batch is what some neighbouring
lanes give. So whoever has the rows of a lane can find its share of every batch without the others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.batches import Chunk, count_blocks
from bayesring.data.blocks import shares
from bayesring.data.parquet.reading import BATCH, Group, ParquetFiles
from bayesring.data.parquet.shuffling import (
    LANES,
    POOL,
    Coding,
    Lane,
    dealt,
    make_coders,
    observed_parts,
)
from bayesring.engine.streams import Purpose, aside
from bayesring.model.types import IntArray

Span = tuple[int, int]


class Deal(NamedTuple):
    """Which share of the rows of a lane belongs to a batch."""

    seed: int
    epoch: int
    turn: int
    """How often lanes have been filled before in this pass."""
    batch: int
    n_batches: int
    """Number of batches among which the rows are divided."""

    def share(self, n: int) -> slice:
        """The place of the share among `n` shuffled rows."""
        return slice(n * self.batch // self.n_batches, n * (self.batch + 1) // self.n_batches)

    def rows(self, lane: int, n: int) -> IntArray:
        """The numbers of the rows of the share among the `n` rows of a lane."""
        return lane_order(self.seed, self.epoch, self.turn, lane, n)[self.share(n)]


@lru_cache(maxsize=LANES)
def lane_order(seed: int, epoch: int, turn: int, lane: int, n: int) -> IntArray:
    """The order of the rows of a lane; needed by several batches in a row."""
    rng = np.random.default_rng(aside(seed, Purpose.FILES, epoch, turn, lane))
    return rng.permutation(n).astype(np.int32)


def lanes_of(groups: Sequence[Group]) -> list[slice]:
    """The row groups of every lane."""
    return shares([group.n_rows for group in groups], LANES)


def orders_of(lanes: Sequence[slice], seed: int, epoch: int) -> list[list[int]]:
    """The row groups of every lane, in the order of a pass."""
    rng = np.random.default_rng(aside(seed, Purpose.FILES, epoch))
    return [(own.start + rng.permutation(own.stop - own.start)).tolist() for own in lanes]


def lanes_of_block(n_lanes: int, size: int) -> list[Span]:
    """First lane, and first after it, of every block of batches of about `size` rows."""
    edges = [n_lanes * number // count_blocks(size) for number in range(count_blocks(size) + 1)]
    return list(pairwise(edges))


def room_of(n_lanes: int, size: int) -> int:
    """Number of rows that a lane holds at a time."""
    return max(max(POOL, size) // n_lanes, BATCH)


def turns_of(sizes: Sequence[int], room: int) -> Iterator[Span]:
    """Numbers of the batches of rows, of known `sizes`, that fill a lane turn by turn.

    The same as `Lane.fill` does without knowing them.
    """
    begin = 0
    while begin < len(sizes):
        end, placed = begin, 0
        while placed + BATCH <= room and end < len(sizes):
            placed += sizes[end]
            end += 1
        yield begin, end
        begin = end


def deals_of(seed: int, epoch: int, turn: int, n: int, size: int) -> Iterator[Deal]:
    """The batches to which `n` rows are dealt."""
    n_batches = max(1, round(n / size))
    return (Deal(seed, epoch, turn, batch, n_batches) for batch in range(n_batches))


def joined_chunks(chunks: Sequence[Chunk], edges: Sequence[Span] = ()) -> Chunk:
    """The rows of several lanes, with cuts between blocks if the lanes of each are given."""
    ends = np.cumsum([0, *(chunk.n for chunk in chunks)]).tolist()
    cuts = (0, *(ends[end] for _, end in edges)) if edges else ()
    columns = np.concatenate([chunk.columns for chunk in chunks], axis=1)
    return Chunk(columns, np.concatenate([chunk.values for chunk in chunks]), cuts=cuts)


def large_batches(
    files: ParquetFiles,
    coding: Coding,
    place: tuple[int, int],
    size: int,
    skip: NDArray[np.int64],
    threads: int,
) -> Generator[Chunk, None, None]:
    """Every row that has a value and is not skipped, once, in batches of about `size` rows.

    `place` is seed and number of the pass.
    """
    coders, found = make_coders(files, coding.labels), lanes_of(files.groups)
    lanes = [
        Lane(files, coding, coders, observed_parts(files, [files.groups[i] for i in own], skip))
        for own in orders_of(found, *place)
    ]
    room, edges = room_of(len(lanes), size), lanes_of_block(len(lanes), size)
    pool = np.empty((len(lanes), room, len(files.modes) + 1), dtype=np.int32)
    turn = 0
    with ThreadPoolExecutor(threads) as workers:
        while True:
            filled = list(workers.map(Lane.fill, lanes, pool, [BATCH] * len(lanes)))
            if not sum(filled):
                return
            for deal in deals_of(*place, turn, sum(filled), size):
                chunks = [
                    dealt(own, deal.rows(lane, n))
                    for lane, (own, n) in enumerate(zip(pool, filled, strict=True))
                ]
                yield joined_chunks(chunks, edges)
            turn += 1
