"""Real values with normal noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, ndtr, ndtri

from bayesring.kernels.mixtures import (
    normal_mixture_quantiles,
    normal_mixture_tails,
    remap,
)
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model.truncated_gamma import draw_truncated_gamma
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse

LEVELS = np.arange(1, 100) / 100
NORMAL_TAILS = ndtri(0.5 + 0.5 * LEVELS)
LARGEST = 1e304
"""Maximum size of a value: sums and differences of larger ones overflow."""
FEW, FAR_OFF = 0.001, 1e6
"""Share of the values that may be outliers, and how far off they are, relative to the farthest of
the others, to be worth a warning."""
PSEUDO = 100
"""Held-out values that weigh as much as the belief that nothing needs calibrating."""
PSEUDO_SIZES = 10
"""The same for the size of all normal scores together."""
SMALLEST_SIZE = 0.25
SIZES = np.append(0.0, NORMAL_TAILS)
"""|z| at which `tails` give t(|z|), after t(0) = 0."""
PLACES = 8.0 * np.sinh(np.linspace(-2.0, 2.0, 41)) / np.sinh(2.0)
"""Deviations from its mean at which a mixture is tabulated, close around zero."""
PLATEAU = 1e-9
"""Slope of normal scores where a mixture has no mass, so that they can be inverted."""
SMALLEST = 1e-290
"""Tail probability below which normal scores are prolonged, not worked out."""


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """y_n ~ N(f_n, 1 / tau), tau ~ Ga(alpha0, beta0) cut off above `max_precision`.

    The estimator standardises the values first, so 1 / tau is the share of their variance that is
    noise. A ring with many parameters per observation can fit the noise away: tau runs off, and
    predictions and intervals get worse. The cutoff prevents this. By default it is estimated during
    warm-up, while a tenth of the training data is held out: the noise cannot be less than the
    held-out squared error in excess of the posterior variance.

    Real noise is seldom normal: few values are far off and the rest close. The same held-out values
    therefore also set `tails`, by which intervals are stretched or shrunk so that each level covers
    what it says: the quantile of the mixture at normal score z becomes the one at t(z). Samples
    and standard deviations of new observations follow; `log_prob` remains that of the normal.

    Parameters
    ----------
    alpha0, beta0 : shape and rate of the precision; the paper uses 1 and 0.3
    max_precision : upper end of the precision's support; None to estimate it during warm-up,
        ``math.inf`` for the paper's plain gamma prior
    tails : quantiles of the absolute standardised errors at the levels 0.01, ..., 0.99; empty for
        normal tails
    """

    ranks_calibrate: ClassVar[bool] = True

    alpha0: float = 1.0
    beta0: float = 0.3
    max_precision: float | None = None
    tails: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (self.alpha0 > 0 and self.beta0 > 0 and self._upper > 0):
            raise ValueError(
                "alpha0, beta0 and max_precision of Gaussian must be positive, "
                f"got {self.alpha0!r}, {self.beta0!r} and {self.max_precision!r}."
            )
        if len(self.tails) not in (0, LEVELS.size):
            raise ValueError(
                f"tails of Gaussian must be {LEVELS.size} numbers or none, got {len(self.tails)}."
            )

    @property
    def calibrates(self) -> bool:
        """Whether the cutoff still has to be estimated."""
        return self.max_precision is None

    @property
    def _upper(self) -> float:
        return inf if self.max_precision is None else self.max_precision

    def check(self, values: FloatArray) -> None:
        """Reject values that arithmetic cannot handle."""
        if values.size and max(float(values.max()), -float(values.min())) > LARGEST:
            row = int(np.argmax(np.abs(values) > LARGEST))
            raise ValueError(
                f"y must lie between {-LARGEST:g} and {LARGEST:g}, got {values[row]:g} in row "
                f"{row}; divide all values by a large number first."
            )

    def data_concerns(self, values: FloatArray) -> list[str]:
        """A message if a few values are so far off that all others look the same."""
        middle = float(np.median(values))
        with np.errstate(over="ignore"):
            sizes = np.abs(values.astype(float) - middle)
        few = max(1, round(FEW * values.size))
        order = np.argpartition(sizes, -few)
        rest, farthest = float(sizes[order[:-few]].max(initial=0.0)), int(np.argmax(sizes))
        if rest == 0.0 or sizes[farthest] <= FAR_OFF * rest:
            return []
        return [
            f"y holds {values[farthest]:g} in row {farthest}, over {FAR_OFF:,.0f} times as far "
            f"from the median, {middle:g}, as almost all others: beside it they look equal, and "
            "error bars are of its size; check it, leave it out, or fit logarithms."
        ]

    def units(self, values: FloatArray) -> tuple[float, float]:
        """Mean and standard deviation without overflow; for constant values, their magnitude."""
        largest = float(np.max(np.abs(values)))
        shrunk = values / (largest or 1.0)
        location, scale = float(np.mean(shrunk)) * largest, float(np.std(shrunk)) * largest
        rounding = float(4 * np.finfo(float).eps)
        first = float(values[0])
        if scale <= rounding * largest and np.any(values != first):
            steps = values - first  # a few neighbours among the floats: exact, and all there is
            location, scale, rounding = first + float(np.mean(steps)), float(np.std(steps)), 0.0
        return location, _own_size_if_constant(scale, largest, rounding)

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """The same for streamed values."""
        self.check(np.array([moments.smallest, moments.largest]))
        if not np.isfinite(moments.mean + moments.variance):
            raise ValueError(
                f"The values, from {moments.smallest:g} to {moments.largest:g}, are too large for "
                "their variance to be computed; divide all of them by a large number first."
            )
        largest = max(abs(moments.smallest), abs(moments.largest))
        scale = sqrt(moments.variance)
        return moments.mean, _own_size_if_constant(scale, largest, moments.rounding)

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw tau from its prior."""
        return np.array([draw_truncated_gamma(rng, self.alpha0, self.beta0, self._upper)])

    def initial_nuisance(self) -> FloatArray:
        """Start with noise that is half the variance of the values."""
        return np.array([min(2.0, self._upper)])

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = tau, s = tau y: the likelihood is already Gaussian."""
        weight = np.full(values.shape, nuisance[0])
        return WorkingResponse(weight, weight * values)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same: nothing is drawn."""
        return self.augment(None, fitted, values, nuisance)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Number of observations and sum of squared residuals."""
        residuals = values - fitted
        return np.array([values.size, residuals @ residuals])

    def conditional(self, statistics: FloatArray) -> tuple[float, float]:
        """Shape and rate of tau before truncation, equation (9)."""
        return self.alpha0 + 0.5 * statistics[0], self.beta0 + 0.5 * statistics[1]

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw tau from its conditional."""
        shape, rate = self.conditional(statistics)
        return np.array([draw_truncated_gamma(rng, shape, rate, self._upper)])

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Mode of tau's conditional."""
        shape, rate = self.conditional(statistics)
        return np.array([min(max(shape - 1, 1e-6) / rate, self._upper)])

    def total_log_prob(self, statistics: FloatArray, nuisance: FloatArray) -> float:
        """Log likelihood from the sum of squares."""
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
        """Log density of each observation."""
        tau = nuisance[..., :1]
        return np.asarray(0.5 * (np.log(tau / (2 * np.pi)) - tau * (values - fitted) ** 2))

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of tau, truncation included."""
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

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Add noise."""
        return fitted + rng.standard_normal(fitted.shape) / np.sqrt(nuisance[..., :1])

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """Return f itself."""
        return fitted

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """1 / tau."""
        return np.broadcast_to(1.0 / nuisance[..., :1], fitted.shape)

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Phi((y - f) sqrt(tau))."""
        return np.asarray(ndtr((values - fitted) * np.sqrt(nuisance[..., :1])))

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Exact quantile of the mixture of normals, at the level adjusted by `tails`."""
        below, level = level, self.calibrated_level(level)
        if level == 1.0 and below < 1.0:  # lost to rounding; the other side is not
            return -self.quantile(1.0 - below, -fitted, nuisance)
        columns = np.ascontiguousarray(fitted.T)
        roots = np.sqrt(nuisance[:, 0])
        return np.asarray(normal_mixture_quantiles(level, ndtri(level), columns, roots))

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
    ) -> Gaussian:
        """Set the cutoff, one over the mean of (y - mean)^2 - variance (14), and the tails.

        The excess is shrunk by `PSEUDO` additional values without any, so a small held-out set has
        little influence. The cutoff is never below one, where everything is noise. The sizes of
        errors that set the tails are counted in the noise of the draws, once there are some: a few
        outliers among the values held out, or among the others, make the two differ.
        """
        share = values.size / (values.size + PSEUDO)
        excess = float(np.mean((values - mean) ** 2 - variance))
        noise = min(max(excess, 1e-12), 1.0)
        drawn = noise if nuisance is None else float(np.mean(1.0 / nuisance[:, 0]))
        tails = _shrunk_tails(np.abs(values - mean) / np.sqrt(drawn + variance))
        return replace(self, max_precision=1.0 / (share * noise), tails=tails)

    def calibrate_by_ranks(self, ranks: FloatArray) -> Gaussian:
        """Set the tails by normal scores z_n = Phi^-1(F(y_n)): quantiles of |z_n| are t's values.

        Intervals shrink by no more than `SMALLEST_SIZE`: values that are all equal say little of
        the next.
        """
        tails = _shrunk_tails(np.abs(ndtri(np.clip(ranks, 1e-12, 1 - 1e-12))))
        smallest = SMALLEST_SIZE * NORMAL_TAILS
        return replace(self, tails=tuple(np.maximum(tails, smallest).tolist()))

    def calibrated_level(self, level: float) -> float:
        """Normal level whose quantile a new observation stays below with the given probability."""
        if not self.tails:
            return level
        tails = np.array(self.tails)
        normal = ndtri(level)
        if abs(normal) >= NORMAL_TAILS[-1]:
            return float(ndtr(normal * tails[-1] / NORMAL_TAILS[-1]))
        size = np.interp(abs(normal), SIZES, np.append(0.0, tails))
        return float(ndtr(np.copysign(size, normal)))

    @property
    def stretch(self) -> float:
        """kappa = sqrt(E t(z)^2), z ~ N(0, 1): exact where the mixture is normal.

        t is linear between the levels, t = a + b z, so with m_k the integral of z^k over the
        normal density between two of them, E t^2 is a sum of a^2 m_0 + 2 a b m_1 + b^2 m_2.
        """
        if not self.tails:
            return 1.0
        sizes, new = SIZES, np.append(0.0, self.tails)
        slopes = np.append(np.diff(new) / np.diff(sizes), new[-1] / sizes[-1])
        starts = new - slopes * sizes
        density = np.append(np.exp(-0.5 * sizes**2) / sqrt(2 * np.pi), 0.0)
        mass = -np.diff(np.append(ndtr(-sizes), 0.0))
        first = -np.diff(density)
        second = mass - np.diff(np.append(sizes, 0.0) * density)
        halves = starts**2 * mass + 2 * starts * slopes * first + slopes**2 * second
        return sqrt(2 * float(halves.sum()))

    def calibrated(
        self, samples: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """y with normal score z = Phi^-1(F(y)) in the mixture F goes to F^-1(Phi(t(z))).

        z is tabulated at `PLACES` and linear between them, both ways: t(z) = z moves nothing.
        """
        if not self.tails:
            return samples
        columns, roots = np.ascontiguousarray(fitted.T), np.sqrt(nuisance[:, 0])
        x, tails = normal_mixture_tails(PLACES, columns, roots)
        scores = _increasing(np.where(PLACES < 0, 1.0, -1.0) * ndtri(tails), tails >= SMALLEST)
        new_sizes = np.append(0.0, self.tails)
        return np.asarray(remap(samples, x, scores, SIZES, new_sizes))

    def concerns(self, nuisance: FloatArray) -> list[str]:
        """A message if tau sits at its bound, so that the ring would otherwise fit the noise."""
        at_bound = float(np.mean(nuisance[:, 0] > 0.99 * self._upper))
        if at_bound < 0.5:
            return []
        return [
            f"The noise is at its bound in {at_bound:.0%} of the draws (precision "
            f"{self._upper:.3g} of the standardised values): the ring could fit the noise away, "
            "and held-out errors prevent it; a smaller rank= would rely less on the bound."
        ]

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Noise and training error, in the units of the data."""
        return {
            "noise": scale / sqrt(nuisance[0]),
            "rmse": scale * sqrt(statistics[1] / statistics[0]),
        }


def _shrunk_tails(sizes: FloatArray) -> tuple[float, ...]:
    """Quantiles of the sizes at `LEVELS`, for t.

    Few values say how wide intervals are to be, but not how each level is: quantiles are drawn
    towards those of a normal of their own size as if by `PSEUDO` values more, and that size towards
    one as if by `PSEUDO_SIZES`.
    """
    half, most = np.quantile(sizes, (0.5, 0.9)) / ndtri((0.75, 0.95))
    own = (sizes.size * 0.5 * (half + most) + PSEUDO_SIZES) / (sizes.size + PSEUDO_SIZES)
    share = sizes.size / (sizes.size + PSEUDO)
    tails = share * np.quantile(sizes, LEVELS) + (1 - share) * own * NORMAL_TAILS
    return tuple(tails.tolist())


def _increasing(scores: FloatArray, known: NDArray[np.bool]) -> FloatArray:
    """Normal scores (n, k) at `PLACES`, prolonged where they are not `known`, without plateaus."""
    steps = np.diff(PLACES)
    middle = PLACES.size // 2
    for k in range(middle + 1, PLACES.size):
        slope = (scores[:, k - 1] - scores[:, k - 2]) / steps[k - 2]
        scores[:, k] = np.where(known[:, k], scores[:, k], scores[:, k - 1] + slope * steps[k - 1])
    for k in range(middle - 1, -1, -1):
        slope = (scores[:, k + 2] - scores[:, k + 1]) / steps[k + 1]
        scores[:, k] = np.where(known[:, k], scores[:, k], scores[:, k + 1] - slope * steps[k])
    return np.asarray(np.maximum.accumulate(scores, axis=1) + PLATEAU * PLACES)


def _own_size_if_constant(scale: float, largest: float, rounding: float) -> float:
    """The scale, or the magnitude of the values if it is only rounding (one if all are zero).

    Never less than the smallest number with all its digits, in which error bars can be counted.
    """
    if scale <= rounding * largest:
        scale = largest or 1.0
    return max(scale, float(np.finfo(float).tiny))
