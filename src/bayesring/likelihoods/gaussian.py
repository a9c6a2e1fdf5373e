"""Real values with normal noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc, gammaln, ndtr

from bayesring.kernels.mixtures import normal_mixture_quantiles
from bayesring.likelihoods.real_valued import Ends, RealValued
from bayesring.model import latent
from bayesring.model.grouped_noise import COMMON, GroupedNoise
from bayesring.model.tails import PSEUDO, shrunk
from bayesring.model.truncated_gamma import draw_truncated_gamma
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse

UNBOUNDED = 1e12
"""Cutoff of a group's precision that is none."""
PSEUDO_GROUP = 20
"""Held-out values of a group that weigh as much as the belief that it needs no cutoff."""


@dataclass(frozen=True)
class Gaussian(RealValued):
    """y_n ~ N(f_n, 1 / tau), tau ~ Ga(alpha0, beta0) cut off above `max_precision`.

    The cutoff is estimated in warm-up: the noise cannot be less than the held-out squared error in
    excess of the posterior variance; see `RealValued`. With `noise_by`, every slice of one mode has
    a precision of its own; see `bayesring.model.grouped_noise`. Known errors of measurement e_n add
    to the noise: y_n ~ N(f_n, 1 / tau + e_n^2). A value between two ends has their probability.

    Parameters
    ----------
    alpha0, beta0 : shape and rate of the precision; the paper uses 1 and 0.3
    max_precision : upper end of the precision's support; None to estimate it during warm-up,
        ``math.inf`` for the paper's plain gamma prior
    tails : quantiles of the absolute standardised errors at the levels 0.01, ..., 0.99; empty for
        normal tails
    noise_by : name or number of the mode whose slices differ in noise; None if they do not
    group_mode, caps : number of that mode, and one cutoff per slice; found by the fit

    Examples
    --------
    >>> from bayesring.likelihoods import Gaussian
    >>> ring = TensorRing(likelihood=Gaussian(noise_by="sensor"))    # sensors differ in noise
    """

    carries: ClassVar[frozenset[str]] = frozenset({"weight", "offset", "error", "lower", "upper"})

    noise_by: str | int | None = None
    group_mode: int | None = None
    caps: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.group_mode is None) != (not self.caps) or any(each <= 0 for each in self.caps):
            raise ValueError("caps of Gaussian must be positive, one per slice of group_mode.")

    def bind(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Gaussian:
        """Find the mode of `noise_by`."""
        if self.noise_by is None:
            return self
        listed = list(names)
        number = listed.index(self.noise_by) if self.noise_by in listed else self.noise_by
        if type(number) is not int or not 0 <= number < len(shape):
            raise ValueError(
                f"noise_by of Gaussian names {self.noise_by!r}, but the modes are {listed}."
            )
        return replace(self, group_mode=number, caps=(min(self._upper, UNBOUNDED),) * shape[number])

    @property
    def _groups(self) -> GroupedNoise:
        return GroupedNoise(self.alpha0, self.beta0, np.array(self.caps))

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw tau from its prior."""
        if self.caps:
            return self._groups.draw(rng)
        return np.array([draw_truncated_gamma(rng, self.alpha0, self.beta0, self._upper)])

    def initial_nuisance(self) -> FloatArray:
        """Start with noise that is half the variance of the values."""
        tau = min(2.0, self._upper)
        return np.array([tau, np.e, *np.minimum(tau, self.caps)] if self.caps else [tau])

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of tau, truncation included."""
        if self.caps:
            return self._groups.log_prior(nuisance)
        tau = float(nuisance[0])
        if not 0 < tau <= self._upper:
            return -inf
        mass = gammainc(self.alpha0, self.beta0 * self._upper)
        return float(
            self.alpha0 * log(self.beta0)
            - gammaln(self.alpha0)
            + (self.alpha0 - 1) * log(tau)
            - self.beta0 * tau
            - log(mass)
        )

    def _precision(self, nuisance: FloatArray, given: Given) -> FloatArray:
        """tau of every observation, or one for all; slices that the fit did not know have tau."""
        if given.group is None or not self.caps:
            return nuisance[..., :1]
        known = given.group < len(self.caps)
        return np.asarray(nuisance[..., np.where(known, given.group + COMMON, 0)])

    def _variance(self, nuisance: FloatArray, given: Given) -> FloatArray:
        """1 / tau, and the square of a known error."""
        variance = 1.0 / self._precision(nuisance, given)
        return variance if given.error is None else variance + given.error**2

    def augments(self, given: Given) -> bool:
        """Values known only by their ends are drawn."""
        return given.lower is not None

    def draws_for_statistics(self, given: Given) -> bool:
        """So are values without their errors of measurement."""
        return given.lower is not None or given.error is not None

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = 1 / (1 / tau + e^2), s = w y: the likelihood is already Gaussian."""
        weight = np.broadcast_to(self._plain_weight(nuisance, given), values.shape).copy()
        if given.lower is not None:
            values = self._uncensored(rng, fitted, values, nuisance, given)[0]
        if given.weight is not None:
            weight *= given.weight
        return WorkingResponse(weight, weight * values)

    def _plain_weight(self, nuisance: FloatArray, given: Given) -> FloatArray:
        if given.error is None:
            return self._precision(nuisance, given)
        return 1.0 / self._variance(nuisance, given)

    def _uncensored(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given,
    ) -> tuple[FloatArray, FloatArray]:
        """Values, drawn where only their ends are known, or expected there; variance of these.

        Of an observation of weight m, the mean of m draws, and their variance.
        """
        which, variance = given.censored, np.zeros(values.shape)
        if which is None or given.lower is None or given.upper is None:
            return values, variance
        deviation = np.broadcast_to(np.sqrt(self._variance(nuisance, given)), values.shape)[which]
        centre, values = fitted[which], values.copy()
        low, high = (
            (given.lower[which] - centre) / deviation,
            (given.upper[which] - centre) / deviation,
        )
        if rng is not None and given.weight is not None:
            score, square = latent.draw_copies_between(rng, low, high, given.weight[which])
            variance[which] = deviation**2 * np.maximum(square - score**2, 0.0)
        elif rng is not None:
            score = latent.draw_normal_between(rng, low, high)
        else:
            score, spread = latent.mean_normal_between(low, high)
            variance[which] = deviation**2 * spread
        values[which] = centre + deviation * score
        return values, variance

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same, with values expected where only their ends are known."""
        return self.augment(None, fitted, values, nuisance, given)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Number of observations and sum of squared residuals, of every group if there are any.

        Last, the log likelihood, unless it follows from these.
        """
        residuals, more = self._residuals(fitted, values, nuisance, given, rng)
        weight = given.weight
        if given.group is not None and self.caps:
            squares, n = residuals**2 + more, len(self.caps)
            weighted = squares if weight is None else weight * squares
            counts = np.bincount(given.group, weight, n)[:n]  # not slices the fit did not know
            sums = np.concatenate([counts, np.bincount(given.group, weighted, n)[:n]])
        elif weight is None and not np.any(more):
            sums = np.array([values.size, residuals @ residuals])
        else:
            each = np.ones(values.size) if weight is None else weight
            sums = np.array([each.sum(), each @ (residuals**2 + more)])
        if not self.draws_for_statistics(given) and not self.caps:
            return sums
        return np.append(sums, self.log_prob(fitted, values, nuisance, given).sum())

    def _residuals(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given,
        rng: Generator | None,
    ) -> tuple[FloatArray, FloatArray | float]:
        """y - f without errors of measurement, drawn or expected, and the variance of these."""
        if not self.draws_for_statistics(given):
            return values - fitted, 0.0
        values, variance = self._uncensored(rng, fitted, values, nuisance, given)
        residuals = values - fitted
        if given.error is None:
            return residuals, variance
        noise, total = 1.0 / self._precision(nuisance, given), self._variance(nuisance, given)
        share, left = noise / total, noise * given.error**2 / total
        if rng is None:
            return share * residuals, share**2 * variance + left
        if given.weight is not None:
            squares = share**2 * (residuals**2 + variance)
            return np.zeros(residuals.shape), _copies(rng, squares, left, given.weight)
        drawn = share * residuals + np.sqrt(left) * rng.standard_normal(residuals.shape)
        return drawn, 0.0

    def conditional(self, statistics: FloatArray) -> tuple[float, float]:
        """Shape and rate of tau before truncation, equation (9)."""
        return self.alpha0 + 0.5 * statistics[0], self.beta0 + 0.5 * statistics[1]

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw tau from its conditional."""
        if self.caps:
            return self._groups.update(rng, *self._of_groups(statistics), nuisance)
        shape, rate = self.conditional(statistics)
        return np.array([draw_truncated_gamma(rng, shape, rate, self._upper)])

    def _of_groups(self, statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts and squares of every group."""
        n = len(self.caps)
        return statistics[:n], statistics[n : 2 * n]

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Mode of tau's conditional."""
        if self.caps:
            return self._groups.estimate(*self._of_groups(statistics), nuisance)
        shape, rate = self.conditional(statistics)
        return np.array([min(max(shape - 1, 1e-6) / rate, self._upper)])

    def total_log_prob(self, statistics: FloatArray, nuisance: FloatArray) -> float:
        """Log likelihood from the sum of squares, or as it was found."""
        if statistics.size != 2:
            return float(statistics[-1])
        count, squares = statistics
        tau = nuisance[0]
        return float(0.5 * (count * log(tau / (2 * np.pi)) - tau * squares))

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log density of each observation; log probability of an interval."""
        tau = self._plain_weight(nuisance, given)
        each = np.asarray(0.5 * (np.log(tau / (2 * np.pi)) - tau * (values - fitted) ** 2))
        if given.censored is not None and given.lower is not None and given.upper is not None:
            root = np.sqrt(tau)
            low, high = (given.lower - fitted) * root, (given.upper - fitted) * root
            each = np.where(given.censored, latent.log_mass(low, high), each)
        return each if given.weight is None else given.weight * each

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Add noise."""
        return fitted + rng.standard_normal(fitted.shape) / np.sqrt(
            self._plain_weight(nuisance, given)
        )

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """1 / tau."""
        return np.broadcast_to(self._variance(nuisance, given), fitted.shape)

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Phi((y - f) sqrt(tau))."""
        return np.asarray(ndtr((values - fitted) * np.sqrt(self._plain_weight(nuisance, given))))

    def mixture_quantiles(
        self, ends: Ends, fitted: FloatArray, nuisance: FloatArray, given: Given
    ) -> FloatArray:
        """Exact quantiles of the mixture of normals."""
        columns, asked = np.ascontiguousarray(fitted.T), (ends.tails, ends.scores, ends.sides)
        found = np.empty((ends.tails.size, len(columns)))
        for rows, roots in self._roots(nuisance, given, len(columns)):
            found[:, rows] = normal_mixture_quantiles(*asked, columns[rows], roots)
        return found

    def _roots(self, nuisance: FloatArray, given: Given, n: int) -> list[tuple[Any, FloatArray]]:
        """Cells with equal noise, and the roots of its precision in every draw."""
        if given.group is None or not self.caps:
            return [(slice(0, n), np.sqrt(nuisance[:, 0]))]
        found: list[tuple[Any, FloatArray]] = []
        for group in np.unique(given.group):
            own = self._precision(nuisance, Given(group=np.array([group])))[:, 0]
            found.append((np.flatnonzero(given.group == group), np.sqrt(own)))
        return found

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
        given: Given = NOTHING,
    ) -> Gaussian:
        """Set the cutoff, one over the mean of (y - mean)^2 - variance (14), and the tails.

        The excess is shrunk by `PSEUDO` additional values without any, so a small held-out set has
        little influence. The cutoff is never below one, where everything is noise. The sizes of
        errors that set the tails are counted in the noise of the draws, once there are some: a few
        outliers among the values held out, or among the others, make the two differ.

        Groups have cutoffs of their own, each shrunk by `PSEUDO_GROUP` values without any excess.
        """
        share = values.size / (values.size + PSEUDO)
        known = 0.0 if given.error is None else given.error**2
        each = (values - mean) ** 2 - variance - known
        noise = min(max(float(np.mean(each)), 1e-12), 1.0)
        drawn: FloatArray | float = noise
        if nuisance is not None:
            drawn = float(np.mean(1.0 / nuisance[:, 0]))
        caps = self.caps
        if given.group is not None and caps:
            counts = np.bincount(given.group, minlength=len(caps))
            sums = np.bincount(given.group, each, len(caps))
            own = np.clip(sums / np.maximum(counts, 1), 1e-12, 1.0)
            bounds = (counts + PSEUDO_GROUP) / (counts * own + 1e-12)
            caps = tuple(np.minimum(bounds, UNBOUNDED).tolist())
            drawn = np.maximum(own[given.group], 0.01 * noise)
            if nuisance is not None:
                drawn = np.mean(1.0 / self._precision(nuisance, given), axis=0)
        tails = shrunk(np.abs(values - mean) / np.sqrt(drawn + known + variance))
        return replace(self, max_precision=1.0 / (share * noise), tails=tails, caps=caps)

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Noise and training error, in the units of the data."""
        count, squares = statistics[:2]
        if self.caps:
            count, squares = (each.sum() for each in self._of_groups(statistics))
        return {
            "noise": scale / sqrt(nuisance[0]),
            "rmse": scale * sqrt(squares / count),
        }


def _copies(
    rng: Generator, squares: FloatArray, left: FloatArray, weight: FloatArray
) -> FloatArray:
    """Mean square of m normal draws of variance `left` around means of this mean square."""
    exact = left <= 1e-12 * squares
    scale = np.where(exact, 1.0, left)
    ratio = weight * np.where(exact, 0.0, squares) / scale
    return np.where(exact, squares, left * rng.noncentral_chisquare(weight, ratio) / weight)
