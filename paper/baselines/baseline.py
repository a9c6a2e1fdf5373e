"""Shared by all baselines: the estimator's contract, units, and scores for binary data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesring.checks import (
    check_coordinates,
    check_observations,
    check_values,
    check_within,
    unknown_name,
)
from bayesring.data.moments import moments_of
from bayesring.data.observations import Observations, in_order
from bayesring.engine.threads import one_blas_thread
from bayesring.metrics import binary_log_score
from bayesring.model.types import FloatArray, IntArray
from bayesring.progress import step_progress
from bayesring.settings import LIKELIHOODS, seed_of

Step = Callable[[str], None]
MARGIN = 0.05
"""Distance from 0 and 1 at which scores of binary values are compressed."""


class TooLarge(MemoryError):
    """A method would need more memory or time than is available or allowed."""


class PredictiveMoments(NamedTuple):
    """Mean and variance of new observations, (n,) each; None if the method has no variance."""

    mean: FloatArray
    variance: FloatArray | None


class Baseline(BaseEstimator):  # type: ignore[misc]
    """Contract of a method that `TensorRing` is compared with.

    A baseline defines how it learns from standardised observations, `_learn`, and what it predicts,
    `_moments`; checks, units and binary scores are the same for all.

    Values are centred and scaled for fitting. The methods support real values only: with
    ``likelihood="bernoulli"`` they treat 0 and 1 as real, without centring or scaling, and
    predictions are rescaled to [0, 1] by `to_unit_interval`.
    """

    random_state: Any
    likelihood: str
    shape: tuple[int, ...] | None
    progress: bool

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        """Set the learned attributes from sorted observations in standard units."""
        raise NotImplementedError

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        """Predictions at `coords`, in standard units."""
        raise NotImplementedError

    def _steps(self) -> int:
        """Maximum number of steps that `_learn` reports."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, shape: tuple[int, ...] | None = None) -> Any:
        """Learn from the values `y` (n,) at the coordinates `X` (n, D); returns self."""
        if self.likelihood not in LIKELIHOODS:
            raise unknown_name("likelihood", self.likelihood, LIKELIHOODS, "nothing else")
        data = check_observations(X, y, self.shape if shape is None else shape)
        likelihood = LIKELIHOODS[self.likelihood]()
        likelihood.check(data.values)
        seed = seed_of(self.random_state)
        location, scale = likelihood.units_from(moments_of(data.values))
        data = in_order(data._replace(location=location, scale=scale))
        self.shape_ = data.shape
        self.n_features_in_ = len(data.shape)
        self.location_, self.scale_ = location, scale
        self.seed_ = seed
        with one_blas_thread, step_progress(self.progress, self._steps()) as step:
            self._learn(data, np.random.default_rng(seed), step)
        if self._is_binary():
            self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row of `X`; for binary data, a score in [0, 1].

        With `return_std`, also its standard deviation, for methods that have one; for a binary
        value with score p it is sqrt(p (1 - p)).
        """
        check_is_fitted(self, "shape_")
        coords = check_coordinates(X)
        check_within(coords, self.shape_)
        with one_blas_thread:
            moments = self._moments(coords, return_std)
        mean = self.location_ + self.scale_ * moments.mean
        if self._is_binary():
            mean = self._scores(mean)
        if not return_std:
            return mean
        if moments.variance is None:
            raise ValueError(
                f"{type(self).__name__} gives no standard deviations; leave return_std out."
            )
        if self._is_binary():
            return mean, np.sqrt(mean * (1.0 - mean))
        return mean, self.scale_ * np.sqrt(moments.variance)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Scores of 0 and 1, (n, 2), which sum to one; only with ``likelihood="bernoulli"``."""
        one = self.predict(X)
        return np.column_stack([1.0 - one, one])

    def score(self, X: Any, y: Any) -> float:
        """R^2 of the predictions, or the mean log score for binary data."""
        predicted = self.predict(X)
        values = check_values(y, len(predicted))
        if self._is_binary():
            return binary_log_score(values, predicted)
        return float(r2_score(values, predicted))

    def _scores(self, estimates: FloatArray) -> FloatArray:
        """Scores in [0, 1] of binary values from their estimates."""
        return to_unit_interval(estimates)

    def _is_binary(self) -> bool:
        return bool(self.likelihood == "bernoulli")

    def _has_probabilities(self) -> bool:
        if self._is_binary():
            return True
        raise AttributeError("predict_proba is for binary data: fit with likelihood='bernoulli'.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self._is_binary() else "regressor"
        if self._is_binary():
            tags.classifier_tags = ClassifierTags(multi_class=False)
        else:
            tags.regressor_tags = RegressorTags()
        tags.target_tags.required = True
        return tags


def to_unit_interval(estimates: FloatArray) -> FloatArray:
    """Rescale estimates of binary values, any real numbers, to scores in [0, 1].

    Estimates in [m, 1 - m] with the margin m = 0.05 are unchanged. The others are compressed into
    the margin: an estimate f above 1 - m becomes 1 - m^2 / (f - 1 + 2 m), one below m the mirror
    image. The map is increasing, smooth and preserves 1/2, so AUC and the accuracy at 1/2 equal
    those of the estimates themselves.
    """
    distance = np.abs(estimates - 0.5)
    excess = np.maximum(distance - (0.5 - MARGIN), 0.0)
    bent = 0.5 - MARGIN**2 / (MARGIN + excess)
    signed = np.copysign(np.where(excess > 0, bent, distance), estimates - 0.5)
    return np.asarray(0.5 + signed)
