"""A fit keeps where each of its pieces stands, and finds it again when it is run anew."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from bayesring.checkpoint import generations
from bayesring.checkpoint.trees import classes_in, put_together, take_apart

SHARE = 0.05
"""Share of the time that writing may take, whatever was asked for."""


class Checkpoint:
    """The folder of a fit, one file with two generations for each of its pieces.

    A piece is a chain, or a ring on its way through the data. Pieces are written by the thread that
    works on them. If a file cannot be written, one warning says so, and the fit goes on.

    Parameters
    ----------
    folder : where, or None to keep nothing
    every : seconds between two writes of a piece; 0 writes whenever there is something new
    """

    def __init__(self, folder: Path | None = None, every: float = 0.0) -> None:
        self.folder, self.every = folder, every
        self._due: dict[str, float] = {}
        self._failed = False

    def find(self, piece: str, example: Any) -> Any | None:
        """Where a piece stood, or None if it had not begun.

        `example` holds at least one of every class that the state may be made of.
        """
        if self.folder is None:
            return None
        found = generations.read(self.folder, piece)
        if found is None:
            return None
        try:
            return put_together(*found, classes_in(example))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"The checkpoint {self.folder} was written by another version of bayesring: its "
                f"{piece} does not fit ({error}). Delete the folder to begin anew."
            ) from error

    def keep(self, piece: str, state: Any, *, always: bool = False) -> None:
        """Write where a piece stands, if it is time to, or `always`, as at the end of a stage."""
        if self.folder is None:
            return
        begin = time.monotonic()
        due = self._due.setdefault(piece, begin + self.every)
        if not always and begin < due:
            return
        plain, arrays = take_apart(state)
        try:
            generations.write(self.folder, piece, plain, arrays)
        except OSError as error:
            self._say_once(error)
        end = time.monotonic()
        wait = 0.0 if self.every == 0.0 else max(self.every, (end - begin) / SHARE)
        self._due[piece] = end + wait

    def _say_once(self, error: OSError) -> None:
        if self._failed:
            return
        self._failed = True
        warnings.warn(
            f"The checkpoint cannot be written ({error}) The fit goes on; if it is interrupted, it "
            "can be resumed from what was written before.",
            UserWarning,
            stacklevel=2,
        )


NOWHERE = Checkpoint()
"""For a fit that keeps nothing."""
