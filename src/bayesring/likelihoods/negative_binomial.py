"""Counts: non-negative integers that vary more than independent events would make them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, pi, sqrt

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln, ndtr, ndtri

from bayesring.kernels import loglikelihoods
from bayesring.likelihoods.count_valued import CountValued
from bayesring.model import candidates
from bayesring.model.tails import PSEUDO
from bayesring.model.types import NOTHING, FloatArray, Given, WorkingResponse

LEAST, MOST = 1e-3, 1e6
"""Range of r in online EM."""
STEEPEST = 1e3
"""Largest 1 / r that held-out counts may suggest."""
ROUNDS = 20
LONGEST = 20_000
"""Range of counts up to which log Gamma is tabulated."""
OWN = 6
"""Statistics before the log likelihoods at candidates."""


@dataclass(frozen=True)
class NegativeBinomial(CountValued):
    """Counts with mean mu_n = E_n exp(f_n + b) and variance mu_n + mu_n^2 / r; see `CountValued`.

    log r ~ N(log size, size_spread^2), cut off at `max_size`. A ring with many parameters can fit
    the noise away, and r runs off. The cutoff prevents this; it is estimated in warm-up from
    held-out counts, as that of `Gaussian` is. Parameters are r, b, and candidates for r; see
    `bayesring.model.candidates`.

    Parameters
    ----------
    centre, spread : of the intercept b; by default the centre is the logarithm of the mean count
    size, size_spread : median of r, and standard deviation of its logarithm
    max_size : upper end of r's support; None to estimate it, ``math.inf`` for none

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.likelihoods import NegativeBinomial
    >>> TensorRing(likelihood=NegativeBinomial(size=2.0)).likelihood.size
    2.0
    """

    size: float = 5.0
    size_spread: float = 2.0
    max_size: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.size < inf and 0 < self.size_spread < inf and self._upper > 0):
            raise ValueError(
                "size, size_spread and max_size of NegativeBinomial must be positive, got "
                f"{self.size!r}, {self.size_spread!r} and {self.max_size!r}."
            )

    @property
    def _upper(self) -> float:
        return inf if self.max_size is None else self.max_size

    @property
    def calibrates(self) -> bool:
        """Whether the cutoff still has to be estimated."""
        return self.max_size is None

    def initial_nuisance(self) -> FloatArray:
        """Start with the mean count and the prior's median of r."""
        return self._searching(min(self.size, self._upper), self._centre)

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw r and b from their prior, and candidates."""
        b, score = self.draw_intercept(rng), ndtri(max(rng.random() * self._mass, 1e-300))
        return self._beside(rng, float(self.size * np.exp(self.size_spread * score)), b)

    @property
    def _mass(self) -> float:
        """Share of the prior of r below the cutoff."""
        return float(ndtr(log(self._upper / self.size) / self.size_spread))

    def _beside(self, rng: Generator, r: float, b: float) -> FloatArray:
        """r and b with fresh candidates; or without, by a coin, and b is drawn given omega next.

        Not both in one scan: omega is drawn given both as they are.
        """
        if rng.random() < candidates.COIN:
            return np.array([r, b] + [r] * candidates.COUNT)
        return np.array([r, b, *np.exp(candidates.put_down(rng, np.log([r])))[:, 0]])

    def _searching(self, r: float, b: float) -> FloatArray:
        return np.array([r, b, *np.exp(candidates.around(np.log([r]), 0))[:, 0]])

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of r and b."""
        r = float(nuisance[0])
        return self.log_prior_intercept(nuisance) + self._log_prior_size(r) - log(r)

    def _log_prior_size(self, r: float) -> float:
        """Log density of log r."""
        if not 0 < r <= self._upper:
            return -inf
        gap = log(r / self.size) / self.size_spread
        return -0.5 * gap**2 - log(self.size_spread * sqrt(2 * pi) * self._mass)

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Either b given omega, or r among its candidates with omega integrated out."""
        r, b = nuisance[:2].tolist()
        if not _has_candidates(nuisance):
            return self._beside(rng, r, self.update_intercept(rng, statistics))
        points = np.append(r, nuisance[2:])
        logs = np.append(statistics[0], statistics[OWN:])
        densities = logs + [self._log_prior_size(each) for each in points]
        return self._beside(rng, float(points[candidates.choose(rng, densities)]), b)

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """b at the mode of its conditional; 1 / r by weighted squares of residuals."""
        excess, total = statistics[4:OWN]
        r = total / excess if excess > 0 else inf
        b = self.conditional(statistics)[0]
        return self._searching(min(max(r, LEAST), MOST, self._upper), b)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Those of all counts, two more for 1 / r, and the log likelihood at every candidate.

        The two are those of a regression of (y - mu)^2 - mu on mu^2, with weights of one over the
        variance squared; what is not needed, in Gibbs or in online EM, is left at zero.
        """
        others = np.zeros(nuisance.size - 2)
        if rng is not None and _has_candidates(nuisance):
            sizes = np.append(nuisance[0], nuisance[2:])
            logs = self._log_likelihoods(sizes, fitted, values, nuisance, given)
            count = values.size if given.weight is None else given.weight.sum()
            return np.array([logs[0], count, 0.0, 0.0, 0.0, 0.0, *logs[1:]])
        first = super().statistics(fitted, values, nuisance, given, rng, response)
        if rng is not None:
            return np.array([*first, 0.0, 0.0, *others])
        mean = self.mean(fitted, nuisance, given)
        weight = np.ones(values.size) if given.weight is None else given.weight
        inverse = 1.0 / (1.0 + mean / nuisance[0])  # mean over variance
        excess = weight @ (((values - mean) ** 2 - mean) * inverse**2)
        square = weight @ (mean * inverse) ** 2
        return np.array([*first, excess, square, *others])

    def _log_likelihoods(
        self,
        sizes: FloatArray,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given,
    ) -> FloatArray:
        """Log likelihood with each of the sizes in place of r, in one pass."""
        low, high = int(values.min(initial=0.0)), int(values.max(initial=0.0))
        if high - low > LONGEST:
            points = np.stack([sizes, np.full(sizes.size, nuisance[1])], axis=1)
            return np.array([self.log_prob(fitted, values, own, given).sum() for own in points])
        counts = np.arange(low, high + 1, dtype=float)
        table = gammaln(counts + sizes[:, None]) - gammaln(sizes)[:, None] - gammaln(counts + 1.0)
        weight = np.ones(1) if given.weight is None else given.weight
        eta = self._predictor(fitted, nuisance, given)
        sums = loglikelihoods.negative_binomial(
            np.exp(eta), values.astype(float, copy=False), weight, sizes, table, low
        )
        return np.asarray(sums + np.sum(weight * values * eta))

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
        given: Given = NOTHING,
    ) -> NegativeBinomial:
        """Set the cutoff of r: one over the held-out excess of (y - mu)^2 - mu over mu^2.

        Weighted by one over the variance squared, and shrunk by `PSEUDO` counts without excess.
        """
        share = values.size / (values.size + PSEUDO)
        squares = (values - mean) ** 2 - mean - variance
        floor = np.maximum(mean, 1e-9)
        excess = 1.0 / self.size
        for _ in range(ROUNDS):
            weight = 1.0 / (floor + floor**2 * excess) ** 2
            found = float(np.sum(weight * squares * floor**2) / np.sum(weight * floor**4))
            excess = min(max(found, 1e-9), STEEPEST)
        return replace(self, max_size=1.0 / (share * excess))

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """How much counts vary beyond a Poisson's, 1 / r, besides what all counts have."""
        return {"dispersion": 1.0 / float(nuisance[0])} | super().describe(
            statistics, nuisance, scale
        )


def _has_candidates(nuisance: FloatArray) -> bool:
    """Whether there are candidates other than the present r."""
    return bool(np.any(nuisance[2:] != nuisance[0]))
