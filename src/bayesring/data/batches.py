"""Where mini-batches come from: observations in an order that changes with every pass.

A source gives a pass over its rows in chunks, columns of indices (D, n) and values (n,) in standard
units; `batches` cuts them up. Arrays in memory are one source, files another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from bayesring.infer.streams import Purpose, Streams
from bayesring.data.observations import Observations, in_order
from bayesring.model.types import FloatArray, IntArray


class Chunk(NamedTuple):
    """Some rows."""

    columns: IntArray
    """(D, n) int32, indices of every mode."""
    values: FloatArray
    """(n,)."""


class Rows(Protocol):
    """A source of observations that can be gone through many times."""

    @property
    def counts(self) -> Sequence[IntArray]:
        """Observations of every slice of every mode."""

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows, in an order that depends on the streams and on the number of the pass."""


class ArrayRows:
    """Observations in memory."""

    def __init__(self, data: Observations) -> None:
        data = in_order(data)
        self._columns, self._values = data.coords.T, data.values
        self.counts: Sequence[IntArray] = [
            np.bincount(column, minlength=n).astype(np.int64)
            for column, n in zip(self._columns, data.shape, strict=True)
        ]

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows at once, shuffled."""
        order = streams.rng(epoch, Purpose.SHUFFLE).permutation(len(self._values))
        yield Chunk(self._columns.take(order, axis=1), self._values[order])


def one_pass(rows: Rows, streams: Streams, size: int, epoch: int = 0) -> Iterator[Chunk]:
    """All rows in batches; columns (2 D - 1, n), as `kernels.gradient` wants them."""
    for columns, values in rows.chunks(streams, epoch):
        doubled = np.concatenate([columns, columns[:-1]])
        for begin in range(0, len(values), size):
            cut = slice(begin, begin + size)
            own = np.ascontiguousarray(doubled[:, cut])
            yield Chunk(own, values[cut].astype(float, copy=False))


def batches(rows: Rows, streams: Streams, size: int) -> Iterator[Chunk]:
    """Batches without end, pass after pass."""
    for epoch in count():
        yield from one_pass(rows, streams, size, epoch)
