"""Observed entries of a tensor in coordinate form, and their order.

Large data are stored compactly: indices are int32, and values are float32 from `COMPACT`
observations on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bayesring.kernels import sorting
from bayesring.model.types import FloatArray, Given, IntArray, Observations

__all__ = [
    "COMPACT",
    "HeldOut",
    "Observations",
    "both",
    "in_order",
    "joined",
    "merged",
    "standardised",
]

COMPACT = 500_000
"""Number of observations from which values are stored in float32."""


class HeldOut(NamedTuple):
    """Predictions for training values made before the chains saw them, in the units of the data."""

    coords: IntArray
    """(n, D)."""
    values: FloatArray
    """(n,), observed values."""
    mean: FloatArray
    """(n,), predicted mean of a new observation; for binary data the probability of a one."""
    std: FloatArray
    """(n,), predicted standard deviation of a new observation."""


def in_order(data: Observations) -> Observations:
    """The observations sorted by coordinates, then value, so order of arrival cannot matter.

    Coordinates become int32 in column order, and values are in standard units. Data already in this
    form are returned unchanged.
    """
    n, value_type = len(data.values), _value_type(len(data.values))
    if not data.given.is_empty:
        return _in_order_with_given(data, value_type)
    tidy = data.coords.dtype == np.int32 and data.coords.flags.f_contiguous
    tidy = tidy and data.values.dtype == value_type and (data.location, data.scale) == (0.0, 1.0)
    if tidy and sorting.is_sorted(data.coords.T, data.values):
        return data
    columns = np.empty((len(data.shape), n), dtype=np.int32)
    values = np.empty(n, dtype=value_type)
    order, ordered, column = np.empty((3, n), dtype=np.int32 if n < 2**31 else np.int64)
    order[:] = np.arange(n, dtype=order.dtype)
    for mode in reversed(range(len(data.shape))):
        column[:] = data.coords[:, mode]
        starts = sorting.slice_starts(column, data.shape[mode])
        sorting.sort_by(column, starts, order, ordered)
        order, ordered = ordered, order
    for mode in range(len(data.shape)):
        column[:] = data.coords[:, mode]
        sorting.take(column, order, columns[mode])
    sorting.take_standard(data.values, order, data.location, data.scale, values)
    sorting.sort_ties(columns, values)
    return Observations(columns.T, values, data.shape)


def merged(data: Observations) -> Observations:
    """Sorted observations in which equal ones have become one of their total weight.

    An observation of weight w is thus the same as w observations, to the last bit.
    """
    given = data.given._replace(weight=None)
    columns = [*data.coords.T, data.values, *(each for each in given if each is not None)]
    new = np.ones(len(data.values), dtype=bool)
    new[1:] = False
    for column in columns:
        before, after = column[:-1], column[1:]
        new[1:] |= ~((before == after) | ((before != before) & (after != after)))
    if new.all() and data.given.weight is None:
        return data
    weight = np.ones(len(new)) if data.given.weight is None else data.given.weight
    total = np.add.reduceat(weight, np.flatnonzero(new))
    kept = np.ascontiguousarray(data.coords[new].T).T
    more = given.at(new)._replace(weight=None if np.all(total == 1.0) else total)
    return data._replace(coords=kept, values=data.values[new], given=more)


def joined(old: Observations | None, new: Observations) -> Observations | None:
    """All observations in order, in the units of the data; None if the old ones are not kept.

    Modes may have grown. The units named by `new` are left out.
    """
    if old is None:
        return None
    coords = np.concatenate([old.coords, new.coords])
    values = np.concatenate([old.values, new.values])
    given = both(old, new)
    if len(values) >= COMPACT:
        return None
    return in_order(Observations(coords, values, new.shape, given=given))


ABSENT = Given(
    weight=np.ones(1),
    offset=np.zeros(1),
    exposure=np.ones(1),
    error=np.zeros(1),
    lower=np.full(1, np.nan),
    upper=np.full(1, np.nan),
)
"""What stands for a field that some observations lack."""


def both(one: Observations, other: Observations) -> Given:
    """What is known about observations of two sets, one after the other."""
    fields: list[Any] = []
    for a, b, absent in zip(one.given, other.given, ABSENT, strict=True):
        if a is None and b is None:
            fields.append(None)
            continue
        assert absent is not None  # groups are not kept
        parts = [
            np.broadcast_to(absent, len(own.values)) if each is None else each
            for each, own in ((a, one), (b, other))
        ]
        fields.append(np.concatenate(parts))
    return Given(*fields)


Cells = TypeVar("Cells", Observations, HeldOut)


def renumbered(data: Cells, lines: Sequence[IntArray]) -> Cells:
    """The same cells where slice `lines[d][i]` of each mode has become slice i."""
    places = [np.argsort(line) for line in lines]
    columns = [place[column] for place, column in zip(places, data.coords.T, strict=True)]
    return data._replace(coords=np.stack(columns, axis=1).astype(data.coords.dtype))


def standardised(data: Observations, location: float, scale: float) -> Observations:
    """Values in standard units: converted now if the data are in order, else when sorted."""
    if len(data.values) >= COMPACT:
        return data._replace(location=location, scale=scale)
    given = data.given.in_units(location, scale)
    return data._replace(values=(data.values.astype(float) - location) / scale, given=given)


def _in_order_with_given(data: Observations, value_type: Any) -> Observations:
    """`in_order` with one sort over all fields of an observation, so that they stay together."""
    values = ((np.asarray(data.values, dtype=float) - data.location) / data.scale).astype(
        value_type
    )
    given = data.given.in_units(data.location, data.scale)
    carried = [each for each in given if each is not None]
    order = np.lexsort([*reversed(carried), values, *reversed(data.coords.T)])
    columns = np.ascontiguousarray(data.coords[order].T, dtype=np.int32)
    return Observations(columns.T, values[order], data.shape, given=given.at(order))


def _value_type(n: int) -> type[np.floating[Any]]:
    return np.float64 if n < COMPACT else np.float32
