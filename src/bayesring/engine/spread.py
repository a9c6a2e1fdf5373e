"""Observations on the workers of a cluster: surveyed, held out and laid out in blocks there.

Only labels, counts and sums come to this process. Parts are read from their source whenever they
are needed, and nothing but the blocks is kept. See `bayesring.data.partitions` for what is done
with each part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data import partitions
from bayesring.data.blocks import Block, heads_of_mode, shares, size_for
from bayesring.data.fingerprints import sum_of_hashes
from bayesring.data.gaps import too_large
from bayesring.data.observations import COMPACT, Observations, in_order
from bayesring.data.parquet.parts import (
    coded_rows,
    file_part,
    parts_of,
    split_rows,
    squares_of_rows,
    survey_rows,
)
from bayesring.data.parquet.reading import ParquetFiles
from bayesring.data.partitions import Border, JointLabels, PartSurvey, Wanted
from bayesring.data.splitting import FEWEST, SHARE, Held, rule_for
from bayesring.likelihoods import Likelihood
from bayesring.model.types import IntArray, Moments

FAN_IN = 8
"""Surveys that are put together by one task."""
SORTS = 8
"""Pieces, per thread of the cluster, in which the blocks of a mode are sorted, one at a time."""
PARTS_PER_THREAD = 4
"""Most pieces of the data, per thread of the cluster, from which blocks are gathered."""

Read = Callable[[], list[Any]]
"""Ask the workers to read all parts of the data; returns the futures of these `RowPart`."""


class ShortCuts(NamedTuple):
    """How to ask for what is made of parts without making these: in little memory.

    Each returns futures, as a function of what else it needs, which may be futures.
    """

    survey: Callable[[], list[Any]]
    squares: Callable[..., list[Any]]
    coded: Callable[..., list[Any]]
    split: Callable[..., list[Any]]
    """As the functions of `bayesring.data.partitions`; the last two from labels and `Wanted`."""


class Workers(ABC):
    """What is asked of a cluster: work by name, on pieces that may be futures."""

    @abstractmethod
    def threads(self) -> list[str]:
        """One name of a worker per thread."""

    @abstractmethod
    def submit(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        worker: str | None = None,
        urgency: int = 0,
    ) -> Any:
        """The future of a function of arguments and futures, if possible at this worker.

        What is more urgent runs first.
        """

    @abstractmethod
    def keep(self, name: str, value: Any) -> Any:
        """The future of a value that cannot be lost."""

    @abstractmethod
    def results(self, futures: Sequence[Any]) -> list[Any]:
        """The results, in order."""

    @abstractmethod
    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until all are done; raise the first error."""

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        pieces: Sequence[Any],
        *rest: Any,
        urgency: int = 0,
    ) -> list[Any]:
        """Futures of a function of each piece, and further arguments."""
        return [self.submit(name, function, piece, *rest, urgency=urgency) for piece in pieces]

    def reduce(
        self, name: str, function: Callable[..., Any], pieces: Sequence[Any], *rest: Any
    ) -> Any:
        """The future of a function of lists, a few pieces at a time, until one is left."""
        while True:
            pieces = [
                self.submit(name, function, pieces[first : first + FAN_IN], *rest, urgency=2)
                for first in range(0, len(pieces), FAN_IN)
            ]
            if len(pieces) == 1:
                return pieces[0]

    def read_files(self, path: Path, modes: tuple[str, ...], value: str) -> Read:
        """Parquet data that every worker can read at the same path."""
        here = ParquetFiles(path, modes, value)
        parts = parts_of(here)

        def read() -> list[Any]:
            files = self.submit("open-files", ParquetFiles, path, modes, value, here.stamps)
            return [self.submit("read-files", file_part, files, groups) for groups in parts]

        return read

    def short_cuts(self, path: Path, modes: tuple[str, ...], value: str) -> ShortCuts:
        """The same data without parts in between."""
        here = ParquetFiles(path, modes, value)
        groups = here.groups

        def each(name: str, function: Callable[..., Any], *rest: Any) -> list[Any]:
            files = self.submit("open-files", ParquetFiles, path, modes, value, here.stamps)
            sizes = [own.n_rows for own in groups]
            workers: Sequence[str | None] = self.threads() or [None]
            futures = []
            for own, worker in zip(shares(sizes, len(workers)), workers, strict=False):
                for run in shares(sizes[own], PARTS_PER_THREAD):
                    part = groups[own][run]
                    futures.append(self.submit(name, function, files, part, *rest, worker=worker))
            return futures

        return ShortCuts(
            partial(each, "survey", survey_rows),
            partial(each, "squares", squares_of_rows),
            partial(each, "code-keys", coded_rows),
            partial(each, "split-by-mode", split_rows),
        )


class Spread(NamedTuple):
    """Observations that live on a cluster, or can be read there."""

    cluster: Workers
    read: Read
    coding: JointLabels
    counts: tuple[IntArray, ...]
    """Observations in each slice of each mode."""
    moments: Moments
    """Of all values."""
    seen: Moments
    """Of values that were observed themselves."""
    choice: Wanted = Wanted()
    short: ShortCuts | None = None
    """Shorter ways to read, if there are some."""
    rows: Any = None
    """The same as `SpreadRows` to learn from batch by batch, if they are keys and values only."""

    @property
    def shape(self) -> tuple[int, ...]:
        """I_1, ..., I_D."""
        return self.coding.shape

    @property
    def n(self) -> int:
        """Number of observations."""
        return int(self.counts[0].sum())

    def check(self, likelihood: Likelihood) -> None:
        """Raise an error if the likelihood cannot have some of the values."""
        parts = self.cluster.map("check", partitions.check, self.read(), likelihood, urgency=1)
        self.cluster.results(parts)
        likelihood.check(np.array([self.moments.smallest, self.moments.largest]))

    def gathered(self) -> Observations:
        """All observations, in this process and in the units of the data."""
        coding = self.cluster.keep("labels", self.coding)
        parts = self.cluster.map("code-keys", partitions.raw, self.read(), coding)
        return partitions.joined(self.cluster.results(parts))

    def fingerprint(self) -> NDArray[np.uint64]:
        """What tells the observations apart from others, wherever they are read."""
        coding = self.cluster.keep("labels", self.coding)
        rows = self._chunks(coding, self.cluster.keep("hold-out", self.choice))
        found = self.cluster.map("fingerprint", sum_of_hashes, rows, urgency=1)
        return np.asarray(np.sum(self.cluster.results(found), axis=0, dtype=np.uint64))

    def standardised(self, location: float, scale: float) -> Spread:
        """The same in standard units."""
        return self._replace(choice=Wanted(location, scale))

    def hold_out(self, seed: int) -> tuple[Spread, Held | None]:
        """The same as `bayesring.data.splitting.hold_out`."""
        if int(SHARE * self.n) < FEWEST:
            return self, None
        cluster, coding = self.cluster, self.cluster.keep("labels", self.coding)
        known = None
        if not too_large(self.shape):
            rows = self._chunks(coding, Wanted())
            bits = cluster.map("mark-cells", partitions.known_bits, rows, urgency=1)
            del rows
            packed = cluster.results([cluster.reduce("mark-cells", partitions.either, bits)])[0]
            known = np.unpackbits(packed, count=int(np.prod(self.shape))).astype(bool)
            known = known.reshape(self.shape)
        rule = rule_for(self.n, known, seed)
        choice = cluster.keep("hold-out", self.choice._replace(rule=rule, held=True))
        found = self._chunks(coding, choice)
        data = in_order(partitions.joined(cluster.results(found)))
        data = data._replace(values=data.values.astype(np.float32))
        if len(data.values) < FEWEST and "lower" in self.coding.fields:
            return self, None
        counts = tuple(
            own - np.bincount(data.coords[:, mode], minlength=len(own))
            for mode, own in enumerate(self.counts)
        )
        rest = self._replace(counts=counts, choice=self.choice._replace(rule=rule))
        return rest, Held(data, np.empty(0, dtype=np.int64), rule.pattern)

    def whole(self, held: Held) -> Spread:
        """The same with what was held out."""
        counts = tuple(
            own + np.bincount(held.data.coords[:, mode], minlength=len(own))
            for mode, own in enumerate(self.counts)
        )
        return self._replace(counts=counts, choice=self.choice._replace(rule=None))

    def lay_out(
        self, block_size: int | None, cut: Sequence[bool]
    ) -> list[list[tuple[tuple[Block, ...], Any]]]:
        """For every mode the groups of its blocks: without observations, and their futures."""
        cluster, size = self.cluster, size_for(self.n, block_size)
        value_type = "float32" if self.n >= COMPACT else "float64"
        coding = cluster.keep("labels", self.coding)
        choice = cluster.keep("hold-out", self.choice)
        laid = []
        for mode, counts in enumerate(self.counts):
            heads = heads_of_mode(mode, counts, size, cut[mode])
            sizes = [int(head.bounds[-1]) for head in heads]
            workers = cluster.threads()
            runs = shares(sizes, SORTS * len(workers))
            chunks = partial(self._chunks, coding, choice)  # read anew, and let go of when split
            borders = self._borders(chunks, heads, [own.start for own in runs[1:]])
            if self.short is not None:
                split = self.short.split(coding, choice, mode, borders)
            else:
                name = f"split-by-mode-{mode}"
                split = cluster.map(name, partitions.split, chunks(), mode, borders, urgency=2)
            groups = []
            of_groups = shares([sum(sizes[own]) for own in runs], len(workers))
            for several, worker in zip(of_groups, workers, strict=False):
                built: list[Any] = []
                for number in range(several.start, several.stop):
                    name = f"pick-for-mode-{mode}"
                    pieces = cluster.map(name, getitem, split, number, urgency=5)
                    skip = borders[number - 1].before if number else 0
                    # after the one before: its pieces need not be here any earlier
                    task = pieces, heads[runs[number]], skip, value_type, built[-1:]
                    name = f"sort-blocks-of-mode-{mode}"
                    built.append(
                        cluster.submit(name, partitions.build, *task, worker=worker, urgency=4)
                    )
                own = slice(runs[several.start].start, runs[several.stop - 1].stop)
                name = f"blocks-of-mode-{mode}"
                blocks = cluster.submit(name, partitions.together, built, worker=worker)
                groups.append((heads[own], blocks))
            del split, pieces, built
            cluster.wait([blocks for _, blocks in groups])
            laid.append(groups)
        return laid

    def _pieces(self) -> list[list[Any]]:
        """Futures of the parts, a few at a time."""
        parts = self.read()
        most = PARTS_PER_THREAD * len(self.cluster.threads())
        return [parts[own] for own in shares([1] * len(parts), most)]

    def _chunks(self, coding: Any, choice: Any) -> list[Any]:
        """Futures of the rows that are wanted, in the labels of all and in standard units."""
        if self.short is not None:
            return self.short.coded(coding, choice)
        pieces = self._pieces()
        return self.cluster.map("code-keys", partitions.coded, pieces, coding, choice, urgency=1)

    def _borders(
        self, read: Callable[[], list[Any]], heads: Sequence[Block], numbers: Sequence[int]
    ) -> list[Border]:
        """The borders before the blocks with these numbers; rows are read if slices are cut."""
        cluster, mode = self.cluster, heads[0].mode
        borders = [Border(heads[number].first) for number in numbers]
        inside: dict[int, tuple[tuple[int, ...], int]] = {}
        for place, number in enumerate(numbers):
            before, previous = 0, number
            while (
                heads[previous].is_part
                and previous
                and (
                    heads[previous - 1].first == heads[number].first and heads[previous - 1].is_part
                )
            ):
                previous -= 1
                before += int(heads[previous].bounds[-1])
            if before:
                inside[place] = (), before
        chunks = read() if inside else []
        for _ in range(len(self.shape) - 1 if inside else 0):
            wanted = [(borders[place].slice, cell) for place, (cell, _) in inside.items()]
            counts = cluster.results(
                cluster.map("find-borders", partitions.count_within, chunks, mode, wanted)
            )
            for which, (place, (cell, before)) in enumerate(list(inside.items())):
                index, before = partitions.next_index([own[which] for own in counts], before)
                inside[place] = (*cell, index), before
        for place, (cell, before) in inside.items():
            borders[place] = Border(borders[place].slice, cell, before)
        return borders


def spread_over(
    cluster: Workers,
    read: Read,
    names: Sequence[str],
    value: str | None,
    short: ShortCuts | None = None,
) -> tuple[Spread, PartSurvey]:
    """PartSurvey data that the workers can read."""
    if short is None:
        surveys = cluster.map("survey", partitions.survey_part, read(), urgency=1)
    else:
        surveys = short.survey()
    joint = cluster.reduce("survey", partitions.joint_survey, surveys, tuple(names))
    survey: PartSurvey = cluster.results([joint])[0]
    tally, seen = survey.tally, survey.seen if survey.seen.n else survey.tally
    if not survey.n_rows:
        raise ValueError(
            "X is empty: none of its partitions has a row, or one with a positive sample_weight."
        )
    if not tally.n:
        raise ValueError(
            f"value column {value!r} holds no value in any of its {survey.n_rows:,} rows."
        )
    if short is None:
        squares = cluster.map("squares", partitions.squares_of, read(), tally, seen, urgency=1)
    else:
        squares = short.squares(tally, seen)
    of_all, of_seen = (sum(each) for each in zip(*cluster.results(squares), strict=True))
    if not survey.seen.n:
        of_seen = of_all
    coding = JointLabels(tuple(names), survey.levels, survey.fields)
    moments = tally.moments(of_all), seen.moments(of_seen)
    return Spread(cluster, read, coding, survey.counts, *moments, short=short), survey
