"""Whether the texts of an HDF5 file, and so of NetCDF, are stored as they should be.

Texts of any length are in collections, which list objects with their sizes. HDF5 goes through a
damaged list without end, and nothing can stop it then, so lists are checked before it reads.

Where such a text belongs, only its length and its place in a collection are stored: a reference.
HDF5 clears as much memory as a reference asks for, up to 4 GiB, before it looks whether there is
such a text, so lengths beyond the size of the file are refused too.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARK = b"GCOL\x01\0\0\0"
"""How a collection begins; its size in bytes follows."""
HEAD = 16
"""Bytes before the first object, and before the data of each."""
REFERENCE = np.dtype([("length", "<u4"), ("address", "<u8"), ("number", "<u4")])
"""How a text is referred to: its length, and its collection with the number of the object."""
SEQUENCE = 9
"""Class of texts and lists of any length, among the types of a file."""
MOST_SEARCHED = 2**31
"""Bytes to go through for attributes, a second of work; in larger files they are not checked."""
DEFLATE = 1
"""Number of the only filter that is used on references; HDF5 skips others where it can."""


def check_heaps(path: str | os.PathLike[str]) -> None:
    """Raise a ValueError if a collection of texts, or a reference to one, is damaged."""
    if not Path(path).stat().st_size:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin = content.find(MARK)
        while begin >= 0:
            _check_collection(content, begin)
            begin = content.find(MARK, begin + len(MARK))
        for name, found in _references(path, content):
            longest = int(found["length"].max(initial=0))
            if longest > len(content):
                raise ValueError(
                    f"{name!r} refers to a text of {longest:,} bytes, but the file has "
                    f"{len(content):,}"
                )


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
        place = following


def _references(
    path: str | os.PathLike[str], content: mmap.mmap
) -> Iterator[tuple[str, NDArray[Any]]]:
    """The references of all variables and attributes that are stored in a way known here.

    What HDF5 cannot open is left to the reader of the file, which says so.
    """
    try:
        import h5py
    except ImportError:
        return
    try:
        with h5py.File(path, "r") as file:
            objects: list[Any] = [file]
            file.visititems(lambda _, each: objects.append(each))
            names: set[str] = set()
            for each in objects:
                names.update(_names_of_lists(h5py, each))
                if isinstance(each, h5py.Dataset) and _is_list(h5py, each.id.get_type()):
                    for piece in _pieces(h5py, each.id, content):
                        n = len(piece) // REFERENCE.itemsize
                        yield str(each.name), np.frombuffer(piece, REFERENCE, n)
    except (OSError, RuntimeError, KeyError, TypeError, AttributeError, zlib.error):
        return
    if len(names) * len(content) <= MOST_SEARCHED:
        for name in sorted(names):
            for own in _of_attribute(name, content):
                yield name, own


def _is_list(h5py: Any, kind: Any) -> bool:
    """Whether a type of HDF5 is text or a list of any length."""
    if kind.get_class() == h5py.h5t.STRING:
        return bool(kind.is_variable_str())
    return bool(kind.get_class() == h5py.h5t.VLEN)


def _names_of_lists(h5py: Any, owner: Any) -> Iterator[str]:
    """Names of the attributes of an object that are of such a type, without reading them."""
    for place in range(h5py.h5a.get_num_attrs(owner.id)):
        attribute = h5py.h5a.open(owner.id, index=place)
        if _is_list(h5py, attribute.get_type()):
            yield attribute.name.decode("utf-8", "surrogateescape")


def _of_attribute(name: str, content: mmap.mmap) -> Iterator[NDArray[Any]]:
    """References of the attributes of a name: wherever the message is that describes one.

    Such a message has the sizes of a name, a type and a shape, then these, and then the data.
    """
    text = name.encode("utf-8", "surrogateescape") + b"\0"
    place = content.find(text)
    while place >= 0:
        for version, before in ((1, 8), (2, 8), (3, 9)):
            head = content[max(place - before, 0) : place]
            if len(head) < before or head[0] != version:
                continue
            sizes = struct.unpack_from("<3H", head, 2)
            if sizes[0] != len(text):
                continue
            aligned = [(size + 7) // 8 * 8 if version == 1 else size for size in sizes]
            kind, shape = place + aligned[0], place + sum(aligned[:2])
            begin = place + sum(aligned)
            if begin < len(content) and content[kind] & 0x0F == SEQUENCE:
                n = _entries(content[shape:begin])
                if begin + n * REFERENCE.itemsize <= len(content):
                    yield np.frombuffer(content[begin : begin + n * REFERENCE.itemsize], REFERENCE)
        place = content.find(text, place + 1)


def _entries(shape: bytes) -> int:
    """Number of entries of a shape, as messages describe it: version, modes, flags, sizes."""
    if len(shape) < 4:
        return 0
    begin, modes = (8 if shape[0] == 1 else 4), shape[1]
    sizes = shape[begin : begin + 8 * modes]
    if len(sizes) < 8 * modes:
        return 0
    return int(np.prod([float(size) for size in np.frombuffer(sizes, "<u8")]))


def _pieces(h5py: Any, variable: Any, content: mmap.mmap) -> Iterator[bytes]:
    """The stored bytes of a variable, its filters undone; none if they are not known here."""
    settings = variable.get_create_plist()
    if settings.get_layout() == h5py.h5d.CONTIGUOUS and variable.get_offset() is not None:
        begin = variable.get_offset()
        yield content[begin : begin + variable.get_storage_size()]
    if settings.get_layout() != h5py.h5d.CHUNKED:
        return
    filters = [settings.get_filter(place)[0] for place in range(settings.get_nfilters())]
    size = int(np.prod(settings.get_chunk())) * REFERENCE.itemsize
    for number in range(variable.get_num_chunks()):
        chunk = variable.get_chunk_info(number)
        piece = content[chunk.byte_offset : chunk.byte_offset + chunk.size]
        used = [kind for place, kind in enumerate(filters) if not chunk.filter_mask >> place & 1]
        if used == [DEFLATE]:
            yield zlib.decompressobj().decompress(piece, size)
        elif not used:
            yield piece
