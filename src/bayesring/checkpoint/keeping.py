"""Saving the state of each piece of a fit, and finding it again on the next run."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from bayesring.checkpoint import generations
from bayesring.checkpoint.trees import classes_in, put_together, take_apart

SHARE = 0.05
"""Largest share of the run time spent on writing, whatever interval was requested."""


class Checkpoint:
    """The checkpoint folder of a fit, with one file per piece, in two generations.

    A piece is a chain, or one ring of online EM. Each piece is written by the thread that works on
    it. If a file cannot be written, the fit warns once and continues.

    Parameters
    ----------
    folder : where to write, or None to save nothing
    every : seconds between two writes of a piece; 0 writes after every scan or look
    """

    def __init__(self, folder: Path | None = None, every: float = 0.0) -> None:
        self.folder, self.every = folder, every
        self._due: dict[str, float] = {}
        self._failed = False

    def find(self, piece: str, example: Any) -> Any | None:
        """The saved state of a piece, or None if there is none.

        `example` must contain an instance of every class that the state may be made of.
        """
        if self.folder is None:
            return None
        try:
            found = generations.read(self.folder, piece)
        except generations.Damaged as error:
            raise ValueError(f"{error} Delete the folder to begin anew.") from None
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
        """Save the state of a piece if it is due, or `always`, as at the end of a stage."""
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
            f"The checkpoint was not written: {str(error).rstrip('.')}. The fit continues; if it "
            "is interrupted, it can resume from the last state that was written.",
            UserWarning,
            stacklevel=2,
        )


NOWHERE = Checkpoint()
"""Checkpoint of a fit that saves nothing."""
