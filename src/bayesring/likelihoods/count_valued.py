"""What likelihoods of counts have in common: a logarithmic link and Polya-Gamma augmentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, pi, sqrt
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, gammaln

from bayesring.kernels import counts as kernel
from bayesring.kernels import polyagamma
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse

LARGEST = 2.0**53
"""Counts above this are no longer exact."""
HIGHEST = 40.0
"""Logarithm of an expected count beyond which it grows no further."""


@dataclass(frozen=True)
class CountValued(Likelihood):
    """y_n ~ NB with mean mu_n = E_n exp(f_n + b) and variance mu_n + mu_n^2 / r.

    E_n is the exposure, one unless given; b ~ N(centre, spread^2) the logarithm of the count where
    the ring says nothing. With psi_n = f_n + b + log E_n - log r the likelihood is
    exp(psi)^y / (1 + exp(psi))^(y + r), Gaussian in f_n and b given omega_n ~ PG(y_n + r, psi_n)
    (Polson, Scott and Windle, 2013). The first two parameters are r and b.
    """

    told: ClassVar[str] = "counts"
    discrete: ClassVar[bool] = True
    slice_prior: ClassVar[Mapping[str, Any]] = MappingProxyType({"extra_degrees": 3.0})
    carries: ClassVar[frozenset[str]] = frozenset({"weight", "offset", "exposure"})

    centre: float | None = None
    spread: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.spread < inf:
            name = type(self).__name__
            raise ValueError(f"spread of {name} must be positive, got {self.spread!r}.")

    def bind(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Self:
        """Centre the intercept at the logarithm of the mean count per mean exposure."""
        if self.centre is not None:
            return self
        return replace(self, centre=log(max(moments.mean, 1e-3)) - log(moments.exposure))

    @property
    def _centre(self) -> float:
        return self.centre or 0.0

    def augments(self, given: Given) -> bool:
        """omega is drawn."""
        return True

    def draws_for_statistics(self, given: Given) -> bool:
        """The intercept is drawn given omega."""
        return True

    def check_nuisance(self, nuisance: FloatArray, where: str) -> None:
        """r is positive, and so are candidates for it; b may be any number."""
        super().check_nuisance(np.delete(nuisance, 1, axis=-1), where)

    def draw_intercept(self, rng: Generator) -> float:
        """b from its prior."""
        return float(self._centre + self.spread * rng.standard_normal())

    def log_prior_intercept(self, nuisance: FloatArray) -> float:
        """Log density of b."""
        gap = (float(nuisance[1]) - self._centre) / self.spread
        return -0.5 * gap**2 - log(self.spread * sqrt(2 * pi))

    def conditional(self, statistics: FloatArray) -> tuple[float, float]:
        """Mean and precision of b given omega and f."""
        precision = statistics[2] + self.spread**-2
        return (statistics[3] + self._centre * self.spread**-2) / precision, precision

    def update_intercept(self, rng: Generator, statistics: FloatArray) -> float:
        """Draw b from its conditional."""
        mean, precision = self.conditional(statistics)
        return float(mean + rng.standard_normal() / sqrt(precision))

    def _predictor(self, fitted: FloatArray, nuisance: FloatArray, given: Given) -> FloatArray:
        """log mu = f + b + log E."""
        found = fitted + nuisance[..., 1:2]
        found = found if given.exposure is None else found + np.log(given.exposure)
        return np.asarray(np.minimum(found, HIGHEST))

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = omega ~ PG(y + r, psi), s = (y - r) / 2 - omega (psi - f), times weights."""
        psi = self._predictor(fitted, nuisance, given) - np.log(nuisance[0])
        sums = values + nuisance[0]
        omega = polyagamma.draw_sums(
            rng, sums if given.weight is None else given.weight * sums, psi
        )
        return self._response(omega, psi, fitted, values, nuisance, given)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same with E[omega]."""
        psi = self._predictor(fitted, nuisance, given) - np.log(nuisance[0])
        sums = values + nuisance[0]
        sums = sums if given.weight is None else given.weight * sums
        omega = polyagamma.mean(sums, psi)
        return self._response(omega, psi, fitted, values, nuisance, given)

    def _response(
        self,
        omega: FloatArray,
        psi: FloatArray,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given,
    ) -> WorkingResponse:
        kappa = 0.5 * (values - nuisance[0])
        kappa = kappa if given.weight is None else given.weight * kappa
        return WorkingResponse(omega, kappa - omega * (psi - fitted))

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, count, and the sums of omega and (y - r) / 2 - omega (psi - b), for b."""
        if rng is not None:
            response = self.augment(rng, fitted, values, nuisance, given)
        elif response is None:
            response = self.expect(fitted, values, nuisance, given)
        omega, shift = response
        total, count = omega.sum(), values.size if given.weight is None else given.weight.sum()
        slope = (shift - omega * fitted).sum() + total * nuisance[1]
        log_likelihood = self.log_prob(fitted, values, nuisance, given).sum()
        return np.array([log_likelihood, count, total, slope])

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log probability of each count."""
        r, eta = nuisance[..., :1], self._predictor(fitted, nuisance, given)
        each = gammaln(values + r) - gammaln(r) - gammaln(values + 1.0)
        each = each + values * (eta - np.log(r)) - (values + r) * np.log1p(np.exp(eta) / r)
        return np.asarray(each if given.weight is None else given.weight * each)

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Draw counts: a Poisson whose mean is a gamma."""
        r, mean = nuisance[..., :1], self.mean(fitted, nuisance, given)
        rates = rng.standard_gamma(np.broadcast_to(r, mean.shape)) * (mean / r)
        return rng.poisson(np.minimum(rates, 1e18)).astype(float)

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """E exp(f + b)."""
        return np.asarray(np.exp(self._predictor(fitted, nuisance, given)))

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """mu + mu^2 / r."""
        mean = self.mean(fitted, nuisance, given)
        return np.asarray(mean + mean**2 / nuisance[..., :1])

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """I_p(r, y + 1), p = r / (r + mu)."""
        r, mean = nuisance[..., :1], self.mean(fitted, nuisance, given)
        found = betainc(r, np.maximum(np.floor(values), 0.0) + 1.0, r / (r + mean))
        return np.where(np.asarray(values) < 0, 0.0, found)

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Smallest count whose cumulative probability in the mixture reaches `level`."""
        means = np.ascontiguousarray(self.mean(fitted, nuisance, given).T)
        return np.asarray(kernel.quantiles(level, means, np.ascontiguousarray(nuisance[:, 0])))

    def matched_cdf(
        self, values: FloatArray, mean: FloatArray, deviation: FloatArray
    ) -> FloatArray:
        """The same of a negative binomial with these moments."""
        floor = np.maximum(mean, 1e-12)
        r = floor**2 / np.maximum(deviation**2 - floor, 1e-6 * floor)
        found = betainc(r, np.maximum(np.floor(values), 0.0) + 1.0, r / (r + floor))
        return np.where(values < 0, 0.0, found)

    # ---- Values.

    def check(self, values: FloatArray) -> None:
        """Raise an error for values that are not counts."""
        wrong = np.flatnonzero(~((values >= 0) & (values <= LARGEST) & (values % 1 == 0)))
        if wrong.size:
            row = wrong[0]
            raise ValueError(
                f"y must hold counts, 0, 1, 2, ..., for the {type(self).__name__} likelihood, got "
                f"{values[row]:g} in row {row}; use likelihood='gaussian' for real values."
            )

    def data_concerns(self, values: FloatArray) -> list[str]:
        """A message if all counts are zero."""
        if values.max() > 0:
            return []
        return [
            f"All {values.size} values of y are 0: how many there are anywhere depends on the "
            "prior alone."
        ]

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """Leave the values unchanged if all are counts."""
        self.check(np.array([moments.smallest, moments.largest]))
        if not moments.whole:
            raise ValueError(
                "The data hold values other than integers, and the likelihood is for counts; use "
                "likelihood='gaussian'."
            )
        return 0.0, 1.0

    def losses(self, values: FloatArray, expected: FloatArray) -> FloatArray:
        """Deviance of a Poisson."""
        floor = np.maximum(expected, 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(values > 0, values * np.log(values / floor), 0.0) - values + floor
        return np.asarray(2 * each)

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """The typical count, and the mean log score on the training data."""
        log_likelihood, count = statistics[:2]
        return {
            "typical count": float(np.exp(min(nuisance[1], HIGHEST))),
            "log score": log_likelihood / count,
        }
