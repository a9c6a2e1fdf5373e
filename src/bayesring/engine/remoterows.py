"""Rows of online EM on the workers of a cluster: read and coded there once, and kept.

Driver and workers together do what `bayesring.data.parquet.rows` does alone, with the same bits.
Small batches are mixed by the driver from rows that come from all lanes. Of large batches only
sums come here: every worker adds up the blocks that its own lanes give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.batches import Batch, Chunk
from bayesring.data.blocks import shares
from bayesring.data.labels import encode
from bayesring.data.parquet import lanes
from bayesring.data.parquet.lanes import Deal, Span
from bayesring.data.parquet.reading import Group, ParquetFiles, RowSource
from bayesring.data.parquet.rows import (
    CHUNK,
    NO_ROWS,
    Survey,
    Tallied,
    digests_of_rows,
    in_given_order,
    survey_of,
    take_rows,
    tallied,
)
from bayesring.data.parquet.shuffling import (
    Coding,
    Lane,
    dealt,
    dealt_groups,
    make_coders,
    mixed_rows,
    observed_parts,
)
from bayesring.data.partitions import joint_levels
from bayesring.engine.gradients import (
    BatchSums,
    GradientTask,
    Node,
    parts_within,
    rows_sums,
    tree_sum,
)
from bayesring.engine.spread import Workers
from bayesring.engine.streams import Purpose, aside
from bayesring.model.types import IntArray

FEW = 1 << 16
"""Most rows that the driver keeps itself: a pass over them is shorter than a message."""
GATHERS = 8
"""Lanes whose rows come to the driver at the same time."""


class CodedLane(NamedTuple):
    """The rows of a lane on a worker."""

    rows: IntArray
    """(n, D + 1), as in `kernels.pools`."""
    sizes: tuple[tuple[int, ...], ...]
    """Numbers of rows in the batches of each row group."""


def tally_lane(files: RowSource, groups: Sequence[Group]) -> Tallied:
    """Labels, counts and summaries of some row groups; runs on a worker."""
    return tallied(files, (part for group in groups for part in files.read(group)))


def joint_tally(parts: Sequence[Tallied], names: Sequence[str]) -> Tallied:
    """Put together what was found in consecutive row groups."""
    levels, counts = [], []
    for mode, name in enumerate(names):
        own = joint_levels([part.levels[mode] for part in parts], name)
        totals = np.zeros(len(own), dtype=np.int64)
        for part in parts:
            totals[encode(part.levels[mode], own)] += part.counts[mode]
        levels.append(own)
        counts.append(totals)
    summaries = [each for part in parts for each in part.summaries]
    return Tallied(tuple(levels), tuple(counts), summaries)


def code_lane(
    files: RowSource, groups: Sequence[Group], coding: Coding, skip: NDArray[np.int64]
) -> CodedLane:
    """Read and code the rows of a lane; runs on a worker."""
    lane = Lane(files, coding, make_coders(files, coding.labels), iter(()))
    rows = np.empty((sum(group.n_rows for group in groups), len(files.modes) + 1), dtype=np.int32)
    end, sizes = 0, []
    for group in groups:
        own = []
        for part in observed_parts(files, [group], skip):
            begin, end = end, end + len(part.batch)
            lane.write(part, rows[begin:end])
            own.append(end - begin)
        sizes.append(tuple(own))
    return CodedLane(rows[:end], tuple(sizes))


def sizes_of(lane: CodedLane) -> tuple[tuple[int, ...], ...]:
    """How many rows there are where."""
    return lane.sizes


def some_rows(lane: CodedLane, spans: Sequence[Span]) -> IntArray:
    """Some rows of a lane."""
    return np.concatenate([lane.rows[begin:end] for begin, end in spans])


def lane_chunk(lane: CodedLane, spans: Sequence[Span], number: int, deal: Deal) -> Chunk:
    """What a lane gives to a large batch."""
    places = np.concatenate([np.arange(*span, dtype=np.int32) for span in (*spans, (0, 0))])
    return dealt(lane.rows, places[deal.rows(number, len(places))])


class LaneWork(NamedTuple):
    """What a worker has to do for a large batch: some of its blocks."""

    deal: Deal
    first: int
    """Number of the first lane."""
    spans: list[list[Span]]
    """Rows of each lane that are dealt."""
    blocks: dict[int, Span]
    """Lanes of each block."""

    def chunk(self, held: Sequence[CodedLane], block: int) -> Chunk:
        """The rows of a block."""
        found = [
            lane_chunk(held[lane - self.first], self.spans[lane - self.first], lane, self.deal)
            for lane in range(*self.blocks[block])
        ]
        return lanes.joined_chunks(found)


class SentRows(NamedTuple):
    """The same for rows that the driver sends."""

    chunks: dict[int, Chunk]

    def chunk(self, held: Sequence[Any], block: int) -> Chunk:
        """The rows of a block."""
        return self.chunks[block]


def sum_parts(
    held: Sequence[CodedLane], job: LaneWork | SentRows, task: GradientTask, nodes: Sequence[Node]
) -> list[BatchSums | None]:
    """Sums over parts of the tree of blocks; runs on a worker."""
    empty = {block for block, own in getattr(job, "blocks", {}).items() if own[0] == own[1]}

    def of_block(node: Node) -> BatchSums | None:
        return None if node[0] in empty else rows_sums(task, job.chunk(held, node[0]))

    return [tree_sum(node, of_block) for node in nodes]


class HeldLanes(NamedTuple):
    """Lanes on the workers, as the driver sees them."""

    futures: list[Any]
    sizes: list[tuple[tuple[int, ...], ...]]
    """Of every lane and row group, the numbers of rows of its batches."""
    groups: list[slice]
    """Row groups of every lane."""
    here: list[CodedLane] | None = None
    """The lanes themselves, if they have few rows."""

    def batches(self, group: int) -> list[tuple[int, Span]]:
        """Lane and place there of all batches of rows of a group."""
        lane = next(i for i, own in enumerate(self.groups) if own.start <= group < own.stop)
        place = group - self.groups[lane].start
        first = sum(map(sum, self.sizes[lane][:place]))
        edges = np.cumsum([first, *self.sizes[lane][place]]).tolist()
        return [(lane, span) for span in pairwise(edges)]


class LaneBatch(NamedTuple):
    """A large batch whose rows are on the workers."""

    held: HeldLanes
    deal: Deal
    spans: list[list[Span]]
    """Rows of every lane that are dealt in this turn."""
    n: int
    edges: list[Span]
    """Lanes of every block."""

    def job(self, blocks: range) -> tuple[list[Any], LaneWork]:
        """Futures of the lanes, and the work, for some blocks."""
        first, last = self.edges[blocks.start][0], self.edges[blocks.stop - 1][1]
        own = {block: self.edges[block] for block in blocks}
        return self.held.futures[first:last], LaneWork(
            self.deal, first, self.spans[first:last], own
        )


class BatchShare(NamedTuple):
    """Some consecutive blocks of a large batch, for one worker."""

    held: list[Any]
    """Futures of the lanes that it needs."""
    work: LaneWork | SentRows
    nodes: list[Node]
    """Parts of the tree of blocks to be summed."""


def jobs_of(batch: Batch, n: int) -> tuple[Node, list[BatchShare]]:
    """All blocks of a batch, and the work of `n` workers on them."""
    n_blocks = len(batch.cuts) - 1 if isinstance(batch, Chunk) else len(batch.edges)  # type: ignore[attr-defined]
    jobs = []
    for own in map(_all, shares([1] * n_blocks, n)):
        nodes = list(parts_within((0, n_blocks), (own.start, own.stop)))
        if isinstance(batch, Chunk):
            jobs.append(
                BatchShare([], SentRows({block: batch.block(block) for block in own}), nodes)
            )
        else:
            assert isinstance(batch, LaneBatch)
            jobs.append(BatchShare(*batch.job(own), nodes))
    return (0, n_blocks), jobs


def _all(own: slice) -> range:
    return range(own.start, own.stop)


class RemoteLane:
    """A lane of a small pass, whose rows are asked for when they are needed."""

    def __init__(self, cluster: Workers, held: HeldLanes, groups: Sequence[int]) -> None:
        self._cluster, self._held = cluster, held
        self._left = list(chain.from_iterable(map(held.batches, groups)))

    def fill(self, pool: IntArray, reserve: int = 0) -> int:
        """As `Lane.fill`."""
        placed = 0
        wanted: list[tuple[int, list[Span]]] = []
        while self._left and placed + reserve <= len(pool):
            lane, (begin, end) = self._left.pop(0)
            placed += end - begin
            if wanted and wanted[-1][0] == lane and wanted[-1][1][-1][1] == begin:
                wanted[-1][1][-1] = wanted[-1][1][-1][0], end
            else:
                wanted.append((lane, [(begin, end)]))
        if placed:
            pool[:placed] = np.concatenate(self._rows(wanted))
        return placed

    def _rows(self, wanted: Sequence[tuple[int, list[Span]]]) -> list[IntArray]:
        here = self._held.here
        if here is not None:
            return [some_rows(here[lane], spans) for lane, spans in wanted]
        return self._cluster.results(
            [
                self._cluster.submit("send-rows", some_rows, self._held.futures[lane], spans)
                for lane, spans in wanted
            ]
        )


class SpreadRows(ABC):
    """Rows that all workers can read: the same as `ParquetRows`, from there."""

    modes: tuple[str, ...]
    value: str
    n_rows: int
    _groups: Sequence[Group]
    _lanes: list[slice]
    _held: tuple[Any, HeldLanes] | None

    def __init__(self, cluster: Workers) -> None:
        self._cluster, self._held = cluster, None

    def _divide(self, groups: Sequence[Group]) -> None:
        """Make lanes of consecutive row groups."""
        self._groups, self._lanes = groups, lanes.lanes_of(groups)

    @abstractmethod
    def survey(self, report: Callable[[int, int], None] | None = None) -> Survey:
        """As `ParquetRows.survey`."""

    @abstractmethod
    def _each(self, name: str, function: Callable[..., Any], *rest: Any) -> list[Any]:
        """Futures of a function of all row groups, some at a time, in order."""

    @abstractmethod
    def _coded_lanes(self, coding: Any, skip: Any) -> list[Any]:
        """Futures of the lanes; labels and rows that are skipped are futures, too."""

    def _homes(self) -> list[str | None]:
        """A worker for every lane, the same for neighbouring lanes."""
        workers: Sequence[str | None] = self._cluster.threads() or [None]
        runs = shares([1] * len(self._lanes), len(workers))
        return [worker for own, worker in zip(runs, workers, strict=False) for _ in _all(own)]

    def take(self, coding: Coding, rows: NDArray[np.int64]) -> Chunk:
        """As `ParquetRows.take`."""
        there = self._cluster.keep("labels", coding)
        wanted = self._cluster.keep("row-numbers", np.asarray(rows, dtype=np.int64))
        found = self._cluster.results(self._each("take-rows", take_rows, there, wanted))
        return in_given_order([each for own in found for each in own])

    def fingerprint(self, coding: Coding) -> list[str]:
        """As `ParquetRows.fingerprint`."""
        there = self._cluster.keep("labels", coding)
        found = self._cluster.results(self._each("fingerprint", digests_of_rows, there))
        return [each for own in found for each in own]

    def _hold(self, coding: Coding, skip: NDArray[np.int64]) -> HeldLanes:
        """The lanes without the rows that are skipped, on the workers."""
        known = coding.location, coding.scale, skip.tobytes()
        if self._held is None or self._held[0] != known:
            self._held = None
            there = self._cluster.keep("labels", coding)
            skipped = self._cluster.keep("row-numbers", skip)
            futures = self._coded_lanes(there, skipped)
            sizes = self._cluster.results(self._cluster.map("count-rows", sizes_of, futures))
            here = self._cluster.results(futures) if self.n_rows <= FEW else None
            self._held = known, HeldLanes(futures, sizes, self._lanes, here)
        return self._held[1]

    def chunks(
        self,
        coding: Coding,
        seed: int,
        epoch: int,
        rows: int = CHUNK,
        skip: NDArray[np.int64] = NO_ROWS,
    ) -> Iterator[Chunk]:
        """As `ParquetRows.chunks`, mixed here."""
        held = self._hold(coding, np.asarray(skip, dtype=np.int64))
        rng = np.random.default_rng(aside(seed, Purpose.FILES, epoch))
        sizes = [group.n_rows for group in self._groups]
        found = [RemoteLane(self._cluster, held, own) for own in dealt_groups(sizes, rng)]
        return mixed_rows(found, len(self.modes) + 1, rng, rows, GATHERS)

    def large_batches(
        self, coding: Coding, seed: int, epoch: int, size: int, skip: NDArray[np.int64] = NO_ROWS
    ) -> Iterator[Batch]:
        """As `ParquetRows.large_batches`, with rows that stay where they are."""
        held = self._hold(coding, np.asarray(skip, dtype=np.int64))
        room = lanes.room_of(len(self._lanes), size)
        edges = lanes.lanes_of_block(len(self._lanes), size)
        turns = []
        for order in lanes.orders_of(self._lanes, seed, epoch):
            spans = [span for group in order for _, span in held.batches(group)]
            sizes = [end - begin for begin, end in spans]
            turns.append([spans[slice(*own)] for own in lanes.turns_of(sizes, room)])
        for turn in range(max(map(len, turns))):
            now = [own[turn] if turn < len(own) else [] for own in turns]
            numbers = [sum(end - begin for begin, end in own) for own in now]
            for deal in lanes.deals_of(seed, epoch, turn, sum(numbers), size):
                shared = [deal.share(n) for n in numbers]
                n = sum(own.stop - own.start for own in shared)
                yield LaneBatch(held, deal, now, n, edges)


class SpreadFiles(SpreadRows):
    """Parquet data."""

    def __init__(self, cluster: Workers, path: Path, modes: Sequence[str], value: str) -> None:
        super().__init__(cluster)
        self.modes, self.value = tuple(modes), value
        self._files = ParquetFiles(path, modes, value)
        self._source = path, self.modes, value, self._files.stamps
        self.n_rows = self._files.n_rows
        self._divide(self._files.groups)

    def _each(self, name: str, function: Callable[..., Any], *rest: Any) -> list[Any]:
        """Futures of a function of every lane."""
        files = self._cluster.submit("open-files", ParquetFiles, *self._source)
        return [
            self._cluster.submit(name, function, files, self._groups[own], *rest, worker=worker)
            for own, worker in zip(self._lanes, self._homes(), strict=True)
        ]

    def _coded_lanes(self, coding: Any, skip: Any) -> list[Any]:
        """As in `SpreadRows`."""
        return self._each("code-rows", code_lane, coding, skip)

    def survey(self, report: Callable[[int, int], None] | None = None) -> Survey:
        """As `ParquetRows.survey`."""
        parts = self._each("survey", tally_lane)
        joint = self._cluster.reduce("survey", joint_tally, parts, self.modes)
        survey = survey_of(self._files, self._cluster.results([joint])[0])
        if report is not None:
            report(self.n_rows, self.n_rows)
        return survey
