"""Rows of a Dask DataFrame for online EM: every partition is a row group, as if it were a file.

A fit has the bits of one of a Parquet data set whose row groups are these partitions, on a cluster
or on one machine. What a lost worker held is made again by the graph of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from bayesring.data.parquet.arrowkeys import KeyType
from bayesring.data.parquet.frames import FramePartition
from bayesring.data.parquet.reading import Group
from bayesring.data.parquet.rows import Survey, Tallied, survey_of, tallied
from bayesring.engine.remoterows import CodedLane, SpreadRows, code_lane, joint_tally
from bayesring.engine.spread import Read, Workers

Outline = tuple[int, tuple[KeyType, ...]]
"""Number of rows, and types of the keys, of a partition."""


def tally_partition(part: FramePartition) -> tuple[Outline, Tallied | None]:
    """What a survey has to know of a partition; runs on a worker."""
    outline = part.n_rows, part.kinds
    if not part.n_rows:
        return outline, None
    whole = Group(part.number, 0, 0, 0, part.n_rows)
    return outline, tallied(part, part.read(whole))


def joined_lane(parts: Sequence[CodedLane]) -> CodedLane:
    """A lane of consecutive partitions; runs on a worker."""
    sizes = tuple(own for part in parts for own in part.sizes)
    return CodedLane(np.concatenate([part.rows for part in parts]), sizes)


class SpreadFrame(SpreadRows):
    """A Dask DataFrame; `read` asks for its partitions as `FramePartition`."""

    def __init__(
        self, cluster: Workers, read: Read, modes: tuple[str, ...], value: str, n_rows: int
    ) -> None:
        super().__init__(cluster)
        self.modes, self.value, self.n_rows, self._read = modes, value, n_rows, read
        self.kinds: tuple[KeyType, ...] = ()

    def survey(self, report: Callable[[int, int], None] | None = None) -> Survey:
        """As `ParquetRows.survey`; finds out where the row groups are."""
        cluster = self._cluster
        found = cluster.map("survey", tally_partition, self._read(), urgency=1)
        outlines: list[Outline] = cluster.results(cluster.map("outline", getitem, found, 0))
        groups, self.n_rows = [], 0
        for number, (n_rows, _) in enumerate(outlines):
            if n_rows:
                groups.append(Group(number, 0, 0, self.n_rows, n_rows))
                self.n_rows += n_rows
        self._divide(groups)
        self.kinds = agreed(self.modes, {own.file: outlines[own.file][1] for own in groups})
        tallies = [cluster.submit("survey", getitem, found[own.file], 1) for own in groups]
        joint = cluster.reduce("survey", joint_tally, tallies, self.modes)
        survey = survey_of(self, cluster.results([joint])[0])
        if report is not None:
            report(self.n_rows, self.n_rows)
        return survey

    def _each(self, name: str, function: Callable[..., Any], *rest: Any) -> list[Any]:
        """Futures of a function of every partition that has rows."""
        parts = self._read()
        return [
            self._cluster.submit(name, function, parts[own.file], [own], *rest, urgency=1)
            for own in self._groups
        ]

    def _coded_lanes(self, coding: Any, skip: Any) -> list[Any]:
        """As in `SpreadRows`; only coded rows go from where they are made to where they stay."""
        parts = self._each("code-rows", code_lane, coding, skip)
        return [
            self._cluster.submit("lane", joined_lane, parts[own], worker=worker, urgency=2)
            for own, worker in zip(self._lanes, self._homes(), strict=True)
        ]


def agreed(modes: Sequence[str], kinds: dict[int, tuple[KeyType, ...]]) -> tuple[KeyType, ...]:
    """One common type per key for all partitions, given those of each."""
    first = min(kinds)
    for number, found in kinds.items():
        for own, expected, name in zip(found, kinds[first], modes, strict=True):
            if not own.agrees(expected):
                raise ValueError(
                    f"Partition {number}, column {name!r}: holds {own.text}, but {expected.text} "
                    f"in partition {first}; a column must have one type in all partitions."
                )
    return tuple(reduce(KeyType.joined, own) for own in zip(*kinds.values(), strict=True))
