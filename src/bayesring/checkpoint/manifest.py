"""What a checkpoint folder belongs to: data, settings, seed, and the process using it now."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayesring.checkpoint import generations
from bayesring.checkpoint.keeping import Checkpoint
from bayesring.data.writing import check_folder, is_temporary, same_place
from bayesring.wording import shown

FIT, LOCK = "fit", "lock"
"""Names of the file that describes the whole fit, and of the lock file."""
PIECES = re.compile(
    r"((chain|candidate|ring|settled|measured|more)-.+|folds)"
    f"({re.escape(generations.NEW)}|{re.escape(generations.OLD)})"
)
"""Names of the files of a fit that has no description any more."""
DATA, SEED, VERSION = "data", "random_state", "bayesring"


@contextmanager
def open_checkpoint(
    folder: str | os.PathLike[str] | None, every: float, facts: Mapping[str, str]
) -> Iterator[Checkpoint]:
    """The checkpoint of a fit, in a folder locked against other processes.

    Parameters
    ----------
    folder : created if it does not exist; otherwise it must be empty or belong to an earlier run of
        the same fit; None saves nothing
    every : seconds between two writes
    facts : what must be unchanged when a fit resumes, as text: data, settings, seed
    """
    if folder is None:
        yield Checkpoint()
        return
    check_interval(every)
    check_contents(folder)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    facts = {VERSION: version("bayesring"), **facts}
    with _alone(place):
        generations.clear_leftovers(place)
        found = _read(place)
        if found is None:
            for _ in range(2):  # both generations, since it is never written again
                generations.write(place, FIT, dict(facts), [])
        else:
            _check_same(place, found, facts)
        yield Checkpoint(place, every)


def seed_in(folder: str | os.PathLike[str] | None) -> int | None:
    """The seed stored in a checkpoint folder, or None if it is not one."""
    if folder is None or not Path(folder).is_dir():
        return None
    found = _read(Path(folder))
    return None if found is None else int(found[SEED])


def digest(*parts: Any) -> str:
    """Digest of arrays, numbers and text."""
    total = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype.str} {array.shape} ".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()[:32]


def check_interval(every: Any) -> None:
    """Refuse anything but a number of seconds."""
    is_number = isinstance(every, int | float) and not isinstance(every, bool)
    if not is_number or not 0 <= every < float("inf"):
        raise ValueError(
            f"checkpoint_every must be a number of seconds, zero or more, got {shown(every)}."
        )


def _read(place: Path) -> dict[str, str] | None:
    try:
        found = generations.read(place, FIT)
    except generations.Damaged as error:
        raise ValueError(f"{error} Delete the folder to begin anew.") from None
    return None if found is None else found[0]


def check_contents(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that cannot be written, or has other contents: it is the wrong one."""
    check_folder(folder)
    place = Path(folder)
    names = sorted(os.listdir(place)) if place.exists() else []
    if f"{FIT}{generations.NEW}" in names or f"{FIT}{generations.OLD}" in names:
        return
    foreign = [name for name in names if name != LOCK and not is_temporary(name)]
    if foreign and all(map(PIECES.fullmatch, foreign)):
        raise ValueError(
            f"The checkpoint {place} has no {FIT}{generations.NEW}, which says what it belongs to. "
            "Delete the folder to begin anew."
        )
    if foreign:
        raise ValueError(
            f"checkpoint must name a new or empty folder, or that of an earlier run, but {place} "
            f"holds {foreign[0]!r}."
        )


def check_outside(folder: str | os.PathLike[str], path: str) -> None:
    """Refuse to write a file that is a checkpoint folder, or one of its files."""
    place, name = Path(folder), Path(path).name
    if same_place(path, os.fspath(folder)):
        raise ValueError(f"{path} is the folder of the checkpoint, but a file is required.")
    own = name.endswith((generations.NEW, generations.OLD)) or name == LOCK
    if own and same_place(os.path.dirname(path) or ".", os.fspath(place)):
        raise ValueError(f"{path} is a file of the checkpoint {place}; use another name.")


def _check_same(place: Path, found: Mapping[str, str], facts: Mapping[str, str]) -> None:
    """Refuse to resume a different fit."""
    for name in sorted({*found, *facts}, key=lambda each: (each != VERSION, each != DATA, each)):
        before, now = found.get(name), facts.get(name)
        if before == now:
            continue
        if name == DATA:
            differs = "other data"
        elif name == VERSION:
            differs = f"bayesring {before}, but this is {now}"
        else:
            differs = f"{name}={before}, but now {name}={now}"
        raise ValueError(
            f"The checkpoint {place} belongs to a fit with {differs}; use another folder, or "
            "delete this one to begin anew."
        )


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Lock the folder against other processes.

    The system releases the lock when this process ends, however it ends.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with open(place / LOCK, "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"The checkpoint {place} is in use by another fit that is still running."
            ) from None
        except OSError:  # a file system without locks
            pass
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
