"""What users know about observations besides their values: weights, exposures, errors, ends.

Each is a column of the table, by name, or one number per row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.checks import as_array, check_values
from bayesring.likelihoods import Likelihood
from bayesring.model.types import FloatArray, Given
from bayesring.wording import shown

ARGUMENTS = {
    "sample_weight": "weight",
    "exposure": "exposure",
    "value_error": "error",
    "value_lower": "lower",
    "value_upper": "upper",
}
"""Arguments of `fit`, and the fields of `Given` that they fill."""
ENDS = ("value_lower", "value_upper")
POSITIVE = ("exposure",)

Extras = Mapping[str, Any]
"""Arguments that were given: names of columns, or arrays."""


def given_arguments(**arguments: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: each for name, each in arguments.items() if each is not None}


def columns_of(extras: Extras) -> list[str]:
    """Names of columns among them, which are no keys."""
    return [each for each in extras.values() if isinstance(each, str)]


def read_extras(
    extras: Extras,
    n_rows: int,
    frame: nw.DataFrame[Any] | None = None,
    unneeded: NDArray[np.bool] | None = None,
) -> dict[str, FloatArray]:
    """Every argument as (n,) numbers, checked; NaN only where an end is open.

    In rows that are `unneeded`, since they have no value, an argument may be missing, too.
    """
    found = {}
    for name, each in extras.items():
        column, called = each, name
        if isinstance(each, str):
            column, called = _column(name, each, frame).to_numpy(), f"{name} column {each!r}"
        if unneeded is not None and name not in ENDS:
            column = _with_ones(column, unneeded)
        found[name] = _numbers(column, n_rows, called, name)
    return found


def check_columns(
    extras: Extras, frame: nw.DataFrame[Any], modes: Sequence[str] | None, value: str | None
) -> None:
    """Refuse names of columns that a table does not have, or that hold keys or values."""
    for name, each in extras.items():
        if isinstance(each, str):
            _column(name, each, frame)
            if each == value or each in (modes or ()):
                what = "the values" if each == value else "keys"
                raise ValueError(f"{name} names {shown(each)}, the column that holds {what}.")


def _column(name: str, each: str, frame: nw.DataFrame[Any] | None) -> Any:
    if frame is None or each not in frame.columns:
        where = "X is not a table" if frame is None else f"its columns are {frame.columns}"
        raise ValueError(
            f"{name} names {shown(each)}, which is not a column of the table; {where}."
        )
    return frame[each]


def _with_ones(column: Any, rows: NDArray[np.bool]) -> Any:
    """A column with ones where it is missing in some rows; anything else remains as it is."""
    plain = without_none(column)
    numbers = np.asarray(plain) if isinstance(plain, np.ndarray) else plain
    if getattr(numbers, "shape", None) != rows.shape or numbers.dtype.kind != "f":
        return column
    return np.where(rows & np.isnan(numbers), 1.0, numbers)


def without_none(column: Any) -> Any:
    """A column with NaN for None; one that holds objects otherwise remains as it is."""
    if isinstance(column, np.ma.MaskedArray):
        return column
    try:
        numbers = np.asarray(column)
    except ValueError:
        return column
    if numbers.dtype != object or numbers.ndim != 1:
        return column
    missing = {"None", "<NA>"}
    return np.array([np.nan if str(each) in missing else each for each in numbers.tolist()])


def _numbers(column: Any, n_rows: int, called: str, name: str) -> FloatArray:
    """Numbers in the range that the argument has."""
    numbers = as_array(without_none(column), called)
    if name in ENDS:
        if numbers.shape != (n_rows,) or numbers.dtype.kind not in "biuf":
            raise ValueError(
                f"{called} must be {n_rows} numbers, one per row, got {shown(column)}."
            )
        return np.asarray(numbers, dtype=float)
    if numbers.ndim == 0 and numbers.dtype.kind in "biuf":
        numbers = np.full(n_rows, float(numbers))
    values = check_values(numbers, n_rows, called).astype(float)
    low = values <= 0 if name in POSITIVE else values < 0
    if low.any():
        row = int(np.argmax(low))
        least = "positive" if name in POSITIVE else "zero or more"
        raise ValueError(f"{called} must be {least}, got {values[row]:g} in row {row}.")
    return values


def between(values: FloatArray, found: Mapping[str, FloatArray]) -> tuple[FloatArray, Given]:
    """Values with a stand-in where only ends are known, and everything that is known besides.

    Ends count where the value is missing. A row with two equal ends has that value.
    """
    fields: Any = {ARGUMENTS[name]: each for name, each in found.items() if name not in ENDS}
    given = Given(**fields)
    if not any(name in found for name in ENDS):
        return values, given
    nothing = np.full(len(values), np.nan)
    lower, upper = (found.get(name, nothing) for name in ENDS)
    _check_ends(values, lower, upper)
    known = np.isnan(values) & ~(np.isnan(lower) & np.isnan(upper))
    lower = np.where(np.isnan(lower), -np.inf, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    known &= np.isfinite(lower) | np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(lower), upper, np.where(np.isinf(upper), lower, lower + upper))
        middle = np.where(np.isfinite(lower) & np.isfinite(upper), 0.5 * middle, middle)
    values = np.where(known, middle, values)
    known &= lower < upper
    if not known.any():
        return values, given
    return values, given._replace(
        lower=np.where(known, lower, np.nan), upper=np.where(known, upper, np.nan)
    )


def _check_ends(values: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    """Ends in the right order, and values between them."""
    with np.errstate(invalid="ignore"):
        crossed = lower > upper
        outside = (values < lower) | (values > upper)
    for wrong, what in (
        (crossed, "value_lower is above value_upper"),
        (outside, "the value is not between value_lower and value_upper"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{what} in row {row}: value {values[row]:g}, ends {lower[row]:g} and "
                f"{upper[row]:g}."
            )


def positive_rows(found: Mapping[str, FloatArray]) -> NDArray[np.bool] | None:
    """Rows of positive weight; None if all are."""
    weight = found.get("sample_weight")
    if weight is None or np.all(weight > 0):
        return None
    if not np.any(weight > 0):
        raise ValueError("sample_weight is zero in every row; at least one must be positive.")
    return np.asarray(weight > 0)


def check_carried(given: Given, likelihood: Likelihood) -> None:
    """Refuse what the likelihood cannot use."""
    for name, each in given._asdict().items():
        if each is not None and name not in likelihood.carries:
            argument = next(own for own, field in ARGUMENTS.items() if field == name)
            raise ValueError(
                f"{argument} was given, which the likelihood {type(likelihood).__name__} cannot "
                "use; see the table of likelihoods in docs/your-own-data.md."
            )
    likelihood.check_given(given)
