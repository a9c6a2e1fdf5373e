"""Methods of a fitted model: predictions, samples, scores, suggestions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.utils.validation import check_is_fitted

from bayesring.checks import (
    check_count,
    check_fits,
    check_level,
    check_point,
    check_values,
    check_within,
)
from bayesring.data import inputs
from bayesring.data.features import Features
from bayesring.data.labelled import tensor
from bayesring.data.labels import Labels, NewLabels
from bayesring.data.observations import HeldOut, Observations
from bayesring.data.opentables import loaded, open_table
from bayesring.data.positions import positions_of_new
from bayesring.data.tables import describe_new, values_of
from bayesring.engine.streams import Purpose, aside
from bayesring.infer.estimate import RingEstimate
from bayesring.infer.state import Trace
from bayesring.inspecting import Inspecting
from bayesring.model.types import FloatArray, IntArray
from bayesring.oncluster import Asked, is_dask, predict_frame
from bayesring.posterior import Posterior
from bayesring.posterior.modelfiles import write_model
from bayesring.posterior.suggest import cells_to_suggest, is_observed, most_uncertain
from bayesring.posterior.unseen import widen
from bayesring.priors import Coupling, RingPrior
from bayesring.priors.ring_prior import Pairs
from bayesring.sharing import symmetrised, turned_with_new

NO_TABLE = (None, "xarray")
"""Kinds of data whose results are no tables."""
STATISTICS = {
    "mean": "predictive mean",
    "std": "predictive standard deviation",
    "lower": "lower end of the interval",
    "upper": "upper end of the interval",
}


class Predicting(Inspecting):
    """Methods of a class that holds the result of a fit."""

    posterior_: Posterior
    prior_: RingPrior
    estimates_: list[RingEstimate]
    trace_: Sequence[Trace]
    sampled_: bool
    warmup_: int
    seed_: int
    n_observations_: int
    labels_: Labels
    table_kind_: str | None
    features_: tuple[Features | None, ...]
    symmetric_: Pairs
    observed_: Observations | None
    held_out_: HeldOut | None
    description_: Mapping[str, Any]

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        point: str = "mean",
        noise: bool = True,
        exposure: Any = None,
    ) -> Any:
        """Posterior mean of a new observation at each row of `X`, (n,); Bernoulli: P(y = 1).

        Or its median, with ``point="median"``. With `return_std`, also return the standard
        deviation of a new observation, or with ``noise=False`` that of the mean or probability
        alone. `X` holds coordinates or is a table with the key columns of the fit. Counts are those
        of an `exposure` of one, unless it is given: one number, one per row, or the name of a
        column of `X`. Labels unknown to the fit are predicted as described in
        `bayesring.posterior.unseen`, with a warning unless their mode is ordered.

        Returns
        -------
        array (n,), or a pair of them with `return_std`
            Means or medians, and standard deviations.

        Examples
        --------
        >>> mean, std = ring.predict([[3, 4, 5], [0, 0, 0]], return_std=True)
        >>> mean.shape, bool((std > 0).all())
        ((2,), True)
        """
        check_point(point)
        X = loaded(X, "X")
        posterior, coords = self._locate(X)
        levels = (0.5,) if point == "median" else ()
        given = inputs.exposures(X, exposure, len(coords), posterior.likelihood)
        with self._shown(posterior, len(coords)) as shown:
            mean, deviation, *median = shown.described(coords, levels, noise, given)
        mean = median[0] if median else mean
        return (mean, deviation) if return_std else mean

    def predict_interval(
        self, X: Any, level: float = 0.9, *, noise: bool = True, exposure: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the central interval of a new observation, (n,) each.

        With ``noise=False`` the interval is for its mean or probability; `exposure` is as for
        `predict`.

        Returns
        -------
        pair of arrays (n,)
            Lower ends and upper ends.

        Examples
        --------
        >>> lower, upper = ring.predict_interval([[3, 4, 5]], level=0.5)
        >>> bool(lower[0] < upper[0])
        True
        """
        X = loaded(X, "X")
        posterior, coords = self._locate(X)
        given = inputs.exposures(X, exposure, len(coords), posterior.likelihood)
        with self._shown(posterior, len(coords)) as shown:
            return shown.interval(coords, check_level(level), noise, given)

    def predict_table(
        self,
        cells: Any,
        level: float = 0.9,
        *,
        point: str = "mean",
        noise: bool | None = None,
        exposure: Any = None,
    ) -> Any:
        """Table of the same type as `cells`, with its key columns, mean, std, lower and upper.

        The interval has probability `level`. It is for a new observation or, if values are binary,
        for the probability of a one, unless `noise` says otherwise. With ``point="median"`` the
        column of means holds medians and is called so. `exposure` is as for `predict`. A Dask
        DataFrame gives a Dask DataFrame, which the workers compute.

        Returns
        -------
        table
            Key columns, mean (or median), std, lower and upper, in the rows of `cells`.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame(X, columns=["plot", "year", "species"]).assign(height=y)
        >>> of_table = TensorRing(2, **settings).fit(table, value="height")
        >>> list(of_table.predict_table(table.head(2)))
        ['plot', 'year', 'species', 'mean', 'std', 'lower', 'upper']
        """
        check_point(point)
        if is_dask(cells):
            self._posterior()
            return predict_frame(cells, Asked(self, check_level(level), noise, point, exposure))
        cells = loaded(cells, "cells")
        posterior, coords = self._locate(cells)
        if not inputs.is_labelled(cells, self.labels_):
            raise TypeError(
                f"cells must be a table with the key columns {list(self.labels_.names)} of the "
                f"fit, got {type(cells).__name__}; for coordinates use predict."
            )
        given = inputs.exposures(cells, exposure, len(coords), posterior.likelihood)
        with self._shown(posterior, len(coords)) as shown:
            found = shown.summarise(coords, check_level(level), noise, point, given)
        return inputs.beside_keys(cells, self.labels_, found.columns(point))

    def predict_tensor(self, return_std: bool = False, *, noise: bool = True) -> Any:
        """`predict` for every cell: an array of shape `shape_`, a `DataArray` if one was fitted.

        Returns
        -------
        array of shape `shape_`, or a pair of them with `return_std`
            Means, and standard deviations.

        Examples
        --------
        >>> ring.predict_tensor().shape
        (9, 8, 7)
        """
        posterior = self._posterior()
        check_fits(
            2 * 8 * prod(posterior.shape),
            f"the whole tensor of shape {posterior.shape} with its error bars",
            "predict the cells that you need with predict(X).",
        )
        with self._shown(posterior, prod(posterior.shape)) as shown:
            found = shown.tensor(noise)
        mean, deviation = (symmetrised(each, self.symmetric_) for each in found)
        means = self._tensor(mean, "mean", self.labels_)
        return (means, self._tensor(deviation, "std", self.labels_)) if return_std else means

    def _tensor(self, numbers: FloatArray, statistic: str, labels: Labels) -> Any:
        """An array with the labels of the one that was fitted, if that had any."""
        if self.table_kind_ != "xarray":
            return numbers
        return tensor(labels, numbers, STATISTICS[statistic])

    def sample(
        self,
        X: Any,
        n_draws: int = 100,
        *,
        exposure: Any = None,
        random_state: int | Generator | None = None,
    ) -> FloatArray:
        """Joint predictive draws (n_draws, n), noise included; each row is one draw of all cells.

        Their quantiles are the ends of `predict_interval`, up to chance; where draws fall into
        separate groups, a few samples may lie between the groups. The same every time, unless
        `random_state` says otherwise. `exposure` is as for `predict`.

        Returns
        -------
        array (n_draws, n)
            One joint draw of all cells per row.

        Examples
        --------
        >>> ring.sample([[3, 4, 5], [0, 0, 0]], n_draws=30).shape
        (30, 2)
        """
        X = loaded(X, "X")
        posterior, coords = self._locate(X)
        own = aside(self.seed_, Purpose.SAMPLE) if random_state is None else random_state
        rng, n_draws = np.random.default_rng(own), check_count(n_draws, "n_draws", 1)
        check_fits(
            3 * 8 * n_draws * len(coords),
            f"the work on {n_draws} draws of {len(coords):,} cells",
            "ask for fewer draws at a time, with another random_state each.",
        )
        given = inputs.exposures(X, exposure, len(coords), posterior.likelihood)
        with self._shown(posterior, len(coords)) as shown:
            return shown.sample(rng, coords, n_draws, given)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions, or the mean log score if values are discrete.

        If `X` is a table, it may contain the values itself, in the value column of the fit.

        Returns
        -------
        float
            R^2, or the mean log score of discrete values; larger is better.

        Examples
        --------
        >>> ring.score(X, y) > 0.9
        True
        """
        X = loaded(X, "X")
        posterior, coords = self._locate(X)
        if y is None and inputs.is_labelled(X, self.labels_) and self.labels_.value is not None:
            y = values_of(open_table(X, "X"), self.labels_.value)
        values = check_values(y, len(coords))
        if posterior.likelihood.discrete:
            posterior.likelihood.check(values)
            return float(np.average(posterior.log_score(coords, values), weights=sample_weight))
        from sklearn.metrics import r2_score  # slow to load

        mean, _ = posterior.moments(coords)
        return float(r2_score(values, mean, sample_weight=sample_weight))

    def suggest(self, n: int = 10, candidates: Any = None) -> Any:
        """The `n` unobserved cells that are most worth measuring.

        These have the largest posterior standard deviation of the mean or probability, excluding
        noise, in descending order; each cell is judged on its own. `candidates`, coordinates or a
        table, restricts the choice. Without it all cells are compared, or a random 200,000 of them
        if the tensor has more. If the fit did not keep its observations (`observed_` is None), it
        is not known which cells are unobserved: then `candidates` should be, and without it a
        warning says so.

        Returns
        -------
        array (n, D), or a table
            Coordinates, or keys and `std` if the fit used a table.

        Examples
        --------
        >>> ring.suggest(3).shape
        (3, 3)
        """
        posterior, n = self._posterior(), check_count(n, "n", 1)
        if candidates is None:
            coords = cells_to_suggest(posterior.shape, self.observed_, self.seed_)
            rows, deviation = most_uncertain(posterior, coords, n)
            if self.table_kind_ in NO_TABLE:
                return coords[rows]
            columns = {"std": deviation}
            return inputs.table_of_cells(self.table_kind_, self.labels_, coords[rows], columns)
        candidates = loaded(candidates, "candidates")
        coords, added = self._coords(candidates)
        free = np.flatnonzero(~is_observed(coords, self.observed_))
        where = positions_of_new(self.labels_, added, candidates)
        widened = widen(posterior, self.prior_, added, self.seed_, positions=where)
        rows, deviation = most_uncertain(widened, coords[free], n)
        if inputs.is_labelled(candidates, self.labels_):
            return inputs.beside_keys(candidates, self.labels_, {"std": deviation}, free[rows])
        return coords[free[rows]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, without pickle; `bayesring.load` reads it.

        Returns
        -------
        None

        Examples
        --------
        >>> import os, tempfile
        >>> ring.save(os.path.join(tempfile.mkdtemp(), "model.ring"))
        """
        self._posterior()
        write_model(self, path)

    def _parts(self) -> Mapping[str, Any]:
        return {
            "posterior": self._posterior(),
            "prior": self.prior_,
            "traces": self.trace_,
            "sampled": self.sampled_,
            "warmup": self.warmup_,
            "n_observations": self.n_observations_,
            "seed": self.seed_,
            "labels": self.labels_,
            "observed": self.observed_,
            "held_out": self.held_out_,
            "description": self.description_,
            "explained": self._explained(),
        }

    @contextmanager
    def _shown(self, posterior: Posterior, cells: int) -> Iterator[Posterior]:
        """A posterior that shows how many of its cells are done, unless `progress` is off."""
        from bayesring.progress import cell_progress  # slow to load

        with cell_progress(bool(getattr(self, "progress", False)), cells) as report:
            yield replace(posterior, report=report)

    def _posterior(self) -> Posterior:
        check_is_fitted(self, "posterior_")
        return self.posterior_

    def _coords(self, X: Any) -> tuple[IntArray, NewLabels]:
        """Coordinates of the rows of `X`, and labels unknown to the fit."""
        shape = self._posterior().shape
        coords, added = inputs.coords_of(X, self.labels_, shape)
        return turned_with_new(coords, added, self.symmetric_, shape)

    def _known_coords(self, X: Any) -> IntArray:
        coords, _ = self._coords(X)
        check_within(coords, self.posterior_.shape)
        return coords

    def _locate(self, X: Any, stacklevel: int = 3) -> tuple[Posterior, IntArray]:
        """Posterior and coordinates in it for the rows of `X`; warns about new labels."""
        posterior = self._posterior()
        coords, added = self._coords(X)
        positions = positions_of_new(self.labels_, added, X)
        strange = tuple(
            new[:0] if own.coupling is not Coupling.NONE and _lie(where) else new
            for own, new, where in zip(self.prior_.modes, added, positions, strict=bool(added))
        )
        if any(len(new) for new in strange):
            told = "each is predicted from the prior, given the known ones"
            if any(
                len(new) and own is not None
                for new, own in zip(strange, self.features_, strict=True)
            ):
                told += "; if their features are known, use fold_in(None, features=...) first"
            warnings.warn(
                f"Labels that the fit did not know: {describe_new(self.labels_.names, strange)}; "
                f"{told}.",
                UserWarning,
                stacklevel=stacklevel,
            )
        return widen(posterior, self.prior_, added, self.seed_, positions=positions), coords


def _lie(positions: FloatArray | None) -> bool:
    """Whether it is known where new labels lie."""
    return positions is not None and not np.isnan(positions).any()
