"""Rows of Parquet files, coded and shuffled in a pool.

Row groups are assigned in random order to `LANES` lanes, which are read side by side, a few batches
from each in turn. Their rows fill a pool of `POOL` rows, which is permuted and cut into chunks. The
rows of a chunk therefore come from as many places in the data as there are lanes, although only the
pool is in memory. Each lane writes to its own part of the pool, so threads cannot change a bit.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.batches import Chunk
from bayesring.data.labels import Labels
from bayesring.data.parquet.keycoding import Coder, copies, make_coder
from bayesring.data.parquet.reading import BATCH, Group, ParquetFiles, RowBatch, RowSource
from bayesring.kernels import pools as streams
from bayesring.model.types import IntArray

LANES = 32
"""Number of row groups read side by side."""
POOL = 1 << 22
"""Number of rows shuffled together."""

Item = TypeVar("Item")


class Coding(NamedTuple):
    """How rows are converted to numbers."""

    labels: Labels
    """Labels of every mode, from a survey or from a model that continues learning."""
    location: float = 0.0
    scale: float = 1.0
    """Values become (value - location) / scale, and only then float32."""


class Lane:
    """A coded stream of parts, one of several that fill a pool side by side."""

    def __init__(
        self,
        files: RowSource,
        coding: Coding,
        coders: Sequence[Coder],
        parts: Iterator[RowBatch],
    ) -> None:
        self._files, self._coding, self._parts = files, coding, parts
        self._coders = copies(coders)

    def fill(self, pool: IntArray, reserve: int = 0) -> int:
        """Write rows of the next parts to `pool` (n, D + 1) while there is room; return the number.

        A part is read only if `reserve` rows fit.
        """
        placed = 0
        while placed + reserve <= len(pool):
            part = next(self._parts, None)
            if part is None:
                break
            end = placed + len(part.batch)
            self.write(part, pool[placed:end])
            placed = end
        return placed

    def write(self, part: RowBatch, out: IntArray) -> None:
        """Code the rows of a part."""
        files = self._files
        for mode, (name, coder) in enumerate(zip(files.modes, self._coders, strict=True)):
            column = files.keys(part, name)
            wrong = coder.code(column, out[:, mode])
            if wrong >= 0:
                key = column[wrong].as_py()
                what = f"{key!s}, which is not among the labels of this column."
                raise files.error(part, wrong, name, what)
        values = floats(part.batch.column(files.value))
        stored = out.view(np.float32)[:, -1]
        wrong = streams.standardise(values, self._coding.location, self._coding.scale, stored)
        if wrong >= 0:
            raise files.bad_value(part, wrong)


def make_coders(files: RowSource, labels: Labels) -> list[Coder]:
    """One coder per key column, for labels of the same columns."""
    if labels.names != files.modes:
        raise ValueError(
            f"the labels are those of the modes {list(labels.names)}, but the modes are "
            f"{list(files.modes)}."
        )
    for mode, (kind, name) in enumerate(zip(files.kinds, files.modes, strict=True)):
        labels.check_zone(mode, kind.zone, name)
    return list(map(make_coder, map(np.asarray, labels.levels), files.kinds, files.modes))


def shuffled(
    files: ParquetFiles,
    coding: Coding,
    rng: np.random.Generator,
    rows: int,
    skip: NDArray[np.int64],
    threads: int,
) -> Generator[Chunk, None, None]:
    """Every row that has a value and is not skipped, once, in random order.

    Every chunk except the last has `rows` rows.
    """
    coders = make_coders(files, coding.labels)
    lanes = [
        Lane(files, coding, coders, observed_parts(files, [files.groups[i] for i in own], skip))
        for own in dealt_groups([group.n_rows for group in files.groups], rng)
    ]
    yield from mixed_rows(lanes, len(files.modes) + 1, rng, rows, threads)


class Filling(Protocol):
    """A lane, wherever its rows come from."""

    def fill(self, pool: IntArray, reserve: int = 0) -> int:
        """As `Lane.fill`."""


def mixed_rows(
    lanes: Sequence[Filling], width: int, rng: np.random.Generator, rows: int, threads: int
) -> Generator[Chunk, None, None]:
    """All rows of the lanes, mixed in a pool, in chunks of `rows` rows."""
    room = max(max(POOL, rows) // len(lanes), BATCH)
    pool = np.empty((rows + room * len(lanes), width), dtype=np.int32)
    mixed, order = np.empty_like(pool), np.empty(len(pool), dtype=np.int32)
    regions = np.split(pool[rows:], len(lanes))
    begins = np.array([0, *range(rows, len(pool), room)])
    left, more = 0, True
    with ThreadPoolExecutor(threads) as workers:
        while more:
            fill = [lane.fill for lane in lanes]
            filled = list(workers.map(_filled, fill, regions))
            more = sum(filled) > 0
            n = left + sum(filled)
            draws = rng.integers(0, 2**32, n, dtype=np.uint32)
            buckets = np.frombuffer(rng.bytes(n), dtype=np.uint8)
            ends = begins + np.array([left, *filled])
            streams.mix(pool, begins, ends, buckets, draws, mixed, order[:n])
            # the remainder that does not fill a chunk is mixed into the next pool
            left = n % rows if more else 0
            for begin in range(0, n - left, rows):
                yield dealt(mixed, order[begin : min(begin + rows, n - left)])
            pool[:left] = mixed[order[n - left : n]]


def dealt(rows: IntArray, order: IntArray) -> Chunk:
    """A chunk of the rows (., D + 1) in `order`."""
    columns = np.empty((rows.shape[1] - 1, len(order)), dtype=np.int32)
    values = np.empty(len(order), dtype=np.float32)
    streams.deal(rows, order, columns, values.view(np.int32))
    return Chunk(columns, values)


def floats(column: Any) -> NDArray[Any]:
    """Values without nulls as float32 or float64."""
    pa = import_pyarrow()
    if column.type not in (pa.float32(), pa.float64()):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def ahead(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """The same items, with the next `depth` of them prepared in a thread."""
    try:
        with ThreadPoolExecutor(1) as worker:
            pending = deque(worker.submit(next, items, None) for _ in range(depth))
            try:
                while (item := pending.popleft().result()) is not None:
                    pending.append(worker.submit(next, items, None))
                    yield item
            finally:
                for future in pending:
                    future.cancel()
    finally:
        items.close()


def _filled(fill: Callable[[IntArray, int], int], region: IntArray) -> int:
    return fill(region, BATCH)


def observed_parts(
    files: RowSource, groups: Sequence[Group], skip: NDArray[np.int64]
) -> Iterator[RowBatch]:
    """Rows of some groups that have a value and are not skipped."""
    listed = skip if len(skip) else None
    for group in groups:
        yield from files.observed(group, listed, keep=False)


def dealt_groups(sizes: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
    """Row groups in random order, each assigned to the lane with the least to read so far."""
    lanes: list[list[int]] = [[] for _ in range(min(LANES, len(sizes)))]
    load = [(0, lane) for lane in range(len(lanes))]
    for place in rng.permutation(len(sizes)).tolist():
        rows, lane = load[0]
        lanes[lane].append(place)
        heapq.heapreplace(load, (rows + sizes[place], lane))
    return lanes
