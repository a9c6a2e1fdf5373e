"""A likelihood with heavy tails, for tests only: what one file can do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import t

from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, WorkingResponse


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y ~ f + t_df / sqrt(tau): normal with precision tau u, u ~ Ga(df / 2, df / 2); tau ~ Ga."""

    df: float = 4.0
    alpha0: float = 3.0
    beta0: float = 2.0

    def augments(self, given):
        return True

    def draws_for_statistics(self, given):
        return True

    def initial_nuisance(self):
        return np.array([2.0])

    def draw_nuisance(self, rng):
        return rng.gamma(self.alpha0, 1 / self.beta0, size=1)

    def log_prior(self, nuisance):
        tau, a, b = float(nuisance[0]), self.alpha0, self.beta0
        return float(a * np.log(b) - gammaln(a) + (a - 1) * np.log(tau) - b * tau)

    def augment(self, rng, fitted, values, nuisance, given=NOTHING):
        rate = 0.5 * (self.df + nuisance[0] * (values - fitted) ** 2)
        weight = nuisance[0] * rng.gamma(0.5 * (self.df + 1), size=fitted.shape) / rate
        return WorkingResponse(weight, weight * values)

    def statistics(self, fitted, values, nuisance, given=NOTHING, rng=None, response=None):
        """Log likelihood, count, and the sum of u (y - f)^2: u is in the response."""
        response = response or self.augment(rng, fitted, values, nuisance)
        squares = response.weight / nuisance[0] * (values - fitted) ** 2
        return np.array([self.log_prob(fitted, values, nuisance).sum(), values.size, squares.sum()])

    def update_nuisance(self, rng, statistics, nuisance):
        _, count, squares = statistics
        return rng.gamma(self.alpha0 + 0.5 * count, 1 / (self.beta0 + 0.5 * squares), size=1)

    def log_prob(self, fitted, values, nuisance, given=NOTHING):
        root = np.sqrt(nuisance[..., :1])
        return t.logpdf((values - fitted) * root, self.df) + np.log(root)

    def simulate(self, rng, fitted, nuisance, given=NOTHING):
        return fitted + rng.standard_t(self.df, fitted.shape) / np.sqrt(nuisance[..., :1])

    def mean(self, fitted, nuisance, given=NOTHING):
        return fitted

    def variance(self, fitted, nuisance, given=NOTHING):
        return np.broadcast_to(self.df / (self.df - 2) / nuisance[..., :1], fitted.shape)

    def cdf(self, values, fitted, nuisance, given=NOTHING):
        return t.cdf((values - fitted) * np.sqrt(nuisance[..., :1]), self.df)
