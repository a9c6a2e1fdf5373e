"""What all baselines share: the estimator's contract, units, and scores for binary data."""

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
from bayesring.infer.threads import one_blas_thread
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.metrics import binary_log_score
from bayesring.observations import Observations, in_order
from bayesring.progress import step_progress
from bayesring.settings import seed_of
from bayesring.types import FloatArray, IntArray

LIKELIHOODS = ("gaussian", "bernoulli")
Step = Callable[[str], None]


class TooLarge(MemoryError):
    """What a method would need is more than there is, or than it may take."""


class Moments(NamedTuple):
    """Mean and variance of new observations, (n,) each; None if the method has no variance."""

    mean: FloatArray
    variance: FloatArray | None


class Baseline(BaseEstimator):  # type: ignore[misc]
    """Contract of a method that `TensorRing` is compared with.

    A baseline says how it learns from standardised observations, `_learn`, and what it predicts,
    `_moments`; checks, units and binary scores are the same for all.

    Values are centred and scaled for fitting. The methods know real values only: with
    ``likelihood="bernoulli"`` they treat 0 and 1 as such, and predictions are rescaled to [0, 1] by
    `to_unit_interval`.
    """

    random_state: Any
    likelihood: str
    shape: tuple[int, ...] | None
    progress: bool

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        """Set the learned attributes from sorted observations in standard units."""
        raise NotImplementedError

    def _moments(self, coords: IntArray, with_variance: bool) -> Moments:
        """Predictions at `coords`, in standard units."""
        raise NotImplementedError

    def _steps(self) -> int:
        """How many steps `_learn` reports at most."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, shape: tuple[int, ...] | None = None) -> Any:
        """Learn from the values `y` (n,) at the coordinates `X` (n, D); returns self."""
        if self.likelihood not in LIKELIHOODS:
            raise unknown_name("likelihood", self.likelihood, LIKELIHOODS, "nothing else")
        data = check_observations(X, y, self.shape if shape is None else shape)
        if self._is_binary():
            Bernoulli().check(data.values)
        seed = seed_of(self.random_state)
        location, scale = Gaussian().units(np.sort(data.values).astype(float, copy=False))
        data = in_order(data._replace(location=location, scale=scale))
        self.shape_ = data.shape
        self.n_features_in_ = len(data.shape)
        self.location_, self.scale_ = location, scale
        self.seed_ = seed
        with one_blas_thread, step_progress(self.progress, self._steps()) as step:
            self._learn(data, np.random.default_rng(seed), step)
            if self._is_binary():
                self.classes_ = np.array([0, 1])
                fitted = location + scale * self._moments(data.coords, False).mean
                self.reach_ = float(np.max(np.abs(fitted - 0.5)))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of a new observation at each row of `X`; binary data: a score in [0, 1].

        With `return_std`, also its standard deviation, for methods that have one.
        """
        check_is_fitted(self, "shape_")
        coords = check_coordinates(X)
        check_within(coords, self.shape_)
        with one_blas_thread:
            moments = self._moments(coords, return_std)
        mean = self.location_ + self.scale_ * moments.mean
        if self._is_binary():
            mean = to_unit_interval(mean, self.reach_)
        if not return_std:
            return mean
        if self._is_binary():
            return mean, np.sqrt(mean * (1.0 - mean))
        if moments.variance is None:
            raise ValueError(
                f"{type(self).__name__} is a point estimate without standard deviations; leave "
                "return_std out."
            )
        return mean, self.scale_ * np.sqrt(moments.variance)

    @available_if(lambda self: self._has_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Scores of 0 and of 1, (n, 2), adding up to one; only with ``likelihood="bernoulli"``."""
        one = self.predict(X)
        return np.column_stack([1.0 - one, one])

    def score(self, X: Any, y: Any) -> float:
        """R^2 of the predictions, or the mean log score for binary data."""
        predicted = self.predict(X)
        values = check_values(y, len(predicted))
        if self._is_binary():
            return binary_log_score(values, predicted)
        return float(r2_score(values, predicted))

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


def to_unit_interval(estimates: FloatArray, reach: float) -> FloatArray:
    """Rescale estimates of binary values to [0, 1]: 1/2 + (f - 1/2) / (2 max(reach, 1/2)), clipped.

    `reach` is the largest distance from 1/2 of the estimates at the training cells.
    """
    return np.clip(0.5 + (estimates - 0.5) / (2 * max(reach, 0.5)), 0.0, 1.0)
