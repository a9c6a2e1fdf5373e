"""What users gave, and what other libraries say about it, as part of a sentence on one line."""

from __future__ import annotations

from typing import Any

MOST = 200
"""Maximum characters quoted."""


def shown(value: Any) -> str:
    """A value as shown in a message: on one line, and not too long."""
    return _short(" ".join(repr(value).split()))


def as_text(value: Any) -> str:
    """A key as its text, without quotes: on one line, and not too long."""
    return _short(_escaped(str(value)))


def reason_of(error: BaseException) -> str:
    """What an error of another library says, on one line and without its full stop.

    Only its first line, since the rest is for developers. Bytes of a damaged file that it quotes
    are shown as escapes, because a terminal might obey them.
    """
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else type(error).__name__
    return _short(_escaped(first)).rstrip(" .")


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def _short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[: MOST - 3]}..."


def shorten(value: Any) -> str:
    """A value as shown in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
