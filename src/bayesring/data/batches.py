"""Sources of mini-batches: observations in an order that changes with every pass.

A source yields a pass over its rows in chunks, with columns of indices (D, n) and values (n,) in
standard units; `batches` splits them. Arrays in memory are one source, files another.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from bayesring.data.observations import Observations, in_order
from bayesring.engine.streams import Purpose, Streams
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray


class Chunk(NamedTuple):
    """Some rows."""

    columns: IntArray
    """(D, n) int32, indices of every mode."""
    values: FloatArray
    """(n,)."""
    given: Given = NOTHING
    """What else is known about the rows."""


class Rows(Protocol):
    """A source of observations that can be iterated many times."""

    @property
    def counts(self) -> Sequence[IntArray]:
        """Number of observations of every slice of every mode."""

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows, in an order that depends on the streams and the number of the pass."""


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


def one_pass(
    rows: Rows, streams: Streams, size: int, epoch: int = 0
) -> Generator[Chunk, None, None]:
    """All rows in batches; columns (2 D - 1, n), as `kernels.gradient` expects them."""
    for columns, values, given in rows.chunks(streams, epoch):
        doubled = np.concatenate([columns, columns[:-1]])
        for begin in range(0, len(values), size):
            cut = slice(begin, begin + size)
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

    def read(self, position: Position, n_rows: int) -> Iterator[tuple[Chunk, Position]]:
        """Batches from `position` on, each with the position after it, until they have `n_rows`."""
        if position != self._at:
            self._go_to(position)
        while n_rows > 0:
            try:
                chunk, self._at = next(self._batches)
            except BaseException:
                self._go_to(self._at)
                raise
            n_rows -= len(chunk.values)
            yield chunk, self._at

    def close(self) -> None:
        """Close the current pass; reading again restarts it."""
        self._go_to(self._at)

    def _go_to(self, position: Position) -> None:
        self._batches.close()
        self._at, self._batches = position, _endless(position, *self._source)


def _endless(
    position: Position, rows: Rows, streams: Streams, size: int
) -> Generator[tuple[Chunk, Position], None, None]:
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
