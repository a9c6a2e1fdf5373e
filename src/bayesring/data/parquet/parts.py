"""Row groups of Parquet files as parts of a data set that is never together in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bayesring.data.labels import Labels
from bayesring.data.moments import Tally
from bayesring.data.observations import Observations
from bayesring.data.parquet.keycoding import BadText, KeyTally, make_coder
from bayesring.data.parquet.reading import BATCH, Group, ParquetFiles, RowBatch, RowSource
from bayesring.data.parquet.shuffling import Coding, Lane, floats, make_coders, observed_parts
from bayesring.data.partitions import (
    Border,
    JointLabels,
    PartSurvey,
    Wanted,
    give_back,
    joined,
    split,
    wanted_of,
)
from bayesring.data.rowparts import RowPart
from bayesring.model.types import FloatArray

ROWS = 1 << 20
"""Number of rows of a part; fewer where row groups are smaller, and more where they are larger."""


def parts_of(files: ParquetFiles) -> list[list[Group]]:
    """Consecutive row groups, about `ROWS` rows at a time."""
    parts: list[list[Group]] = []
    room = 0
    for group in files.groups:
        if room < group.n_rows:
            parts.append([])
            room = ROWS
        parts[-1].append(group)
        room -= group.n_rows
    return parts


def file_part(files: ParquetFiles, groups: Sequence[Group]) -> RowPart:
    """Some row groups; errors name the file and the row."""
    tallies = [KeyTally(kind, name) for kind, name in zip(files.kinds, files.modes, strict=True)]
    read, values, bits = [], [], []
    for part in (part for group in groups for part in files.read(group)):
        found = part.batch.column(files.value)
        known = found.is_valid()
        keys = [files.keys(part, name) for name in files.modes]
        tally_keys(files, part, tallies)
        read.append([column.filter(known) for column in keys])
        values.append(values_of(files, part))
        bits.append(known.to_numpy(zero_copy_only=False))
    levels = [tally.result()[0] for tally in tallies]
    coders = list(map(make_coder, levels, files.kinds, files.modes))
    codes = np.empty((len(coders), sum(map(len, values))), dtype=np.int32)
    end = 0
    for columns, own in zip(read, values, strict=True):
        begin, end = end, end + len(own)
        for mode, (column, coder) in enumerate(zip(columns, coders, strict=True)):
            if len(own):
                coder.code(column, codes[mode, begin:end])
    zones = tuple(kind.zone for kind in files.kinds)
    return RowPart(
        codes,
        np.concatenate(values),
        tuple(levels),
        zones,
        n_rows=sum(group.n_rows for group in groups),
        known=np.packbits(np.concatenate(bits)),
        places=tuple((files.place(own.file), own.begin, own.n_rows) for own in groups),
    )


SPLIT = 1 << 18
"""Number of rows that are split at a time."""


def survey_rows(files: ParquetFiles, groups: Sequence[Group]) -> PartSurvey:
    """The same as `bayesring.data.partitions.survey_part`, batch by batch."""
    tallies = [KeyTally(kind, name) for kind, name in zip(files.kinds, files.modes, strict=True)]
    tally, n_rows = Tally(), 0
    for part in (part for group in groups for part in files.read(group)):
        tally_keys(files, part, tallies)
        tally, n_rows = tally.plus(Tally.of(values_of(files, part))), n_rows + len(part.batch)
    levels, counts = zip(*(own.result() for own in tallies), strict=True)
    zones = tuple(kind.zone for kind in files.kinds)
    return PartSurvey(levels, counts, zones, tally, tally, frozenset(), n_rows)


def tally_keys(files: RowSource, part: RowBatch, tallies: Sequence[KeyTally]) -> None:
    """Count the keys of rows with a value, and remember those of all."""
    values = part.batch.column(files.value)
    missing = values.is_null() if values.null_count else None
    for name, tally in zip(files.modes, tallies, strict=True):
        column = files.keys(part, name)
        try:
            tally.add(column)
            if missing is not None:
                tally.add(column.filter(missing), -1)
        except BadText as error:
            raise files.error(part, error.place, name, f"{error}.") from None
        except ValueError as error:
            raise files.error(part, 0, name, str(error)) from None


def values_of(files: ParquetFiles, part: RowBatch) -> FloatArray:
    """The values that are not missing, all of which must be finite."""
    found = part.batch.column(files.value)
    numbers = floats(found.drop_null()).astype(float)
    if not np.isfinite(numbers).all():
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        raise files.bad_value(part, int(rows[np.argmin(np.isfinite(numbers))]))
    return numbers


def squares_of_rows(
    files: ParquetFiles, groups: Sequence[Group], tally: Tally, seen: Tally
) -> tuple[int, int]:
    """The same as `bayesring.data.partitions.squares_of`, batch by batch."""
    parts = (part for group in groups for part in files.read(group))
    total = sum(tally.squares(values_of(files, part)) for part in parts)
    return total, total


def coded_rows(
    files: ParquetFiles, groups: Sequence[Group], coding: JointLabels, choice: Wanted
) -> Observations:
    """Some row groups in the labels of all and in standard units.

    The same as `bayesring.data.partitions.coded` of their parts, but rows are coded batch by batch.
    """
    return joined(list(_coded_rows(files, groups, coding, choice)))


def split_rows(
    files: ParquetFiles,
    groups: Sequence[Group],
    coding: JointLabels,
    choice: Wanted,
    mode: int,
    borders: Sequence[Border],
) -> list[list[Observations]]:
    """The same rows, split as `bayesring.data.partitions.split` does, some at a time."""
    found: list[list[Observations]] = [[] for _ in range(len(borders) + 1)]
    for data in _coded_rows(files, groups, coding, choice):
        for own, piece in zip(found, split(data, mode, borders), strict=True):
            own.append(piece)
    give_back()
    return found


def _coded_rows(
    files: ParquetFiles, groups: Sequence[Group], coding: JointLabels, choice: Wanted
) -> Iterator[Observations]:
    zones = tuple(kind.zone for kind in files.kinds)
    labels = Labels(coding.names, coding.levels, files.value, zones)
    units = Coding(labels, choice.location, choice.scale)
    parts = observed_parts(files, groups, np.empty(0, dtype=np.int64))
    lane = Lane(files, units, make_coders(files, labels), parts)
    n = max(min(SPLIT, sum(group.n_rows for group in groups)), BATCH)
    rows = np.empty((n, len(files.modes) + 1), dtype=np.int32)
    filled = -1
    while filled:
        before, filled = filled, lane.fill(rows, BATCH)
        if filled or before < 0:  # at least once
            columns = np.ascontiguousarray(rows[:filled, :-1].T)
            values = rows[:filled].view(np.float32)[:, -1].copy()
            yield wanted_of(Observations(columns.T, values, coding.shape), choice)
