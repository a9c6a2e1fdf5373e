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
from bayesring.data.labels import Labels
from bayesring.data.observations import COMPACT, Observations
from bayesring.data.partitions import table_part
from bayesring.data.tables import find_columns
from bayesring.engine.threads import ONE_THREAD

if TYPE_CHECKING:
    from bayesring.engine.dask import Cluster
    from bayesring.engine.remoteframes import SpreadFrame
    from bayesring.engine.spread import Spread


def is_dask(X: Any) -> bool:
    """Whether this is a Dask DataFrame."""
    return type(X).__module__.startswith("dask") and hasattr(X, "to_delayed")


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
    else:
        frame = nw.from_native(X._meta, eager_only=True)
        rest = frame.drop(columns_of(extras)) if columns_of(extras) else frame
        columns = find_columns(rest, modes, value)
        read = cluster.read_frames(table_part, X, columns, extras)
        names, value = columns.modes, columns.value
    from bayesring.engine.spread import spread_over

    spread, survey = spread_over(cluster, read, names, value, short)
    if not from_path and not extras and value is not None:
        spread = spread._replace(rows=_rows_of(cluster, X, names, value, survey.n_rows))
    labels = Labels(names, survey.levels, value, survey.zones)
    data = spread.gathered() if spread.n < COMPACT else spread
    return data, labels, None if from_path else "pandas"


def _rows_of(
    cluster: Cluster, frame: Any, modes: tuple[str, ...], value: str, n_rows: int
) -> SpreadFrame:
    """The rows of a Dask DataFrame, to learn from batch by batch."""
    from bayesring.data.parquet.frames import FramePartition
    from bayesring.engine.remoteframes import SpreadFrame

    read = cluster.read_frames(FramePartition, frame, modes, value)
    return SpreadFrame(cluster, read, modes, value, n_rows)


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
        return dict.fromkeys((self.point, "std", "lower", "upper"), 0.0)


def predict_frame(cells: Any, asked: Asked) -> Any:
    """`predict_table` for a Dask DataFrame: another one, made by the workers when it is needed."""
    from bayesring.engine.dask import map_frames

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


def fill_frame(frame: Any, asked: Asked) -> Any:
    """The rows of a Dask DataFrame with the statistics of those without a value."""
    from bayesring.engine.dask import map_frames

    for name in asked.columns:
        if name in frame.columns:
            raise ValueError(
                f"the table already has a column {name!r}, which the result needs; rename it first."
            )
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
    values = part[labels.value].to_numpy(dtype=float, na_value=np.nan)
    gaps = np.isnan(values)
    found = {name: values.copy() for name in asked.columns}
    found["std"] = np.zeros(len(values))
    if gaps.any():
        cells = _predicted(part[gaps], asked)
        for name in asked.columns:
            found[name][gaps] = cells[name].to_numpy()
    return part.assign(**found)
