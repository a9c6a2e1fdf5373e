"""`TensorRing`, the estimator: a thin shell over fitting, posterior and storage."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from numpy.random import Generator, RandomState
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags, Tags

from bayesring import preparing
from bayesring.checkpoint.manifest import seed_in
from bayesring.choosing import chosen_and_told, is_auto
from bayesring.data import inputs
from bayesring.data.extras import given_arguments
from bayesring.data.labels import Labels
from bayesring.data.moments import moments_of
from bayesring.data.observations import COMPACT, Observations, in_order, merged
from bayesring.data.positions import placed
from bayesring.engine.threads import Threads
from bayesring.featuring import features_of_columns
from bayesring.fitting import (
    NOTHING_KEPT,
    Fit,
    Keep,
    fit_files,
    fit_memory,
    fit_spread,
    open_files,
    rows_of,
    survey_files,
)
from bayesring.forecasting import Forecasting
from bayesring.growing import Growing
from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.oncluster import is_dask, observe_on, open_cluster
from bayesring.posterior import Posterior
from bayesring.posterior.modelfiles import describe
from bayesring.priors import ModePrior, RingPrior
from bayesring.scoring import Scoring
from bayesring.settings import Settings, resolve

if TYPE_CHECKING:
    from bayesring.data.parquet import ParquetRows, Survey
    from bayesring.engine.protocol import Engine
    from bayesring.engine.remoterows import SpreadRows
    from bayesring.engine.spread import Spread


class TensorRing(Growing, Scoring, Forecasting, BaseEstimator):  # type: ignore[misc]
    """Bayesian tensor ring: completes a tensor from some of its cells, with error bars.

    Parameters
    ----------
    rank : "auto" (grows in warm-up, by thin strands, until held-out predictions get worse), a
        number or one number per bond for a single ring, or a policy of `bayesring.model.rank`
        (`StrandGrowth`, `Adaption`, `Truncation`, `FixedRank`) with settings of your own
    likelihood : "gaussian"; "student-t" for outliers; "negative-binomial" or "poisson" for counts;
        "bernoulli" for 0 and 1; "ordinal" for ratings; "auto" for what suits the values, as in
        `complete`; or an object of `bayesring.likelihoods`
    inference : "gibbs", which samples, or "online-em", which learns from mini-batches, from files
        larger than memory too, and then samples for a short while, or, where there are too many
        data for that, gives rougher intervals
    prior : "hierarchical", "paper", or an object of `bayesring.priors`
    order : modes whose slices change gradually from one label to the next, such as days or depths:
        "auto" takes those whose labels are times, real numbers, places, or integers if there are
        enough observations to tell; a list of names or numbers of modes; None for none; or a
        mapping from some modes to True, False, Circular(24), for which 24 will do, or Spatial(),
        with others as by "auto". How gradually is learned, and may be not at all.
    share : pairs of modes with the same labels, such as [("sender", "receiver")]: what is known of
        a label in one mode says something of it in the other; how much is learned. If the table is
        symmetric, a cell and its mirror image are one: if it says so itself by equal values or
        rows on one side of the diagonal, or you do, by ("one", "other", "symmetric")
    update : "slice", joint draws of whole slices, or "entry", the paper's draws one entry at a
        time, which mix more slowly and need a prior with independent entries
    shape : sizes of the modes; None takes the largest coordinates plus one
    warmup, draws : scans thrown away, scans kept, per chain; of online EM, those of the chains that
        follow it, up to 131,072 observations. "auto": the warm-up ends when chains stand still, the
        run when Monte Carlo error is at most a tenth of the predictive standard deviation (0.01 for
        probabilities), or more draws would not help
    chains : independent chains, or rings learned from independent starts; their draws are pooled.
        "auto" is 4, or 8 rings of online EM if there are at most 131,072 observations
    max_time : seconds after which a run ends as soon as every chain has some draws; None for no
        limit. With a limit, the result depends on the machine.
    max_memory : bytes that the kept draws of all chains may take; draws are thinned to fit, and to
        32 MB as long as 200 are left
    dtype : "float64" or "float32", of the products around the ring while sampling; the latter is
        faster at higher ranks, and all sums over observations stay float64
    batch_size : observations per step of online EM; "auto" takes 512, or 2,048 if there are more
        than a million
    epochs : passes over the data at which online EM ends at the latest; where 25 batches, or 20 of
        more than 32,768 rows, are more than a pass, that many times these
    n_jobs : threads; None uses all cores. Never changes a result.
    random_state : seed, Generator or RandomState; one seed gives one result, bit for bit
    progress : whether to show progress bars

    Attributes
    ----------
    rank_ : tuple with one number per bond, all strands together; with several chains, that of
        the first
    shape_ : sizes of the modes
    posterior_ : the draws and their predictive distribution
    prior_ : the `RingPrior` of the fit
    trace_ : one `Trace` per chain, with rank, noise, errors of every scan
    seed_ : the seed that gives this result again
    n_observations_ : number of training observations
    labels_ : what modes and slices are called, a `bayesring.data.labels.Labels`
    symmetric_ : pairs of modes in which the table is symmetric
    features_ : for each mode the `bayesring.data.features.Features` of its labels, or None
    table_kind_ : the library of the table fitted, "pandas", "polars" or "pyarrow"; "xarray" if it
        was a labelled array; or None
    observed_ : the training `Observations`, sorted by coordinates, equal rows as one with their
        number as weight; None if there are more than 500,000 of them
    sampled_ : whether the draws are those of chains, or lie around estimates of online EM
    estimates_ : the rings of online EM, which `partial_fit` goes on with; empty otherwise
    interrupted_ : whether the fit was interrupted, so that there are fewer draws than asked for
    held_out_ : what was predicted for training values before the chains saw them, a
        `bayesring.data.observations.HeldOut`, or None if none were held out

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring import TensorRing
    >>> X = np.argwhere(np.random.default_rng(0).random((9, 8, 7)) < 0.5)    # known cells
    >>> y = np.sin(X[:, 0]) + 0.2 * X[:, 1] * np.cos(X[:, 2])                # their values
    >>> settings = {"warmup": 30, "draws": 20, "chains": 2, "progress": False}    # a short fit
    >>> ring = TensorRing(order=[2], random_state=0, **settings).fit(X, y)
    >>> ring.shape_, ring.n_observations_ == len(y)
    ((9, 8, 7), True)
    """

    def __init__(
        self,
        rank: str | int | tuple[int, ...] | RankPolicy = "auto",
        *,
        likelihood: str | Likelihood = "gaussian",
        inference: str = "gibbs",
        prior: str | ModePrior | RingPrior | Mapping[str | int, str | ModePrior] = "hierarchical",
        order: str | Sequence[str | int] | Mapping[str | int, bool | float] | None = "auto",
        share: Sequence[Sequence[str | int]] | None = None,
        update: str = "slice",
        shape: tuple[int, ...] | None = None,
        warmup: str | int = "auto",
        draws: str | int = "auto",
        chains: str | int = "auto",
        max_time: float | None = None,
        max_memory: int = 2**30,
        dtype: str = "float64",
        batch_size: str | int = "auto",
        epochs: int = 200,
        n_jobs: int | None = None,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        self.rank = rank
        self.likelihood = likelihood
        self.inference = inference
        self.prior = prior
        self.order = order
        self.share = share
        self.update = update
        self.shape = shape
        self.warmup = warmup
        self.draws = draws
        self.chains = chains
        self.max_time = max_time
        self.max_memory = max_memory
        self.dtype = dtype
        self.batch_size = batch_size
        self.epochs = epochs
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        shape: tuple[int, ...] | None = None,
        modes: Sequence[str] | None = None,
        value: str | None = None,
        positions: Mapping[str | int, Any] | None = None,
        features: Mapping[str | int, Any] | None = None,
        exposure: Any = None,
        value_error: Any = None,
        value_lower: Any = None,
        value_upper: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        client: Any = None,
    ) -> Self:
        """Sample the posterior given the values `y` (n,) at the coordinates `X` (n, D).

        Or given a long table `X` (pandas, polars, pyarrow): `modes` names its key columns and
        `value` the column of values, unless both are obvious or `y` holds the values; with `y` and
        without `modes`, all columns are keys. Keys may be text, categories, numbers or dates;
        numbers are labels, too. Rows without a value are not used, but their labels are known from
        then on. Or given a whole tensor `X` as an `xarray.DataArray` without `y`: its gaps are NaN.

        Coordinates may have `modes`, too: the names of their columns. `positions` says where
        coordinates lie, by name or number of the mode: one number or time for each, increasing or
        decreasing, or on a map one row of numbers; see docs/your-own-data.md.

        `features` says what else is known of labels, by name or number of their mode: a table with
        one row per label, the labels in the column named as the mode or in the first; a matrix
        with one row per coordinate; a pair of labels and a matrix, which may be sparse; or a list
        of columns of the table `X` that are the same in all rows of a label. Labels the
        features have are known from then on; see `bayesring.data.features`.

        More may be known of the observations: one number per row, or the name of a column.
        `sample_weight` w counts a row as w equal rows; `exposure` is the time, area or population
        of a count; `value_error` is the standard deviation with which a value was measured, on top
        of the noise that is learned; `value_lower` and `value_upper` are ends between which a
        missing value lies, such as a detection limit.

        Or, with online EM, given the path of Parquet data (a file or a folder), which are never
        held in memory; `modes` and `value` name their columns.

        `checkpoint` names a folder in which the fit keeps its state, every `checkpoint_every`
        seconds. Killed and run again with the same data, settings and folder, it goes on from
        there and ends with the same bits; ``random_state=None`` then takes the seed of the first
        run. Interrupted when every chain has a draw, it keeps what there is, sets `interrupted_`
        and raises the interrupt again.

        `client`, a `distributed.Client`, runs the fit on the workers of a Dask cluster, with the
        same bits. `X` may then also be a Dask DataFrame or the path of Parquet data, which stay
        there; `modes`, `value` and the other arguments name their columns. See docs/scaling.md.

        Returns
        -------
        self
            The estimator, fitted.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame(X, columns=["plot", "year", "species"]).assign(height=y)
        >>> keys = ["plot", "year", "species"]
        >>> fitted = TensorRing(2, **settings).fit(table, modes=keys, value="height")
        >>> fitted.labels_.names
        ('plot', 'year', 'species')
        """
        keep, wanted = Keep(checkpoint, checkpoint_every), self.shape if shape is None else shape
        keep.check()
        extras = given_arguments(
            sample_weight=sample_weight,
            exposure=exposure,
            value_error=value_error,
            value_lower=value_lower,
            value_upper=value_upper,
        )
        cluster = open_cluster(client) if client is not None or is_dask(X) else None
        reads_files = cluster is None or self.inference == "online-em"
        if isinstance(X, (str, os.PathLike)) and reads_files:
            preparing.check_for_files(
                positions=positions, features=features, shape=wanted, **extras
            )
            settings = self._settings(modes or (), seed=0)
            files = open_files(X, y, modes, value, settings, cluster)
            return self.fit_rows(files, survey_files(files, self.progress), keep, cluster)
        if features is not None:
            X, features = features_of_columns(X, features, modes)
        see = inputs.observe if cluster is None else partial(observe_on, cluster)
        data, labels, kind = see(X, y, wanted, modes, value, extras)
        if positions is not None:
            labels = placed(labels, positions, data.shape)
        preparing.warn_of_kind(self.likelihood, data, stacklevel=3)
        return self.fit_observations(data, labels, kind, keep, features, cluster)

    def fit_observations(
        self,
        data: Observations | Spread,
        labels: Labels,
        kind: str | None = None,
        keep: Keep = NOTHING_KEPT,
        features: Mapping[str | int, Any] | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Sample the posterior given observations in coordinates, with the labels they stand for.

        Whoever calls has checked coordinates and shape, as `fit` does. `kind` is the library of
        the table that they came from, if any. By default on threads of this process.
        """
        prepared = preparing.prepare(data, labels, self.share, features)
        data, labels, described, symmetric = prepared
        if not isinstance(data, Observations) and self.inference == "online-em":
            rows = rows_of(data)
            return self.fit_rows(rows, survey_files(rows, self.progress), keep, engine, kind)
        settings = self._settings(labels.names, keep=keep, data=data)
        settings, axes = preparing.settled(settings, prepared, self.share)
        n, kept = data.n, None
        if isinstance(data, Observations):
            preparing.tell(data, labels, settings, stacklevel=4)
            if n < COMPACT:
                data = kept = merged(in_order(data))
            moments = moments_of(data.values, data.given.exposure)
            settings = settings.bound(moments, labels.names, data.shape)
            found = fit_memory(data, settings, axes, keep, engine)
        else:
            settings = settings.bound(data.moments, labels.names, data.shape)
            assert engine is not None  # that of the data
            found = fit_spread(data, settings, engine, axes, keep)
        self._adopt(found, settings)
        self.labels_, self.table_kind_ = labels, kind
        self.features_, self.symmetric_ = described, symmetric
        self.n_observations_, self.observed_ = n, kept
        if found.outcome.interrupt is not None:
            raise found.outcome.interrupt
        self._warn_of(self._diagnose(), stacklevel=4)
        return self

    def fit_rows(
        self,
        files: ParquetRows | SpreadRows,
        survey: Survey,
        keep: Keep = NOTHING_KEPT,
        engine: Engine | None = None,
        kind: str | None = None,
    ) -> Self:
        """Learn from Parquet data, or the like, of which the labels are known.

        If they cannot be read to their end, what was learned is kept, and the error says so.
        """
        settings = self._settings(survey.labels.names, keep=keep, data=survey)
        settings = preparing.settled_for_rows(settings, survey, self.share)
        preparing.tell_of_files(survey, settings.model.likelihood, stacklevel=4)
        found = fit_files(files, survey, settings, keep, engine)
        self._adopt(found, settings)
        self.labels_, self.table_kind_ = survey.labels, kind
        self.features_, self.symmetric_ = (None,) * len(survey.shape), ()
        self.n_observations_, self.observed_ = survey.n_observed, None
        failure = found.outcome.failure
        if failure is not None:
            raise ValueError(
                f"{failure} What was learned before is kept: the model can predict and be saved."
            ) from failure
        self._warn_of(self._diagnose(), stacklevel=4)
        return self

    def _settings(
        self,
        names: Sequence[str] = (),
        seed: int | None = None,
        keep: Keep = NOTHING_KEPT,
        data: Observations | Spread | Survey | None = None,
    ) -> Settings:
        """The parameters, checked, for modes of these names, with a likelihood for these data.

        With a `seed`, none is drawn: a user's generator moves on once per fit. Without any, that of
        the checkpoint is taken, if there is one.
        """
        parameters = self.get_params(deep=False)
        if data is not None:
            parameters["likelihood"] = chosen_and_told(self.likelihood, data, self.progress)
        elif is_auto(self.likelihood):  # not chosen yet, or by the fit, which is gone on with
            parameters["likelihood"] = "gaussian"
        if self.random_state is None and seed is None:
            seed = seed_in(keep.folder)
        return resolve(parameters if seed is None else parameters | {"random_state": seed}, names)

    def _adopt(self, found: Fit, settings: Settings) -> None:
        """Take over what was found."""
        outcome, model, units = found
        self.posterior_ = Posterior(
            units.shape,
            outcome.likelihood,
            units.location,
            units.scale,
            tuple(kept for kept, _ in outcome.chains),
            Threads(settings.n_jobs),
        )
        self.prior_ = model.prior
        self.trace_ = [trace for _, trace in outcome.chains]
        self.sampled_, self.estimates_ = outcome.sampled, list(outcome.estimates)
        self.seed_, self.interrupted_ = settings.seed, outcome.interrupt is not None
        scans = max(len(trace.log_likelihood) for trace in self.trace_)
        self.warmup_ = outcome.warmup if outcome.sampled else scans
        held = outcome.held_out
        self.held_out_ = None if held is None else held.in_units(units.location, units.scale)
        self.description_ = describe(self.get_params(deep=False), settings.model, settings.seed)
        self._set_fitted()

    def _set_fitted(self) -> None:
        """Set the attributes that follow from the posterior."""
        self.shape_, self.rank_ = self.posterior_.shape, self.posterior_.chains[0].rank
        self.n_features_in_ = len(self.shape_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.required = True
        return tags
