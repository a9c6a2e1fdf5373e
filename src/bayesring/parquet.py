"""Parquet data sets of any length as a stream of shuffled observations, in bounded memory.

A data set is a file, or a folder of files, possibly partitioned (folders named ``key=value``). It is
read several times and never held: once to learn and count the labels (`ParquetRows.survey`), then
once per epoch in an order of its own (`ParquetRows.chunks`).

How an epoch is shuffled. Row groups, in random order, are dealt to `LANES` lanes, which are read side
by side, a few batches from each in turn. What the lanes bring fills a pool of `POOL` rows, which is
permuted and cut into chunks. So the rows of a chunk come from as many places of the data as there
are lanes, though no more than the pool is in memory. The order depends on the data, the seed and the
epoch; threads cannot change it. Within a row group, rows can only be read from its beginning: if
a sorted data set is one huge row group, chunks mix no more than a pool's worth of neighbours.

Missing and bad values. A null among the values means, as in tables, that the cell is to be filled:
the row is not trained on, but its keys count as labels. A NaN or an infinity is refused. Tables in
memory take NaN for missing, since some have no other way to say it; Parquet has, libraries write
missing values as null, and so a NaN in a file is the mark of a computation that failed. A null or
NaN among the keys is refused. Errors name the file and the row, which counts from 0.
"""

from __future__ import annotations

import heapq
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesring.arrowkeys import Coder, Tally, copies, make_coder
from bayesring.checks import import_pyarrow
from bayesring.kernels import streams
from bayesring.labels import Labels
from bayesring.parquetfiles import BATCH, Group, ParquetFiles, Part
from bayesring.types import IntArray

LANES = 16
"""Row groups that are read side by side."""
POOL = 1 << 22
"""Rows that are shuffled together."""
AHEAD = 2
"""Chunks that are made while the caller works on an earlier one."""
CHUNK = 1 << 20
"""Rows of a chunk."""
NO_ROWS = np.zeros(0, dtype=np.int64)

Item = TypeVar("Item")


class Chunk(NamedTuple):
    """Observations in the form that training reads."""

    columns: NDArray[np.int32]
    """(D, n), the coordinates, mode after mode."""
    values: NDArray[np.float32]
    """(n,)."""


class Coding(NamedTuple):
    """How rows become numbers."""

    labels: Labels
    """Sorted labels for every mode: those of a survey, or of a model that learns on."""
    location: float = 0.0
    scale: float = 1.0
    """Units of the values: they become (value - location) / scale, and only then float32."""


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


class ParquetRows:
    """A Parquet data set, opened and checked; its rows are read by `survey`, `chunks` and `take`.

    Rows have numbers, from 0, in the order of the paths of their files.

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
        self.threads = threads or min(8, os.cpu_count() or 1)
        self._files = ParquetFiles(path, self.modes, value)
        self.n_rows = self._files.n_rows

    def survey(self, report: Callable[[int, int], None] | None = None) -> Survey:
        """Learn the labels, count them, and summarise the values, in one pass over all rows.

        `report` is called with the rows done and the rows there are.
        """
        files = self._files
        tallies = [Tally(kind, name) for kind, name in zip(files.kinds, self.modes, strict=True)]
        moments, done = _Moments(), 0
        parts = (part for group in files.groups for part in files.read(group))
        for part in _ahead(parts, 2 * AHEAD):
            values = part.batch.column(self.value)
            unknown = values.is_null() if values.null_count else None
            for name, tally in zip(self.modes, tallies, strict=True):
                column = self._keys(part, name)
                try:
                    tally.add(column)
                    if unknown is not None:
                        tally.add(column.filter(unknown), -1)
                except ValueError as error:
                    raise files.error(part.file, part.begin, name, str(error)) from None
            if unknown is not None:
                known = np.flatnonzero(~unknown.to_numpy(zero_copy_only=False))
                part = part._replace(rows=known)
                values = values.drop_null()
            wrong = moments.add(_floats(values))
            if wrong >= 0:
                raise self._bad_value(part, values[wrong].as_py(), wrong)
            done += len(part.batch)
            if report is not None:
                report(done, self.n_rows)
        if not moments.n:
            raise ValueError(
                f"value column {self.value!r} holds no value in any of its {self.n_rows:,} rows."
            )
        levels, counts = zip(*(tally.result() for tally in tallies), strict=True)
        return Survey(
            Labels(self.modes, levels, self.value),
            tuple(len(each) for each in levels),
            self.n_rows,
            self.n_rows - moments.n,
            counts,
            moments.mean,
            moments.squares / moments.n,
            moments.smallest,
            moments.largest,
            moments.binary,
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

        Every chunk but the last has `rows` rows. The next ones are read while the caller works on
        one. `skip` are the sorted numbers of rows to leave out.
        """
        skip = np.asarray(skip, dtype=np.int64)
        return _ahead(self._shuffled(coding, seed, epoch, rows, skip), AHEAD)

    def take(self, coding: Coding, rows: NDArray[np.int64]) -> Chunk:
        """The rows of these sorted numbers, in that order, as far as they have a value."""
        rows = np.asarray(rows, dtype=np.int64)
        coders = self._coders(coding)
        needed = [
            group
            for group in self._files.groups
            if np.searchsorted(rows, group.first)
            < np.searchsorted(rows, group.first + group.n_rows)
        ]

        def read(group: Group) -> IntArray:
            out = np.empty((min(len(rows), group.n_rows), len(self.modes) + 1), dtype=np.int32)
            lane = _Lane(self, self._files.observed(group, rows), coding, copies(coders))
            return out[: lane.fill(out, whole_batches=False)].copy()

        with ThreadPoolExecutor(self.threads) as workers:
            found = list(workers.map(read, needed))
        table = np.concatenate([np.zeros((0, len(self.modes) + 1), np.int32), *found])
        return _dealt(table, np.arange(len(table), dtype=np.int32))

    def _shuffled(
        self, coding: Coding, seed: int, epoch: int, rows: int, skip: NDArray[np.int64]
    ) -> Iterator[Chunk]:
        rng = np.random.default_rng([seed, epoch])
        coders = self._coders(coding)
        dealt = _deal_groups(self._files.groups, rng)
        lanes = [_Lane(self, self._parts(groups, skip), coding, copies(coders)) for groups in dealt]
        room = max(max(POOL, rows) // len(lanes), BATCH)
        pool = np.empty((rows + room * len(lanes), len(self.modes) + 1), dtype=np.int32)
        mixed, order = np.empty_like(pool), np.empty(len(pool), dtype=np.int32)
        starts = np.arange(rows, len(pool), room)
        left, more = 0, True
        with ThreadPoolExecutor(self.threads) as workers:
            while more:
                filled = list(workers.map(_Lane.fill, lanes, np.split(pool[rows:], len(lanes))))
                more = sum(filled) > 0
                n = left + sum(filled)
                draws = rng.integers(0, 2**32, n, dtype=np.uint32)
                buckets = np.frombuffer(rng.bytes(n), dtype=np.uint8)
                begins = np.array([0, *starts])
                ends = begins + np.array([left, *filled])
                streams.mix(pool, begins, ends, buckets, draws, mixed, order[:n])
                # what makes no full chunk is mixed into the next pool
                left = n % rows if more else 0
                for begin in range(0, n - left, rows):
                    yield _dealt(mixed, order[begin : min(begin + rows, n - left)])
                pool[:left] = mixed[order[n - left : n]]

    def _parts(self, groups: Sequence[Group], skip: NDArray[np.int64]) -> Iterator[Part]:
        listed = skip if len(skip) else None
        for group in groups:
            yield from self._files.observed(group, listed, keep=False)

    def _coders(self, coding: Coding) -> list[Coder]:
        if coding.labels.names != self.modes:
            raise ValueError(
                f"the labels are those of the modes {list(coding.labels.names)}, but the modes are "
                f"{list(self.modes)}."
            )
        return [
            make_coder(np.asarray(levels), kind, name)
            for levels, kind, name in zip(
                coding.labels.levels, self._files.kinds, self.modes, strict=True
            )
        ]

    def _keys(self, part: Part, name: str) -> Any:
        """A key column, in which nothing may be missing."""
        column = part.batch.column(name)
        missing = None
        if column.null_count:
            missing = column.is_null()
        elif import_pyarrow().types.is_floating(column.type):
            missing = column.is_nan()
        if missing is not None and missing.true_count:
            row = part.row(int(np.argmax(missing.to_numpy(zero_copy_only=False))))
            raise self._files.error(
                part.file,
                row,
                name,
                "no key; every row must say which cell it belongs to, only the value may be "
                "missing.",
            )
        return column

    def _bad_value(self, part: Part, value: float, place: int) -> ValueError:
        value = float(value)
        found = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}"
        wanted = "values must be finite numbers" + (
            "." if not np.isfinite(value) else " of at most 3e38 in standard units."
        )
        return self._files.error(part.file, part.row(place), self.value, f"{found}; {wanted}")


class _Lane:
    """One of the streams that fill a pool side by side."""

    def __init__(
        self, source: ParquetRows, parts: Iterator[Part], coding: Coding, coders: list[Coder]
    ) -> None:
        self._source, self._parts, self._coding, self._coders = source, parts, coding, coders

    def fill(self, pool: IntArray, whole_batches: bool = True) -> int:
        """Rows of the next parts into `pool` (n, D + 1) while there is room; how many it were."""
        placed, reserve = 0, BATCH if whole_batches else 0
        while placed + reserve <= len(pool):
            part = next(self._parts, None)
            if part is None:
                break
            end = placed + len(part.batch)
            self._write(part, pool[placed:end])
            placed = end
        return placed

    def _write(self, part: Part, out: IntArray) -> None:
        source, coding = self._source, self._coding
        for mode, (name, coder) in enumerate(zip(source.modes, self._coders, strict=True)):
            column = source._keys(part, name)
            wrong = coder.code(column, out[:, mode])
            if wrong >= 0:
                raise source._files.error(
                    part.file,
                    part.row(wrong),
                    name,
                    f"{column[wrong].as_py()!s}, which is not among the labels of this column.",
                )
        column = part.batch.column(source.value)
        values = out.view(np.float32)[:, -1]
        wrong = streams.standardise(_floats(column), coding.location, coding.scale, values)
        if wrong >= 0:
            raise source._bad_value(part, column[wrong].as_py(), wrong)


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


def _deal_groups(groups: Sequence[Group], rng: np.random.Generator) -> list[list[Group]]:
    """Row groups in random order, each to the lane that has least to read so far."""
    lanes: list[list[Group]] = [[] for _ in range(min(LANES, len(groups)))]
    load = [(0, lane) for lane in range(len(lanes))]
    for place in rng.permutation(len(groups)):
        rows, lane = load[0]
        lanes[lane].append(groups[place])
        heapq.heapreplace(load, (rows + groups[place].n_rows, lane))
    return lanes


def _dealt(rows: IntArray, order: IntArray) -> Chunk:
    columns = np.empty((rows.shape[1] - 1, len(order)), dtype=np.int32)
    values = np.empty(len(order), dtype=np.float32)
    streams.deal(rows, order, columns, values.view(np.int32))
    return Chunk(columns, values)


def _floats(column: Any) -> NDArray[Any]:
    """Values without nulls as float32 or float64."""
    pa = import_pyarrow()
    if column.type not in (pa.float32(), pa.float64()):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _ahead(items: Iterator[Item], depth: int) -> Iterator[Item]:
    """The same items; the next `depth` of them are made meanwhile, in a thread."""
    with ThreadPoolExecutor(1) as worker:
        pending = deque(worker.submit(next, items, None) for _ in range(depth))
        try:
            while (item := pending.popleft().result()) is not None:
                pending.append(worker.submit(next, items, None))
                yield item
        finally:
            for future in pending:
                future.cancel()


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
