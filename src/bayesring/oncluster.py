"""Fits and predictions on a Dask cluster: data in memory, in Dask DataFrames, in files."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from bayesring.data import inputs
from bayesring.data.extras import Extras, columns_of
from bayesring.data.files import SPREADS
from bayesring.data.labels import Labels
from bayesring.data.observations import COMPACT, Observations
from bayesring.data.opentables import is_dask as is_dask
from bayesring.data.rowparts import table_part
from bayesring.data.sitecolumns import (
    Pair,
    PlacesOfKey,
    joint_places,
    placed_by_parts,
    places_in_part,
)
from bayesring.data.sites import pair_in
from bayesring.data.tables import check_names, check_new_columns, find_columns, values_of
from bayesring.engine.threads import ONE_THREAD
from bayesring.model.types import FloatArray

if TYPE_CHECKING:
    from bayesring.engine.dask import Cluster
    from bayesring.engine.remoteframes import SpreadFrame
    from bayesring.engine.spread import Spread


def open_cluster(client: Any) -> Cluster:
    """The engine of a client, or of the default client if this is None."""
    try:
        from bayesring.engine.dask import Cluster
    except ImportError:
        raise ImportError("clusters need Dask: pip install 'bayesring[dask]'.") from None
    return Cluster(client)


def observe_on(
    cluster: Cluster,
    X: Any,
    y: Any,
    shape: tuple[int, ...] | None,
    modes: Sequence[str] | None,
    value: str | None,
    extras: Extras,
) -> tuple[Observations | Spread, Labels, str | None]:
    """As `bayesring.data.inputs.observe`; large data in files or Dask DataFrames stay there.

    Of few observations a single machine would keep all, so they are gathered here.
    """
    from_path, short = isinstance(X, (str, os.PathLike)), None
    if not from_path and not is_dask(X):
        return inputs.observe(X, y, shape, modes, value, extras)
    what = f"the path {X}" if from_path else "a Dask DataFrame"
    if y is not None:
        raise ValueError(f"X is {what}: value must name its column of values, and y be left out.")
    if shape is not None:
        raise ValueError(f"X is {what}, whose labels say the shape; leave shape out.")
    if len(columns_of(extras)) < len(extras):
        name = next(own for own, each in extras.items() if not isinstance(each, str))
        raise ValueError(f"X is {what}: {name} must be the name of a column.")
    if from_path:
        if modes is None or value is None or extras:
            problem = f"{next(iter(extras))} cannot be used." if extras else "modes and value must "
            raise ValueError(f"X is {what}: {problem}" + ("" if extras else "name its columns."))
        read = cluster.read_files(Path(X), tuple(modes), value)
        short = cluster.short_cuts(Path(X), tuple(modes), value)
        names: tuple[str, ...] = tuple(modes)
        pair, places = _places(cluster, cluster.files_frame(Path(X)), modes, value, [])
    else:
        frame = nw.from_native(check_frame(X, "X")._meta, eager_only=True)
        for own, name in extras.items():
            if name not in frame.columns:
                raise ValueError(
                    f"{own} names {name!r}, which is not a column of the table; its columns are "
                    f"{frame.columns}."
                )
        check_names(modes, value)
        rest = frame.drop(columns_of(extras)) if columns_of(extras) else frame
        pair, places = _places(cluster, X, modes, value, columns_of(extras))
        columns = find_columns(rest.drop(pair) if pair else rest, modes, value)
        read = cluster.read_frames(table_part, X, columns, extras)
        names, value = columns.modes, columns.value
    from bayesring.engine.spread import spread_over

    spread, survey = spread_over(cluster, read, names, value, short)
    if not from_path and not extras and value is not None:
        spread = spread._replace(rows=_rows_of(cluster, X, names, value, survey.n_rows))
    labels = Labels(names, survey.levels, value, survey.zones)
    if pair is not None:
        labels = placed_by_parts(labels, pair, survey.n_rows, places)
    data = spread.gathered() if spread.n < COMPACT else spread
    return data, labels, None if from_path else "pandas"


def check_frame(X: Any, name: str) -> Any:
    """A Dask DataFrame; other collections of Dask's are refused."""
    if not hasattr(X, "columns") or getattr(X, "ndim", 2) != 2:
        kind = f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"
        raise TypeError(f"{name} must be a Dask DataFrame, or data in memory, got a {kind}.")
    return X


def _places(
    cluster: Cluster, frame: Any, modes: Sequence[str] | None, value: str | None, extras: list[str]
) -> tuple[Pair | None, list[PlacesOfKey]]:
    """Columns of latitudes and longitudes, if they say where the labels of a key lie, and that."""
    meta = nw.from_native(frame._meta, eager_only=True)
    names = [name for name in meta.columns if name not in extras]
    pair = pair_in(names)
    if pair is None or {*pair} & {*(modes or ()), value}:
        return None, []
    exact = [name for name in names if not meta.schema[name].is_float()]
    exact = [name for name in modes or names if name in exact and name not in (*pair, value)]
    keys = exact if modes is None else [name for name in modes if name in names]
    parts = cluster.read_frames(places_in_part, frame[[*keys, *pair]], pair, keys)()
    found = cluster.results([cluster.reduce("places", joint_places, parts, pair)])[0]
    known = {own.key for own in found if own.rows is not None and len(own.rows) > 2}
    return (pair, found) if known & {*exact} else (None, [])


def _rows_of(
    cluster: Cluster, frame: Any, modes: tuple[str, ...], value: str, n_rows: int
) -> SpreadFrame:
    """The rows of a Dask DataFrame, to learn from batch by batch."""
    from bayesring.data.parquet.frames import FramePartition
    from bayesring.engine.remoteframes import SpreadFrame

    read = cluster.read_frames(FramePartition, frame, modes, value)
    return SpreadFrame(cluster, read, modes, value, n_rows)


FILLED = (
    "On a cluster every row without a value is predicted, even if another row of its cell has one."
)
"""What is different from one machine, where such a row gets that value."""


class Asked(NamedTuple):
    """What is asked of a model for every partition."""

    model: Any
    level: float
    noise: bool | None = None
    point: str = "mean"
    exposure: Any = None
    """One number, or the name of a column."""

    @property
    def columns(self) -> dict[str, float]:
        """What a table of predictions has besides its keys, by name."""
        return dict.fromkeys((self.point, *SPREADS), 0.0)


def predict_frame(cells: Any, asked: Asked) -> Any:
    """`predict_table` for a Dask DataFrame: another one, made by the workers when it is needed."""
    from bayesring.engine.dask import map_frames

    check_frame(cells, "cells")
    names = list(asked.model.labels_.names)
    if not (asked.exposure is None or np.ndim(asked.exposure) == 0):
        raise ValueError(
            "exposure must be a number, or a column of the Dask DataFrame by its name."
        )
    for name in names:
        if name not in cells.columns:
            raise ValueError(
                f"X names {name!r}, which is not a column of the table; its columns are "
                f"{list(cells.columns)}."
            )
    meta = cells._meta[names].assign(**asked.columns)
    return map_frames(_predicted, cells, _for_workers(asked), meta.iloc[:0])


def count_gaps(cluster: Cluster, frame: Any, value: str, point: str) -> int:
    """How many rows of a Dask DataFrame have no value; they must be there, and can be filled."""
    check_new_columns(nw.from_native(frame._meta, eager_only=True), (point, *SPREADS))
    parts = cluster.read_frames(gaps_in_part, frame[[value]], value)()
    gaps = int(sum(cluster.results(parts)))
    if not gaps:
        raise ValueError(
            f"there is nothing to fill: column {value!r} has a value in every row; on a cluster, "
            "list the cells to fill as rows without one."
        )
    return gaps


def gaps_in_part(part: Any, number: int, value: str) -> int:
    """How many rows of partition `number` have no value; runs on a worker."""
    return int(np.isnan(_values(part, value)).sum())


def _values(part: Any, value: str) -> FloatArray:
    return values_of(nw.from_native(part, eager_only=True), value)


def fill_frame(frame: Any, asked: Asked) -> Any:
    """The rows of a Dask DataFrame with the statistics of those without a value."""
    from bayesring.engine.dask import map_frames

    meta = frame._meta.assign(**asked.columns)
    return map_frames(_filled, frame, _for_workers(asked), meta.iloc[:0])


def _for_workers(asked: Asked) -> Asked:
    """A model with what predictions need, and one thread, since a worker has a task for each."""
    model = copy.copy(asked.model)
    model.posterior_ = replace(model.posterior_, engine=ONE_THREAD)
    model.observed_ = model.held_out_ = None
    model.estimates_, model.trace_ = [], ()
    model.progress = False
    return asked._replace(model=model)


def _predicted(part: Any, asked: Asked) -> Any:
    """Predictions for a partition; runs on a worker."""
    if not len(part):
        return part[list(asked.model.labels_.names)].assign(**asked.columns)
    _, level, noise, point, exposure = asked
    return asked.model.predict_table(part, level, noise=noise, point=point, exposure=exposure)


def _filled(part: Any, asked: Asked) -> Any:
    """A partition with its gaps filled; runs on a worker."""
    labels = asked.model.labels_
    if not len(part):
        return part.assign(**asked.columns)
    values = _values(part, labels.value)
    gaps = np.isnan(values)
    found = {name: values.copy() for name in asked.columns}
    found["std"] = np.zeros(len(values))
    if gaps.any():
        cells = _predicted(part[gaps], asked)
        for name in asked.columns:
            found[name][gaps] = cells[name].to_numpy()
    return part.assign(**found)
