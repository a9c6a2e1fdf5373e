"""`TensorRing`, the estimator: a thin shell over sampler, posterior and storage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags, estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesring.checks import check_count, check_fits, check_level, check_values, check_within
from bayesring.data import inputs
from bayesring.data.labels import Labels, NewLabels
from bayesring.data.observations import Observations
from bayesring.data.parquet import ParquetRows, Survey
from bayesring.data.tables import describe_new, open_table, values_of
from bayesring.engine.threads import Threads
from bayesring.fitting import Fit, fit_files, fit_memory, fit_more, open_files, survey_files
from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior import Posterior, Prediction, store
from bayesring.posterior.convergence import (
    Diagnostics,
    DiagnosticWarning,
    diagnose,
    random_cells,
    to_datatree,
)
from bayesring.posterior.interchange import to_tensorly
from bayesring.posterior.modelfiles import describe, read_model, write_model
from bayesring.posterior.suggest import candidate_cells, is_observed, most_uncertain
from bayesring.posterior.unseen import widen
from bayesring.priors import ModePrior, RingPrior
from bayesring.report.brief import brief
from bayesring.report.fitted import Fitted
from bayesring.report.methods import Reporting
from bayesring.settings import LIKELIHOODS, Settings, resolve

SAMPLE_STREAM = 1
"""Sets the stream of `sample` apart from a user's own stream of the same seed."""


class TensorRing(Reporting, BaseEstimator):  # type: ignore[misc]
    """Bayesian tensor ring: completes a tensor from some of its cells, with error bars.

    Parameters
    ----------
    rank : "auto" (grows in warm-up, by thin strands, until held-out predictions get worse), a
        number or one number per bond for a single ring, or a policy of `bayesring.model.rank`
        (`StrandGrowth`, `Adaption`, `Truncation`, `FixedRank`) with settings of your own
    likelihood : "gaussian", "bernoulli", or an object of `bayesring.likelihoods`
    inference : "gibbs", which samples, or "online-em", which learns from mini-batches: quicker on
        large data, from files larger than memory too, with rougher intervals
    prior : "hierarchical", "paper", or an object of `bayesring.priors`
    update : "slice", joint draws of whole slices, or "entry", the paper's draws one entry at a
        time, which mix more slowly and need a prior with independent entries
    shape : sizes of the modes; None takes the largest coordinates plus one
    warmup, draws : scans thrown away, scans kept, per chain; online EM has no warm-up
    chains : independent chains, or rings learned from independent starts; their draws are pooled.
        "auto" is 4, or 8 rings of online EM if there are at most 131,072 observations
    max_memory : bytes that the kept draws of all chains may take; draws are thinned to fit
    dtype : "float64" or "float32", of the products round the ring while sampling; the latter is
        faster at higher ranks, and all sums over observations stay float64
    batch_size : observations per step of online EM; "auto" takes 512, or 2,048 if there are more
        than a million
    epochs : passes over the data at which online EM ends at the latest
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
    table_kind_ : the library of the table fitted, "pandas", "polars" or "pyarrow", or None
    observed_ : the training `Observations`, sorted by coordinates; None if there are more than
        500,000 of them
    sampled_ : whether the draws are those of chains, or lie around estimates of online EM
    estimates_ : the rings of online EM, which `partial_fit` goes on with; empty otherwise
    held_out_ : what was predicted for training values before the chains saw them, a
        `bayesring.data.observations.HeldOut`, or None if none were held out
    """

    def __init__(
        self,
        rank: str | int | tuple[int, ...] | RankPolicy = "auto",
        *,
        likelihood: str | Likelihood = "gaussian",
        inference: str = "gibbs",
        prior: str | ModePrior | RingPrior | Mapping[str | int, str | ModePrior] = "hierarchical",
        update: str = "slice",
        shape: tuple[int, ...] | None = None,
        warmup: int = 300,
        draws: int = 200,
        chains: str | int = "auto",
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
        self.update = update
        self.shape = shape
        self.warmup = warmup
        self.draws = draws
        self.chains = chains
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
        *,
        shape: tuple[int, ...] | None = None,
        modes: Sequence[str] | None = None,
        value: str | None = None,
    ) -> TensorRing:
        """Sample the posterior given the values `y` (n,) at the coordinates `X` (n, D).

        Or given a long table `X` (pandas, polars, pyarrow): `modes` names its key columns and
        `value` the column of values, unless both are obvious or `y` holds the values. Keys may be
        text, categories, numbers or dates; numbers are labels, too. Times with a time zone are
        known in any zone from then on; times without one are other keys, and each is refused where
        the other was fitted. Rows without a value are not used, but their labels are known from
        then on. A table of integer coordinates with `y`, and without `modes`, is taken as
        coordinates.

        Or, with online EM, given the path of Parquet data (a file or a folder), which are never
        held in memory; `modes` and `value` name their columns.
        """
        if isinstance(X, (str, os.PathLike)):
            files = open_files(X, y, modes, value, self._settings(modes or ()))
            return self.fit_rows(files, survey_files(files, self.progress))
        wanted = self.shape if shape is None else shape
        return self.fit_observations(*inputs.observe(X, y, wanted, modes, value))

    def fit_observations(
        self, data: Observations, labels: Labels, kind: str | None = None
    ) -> TensorRing:
        """Sample the posterior given observations in coordinates, with the labels they stand for.

        Whoever calls has checked coordinates and shape, as `fit` does. `kind` is the library of
        the table that they came from, if any.
        """
        settings = self._settings(labels.names)
        likelihood = settings.model.likelihood
        likelihood.check(data.values)
        for concern in likelihood.data_concerns(data.values):
            warnings.warn(concern, UserWarning, stacklevel=3)
        self._adopt(fit_memory(data, settings), settings)
        self.labels_, self.table_kind_ = labels, kind
        self.n_observations_, self.observed_ = len(data.values), store.kept(data)
        return self

    def fit_rows(self, files: ParquetRows, survey: Survey) -> TensorRing:
        """Learn from Parquet data of which the labels are known.

        If the data cannot be read to their end, what was learned until then is kept, and the
        error says so.
        """
        settings = self._settings(survey.labels.names)
        found = fit_files(files, survey, settings)
        self._adopt(found, settings)
        self.labels_, self.table_kind_ = survey.labels, None
        self.n_observations_, self.observed_ = survey.n_observed, None
        failure = found.outcome.failure
        if failure is not None:
            raise ValueError(
                f"{failure} What was learned before is kept: the model can predict and be saved."
            ) from failure
        return self

    def _settings(self, names: Sequence[str] = ()) -> Settings:
        """The parameters, checked, for modes of these names."""
        return resolve(self.get_params(deep=False), names)

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
        self.seed_ = settings.seed
        looks = max(len(trace.log_likelihood) for trace in self.trace_)
        self.warmup_ = settings.warmup if outcome.sampled else looks
        held = outcome.held_out
        self.held_out_ = None if held is None else held.in_units(units.location, units.scale)
        self.description_ = describe(self.get_params(deep=False), settings.model, settings.seed)
        self._set_fitted()

    @available_if(lambda self: self._learns_on())  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, *, shape: tuple[int, ...] | None = None
    ) -> TensorRing:
        """Go on with new observations; only for online EM. The first call fits.

        What was learned before enters as a prior: the old observations are not needed again.
        Coordinates or labels beyond those known make their modes grow, and new slices start from
        what the known ones have in common. Noise and units stay as the first call found them.
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, shape=shape)
        posterior, settings = self.posterior_, self._settings(self.labels_.names)
        data, labels = inputs.observe_more(X, y, shape, self.labels_, posterior.shape)
        posterior.likelihood.check(data.values)
        data = data._replace(location=posterior.location, scale=posterior.scale)
        model = settings.model._replace(likelihood=posterior.likelihood, prior=self.prior_)
        estimates, drawn = fit_more(
            self.estimates_, data, model, settings._replace(seed=self.seed_)
        )
        # only here, at the end, anything changes: an interrupt leaves the model as it was
        self.posterior_ = replace(posterior, shape=data.shape, chains=tuple(drawn))
        self.estimates_, self.labels_, self.observed_ = estimates, labels, None
        self.n_observations_ += len(data.values)
        self._set_fitted()
        return self

    def predict(
        self, X: Any, return_std: bool = False, *, noise: bool | None = None, level: float = 0.9
    ) -> Any:
        """Posterior mean of a new observation at each row of `X`; Bernoulli: P(y = 1).

        With `return_std`, also its standard deviation; with ``noise=False`` the deviation of the
        mean or probability alone.

        If `X` is a table with the key columns of the fit, so is the result: keys, mean, std, and
        lower and upper end of the interval of `level`, for a new observation or, if the values
        are binary, for the probability, unless `noise` says otherwise. Labels that the fit did
        not know are answered as `bayesring.posterior.unseen` says, with a warning.
        """
        posterior, coords = self._locate(X)
        if self._is_labelled(X):
            return self._tabulate(X, posterior, coords, noise, level, Prediction._fields)
        mean, deviation = posterior.moments(coords, noise is not False)
        return (mean, deviation) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9, *, noise: bool | None = None) -> Any:
        """Lower and upper end of the central interval of a new observation.

        With ``noise=False`` the interval is for its mean or probability. Tables as in `predict`.
        """
        posterior, coords = self._locate(X)
        if self._is_labelled(X):
            return self._tabulate(X, posterior, coords, noise, level, ("lower", "upper"))
        return posterior.interval(coords, check_level(level), noise is not False)

    def predict_tensor(self, return_std: bool = False, *, noise: bool = True) -> Any:
        """`predict` for every cell, as an array of shape `shape_`."""
        posterior = self._posterior()
        check_fits(
            2 * 8 * prod(posterior.shape),
            f"the whole tensor of shape {posterior.shape} with its error bars",
            "predict the cells that you need with predict(X).",
        )
        mean, deviation = posterior.tensor(noise)
        return (mean, deviation) if return_std else mean

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of 0 and of 1, (n, 2); only for likelihoods with two values."""
        posterior, coords = self._locate(X)
        one, _ = posterior.moments(coords)
        return np.column_stack([1.0 - one, one])

    def sample(
        self, X: Any, n_draws: int = 100, *, random_state: int | Generator | None = None
    ) -> FloatArray:
        """Predictive draws (n_draws, n), noise included; the cells of one row belong together.

        The same every time, unless `random_state` says otherwise.
        """
        posterior, coords = self._locate(X)
        own = [self.seed_, SAMPLE_STREAM]
        rng = np.random.default_rng(own if random_state is None else random_state)
        return posterior.sample(rng, coords, check_count(n_draws, "n_draws", 1))

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 of the predictions, or the mean log score for binary data.

        A table may hold the values itself, in the column of values of the fit.
        """
        posterior, coords = self._locate(X)
        if y is None and self._is_labelled(X) and self.labels_.value is not None:
            y = values_of(open_table(X, "X"), self.labels_.value)
        values = check_values(y, len(coords))
        if posterior.likelihood.estimator_type == "classifier":
            posterior.likelihood.check(values)
            return float(posterior.log_score(coords, values).mean())
        return float(r2_score(values, posterior.moments(coords)[0]))

    def diagnostics(self, X: Any = None) -> Diagnostics:
        """Whether the chains can be trusted: R-hat, effective draws, Monte Carlo errors.

        Judges noise, log likelihood and the entries at the rows of `X`, or at some random cells.
        Warns once, with all that is wrong and what to do, or not at all.
        """
        found = diagnose(
            self._posterior(),
            self.trace_,
            self.warmup_,
            self.n_observations_,
            None if X is None else self._known_coords(X),
            self.seed_,
        )
        if found.problems:
            warnings.warn(" ".join(found.problems), DiagnosticWarning, stacklevel=2)
        return found

    def to_datatree(self, X: Any = None) -> Any:
        """Draws of noise, log likelihood and the entries at `X` as an `xarray.DataTree`.

        ArviZ reads it: directly from its release 1 on, and by
        ``arviz.InferenceData.from_datatree`` before.
        """
        posterior = self._posterior()
        cells = random_cells(posterior.shape, self.seed_) if X is None else self._known_coords(X)
        return to_datatree(posterior, self.trace_, self.warmup_, cells)

    def to_tensorly(self, draw: int = 0) -> Any:
        """One of the draws as a `TRTensor` of TensorLy, in the units of the data.

        Ranks are one higher than those of the ring if the values have a mean to carry, see
        `bayesring.posterior.interchange`. Do not average the cores of several draws: they are defined only
        up to an invertible matrix on each bond.
        """
        return to_tensorly(self._posterior(), draw)

    def suggest(self, n: int = 10, candidates: Any = None) -> Any:
        """The `n` cells not observed yet whose measurement would teach most.

        They are those with the largest posterior deviation of the mean or probability, noise left
        out, largest first; each is judged by itself. `candidates`, coordinates or a table, limits
        the choice; without it, all cells are compared, or, of a tensor with more than 200,000
        cells, so many of them drawn at random.

        Returns coordinates (n, D), or, for labels from a table, a table with the keys and `std`.
        """
        posterior, n = self._posterior(), check_count(n, "n", 1)
        if candidates is None:
            coords = candidate_cells(posterior.shape, self.observed_, self.seed_)
            rows, deviation = most_uncertain(posterior, coords, n)
            if self.table_kind_ is None:
                return coords[rows]
            columns = {"std": deviation}
            return inputs.table_of_cells(self.table_kind_, self.labels_, coords[rows], columns)
        coords, added = self._coords(candidates)
        free = np.flatnonzero(~is_observed(coords, self.observed_))
        widened = widen(posterior, self.prior_, added, self.seed_)
        rows, deviation = most_uncertain(widened, coords[free], n)
        if self._is_labelled(candidates):
            return inputs.beside_keys(candidates, self.labels_, {"std": deviation}, free[rows])
        return coords[free[rows]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, without pickle; `bayesring.load` reads it."""
        self._posterior()
        write_model(self, path)

    def _fitted(self) -> Fitted:
        return Fitted(
            self._posterior(),
            self.trace_,
            self.warmup_,
            self.n_observations_,
            self.seed_,
            self.labels_,
            self.observed_,
            self.held_out_,
            self.description_,
        )

    def _repr_html_(self) -> str:
        """What notebooks show: a fitted model at a glance, then the parameters."""
        parameters = str(estimator_html_repr(self))
        return brief(self._fitted()) + parameters if hasattr(self, "posterior_") else parameters

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _has_probabilities(self) -> bool:
        if self.__sklearn_tags__().estimator_type == "classifier":
            return True
        raise AttributeError(
            "predict_proba is for binary data: fit with likelihood='bernoulli', or use predict and "
            "predict_interval."
        )

    def _learns_on(self) -> bool:
        if self.inference == "online-em":
            return True
        raise AttributeError(
            f"partial_fit needs inference='online-em', but inference is {self.inference!r}."
        )

    def _posterior(self) -> Posterior:
        check_is_fitted(self, "posterior_")
        return self.posterior_

    def _is_labelled(self, X: Any) -> bool:
        """Whether `X` is a table of labels; one of mere coordinates does for a ring without any."""
        self._posterior()
        return inputs.is_labelled(X, self.labels_)

    def _coords(self, X: Any) -> tuple[IntArray, NewLabels]:
        """Coordinates of the rows of `X`, and labels that the fit did not know."""
        shape = self._posterior().shape
        return inputs.coords_of(X, self.labels_, shape)

    def _known_coords(self, X: Any) -> IntArray:
        coords, _ = self._coords(X)
        check_within(coords, self.posterior_.shape)
        return coords

    def _locate(self, X: Any) -> tuple[Posterior, IntArray]:
        """A posterior and coordinates in it that stand for the rows of `X`; warns of new labels."""
        posterior = self._posterior()
        coords, added = self._coords(X)
        if any(len(new) for new in added):
            warnings.warn(
                f"Labels that the fit did not know: {describe_new(self.labels_.names, added)}; "
                "each is predicted from the prior, given the known ones.",
                UserWarning,
                stacklevel=3,
            )
        return widen(posterior, self.prior_, added, self.seed_), coords

    def _tabulate(
        self,
        X: Any,
        posterior: Posterior,
        coords: IntArray,
        noise: bool | None,
        level: float,
        names: Sequence[str],
    ) -> Any:
        """A table of the kind of `X` with its key columns and the named predictions."""
        found = posterior.summarise(coords, check_level(level), noise)
        return inputs.beside_keys(X, self.labels_, {name: getattr(found, name) for name in names})

    def _set_fitted(self) -> None:
        """Set the attributes that follow from the posterior."""
        self.shape_ = self.posterior_.shape
        self.rank_ = self.posterior_.chains[0].rank
        self.n_features_in_ = len(self.shape_)
        if self.posterior_.likelihood.estimator_type == "classifier":
            self.classes_ = np.array([0, 1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        likelihood = LIKELIHOODS.get(self.likelihood, self.likelihood)  # type: ignore[arg-type]
        tags.estimator_type = getattr(likelihood, "estimator_type", "regressor")
        if tags.estimator_type == "classifier":
            tags.classifier_tags = ClassifierTags(multi_class=False)
        else:
            tags.regressor_tags = RegressorTags()
        tags.target_tags.required = True
        return tags


def load(path: str | os.PathLike[str]) -> TensorRing:
    """Read a model that `TensorRing.save` wrote."""
    ring: TensorRing = read_model(path, TensorRing)
    ring._set_fitted()
    return ring
