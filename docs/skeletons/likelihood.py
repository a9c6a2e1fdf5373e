"""Skeleton of a likelihood: real values with known measurement error.

Copy it to `src/bayesring/likelihoods/`, rename the class, and list it in `__init__.py` there.
If users should be able to select it by name, add it to `LIKELIHOODS` in
`src/bayesring/settings.py`. Tests that loop over all listed likelihoods then cover yours as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, FloatArray, Given, WorkingResponse


@dataclass(frozen=True)
class KnownNoise(Likelihood):
    """y_n ~ N(f_n, sigma^2) with known sigma, in the units of the values.

    Nothing is learned, so `nuisance` has length zero, which is the default. The values are already
    normal given f, so `augment` draws nothing and the class does not set `augments`.

    Parameters
    ----------
    sigma : standard deviation of the noise
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(f"sigma of KnownNoise must be positive, got {self.sigma!r}.")

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = 1 / sigma^2, s = y / sigma^2: log p(y | f) is s f - w f^2 / 2 plus a constant."""
        weight = np.full(values.shape, self.sigma**-2)
        return WorkingResponse(weight, weight * values)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same working response, which is all that online EM needs."""
        return self.augment(None, fitted, values, nuisance, given)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, which `total_log_prob` expects first; summed over blocks."""
        return np.array([self.log_prob(fitted, values, nuisance, given).sum()])

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log density of each observation, constants included."""
        squares = ((values - fitted) / self.sigma) ** 2
        return np.asarray(-0.5 * (squares + np.log(2 * np.pi * self.sigma**2)))

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Add noise."""
        return np.asarray(fitted + self.sigma * rng.standard_normal(fitted.shape))

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """Return f itself."""
        return fitted

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """sigma^2 everywhere."""
        return np.full(fitted.shape, self.sigma**2)

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Normal cdf, which the inherited `quantile` uses to find intervals."""
        return np.asarray(ndtr((values - fitted) / self.sigma))
