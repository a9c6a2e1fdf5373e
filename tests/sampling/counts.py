"""A likelihood of counts with exposure, for tests only: what one file can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from polyagamma import random_polyagamma
from scipy.special import expit, gammaln
from scipy.stats import nbinom

from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, WorkingResponse


@dataclass(frozen=True)
class Counts(Likelihood):
    """y ~ NB(r, sigmoid(f + log exposure)), mean r exposure e^f; Gaussian given PG(y + r, .)."""

    r: float = 3.0

    discrete: ClassVar[bool] = True

    carries: ClassVar = frozenset({"weight", "offset", "exposure"})

    def augments(self, given):
        return True

    def predictor(self, fitted, given):
        return fitted if given.exposure is None else fitted + np.log(given.exposure)

    def augment(self, rng, fitted, values, nuisance, given=NOTHING):
        odds = self.predictor(fitted, given)
        weight = random_polyagamma(values + self.r, odds, random_state=rng)
        return WorkingResponse(weight, 0.5 * (values - self.r) - weight * (odds - fitted))

    def statistics(self, fitted, values, nuisance, given=NOTHING, rng=None, response=None):
        return np.array([self.log_prob(fitted, values, nuisance, given).sum(), values.size])

    def log_prob(self, fitted, values, nuisance, given=NOTHING):
        odds = self.predictor(fitted, given)
        choose = gammaln(values + self.r) - gammaln(self.r) - gammaln(values + 1)
        return choose + values * odds - (values + self.r) * np.logaddexp(0.0, odds)

    def simulate(self, rng, fitted, nuisance, given=NOTHING):
        return rng.poisson(rng.gamma(self.r, size=fitted.shape) * self._odds(fitted, given)) * 1.0

    def _odds(self, fitted, given):
        return np.exp(self.predictor(fitted, given))

    def mean(self, fitted, nuisance, given=NOTHING):
        return self.r * self._odds(fitted, given)

    def variance(self, fitted, nuisance, given=NOTHING):
        return self.r * self._odds(fitted, given) * (1 + self._odds(fitted, given))

    def cdf(self, values, fitted, nuisance, given=NOTHING):
        return nbinom.cdf(values, self.r, expit(-self.predictor(fitted, given)))

    def check(self, values):
        wrong = np.flatnonzero((values < 0) | (values != np.floor(values)))
        if wrong.size:
            raise ValueError(f"y must be a count, got {values[wrong[0]]:g} in row {wrong[0]}.")
