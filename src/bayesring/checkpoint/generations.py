"""Checksummed files of plain data and arrays, two generations of each.

A file is a mark, the length of a JSON text, the text, the bytes of the arrays that it describes,
and a SHA-256 of all that comes before it. It is written to a temporary name, flushed and renamed;
the one before it becomes the older generation. Wherever a process is killed, one of the two is
whole.
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
"""Bytes of the length of the text, and of the checksum."""
NEW, OLD = ".state", ".previous"
"""Extensions of the two generations."""


class Damaged(ValueError):
    """A file that is not as it was written."""


def write(folder: Path, name: str, plain: Any, arrays: list[NDArray[Any]]) -> None:
    """Write a new generation; the one before is kept."""
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
        if place.exists():
            os.replace(place, folder / (name + OLD))


def read(folder: Path, name: str) -> tuple[Any, list[NDArray[Any]]] | None:
    """The newest generation that is whole, or None if nothing was ever written.

    Raises
    ------
    Damaged : files are there, but none of them is whole
    """
    problem: Damaged | None = None
    for extension in (NEW, OLD):
        try:
            return _parse((folder / (name + extension)).read_bytes(), name)
        except FileNotFoundError:
            continue
        except (Damaged, OSError) as error:
            problem = problem or Damaged(f"{folder / (name + extension)} is damaged: {error}")
    if problem is not None:
        raise problem
    return None


def clear_leftovers(folder: Path) -> None:
    """Remove what killed processes left behind in a folder that nobody else uses now."""
    remove_temporaries(folder, lambda name: name.endswith((NEW, OLD)), seconds=0.0)


def _is_fortran(array: NDArray[Any]) -> bool:
    """Whether the bytes go column by column: sums may depend on it."""
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _parse(content: bytes, name: str) -> tuple[Any, list[NDArray[Any]]]:
    """Plain data and arrays, if the checksum is right and it is the file of that name."""
    if not content.startswith(MARK):
        raise Damaged("it does not begin as a checkpoint.")
    body = memoryview(content)[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise Damaged("its checksum is wrong.")
    begin = len(MARK) + LENGTH
    end = begin + int.from_bytes(content[len(MARK) : begin], "little")
    described = json.loads(content[begin:end])
    if described["name"] != name:
        raise Damaged(f"it holds {described['name']}, not {name}.")
    arrays = []
    for each in described["arrays"]:
        dtype, shape = np.dtype(each["dtype"]), tuple(each["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(body, dtype, count, end)
        order: Any = "F" if each["fortran"] else "C"
        arrays.append(flat.reshape(shape, order=order).copy(order=order))
        end += count * dtype.itemsize
    return described["tree"], arrays
