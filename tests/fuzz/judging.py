"""What counts as a refusal: one sentence of a documented kind, raised by bayesring itself."""

from __future__ import annotations

import traceback
from pathlib import Path

import bayesring

HOME = str(Path(bayesring.__file__).parent)
DOCUMENTED = (ValueError, TypeError, OSError)
LONGEST = 3000
"""Most characters of a sentence; texts and lists of columns that it quotes included."""


def is_refusal(error: BaseException) -> bool:
    """Whether an error is one that users are told about.

    An error of another library that comes through unchanged is none: it does not say which
    argument, row or file it is about.
    """
    if not isinstance(error, DOCUMENTED) or isinstance(error, UnicodeError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(HOME) and is_sentence(str(error))


def is_sentence(message: str) -> bool:
    """Whether a message is one line that ends as sentences do; it may ask what was meant."""
    one_line = len(message.splitlines()) == 1 and len(message) < LONGEST
    return one_line and message.endswith((".", "?"))


def where(error: BaseException) -> str:
    """An error on one line, with the places that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(each.filename).name}:{each.lineno}" for each in frames][-6:]
    return f"{type(error).__name__}: {str(error)[:300]!r} at {' < '.join(reversed(own))}"
