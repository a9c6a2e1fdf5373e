"""Checksummed files of plain data and arrays, kept in two generations.

A file consists of a marker, the length of a JSON header, the header, the bytes of the arrays it
describes, and the SHA-256 of everything before. It is written under a temporary name, flushed and
renamed; its predecessor becomes the older generation. Wherever the process is killed, at least one
of the two is intact.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.writing import remove_temporaries, replacing

MARK = b"bayesring checkpoint 2\n"
LENGTH, DIGEST = 8, 32
"""Size in bytes of the header length and of the checksum."""
NEW, OLD = ".state", ".previous"
"""Extensions of the two generations."""


class Damaged(ValueError):
    """A file that cannot be used; the message goes on after its name."""


def write(folder: Path, name: str, plain: Any, arrays: list[NDArray[Any]]) -> None:
    """Write a new generation and keep the previous one."""
    described = [
        {"dtype": each.dtype.str, "shape": each.shape, "fortran": _is_fortran(each)}
        for each in arrays
    ]
    text = json.dumps({"name": name, "tree": plain, "arrays": described}).encode()
    place, total = folder / (name + NEW), hashlib.sha256()
    with replacing(place) as temporary:
        with open(temporary, "wb") as file:
            for part in (MARK, len(text).to_bytes(LENGTH, "little"), text):
                total.update(part)
                file.write(part)
            for each in arrays:
                part = each.tobytes(order="A")
                total.update(part)
                file.write(part)
            file.write(total.digest())
            file.flush()
            os.fsync(file.fileno())
        if _is_whole(place):  # a damaged one must not take the place of one that is not
            os.replace(place, folder / (name + OLD))


def read(folder: Path, name: str) -> tuple[Any, list[NDArray[Any]]] | None:
    """The newest intact generation, or None if nothing has been written.

    Raises
    ------
    Damaged : files exist, but none is intact
    """
    problem: Damaged | None = None
    for extension in (NEW, OLD):
        try:
            return _parse((folder / (name + extension)).read_bytes(), name)
        except FileNotFoundError:
            continue
        except (Damaged, OSError) as error:
            told = f"cannot be read: {error}." if isinstance(error, OSError) else error
            problem = problem or Damaged(f"{folder / (name + extension)} {told}")
    if problem is not None:
        raise problem
    return None


def clear_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed processes; the folder must be locked by this one."""
    remove_temporaries(folder, lambda name: name.endswith((NEW, OLD)), seconds=0.0)


def _is_fortran(array: NDArray[Any]) -> bool:
    """Whether the array is stored by column, which can affect the last bit of a sum."""
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _is_whole(path: Path) -> bool:
    """Whether there is such a file, and its checksum is right."""
    try:
        _body(path.read_bytes())
    except (Damaged, OSError):
        return False
    return True


def _body(content: bytes) -> memoryview:
    """All but the checksum, after verifying it."""
    if not content.startswith(MARK):
        if content.startswith(MARK.rstrip(b"0123456789\n")):
            raise Damaged("was written by another version of bayesring.")
        raise Damaged("is damaged: it does not begin as a checkpoint.")
    body = memoryview(content)[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise Damaged("is damaged: its checksum is wrong.")
    return body


def _parse(content: bytes, name: str) -> tuple[Any, list[NDArray[Any]]]:
    """Plain data and arrays of the file of that name, after verifying its checksum."""
    body = _body(content)
    begin = len(MARK) + LENGTH
    end = begin + int.from_bytes(content[len(MARK) : begin], "little")
    described = json.loads(content[begin:end])
    if described["name"] != name:
        raise Damaged(f"is damaged: it holds {described['name']}, not {name}.")
    arrays = []
    for each in described["arrays"]:
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(body, dtype, count, end)
        order: Any = "F" if each["fortran"] else "C"
        arrays.append(flat.reshape(shape, order=order).copy(order=order))
        end += count * dtype.itemsize
    return described["tree"], arrays
