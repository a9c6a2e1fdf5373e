"""Values 0 and 1, with a logistic link and Polya-Gamma augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from bayesring.kernels import polyagamma
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """y_n ~ Bernoulli(sigmoid(f_n)), which is Gaussian in f_n given omega_n ~ PG(1, f_n)."""

    augments: ClassVar[bool] = True
    discrete: ClassVar[bool] = True
    information: ClassVar[float] = 0.25
    binary: ClassVar[bool] = True

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = omega ~ PG(1, f), s = y - 1/2, equation (10)."""
        return WorkingResponse(polyagamma.draw(rng, fitted), values - 0.5)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = E[omega] = tanh(f / 2) / (2 f), 1/4 at zero, and s = y - 1/2 (18)."""
        small = np.abs(fitted) < 1e-4
        safe = np.where(small, 1.0, fitted)
        return WorkingResponse(
            np.where(small, 0.25, np.tanh(0.5 * safe) / (2 * safe)), values - 0.5
        )

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, count and number of correct predictions."""
        right = np.count_nonzero((fitted > 0) == (values > 0.5))
        return np.array([self.log_prob(fitted, values, nuisance).sum(), values.size, right])

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log probability of each observation."""
        return np.asarray(values * fitted - np.logaddexp(0.0, fitted))

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Draw zeros and ones."""
        tosses: FloatArray = np.asarray(rng.random(fitted.shape) < expit(fitted), dtype=float)
        return tosses

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """sigmoid(f), the probability of a one."""
        return np.asarray(expit(fitted))

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """p (1 - p)."""
        return np.asarray(expit(fitted) * expit(-fitted))

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """0 or 1: the smallest value whose cumulative probability reaches `level`."""
        is_one = self.mean(fitted, nuisance).mean(axis=0) > 1.0 - level
        return np.asarray(is_one, dtype=float)

    def check(self, values: FloatArray) -> None:
        """Raise an error for values other than 0 and 1."""
        wrong = np.flatnonzero((values != 0) & (values != 1))
        if wrong.size:
            row = wrong[0]
            raise ValueError(
                f"y must be 0 or 1 for the Bernoulli likelihood, got {values[row]:g} in row {row}. "
                "Only binary classification is supported."
            )

    def data_concerns(self, values: FloatArray) -> list[str]:
        """A message if only one of the two values occurs."""
        if values.min() < values.max():
            return []
        return [
            f"All {values.size} values of y are {values[0]:g}: how likely the other value is "
            "anywhere depends on the prior alone."
        ]

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """Leave the values unchanged if all are 0 or 1."""
        self.check(np.array([moments.smallest, moments.largest]))
        if not moments.binary:
            raise ValueError(
                "The data hold values other than 0 and 1, and the likelihood is for binary data; "
                "use likelihood='gaussian'."
            )
        return 0.0, 1.0

    def loss(self, values: FloatArray, expected: FloatArray) -> float:
        """Mean log loss of the probabilities."""
        given = np.where(values > 0.5, expected, 1.0 - expected)
        return float(-np.mean(np.log(np.maximum(given, np.finfo(float).tiny))))

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Accuracy and mean log loss on the training data."""
        log_likelihood, count, right = statistics
        return {"accuracy": right / count, "log loss": -log_likelihood / count}
