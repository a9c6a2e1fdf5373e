"""State as plain data: nested tuples, lists, dicts and dataclasses as JSON and arrays.

Nothing is pickled. Objects are rebuilt only from classes that the program passes in, never from
names chosen by a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLAIN = (str, int, float, bool, type(None))
"""Types that survive JSON unchanged, infinities and NaN included."""


def take_apart(tree: Any) -> tuple[Any, list[NDArray[Any]]]:
    """Plain data for JSON, and the arrays it refers to by index."""
    arrays: list[NDArray[Any]] = []

    def plain(value: Any) -> Any:
        if isinstance(value, Enum):
            return {"enum": type(value).__name__, "name": value.name}
        if type(value) in PLAIN:
            return value
        if isinstance(value, (np.ndarray, np.generic)):
            arrays.append(np.asarray(value))
            return {"array" if isinstance(value, np.ndarray) else "scalar": len(arrays) - 1}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {"class": type(value).__name__, "fields": [plain(each) for each in value]}
        if is_dataclass(value) and not isinstance(value, type):
            own = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
            return {"class": type(value).__name__, "fields": own}
        if isinstance(value, tuple):
            return {"tuple": [plain(each) for each in value]}
        if isinstance(value, list):
            return [plain(each) for each in value]
        if isinstance(value, dict):
            return {"dict": [[plain(key), plain(each)] for key, each in value.items()]}
        raise TypeError(
            f"a checkpoint cannot hold {type(value).__name__}: state must be made of numbers, "
            "text, arrays, tuples, lists, dicts, named tuples and dataclasses."
        )

    return plain(tree), arrays


def put_together(
    plain: Any, arrays: Sequence[NDArray[Any]], classes: Mapping[str, type[Any]]
) -> Any:
    """Inverse of `take_apart`, using the given `classes`."""
    if isinstance(plain, list):
        return [put_together(each, arrays, classes) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    if "scalar" in plain:
        return arrays[plain["scalar"]][()]
    if "tuple" in plain:
        return tuple(put_together(plain["tuple"], arrays, classes))
    if "dict" in plain:
        return {key: each for key, each in put_together(plain["dict"], arrays, classes)}
    if "enum" in plain:
        return classes[plain["enum"]][plain["name"]]
    cls, own = classes[plain["class"]], plain["fields"]
    if isinstance(own, list):
        return cls(*put_together(own, arrays, classes))
    return cls(**{name: put_together(each, arrays, classes) for name, each in own.items()})


def classes_in(tree: Any) -> dict[str, type[Any]]:
    """The named tuples, dataclasses and enumerations that occur in `tree`, by name."""
    found: dict[str, type[Any]] = {}
    inner: Any = ()
    if isinstance(tree, Enum):
        found[type(tree).__name__] = type(tree)
    elif isinstance(tree, tuple | list):
        inner = tree
        if hasattr(tree, "_fields"):
            found[type(tree).__name__] = type(tree)
    elif isinstance(tree, dict):
        inner = tree.values()
    elif is_dataclass(tree) and not isinstance(tree, type):
        found[type(tree).__name__] = type(tree)
        inner = [getattr(tree, each.name) for each in fields(tree)]
    for each in inner:
        found |= classes_in(each)
    return found
