"""Atomic replacement of files, which never replaces anything else.

A result is written to a temporary name next to its destination, flushed to disk and renamed. The
destination may be empty, a regular file, a symbolic link to either or, for formats that are a
folder, a store of that format with nothing else in it. A temporary name is `.NAME.8 hex
digits.tmp`; a store about to be removed is `.NAME.8 hex digits.old`. The writing process holds a
lock on the temporary file or, for a store, on an empty one beside it. An unlocked one was left by a
killed process, and the next process that writes the same name removes it, and so it does with what
is left of stores; if a store was moved away but has no successor, it is put back.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bayesring.data.leftovers import CUT, SECONDS_TO_LOCK, TEMPORARY, hold, tidy
from bayesring.data.zarrstores import foreign_entry
from bayesring.wording import shown

ZARR, PARQUET = "Zarr", "Parquet"
"""Formats that are a folder; of Parquet, only clusters write folders, and replace none."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors that say that a file has no room."""
MOST_LINKS = 40
"""Maximum number of symbolic links followed in a row, as on Linux."""
SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_destination(path: str | os.PathLike[str], folder_format: str | None = None) -> Path:
    """Reject, before any work, a path that cannot or must not be written to.

    Parameters
    ----------
    path : destination of a result
    folder_format : `ZARR` if the result is a store of that format, None if it is a file

    Returns
    -------
    The path with its symbolic links followed.
    """
    text = _text(path)
    place = _destination(text, folder_format)
    _try_to_create(text, place)
    return Path(place)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Reject, before any work, a folder that cannot be written to or created."""
    text = _text(path)
    folder = text
    while _state(text, folder) is None and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder) or "."
    _check_parent(text, folder)
    _try_to_create(text, os.path.join(folder, "folder"))


def same_place(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths, which need not exist, refer to the same file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def replacing(path: str | os.PathLike[str], folder_format: str | None = None) -> Iterator[Path]:
    """A temporary file or store to write to, which is renamed to `path` at the end.

    Whatever was at `path` before stays intact until then, and permanently if writing fails. A file
    already exists, empty, with the permissions of the one it will replace; a store does not.
    """
    text = _text(path)
    place = _destination(text, folder_format)
    temporary, held = _unused_name(place, "tmp"), None
    locked = temporary if folder_format is None else _unused_name(place, "tmp")
    remove_temporaries(Path(place).parent, os.path.basename(place).__eq__)
    try:
        _create(text, locked)
        held = hold(locked, wait=True)
        if folder_format is None:
            _keep_rights(place, temporary, stat.S_IRUSR | stat.S_IWUSR)
        elif folder_format == ZARR:
            tidy(place, locked, written=False)
        try:
            yield temporary
        except OSError as error:
            if error.errno not in FULL:
                raise
            raise _refusal(text, error) from None
        try:
            _flush(temporary)
            _keep_rights(place, temporary)
            _check_present(text, place, folder_format)
            _swap(temporary, place)
        except OSError as error:
            raise _refusal(text, error) from None
        if folder_format == ZARR:
            tidy(place, locked, written=True)
    finally:
        for left in {temporary, locked}:
            _remove(left)
        if held is not None:
            os.close(held)


def is_temporary(name: str) -> bool:
    """Whether this is the name of a temporary file."""
    return TEMPORARY.fullmatch(name) is not None


def remove_temporaries(
    folder: Path, is_ours: Callable[[str], bool], seconds: float = SECONDS_TO_LOCK
) -> None:
    """Remove temporary files of killed processes, at least `seconds` old; never a folder.

    `is_ours` says whether the temporary files for a name may be removed.
    """
    with suppress(OSError):
        for entry in os.scandir(folder):
            found = TEMPORARY.fullmatch(entry.name)
            if found and is_ours(found[1]) and entry.is_file(follow_symlinks=False):
                _remove_if_free(Path(entry.path), seconds)


def _remove_if_free(path: Path, seconds: float) -> None:
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < seconds:
            return
        held = hold(path)
        if held is not None:
            path.unlink(missing_ok=True)
            os.close(held)


def _text(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"path must be a str or a pathlib.Path, got {shown(path)}.")
    if not text:
        raise ValueError("path is empty, but the name of a file or folder to write is required.")
    if "\0" in text:
        raise ValueError(f"path must not contain a NUL character, got {text!r}.")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(f"path must be text that a file name can hold, got {text!a}.") from None
    return text


def _destination(text: str, folder_format: str | None) -> str:
    """Target of links, checked except for trying to create a file there."""
    place = _follow(text)
    _check_parent(text, os.path.dirname(place) or ".")
    _check_present(text, place, folder_format)
    return place


def _follow(text: str) -> str:
    """Follow symbolic links as the system does; the target need not exist."""
    place = text
    for _ in range(MOST_LINKS):
        state = _state(text, place)
        if state is None or not stat.S_ISLNK(state.st_mode):
            return place
        folder = os.path.dirname(place)
        if os.path.realpath(folder).startswith("/proc/"):
            raise ValueError(
                f"{text} cannot be written: it is an open stream, but a file is required."
            )
        place = os.path.join(folder, os.readlink(place))
    raise _refusal(text, OSError(errno.ELOOP, ""))


def _state(text: str, place: str) -> os.stat_result | None:
    """Status of a path, or None if nothing is there."""
    try:
        return os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refusal(text, error) from None


def _check_present(text: str, place: str, folder_format: str | None) -> None:
    """Refuse to replace anything but a file or a store of the format."""
    state = _state(text, place)
    if os.path.basename(place) in ("", ".", ".."):
        raise IsADirectoryError(
            f"{text} cannot be written: it is a folder, but a file is required."
        )
    if state is None:
        return
    if stat.S_ISREG(state.st_mode):
        if folder_format is not None:
            raise NotADirectoryError(
                f"{text} cannot be written: it is a file, but a {folder_format} store is a folder."
            )
        return
    if not stat.S_ISDIR(state.st_mode):
        kind = next((name for test, name in SPECIAL if test(state.st_mode)), "a special file")
        raise ValueError(f"{text} cannot be written: it is {kind}, but a file is required.")
    if folder_format is None:
        raise IsADirectoryError(
            f"{text} cannot be written: it is a folder, but a file is required."
        )
    try:
        foreign = foreign_entry(Path(place)) if os.listdir(place) else None
    except OSError as error:
        raise _refusal(text, error) from None
    if foreign == Path(place):
        raise IsADirectoryError(
            f"{text} cannot be replaced: it is a folder, but not a {folder_format} store."
        )
    if foreign is not None:
        raise IsADirectoryError(
            f"{text} cannot be replaced: it contains {foreign.relative_to(place)}, which is not "
            f"part of a {folder_format} store."
        )


def _check_parent(text: str, folder: str) -> None:
    try:
        is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{text} cannot be written: there is no folder {folder}.") from None
    except OSError as error:
        raise _refusal(text, error) from None
    if not is_folder:
        raise NotADirectoryError(f"{text} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _no_permission(text, folder)


def _no_permission(text: str, folder: str) -> PermissionError:
    return PermissionError(
        f"{text} cannot be written: no file can be created in the folder {folder}."
    )


def _refusal(text: str, error: OSError) -> OSError:
    """The system's error as a sentence about the given path."""
    if error.errno is None:
        return error
    reasons = {
        errno.ELOOP: "its symbolic links lead in a circle",
        errno.ENAMETOOLONG: "its name is too long",
        errno.EACCES: "permission is denied",
    }
    reason = reasons.get(error.errno, (error.strerror or "unknown error").lower())
    return type(error)(f"{text} cannot be written: {reason}.")


def _unused_name(place: str, suffix: str) -> Path:
    """A hidden name next to `place` that shows what it belongs to."""
    folder, name = os.path.split(place)
    while len(os.fsencode(name)) > CUT:
        name = name[:-1]
    while True:
        found = Path(folder, f".{name}.{secrets.token_hex(4)}.{suffix}")
        if not os.path.lexists(found):
            return found


def _try_to_create(text: str, place: str) -> None:
    """Create and remove a temporary file: permissions alone do not say what a system allows."""
    temporary = _unused_name(place, "tmp")
    try:
        _create(text, temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _create(text: str, temporary: Path) -> None:
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except (PermissionError, FileNotFoundError):
        raise _no_permission(text, str(temporary.parent)) from None
    except OSError as error:
        raise _refusal(text, error) from None


def _keep_rights(place: str, temporary: Path, added: int = 0) -> None:
    """Give a new file the owner and permissions of the one it replaces, as far as allowed."""
    if not os.path.lexists(place):
        return
    state = os.stat(place)
    if hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(temporary, state.st_uid, state.st_gid)
    with suppress(OSError):
        os.chmod(temporary, state.st_mode & 0o777 | added)


def _flush(written: Path) -> None:
    """Make sure that a file or a whole folder is on disk."""
    if not written.is_dir():
        _sync(written, os.O_RDWR)
        return
    for folder, _, files in os.walk(written):
        for name in files:
            _sync(Path(folder, name), os.O_RDWR)
        _sync_folder(Path(folder))


def _sync_folder(folder: Path) -> None:
    """Make file names durable, on systems that support it."""
    with suppress(OSError):
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _swap(temporary: Path, place: str) -> None:
    """Rename to the destination; an existing store is moved away first, and back on failure."""
    if not os.path.isdir(place) or not os.listdir(place):
        os.replace(temporary, place)
    else:
        old = _unused_name(place, "old")
        try:
            os.rename(place, old)
            os.rename(temporary, place)
        except BaseException:
            if old.exists() and not os.path.lexists(place):
                os.rename(old, place)
            raise
        shutil.rmtree(old)
    _sync_folder(Path(place).parent)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
