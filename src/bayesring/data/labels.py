"""Labels of the modes: keys such as station names or dates, and their coordinates.

Labels are kept as plain arrays of text, numbers, dates, durations or booleans, so a model file
needs no pickle. Labels learned from a table are sorted, so the order of its rows cannot matter.

Times with a time zone are kept in UTC, together with the zone. They can be queried in any zone.
Times without a zone are a different kind of key: a model fitted with one kind rejects the other.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.sites import Sites
from bayesring.model.types import IntArray
from bayesring.wording import as_text, shown

KINDS = {
    "U": "text",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "b": "booleans",
    "M": "dates",
    "m": "durations",
}
"""Kinds of keys, in words; kinds with the same word can be compared."""
NUMBERS = (int, float, np.integer, np.floating, Decimal)
"""Python types of numbers; booleans are integers, too."""
DATE_UNITS = ("D", "s", "ms", "us")
"""Units of time for dates, coarsest first; nanoseconds if none is fine enough."""
HALF = re.compile("[\ud800-\udfff]")
"""Half of a character beyond 16 bits, which no file can hold."""
LONGEST, LARGEST, PADDING = 10_000, 2**30, 32
"""Maximum characters of a text key. Maximum bytes of all labels of a mode, each padded to the
longest, unless they are at most this many times the size of the texts."""


class Zone(NamedTuple):
    """Time zone and unit of a column of times."""

    name: str
    """Name of the time zone, such as "Europe/Berlin"."""
    unit: str
    """Unit of the times in NumPy's notation: "s", "ms", "us" or "ns"."""


class Labels(NamedTuple):
    """Names of the modes and labels of their slices."""

    names: tuple[str, ...]
    """One per mode."""
    levels: tuple[NDArray[Any] | None, ...]
    """For each mode the labels of its slices, (I_d,), or None if there are only coordinates."""
    value: str | None
    """Name of the values, if any."""
    zones: tuple[Zone | None, ...] = ()
    """For each mode the time zone, or None; empty in old files, where it is unknown."""
    sites: tuple[Sites | None, ...] = ()
    """For each mode where its labels lie on a map, or None; empty if none do."""

    def at(self, lines: Sequence[IntArray]) -> Labels:
        """The labels with those of every mode in another order."""
        pairs = zip(self.levels, lines, strict=True)
        levels = tuple(own if own is None else own[line] for own, line in pairs)
        placed = zip(self.sites, lines, strict=bool(self.sites))
        sites = tuple(own if own is None else own.at(line) for own, line in placed)
        return self._replace(levels=levels, sites=sites)

    def sites_of(self, mode: int) -> Sites | None:
        """Where the labels of a mode lie on a map, if they do."""
        return self.sites[mode] if self.sites else None

    def with_sites(self, mode: int, sites: Sites | None) -> Labels:
        """The labels with those places of one mode."""
        own = list(self.sites or (None,) * len(self.names))
        own[mode] = sites
        return self._replace(sites=tuple(own))

    def check_zone(self, mode: int, zone: Zone | None, name: str) -> None:
        """Reject times without a zone for labels with one, and vice versa."""
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
"""For each mode the labels unknown to the fit, sorted."""


def plain_labels(order: int) -> Labels:
    """Labels of an unlabelled tensor: modes are numbered, and slices are coordinates."""
    return Labels(tuple(f"mode {mode}" for mode in range(order)), (None,) * order, None)


def counted_labels(shape: Sequence[int]) -> Labels:
    """Labels of a dense array: its axes count from zero."""
    plain = plain_labels(len(shape))
    return plain._replace(levels=tuple(np.arange(size) for size in shape))


def as_keys(values: Any, name: str) -> NDArray[Any]:
    """Keys (n,) as one of the allowed kinds of labels; raises an error for other types."""
    keys = np.asarray(values)
    if keys.dtype == object:
        keys = _from_objects(keys, name)
    kind = keys.dtype.kind
    if kind not in KINDS:
        raise ValueError(
            f"column {name!r} holds values of type {keys.dtype}, but a key must be text, a number, "
            "a date, a duration or a boolean."
        )
    if kind in "iu":
        keys = _integers(keys)
    if kind in "fMm":
        _refuse_missing(np.isnan(keys) if kind == "f" else np.isnat(keys), name)
    if kind == "U":
        _refuse_texts(keys, name)
    return _coarsest(keys) if kind == "M" else keys


def learn_levels(keys: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The sorted distinct keys, and the index of every key among them."""
    levels, codes = np.unique(keys, return_inverse=True)
    return levels, codes


def learn_column(values: Any, name: str) -> tuple[NDArray[Any], IntArray]:
    """The sorted distinct keys of a column, and the index of every row's key among them.

    No array has one text per row, because every text would be padded to the longest.
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
    """Index of the first text that is not a valid key, and why; None if all are valid."""
    lengths = [len(text) for text in texts]
    longest, allowed = max(lengths, default=0), max(LARGEST, 4 * PADDING * sum(lengths))
    room = min(LONGEST, allowed // (4 * max(1, len(texts))))
    for place, text in enumerate(texts):
        if "\0" in text:
            return place, "holds text with a NUL character, which keys may not contain,"
        if HALF.search(text):
            return place, f"holds the text {shown(text)}, which is not valid Unicode,"
        if longest > room and len(text) > room:
            return place, (
                f"holds a text of {len(text):,} characters, but a key may have at most {room:,},"
            )
    return None


def encode(keys: NDArray[Any], levels: NDArray[Any]) -> IntArray:
    """Index of every key among `levels` of the same kind; their number for keys not among them."""
    keys, exact = _in_type_of(levels, keys)
    order = np.argsort(levels, kind="stable")
    places = np.searchsorted(levels, keys, sorter=order)
    codes = order[np.minimum(places, len(levels) - 1)]
    return np.where(exact & (levels[codes] == keys), codes, len(levels))


def extend(levels: NDArray[Any], added: NDArray[Any], name: str) -> NDArray[Any]:
    """Labels with new ones at the end."""
    joined = np.concatenate([levels, added])
    if not (_in_type_of(joined, levels)[1].all() and _in_type_of(joined, added)[1].all()):
        raise ValueError(
            f"column {name!r} holds {added.dtype} labels such as {as_text(added[0])}, but the "
            f"model was fitted with {levels.dtype} such as {as_text(levels[0])}, and no type holds "
            "both exactly."
        )
    return joined


def _in_type_of(levels: NDArray[Any], keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers in the type of the labels, and which of them are still the same.

    NumPy would compare integers with floats as floats, which are the same for several integers.
    """
    if keys.dtype.kind == levels.dtype.kind or levels.dtype.kind not in "iuf":
        return keys, np.ones(keys.shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        converted = keys.astype(levels.dtype)
        return converted, np.asarray(converted.astype(keys.dtype) == keys)


def numbers_of(keys: NDArray[Any]) -> list[int]:
    """64-bit hash of the text of every key; equal keys have equal hashes in any storage type."""
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
    """For each mode the labels of its slices as text; coordinates if there are no labels."""
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
    if all(issubclass(each, NUMBERS) for each in types):
        return _from_numbers(objects, name)
    if types <= {datetime.date} or all(issubclass(each, datetime.datetime) for each in types):
        return _without_zones(objects, name).astype("M8[us]")
    if all(hasattr(each, "to_timestamp") for each in types):  # pandas periods
        return np.array([key.to_timestamp().to_datetime64() for key in objects])
    listed = " and ".join(sorted(each.__name__ for each in types))
    raise ValueError(
        f"column {name!r} holds Python objects of type {listed}, but a key must be text, a number, "
        "a date, a duration or a boolean, all of one kind."
    )


def _from_numbers(objects: NDArray[Any], name: str) -> NDArray[Any]:
    """Python numbers as integers if all are whole, and not all are floats; else as floats."""
    whole = [_whole(each) for each in objects]
    floats = all(isinstance(each, float | np.floating) for each in objects)
    if not floats and all(each is not None for each in whole):
        return _integers(np.array(whole, dtype=object))
    if any(issubclass(type(each), bool | np.bool_) for each in objects):
        raise ValueError(f"column {name!r} holds both numbers and booleans; give one kind.")
    return objects.astype(np.float64)


def _whole(number: Any) -> int | None:
    """A number as an integer, if it is one; never a boolean."""
    if isinstance(number, bool | np.bool_):
        return None
    try:
        return int(number) if number == int(number) else None
    except (OverflowError, ValueError):
        return None


def _integers(numbers: NDArray[Any]) -> NDArray[Any]:
    """Integers in the one type that all of them have, so that no comparison is inexact.

    If one of them is beyond 64 bits, all are kept as text.
    """
    if numbers.dtype.kind == "i":
        return numbers.astype(np.int64, copy=False)
    if numbers.dtype.kind == "u":
        fit = not numbers.size or int(numbers.max()) < 2**63
    else:
        fit = all(-(2**63) <= each < 2**63 for each in numbers)
    return numbers.astype(np.int64) if fit else np.array([str(each) for each in numbers.tolist()])


def _without_zones(objects: NDArray[Any], name: str) -> NDArray[Any]:
    """Dates, or times in UTC; a mix of times with and without a zone is rejected."""
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
    """The time zone of Python times; the first if there are several."""
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
    """Times in the coarsest unit that represents them all, so that equal times look the same."""
    for unit in DATE_UNITS:
        coarse = times.astype(f"{times.dtype.kind}8[{unit}]")
        if np.array_equal(coarse.astype(times.dtype), times):
            return coarse
    return times
