"""An extension of griffe for the reference pages: parameters are described in the house style.

Docstrings say ``name : what it is``, in one sentence, where numpydoc has a type after the colon and
the sentence below. Types are in the signatures. Here the sentence is moved to where numpydoc
expects it, and so does the site.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:.+\n?)*", re.MULTILINE)
ITEM = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n[ ]+.*)*)$", re.MULTILINE)


class HouseStyle(Extension):  # type: ignore[misc]
    """Moves descriptions from the place of the type to the line below."""

    def on_object(self, *, obj: Any, **kwargs: Any) -> None:
        """Rewrite the docstring of any object, if it has one."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    """The docstring with the sentence below each name, once for each name that shares it."""
    return SECTION.sub(lambda section: ITEM.sub(one_by_one, section[0]), text)


def one_by_one(item: re.Match[str]) -> str:
    """An item for each of the names; griffe would give all of them the default of the first."""
    return "\n".join(f"{name}\n    {item[2]}" for name in item[1].split(", "))
