"""`complete`: fill the gaps of a container and return one of the same type."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from bayesring.checks import check_level, check_point
from bayesring.choosing import choose_likelihood
from bayesring.data.cellextras import check_fillable, known_of, placed_in
from bayesring.data.containers import NO_EXTRAS, Container, open_container
from bayesring.data.extras import Extras, given_arguments
from bayesring.data.labelled import Statistic
from bayesring.data.longtables import Long
from bayesring.data.masks import masked, tell_empty_fibres
from bayesring.data.tables import check_new_columns
from bayesring.estimator import TensorRing
from bayesring.featuring import features_of_columns, renumbered_in
from bayesring.fitting import Keep
from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, Given
from bayesring.oncluster import (
    FILLED,
    Asked,
    count_gaps,
    fill_frame,
    is_dask,
    observe_on,
    open_cluster,
)
from bayesring.posterior import Prediction
from bayesring.reporting import Reporting
from bayesring.sharing import turned

KEEP = {"mean": True, "median": True, "std": False, "lower": True, "upper": True}
"""Whether a statistic of a known cell is its value; otherwise it is zero."""


@dataclass(frozen=True)
class Completion(Reporting):
    """Data with their gaps filled, with error bars.

    Each of `mean`, `std`, `lower` and `upper` has the type and shape of the input. For a table,
    each has the same columns, with the statistic in the value column. Known cells are unchanged:
    there `mean`, `lower` and `upper` are the given value, and `std` is zero. Use ``model.predict``
    for the model's own estimate of known cells. If medians were asked for, `median` takes the place
    of `mean`, which is then None.

    For real values, `std` and the interval from `lower` to `upper` describe a new observation,
    noise included. For binary values, all four describe the probability of a one.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.add.outer(np.add.outer(np.arange(5.0), np.arange(6.0)), np.sin(np.arange(7.0)))
    >>> array[1, 2, 3] = np.nan
    >>> short = {"warmup": 30, "draws": 20, "chains": 2, "random_state": 0, "progress": False}
    >>> completion = bayesring.complete(array, **short)
    >>> bool(completion.lower[1, 2, 3] < completion.mean[1, 2, 3] < completion.upper[1, 2, 3])
    True
    >>> float(completion.std[0, 0, 0])    # known cells are kept
    0.0
    """

    mean: Any
    std: Any
    lower: Any
    upper: Any
    model: TensorRing
    """The fitted ring."""
    level: float
    """Probability with which the intervals should cover hidden values."""
    n_filled: int
    """Number of cells filled."""
    table: Any = None
    """For a table: its rows with the columns mean (or median), std, lower and upper added."""
    notes: tuple[str, ...] = ()
    """What was decided along the way."""
    median: Any = None
    """In place of `mean`, with ``point="median"``."""

    @property
    def statistics(self) -> dict[str, Any]:
        """Mean or median, std, lower and upper, by name."""
        point = "mean" if self.median is None else "median"
        return {name: getattr(self, name) for name in Prediction.names(point)}

    def _parts(self) -> Mapping[str, Any]:
        return self.model._parts()

    def _repr_html_(self) -> str:
        """Notebook view: the filled cells and a summary of the model."""
        filled = f"{self.n_filled:,} cells filled, with {self.level:.0%} intervals."
        from bayesring.report.markup import listing

        return listing([filled, *self.notes], "notes") + self._brief()


def complete(
    data: Any,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    implicit: str = "missing",
    mask: Any = None,
    level: float = 0.9,
    point: str = "mean",
    likelihood: str | Likelihood = "auto",
    positions: Mapping[str | int, Any] | None = None,
    features: Mapping[str | int, Any] | None = None,
    sample_weight: Any = None,
    exposure: Any = None,
    value_error: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    client: Any = None,
    **settings: Any,
) -> Completion:
    """Fill the gaps of multiway data, with an error bar for each.

    Parameters
    ----------
    data : array with NaN, masked array, `xarray.DataArray`, `sparse.COO`, or a long table of
        pandas, polars or pyarrow, with one row per cell
    modes, value : the key columns and the value column of a table; may be omitted if exactly one
        column holds floats and all others are keys
    fill : "missing" fills NaNs, masked cells, and rows or explicit entries without a value; "all"
        also fills the cells that a table or a sparse array does not mention
    implicit : whether the entries that a sparse array does not store are "missing" or "observed"
        with its fill value
    mask : gaps that stay gaps, such as land in a table of the sea: an array of booleans, True
        where a cell is not to be filled; a `DataArray` of them may have some of the dimensions
        only. Or the name of a mode, or of several: fibres along it without any value stay as they
        are, so with ``mask="time"`` places that have never had a value.
    level : probability with which the intervals should cover hidden values
    point : "mean", or "median", which then takes the place of the mean in the result
    likelihood : as for `TensorRing`, or "auto", which looks at the values: 0 and 1, ratings,
        counts, real values with or without heavy tails; see `bayesring.choosing`
    positions, features : where labels lie, and what is known of them, as for `TensorRing.fit`
    sample_weight, exposure, value_error : what is known of cells besides their values, as for
        `TensorRing.fit`: the name of a column, one number per row or, for an array, an array of its
        shape. A gap is filled with the count of its own exposure.
    checkpoint, checkpoint_every : folder and seconds, as for `TensorRing.fit`; if the process is
        killed, the same call continues from the checkpoint
    client : a `distributed.Client`, as for `TensorRing.fit`; `data` may then be a Dask DataFrame,
        and so are the results, which the workers compute when they are needed
    settings : any other parameter of `TensorRing`, such as `rank` or `random_state`

    Returns
    -------
    Completion
        `mean` or `median`, `std`, `lower` and `upper` in the form of `data`; `table`; `model`, the
        fitted ring.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring import complete
    >>> array = np.add.outer(np.add.outer(np.arange(5.0), np.arange(6.0)), np.sin(np.arange(7.0)))
    >>> array[1, 2, 3] = np.nan
    >>> completion = complete(array, warmup=30, draws=20, chains=2, random_state=0, progress=False)
    >>> completion.mean.shape, completion.n_filled, bool(np.isnan(completion.mean).any())
    ((5, 6, 7), 1, False)
    """
    if settings.get("shape") is not None:
        raise ValueError("shape is for coordinates; data given to complete have their own.")
    if features is not None:
        data, features = features_of_columns(data, features, modes)
    keep = Keep(checkpoint, checkpoint_every)
    keep.check()
    check_level(level)
    check_point(point)
    check_fillable(settings)
    _check_settings(settings)
    extras = given_arguments(
        sample_weight=sample_weight, exposure=exposure, value_error=value_error
    )
    cluster = open_cluster(client) if client is not None or is_dask(data) else None
    container: Container | None = None
    notes: list[str] = []
    gaps = 0
    if cluster is not None and is_dask(data):
        if fill != "missing" or mask is not None:
            raise ValueError("fill must be 'missing' for a Dask DataFrame: list the cells to fill.")
        for name in (*extras, *given_arguments(positions=positions)):
            raise ValueError(f"{name} is for data in memory, but data is a Dask DataFrame.")
        if implicit != "missing":
            raise ValueError(f"implicit={implicit!r} is for sparse arrays, not a Dask DataFrame.")
        observed, labels, kind = observe_on(cluster, data, None, None, modes, value, {})
        gaps, notes = count_gaps(cluster, data, str(labels.value), point), [FILLED]
        of_missing = NOTHING
    else:
        container, notes = open_gaps(data, modes, value, fill, implicit, mask, point, extras)
        if positions is not None:
            container = placed_in(container, positions)
        labels, kind = container.labels, container.kind
        observed, of_missing = known_of(container, extras)
    chosen, why = choose_likelihood(likelihood, observed)
    notes += why
    if settings.get("progress", True):
        from bayesring.progress import say

        say(notes)
    ring = TensorRing(likelihood=chosen, **settings)
    ring.fit_observations(observed, labels, kind, keep, features, cluster)
    if container is None:
        return _complete_frame(data, Asked(ring, level, point=point), gaps, notes)
    return fill_gaps(container, Asked(ring, level, point=point), notes, of_missing)


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse arguments that nobody knows, before any work."""
    known = [*TensorRing().get_params(deep=False), *inspect.signature(complete).parameters]
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise TypeError(f"complete has no argument {name!r}{hint}")


def _complete_frame(data: Any, asked: Asked, gaps: int, notes: Sequence[str]) -> Completion:
    """Fill what is missing in a Dask DataFrame; the workers do it when a result is computed."""
    value, table = asked.model.labels_.value, fill_frame(data, asked)
    filled = {
        name: table.assign(**{str(value): table[name]})[list(data.columns)]
        for name in asked.columns
    }
    return _completion(asked, filled, gaps, table, notes)


def open_gaps(
    data: Any,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    implicit: str = "missing",
    mask: Any = None,
    point: str = "mean",
    extras: Extras = NO_EXTRAS,
) -> tuple[Container, list[str]]:
    """Data that can be completed, some cells known and some missing; and what is to be said."""
    container = open_container(data, modes, value, fill, implicit, extras)
    known = 0
    if isinstance(container, Long):
        check_new_columns(container.frame, Prediction.names(point))
        known = len(container.known_elsewhere)
    if not len(container.missing) and not known:
        raise ValueError(_nothing_to_fill(container))
    if not len(container.observations.values):
        raise ValueError("data holds no value at all: every cell is missing.")
    gaps = len(container.missing)
    container = masked(container, mask)
    left = gaps - len(container.missing)
    if left == gaps and not known:
        raise ValueError(f"there is nothing to fill: mask leaves all {gaps:,} gaps as they are.")
    notes = tell_empty_fibres(container)
    if left:
        notes.append(f"{left:,} of {gaps:,} gaps are masked and stay as they are.")
    if known:
        notes.append(
            f"{known:,} rows without a value are in cells that other rows give one value, and have "
            "got that."
        )
    return container, notes


def fill_gaps(
    container: Container, asked: Asked, notes: Sequence[str] = (), given: Given = NOTHING
) -> Completion:
    """Fill what is missing by a ring that was fitted to what is known; `given` has exposures."""
    ring, level, point = asked.model, asked.level, asked.point
    missing, posterior = container.missing, ring.posterior_
    coords = turned(renumbered_in(container.labels, ring.labels_, missing), ring.symmetric_)
    found = Prediction(*np.empty((4, 0)))
    with ring._shown(posterior, len(missing)) as shown:
        if len(missing):
            found = shown.summarise(coords, level, point=point, given=given)
    binary = posterior.likelihood.binary
    pairs = [
        (Statistic(name, KEEP[name], level, binary), numbers)
        for name, numbers in found.columns(point).items()
    ]
    filled = {own.name: container.filled(numbers, own) for own, numbers in pairs}
    table = container.with_statistics(pairs) if isinstance(container, Long) else None
    return _completion(asked, filled, len(missing), table, notes)


def _completion(
    asked: Asked, filled: Mapping[str, Any], n_filled: int, table: Any, notes: Sequence[str]
) -> Completion:
    """A result, with None for the mean if medians were asked for."""
    return Completion(
        **{"mean": None, **filled},
        model=asked.model,
        level=asked.level,
        n_filled=n_filled,
        table=table,
        notes=tuple(notes),
    )


def _nothing_to_fill(container: Container) -> str:
    observed = container.observations
    cells = np.prod(observed.shape, dtype=float)
    distinct = len(np.unique(observed.coords, axis=0))
    if distinct < cells:
        return (
            f"there is nothing to fill: no value is missing among the {len(observed.values):,} "
            f"given; fill='all' fills the other {cells - distinct:,.0f} cells."
        )
    return f"there is nothing to fill: all {cells:,.0f} cells have a value."
