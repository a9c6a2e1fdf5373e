"""What can be told of a Parquet data set before a row is read: files, folders, footers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from bayesring.checks import import_pyarrow
from bayesring.data.parquet.arrowkeys import KeyType
from bayesring.data.parquet.thrift import RowGroup, read_footer

ENDINGS = (".parquet", ".parq", ".pq")
DICTIONARY = 1 << 20
"""Bytes at which writers of Parquet give up a dictionary of texts."""
CODE = 3
"""Bytes, at the most, that a row's place in such a dictionary takes."""
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How a folder's name says that the key is missing."""


def find_files(path: Path) -> list[Path]:
    """All files of a data set in the order of their paths; hidden ones are left out."""
    if path.is_file():
        return [path]
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    files = [
        each
        for each in path.rglob("*")
        if each.suffix.lower() in ENDINGS
        and each.is_file()
        and not any(part[0] in "._" for part in each.relative_to(path).parts)
    ]
    if not files:
        raise FileNotFoundError(f"Folder {path} holds no file that ends in {', '.join(ENDINGS)}.")
    return sorted(files, key=lambda each: each.relative_to(path).parts)


def partition_of(path: Path) -> dict[str, str | None]:
    """Keys and values that the names of folders hold; None for a missing key."""
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {unquote(name): None if text == NO_PARTITION else unquote(text) for name, text in pairs}


def partition_kinds(partitions: list[dict[str, str | None]]) -> dict[str, KeyType]:
    """Integers if all folders are named after integers, or text."""
    kinds = {}
    for name in {name for each in partitions for name in each}:
        texts = [text for each in partitions if (text := each.get(name)) is not None]
        whole = all(text.lstrip("-").isdecimal() and text == str(int(text)) for text in texts)
        kinds[name] = (
            KeyType("int64", np.dtype("i8")) if whole else KeyType("string", np.dtype("U"))
        )
    return kinds


def check_value_type(kind: Any, name: str, column: str) -> None:
    """Values are numbers or truth values, or all of them are missing."""
    types = import_pyarrow().types
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    ):
        raise ValueError(f"File {name}, column {column!r}: holds {kind}, but numbers are required.")


def check_footer(path: Path, name: str) -> list[RowGroup]:
    """The row groups of a file whose footer is whole and whose pages are all there."""
    try:
        return read_footer(path)
    except (ValueError, OSError) as error:
        raise not_whole(name, first_line(error)) from None


def not_whole(name: str, why: str) -> ValueError:
    """The error for a file that is not, or no longer, one of Parquet."""
    return ValueError(f"File {name} is no whole Parquet file: it is cut off or damaged ({why}).")


def is_dictionary(groups: Sequence[RowGroup], name: str) -> bool:
    """Whether all texts of a column are stored as places in a dictionary, judged by its size.

    Where there are too many, Parquet ends the dictionary and goes on with plain texts. These are
    quickest to read as they are, and dictionaries as dictionaries.
    """
    columns = (column for group in groups for column in group.columns if column.path == name)
    return all(
        column.has_dictionary and column.bytes_uncompressed < DICTIONARY + CODE * column.n_values
        for column in columns
    )


def first_line(error: Exception) -> str:
    """What an error of Arrow says first; the rest is for its developers."""
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
