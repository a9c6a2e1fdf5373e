"""Labels of the modes: keys such as station names or dates, and the coordinates they stand for.

Labels are kept as plain arrays of text, numbers, dates, durations or truth values, so that a model
file needs no pickle. Those learned from a table are in sorted order: the order of its rows cannot
matter.

Times with a time zone are kept in UTC, and the zone beside them. Such times are the same in any
zone, so a model may be asked in another one; times without a zone are another kind of key, which a
model fitted with zones refuses, and the other way around.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Collection, Sequence
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
LONGEST, LARGEST, PADDING = 10_000, 2**30, 32
"""Characters of a text key; bytes of all labels of a mode, each as long as the longest, unless they
are no more than so many times what the texts have."""


class Zone(NamedTuple):
    """How a column of times with a time zone was given."""

    name: str
    """Of the time zone, such as "Europe/Berlin"."""
    unit: str
    """Of the times, as NumPy says it: "s", "ms", "us" or "ns"."""


class Labels(NamedTuple):
    """What the modes and their slices are called."""

    names: tuple[str, ...]
    """One per mode."""
    levels: tuple[NDArray[Any] | None, ...]
    """Per mode the label of every slice, (I_d,), or None where coordinates are all there is."""
    value: str | None
    """What the values are called, if anything."""
    zones: tuple[Zone | None, ...] = ()
    """Per mode the time zone, None without one; empty in old files, where nobody knows."""

    def check_zone(self, mode: int, zone: Zone | None, name: str) -> None:
        """Refuse times without a zone for labels that have one, and the other way around."""
        levels = self.levels[mode]
        if not self.zones or levels is None or levels.dtype.kind != "M":
            return
        own = self.zones[mode]
        if (own is None) != (zone is None):
            found, expected = (
                "without a time zone" if each is None else f"in the time zone {each.name}"
                for each in (zone, own)
            )
            raise ValueError(
                f"column {name!r} holds times {found}, but the model was fitted with times "
                f"{expected}; give both with a zone or both without."
            )


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
    if kind == "U":
        _refuse_texts(keys, name)
    return _coarsest(keys) if kind == "M" else keys


def learn_levels(keys: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The distinct keys in sorted order, and for every key its place among them."""
    levels, codes = np.unique(keys, return_inverse=True)
    return levels, codes


def learn_column(values: Any, name: str) -> tuple[NDArray[Any], IntArray]:
    """The distinct keys of a column in sorted order, and for every row its place among them.

    Texts never stand in an array of one row each, in which all would be as long as the longest.
    """
    keys = np.asarray(values)
    if keys.dtype != object or not all(issubclass(each, str) for each in set(map(type, keys))):
        return learn_levels(as_keys(keys, name))
    found: dict[str, int] = {}
    places = np.fromiter((found.setdefault(key, len(found)) for key in keys), np.int64, len(keys))
    wrong = bad_text(found)
    if wrong is not None:
        raise ValueError(f"column {name!r} {wrong[1]} in row {np.argmax(places == wrong[0])}.")
    levels, order = learn_levels(np.array(list(found), dtype=str))
    return levels, order[places]


def bad_text(texts: Collection[str]) -> tuple[int, str] | None:
    """Place of the first text that can be no key, and why; None if there is none."""
    lengths = [len(text) for text in texts]
    longest, allowed = max(lengths, default=0), max(LARGEST, 4 * PADDING * sum(lengths))
    room = min(LONGEST, allowed // (4 * max(1, len(texts))))
    for place, text in enumerate(texts):
        if "\0" in text:
            return place, "holds text with a NUL character, which no key may have,"
        if longest > room and len(text) > room:
            return place, (
                f"holds a text of {len(text):,} characters, but a key may have at most {room:,},"
            )
    return None


def encode(keys: NDArray[Any], levels: NDArray[Any], name: str, first: int = 0) -> IntArray:
    """Place of every key among `levels`; the number of levels for keys that are not there.

    `first` is the key to show if they are of another kind.
    """
    found, expected = KINDS[keys.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"column {name!r} holds {found} such as {keys[first]!s}, but the model was fitted with "
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
    """A key as text: an integer without decimals, a time in the coarsest unit."""
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
        _refuse_texts(objects, name)
        return objects.astype(str)
    if all(issubclass(each, (bool, np.bool_)) for each in types):
        return objects.astype(bool)
    if all(issubclass(each, (int, np.integer)) for each in types):
        return objects.astype(np.int64)
    if types <= {datetime.date} or all(issubclass(each, datetime.datetime) for each in types):
        return _without_zones(objects, name).astype("M8[us]")
    if all(hasattr(each, "to_timestamp") for each in types):  # periods of pandas
        return np.array([key.to_timestamp().to_datetime64() for key in objects])
    listed = " and ".join(sorted(each.__name__ for each in types))
    raise ValueError(
        f"column {name!r} holds Python objects of type {listed}, but a key must be text, a number, "
        "a date, a duration or a truth value, all of one kind."
    )


def _without_zones(objects: NDArray[Any], name: str) -> NDArray[Any]:
    """Dates, or times as they are in UTC; some with and some without a zone are refused."""
    aware = np.array([getattr(each, "tzinfo", None) is not None for each in objects], dtype=bool)
    if not aware.any():
        return objects
    if not aware.all():
        raise ValueError(
            f"column {name!r} holds a time without a time zone in row {np.argmin(aware)}, but "
            f"one with it in row {np.argmax(aware)}; give all with a zone or all without."
        )
    utc = [each.astimezone(datetime.UTC).replace(tzinfo=None) for each in objects]
    return np.array(utc, dtype=object)


def zone_of_objects(keys: Any) -> Zone | None:
    """The time zone of Python times, that of the first if there are several."""
    first = keys[0] if len(keys) and np.asarray(keys).dtype.kind == "O" else None
    zone = first.tzinfo if isinstance(first, datetime.datetime) else None
    if zone is None:
        return None
    known = isinstance(zone, datetime.timezone) or hasattr(zone, "key")
    return Zone(str(zone) if known else "UTC", "us")


def _refuse_texts(texts: NDArray[Any], name: str) -> None:
    wrong = bad_text(texts.tolist())
    if wrong is not None:
        raise ValueError(f"column {name!r} {wrong[1]} in row {wrong[0]}.")


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
