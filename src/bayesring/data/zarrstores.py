"""Whether a folder is a Zarr store and nothing else, so that it may be replaced by another one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

METADATA = (".zgroup", ".zarray", ".zattrs", ".zmetadata", "zarr.json")
"""Files of a Zarr store other than the chunks of its arrays."""


def foreign_entry(node: Path) -> Path | None:
    """Something in a folder that does not belong to a Zarr store, or the folder itself."""
    try:
        order = _order(node)
    except (ValueError, KeyError, TypeError, AttributeError):
        return node
    if order is not None:
        return _foreign_to_array(node, order)
    for entry in sorted(node.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            found = foreign_entry(entry)
            if found is not None:
                return found
        elif entry.name not in METADATA or not _is_plain(entry):
            return entry
    return None


def _order(node: Path) -> int | None:
    """The number of modes of a Zarr array, or None for a group; a ValueError for anything else."""
    for name in (".zarray", "zarr.json", ".zgroup"):
        if _is_plain(node / name):
            content = json.loads((node / name).read_bytes())
            if name == ".zarray" or content.get("node_type") == "array":
                return len(content["shape"])
            if content.get("node_type") == "group" or "zarr_format" in content:
                return None
    raise ValueError("there is no such file.")


def _foreign_to_array(node: Path, order: int) -> Path | None:
    """Contents that do not belong to a Zarr array of this order: all but metadata and chunks."""
    numbers = r"\d+" + r"[./]\d+" * (order - 1)
    chunk = re.compile(rf"(c[./])?{numbers}" if order else r"c|0")
    for folder, folders, files in os.walk(node, onerror=_raise):
        for name in sorted(files + [each for each in folders if Path(folder, each).is_symlink()]):
            entry = Path(folder, name)
            key = entry.relative_to(node).as_posix()
            if not _is_plain(entry) or not (key in METADATA or chunk.fullmatch(key)):
                return entry
    return None


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _raise(error: OSError) -> None:
    raise error
