"""Rows of a Parquet data set: surveyed, shuffled, or selected by number.

A data set is a file or a folder of files, possibly partitioned (folders named ``key=value``). It is
read several times and never held in memory: once to collect and count the labels
(`ParquetRows.survey`), then once per epoch in a new order (`ParquetRows.chunks`).

Missing and invalid values. As in tables, a null value marks a cell to fill: the row is not used for
training, but its keys count as labels. NaN and infinity are rejected. Tables in memory use NaN for
missing values because some have no other way to mark them. Parquet has nulls, and libraries write
missing values as null, so a NaN in a file is a sign of a failed computation. A null or NaN key is
rejected. Errors name the file and the row, counting from 0.

See `bayesring.data.parquet.shuffling` for how well an epoch is shuffled. A row group can only be
read from its beginning, so if sorted data form one huge row group, only neighbouring rows (a pool
of them) are mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import first_rounded, import_pyarrow
from bayesring.data.batches import Batch, Chunk
from bayesring.data.fingerprints import digest_of_rows
from bayesring.data.labels import Labels
from bayesring.data.moments import between_ends, ends_of
from bayesring.data.parquet.arrowkeys import KeyType
from bayesring.data.parquet.keycoding import Coder, KeyTally
from bayesring.data.parquet.lanes import large_batches
from bayesring.data.parquet.parts import tally_keys
from bayesring.data.parquet.reading import Group, ParquetFiles, RowBatch, RowSource
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
from bayesring.model.types import FloatArray, IntArray, Moments

CHUNK = 1 << 20
"""Number of rows in a chunk."""
AHEAD = 2
"""Number of chunks prepared while the caller works on an earlier one."""
MAX_THREADS = 8
ROUNDING = 1e-12
"""Standard deviation relative to the largest value below which values count as constant."""
NO_ROWS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

Rounded = tuple[str, float, str]
"""An integer that a float cannot hold, what becomes of it, and where it is."""


class Survey(NamedTuple):
    """Results of the first pass over all rows."""

    labels: Labels
    """The sorted labels, including those of rows without a value."""
    shape: tuple[int, ...]
    """Number of labels of each mode."""
    n_rows: int
    """Number of rows."""
    n_missing: int
    """Number of rows whose value is null."""
    counts: tuple[NDArray[np.int64], ...]
    """For each mode the number of observations of each label."""
    mean: float
    variance: float
    """Of the values; the mean squared deviation."""
    smallest: float
    largest: float
    binary: bool
    """Whether all values are 0 or 1."""
    whole: bool = True
    """Whether all values are integers."""
    ends: FloatArray = np.zeros(0)
    """The smallest and largest values, as of `ends_of`."""
    rounded: Rounded | None = None
    """The first value that is changed by rounding."""

    @property
    def n_observed(self) -> int:
        """Number of rows with a value."""
        return self.n_rows - self.n_missing

    @property
    def moments(self) -> Moments:
        """What a likelihood needs to know about the values."""
        ends = self.smallest, self.largest
        return Moments(self.mean, sqrt(self.variance), *ends, self.binary, ROUNDING, self.whole)

    @property
    def outline(self) -> FloatArray:
        """Values that are as far off as the ones that were read, if any of those are."""
        return between_ends(self.ends, self.n_observed)


class ParquetRows:
    """A Parquet data set, opened and checked; its rows are read by `survey`, `chunks` and `take`.

    Rows are numbered from 0 in the order of the paths of their files. Opening reads the footers of
    all files: a file that is truncated, lacks a column or has a different type is rejected at once.

    Parameters
    ----------
    path : a file, or a folder of files at any depth
    modes : names of the key columns; a key may also come from folders named ``key=value``
    value : name of the value column, with numbers or booleans
    threads : number of reader threads; by default all cores, up to 8. Does not affect results.
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
        """Collect and count the labels and summarise the values in one pass over all rows.

        `report` is called with the number of rows done and the total number of rows.
        """
        files = self._files
        parts = (part for group in files.groups for part in files.read(group))

        def reported() -> Iterator[RowBatch]:
            done = 0
            for part in ahead(parts, 2 * AHEAD):
                yield part
                done += len(part.batch)
                if report is not None:
                    report(done, self.n_rows)

        return survey_of(files, tallied(files, reported()))

    def chunks(
        self,
        coding: Coding,
        seed: int,
        epoch: int,
        rows: int = CHUNK,
        skip: NDArray[np.int64] = NO_ROWS,
    ) -> Iterator[Chunk]:
        """One epoch: every row with a value once, in an order set by the seed and the epoch.

        Every chunk except the last has `rows` rows. The next chunks are prepared while the caller
        works on one. `skip` holds the sorted numbers of rows to leave out.
        """
        rng = np.random.default_rng(aside(seed, Purpose.FILES, epoch))
        skip = np.asarray(skip, dtype=np.int64)
        return ahead(shuffled(self._files, coding, rng, rows, skip, self.threads), AHEAD)

    def large_batches(
        self, coding: Coding, seed: int, epoch: int, size: int, skip: NDArray[np.int64] = NO_ROWS
    ) -> Iterator[Batch]:
        """One epoch in batches of about `size` rows, which are worked on in blocks."""
        skip = np.asarray(skip, dtype=np.int64)
        found = large_batches(self._files, coding, (seed, epoch), size, skip, self.threads)
        return ahead(found, 1)

    def take(self, coding: Coding, rows: NDArray[np.int64]) -> Chunk:
        """The rows with these sorted numbers that have a value, in that order."""
        files, rows = self._files, np.asarray(rows, dtype=np.int64)
        with ThreadPoolExecutor(self.threads) as workers:
            read = partial(rows_of_group, files, coding, make_coders(files, coding.labels), rows)
            return in_given_order(list(workers.map(read, files.groups)))

    def fingerprint(self, coding: Coding) -> list[str]:
        """What tells the rows that are learned from apart from others: a digest of each group."""
        files = self._files
        with ThreadPoolExecutor(self.threads) as workers:
            read = partial(digest_of_group, files, coding, make_coders(files, coding.labels))
            return list(workers.map(read, files.groups))


def digest_of_group(files: RowSource, coding: Coding, coders: Sequence[Coder], group: Group) -> str:
    """Of the rows of a group that have a value, a part at a time."""
    lane = Lane(files, coding, coders, iter(()))

    def coded(part: RowBatch) -> IntArray:
        rows = np.empty((len(part.batch), len(files.modes) + 1), dtype=np.int32)
        lane.write(part, rows)
        return rows

    return digest_of_rows(map(coded, files.observed(group)))


def rows_of_group(
    files: RowSource,
    coding: Coding,
    coders: Sequence[Coder],
    rows: NDArray[np.int64],
    group: Group,
) -> IntArray:
    """The rows (., D + 1) of a group with these sorted numbers that have a value."""
    n = np.diff(np.searchsorted(rows, [group.first, group.first + group.n_rows]))[0]
    out = np.empty((n, len(files.modes) + 1), dtype=np.int32)
    lane = Lane(files, coding, coders, files.observed(group, rows))
    return out[: lane.fill(out)] if n else out


def take_rows(
    files: RowSource, groups: Sequence[Group], coding: Coding, rows: NDArray[np.int64]
) -> list[IntArray]:
    """The same of several groups; runs on a worker."""
    coders = make_coders(files, coding.labels)
    return [rows_of_group(files, coding, coders, rows, group) for group in groups]


def digests_of_rows(files: RowSource, groups: Sequence[Group], coding: Coding) -> list[str]:
    """What tells the rows of each group apart from others; runs on a worker."""
    coders = make_coders(files, coding.labels)
    return [digest_of_group(files, coding, coders, group) for group in groups]


def in_given_order(found: Sequence[IntArray]) -> Chunk:
    """Rows of several groups."""
    rows = np.concatenate(found)
    return dealt(rows, np.arange(len(rows), dtype=np.int32))


class Tallied(NamedTuple):
    """What a first pass over rows finds, of all or some row groups."""

    levels: tuple[NDArray[Any], ...]
    counts: tuple[NDArray[np.int64], ...]
    """Sorted labels of each mode, and how many observations each has."""
    summaries: list[BatchSummary]
    """Of the values of each batch of rows."""


class BatchSummary(NamedTuple):
    """What is known of the values of a batch of rows."""

    n: int
    mean: float
    squares: float
    """Sum of squared deviations."""
    smallest: float
    largest: float
    binary: bool
    whole: bool
    ends: tuple[float, ...]
    rounded: Rounded | None


def tallied(files: RowSource, parts: Iterable[RowBatch]) -> Tallied:
    """Labels and counts, and a summary of every batch of rows."""
    tallies = [KeyTally(kind, name) for kind, name in zip(files.kinds, files.modes, strict=True)]
    summaries = []
    for part in parts:
        values = part.batch.column(files.value)
        missing = values.is_null() if values.null_count else None
        tally_keys(files, part, tallies)
        numbers = floats(values if missing is None else values.drop_null())
        if not len(numbers):
            continue
        wrong, mean, squares, low, high, binary = streams.summarise(numbers)
        if wrong >= 0 and missing is not None:
            wrong = int(np.flatnonzero(~missing.to_numpy(zero_copy_only=False))[wrong])
        if wrong >= 0:
            raise files.bad_value(part, wrong)
        whole = bool(np.all(numbers % 1 == 0))
        changed = _rounded(files, part) if whole else None
        moments = len(numbers), mean, squares, low, high, binary, whole
        summaries.append(BatchSummary(*moments, tuple(ends_of(numbers).tolist()), changed))
    levels, counts = zip(*(tally.result() for tally in tallies), strict=True)
    return Tallied(levels, counts, summaries)


def _rounded(files: RowSource, part: RowBatch) -> Rounded | None:
    """The first value of a batch that is an integer which a float cannot hold."""
    values = part.batch.column(files.value)
    if not import_pyarrow().types.is_integer(values.type):
        return None
    integers = values.fill_null(0).to_numpy(zero_copy_only=False)
    place = first_rounded(integers)
    if place is None:
        return None
    source = files.place(part.file)
    where = f"row {part.row(place):,} of {source[0].lower()}{source[1:]}"
    return str(integers[place]), float(integers[place]), where


class Surveyed(Protocol):
    """What is known of rows before a survey."""

    modes: tuple[str, ...]
    value: str
    kinds: tuple[KeyType, ...]
    n_rows: int


def survey_of(files: Surveyed, found: Tallied) -> Survey:
    """Put together what was found; the order of the summaries matters to the last bit."""
    moments = _Moments()
    for summary in found.summaries:
        moments.add(summary)
    if not moments.n:
        raise ValueError(
            f"value column {files.value!r} holds no value in any of its {files.n_rows:,} rows."
        )
    zones = tuple(kind.zone for kind in files.kinds)
    return Survey(
        labels=Labels(files.modes, found.levels, files.value, zones),
        shape=tuple(len(each) for each in found.levels),
        n_rows=files.n_rows,
        n_missing=files.n_rows - moments.n,
        counts=found.counts,
        mean=moments.mean,
        variance=moments.squares / moments.n,
        smallest=moments.smallest,
        largest=moments.largest,
        binary=moments.binary,
        whole=moments.whole,
        ends=ends_of(np.array([own for each in found.summaries for own in each.ends])),
        rounded=next((each.rounded for each in found.summaries if each.rounded), None),
    )


class _Moments:
    """Mean, variance and range of all values so far."""

    def __init__(self) -> None:
        self.n, self.mean, self.squares, self.binary, self.whole = 0, 0.0, 0.0, True, True
        self.smallest, self.largest = np.inf, -np.inf

    def add(self, own: BatchSummary) -> None:
        """Add the summary of some values (Chan, Golub and LeVeque, 1979)."""
        total, gap = self.n + own.n, own.mean - self.mean
        self.squares += own.squares + gap * gap * self.n * own.n / total
        self.mean += gap * own.n / total
        self.n = total
        self.smallest = min(self.smallest, own.smallest)
        self.largest = max(self.largest, own.largest)
        self.binary = self.binary and own.binary
        self.whole = self.whole and own.whole


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
