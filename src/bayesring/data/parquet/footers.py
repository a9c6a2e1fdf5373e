"""What is known about a Parquet data set before a row is read: files, folders, footers."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from bayesring.checks import import_pyarrow
from bayesring.data.parquet.arrowkeys import KeyType
from bayesring.data.parquet.thrift import RowGroup, read_footer, sum_of_footer
from bayesring.wording import reason_of

ENDINGS = (".parquet", ".parq", ".pq")
DICTIONARY = 1 << 20
"""Size in bytes at which Parquet writers abandon a dictionary of texts."""
CODE = 3
"""Maximum bytes that a row's index into such a dictionary takes."""
NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Folder name that means a missing key."""


def is_pattern(path: str) -> bool:
    """Whether a path has wildcards and is not the name of a file itself."""
    return glob.has_magic(path) and not Path(path).exists()


def base_of(path: str) -> Path:
    """The folder below which names of folders are columns."""
    if not is_pattern(path):
        return Path(path)
    parts = Path(path).parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def find_files(path: Path) -> list[Path]:
    """All files of a data set in the order of their paths, without hidden ones."""
    if path.is_file():
        return [path]
    base, pattern = base_of(str(path)), is_pattern(str(path))
    if not pattern and not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    files = [
        each
        for each in matching(str(path))
        if each.suffix.lower() in ENDINGS
        and each.is_file()
        and not any(part[0] in "._" for part in each.relative_to(base).parts)
    ]
    if not files:
        what = f"{path} matches" if pattern else f"Folder {path} contains"
        raise FileNotFoundError(f"{what} no file with the extension {', '.join(ENDINGS)}.")
    return sorted(files, key=lambda each: each.relative_to(base).parts)


def matching(path: str) -> list[Path]:
    """All that is in a folder, or matches a pattern, or is in a folder that does."""
    if not is_pattern(path):
        return sorted(Path(path).rglob("*"))
    found = [Path(each) for each in glob.glob(path, recursive=True)]
    return sorted({*found, *(each for top in found if top.is_dir() for each in top.rglob("*"))})


def partition_of(path: Path) -> dict[str, str | None]:
    """Keys and values encoded in folder names; None for a missing key."""
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {unquote(name): None if text == NO_PARTITION else unquote(text) for name, text in pairs}


def partition_kinds(partitions: list[dict[str, str | None]]) -> dict[str, KeyType]:
    """Integers if all folder names are integers, otherwise text."""
    kinds = {}
    for name in {name for each in partitions for name in each}:
        texts = [text for each in partitions if (text := each.get(name)) is not None]
        whole = all(text.lstrip("-").isdecimal() and text == str(int(text)) for text in texts)
        kinds[name] = (
            KeyType("int64", np.dtype("i8")) if whole else KeyType("string", np.dtype("U"))
        )
    return kinds


GRAIN = 50_000_000
"""Nanoseconds by which times of a file system may be behind the clock."""


class Stamp(NamedTuple):
    """What a file was when it was opened: the same file may be read again, another one may not."""

    path: Path
    size: int
    modified: int
    """Nanoseconds, as the file system has them."""
    footer: int
    """Checksum of the footer, which says where all pages are, and which values are in them."""
    opened: int
    """When it was looked at."""

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Look at a file that has an intact footer."""
        opened, found = time.time_ns(), path.stat()
        return cls(path, found.st_size, found.st_mtime_ns, sum_of_footer(path), opened)

    def check(self, name: str, whole: bool = False) -> None:
        """Raise an error if the file is gone, or is another one; its footer is read if `whole`.

        Another machine may have a copy with a time of its own, from before this one was opened.
        """
        try:
            found = os.stat(self.path)
            same = found.st_size == self.size
            if found.st_mtime_ns != self.modified:
                same = same and found.st_ctime_ns < self.opened - GRAIN
            same = same and (not whole or sum_of_footer(self.path) == self.footer)
        except OSError as error:
            raise ValueError(
                f"File {name} was there when the data were opened, but now it cannot be read "
                f"({error.strerror}); it must stay until the fit has ended."
            ) from None
        if not same:
            raise ValueError(
                f"File {name} was changed after the data were opened; it must stay as it is until "
                "the fit has ended."
            )


def check_value_type(kind: Any, place: str, column: str) -> None:
    """Check that values are numbers or booleans, or that all of them are missing."""
    types = import_pyarrow().types
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    ):
        raise ValueError(f"{place}, column {column!r}: holds {kind}, but numbers are required.")


def check_footer(path: Path, name: str) -> list[RowGroup]:
    """The row groups of a file with an intact footer and all of its pages."""
    try:
        return read_footer(path)
    except (ValueError, OSError) as error:
        raise not_whole(name, reason_of(error)) from None


def not_whole(name: str, why: str) -> ValueError:
    """The error for a file that is not, or no longer, a Parquet file."""
    return ValueError(
        f"File {name} is not a complete Parquet file: it is truncated or damaged ({why})."
    )


def is_dictionary(groups: Sequence[RowGroup], name: str) -> bool:
    """Whether all texts of a column are stored as indices into a dictionary, judged by its size.

    If there are too many, Parquet ends the dictionary and continues with plain texts. Plain texts
    are fastest to read as plain texts, and dictionaries as dictionaries.
    """
    columns = (column for group in groups for column in group.columns if column.path == name)
    return all(
        column.has_dictionary and column.bytes_uncompressed < DICTIONARY + CODE * column.n_values
        for column in columns
    )
