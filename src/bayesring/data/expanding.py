"""How far compressed files may expand: a file of a few megabytes can hold many gigabytes of zeros.

Sizes are compared before memory is taken: those that a file declares, or those that its pieces have
had so far. Compressed tables are 5 to 50 times smaller than plain ones, with constant columns 200.
"""

from __future__ import annotations

import gzip
import struct
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from bayesring.checks import check_fits, import_pyarrow
from bayesring.data.parquet.thrift import RowGroup

UNSUSPECTED = 2**30
"""Bytes that any file may expand to."""
RATIO = 300
"""How many times larger than the file its contents may be beyond that."""
PIECE = 2**24
"""Bytes expanded at a time."""
NARROW = 4
"""Bytes in memory of one number or one text of Parquet, at least."""
PLAIN = -1
"""Length of a buffer of Arrow that is not compressed, though others are."""
DICTIONARY, BATCH = 2, 3
"""Kinds of messages of Arrow that hold texts to choose from, or rows."""
FILE_HEAD = 8
"""Bytes before the first message of an Arrow file."""


def check_expanded(path: str, expanded: int, instead: str) -> None:
    """Raise a ValueError if the contents of a file or folder are suspiciously much larger.

    `instead` says what to do if they are what they should be.
    """
    if expanded <= UNSUSPECTED:
        return
    stored = _size(Path(path))
    if expanded > RATIO * stored:
        raise ValueError(
            f"{path} has {stored / 2**20:,.1f} MiB, but expands to {expanded / 2**20:,.0f} MiB or "
            f"more, while {RATIO} times as much as the file, or {UNSUSPECTED >> 20:,} MiB, are "
            f"allowed; if it is what it should be, {instead}."
        )


def unzipped(path: str, in_memory: int, instead: str) -> bytes:
    """The contents of a .gz file, of which each byte will take `in_memory` bytes."""
    pieces, total = [], 0
    with gzip.open(path) as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
            total += len(piece)
            check_expanded(path, total, "unpack it first")
            if total > UNSUSPECTED:
                check_fits(in_memory * total, f"the table {path}", instead)
    return b"".join(pieces)


def check_zipped(
    path: str, archive: ZipFile, instead: str, members: list[str] | None = None
) -> int:
    """Check the sizes that members of an archive declare, of which no more is ever read."""
    size = sum(
        each.file_size for each in archive.infolist() if members is None or each.filename in members
    )
    check_expanded(path, size, instead)
    return size


def size_of_parquet(path: str, groups: list[RowGroup]) -> int:
    """Bytes that the rows of a Parquet file take in memory; equal ones may take no space in it.

    Texts that are stored once for many rows are counted if they might be too many.
    """
    columns = [column for group in groups for column in group.columns]
    size = sum(max(each.bytes_uncompressed, NARROW * each.n_values) for each in columns)
    largest = {
        each.path
        for each in columns
        if each.has_dictionary and each.n_values * each.bytes_uncompressed > UNSUSPECTED
    }
    return max(size, _size_of_texts(path, largest)) if largest else size


def _size_of_texts(path: str, names: set[str]) -> int:
    """Bytes of the texts of some columns, where they are texts, without repeating them."""
    pa = import_pyarrow()
    from pyarrow import compute, parquet

    size = 0
    with parquet.ParquetFile(path, read_dictionary=sorted(names)) as file:
        own = [each.name for each in file.schema_arrow if pa.types.is_dictionary(each.type)]
        chosen = [name for name in own if name in names]
        for batch in file.iter_batches(columns=chosen) if chosen else ():
            batch.validate(full=True)
            for column in batch.columns:
                if not pa.types.is_primitive(column.dictionary.type):
                    lengths = compute.binary_length(column.dictionary)
                    size += compute.sum(lengths.take(column.indices)).as_py() or 0
    return size


def check_arrow(path: str) -> None:
    """Check the lengths that compressed buffers of an Arrow file declare.

    What is damaged is left to Arrow, which says so.
    """
    pa = import_pyarrow()
    total = 0
    with (
        suppress(pa.ArrowException, OSError, struct.error, IndexError),
        pa.memory_map(path) as file,
    ):
        file.seek(FILE_HEAD)
        for message in pa.ipc.MessageReader.open_stream(file):
            total += _declared(message.metadata.to_pybytes(), message.body)
    check_expanded(path, total, "save it without compression")


def check_variable(path: str, variable: Any) -> None:
    """Check the size of a variable of a NetCDF file or Zarr store that is not loaded yet."""
    size = prod(variable.shape) * variable.dtype.itemsize
    check_expanded(path, size, "save it without compression")


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def _declared(message: bytes, body: Any) -> int:
    """Bytes of the rows of a message of Arrow, whose description is a FlatBuffer."""
    if body is None or not len(body):
        return 0
    root = struct.unpack_from("<I", message)[0]
    kind, header = _field(message, root, 1), _field(message, root, 2)
    if not kind or not header or message[kind] not in (DICTIONARY, BATCH):
        return len(body)
    batch = _followed(message, header)
    if message[kind] == DICTIONARY:
        batch = _followed(message, _field(message, batch, 1))
    buffers, compression = _field(message, batch, 2), _field(message, batch, 3)
    if not buffers or not compression:
        return len(body)
    begin = _followed(message, buffers)
    total = 0
    for number in range(struct.unpack_from("<I", message, begin)[0]):
        place, length = struct.unpack_from("<qq", message, begin + 4 + 16 * number)
        if length < 8:
            continue
        declared = int.from_bytes(body[place : place + 8].to_pybytes(), "little", signed=True)
        total += length if declared == PLAIN else max(declared, 0)
    return total


def _followed(message: bytes, place: int) -> int:
    """Where an offset in a FlatBuffer leads to."""
    return int(place + struct.unpack_from("<I", message, place)[0])


def _field(message: bytes, table: int, number: int) -> int:
    """Place of a field of a table of a FlatBuffer; zero if it is left out."""
    places = table - struct.unpack_from("<i", message, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", message, places)[0]:
        return 0
    own = struct.unpack_from("<H", message, places + 4 + 2 * number)[0]
    return table + own if own else 0
