"""Where the labels of a mode lie: positions of numbers and times, and what comes after the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import Labels, Zone, as_keys
from bayesring.data.sites import given_sites, more_sites, places_of_new
from bayesring.model.types import Axis, FloatArray, Places
from bayesring.wording import shown

DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": 86_400 * 10**6}
DAY["ns"] = 86_400 * 10**9
"""Units of time per day."""


def axes_of(labels: Labels, shape: Sequence[int]) -> list[Axis]:
    """What is known of the labels of every mode besides their names: where they lie, if anywhere.

    Numbers and times lie on a line, times in days, unless they have places on a map. Coordinates
    without labels lie one apart.
    """
    axes = []
    for mode, (levels, size) in enumerate(zip(labels.levels, shape, strict=True)):
        sites = labels.sites_of(mode)
        if sites is not None:
            known = len(sites.places) == size and sites.usable
            axes.append(Axis(size, sites.coordinates() if known else None, Places.MEASURED))
            continue
        if levels is None:
            axes.append(Axis.of_coordinates(size))
            continue
        positions = positions_of(levels)
        if positions is not None:
            positions = positions[:, None] if _in_line(positions) else None
        places = Places.WHOLE if levels.dtype.kind in "iu" else Places.MEASURED
        axes.append(Axis(size, positions, places))
    return axes


def placed(labels: Labels, positions: Mapping[str | int, Any], shape: Sequence[int]) -> Labels:
    """Labels of coordinates whose positions are known: the positions themselves."""
    _check_mapping(positions)
    levels = list(labels.levels)
    for name, given in positions.items():
        mode = mode_of(name, labels.names, "positions")
        keys = np.arange(shape[mode]) if levels[mode] is None else levels[mode]
        sites = given_sites(given, labels.names[mode], keys, shape[mode])
        if sites is not None:
            labels = labels.with_sites(mode, sites)
            continue
        if levels[mode] is not None:
            raise ValueError(
                f"positions are for coordinates, but the mode {shown(labels.names[mode])} has "
                "labels; use numbers or times as its labels."
            )
        keys = _as_array(given)
        places = None if keys.ndim != 1 or keys.dtype == object else positions_of(keys)
        if keys.shape != (shape[mode],) or places is None:
            raise ValueError(
                f"positions of the mode {shown(labels.names[mode])} must be {shape[mode]} numbers "
                f"or times, one per coordinate, got an array of {keys.dtype} and shape "
                f"{keys.shape}."
            )
        if not _in_line(places):
            raise ValueError(
                f"positions of the mode {shown(labels.names[mode])} must be finite and increase "
                "from each coordinate to the next, or decrease."
            )
        keys = as_keys(keys, f"positions of {labels.names[mode]}")
        levels[mode] = keys if keys.dtype.kind in "mM" else keys.astype(float)
    return labels._replace(levels=tuple(levels))


def placed_more(
    labels: Labels,
    positions: Mapping[str | int, Any],
    known: Sequence[int],
    shape: Sequence[int],
) -> Labels:
    """Labels with the positions of new coordinates, given for these alone or for all of a mode."""
    _check_mapping(positions)
    for name, given in positions.items():
        mode = mode_of(name, labels.names, "positions")
        called, levels, before = shown(labels.names[mode]), labels.levels[mode], known[mode]
        sites = labels.sites_of(mode)
        if sites is not None:
            keys = np.arange(shape[mode]) if levels is None else levels
            places = places_of_new(sites, given, labels.names[mode], keys, before)
            labels = labels.with_sites(mode, sites._replace(places=places))
            continue
        if levels is None or positions_of(levels) is None:
            raise ValueError(
                f"positions are given for the mode {called}, whose labels had none in the fit."
            )
        if len(levels) > before:
            raise ValueError(
                f"positions are for coordinates, but X is a table, whose column {called} says "
                "where its new labels lie."
            )
        levels = _continued(levels, given, called, shape[mode])
        labels = labels._replace(levels=(*labels.levels[:mode], levels, *labels.levels[mode + 1 :]))
    return labels


def _continued(levels: NDArray[Any], given: Any, called: str, size: int) -> NDArray[Any]:
    """Positions of known coordinates, and of those beyond them."""
    keys, before = _as_array(given), len(levels)
    numbers = keys.ndim == 1 and (not len(keys) or positions_of(keys) is not None)
    if not numbers or len(keys) not in (size - before, size):
        wanted = f"{size - before} numbers or times, one per new coordinate, or {size}, one per"
        raise ValueError(
            f"positions of the mode {called} must be {wanted} coordinate, got an array of "
            f"{keys.dtype} and shape {keys.shape}."
        )
    if not len(keys):
        return levels
    if (
        keys.dtype.kind in "mM" or levels.dtype.kind in "mM"
    ) and keys.dtype.kind != levels.dtype.kind:
        raise ValueError(
            f"positions of the mode {called} must be of the kind that the fit had, {levels.dtype}, "
            f"got {keys.dtype}."
        )
    if len(keys) == size:
        differ = np.flatnonzero(keys[:before] != levels)
        if len(differ):
            raise ValueError(
                f"positions of the mode {called} must begin with those of the fit, but coordinate "
                f"{differ[0]} lay at {levels[differ[0]]!s}, and now at {keys[differ[0]]!s}."
            )
        keys = keys[before:]
    found = np.concatenate([levels, keys if keys.dtype.kind in "mM" else keys.astype(float)])
    places = positions_of(found)
    if places is None or not _in_line(places):
        raise ValueError(
            f"positions of the mode {called} must be finite and go on from the last known one, "
            f"{levels[-1]!s}, in the same direction from each coordinate to the next."
        )
    return found


def _check_mapping(positions: Any) -> None:
    if not isinstance(positions, Mapping):
        raise TypeError(
            f"positions must map modes to arrays, as {{'day': days}}, got {shown(positions)}."
        )


def _as_array(given: Any) -> NDArray[Any]:
    """Positions as an array; of objects if they are no rectangle."""
    try:
        keys = np.asarray(given)
        return np.array(keys.tolist(), dtype="M8[us]") if _dates(keys) else keys
    except (ValueError, TypeError):
        return np.empty(0, dtype=object)


def _dates(keys: NDArray[Any]) -> bool:
    return keys.dtype == object and keys.ndim == 1 and all(isinstance(k, date) for k in keys)


def _in_line(positions: FloatArray) -> bool:
    """Whether positions increase or decrease, and can be subtracted."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps, reach = np.diff(positions), positions[-1:] - positions[:1]
    finite = bool(np.isfinite(positions).all() and np.isfinite(reach).all())
    return finite and bool(np.all(steps > 0) or np.all(steps < 0))


def mode_of(name: Any, names: Sequence[str], argument: str) -> int:
    """The number of a mode from its name or number."""
    if isinstance(name, str) and name in names:
        return list(names).index(name)
    is_number = isinstance(name, (int, np.integer)) and not isinstance(name, bool)
    if is_number and 0 <= name < len(names):
        return int(name)
    raise ValueError(f"{argument} names the mode {shown(name)}, but the modes are {list(names)}.")


def positions_of(keys: NDArray[Any]) -> FloatArray | None:
    """Positions (n,) of numbers and times, the latter in days; None for other keys."""
    if keys.dtype.kind in "iuf":
        return keys.astype(float)
    if keys.dtype.kind not in "mM":
        return None
    unit, count = np.datetime_data(keys.dtype)
    if unit not in DAY:
        keys, unit, count = keys.astype(f"{keys.dtype.kind}8[D]"), "D", 1
    return np.asarray(keys.astype(np.int64) * (count / DAY[unit]))


def positions_of_new(labels: Labels, added: Sequence[NDArray[Any]], X: Any) -> list[Any]:
    """Positions (n, P) of the new labels of each mode, or None; on a map as the table `X` says."""
    found: list[Any] = []
    for mode, new in enumerate(added):
        sites, line = labels.sites_of(mode), positions_of(new)
        if sites is not None:
            more = sites._replace(places=more_sites(sites, X, labels.names[mode], new))
            found.append(more.coordinates())
        else:
            found.append(None if line is None else line[:, None])
    return found


def positions_among(
    labels: Labels, known: Sequence[int], added: Sequence[NDArray[Any]]
) -> list[Any]:
    """Positions (n, P) of labels of each mode beyond those known, or None."""
    found: list[Any] = []
    for mode, (size, new) in enumerate(zip(known, added, strict=True)):
        sites, line = labels.sites_of(mode), positions_of(new)
        if sites is not None:
            found.append(sites.coordinates()[size:])
        else:
            found.append(None if line is None else line[:, None])
    return found


def with_new_sites(labels: Labels, known: Sequence[int], shape: Sequence[int], X: Any) -> Labels:
    """Labels with the places of those that are new, as the table `X` says."""
    for mode, (before, size) in enumerate(zip(known, shape, strict=True)):
        sites, levels = labels.sites_of(mode), labels.levels[mode]
        if sites is not None and size > before:
            new = np.arange(before, size) if levels is None else levels[before:]
            own = sites.at(np.arange(size)).places
            more = more_sites(sites, X, labels.names[mode], new)
            own[before:] = np.where(np.isnan(more), own[before:], more)
            labels = labels.with_sites(mode, sites._replace(places=own))
    return labels


def following(levels: NDArray[Any], n: int, zone: Zone | None = None) -> NDArray[Any]:
    """The next `n` labels after the last of some numbers or times, at their usual distance.

    Times that are whole months apart go on by months, ends of months by ends of months, and times
    in a zone by its clocks. The last of times is the latest.
    """
    if levels.dtype.kind in "iuf":
        return _next_numbers(levels, n)
    if levels.dtype.kind == "m":
        step = _usual(np.diff(levels).astype(np.int64)) if len(levels) > 1 else 1
        return np.asarray(levels[-1] + np.array(step * np.arange(1, n + 1), dtype=levels.dtype))
    times = np.sort(levels if zone is None else _local(levels, zone))
    monthly = _next_months(times, n)
    steps = np.diff(times).astype(np.int64)
    step = int(_usual(steps))
    daily = times[-1] + np.array(step * np.arange(1, n + 1), dtype=f"m8[{_unit(times)}]")
    new = np.asarray(daily if monthly is None else monthly)
    return new if zone is None else _universal(new, zone)


def _next_numbers(levels: NDArray[Any], n: int) -> NDArray[Any]:
    """Numbers that go on at their usual distance, without rounding integers."""
    plain = levels.tolist()
    steps = sorted(after - before for before, after in pairwise(plain)) or [1]
    step = steps[len(steps) // 2]
    new = [plain[-1] + step * place for place in range(1, n + 1)]
    if max(map(abs, new)) > (np.finfo(float).max if levels.dtype.kind == "f" else 2**63 - 1):
        raise ValueError(f"the labels after {levels[-1]!s} are too large for {levels.dtype}.")
    return np.array(new, dtype=levels.dtype)


def _usual(steps: NDArray[Any]) -> float:
    """The middle one of some distances; one if there are none."""
    return float(np.sort(steps)[len(steps) // 2]) if len(steps) else 1.0


def _next_months(times: NDArray[Any], n: int) -> NDArray[Any] | None:
    """The next times if all are on the same day of different months, or on their last days."""
    months = times.astype("M8[M]")
    apart = np.diff(months).astype(np.int64)
    if not apart.size or not np.all(apart > 0):
        return None
    dates = times.astype("M8[D]")
    day = (dates - months.astype("M8[D]")).astype(np.int64)
    clock = times - dates.astype(times.dtype)
    wanted = int(day.max())
    if np.any(clock != clock[0]) or np.any(day != np.minimum(wanted, _lengths(months) - 1)):
        return None
    new = months[-1] + int(_usual(apart)) * np.arange(1, n + 1)
    days = new.astype("M8[D]") + np.minimum(wanted, _lengths(new) - 1)
    return np.asarray(days.astype(times.dtype) + clock[0])


def _lengths(months: NDArray[Any]) -> NDArray[Any]:
    """Days of some months."""
    return np.asarray(((months + 1).astype("M8[D]") - months.astype("M8[D]")).astype(np.int64))


def _unit(times: NDArray[Any]) -> str:
    unit, count = np.datetime_data(times.dtype)
    return unit if count == 1 else f"{count}{unit}"


def _local(times: NDArray[Any], zone: Zone) -> NDArray[Any]:
    """What clocks of a zone show at times in UTC."""
    here = ZoneInfo(zone.name)
    gaps = [
        datetime.fromtimestamp(int(second), here).utcoffset()
        for second in times.astype("M8[s]").astype(np.int64)
    ]
    own = np.array(gaps, dtype=f"m8[{zone.unit}]")
    return np.asarray(times.astype(f"M8[{zone.unit}]") + own)


def _universal(clocks: NDArray[Any], zone: Zone) -> NDArray[Any]:
    """Times in UTC when clocks of a zone show this."""
    here = ZoneInfo(zone.name)
    gaps = [
        each.replace(tzinfo=here).utcoffset() for each in clocks.astype("M8[us]").astype(object)
    ]
    return np.asarray(clocks - np.array(gaps, dtype=f"m8[{zone.unit}]"))


def prolonged(labels: Labels, shape: Sequence[int]) -> Labels:
    """Positions of coordinates that have grown, at their usual distance."""
    return labels._replace(
        levels=tuple(
            own
            if own is None or len(own) >= size
            else np.concatenate([own, following(own, size - len(own))])
            for own, size in zip(labels.levels, shape, strict=True)
        )
    )
