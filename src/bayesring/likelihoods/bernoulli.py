"""Values 0 and 1, with a logistic link and Polya-Gamma augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log, pi, sqrt
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from bayesring.kernels import polyagamma
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model import chances
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """y_n ~ Bernoulli(sigmoid(f_n + b)), b ~ N(0, spread^2).

    Gaussian in f_n and in b given omega_n ~ PG(1, f_n + b). The intercept b is the log odds of a
    one where the ring says nothing; without it the ring itself would have to bring f down to the
    log odds of rare ones in every cell.

    Held-out values of warm-up set `scatter` and `curve`, by which probabilities come true as often
    as they say; see `bayesring.model.chances`. Predictions, intervals and samples follow;
    `log_prob` remains that of the model.

    Parameters
    ----------
    intercept : whether there is one; the paper has none
    spread : standard deviation of its prior
    scatter, curve : see `bayesring.model.chances`; a `scatter` of None is to be found

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.likelihoods import Bernoulli
    >>> TensorRing(likelihood=Bernoulli(intercept=False)).likelihood.intercept
    False
    """

    told: ClassVar[str] = "0 or 1"
    discrete: ClassVar[bool] = True
    information: ClassVar[float] = 0.25
    binary: ClassVar[bool] = True
    slice_prior: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"scale": 1.2, "extra_degrees": 5.0}
    )
    fewest_strands: ClassVar[int] = 4
    """Log odds have no units, so their size comes from the prior, and under the prior a ring of
    fewer strands has smaller ones: its intervals would be too narrow unless data are ample."""
    strands_widen: ClassVar[bool] = True

    intercept: bool = True
    spread: float = 3.0
    scatter: float | None = None
    curve: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.spread < inf:
            raise ValueError(f"spread of Bernoulli must be positive, got {self.spread!r}.")
        if self.scatter is not None and not 0 <= self.scatter < inf:
            raise ValueError(f"scatter of Bernoulli must not be negative, got {self.scatter!r}.")
        if len(self.curve) not in (0, chances.KNOTS.size) or np.any(np.diff(self.curve) < 0):
            raise ValueError(
                f"curve of Bernoulli must be {chances.KNOTS.size} increasing numbers or none, got "
                f"{self.curve!r}."
            )

    def augments(self, given: Given) -> bool:
        """omega is drawn."""
        return True

    def draws_for_statistics(self, given: Given) -> bool:
        """The intercept is drawn given omega."""
        return self.intercept

    def initial_nuisance(self) -> FloatArray:
        """Start with even odds."""
        return np.zeros(int(self.intercept))

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw b from its prior."""
        return self.spread * rng.standard_normal(int(self.intercept))

    def check_nuisance(self, nuisance: FloatArray, where: str) -> None:
        """b may be any number."""

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of b."""
        return float(np.sum(-0.5 * (nuisance / self.spread) ** 2 - log(self.spread * sqrt(2 * pi))))

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = omega ~ PG(1, f + b), s = y - 1/2 - omega b, equation (10).

        An observation of weight m has omega ~ PG(m, f + b), the sum of m draws.
        """
        odds = self._odds(fitted, nuisance)
        if given.weight is None:
            omega = polyagamma.draw(rng, odds)
        else:
            omega = polyagamma.draw_sums(rng, given.weight, odds)
        return self._response(omega, values, nuisance, given)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same with E[omega] = tanh(x / 2) / (2 x), x = f + b, 1/4 at zero (18)."""
        weight = 1.0 if given.weight is None else given.weight
        omega = polyagamma.mean(weight, self._odds(fitted, nuisance))
        return self._response(omega, values, nuisance, given)

    def _odds(self, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """f + b, the log odds."""
        return np.asarray(fitted + nuisance[..., :1]) if self.intercept else fitted

    def _response(
        self, omega: FloatArray, values: FloatArray, nuisance: FloatArray, given: Given
    ) -> WorkingResponse:
        shift = values - 0.5 if given.weight is None else given.weight * (values - 0.5)
        return WorkingResponse(omega, shift - omega * nuisance[0] if self.intercept else shift)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, count, number of correct predictions; for b, the sums of two more.

        These are omega and y - 1/2 - omega f: precision and linear term of b's conditional.
        """
        odds = self._odds(fitted, nuisance)
        right = (odds > 0) == (values > 0.5)
        log_probs = self.log_prob(fitted, values, nuisance, given)
        if given.weight is None:
            sums = [log_probs.sum(), values.size, np.count_nonzero(right)]
        else:
            sums = [log_probs.sum(), given.weight.sum(), given.weight @ right]
        if self.intercept:
            if rng is not None:
                response = self.augment(rng, fitted, values, nuisance, given)
            elif response is None:
                response = self.expect(fitted, values, nuisance, given)
            omega, shift = response
            total = omega.sum()
            sums += [total, (shift - omega * fitted).sum() + total * nuisance[0]]
        return np.array(sums)

    def conditional(self, statistics: FloatArray) -> tuple[float, float]:
        """Mean and precision of b given omega and f (29)."""
        precision = statistics[3] + self.spread**-2
        return statistics[4] / precision, precision

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw b from its conditional."""
        if not self.intercept:
            return nuisance
        mean, precision = self.conditional(statistics)
        return np.array([mean + rng.standard_normal() / sqrt(precision)])

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Mode of b's conditional."""
        return np.array([self.conditional(statistics)[0]]) if self.intercept else nuisance

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log probability of each observation."""
        odds = self._odds(fitted, nuisance)
        each = np.asarray(values * odds - np.logaddexp(0.0, odds))
        return each if given.weight is None else given.weight * each

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Draw zeros and ones."""
        ones = rng.random(fitted.shape) < self.mean(fitted, nuisance)
        return np.asarray(ones, dtype=float)

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """sigmoid(f + b), the probability of a one."""
        return np.asarray(expit(self._odds(fitted, nuisance)))

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """p (1 - p)."""
        odds = self._odds(fitted, nuisance)
        return np.asarray(expit(odds) * expit(-odds))

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """0 or 1: the smallest value whose cumulative probability reaches `level`."""
        is_one = self.mean(fitted, nuisance).mean(axis=0) > 1.0 - level
        return np.asarray(is_one, dtype=float)

    @property
    def calibrates(self) -> bool:
        """Whether the probabilities are still to be calibrated."""
        return self.scatter is None

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
        given: Given = NOTHING,
    ) -> Bernoulli:
        """Set scatter and curve, once the chains have ended; until then there is nothing to do."""
        if nuisance is None:
            return self
        rows = np.arange(len(values))
        if given.weight is not None:  # as many equal rows
            rows = np.repeat(rows, np.rint(given.weight).astype(np.int64))
        own = values[rows], mean[rows], variance[rows]
        scatter = chances.fit_scatter(*own)
        after = chances.scattered(*own[1:], scatter)
        curve = chances.fit_curve(own[0], after)
        if not curve and scatter != 1.0:
            curve = chances.fit_shift(own[0], after)
        return replace(self, scatter=scatter, curve=curve)

    @property
    def moves(self) -> bool:
        """Whether probabilities were found wanting."""
        return bool(self.curve) or self.scatter not in (None, 1.0)

    def moved(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """f whose probabilities are calibrated."""
        if not self.moves:
            return fitted
        odds = self._odds(fitted, nuisance)
        scatter = 1.0 if self.scatter is None else self.scatter
        return np.asarray(chances.moved(odds, scatter, self.curve) - (odds - fitted))

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

    def losses(self, values: FloatArray, expected: FloatArray) -> FloatArray:
        """Log loss of the probabilities."""
        chance = np.where(values > 0.5, expected, 1.0 - expected)
        return -np.log(np.maximum(chance, np.finfo(float).tiny))

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Accuracy and mean log loss on the training data."""
        log_likelihood, count, right = statistics[:3]
        return {"accuracy": right / count, "log loss": -log_likelihood / count}
