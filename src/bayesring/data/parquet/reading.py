"""Find the files of a Parquet data set, check them before any work, and read them in batches.

A data set is one file, or a folder of files at any depth; folders named ``key=value`` add a column
to their files. Files are read in the order of their paths, so every row has a number.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.parquet.arrowkeys import KeyType, key_type
from bayesring.data.parquet.footers import (
    Stamp,
    base_of,
    check_footer,
    check_value_type,
    find_files,
    is_dictionary,
    not_whole,
    partition_kinds,
    partition_of,
)
from bayesring.model.types import IntArray
from bayesring.wording import reason_of

BATCH = 1 << 16
"""Number of rows read at a time."""
BUFFER = 1 << 18
"""Bytes of a column fetched at a time, however large a row group is."""


class Group(NamedTuple):
    """A row group: the smallest unit that can be read on its own."""

    file: int
    number: int
    """Index in the file."""
    begin: int
    """First row within the file."""
    first: int
    """First row within the whole data set."""
    n_rows: int


class RowBatch(NamedTuple):
    """Consecutive rows of a file, or some of them."""

    file: int
    begin: int
    """First row within the file."""
    rows: IntArray | None
    """Indices of the remaining rows relative to `begin`; None for all."""
    batch: Any
    """An Arrow record batch."""

    def row(self, place: int) -> int:
        """Row within the file for an index in the batch."""
        return self.begin + int(place if self.rows is None else self.rows[place])


class RowSource(ABC):
    """Rows with key columns and a value column, in groups that are read one by one."""

    modes: tuple[str, ...]
    value: str
    kinds: tuple[KeyType, ...]
    """Types of the key columns."""

    @abstractmethod
    def place(self, file: int) -> str:
        """Where rows are, at the beginning of a message."""

    @abstractmethod
    def read(self, group: Group) -> Iterator[RowBatch]:
        """All rows of a row group, in batches of `BATCH` rows."""

    def error(self, part: RowBatch, place: int, column: str, what: str) -> ValueError:
        """The error for the contents of a column at an index of a part."""
        where = f"{self.place(part.file)}, row {part.row(place):,}, column {column!r}"
        return ValueError(f"{where}: {what}")

    def keys(self, part: RowBatch, name: str) -> Any:
        """A key column, which must not have missing entries."""
        column = part.batch.column(name)
        missing = None
        if column.null_count:
            missing = column.is_null()
        elif import_pyarrow().types.is_floating(column.type):
            missing = column.is_nan()
        if missing is not None and missing.true_count:
            place = int(np.argmax(missing.to_numpy(zero_copy_only=False)))
            what = "no key; every row must say which cell it belongs to, only the value may be "
            raise self.error(part, place, name, what + "missing.")
        return column

    def bad_value(self, part: RowBatch, place: int) -> ValueError:
        """The error for a value that cannot be used for training."""
        value = float(part.batch.column(self.value)[place].as_py())
        if np.isfinite(value):
            what = f"{value:g}; values must be below 3e38 in standard units."
        else:
            found = "NaN" if np.isnan(value) else "infinity"
            what = f"{found}; values must be finite numbers."
        return self.error(part, place, self.value, what)

    def observed(
        self, group: Group, listed: NDArray[np.int64] | None = None, keep: bool = True
    ) -> Iterator[RowBatch]:
        """The rows with a value, among those listed or, if not `keep`, among all others.

        `listed` holds sorted row numbers of the whole data set; None means all rows.
        """
        for part in self.read(group):
            first, n = group.first + part.begin - group.begin, len(part.batch)
            chosen = None
            if listed is not None:
                begin, end = np.searchsorted(listed, (first, first + n))
                if begin < end or keep:
                    chosen = np.full(n, not keep)
                    chosen[listed[begin:end] - first] = keep
            values = part.batch.column(self.value)
            if values.null_count:
                known = values.is_valid().to_numpy(zero_copy_only=False)
                chosen = known if chosen is None else chosen & known
            if chosen is None:
                yield part
            elif chosen.any():
                batch = part.batch.filter(import_pyarrow().array(chosen))
                yield RowBatch(part.file, part.begin, np.flatnonzero(chosen), batch)


class ParquetFiles(RowSource):
    """Files with the same key columns and value column, checked.

    Opening reads only the footers: names and types of columns, numbers of rows, and whether the
    file is as long as its footer says. `stamps` are those of an earlier opening, maybe elsewhere:
    its files are opened and no others, and must be what they were then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        modes: Sequence[str],
        value: str,
        stamps: Sequence[Stamp] = (),
    ) -> None:
        self.path, self.modes, self.value = Path(path), tuple(modes), value
        self._paths = [own.path for own in stamps] or find_files(self.path)
        self._base = base_of(str(path))
        self._partitions = [partition_of(path.relative_to(self._base)) for path in self._paths]
        self._fixed = partition_kinds([each for each in self._partitions if each])
        for file, own in enumerate(stamps):
            own.check(self.name(file), whole=True)
        self.stamps = list(stamps)
        self._metadata: list[Any] = []
        self._coded: list[list[str]] = []
        self.groups: list[Group] = []
        self.kinds = self._agreed([self._open(file) for file in range(len(self._paths))])
        self.n_rows = sum(group.n_rows for group in self.groups)
        if not self.n_rows:
            raise ValueError(f"{self.path} holds no rows.")

    def name(self, file: int) -> str:
        """Name of a file in messages: its path inside the folder."""
        path = self._paths[file]
        return str(path if path == self.path else path.relative_to(self._base))

    def place(self, file: int) -> str:
        """As in `RowSource`."""
        return f"File {self.name(file)}"

    def read(self, group: Group) -> Iterator[RowBatch]:
        """As in `RowSource`."""
        pa = import_pyarrow()
        from pyarrow import parquet

        partition = self._partitions[group.file]
        stored = [name for name in (*self.modes, self.value) if name not in self._fixed]
        begin = group.begin
        stamp, name_of_file = self.stamps[group.file], self.name(group.file)
        stamp.check(name_of_file)
        try:
            with parquet.ParquetFile(
                self._paths[group.file],
                metadata=self._metadata[group.file],
                read_dictionary=self._coded[group.file],
                buffer_size=BUFFER,
                pre_buffer=False,
            ) as opened:
                for batch in opened.iter_batches(
                    BATCH, row_groups=[group.number], columns=stored, use_threads=False
                ):
                    for name in self.modes:
                        if name in self._fixed:
                            constant = self._constant(name, partition[name], len(batch))
                            batch = batch.append_column(name, constant)
                    yield RowBatch(group.file, begin, None, batch)
                    begin += len(batch)
        except (pa.ArrowException, OSError) as error:
            stamp.check(name_of_file)
            raise ValueError(
                f"File {self.name(group.file)}, row {begin:,} and after: cannot be read, the file "
                f"is damaged ({reason_of(error)})."
            ) from None
        stamp.check(name_of_file)
        if begin < group.begin + group.n_rows:
            raise ValueError(
                f"File {self.name(group.file)}, row {begin:,} and after: the file ends before its "
                f"{group.begin + group.n_rows:,} rows."
            )

    def _open(self, file: int) -> dict[str, KeyType]:
        """Read a footer and return the types of its key columns."""
        pa = import_pyarrow()
        from pyarrow import parquet

        path, name = self._paths[file], self.name(file)
        groups = check_footer(path, name)
        if len(self.stamps) == file:
            self.stamps.append(Stamp.of(path))
        try:
            with parquet.ParquetFile(path) as opened:
                metadata, schema = opened.metadata, opened.schema_arrow
                known = list(schema.names)
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise not_whole(name, reason_of(error)) from None
        kinds = {}
        for column in (*self.modes, self.value):
            if column not in known:
                if column != self.value and column in self._partitions[file]:
                    continue
                known += self._partitions[file]
                raise ValueError(f"File {name} has no column {column!r}; its columns are {known}.")
            kind = schema.field(column).type
            if column == self.value:
                check_value_type(kind, self.place(file), column)
                continue
            try:
                kinds[column] = key_type(kind, column)
            except ValueError as error:
                raise ValueError(f"File {name}: {error}") from None
        self._metadata.append(metadata)
        texts = [column for column, kind in kinds.items() if kind.dtype.kind == "U"]
        self._coded.append([column for column in texts if is_dictionary(groups, column)])
        begin, first = 0, sum(group.n_rows for group in self.groups[-1:])
        first += self.groups[-1].first if self.groups else 0
        for number, (n_rows, _) in enumerate(groups):
            self.groups.append(Group(file, number, begin, first + begin, n_rows))
            begin += n_rows
        return kinds

    def _agreed(self, found: list[dict[str, KeyType]]) -> tuple[KeyType, ...]:
        """One common type per key for all files."""
        kinds = []
        for column in self.modes:
            first = next((file for file, each in enumerate(found) if column in each), None)
            if first is None:
                kinds.append(self._fixed[column])
                continue
            expected = found[first][column]
            for file, each in enumerate(found):
                if column not in each:
                    raise ValueError(
                        f"File {self.name(file)} has no column {column!r}, which is in "
                        f"{self.name(first)}."
                    )
                if not each[column].agrees(expected):
                    raise ValueError(
                        f"File {self.name(file)}, column {column!r}: holds {each[column].text}, "
                        f"but {expected.text} in {self.name(first)}; a column must have one type "
                        "in all files."
                    )
            self._fixed.pop(column, None)
            kinds.append(reduce(KeyType.joined, (each[column] for each in found)))
        return tuple(kinds)

    def _constant(self, name: str, text: str | None, n: int) -> Any:
        """A key that is the same for all rows of a file."""
        pa = import_pyarrow()
        is_text = self._fixed[name].dtype.kind == "U"
        key = pa.array([text if text is None or is_text else int(text)])
        codes = pa.array(np.zeros(n, dtype=np.int32), mask=np.full(n, text is None))
        return pa.DictionaryArray.from_arrays(codes, key)
