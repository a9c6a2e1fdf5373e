"""Keys of another type than the labels of a model, where they can be read in one way only.

The command line reads `007` as text and `2020-01-31` as a date; `pandas.read_csv` reads a number
and text. A model fitted to one of them accepts the other: a key is the same label if it is the same
number, the same time or the same truth value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import KINDS
from bayesring.wording import as_text, shown

TRUTH = {"true": True, "false": False}


def comparable(keys: NDArray[Any], levels: NDArray[Any], name: str, first: int = 0) -> NDArray[Any]:
    """Distinct keys as the kind that the labels `levels` have.

    `first` is the key shown in the error message if they cannot be.
    """
    found, expected = KINDS[keys.dtype.kind], KINDS[levels.dtype.kind]
    if found == expected or not len(keys):
        return keys
    converted = None
    if found == "text":
        converted = _from_text(keys, levels, name)
    elif expected == "text" and found != "durations":
        converted = _to_text(keys, levels, name)
    if converted is None:
        raise _of_another_kind(keys[first], found, levels, name)
    return converted


def _of_another_kind(key: Any, found: str, levels: NDArray[Any], name: str) -> ValueError:
    return ValueError(
        f"column {name!r} holds {found} such as {as_text(key)}, but the model was fitted with "
        f"{KINDS[levels.dtype.kind]} such as {as_text(levels[0])}."
    )


def _from_text(texts: NDArray[Any], levels: NDArray[Any], name: str) -> NDArray[Any] | None:
    """Texts as numbers, times or truth values; None for durations, which have no usual text."""
    kind = levels.dtype.kind
    if kind == "m":
        return None
    read: Callable[[str], Any] = {"M": _time, "b": _truth}.get(kind, _number)
    found = [read(text) for text in texts.tolist()]
    if any(each is None for each in found):
        wrong = next(own for own, each in zip(texts, found, strict=True) if each is None)
        raise _of_another_kind(wrong, "text", levels, name)
    if kind == "M":
        return np.array(found, dtype="M8[us]")
    if kind == "b":
        return np.array(found, dtype=bool)
    if kind in "iu" and all(each == int(each) for each in found):
        whole = [int(each) for each in found]
        large = [each for each in whole if not -(2**63) <= each < 2**63]
        if large:
            raise ValueError(
                f"column {name!r} holds the integer {shown(large[0])}, but the labels of the model "
                "are integers below 2^63."
            )
        return np.array(whole, dtype=np.int64)
    return np.array(found, dtype=np.float64)


def _to_text(keys: NDArray[Any], levels: NDArray[Any], name: str) -> NDArray[Any] | None:
    """The label that is the same number, time or truth value; None if no label is any."""
    kind = keys.dtype.kind
    read: Callable[[str], Any] = {"M": _time, "b": _truth}.get(kind, _number)
    same: dict[Any, list[str]] = {}
    for text in levels.tolist():
        each = read(text)
        if each is not None:
            same.setdefault(each, []).append(text)
    if not same:
        return None
    found = []
    for key in keys:
        plain = _time(str(key)) if kind == "M" else key.item()
        texts = same.get(plain, [str(key)])
        if len(texts) > 1:
            raise ValueError(
                f"column {name!r} holds {as_text(key)}, which may be any of the labels {texts} of "
                "the model; give it as text."
            )
        found.append(texts[0])
    return np.array(found, dtype=str)


def _number(text: str) -> int | float | None:
    """A number, exactly; None for anything else."""
    plain = text.strip()
    if not plain.isascii() or "_" in plain:
        return None
    try:
        return int(plain)
    except ValueError:
        pass
    try:
        number = float(plain)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _time(text: str) -> np.datetime64 | None:
    """A date or time without a zone, year first; None for anything else."""
    plain = text.strip()
    if len(plain) < len("2020-01-31") or not plain[:4].isdigit():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of time zones
            return np.datetime64(plain, "us")
    except (ValueError, Warning):
        return None


def _truth(text: str) -> bool | None:
    return TRUTH.get(text.strip().lower())
