"""Checks of user input: each error is one sentence with argument, row, found, expected."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from bayesring.model.types import FloatArray, IntArray, Observations
from bayesring.wording import shown

MOST_SLICES = 2**31
"""Maximum size of a mode."""
LARGEST_FLOAT = 2.0**53
"""Size from which floats skip integers."""


def check_coordinates(X: Any, name: str = "X", order: int | None = None) -> IntArray:
    """Coordinates as an (n, D) integer array; D must be `order`, if that is given."""
    coords = as_array(X, name, objects=True)
    if coords.dtype == object and coords.ndim == 2 and coords.size:
        coords = _from_objects(coords, name)
    if coords.ndim == 2 and order is not None and coords.shape[1] != order:
        raise ValueError(
            f"{name} has {coords.shape[1]} features, but TensorRing is expecting {order} features "
            "as input: one column per mode."
        )
    if coords.ndim != 2:
        raise ValueError(
            f"{name} must be a table of coordinates with one row per observation and one column "
            f"per mode, got an array of {coords.ndim} dimension{'s' * (coords.ndim != 1)}. "
            "Reshape your data to (n, D)."
        )
    if coords.shape[0] == 0:
        raise ValueError(
            f"{name} is empty: found array with 0 sample(s) (shape={coords.shape}) while a minimum "
            "of 1 is required."
        )
    if coords.shape[1] < 2:
        raise ValueError(
            f"{name} must have at least 2 columns, one per mode, got {coords.shape[1]} feature(s) "
            f"(shape={coords.shape})."
        )
    if (
        coords.dtype.kind == "f"
        and np.isfinite(coords).all()
        and np.all(coords == np.floor(coords))
        and np.all(np.abs(coords) < LARGEST_FLOAT)
    ):
        coords = coords.astype(np.int64)  # such as the output of an OrdinalEncoder
    if coords.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold integer coordinates that count from 0, got {coords.dtype} values "
            f"such as {_first_odd(coords)}."
        )
    if coords.dtype.kind == "i" and coords.min() < 0:
        row, mode = np.argwhere(coords < 0)[0]
        raise ValueError(
            f"{name} must not be negative: coordinates count from 0, got {coords[row, mode]} in "
            f"row {row}, column {mode}."
        )
    if coords.max() > np.iinfo(np.int32).max:
        row, mode = np.argwhere(coords > np.iinfo(np.int32).max)[0]
        raise ValueError(
            f"{name} must be below 2^31, got {coords[row, mode]} in row {row}, column {mode}."
        )
    return np.asarray(coords)


def _from_objects(coords: Any, name: str) -> FloatArray:
    """Python objects as numbers."""
    for row, each in enumerate(coords.ravel().tolist()):
        if isinstance(each, str | bytes) or not hasattr(each, "__float__"):
            raise TypeError(
                f"{name} holds {shown(each)} in row {row // coords.shape[1]}, but the argument "
                "must be an array of integers, not of a string or anything but a number; for "
                "labels, give a table."
            )
    return numbers_of(coords.ravel().tolist(), name).reshape(coords.shape)


def _first_odd(coords: Any) -> str:
    """The first value that is not an integer, or too large to be one, with its row."""
    odd = np.zeros((1, 2), dtype=np.int64)
    if coords.dtype.kind == "f":
        odd = np.argwhere((coords != np.floor(coords)) | ~(np.abs(coords) < LARGEST_FLOAT))
    row, mode = (int(place) for place in odd[0])
    return f"{coords[row, mode]} in row {row}, column {mode}"


def check_within(coords: IntArray, shape: Sequence[int], name: str = "X") -> None:
    """Check that coordinates lie inside `shape`."""
    if coords.shape[1] != len(shape):
        raise ValueError(
            f"{name} has {coords.shape[1]} features, but TensorRing is expecting {len(shape)} "
            f"features as input: one column per mode of {tuple(shape)}."
        )
    beyond = coords.max(axis=0) >= np.asarray(shape)
    if beyond.any():
        mode = int(np.argmax(beyond))
        row = int(np.argmax(coords[:, mode] >= shape[mode]))
        raise ValueError(
            f"{name} has coordinate {coords[row, mode]} in row {row}, column {mode}, but mode "
            f"{mode} has size {shape[mode]}; give a larger shape= when fitting."
        )


def check_values(y: Any, n_rows: int, name: str = "y") -> FloatArray:
    """Values as an (n,) array of finite numbers, float64 or a type that fits into float32."""
    values = as_array(y, name, objects=True)
    if values.ndim == 2 and values.shape[1] == 1:
        values = one_column(values, name)
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have one value per row of X and 1 dimension, got shape {values.shape}."
        )
    if values.dtype == object:
        values = numbers_of(values.tolist(), name)
    if len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} values, but X has {n_rows} rows.")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got values of type {values.dtype}.")
    warn_of_rounding(values, name)
    values = values.astype(
        np.float32 if np.can_cast(values.dtype, np.float32) else np.float64, copy=False
    )
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        found = "NaN" if np.isnan(values[row]) else "infinity"
        raise ValueError(
            f"{name} must be finite, got {found} in row {row}; leave missing cells out of X and y."
        )
    return np.asarray(values)


def one_column(values: Any, name: str) -> Any:
    """A column as an array of one dimension, with the warning that scikit-learn gives."""
    from sklearn.exceptions import DataConversionWarning

    warnings.warn(
        f"A column-vector {name} was passed when a 1d array was expected; its only column is used.",
        DataConversionWarning,
        stacklevel=4,
    )
    return values[:, 0]


def numbers_of(objects: Sequence[Any], name: str, missing: Sequence[str] = ()) -> FloatArray:
    """Python objects as float64: any kind of number, Decimal too; None and its like are NaN.

    With words for a `missing` value, text may be numbers; without, it is refused.
    """
    found = np.empty(len(objects))
    rounded = None
    for row, each in enumerate(objects):
        text = each.strip() if isinstance(each, str) else None
        if each is None or type(each).__name__ in ("NAType", "NaTType") or text in missing:
            found[row] = np.nan
            continue
        try:
            if (text is not None and not missing) or isinstance(each, bytes | complex):
                raise ValueError
            found[row] = float(each)
        except (TypeError, ValueError, OverflowError):
            comma = text is not None and text.replace(",", ".", 1) != text
            hint = "; a decimal comma must be a point" if comma else ""
            raise ValueError(
                f"{name} holds {'the text ' * (text is not None)}{shown(each)} in row {row}, but "
                f"numbers are required{hint}."
            ) from None
        if rounded is None and isinstance(each, int) and int(found[row]) != each:
            rounded = row
    if rounded is not None:
        warn_of_rounded(name, str(objects[rounded]), found[rounded], f"row {rounded}")
    return found


def warn_of_rounding(values: Any, name: str) -> None:
    """Warn of integers that floats cannot hold."""
    row = first_rounded(values)
    if row is not None:
        given = np.ravel(values)[row]
        warn_of_rounded(name, str(given), float(given), f"row {row}")


def first_rounded(values: Any) -> int | None:
    """The first integer that a float cannot hold, if any."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return None
    if max(int(values.max()), -int(values.min())) <= LARGEST_FLOAT:
        return None
    flat = np.ravel(values)
    rounded = flat.astype(np.float64)
    whole = rounded < 2.0 ** (63 + (values.dtype.kind == "u"))  # else it cannot be converted back
    same = whole & (np.where(whole, rounded, 0.0).astype(values.dtype) == flat)
    return None if same.all() else int(np.argmin(same))


def warn_of_rounded(name: str, given: str, rounded: float, where: str, stacklevel: int = 4) -> None:
    """Warn that values are not used as given."""
    warnings.warn(
        f"{name} holds integers beyond 2^53 that are rounded to the nearest float64, such as "
        f"{given} in {where}, which becomes {int(rounded)}.",
        UserWarning,
        stacklevel=stacklevel,
    )


def check_shape(shape: Any, coords: IntArray) -> tuple[int, ...]:
    """Sizes of the modes: `shape` if it is large enough, or the largest coordinates plus one."""
    if shape is None:
        return tuple(int(size) + 1 for size in coords.max(axis=0))
    try:
        sizes = tuple(int(size) for size in shape)
        whole = all(size == given for size, given in zip(sizes, shape, strict=True))
    except (TypeError, ValueError, OverflowError):
        whole, sizes = False, ()
    if not whole or any(size < 1 for size in sizes):
        raise ValueError(f"shape must be one positive integer per mode, got {shown(shape)}.")
    if max(sizes, default=1) > MOST_SLICES:
        raise ValueError(f"shape must be at most 2^31 in every mode, got {shown(shape)}.")
    check_within(coords, sizes)
    return sizes


def check_grown(shape: Any, coords: IntArray, known: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of modes that may have grown: `shape`, or as large as the coordinates require."""
    if coords.shape[1] != len(known):
        check_within(coords, known)
    sizes = check_shape(shape, coords)
    if shape is None:
        return tuple(max(pair) for pair in zip(sizes, known, strict=True))
    if any(new < old for new, old in zip(sizes, known, strict=True)):
        raise ValueError(f"shape {sizes} is smaller than {known}, but modes can only grow.")
    return sizes


def check_observations(X: Any, y: Any, shape: Any) -> Observations:
    """Coordinates, values and shape, checked together."""
    if y is None and np.ndim(X) > 2:
        raise ValueError(
            f"X is a whole array, of shape {np.shape(X)}, without y; to fill its gaps use "
            "bayesring.complete(X)."
        )
    if y is None:
        raise ValueError(
            "y is required: one value per row of X. This estimator requires y to be passed, "
            "but the target y is None."
        )
    coords = check_coordinates(X)
    values = check_values(y, len(coords))
    return Observations(coords, values, check_shape(shape, coords))


def check_choice(value: Any, name: str, known: Iterable[str]) -> str:
    """One of some names."""
    if not isinstance(value, str) or value not in known:
        raise unknown_name(name, value, known)
    return value


def check_count(value: Any, name: str, minimum: int) -> int:
    """An integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {shown(value)}.")
    return int(value)


def check_level(level: float) -> float:
    """A probability strictly between 0 and 1."""
    if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
        raise ValueError(f"level must lie strictly between 0 and 1, got {shown(level)}.")
    return float(level)


def check_point(point: str) -> str:
    """Which estimate of a cell is wanted: "mean" or "median"."""
    return check_choice(point, "point", ("mean", "median"))


def free_memory() -> int | None:
    """Bytes of available memory, if the system reports it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        amounts = dict(line.split(":") for line in lines)
        return 1024 * int(amounts["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def check_fits(n_bytes: int, what: str, instead: str) -> None:
    """Raise an error for results larger than the free memory."""
    free = free_memory()
    if free is not None and n_bytes > free:
        raise ValueError(
            f"{what} takes {min(n_bytes, 2**900) / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB of "
            f"memory are free; {instead}"
        )


def unknown_name(
    argument: str, value: Any, known: Iterable[str], otherwise: str | None = None
) -> ValueError:
    """Error for an unknown name, suggesting the closest known one."""
    names = sorted(known)
    near = get_close_matches(value, names, n=1) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    *listed, last = [*map(repr, names), *([] if otherwise is None else [otherwise])]
    choices = f"{', '.join(listed)} or {last}" if listed else last
    return ValueError(f"{argument} must be {choices}, got {shown(value)}.{hint}")


def import_pyarrow() -> Any:
    """Import pyarrow, or raise an error that says how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "CSV, Parquet and Arrow files need pyarrow: pip install 'bayesring[files]'."
        ) from None
    return pyarrow


def as_array(data: Any, name: str, n_rows: int | None = None, objects: bool = False) -> Any:
    """An array of numbers or text, of as many values as there are rows, if that is given.

    One of Python objects is refused, unless the caller takes `objects`.
    """
    if hasattr(data, "toarray"):
        raise TypeError(
            f"{name} is a sparse matrix, but a dense array of coordinates is required; "
            "sparse input is not supported here."
        )
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError(
            f"{name} is a masked array, whose mask would be lost; leave masked rows out of X and y."
        )
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"{name} has rows of unequal length.") from None
    if array.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers. Complex data not supported.")
    if array.dtype == object and not objects:
        raise ValueError(
            f"{name} holds Python objects (dtype object) such as {shown(array.ravel()[0])}, but "
            f"numbers are required; convert it, for example with {name}.astype(int)."
        )
    if n_rows is not None and array.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one value per row of X and 1 dimension: {n_rows} values, got shape "
            f"{array.shape}."
        )
    return array
