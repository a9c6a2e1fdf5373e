"""Tables or coordinates as given by users, and results of the same type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from bayesring.checks import (
    as_array,
    check_coordinates,
    check_grown,
    check_observations,
    check_shape,
    check_within,
)
from bayesring.data.containers import is_labelled_array, open_container
from bayesring.data.extras import (
    ENDS,
    Extras,
    between,
    check_carried,
    check_columns,
    columns_of,
    given_arguments,
    positive_rows,
    read_extras,
    without_none,
)
from bayesring.data.labels import Labels, NewLabels, plain_labels
from bayesring.data.observations import Observations
from bayesring.data.opentables import is_table, kind_of, loaded, open_table
from bayesring.data.sitecolumns import placed_by, without_pair
from bayesring.data.tables import (
    Coded,
    add_columns,
    check_names,
    code_more,
    code_table,
    find_columns,
    locate,
    make_table,
    values_of,
)
from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray
from bayesring.wording import shown

NOTHING_MORE: Extras = MappingProxyType({})


def exposures(X: Any, exposure: Any, n_rows: int, likelihood: Likelihood) -> Given:
    """What is given of the rows of `X` besides values: a number, one per row, or a column."""
    if exposure is None:
        return NOTHING
    frame = open_table(X, "X") if is_table(X) else None
    given = Given(exposure=read_extras({"exposure": exposure}, n_rows, frame)["exposure"])
    check_carried(given, likelihood)
    return given


def observe(
    X: Any,
    y: Any,
    shape: tuple[int, ...] | None,
    modes: Sequence[str] | None,
    value: str | None,
    extras: Extras = NOTHING_MORE,
) -> tuple[Observations, Labels, str | None]:
    """Observations, their labels, and the library of the table, if `X` is one.

    See `TensorRing.fit` for the accepted types. Rows of weight zero are left out.
    """
    if y is None and is_labelled_array(X):
        return _observe_tensor(X, given_arguments(shape=shape, modes=modes, value=value, **extras))
    if not is_table(X):
        if value is not None:
            raise ValueError(
                f"value names a column of a table, but X is of type {type(X).__name__}; give a "
                "pandas, polars or pyarrow table, or coordinates and y."
            )
        data = _observe_coordinates(X, y, shape, extras)
        return data, _named(plain_labels(len(data.shape)), modes), None
    frame = open_table(X, "X")
    _refuse_names(y, frame.columns)
    check_columns(extras, frame, modes, value)
    rest = frame.drop(columns_of(extras)) if columns_of(extras) else frame
    rest, pair = without_pair(rest, modes, value)
    columns = find_columns(rest, modes, value, y is not None)
    own = columns.value if extras else None
    found = read_extras(
        extras, len(frame), frame, None if own is None else np.isnan(values_of(frame, own))
    )
    rows = positive_rows(found)
    if rows is not None:
        y = None if y is None else as_array(y, "y", len(rows))[rows]
        frame = frame.filter(rows.tolist())
        found = {name: each[rows] for name, each in found.items()}
    data, labels = observations_of_table(code_table(frame, columns, y), found)
    if shape is not None and check_shape(shape, data.coords) != data.shape:
        raise ValueError(
            f"shape {tuple(shape)} does not fit the labels of the table, which has "
            f"{data.shape} of them; leave shape out."
        )
    return data, placed_by(frame, labels, pair), kind_of(frame)


def _refuse_names(y: Any, columns: Sequence[str]) -> None:
    """Say how columns are named, if `y` names some instead of holding values."""
    names = [y] if isinstance(y, str) else y
    if isinstance(names, list | tuple) and names and all(isinstance(own, str) for own in names):
        raise ValueError(
            f"y holds values, but {shown(y)} is text; name columns of X by modes= and value=, of "
            f"{list(columns)}."
        )


def _observe_tensor(X: Any, others: Extras) -> tuple[Observations, Labels, str]:
    """The known cells of a whole tensor, given as a `DataArray` without `y`."""
    for name in others:
        raise ValueError(
            f"{name} was given, but X without y is a whole tensor, with a shape and names of its "
            "own; give coordinates and y, or a table."
        )
    container = open_container(X)
    found = container.observations
    if not len(found.values):
        raise ValueError("X holds no value at all: every cell is missing.")
    return found, container.labels, "xarray"


def observations_of_table(
    coded: Coded, found: Mapping[str, FloatArray]
) -> tuple[Observations, Labels]:
    """The rows with a value, or with ends of one, and what else is known about them."""
    values, given = between(coded.values, found)
    data = coded._replace(values=values).observations
    return data._replace(given=given.at(~np.isnan(values))), coded.labels


def _observe_coordinates(
    X: Any, y: Any, shape: tuple[int, ...] | None, extras: Extras
) -> Observations:
    """Observations at coordinates."""
    if not extras:
        return check_observations(X, y, shape)
    coords = check_coordinates(X)
    found = read_extras(extras, len(coords))
    if any(name in found for name in ENDS):
        y, given = between(_with_gaps(y, len(coords)), found)
    else:
        given = between(np.empty(0), found)[1]
    rows = positive_rows(found)
    if rows is not None:
        y = None if y is None else as_array(y, "y", len(rows))[rows]
        coords, given = coords[rows], given.at(rows)
    return check_observations(coords, y, shape)._replace(given=given)


def _with_gaps(y: Any, n_rows: int) -> FloatArray:
    """Values as numbers, NaN where there is none."""
    if y is None:
        return np.full(n_rows, np.nan)
    numbers = as_array(without_none(y), "y", n_rows)
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"y must hold real numbers, got values of type {numbers.dtype}.")
    return np.asarray(numbers, dtype=float)


def _named(labels: Labels, modes: Sequence[str] | None) -> Labels:
    """Labels of coordinates whose modes have names."""
    if modes is None:
        return labels
    check_names(modes, None)
    names = list(modes)
    is_text = all(isinstance(name, str) for name in names)
    if not is_text or not len(set(names)) == len(names) == len(labels.names):
        raise ValueError(
            f"modes must be {len(labels.names)} different names, one per column of X, got "
            f"{shown(modes)}."
        )
    return labels._replace(names=tuple(names))


def observe_more(
    X: Any,
    y: Any,
    shape: tuple[int, ...] | None,
    labels: Labels,
    known: tuple[int, ...],
    extras: Extras,
    likelihood: Likelihood,
) -> tuple[Observations, Labels]:
    """Observations for a ring of shape `known`, which may grow, and its labels with new ones.

    `extras` are weights and exposures, which the likelihood must be able to use. Rows of weight
    zero are left out.
    """
    X = loaded(X, "X")
    frame = open_table(X, "X") if is_table(X) else None
    found = read_extras(extras, len(X), frame)
    given = between(np.empty(0), found)[1]
    check_carried(given, likelihood)
    rows = positive_rows(found)
    if rows is not None:
        y = None if y is None else as_array(y, "y", len(rows))[rows]
        X = np.asarray(X)[rows] if frame is None else frame.filter(rows.tolist()).to_native()
        given = given.at(rows)
    if is_labelled(X, labels):
        if shape is not None:
            raise ValueError("shape is for coordinates; the labels of a table say how many it has.")
        return code_more(open_table(X, "X"), labels, known, y, given)
    coords = check_coordinates(X, order=len(known))
    data = check_observations(coords, y, check_grown(shape, coords, known))
    return data._replace(given=given), labels


def is_labelled(X: Any, labels: Labels) -> bool:
    """Whether `X` is a table of labels; a ring without labels also accepts coordinates."""
    if not is_table(X):
        return False
    names = open_table(X, "X").columns
    has_levels = any(levels is not None for levels in labels.levels)
    return has_levels or set(labels.names) <= set(names)


def coords_of(X: Any, labels: Labels, shape: tuple[int, ...]) -> tuple[IntArray, NewLabels]:
    """Coordinates of the rows of `X`, and labels unknown to the fit."""
    X = loaded(X, "X")
    if is_labelled(X, labels):
        return locate(open_table(X, "X"), labels, shape)
    coords = check_coordinates(X, order=len(shape))
    check_within(coords, shape)
    return coords, ()


def take_column(X: Any, name: str) -> tuple[Any, Any]:
    """A table without one of its columns, and that column as an array."""
    frame = open_table(X, "X")
    if name not in frame.columns:
        raise ValueError(
            f"value names {name!r}, which is not a column of the table; its columns are "
            f"{frame.columns}."
        )
    return frame.drop(name).to_native(), frame[name].to_numpy()


def beside_keys(
    X: Any, labels: Labels, columns: Mapping[str, FloatArray], rows: IntArray | None = None
) -> Any:
    """Table of the same type as `X`, with the key columns of all or some rows, and new columns."""
    keys = open_table(X, "X").select(labels.names)
    if rows is not None:
        keys = keys[rows.tolist()]
    return add_columns(keys, columns).to_native()


def table_of_cells(
    kind: str, labels: Labels, coords: IntArray, columns: Mapping[str, FloatArray]
) -> Any:
    """Table of the library `kind` with the labels of cells and new columns."""
    keys = {
        name: levels[coords[:, mode]]
        for mode, (name, levels) in enumerate(zip(labels.names, labels.levels, strict=True))
        if levels is not None
    }
    zones = dict(zip(labels.names, labels.zones, strict=False))
    return make_table(kind, keys | dict(columns), zones)
