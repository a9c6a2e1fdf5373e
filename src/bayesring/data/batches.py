"""Sources of mini-batches: observations in an order that changes with every pass.

A source yields a pass over its rows in chunks, with columns of indices (D, n) and values (n,) in
standard units; `one_pass` splits them. Arrays in memory are one source, files another.

A *large* batch is worked on in blocks, whose sums are added in a fixed order: see `Chunk.cuts`. So
blocks may be anywhere, for example on the workers of a cluster, and the sums are the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from bayesring.data.observations import Observations, in_order
from bayesring.engine.streams import Purpose, Streams
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray

LARGE = 1 << 15
"""Rows up to which a batch is worked on as a whole."""
BLOCK_ROWS, MOST_BLOCKS = 1 << 16, 32
"""Rows in a block of a large batch, about, and most blocks."""


class Chunk(NamedTuple):
    """Some rows."""

    columns: IntArray
    """(D, n) int32, indices of every mode."""
    values: FloatArray
    """(n,)."""
    given: Given = NOTHING
    """What else is known about the rows."""
    cuts: tuple[int, ...] = ()
    """Where blocks begin and end, if the rows are a large batch."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    def block(self, number: int) -> Chunk:
        """The rows of a block."""
        own = slice(*self.cuts[number : number + 2])
        return Chunk(self.columns[:, own], self.values[own], self.given.at(own))

    def doubled(self) -> Chunk:
        """The rows as `kernels.gradient` expects them: columns (2 D - 1, n)."""
        columns = np.concatenate([self.columns, self.columns[:-1]])
        return Chunk(columns, self.values.astype(float, copy=False), self.given)


class Elsewhere(Protocol):
    """A large batch whose rows are not in this process; an engine knows where."""

    @property
    def n(self) -> int:
        """Number of rows."""


Batch = Chunk | Elsewhere


def count_blocks(size: int) -> int:
    """Number of blocks, a power of two, of batches of about `size` rows."""
    fitting = max(2, min(MOST_BLOCKS, size // BLOCK_ROWS))
    return 1 << fitting.bit_length() - 1


def count_batches(n: int, size: int) -> int:
    """Fewest batches of at most `size` rows that n rows make."""
    return -(-n // size)


class Rows(Protocol):
    """A source of observations that can be iterated many times."""

    @property
    def counts(self) -> Sequence[IntArray]:
        """Number of observations of every slice of every mode."""

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows, in an order that depends on the streams and the number of the pass."""

    def large_batches(self, streams: Streams, epoch: int, size: int) -> Iterator[Batch]:
        """All rows, in batches of about `size` rows that are worked on in blocks."""


class ArrayRows:
    """Observations in memory."""

    def __init__(self, data: Observations) -> None:
        data = in_order(data)
        self._columns, self._values, self._given = data.coords.T, data.values, data.given
        self.counts: Sequence[IntArray] = [
            np.bincount(column, minlength=n).astype(np.int64)
            for column, n in zip(self._columns, data.shape, strict=True)
        ]

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows at once, shuffled."""
        order = streams.rng(epoch, Purpose.SHUFFLE).permutation(len(self._values))
        columns = self._columns.take(order, axis=1)
        yield Chunk(columns, self._values[order], self._given.at(order))

    def large_batches(self, streams: Streams, epoch: int, size: int) -> Iterator[Batch]:
        """All rows, shuffled; blocks have the same number of rows, give or take one."""
        order = streams.rng(epoch, Purpose.SHUFFLE).permutation(len(self._values))
        for begin in range(0, len(order), size):
            own = order[begin : begin + size]
            cuts = np.linspace(0, len(own), count_blocks(size) + 1).astype(int)
            columns = self._columns.take(own, axis=1)
            yield Chunk(columns, self._values[own], self._given.at(own), tuple(cuts.tolist()))


def one_pass(
    rows: Rows, streams: Streams, size: int, epoch: int = 0
) -> Generator[Batch, None, None]:
    """All rows in batches; columns (2 D - 1, n), as `kernels.gradient` expects them.

    Batches of a chunk have the same number of rows, give or take one: a step is as long for a few
    rows left over as for a whole batch, but would be taken along a far noisier gradient. Batches of
    more than `LARGE` rows are as `Rows.large_batches` makes them.
    """
    if size > LARGE:
        yield from rows.large_batches(streams, epoch, size)
        return
    for columns, values, given, _ in rows.chunks(streams, epoch):
        doubled = np.concatenate([columns, columns[:-1]])
        ends = np.linspace(0, len(values), count_batches(len(values), size) + 1).astype(int)
        for begin, end in pairwise(ends.tolist()):
            cut = slice(begin, end)
            own = np.ascontiguousarray(doubled[:, cut])
            yield Chunk(own, values[cut].astype(float, copy=False), given.at(cut))


class Position(NamedTuple):
    """A position in an endless series of batches."""

    epoch: int = 0
    batch: int = 0
    """Number of batches of this pass already consumed."""


class Feed:
    """Endless batches, pass after pass, from any position.

    Continuing where it stopped costs nothing. To start elsewhere, or after a read error, the pass
    is read again up to that position. Close it when done: files are read ahead in threads, which
    must not be left to the garbage collector.
    """

    def __init__(self, rows: Rows, streams: Streams, size: int) -> None:
        self._source = rows, streams, size
        self._at = Position()
        self._batches = _endless(self._at, *self._source)

    def read(self, position: Position, n_rows: int) -> Iterator[tuple[Batch, Position]]:
        """Batches from `position` on, each with the position after it, until they have `n_rows`."""
        if position != self._at:
            self._go_to(position)
        while n_rows > 0:
            try:
                chunk, self._at = next(self._batches)
            except BaseException:
                self._go_to(self._at)
                raise
            n_rows -= chunk.n
            yield chunk, self._at

    def close(self) -> None:
        """Close the current pass; reading again restarts it."""
        self._go_to(self._at)

    def _go_to(self, position: Position) -> None:
        self._batches.close()
        self._at, self._batches = position, _endless(position, *self._source)


def _endless(
    position: Position, rows: Rows, streams: Streams, size: int
) -> Generator[tuple[Batch, Position], None, None]:
    """All batches from `position` on. Not a method, to avoid a reference cycle with the feed."""
    for epoch in count(position.epoch):
        behind = position.batch if epoch == position.epoch else 0
        for number, chunk in enumerate(one_pass(rows, streams, size, epoch)):
            if number >= behind:
                yield chunk, Position(epoch, number + 1)


class Sources(NamedTuple):
    """The data that rings learn from."""

    part: Rows
    """All rows except the held-out ones."""
    whole: Rows
    """All rows for the final looks; the same as `part` if held-out rows stay out."""
    judged: Observations
    """Observations used to judge rings: the held-out ones, or all if there are too few."""
    sample: Rows
    """Rows on which the size of the ring is chosen."""
    is_held_out: bool
    """Whether those that judge were held out."""
    in_memory: Observations | None = None
    """All observations, unless they are read from files."""
