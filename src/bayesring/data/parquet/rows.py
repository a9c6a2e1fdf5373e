"""Rows of a Parquet data set: surveyed, shuffled, or taken by their numbers.

A data set is a file, or a folder of files, possibly partitioned (folders named ``key=value``). It
is read several times and never held: once to learn and count the labels (`ParquetRows.survey`),
then once per epoch, in an order of its own (`ParquetRows.chunks`).

Missing and bad values. A null among the values means, as in tables, that the cell is to be filled:
the row is not trained on, but its keys count as labels. A NaN or an infinity is refused. Tables in
memory take NaN for missing, since some have no other way to say it; Parquet has, libraries write
missing values as null, and so a NaN in a file is the mark of a computation that failed. A null or
NaN among the keys is refused. Errors name the file and the row, which counts from 0.

How well an epoch is shuffled: see `bayesring.data.parquet.shuffling`. A row group can only be read
from its beginning; if sorted data are one huge row group, only neighbours, a pool of them, are
mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.batches import Chunk
from bayesring.data.labels import Labels
from bayesring.data.parquet.keycoding import BadText, Tally
from bayesring.data.parquet.reading import Group, ParquetFiles, RowBatch
from bayesring.data.parquet.shuffling import (
    Coding,
    Lane,
    ahead,
    dealt,
    floats,
    make_coders,
    shuffled,
)
from bayesring.engine.streams import Purpose, aside
from bayesring.kernels import pools as streams
from bayesring.model.types import IntArray, Moments

CHUNK = 1 << 20
"""Rows of a chunk."""
AHEAD = 2
"""Chunks that are made while the caller works on an earlier one."""
MAX_THREADS = 8
ROUNDING = 1e-12
"""Deviation, as a share of the largest value, below which values are all the same."""
NO_ROWS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


class Survey(NamedTuple):
    """What a first pass over all rows tells."""

    labels: Labels
    """The labels in sorted order; those of rows without a value are among them."""
    shape: tuple[int, ...]
    """Number of labels of each mode."""
    n_rows: int
    """All rows."""
    n_missing: int
    """Rows whose value is null."""
    counts: tuple[NDArray[np.int64], ...]
    """Per mode the number of observations of each label."""
    mean: float
    variance: float
    """Of the values; the mean square of their deviations."""
    smallest: float
    largest: float
    binary: bool
    """Whether all values are 0 or 1."""

    @property
    def n_observed(self) -> int:
        """Rows that have a value."""
        return self.n_rows - self.n_missing

    @property
    def moments(self) -> Moments:
        """What a likelihood asks about the values."""
        return Moments(self.mean, self.variance, self.smallest, self.largest, self.binary, ROUNDING)


class ParquetRows:
    """A Parquet data set, opened and checked; its rows are read by `survey`, `chunks` and `take`.

    Rows have numbers, from 0, in the order of the paths of their files. Opening reads the footers
    of all files: a file that is cut off, lacks a column or holds another type is refused at once.

    Parameters
    ----------
    path : a file, or a folder of files, at any depth
    modes : names of the key columns; a key may also come from folders named ``key=value``
    value : name of the column of values: numbers, or truth values
    threads : how many read at a time; by default all cores, up to 8. Never changes a result.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        modes: Sequence[str],
        value: str,
        threads: int | None = None,
    ) -> None:
        self.modes, self.value = _check_names(modes, value), value
        self.threads = threads or min(MAX_THREADS, os.cpu_count() or 1)
        self._files = ParquetFiles(path, self.modes, value)
        self.n_rows = self._files.n_rows

    def survey(self, report: Callable[[int, int], None] | None = None) -> Survey:
        """Learn the labels, count them, and summarise the values, in one pass over all rows.

        `report` is called with the number of rows done and of all rows.
        """
        files = self._files
        tallies = [Tally(kind, name) for kind, name in zip(files.kinds, self.modes, strict=True)]
        moments, done = _Moments(), 0
        parts = (part for group in files.groups for part in files.read(group))
        for part in ahead(parts, 2 * AHEAD):
            values = part.batch.column(self.value)
            missing = values.is_null() if values.null_count else None
            for name, tally in zip(self.modes, tallies, strict=True):
                column = files.keys(part, name)
                try:
                    tally.add(column)
                    if missing is not None:
                        tally.add(column.filter(missing), -1)
                except BadText as error:
                    raise files.error(part, error.place, name, f"{error}.") from None
                except ValueError as error:
                    raise files.error(part, 0, name, str(error)) from None
            self._summarise(part, missing, moments)
            done += len(part.batch)
            if report is not None:
                report(done, self.n_rows)
        if not moments.n:
            raise ValueError(
                f"value column {self.value!r} holds no value in any of its {self.n_rows:,} rows."
            )
        levels, counts = zip(*(tally.result() for tally in tallies), strict=True)
        return Survey(
            labels=Labels(self.modes, levels, self.value, tuple(kind.zone for kind in files.kinds)),
            shape=tuple(len(each) for each in levels),
            n_rows=self.n_rows,
            n_missing=self.n_rows - moments.n,
            counts=counts,
            mean=moments.mean,
            variance=moments.squares / moments.n,
            smallest=moments.smallest,
            largest=moments.largest,
            binary=moments.binary,
        )

    def chunks(
        self,
        coding: Coding,
        seed: int,
        epoch: int,
        rows: int = CHUNK,
        skip: NDArray[np.int64] = NO_ROWS,
    ) -> Iterator[Chunk]:
        """One epoch: every row that has a value, once, in an order of this seed and epoch.

        Every chunk but the last has `rows` rows. The next ones are made while the caller works on
        one. `skip` are the sorted numbers of rows to leave out.
        """
        rng = np.random.default_rng(aside(seed, Purpose.FILES, epoch))
        skip = np.asarray(skip, dtype=np.int64)
        return ahead(shuffled(self._files, coding, rng, rows, skip, self.threads), AHEAD)

    def take(self, coding: Coding, rows: NDArray[np.int64]) -> Chunk:
        """The rows of these sorted numbers, in that order, as far as they have a value."""
        files, rows = self._files, np.asarray(rows, dtype=np.int64)
        coders = make_coders(files, coding.labels)

        def read(group: Group) -> IntArray:
            n = np.diff(np.searchsorted(rows, [group.first, group.first + group.n_rows]))[0]
            out = np.empty((n, len(self.modes) + 1), dtype=np.int32)
            lane = Lane(files, coding, coders, files.observed(group, rows))
            return out[: lane.fill(out)] if n else out

        with ThreadPoolExecutor(self.threads) as workers:
            found = np.concatenate(list(workers.map(read, files.groups)))
        return dealt(found, np.arange(len(found), dtype=np.int32))

    def _summarise(self, part: RowBatch, missing: Any, moments: _Moments) -> None:
        values = part.batch.column(self.value)
        if missing is not None:
            values = values.drop_null()
        wrong = moments.add(floats(values))
        if wrong >= 0 and missing is not None:
            wrong = int(np.flatnonzero(~missing.to_numpy(zero_copy_only=False))[wrong])
        if wrong >= 0:
            raise self._files.bad_value(part, wrong)


class _Moments:
    """Mean, variance and range of all values so far."""

    def __init__(self) -> None:
        self.n, self.mean, self.squares, self.binary = 0, 0.0, 0.0, True
        self.smallest, self.largest = np.inf, -np.inf

    def add(self, values: NDArray[Any]) -> int:
        """Take in more values (Chan, Golub and LeVeque, 1979); the first not finite, or -1."""
        if not len(values):
            return -1
        wrong, mean, squares, smallest, largest, binary = streams.summarise(values)
        if wrong >= 0:
            return int(wrong)
        n, gap = self.n + len(values), mean - self.mean
        self.squares += squares + gap**2 * self.n * len(values) / n
        self.mean += gap * len(values) / n
        self.n = n
        self.smallest, self.largest = min(self.smallest, smallest), max(self.largest, largest)
        self.binary = self.binary and binary
        return -1


def _check_names(modes: Sequence[str], value: str) -> tuple[str, ...]:
    if isinstance(modes, str):
        raise ValueError(f"modes must be a list of column names, got the text {modes!r}.")
    if value in modes:
        raise ValueError(f"value {value!r} is also among the modes {list(modes)}.")
    if len(set(modes)) < len(modes):
        raise ValueError(f"modes names a column twice: {list(modes)}.")
    if len(modes) < 2:
        raise ValueError(f"modes must name at least 2 key columns, got {list(modes)}.")
    return tuple(modes)
