"""What is known of the cells of a container besides their values: weights, errors, exposures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesring.checks import as_array
from bayesring.data.containers import Container, Dense
from bayesring.data.extras import ENDS, Extras, between, positive_rows, read_extras, without_none
from bayesring.data.inputs import observations_of_table
from bayesring.data.longtables import Long
from bayesring.data.masks import along
from bayesring.data.observations import Observations
from bayesring.data.positions import mode_of, placed
from bayesring.model.types import FloatArray, Given


class KnownCells(NamedTuple):
    """What is known of a container's cells."""

    observed: Observations
    """Those with a value, or with ends of one, and of positive weight."""
    missing: Given
    """Exposures of the cells to fill, if there are any."""


def known_of(container: Container, extras: Extras) -> KnownCells:
    """The known cells with what else was given, and what was given for those to fill."""
    if not extras:
        return KnownCells(container.observations, Given())
    if isinstance(container, Long):
        return _of_table(container, extras)
    if not isinstance(container, Dense):
        raise ValueError(
            f"{next(iter(extras))} is for tables and dense arrays, but data is a sparse array."
        )
    return _of_array(container, extras)


def _of_table(table: Long, extras: Extras) -> KnownCells:
    """Columns of the table, or one number per row."""
    missing = np.isnan(table.coded.values)
    found = _read(extras, len(missing), table, missing)
    data, _ = observations_of_table(table.coded, found)
    exposure = found.get("exposure")
    if exposure is not None:
        exposure = exposure[table.asked]
    return KnownCells(_of_positive_weight(data), Given(exposure=exposure))


def _of_array(array: Dense, extras: Extras) -> KnownCells:
    """Arrays of the same shape, or of one that can be spread over it."""
    values = array.values
    for name in (name for name, each in extras.items() if isinstance(each, str)):
        raise ValueError(
            f"{name} names a column of a table, but data is an array; give an array of its shape."
        )
    spread = {name: _spread(each, array, name) for name, each in extras.items()}
    gaps = np.isnan(values).ravel()
    found = _read(spread, values.size, None, gaps)
    stand_ins, given = between(values.ravel(), found)
    known = ~np.isnan(stand_ins)
    coords = np.stack(np.unravel_index(np.flatnonzero(known), values.shape), axis=1)
    data = Observations(coords, stand_ins[known], values.shape, given=given.at(known))
    exposure = found.get("exposure")
    if exposure is not None:
        exposure = exposure.reshape(values.shape)[tuple(array.missing.T)]
    return KnownCells(_of_positive_weight(data), Given(exposure=exposure))


def _read(extras: Extras, n: int, table: Long | None, missing: Any) -> Mapping[str, FloatArray]:
    """Numbers, which may be missing where there is no value; but exposures are needed there."""
    frame = None if table is None else table.frame
    exposure = {name: each for name, each in extras.items() if name == "exposure"}
    column = exposure.get("exposure")
    if isinstance(column, str) and frame is not None:
        column = frame[column].to_numpy()
    numbers = np.asarray(without_none(column)) if column is not None else np.empty(0)
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        raise ValueError(
            "exposure must be known in every row, those to fill among them, but is missing in row "
            f"{int(np.argmax(np.isnan(numbers)))}."
        )
    others = {name: each for name, each in extras.items() if name != "exposure"}
    return {**read_extras(exposure, n, frame), **read_extras(others, n, frame, missing)}


def _spread(each: Any, array: Dense, name: str) -> FloatArray:
    """One number per cell, in order."""
    shape, labelled = array.values.shape, getattr(each, "dims", None) is not None
    numbers = as_array(each.values if labelled else each, name)
    if labelled:
        numbers = along(each, numbers, array.labels, shape, name)
    try:
        return np.broadcast_to(numbers, shape).ravel()
    except ValueError:
        raise ValueError(f"{name} has the shape {numbers.shape}, but data has {shape}.") from None


def _of_positive_weight(data: Observations) -> Observations:
    """Without cells of weight zero, which say nothing."""
    given = data.given
    rows = positive_rows({} if given.weight is None else {"sample_weight": given.weight})
    if rows is None:
        return data
    return data._replace(coords=data.coords[rows], values=data.values[rows], given=given.at(rows))


def check_fillable(extras: Extras) -> None:
    """Refuse what says something of a missing value itself: it would not be filled by chance."""
    for name in ENDS:
        if name in extras:
            raise ValueError(
                f"{name} is for values that are known in part, which complete would fill as if "
                "nothing were known of them; use TensorRing.fit, and predict."
            )


def placed_in(container: Container, positions: Mapping[str | int, Any]) -> Container:
    """The container with labels that lie where `positions` says; see `TensorRing.fit`."""
    labels, shape = container.labels, container.observations.shape
    if container.kind is None and isinstance(positions, Mapping):  # numbered, not labelled
        named = {mode_of(name, labels.names, "positions") for name in positions}
        levels = [None if mode in named else own for mode, own in enumerate(labels.levels)]
        labels = labels._replace(levels=tuple(levels))
    labels = placed(labels, positions, shape)
    if isinstance(container, Dense):
        return replace(container, labels=labels)
    if isinstance(container, Long):
        return replace(container, coded=container.coded._replace(labels=labels))
    raise ValueError("positions are for tables and dense arrays, but data is a sparse array.")
