"""Parquet data as a source of rows for online EM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from bayesring.data.batches import ArrayRows, Batch, Chunk, Sources
from bayesring.data.observations import Observations
from bayesring.data.parquet.rows import CHUNK, NO_ROWS, Survey
from bayesring.data.parquet.shuffling import Coding
from bayesring.data.splitting import FEWEST
from bayesring.engine.streams import Streams
from bayesring.model.types import IntArray

HELD_OUT, HELD_SHARE = 20_000, 0.1
"""Maximum number of held-out rows, and their maximum share of all rows."""
SAMPLE = 100_000
"""Number of rows on which the size of the ring is chosen."""


class Files(Protocol):
    """Parquet data, read here as `ParquetRows` or anywhere else."""

    n_rows: int

    def chunks(
        self,
        coding: Coding,
        seed: int,
        epoch: int,
        rows: int = CHUNK,
        skip: NDArray[np.int64] = NO_ROWS,
    ) -> Iterator[Chunk]:
        """As `ParquetRows.chunks`."""

    def large_batches(
        self, coding: Coding, seed: int, epoch: int, size: int, skip: NDArray[np.int64] = NO_ROWS
    ) -> Iterator[Batch]:
        """As `ParquetRows.large_batches`."""

    def take(self, coding: Coding, rows: NDArray[np.int64]) -> Chunk:
        """As `ParquetRows.take`."""


class FileRows(NamedTuple):
    """The rows of a Parquet data set, without the held-out ones."""

    files: Files
    coding: Coding
    skip: NDArray[np.int64]
    counts: Sequence[IntArray]

    def chunks(self, streams: Streams, epoch: int) -> Iterator[Chunk]:
        """All rows, shuffled in pools and read ahead in the background."""
        seed = streams.key[0] >> 1
        for columns, values, *_ in self.files.chunks(self.coding, seed, epoch, skip=self.skip):
            yield Chunk(columns, values)

    def large_batches(self, streams: Streams, epoch: int, size: int) -> Iterator[Batch]:
        """All rows, in large batches."""
        seed = streams.key[0] >> 1
        yield from self.files.large_batches(self.coding, seed, epoch, size, self.skip)


def sources_of(files: Files, survey: Survey, coding: Coding, seed: int) -> Sources:
    """Rows to learn from, held-out rows, and a sample for choosing the size of the ring.

    As in memory, none are held out if there are few rows.
    """
    rng = Generator(Philox(SeedSequence([seed, files.n_rows])))
    n_held = min(HELD_OUT, int(HELD_SHARE * files.n_rows))
    chosen = np.sort(rng.choice(files.n_rows, min(n_held + SAMPLE, files.n_rows), replace=False))
    is_held = np.zeros(len(chosen), dtype=bool)
    is_held[rng.permutation(len(chosen))[:n_held]] = True
    held, sample = (
        Observations(columns.T, values.astype(float), survey.shape)
        for columns, values, *_ in (files.take(coding, chosen[own]) for own in (is_held, ~is_held))
    )
    if len(held.values) < FEWEST:  # too few to judge by: learn from all
        whole = FileRows(files, coding, NO_ROWS, survey.counts)
        both = Observations(
            np.concatenate([held.coords, sample.coords]),
            np.concatenate([held.values, sample.values]),
            survey.shape,
        )
        return Sources(whole, whole, both, ArrayRows(both), False)
    counts = [
        own - np.bincount(held.coords[:, mode], minlength=len(own))
        for mode, own in enumerate(survey.counts)
    ]
    part = FileRows(files, coding, chosen[is_held], counts)
    return Sources(part, part, held, ArrayRows(sample), True)
