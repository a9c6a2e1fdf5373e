"""What writers at work hold, and what killed ones left of stores: it is put back, or removed.

A folder is ours if its hidden name is one of those that writers give, and if it holds nothing but
what a Zarr store holds, or a part of that. It is left alone while a writer of that name is at work.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from bayesring.data.zarrstores import METADATA, foreign_entry

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}\.tmp")
"""Names of temporary files, with the name they will be renamed to."""
SECONDS_TO_LOCK = 10
"""Age from which an unlocked temporary file is considered abandoned."""
HIDDEN = re.compile(r"\.(.+)\.[0-9a-f]{8}\.(tmp|old)")
"""The same, and names of stores about to be removed."""
CUT = 255 - len("..12345678.tmp")
"""Bytes of a name to which writers cut it, so that its hidden name is none too long for a file:
from there on, different names may have the same."""
CHUNK = re.compile(r"c|(c\.)?\d+(\.\d+)*")
"""Names of files with a chunk of an array, or with a part of its numbers."""
UNFINISHED = re.compile(r".+\.[0-9a-f]{32}\.partial")
"""Names of files that Zarr renames once they are whole."""


def hold(path: Path, wait: bool = False) -> int | None:
    """Lock a file until the returned descriptor is closed; None if it cannot be locked.

    It cannot be locked if another process holds it, unless we `wait`, or on Windows.
    """
    if fcntl is None:
        return None
    held = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(held)
        return None
    return held


def tidy(place: str, own: Path, written: bool) -> None:
    """Put back or remove stores that killed writers left, unless another writer is at work.

    An old store is the only copy of it until another is `written`. Folders are looked for before
    locks, because a writer has its lock for longer than its folders.
    """
    unfinished, old = _found_beside(place, "tmp"), _found_beside(place, "old")
    if not (unfinished or old) or _others_at_work(place, own):
        return
    if written:
        _remove_stores(old, 0.0)
    else:
        _put_back(old, place)
        _remove_stores(unfinished, SECONDS_TO_LOCK)


def _others_at_work(place: str, own: Path) -> bool:
    """Whether the lock of another writer of the same name is held, or it is not known."""
    if fcntl is None:
        return True
    try:
        return any(
            _is_held(path)
            for path, suffix in _named_after(place)
            if suffix == "tmp" and path != own and stat.S_ISREG(os.lstat(path).st_mode)
        )
    except OSError:
        return True


def _is_held(path: Path) -> bool:
    held = hold(path)
    if held is not None:
        os.close(held)
    return held is None


def _named_after(place: str) -> list[tuple[Path, str]]:
    """What has the name of something unfinished, `tmp`, or `old` that belongs to `place`."""
    folder, name = os.path.split(place)
    if len(os.fsencode(name)) >= CUT:
        return []
    found = [(each, HIDDEN.fullmatch(each)) for each in os.listdir(folder or ".")]
    return [(Path(folder, each), own[2]) for each, own in found if own and own[1] == name]


def _found_beside(place: str, suffix: str) -> list[Path]:
    """Folders, but no links to any, whose names say that they belong to a store at `place`."""
    with suppress(OSError):
        found = [path for path, own in _named_after(place) if own == suffix]
        return [path for path in found if path.is_dir() and not path.is_symlink()]
    return []


def _remove_stores(stores: list[Path], seconds: float) -> None:
    """Remove those of these folders that are ours, and were not written to for some seconds."""
    for store in stores:
        with suppress(OSError):
            if _holds_store_only(store) and time.time() - _last_written(store) >= seconds:
                shutil.rmtree(store)


def _put_back(stores: list[Path], place: str) -> None:
    """Give the latest whole store its name again, if nothing has that name."""
    with suppress(OSError):
        if os.path.lexists(place):
            return
        whole = [store for store in stores if foreign_entry(store) is None]
        if whole:
            os.rename(max(whole, key=_last_written), place)


def _holds_store_only(folder: Path) -> bool:
    """Whether a folder is a Zarr store, or a part of one, with nothing else in it."""
    metadata = False
    for parent, folders, files in os.walk(folder, onerror=_raise):
        if any(os.path.islink(os.path.join(parent, name)) for name in folders):
            return False
        for name in files:
            path = Path(parent, name)
            known = name in METADATA or CHUNK.fullmatch(name) or UNFINISHED.fullmatch(name)
            if not known or path.is_symlink() or not path.is_file():
                return False
            metadata = metadata or not CHUNK.fullmatch(name)
    return metadata


def _last_written(store: Path) -> float:
    """When something was last written into a folder, at any depth."""
    found = [os.lstat(store).st_mtime]
    for parent, folders, files in os.walk(store, onerror=_raise):
        found += [os.lstat(os.path.join(parent, name)).st_mtime for name in folders + files]
    return max(found)


def _raise(error: OSError) -> None:
    raise error
