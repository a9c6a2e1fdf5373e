"""Rules for the labels of a model file and for its texts, and functions that enforce them."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import HALF, KINDS, Labels, Zone
from bayesring.posterior.modelchecks import MOST_MODES, TEXT, listed
from bayesring.wording import shorten

TIME_UNITS = ("s", "ms", "us", "ns")


def check_texts(found: Any, where: str) -> None:
    """Plain data without texts, at any depth, that no file could hold as UTF-8."""
    if isinstance(found, dict):
        found = [*found, *found.values()]
    if isinstance(found, list | tuple):
        for each in found:
            check_texts(each, where)
    if isinstance(found, str) and HALF.search(found):
        raise ValueError(f"{where} holds the text {shorten(found)}, which is not valid Unicode.")


def check_keys(keys: NDArray[Any], where: str) -> None:
    """Keys without texts that tables refuse as keys, however long."""
    for text in keys.tolist() if keys.dtype.kind == "U" else ():
        if "\0" in text or HALF.search(text):
            raise ValueError(
                f"{where} hold the text {shorten(text)}, but keys are valid Unicode without NUL."
            )


def check_labels(labels: Labels, shape: tuple[int, ...]) -> None:
    """Labels of the modes: names, and distinct keys of a known type, one per slice."""
    if len(labels.names) != len(shape):
        raise ValueError(f"the labels must have {len(shape)} names, got {shorten(labels.names)}.")
    if len(labels.zones) not in (0, len(shape)):
        raise ValueError(f"the labels must have {len(shape)} time zones, got {labels.zones}.")
    for mode, (levels, size) in enumerate(zip(labels.levels, shape, strict=True)):
        if labels.zones and labels.zones[mode] and (levels is None or levels.dtype.kind != "M"):
            raise ValueError(f"the labels of mode {mode} have a time zone, but are not times.")
        if levels is None:
            continue
        where, kind = f"the labels of mode {mode}", levels.dtype.kind
        if kind not in KINDS or str(levels.dtype) in ("datetime64", "timedelta64"):
            raise ValueError(f"{where} are of type {levels.dtype}, which keys cannot have.")
        if levels.shape != (size,):
            raise ValueError(f"{where} have the shape {levels.shape}, but {(size,)} is required.")
        check_keys(levels, where)
        missing = np.isnat(levels) if kind in "Mm" else levels != levels
        if np.any(missing) or len(np.unique(levels)) < size:
            raise ValueError(f"{where} are not distinct.")


def zones_from_plain(found: Any) -> tuple[Zone | None, ...]:
    """Time zones of labels: null, or name and unit, per mode; absent in older files."""

    def fits(each: Any) -> bool:
        is_pair = listed(each, TEXT.fits) and len(each) == 2
        return each is None or (is_pair and each[1] in TIME_UNITS and _is_zone(each[0]))

    if not listed(found, fits, MOST_MODES):
        raise ValueError(f"the time zones of the labels must be names and units, got {found!r}.")
    return tuple(None if each is None else Zone(*each) for each in found)


def _is_zone(name: str) -> bool:
    """Whether a name is a time zone or an offset from UTC."""
    if re.fullmatch(r"(UTC)?[+-][0-9]{2}:[0-9]{2}(:[0-9]{2})?|UTC", name):
        return True
    try:
        return name in zoneinfo.available_timezones()
    except OSError:
        return False
