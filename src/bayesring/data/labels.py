"""Labels of the modes: keys such as station names or dates, and the coordinates they stand for.

Labels are kept as plain arrays of text, numbers, dates, durations or truth values, so that a model
file needs no pickle. Those learned from a table are in sorted order: the order of its rows cannot
matter.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.model.types import IntArray

KINDS = {
    "U": "text",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "b": "truth values",
    "M": "dates",
    "m": "durations",
}
"""Kinds of keys that labels can be, in words; kinds with the same word compare."""
DATE_UNITS = ("D", "s", "ms", "us")
"""Units of time that dates are kept in, coarsest first; nanoseconds if none will do."""


class Labels(NamedTuple):
    """What the modes and their slices are called."""

    names: tuple[str, ...]
    """One per mode."""
    levels: tuple[NDArray[Any] | None, ...]
    """Per mode the label of every slice, (I_d,), or None where coordinates are all there is."""
    value: str | None
    """What the values are called, if anything."""


NewLabels = tuple[NDArray[Any], ...]
"""Per mode the labels that a fit did not know, in sorted order."""


def plain_labels(order: int) -> Labels:
    """Labels of a tensor that has none: modes are numbered, and slices are coordinates."""
    return Labels(tuple(f"mode {mode}" for mode in range(order)), (None,) * order, None)


def as_keys(values: Any, name: str) -> NDArray[Any]:
    """Keys (n,) in one of the kinds that labels can be, or a sentence on what is wrong."""
    keys = np.asarray(values)
    if keys.dtype == object:
        keys = _from_objects(keys, name)
    kind = keys.dtype.kind
    if kind not in KINDS:
        raise ValueError(
            f"column {name!r} holds values of type {keys.dtype}, but a key must be text, a number, "
            "a date, a duration or a truth value."
        )
    if kind in "fMm":
        _refuse_missing(np.isnan(keys) if kind == "f" else np.isnat(keys), name)
    return _coarsest(keys) if kind == "M" else keys


def learn_levels(keys: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The distinct keys in sorted order, and for every key its place among them."""
    levels, codes = np.unique(keys, return_inverse=True)
    return levels, codes


def encode(keys: NDArray[Any], levels: NDArray[Any], name: str) -> IntArray:
    """Place of every key among `levels`; the number of levels for keys that are not there."""
    found, expected = KINDS[keys.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"column {name!r} holds {found} such as {keys[0]!s}, but the model was fitted with "
            f"{expected} such as {levels[0]!s}."
        )
    order = np.argsort(levels, kind="stable")
    places = np.searchsorted(levels, keys, sorter=order)
    codes = order[np.minimum(places, len(levels) - 1)]
    return np.where(levels[codes] == keys, codes, len(levels))


def numbers_of(keys: NDArray[Any]) -> list[int]:
    """64 bits for every key, a hash of its text; equal keys have the same however they are kept."""
    return [
        int.from_bytes(
            hashlib.blake2b(_text(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        )
        for key in keys
    ]


def _text(key: Any) -> str:
    """A key as text: a whole number without a fraction, a time in the coarsest unit."""
    if key.dtype.kind == "f" and float(key).is_integer():
        return str(int(key))
    if key.dtype.kind in "Mm":
        return str(_coarsest(key[None])[0])
    return str(key.item())


def label_texts(labels: Labels, shape: Sequence[int]) -> tuple[list[str], ...]:
    """Per mode the label of every slice as text; coordinates where there are no labels."""
    return tuple(
        [str(label) for label in (np.arange(size) if levels is None else levels)]
        for levels, size in zip(labels.levels, shape, strict=True)
    )


def _from_objects(objects: NDArray[Any], name: str) -> NDArray[Any]:
    """Python objects of one type as an array of that type."""
    missing = np.array([_is_missing(key) for key in objects], dtype=bool)
    _refuse_missing(missing, name)
    types = {type(key) for key in objects}
    if all(issubclass(each, str) for each in types):
        return objects.astype(str)
    if all(issubclass(each, (bool, np.bool_)) for each in types):
        return objects.astype(bool)
    if all(issubclass(each, (int, np.integer)) for each in types):
        return objects.astype(np.int64)
    if types <= {datetime.date} or types <= {datetime.datetime}:
        return objects.astype("M8[us]")
    if all(hasattr(each, "to_timestamp") for each in types):  # periods of pandas
        return np.array([key.to_timestamp().to_datetime64() for key in objects])
    listed = " and ".join(sorted(each.__name__ for each in types))
    raise ValueError(
        f"column {name!r} holds Python objects of type {listed}, but a key must be text, a number, "
        "a date, a duration or a truth value, all of one kind."
    )


def _is_missing(key: Any) -> bool:
    """None, NaN and the missing values of pandas."""
    return key is None or type(key).__name__ in ("NAType", "NaTType") or bool(key != key)


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise ValueError(
            f"column {name!r} has no key in row {int(np.argmax(missing))}: every row must say "
            "which cell it belongs to, only the value may be missing."
        )


def _coarsest(times: NDArray[Any]) -> NDArray[Any]:
    """Times in the coarsest unit that holds them all, so that equal times look alike."""
    for unit in DATE_UNITS:
        coarse = times.astype(f"{times.dtype.kind}8[{unit}]")
        if np.array_equal(coarse.astype(times.dtype), times):
            return coarse
    return times
