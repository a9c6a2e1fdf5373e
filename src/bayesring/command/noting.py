"""Warnings of a command, collected for its summary."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noting_warnings() -> Iterator[list[str]]:
    """Collect warnings meant for users instead of showing them."""
    noted: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)
        yield noted
    noted += dict.fromkeys(
        str(each.message) for each in caught if issubclass(each.category, UserWarning)
    )
