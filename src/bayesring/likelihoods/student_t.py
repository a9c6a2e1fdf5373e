"""Real values with heavy-tailed noise: outliers do not move the fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, log, sqrt
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc, gammaln, ndtri, stdtr, stdtrit

from bayesring.kernels import loglikelihoods, normals, scale_mixtures
from bayesring.kernels.mixtures import CELLS, HALF, LAST, t_mixture_quantiles
from bayesring.likelihoods.real_valued import Ends, RealValued
from bayesring.model import candidates, latent
from bayesring.model.tails import PSEUDO, shrunk
from bayesring.model.truncated_gamma import draw_truncated_gamma
from bayesring.model.types import NOTHING, FloatArray, Given, WorkingResponse

LEAST = 2.0
"""Degrees of freedom above which the variance is finite."""
USUAL = 4.0
"""Degrees of freedom by which held-out errors are judged before any are known."""
ROUNDS = 50
RAREST = 1e-50
"""Least tail probability that quantiles are worked out for; SciPy has none of some beyond."""


@dataclass(frozen=True)
class StudentT(RealValued):
    """y_n = f_n + t_nu / sqrt(tau): normal with precision tau u_n, u_n ~ Ga(nu / 2, nu / 2).

    tau ~ Ga(alpha0, beta0) cut off above `max_precision`, as for `Gaussian`, and
    log(nu - 2) ~ N(centre, spread^2): the variance is finite. Parameters are tau, nu and the
    candidates for both; see `bayesring.model.candidates`.

    Parameters
    ----------
    alpha0, beta0, max_precision, tails : as for `Gaussian`
    centre, spread : mean and standard deviation of log(nu - 2)

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.likelihoods import StudentT
    >>> TensorRing(likelihood=StudentT(centre=2.0)).likelihood.centre
    2.0
    """

    carries: ClassVar[frozenset[str]] = frozenset({"weight", "offset", "lower", "upper"})
    told: ClassVar[str] = "real numbers with outliers"
    forgets: ClassVar[bool] = True

    centre: float = 1.0
    spread: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.spread < inf:
            raise ValueError(f"spread of StudentT must be positive, got {self.spread!r}.")

    def augments(self, given: Given) -> bool:
        """u is drawn."""
        return True

    def draws_for_statistics(self, given: Given) -> bool:
        """tau is drawn given u."""
        return True

    # ---- Parameters.

    def initial_nuisance(self) -> FloatArray:
        """Start with noise that is half the variance of the values."""
        return self._with_candidates(np.array([min(2.0, self._upper), USUAL]), 0)

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw tau and nu from their prior, and candidates."""
        tau = draw_truncated_gamma(rng, self.alpha0, self.beta0, self._upper)
        nu = LEAST + np.exp(self.centre + self.spread * rng.standard_normal())
        return self._beside(rng, np.array([tau, nu]))

    def check_nuisance(self, nuisance: FloatArray, where: str) -> None:
        """tau is positive and nu above two; of candidates, nu may be two by rounding."""
        super().check_nuisance(nuisance, where)
        least = nuisance[..., 1::2].min()
        if least < LEAST or nuisance[..., 1].min() <= LEAST:
            raise ValueError(
                f"{where} holds {least:g} degrees of freedom, but those of StudentT are above "
                f"{LEAST:g}."
            )

    def _beside(self, rng: Generator, own: FloatArray) -> FloatArray:
        """tau and nu with fresh candidates; or without, by a coin, and tau is drawn given u next.

        Not both in one scan: u is drawn given both as they are.
        """
        if rng.random() < candidates.COIN:
            return np.tile(own, candidates.COUNT + 1)
        return np.append(own, _natural(candidates.put_down(rng, _unbounded(own))))

    def _with_candidates(self, own: FloatArray, turn: int) -> FloatArray:
        return np.append(own, _natural(candidates.around(_unbounded(own), turn)))

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of tau and nu."""
        tau, nu = float(nuisance[0]), float(nuisance[1])
        if not (0 < tau <= self._upper and nu > LEAST):
            return -inf
        mass = gammainc(self.alpha0, self.beta0 * self._upper)
        of_tau = self.alpha0 * log(self.beta0) - gammaln(self.alpha0) - log(mass)
        of_tau += (self.alpha0 - 1) * log(tau) - self.beta0 * tau
        x = log(nu - LEAST)
        of_nu = -0.5 * ((x - self.centre) / self.spread) ** 2 - log(self.spread) - x
        return float(of_tau + of_nu - 0.5 * log(2 * np.pi))

    def conditional(self, statistics: FloatArray) -> tuple[float, float]:
        """Shape and rate of tau given u, before truncation."""
        return self.alpha0 + 0.5 * statistics[1], self.beta0 + 0.5 * statistics[2]

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Either tau given u, or both among the candidates with u integrated out."""
        points = nuisance.reshape(-1, 2)
        if _has_candidates(nuisance):
            own = points[candidates.choose(rng, self._densities(statistics, points))]
        else:
            shape, rate = self.conditional(statistics)
            tau = draw_truncated_gamma(rng, shape, rate, self._upper)
            own = np.array([tau, nuisance[1]])
        return self._beside(rng, own)

    def _densities(self, statistics: FloatArray, points: FloatArray) -> FloatArray:
        """Log densities of log tau and log(nu - 2) at the present point and the candidates."""
        sums = np.append(statistics[0], statistics[3:])
        return np.array(
            [
                total + self.log_prior(point) + float(_unbounded(point).sum())
                for total, point in zip(sums, points, strict=True)
            ]
        )

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """tau at its mode given E[u]; nu at the best of its candidates."""
        shape, rate = self.conditional(statistics)
        tau = min(max(shape - 1, 1e-6) / rate, self._upper)
        points = nuisance.reshape(-1, 2)
        nu = points[int(np.argmax(self._densities(statistics, points))), 1]
        return self._with_candidates(np.array([tau, nu]), 1)

    # ---- Observations.

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = tau u, s = w y, with u ~ Ga((nu + 1) / 2, (nu + tau (y - f)^2) / 2).

        An observation of weight m has a gamma of m times that shape, the sum of m draws.
        """
        assert rng is not None  # as `augments` asks
        return self._draw(rng, fitted, values, nuisance, given)[0]

    def _draw(
        self,
        rng: Generator,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given,
    ) -> tuple[WorkingResponse, float]:
        """The response, and the sum of u (y - f)^2.

        A value known by its ends is drawn as often as its weight says, and u for each.
        """
        tau, nu = float(nuisance[0]), float(nuisance[1])
        mass, which, state = given.weight, given.censored, normals.seeded(rng)
        if which is None:
            one = np.ones(1) if mass is None else mass
            found = scale_mixtures.student_t_weights(state, fitted, values, one, tau, nu)
            return WorkingResponse(*found[:2]), float(found[2])
        mass = np.ones(values.shape) if mass is None else mass
        copies = np.where(which, np.maximum(np.rint(mass), 1.0), 1.0)
        weight, shift, squares = np.zeros(values.shape), np.zeros(values.shape), 0.0
        for copy in range(int(copies.max(initial=0.0))):
            rows = np.flatnonzero(copies > copy)
            drawn = _uncensored(rng, fitted[rows], values[rows], nuisance, given.at(rows))
            found = scale_mixtures.student_t_weights(
                state, fitted[rows], drawn, mass[rows] / copies[rows], tau, nu
            )
            weight[rows] += found[0]
            shift[rows] += found[1]
            squares += found[2]
        return WorkingResponse(weight, shift), float(squares)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same with E[u]; of an interval, its nearest end."""
        tau, nu = nuisance[0], nuisance[1]
        if given.lower is not None and given.upper is not None:
            nearest = np.clip(fitted, given.lower, given.upper)
            values = np.where(np.isnan(given.lower), values, nearest)
        weight = tau * (nu + 1) / (nu + tau * (values - fitted) ** 2)
        weight = weight if given.weight is None else given.weight * weight
        return WorkingResponse(weight, weight * values)

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, count, sum of u (y - f)^2, log likelihood at every candidate.

        Of the last two, a scan needs one only.
        """
        points, squares = nuisance.reshape(-1, 2), 0.0
        if rng is None or not _has_candidates(nuisance):
            if rng is not None:
                squares = self._draw(rng, fitted, values, nuisance, given)[1]
            else:
                response = response or self.expect(fitted, values, nuisance, given)
                weight, shift = response
                squares = np.sum((shift - weight * fitted) ** 2 / weight) / nuisance[0]
        count = values.size if given.weight is None else given.weight.sum()
        asked = points if _has_candidates(nuisance) else points[:1]
        logs = np.zeros(len(points))
        logs[: len(asked)] = self._log_likelihoods(fitted, values, asked, given)
        return np.array([logs[0], count, squares, *logs[1:]])

    def _log_likelihoods(
        self, fitted: FloatArray, values: FloatArray, points: FloatArray, given: Given
    ) -> FloatArray:
        """Log likelihood at each of the points, in one pass."""
        if given.lower is not None:
            return np.array([self.log_prob(fitted, values, own, given).sum() for own in points])
        weight = np.ones(1) if given.weight is None else given.weight
        count = values.size if given.weight is None else weight.sum()
        tau, nu = points[:, 0], points[:, 1]
        sums = loglikelihoods.student_t(
            fitted, values.astype(float, copy=False), weight, tau / nu, -0.5 * (nu + 1)
        )
        return np.asarray(count * _log_constant(tau, nu) + sums)

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """Log density of each observation; log probability of an interval."""
        tau, nu = nuisance[..., :1], nuisance[..., 1:2]
        each = _log_constant(tau, nu) - 0.5 * (nu + 1) * np.log1p(tau / nu * (values - fitted) ** 2)
        if given.censored is not None and given.lower is not None and given.upper is not None:
            root = np.sqrt(tau)
            low, high = (given.lower - fitted) * root, (given.upper - fitted) * root
            flip = low + high > 0
            ends = np.where(flip, -high, low), np.where(flip, -low, high)
            mass = stdtr(nu, ends[1]) - stdtr(nu, ends[0])
            each = np.where(given.censored, np.log(np.maximum(mass, 1e-300)), each)
        return np.asarray(each if given.weight is None else given.weight * each)

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Add noise."""
        tau, nu = nuisance[..., :1], nuisance[..., 1:2]
        degrees = np.broadcast_to(nu, fitted.shape)
        return np.asarray(fitted + rng.standard_t(degrees) / np.sqrt(tau))

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """nu / (nu - 2) / tau."""
        tau, nu = nuisance[..., :1], nuisance[..., 1:2]
        return np.broadcast_to(nu / (nu - LEAST) / tau, fitted.shape)

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Distribution function of t_nu at (y - f) sqrt(tau)."""
        tau, nu = nuisance[..., :1], nuisance[..., 1:2]
        return np.asarray(stdtr(nu, (values - fitted) * np.sqrt(tau)))

    def mixture_quantiles(
        self, ends: Ends, fitted: FloatArray, nuisance: FloatArray, given: Given
    ) -> FloatArray:
        """By tables of the distribution function, one per draw."""
        ends = ends._replace(tails=np.maximum(ends.tails, RAREST))
        degrees, roots = np.ascontiguousarray(nuisance[:, 1]), np.sqrt(nuisance[:, 0])
        columns, table = np.ascontiguousarray(fitted.T), _table(degrees.tobytes())
        own = -stdtrit(degrees[:, None], ends.tails) / roots[:, None]
        starts = np.stack([ends.scores, own.mean(axis=0)])
        return np.asarray(
            t_mixture_quantiles(ends.tails, starts, ends.sides, columns, roots, degrees, table)
        )

    # ---- Held-out values.

    def losses(self, values: FloatArray, expected: FloatArray) -> FloatArray:
        """Absolute error, which outliers do not rule."""
        return np.abs(values - expected)

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
        given: Given = NOTHING,
    ) -> StudentT:
        """Set the cutoff and the tails as `Gaussian` does, by a robust size of held-out errors.

        That is sigma^2, the mean of u ((y - mean)^2 - variance) with u = (nu + 1) / (nu + (y -
        mean)^2 / (sigma^2 + variance)).
        """
        nu = USUAL if nuisance is None else float(np.mean(nuisance[:, 1]))
        squares, noise = (values - mean) ** 2, 1.0
        for _ in range(ROUNDS):
            u = (nu + 1) / (nu + squares / (noise + variance))
            noise = min(max(float(np.mean(u * squares - variance)), 1e-12), 1.0)
        share = values.size / (values.size + PSEUDO)
        drawn = noise if nuisance is None else float(np.mean(1.0 / nuisance[:, 0]))
        ratio = np.abs(values - mean) / np.sqrt(drawn + variance)
        sizes = -ndtri(np.maximum(stdtr(nu, -ratio), 1e-300))
        return replace(self, max_precision=1.0 / (share * noise), tails=shrunk(sizes))

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Noise in the units of the data, and degrees of freedom."""
        return {"noise": scale / sqrt(nuisance[0]), "degrees of freedom": float(nuisance[1])}


@lru_cache(maxsize=2)
def _table(degrees: bytes) -> FloatArray:
    """Upper tails of t with these degrees of freedom, as `t_mixture_quantiles` reads them.

    Many pieces of work ask for the table of the same draws.
    """
    nu, cells = np.frombuffer(degrees)[:, None], np.arange(LAST + 1)
    z = HALF * cells / (CELLS - cells)
    density = _log_constant(np.ones_like(nu), nu) - 0.5 * (nu + 1) * np.log1p(z**2 / nu)
    table = np.empty((len(nu), 2 * cells.size))
    table[:, ::2] = stdtr(nu, -z)
    table[:, 1::2] = -np.exp(density) * (z + HALF) ** 2 / (HALF * CELLS)
    return table


def _has_candidates(nuisance: FloatArray) -> bool:
    """Whether there are candidates other than the present point."""
    return bool(np.any(nuisance.reshape(-1, 2)[1:] != nuisance[:2]))


def _log_constant(tau: FloatArray, nu: FloatArray) -> FloatArray:
    """Logarithm of the density of f + t_nu / sqrt(tau) at its centre."""
    ratio = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu)
    return np.asarray(ratio + 0.5 * np.log(tau / (nu * np.pi)))


def _unbounded(points: FloatArray) -> FloatArray:
    """log tau and log(nu - 2)."""
    return np.stack([np.log(points[..., 0]), np.log(points[..., 1] - LEAST)], axis=-1)


def _natural(points: FloatArray) -> FloatArray:
    return np.stack([np.exp(points[..., 0]), LEAST + np.exp(points[..., 1])], axis=-1)


def _uncensored(
    rng: Generator, fitted: FloatArray, values: FloatArray, nuisance: FloatArray, given: Given
) -> FloatArray:
    """Values, drawn where only their ends are known."""
    which = given.censored
    if which is None or given.lower is None or given.upper is None:
        return values
    root, nu, centre = np.sqrt(nuisance[0]), float(nuisance[1]), fitted[which]
    low, high = (given.lower[which] - centre) * root, (given.upper[which] - centre) * root
    values = values.copy()
    values[which] = centre + latent.draw_t_between(rng, nu, low, high) / root
    return values
