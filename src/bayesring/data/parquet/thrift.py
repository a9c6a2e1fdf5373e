"""Safe reading of the untrusted footer of a Parquet file.

With some damaged footers, Arrow aborts the whole process when asked about a column of a row group.
This module therefore reads what must be known before rows are read: a Thrift struct in the compact
protocol, parsed with bounds checks and a depth limit. Everything else is skipped. Headers of pages
are looked at for their sizes alone, since Arrow clears as much memory as they say.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

MAGIC = b"PAR1"
TAIL = 8
"""Bytes after the footer: its length and the magic number."""
DEEPEST = 32
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
VARINTS = (4, 5, 6)
LARGEST = 2**63 - 1

COLUMN: dict[int, Any] = {3: [BINARY], 5: 6, 6: 6, 7: 6, 9: 6, 11: 6}
"""Column fields: path, values, uncompressed and compressed bytes, page and dictionary offsets."""
FOOTER: dict[int, Any] = {
    2: [{4: BINARY, 5: 5}],
    3: 6,
    4: [{1: [{3: COLUMN}], 3: 6}],
}
"""Required fields by number: a type, a struct of fields, or a list of either."""
PAGE: dict[int, Any] = {2: 5, 3: 5}
"""Fields of a page: bytes uncompressed and in the file."""
HEAD, LARGE_PAGE, LARGE_FILE = 4096, 2**26, 2**28
"""Bytes of a header that are looked at; uncompressed, of pages that are not suspected; of files
that may have such pages."""
MOST_PAGES = 100_000
"""Pages of a file that are looked at; files of so few bytes have fewer, unless they are made to."""


class ColumnChunk(NamedTuple):
    """One column of one row group."""

    path: str
    """Names from the root of the schema, separated by dots."""
    n_values: int
    bytes_uncompressed: int
    has_dictionary: bool
    begin: int
    end: int
    """Its place in the file."""


class RowGroup(NamedTuple):
    """The smallest unit that can be read on its own."""

    n_rows: int
    columns: tuple[ColumnChunk, ...]


def read_footer(path: str | os.PathLike[str]) -> list[RowGroup]:
    """The row groups of a Parquet file; a ValueError says what is wrong with its footer."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(MAGIC) + TAIL:
            raise ValueError(f"it has only {size} bytes")
        begins = file.read(len(MAGIC)) == MAGIC
        file.seek(size - TAIL)
        tail = file.read(TAIL)
        if not begins or tail[4:] != MAGIC:
            raise ValueError("it does not begin and end as a Parquet file does")
        length = int.from_bytes(tail[:4], "little")
        last = size - TAIL - length
        if last < len(MAGIC):
            raise ValueError(f"its footer of {length:,} bytes is longer than the file")
        file.seek(last)
        groups = _row_groups(Walk(file.read(length)).struct(FOOTER), last)
        left = iter(range(MOST_PAGES))
        for number, group in enumerate(groups if size < LARGE_FILE else ()):
            for column in group.columns:
                _check_pages(file, column, number, left)
    return groups


def sum_of_footer(path: str | os.PathLike[str]) -> int:
    """A checksum of the footer and its length; of anything else, of the last bytes."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - TAIL, 0))
        length = int.from_bytes(file.read(TAIL)[:4], "little")
        file.seek(max(size - TAIL - length, 0))
        return zlib.crc32(file.read(length + TAIL))


def _row_groups(footer: dict[int, Any], last: int) -> list[RowGroup]:
    """Row groups consistent with each other, the schema and a file whose pages end at `last`."""
    schema = _wanted(footer, 2, "schema")
    leaves = sum(not element.get(5) for element in schema[1:])
    groups = []
    for number, group in enumerate(_wanted(footer, 4, "row groups")):
        columns = [_column(each, number, last) for each in _wanted(group, 1, "columns")]
        n_rows = _counted(group, 3, f"rows of row group {number}")
        if len(columns) != leaves:
            raise ValueError(
                f"row group {number} has {len(columns)} columns, but the schema has {leaves}"
            )
        groups.append(RowGroup(n_rows, tuple(columns)))
    n_rows = _counted(footer, 3, "rows")
    if sum(group.n_rows for group in groups) != n_rows:
        raise ValueError(f"its row groups do not have {n_rows:,} rows together")
    return groups


def _column(chunk: dict[int, Any], group: int, last: int) -> ColumnChunk:
    own = _wanted(chunk, 3, "columns")
    path = b".".join(_wanted(own, 3, "names of columns")).decode("utf-8", errors="replace")
    where = f"column {path[:100]!r} in row group {group}"
    begin = _counted(own, 9, f"the place of {where}")
    if own.get(11):
        begin = min(begin, _counted(own, 11, f"the place of {where}"))
    end = begin + _counted(own, 7, f"the bytes of {where}")
    if end > last:
        raise ValueError(
            f"it has {last:,} bytes before its footer, which refers to {end:,} or more"
        )
    n_values = _counted(own, 5, f"the values of {where}")
    n_bytes = _counted(own, 6, f"the bytes of {where}")
    return ColumnChunk(path, n_values, n_bytes, bool(own.get(11)), begin, end)


def _check_pages(file: BinaryIO, column: ColumnChunk, group: int, left: Iterator[int]) -> None:
    """Refuse a page that claims to be larger than all pages of its column together.

    As many are looked at as there are numbers `left`. What else may be wrong with a page, or a
    header too long to be looked at, is left to Arrow.
    """
    place = column.begin
    while place < column.end and next(left, None) is not None:
        file.seek(place)
        head = Walk(file.read(min(HEAD, column.end - place)))
        try:
            page = head.struct(PAGE)
        except ValueError:
            return
        unpacked, packed = page.get(2, 0), page.get(3, 0)
        all_unpacked, all_packed = column.bytes_uncompressed, column.end - column.begin
        for claimed, all_pages in ((unpacked, all_unpacked), (packed, all_packed)):
            if claimed > max(all_pages, LARGE_PAGE):
                raise ValueError(
                    f"a page of column {column.path[:100]!r} in row group {group} claims to have "
                    f"{claimed:,} bytes, but all of them have {all_pages:,}"
                )
        if packed <= 0:
            return
        place += head.place + packed


def _wanted(struct: dict[int, Any], field: int, what: str) -> Any:
    if field not in struct:
        raise ValueError(f"its footer lacks the {what}")
    return struct[field]


def _counted(struct: dict[int, Any], field: int, what: str) -> int:
    number = struct.get(field, -1)
    if not 0 <= number <= LARGEST:
        raise ValueError(f"its footer does not say {what}, or says a number below zero")
    return int(number)


class Walk:
    """Bounds-checked reader of bytes in the compact protocol."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    @property
    def place(self) -> int:
        """Bytes read so far."""
        return self._place

    def struct(self, wanted: dict[int, Any], depth: int = 0) -> dict[int, Any]:
        """The required fields of a struct that are present, by number."""
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if not head:
                return found
            kind = head & 0x0F
            number = number + (head >> 4) if head >> 4 else self._signed()
            want = wanted.get(number)
            if want is None or number in found:
                self._skip(kind, depth + 1)
            else:
                found[number] = self._value(want, kind, depth + 1)

    def _value(self, want: Any, kind: int, depth: int) -> Any:
        """A value of the required type; other types are rejected."""
        if isinstance(want, dict):
            _expect(kind == STRUCT)
            return self.struct(want, depth)
        if isinstance(want, list):
            _expect(kind == LIST)
            n, kind = self._list_head()
            return [self._value(want[0], kind, depth + 1) for _ in range(n)]
        _expect(kind == want)
        return self._bytes(self._unsigned()) if want == BINARY else self._signed()

    def _skip(self, kind: int, depth: int) -> None:
        if depth > DEEPEST:
            raise ValueError("its footer is nested too deeply")
        if kind in VARINTS:
            self._unsigned()
        elif kind == BINARY:
            self._move(self._unsigned())
        elif kind == STRUCT:
            while head := self._byte():
                if not head >> 4:
                    self._unsigned()
                self._skip(head & 0x0F, depth + 1)
        elif kind in (LIST, SET):
            n, inner = self._list_head()
            self._skip_items(n, (inner,), depth)
        elif kind == MAP:
            n = self._unsigned()
            kinds = self._byte() if n else 0
            self._skip_items(n, (kinds >> 4, kinds & 0x0F), depth)
        elif kind == DOUBLE:
            self._move(8)
        elif kind == BYTE:
            self._move(1)
        else:
            _expect(kind in (TRUE, FALSE))

    def _skip_items(self, n: int, kinds: tuple[int, ...], depth: int) -> None:
        """Items of a list or map, which take at least one byte each."""
        self._room(n)
        for _ in range(n):
            for kind in kinds:
                if kind in (TRUE, FALSE):
                    self._move(1)
                else:
                    self._skip(kind, depth + 1)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._unsigned()
        self._room(n)
        return n, head & 0x0F

    def _room(self, n: int) -> None:
        if n > len(self._content) - self._place:
            raise ValueError("its footer ends too early")

    def _move(self, n: int) -> None:
        self._room(n)
        self._place += n

    def _bytes(self, n: int) -> bytes:
        self._move(n)
        return self._content[self._place - n : self._place]

    def _byte(self) -> int:
        self._move(1)
        return self._content[self._place - 1]

    def _unsigned(self) -> int:
        """A varint of at most ten bytes."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ValueError("its footer holds a number that is too long")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


def _expect(holds: bool) -> None:
    if not holds:
        raise ValueError("its footer holds fields of a wrong type")
