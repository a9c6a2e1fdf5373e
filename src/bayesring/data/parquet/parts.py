"""Row groups of Parquet files as parts of a data set that is never together in one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.data.parquet.keycoding import BadText, KeyTally, make_coder
from bayesring.data.parquet.reading import Group, ParquetFiles
from bayesring.data.parquet.shuffling import Coding, Lane, floats, make_coders, observed_parts
from bayesring.data.partitions import JointLabels, RowPart, Wanted, wanted_of

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
    read, values = [], []
    for part in (part for group in groups for part in files.read(group)):
        found = part.batch.column(files.value)
        known = found.is_valid()
        keys = [files.keys(part, name) for name in files.modes]
        for tally, name, column in zip(tallies, files.modes, keys, strict=True):
            try:
                tally.add(column)
            except BadText as error:
                raise files.error(part, error.place, name, f"{error}.") from None
            except ValueError as error:
                raise files.error(part, 0, name, str(error)) from None
        numbers = floats(found.drop_null()).astype(float)
        if not np.isfinite(numbers).all():
            rows = np.flatnonzero(known.to_numpy(zero_copy_only=False))
            raise files.bad_value(part, int(rows[np.argmin(np.isfinite(numbers))]))
        read.append([column.filter(known) for column in keys])
        values.append(numbers)
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
    n_rows = sum(group.n_rows for group in groups)
    return RowPart(codes, np.concatenate(values), tuple(levels), zones, n_rows=n_rows)


def coded_rows(
    files: ParquetFiles, groups: Sequence[Group], coding: JointLabels, choice: Wanted
) -> Observations:
    """Some row groups in the labels of all and in standard units.

    The same as `bayesring.data.partitions.coded` of their parts, but rows are coded batch by batch.
    """
    zones = tuple(kind.zone for kind in files.kinds)
    labels = Labels(coding.names, coding.levels, files.value, zones)
    lane = Lane(
        files, Coding(labels, choice.location, choice.scale), make_coders(files, labels), iter(())
    )
    n = sum(group.n_rows for group in groups)
    columns, values = np.empty((len(files.modes), n), np.int32), np.empty(n, np.float32)
    end = 0
    for part in observed_parts(files, groups, np.empty(0, dtype=np.int64)):
        begin, end = end, end + len(part.batch)
        rows = np.empty((end - begin, len(files.modes) + 1), dtype=np.int32)
        lane.write(part, rows)
        columns[:, begin:end] = rows[:, :-1].T
        values[begin:end] = rows.view(np.float32)[:, -1]
    return wanted_of(Observations(columns[:, :end].T, values[:end], coding.shape), choice)
