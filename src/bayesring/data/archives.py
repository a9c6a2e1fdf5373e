"""Safe reading of untrusted archives of plain arrays: everything is checked before it is used.

The sizes an archive declares are compared with the bytes actually present before memory is
allocated, so reading never takes much more memory than the size of the file. Every rejection is a
ValueError.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zipfile
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.wording import as_text, shown

MOST_MEMBERS = 100_000
LONGEST_NAME = 200
LARGEST_DESCRIPTION = 1 << 20
"""Maximum size in bytes of the description, which holds no array."""
ENCRYPTED = 0x1
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    r"\{'descr': '([<>|][biufcUMm][0-9]{1,9}(?:\[[0-9]{0,9}[a-zA-Z]{1,2}\])?)', "
    r"'fortran_order': (True|False), 'shape': \(((?:[0-9]{1,18},? ?){0,64})\), \} *\n"
)
"""The only form in which NumPy writes the header of an array of plain numbers, dates or text."""
LAST_CHARACTER = 0x10FFFF

BROKEN = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What `zipfile`, `json` and NumPy raise for damaged files."""


class ArchiveContents(NamedTuple):
    """Contents of an archive."""

    description: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file opened for reading; a folder, pipe or device is rejected without blocking."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a pathlib.Path, got {shown(path)}.")
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{as_text(os.fspath(path))} does not exist.")
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is not a regular file")
    return open(path, "rb")


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """A zip archive whose members are stored uncompressed and fit into the file."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        raise ValueError("it is empty")
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ValueError(f"it has {len(members):,} members, more than {MOST_MEMBERS:,}")
    names = set()
    for member in members:
        name = member.filename
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise ValueError(f"a member has the name {name[:LONGEST_NAME]!r}")
        if name in names:
            raise ValueError(f"it has two members {name!r}")
        names.add(name)
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & ENCRYPTED:
            raise ValueError(f"{name!r} is compressed or encrypted, but members are stored plainly")
        if member.file_size != member.compress_size:
            raise ValueError(f"{name!r} has two different sizes")
    declared = sum(member.file_size for member in members)
    if declared > size:
        raise ValueError(f"its members declare {declared:,} bytes, but the file has {size:,}")
    return archive


def read_description(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    """A JSON object without NaN or duplicate keys."""
    size = archive.getinfo(name).file_size
    if size > LARGEST_DESCRIPTION:
        raise ValueError(f"{name} has {size:,} bytes, more than {LARGEST_DESCRIPTION:,}")
    found = json.loads(
        archive.read(name).decode("utf-8"),
        parse_constant=_constant,
        object_pairs_hook=_object,
    )
    if not isinstance(found, dict):
        raise ValueError(f"{name} is not a JSON object")
    return found


def read_arrays(archive: zipfile.ZipFile, description: str) -> dict[str, NDArray[Any]]:
    """All arrays by name; anything that is neither an array nor the description is rejected."""
    arrays = {}
    for name in archive.namelist():
        if name == description:
            continue
        if not name.endswith(".npy"):
            raise ValueError(f"{name!r} is not an array")
        arrays[name.removesuffix(".npy")] = parse_array(archive.read(name), name)
    return arrays


def parse_array(content: bytes, name: str) -> NDArray[Any]:
    """The array of an npy file, as a copy in native byte order."""
    if not content.startswith(MAGIC) or len(content) < 10:
        raise ValueError(f"{name!r} does not begin like a NumPy array")
    begin = 10 + int.from_bytes(content[8:10], "little")
    header = HEADER.fullmatch(content[10:begin].decode("latin-1"))
    if header is None or begin > len(content):
        raise ValueError(f"{name!r} has no header of a plain array")
    try:
        dtype = np.dtype(header[1])
    except (TypeError, ValueError):
        raise ValueError(f"{name!r} has the unknown type {header[1]}") from None
    shape = tuple(int(number) for number in re.findall(r"[0-9]+", header[3]))
    declared, found = dtype.itemsize * prod(shape), len(content) - begin
    if declared != found or not dtype.itemsize:
        raise ValueError(
            f"{name!r} declares the shape {shape} of {dtype}, {declared:,} bytes, but holds "
            f"{found:,}"
        )
    if max(shape, default=0) > 2**31:  # for an empty array
        raise ValueError(f"{name!r} declares the shape {shape}")
    flat = np.frombuffer(content, dtype, offset=begin)
    _check_bits(flat, name)
    order: Any = "F" if header[2] == "True" else "C"
    return np.array(flat.reshape(shape, order=order), dtype=dtype.newbyteorder("="))


def shape_of(head: bytes, name: str) -> tuple[int, ...]:
    """The shape of an array from the first bytes of its npy file; at least one number."""
    begin = 10 + int.from_bytes(head[8:10], "little")
    header = HEADER.fullmatch(head[10:begin].decode("latin-1"))
    if not head.startswith(MAGIC) or header is None:
        raise ValueError(f"{name!r} has no header of a plain array")
    shape = tuple(int(number) for number in re.findall(r"[0-9]+", header[3]))
    if not shape:
        raise ValueError(f"{name!r} has no rows")
    return shape


def _check_bits(flat: NDArray[Any], name: str) -> None:
    """Reject bits that do not represent a character or boolean."""
    kind, largest = flat.dtype.kind, 0
    if kind == "U" and flat.size:
        largest = int(flat.view(f"{flat.dtype.byteorder.replace('|', '=')}u4").max())
    if kind == "b" and flat.size:
        largest = LAST_CHARACTER * int(flat.view(np.uint8).max())
    if largest > LAST_CHARACTER:
        raise ValueError(
            f"{name!r} holds bits that are not valid {'text' if kind == 'U' else 'booleans'}"
        )


def _constant(name: str) -> float:
    """Allow infinity, which a prior may use, but not NaN."""
    if name == "Infinity":
        return float("inf")
    raise ValueError(f"the description holds {name}, which is not a number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the description has two entries with the same name")
    return found
