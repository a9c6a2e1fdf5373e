"""Where the labels of a mode lie: positions of numbers and times, and what comes after the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import Labels, as_keys
from bayesring.model.types import Axis, FloatArray, Places
from bayesring.wording import shown


def axes_of(labels: Labels, shape: Sequence[int]) -> list[Axis]:
    """What is known of the labels of every mode besides their names: where they lie, if anywhere.

    Numbers and times lie on a line, times in days. Coordinates without labels lie one apart.
    """
    axes = []
    for levels, size in zip(labels.levels, shape, strict=True):
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
    levels = list(labels.levels)
    for name, given in positions.items():
        mode = mode_of(name, labels.names, "positions")
        if levels[mode] is not None:
            raise ValueError(
                f"positions are for coordinates, but the mode {shown(labels.names[mode])} has "
                "labels; use numbers or times as its labels."
            )
        keys = as_keys(np.asarray(given), f"positions of {labels.names[mode]}")
        places = positions_of(keys)
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
        levels[mode] = keys if keys.dtype.kind in "mM" else keys.astype(float)
    return labels._replace(levels=tuple(levels))


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
    """Positions (n,) of numbers and times; None for other keys."""
    if keys.dtype.kind in "iuf":
        return keys.astype(float)
    if keys.dtype.kind in "mM":
        day = np.timedelta64(1, "D").astype("m8[ns]").astype(np.int64)
        return np.asarray(keys.astype(f"{keys.dtype.kind}8[ns]").astype(np.int64) / day)
    return None


def following(levels: NDArray[Any], n: int) -> NDArray[Any]:
    """The next `n` labels after the last of some numbers or times, at their usual distance.

    Times that are whole months or years apart go on by months.
    """
    if levels.dtype.kind in "iuf":
        steps = np.diff(levels) if len(levels) > 1 else np.ones(1, levels.dtype)
        step = np.sort(steps)[len(steps) // 2]
        return np.asarray(levels[-1] + step * np.arange(1, n + 1), dtype=levels.dtype)
    if levels.dtype.kind == "M" and len(levels) > 1:
        months = levels.astype("M8[M]")
        days = levels - months.astype(levels.dtype)
        apart = np.diff(months).astype(np.int64)
        if np.all(days == days[0]) and np.all(apart != 0):
            step = np.sort(apart)[len(apart) // 2]
            return np.asarray(
                (months[-1] + step * np.arange(1, n + 1)).astype(levels.dtype) + days[0]
            )
    steps = np.diff(levels) if len(levels) > 1 else np.array([1], "m8[D]")
    return np.asarray(levels[-1] + np.sort(steps)[len(steps) // 2] * np.arange(1, n + 1))


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
