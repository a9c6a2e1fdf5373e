"""Tables in many files: a folder, or all files that match a pattern such as `2020-*.csv`.

Folders named `key=value` below the given one, or from the first wildcard on, are columns, as in
Hive. Hidden files and folders are left out, and so are those whose name begins with `_`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bayesring.data.parquet.footers import (
    base_of,
    is_pattern,
    matching,
    partition_kinds,
    partition_of,
)
from bayesring.wording import reason_of, shown

NO_FOLDERS = (".npy", ".npz", ".nc", ".zarr", ".xlsx")
"""Names that are not those of folders of tables; a Zarr store is a folder, but one array."""


def is_many(path: str) -> bool:
    """Whether a path may stand for many files."""
    return is_pattern(path) or (Path(path).is_dir() and not path.lower().endswith(NO_FOLDERS))


def files_in(path: str, endings: Sequence[str]) -> list[Path]:
    """All files of a folder or pattern, in the order of their paths; all with the same ending."""
    base = base_of(path)
    files = [
        each
        for each in matching(path)
        if each.is_file()
        and each.name.lower().endswith(tuple(endings))
        and not any(part[0] in "._" for part in each.relative_to(base).parts if part != "..")
    ]
    if not files:
        raise FileNotFoundError(
            f"{path} {'matches' if is_pattern(path) else 'contains'} no file with one of the "
            f"extensions {', '.join(endings)}."
        )
    kinds = {_ending(each, endings): each for each in files}
    if len(kinds) > 1:
        one, other, *_ = kinds.values()
        raise ValueError(
            f"{path} holds files of several kinds, such as {one.name} and {other.name}; name those "
            f"of one kind, for example with the pattern {shown(f'{base}/**/*{min(kinds)}')}."
        )
    return files


def is_among(path: str, source: str) -> bool:
    """Whether a file, which need not exist, is in a folder or matches a pattern."""
    place = Path(os.path.realpath(path))
    if not is_pattern(source):
        return place.is_relative_to(os.path.realpath(source))
    base = base_of(source)
    if not place.is_relative_to(os.path.realpath(base)):
        return False
    parts = place.relative_to(os.path.realpath(base)).parts
    wanted = Path(source).relative_to(base).parts
    if "**" in wanted:
        return fnmatch("/".join(parts), "/".join(wanted).replace("**/", "*"))
    return len(parts) >= len(wanted) and all(map(fnmatch, parts, wanted))


def ending_of(path: str, endings: Sequence[str]) -> str:
    """The extension that all files of a folder or pattern have."""
    return _ending(files_in(path, endings)[0], endings)


def joined_tables(path: str, files: Sequence[Path], tables: Sequence[Any]) -> Any:
    """The tables of some files as one, with the columns that their folders stand for."""
    import pyarrow as pa

    base = base_of(path)
    partitions = [partition_of(file.relative_to(base)) for file in files]
    kinds = partition_kinds(partitions)
    whole = []
    for file, table, own in zip(files, tables, partitions, strict=True):
        for name in sorted(kinds):
            if name in table.column_names:
                raise ValueError(f"{file} has a column {shown(name)}, and so have its folders.")
            if name not in own:
                raise ValueError(f"{file} is not in a folder {name}=..., but other files are.")
            text = own[name]
            number = kinds[name].text == "int64"
            key = pa.scalar(
                int(text) if number and text is not None else text,
                pa.int64() if number else pa.string(),
            )
            table = table.append_column(name, pa.repeat(key, len(table)))
        whole.append(table)
    for file, table in zip(files, whole, strict=True):
        if set(table.column_names) != set(whole[0].column_names):
            raise ValueError(
                f"{file} has the columns {shown(table.column_names)}, but {files[0]} has "
                f"{shown(whole[0].column_names)}."
            )
    try:
        return pa.concat_tables(whole, promote_options="permissive")
    except pa.ArrowException as error:
        raise ValueError(f"the files of {path} do not fit together: {reason_of(error)}.") from None


def _ending(file: Path, endings: Sequence[str]) -> str:
    return next(
        each for each in sorted(endings, key=len, reverse=True) if file.name.lower().endswith(each)
    )
