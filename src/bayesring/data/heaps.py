"""Whether the texts of an HDF5 file, and so of NetCDF, are stored as they should be.

Texts of any length are in collections, which list objects with their sizes. HDF5 goes through a
damaged list without end, and nothing can stop it then, so lists are checked before it reads.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

MARK = b"GCOL\x01\0\0\0"
"""How a collection begins; its size in bytes follows."""
HEAD = 16
"""Bytes before the first object, and before the data of each."""


def check_heaps(path: str | os.PathLike[str]) -> None:
    """Raise a ValueError if a collection of texts is damaged."""
    if not Path(path).stat().st_size:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin = content.find(MARK)
        while begin >= 0:
            _check_collection(content, begin)
            begin = content.find(MARK, begin + len(MARK))


def _check_collection(content: mmap.mmap, begin: int) -> None:
    head = content[begin : begin + HEAD]
    end = begin + int.from_bytes(head[len(MARK) :], "little")
    if len(head) < HEAD or end > len(content):
        raise ValueError(f"the texts at byte {begin:,} are cut off")
    place = begin + HEAD
    while end - place >= HEAD:
        number, size = struct.unpack_from("<H6xQ", content, place)
        if number == 0:  # what is free, its head included
            size -= HEAD
        following = place + HEAD + (size + 7) // 8 * 8
        if size < 0 or following > end:
            raise ValueError(f"the texts at byte {begin:,} are damaged")
        if number == 0:
            return
        place = following
