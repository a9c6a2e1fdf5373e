"""Core prior of an ordered mode: slices change gradually along the positions of their labels."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, Coupling, ModePrior
from bayesring.priors.normal_wishart import (
    MeanAndPrecision,
    NormalWishart,
    NormalWishartParameters,
    draw_normal_wishart,
    log_normal_wishart,
)

STEPS = 4
"""Length scales of the grid per factor of two."""
SHORTEST, LONGEST = 0.25, 8.0
"""Ends of the grid, as multiples of the median gap between positions and of their range."""
START = 0.1
"""Length scale to start from, as a fraction of the range of the positions."""
CLOSEST = 1e-7
"""Length scales that neighbours are apart at least: closer ones could not be told apart, and no
matrix of them be factorised."""
MOVES = 8
"""Metropolis steps of the length scale in each scan, given the slices."""
UNORDERED = 0.1
"""Prior probability that the order means nothing."""


class SmoothHyper(NamedTuple):
    """What the slices of an ordered mode share."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """Omega, (K, K)."""
    step: IntArray
    """(1,), which length scale of the grid; 0 is the length zero, without order."""


@dataclass(frozen=True)
class Smooth(ModePrior):
    """Normal-Wishart prior whose slices follow a first-order process along their positions.

    vec G[i] has mean mu, and the covariance of slices i and j is exp(-|x_i - x_j| / ell) Omega^-1;
    (mu, Omega) are as in `NormalWishart`. The length scale ell is learned on a geometric grid that
    contains zero, which is the exchangeable prior. Equations (25) to (28) of docs/model.md.

    Parameters
    ----------
    k0, scale, extra_degrees : as in `NormalWishart`
    positions : (I_d,), increasing or decreasing; set when the prior is bound to a mode

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import Smooth
    >>> type(TensorRing(prior={"day": Smooth()}).prior["day"]).__name__    # of one mode only
    'Smooth'
    """

    k0: float = 2.0
    scale: float = 1.0
    extra_degrees: float = 0.0
    positions: tuple[float, ...] = ()

    learns_scale: ClassVar[bool] = True
    coupling: ClassVar[Coupling] = Coupling.CHAIN

    def __post_init__(self) -> None:
        self.exchangeable  # noqa: B018 checks its parameters
        if len(self.positions) > 1 and not np.all(np.diff(self._x) > 0):
            raise ValueError("positions of Smooth must increase or decrease.")

    def bind(self, axis: Axis) -> Smooth:
        """Take the positions of the labels."""
        if axis.positions is None:
            raise ValueError(
                "Smooth needs a mode whose labels are numbers or times, but those of its mode are "
                "neither."
            )
        return replace(self, positions=tuple(axis.positions[:, 0].tolist()))

    @property
    def exchangeable(self) -> NormalWishart:
        """Prior of (mu, Omega), and of the slices without order."""
        return NormalWishart(self.k0, self.scale, self.extra_degrees)

    @classmethod
    def along(cls, prior: NormalWishart) -> Smooth:
        """The ordered form of an exchangeable prior."""
        return cls(prior.k0, prior.scale, prior.extra_degrees)

    @cached_property
    def lengths(self) -> FloatArray:
        """The grid of length scales, zero first."""
        x = self._x
        if x.size < 2:
            return np.zeros(1)
        high = LONGEST * (x[-1] - x[0])
        low = max(SHORTEST * np.median(np.diff(x)), CLOSEST * high)
        if not (np.finfo(float).tiny < low and high < np.inf):
            return np.zeros(1)  # too close or too far apart for arithmetic
        count = int(np.ceil(STEPS * np.log2(high / low))) + 1
        return np.concatenate([[0.0], low * 2.0 ** (np.arange(count) / STEPS)])

    def length(self, hyper: SmoothHyper) -> float:
        """ell, in the units of the positions."""
        return float(self.lengths[hyper.step[0]])

    def start(self, core: FloatArray, hyper: Any = None) -> FloatArray:
        """Independent slices made to follow the process, at the first length scale if it is new."""
        rho = self._chain(self._first_step() if hyper is None else int(hyper.step[0])).rho
        new = core.copy()
        for i in range(1, len(core)):
            new[i] = rho[i] * new[i - 1] + np.sqrt(1 - rho[i] ** 2) * core[i]
        return new

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> SmoothHyper:
        """Draw (mu, Omega) and the length scale from their priors."""
        weights = np.exp(self._log_weights)
        step = rng.choice(weights.size, p=weights / weights.sum())
        return SmoothHyper(*self.exchangeable.draw_hyper(rng, shape), np.array([step]))

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: SmoothHyper) -> FloatArray:
        """Draw the slices one after the other."""
        noise = rng.standard_normal((shape[0], prod(shape[1:])))
        chain = self._chain(int(hyper.step[0]))
        lower = np.linalg.cholesky(hyper.precision)
        gaps = solve_triangular(lower, noise.T, lower=True, trans="T").T
        for i in range(1, shape[0]):
            gaps[i] = chain.rho[i] * gaps[i - 1] + np.sqrt(chain.v[i]) * gaps[i]
        return np.asarray((hyper.mean + gaps).reshape(shape))

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> SmoothHyper:
        """Move the length scale with (mu, Omega) integrated out, then draw these given it (27)."""
        step = self._first_step() if hyper is None else int(hyper.step[0])
        parameters, mass = self._marginal(core, step)
        for _ in range(MOVES if hyper is not None else 0):
            other = step + (1 if rng.random() < 0.5 else -1)
            chance = np.log(rng.random())
            if not 0 <= other < len(self.lengths):
                continue
            found, new_mass = self._marginal(core, other)
            if chance < new_mass - mass:
                step, parameters, mass = other, found, new_mass
        return SmoothHyper(*draw_normal_wishart(rng, parameters), np.array([step]))

    def resized_hyper(self, rng: Generator, core: FloatArray, hyper: SmoothHyper) -> SmoothHyper:
        """Draw (mu, Omega) at the same length scale."""
        parameters, _ = self._marginal(core, int(hyper.step[0]))
        return SmoothHyper(*draw_normal_wishart(rng, parameters), hyper.step)

    def alternatives(self, rng: Generator, hyper: SmoothHyper) -> tuple[SmoothHyper, ...]:
        """The length scale as it is, and the next longer or shorter one."""
        other = int(hyper.step[0]) + (1 if rng.random() < 0.5 else -1)
        if not 0 <= other < len(self.lengths):
            return (hyper,)
        return hyper, hyper._replace(step=np.array([other]))

    def is_exchangeable(self, hyper: SmoothHyper) -> bool:
        """Whether the length scale is zero."""
        return int(hyper.step[0]) == 0

    def log_constant(self, shape: CoreShape, hyper: SmoothHyper) -> float:
        """K/2 log|Q| - 1'Q1 mu' Omega mu / 2, and the prior of the length scale."""
        step, mean = int(hyper.step[0]), hyper.mean
        chain = self._chain(step)
        square = float(mean @ hyper.precision @ mean)
        log_det = -mean.size * float(np.sum(np.log(chain.v)))
        return float(0.5 * log_det - 0.5 * np.sum(chain.a**2) * square + self._log_weights[step])

    def slice_prior(self, core: FloatArray, hyper: SmoothHyper) -> SlicePrior:
        """Block-tridiagonal precision Q x Omega and linear terms (Q1)_i Omega mu."""
        chain = self._chain(int(hyper.step[0]))
        rho, v = np.append(chain.rho, 0.0), np.append(chain.v, 1.0)
        factors = 1 / v[:-1] + rho[1:] ** 2 / v[1:]
        links = chain.rho[1:] / chain.v[1:]
        sums = factors - np.append(0.0, links) - np.append(links, 0.0)
        linear = sums[:, None] * (hyper.precision @ hyper.mean)
        return SlicePrior(hyper.precision, np.zeros((1, hyper.mean.size)), linear, factors, links)

    def log_prob(self, core: FloatArray, hyper: SmoothHyper) -> float:
        """log p(core | mu, Omega, ell) + log p(mu, Omega) + log p(ell)."""
        step, size = int(hyper.step[0]), hyper.mean.size
        chain = self._chain(step)
        gaps = chain.innovations(core.reshape(len(core), -1)) - np.outer(chain.a, hyper.mean)
        log_det = np.linalg.slogdet(hyper.precision)[1]
        log_core = 0.5 * (
            len(core) * (log_det - size * np.log(2 * np.pi))
            - size * np.sum(np.log(chain.v))
            - np.sum((gaps @ hyper.precision) * gaps)
        )
        shared = MeanAndPrecision(hyper.mean, hyper.precision)
        weights = self._log_weights
        log_shared = log_normal_wishart(shared, self.exchangeable._prior(size))
        return float(log_core + log_shared + weights[step] - np.log(np.sum(np.exp(weights))))

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw the length scale and (mu, Omega) given the slices, then new slices given these."""
        return self.new_given(self._draw_shared(rng, core), core, noise, axis)

    def new_given(
        self, shared: SmoothHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters.

        Each new position is drawn given the slices on either side of it, known or drawn before,
        equation (28). Without positions, new labels are far from all others.
        """
        lower = np.linalg.cholesky(shared.precision)
        own = noise.reshape(len(noise), -1)
        spread = solve_triangular(lower, own.T, lower=True, trans="T").T
        gaps = core.reshape(len(core), -1) - shared.mean
        if axis.positions is None:
            return np.asarray((shared.mean + spread).reshape(noise.shape))
        chain = _Growing(self._x, gaps, self.length(shared))
        for place, x in enumerate(self._direction * axis.positions[:, 0]):
            spread[place] = chain.draw(float(x), spread[place])
        return np.asarray((shared.mean + spread).reshape(noise.shape))

    def beside(self, rng: Generator, core: FloatArray, axis: Axis) -> SlicePrior:
        """The chain of known and new positions, given the known slices."""
        return self.beside_given(self._draw_shared(rng, core), core, axis)

    def beside_given(self, shared: SmoothHyper, core: FloatArray, axis: Axis) -> SlicePrior:
        """The chain of known and new positions, given the known slices and the hyperparameters.

        Its precision is that of a chain (25); known neighbours enter the linear terms.
        """
        omega, slices = shared.precision, core.reshape(len(core), -1)
        pull = omega @ shared.mean
        if axis.positions is None:
            common = MeanAndPrecision(shared.mean, shared.precision)
            return self.exchangeable.slice_prior(core, common)
        x = np.append(self._x, self._direction * axis.positions[:, 0])
        order = np.argsort(x, kind="stable")
        links = _links(np.diff(x[order]), self.length(shared))
        factors, linear = np.empty(axis.n), np.empty((axis.n, len(omega)))
        between = np.zeros(axis.n - 1)
        for place in np.flatnonzero(order >= len(slices)):
            new = order[place] - len(slices)
            own, total = 1.0, 1.0
            linear[new] = 0.0
            for link, neighbour in ((place - 1, place - 1), (place, place + 1)):
                if not 0 <= neighbour < len(order):
                    continue
                rho, v = links[0][link], links[1][link]
                own, total = own + rho**2 / v, total + (rho**2 - rho) / v
                if order[neighbour] < len(slices):
                    linear[new] += rho / v * (omega @ slices[order[neighbour]])
                else:
                    between[min(new, order[neighbour] - len(slices))] = rho / v
            factors[new] = own
            linear[new] += total * pull
        return SlicePrior(omega, np.zeros((1, len(omega))), linear, factors, between)

    @cached_property
    def _x(self) -> FloatArray:
        return self._direction * np.array(self.positions)

    @property
    def _direction(self) -> float:
        return -1.0 if self.positions and self.positions[-1] < self.positions[0] else 1.0

    @cached_property
    def _log_weights(self) -> FloatArray:
        """Log prior of the length scales, up to a constant."""
        count = len(self.lengths)
        if count == 1:
            return np.zeros(1)
        ordered = np.full(count - 1, (1 - UNORDERED) / (count - 1))
        return np.asarray(np.log(np.append(UNORDERED, ordered)))

    def _first_step(self) -> int:
        lengths = self.lengths
        if lengths.size == 1:
            return 0
        aim = START * (self._x[-1] - self._x[0])
        return 1 + int(np.argmin(np.abs(np.log(lengths[1:] / aim))))

    def _draw_shared(self, rng: Generator, core: FloatArray) -> SmoothHyper:
        """Length scale and (mu, Omega) given the slices."""
        masses = [self._marginal(core, step)[1] for step in range(len(self.lengths))]
        chances = np.exp(masses - np.max(masses))
        step = int(rng.choice(len(chances), p=chances / chances.sum()))
        shared = draw_normal_wishart(rng, self._marginal(core, step)[0])
        return SmoothHyper(*shared, np.array([step]))

    def _chain(self, step: int) -> _Chain:
        length = self.lengths[step]
        gaps = np.diff(self._x)
        deltas = np.append(np.inf, _deltas(gaps, length))
        return _Chain(np.exp(-deltas), -np.expm1(-2 * deltas), np.sqrt(np.tanh(0.5 * deltas)))

    def _marginal(self, core: FloatArray, step: int) -> tuple[NormalWishartParameters, float]:
        """Conditional of (mu, Omega), and log p(core, ell) without them up to a constant (27)."""
        chain, slices = self._chain(step), core.reshape(len(core), -1)
        prior = self.exchangeable._prior(slices.shape[1])
        innovations = chain.innovations(slices)
        k = prior.k + float(np.sum(chain.a**2))
        m = chain.a @ innovations / k
        nu = prior.nu + len(core)
        scale_inverse = prior.scale_inverse + innovations.T @ innovations - k * np.outer(m, m)
        size = m.size
        mass = -0.5 * (
            size * np.sum(np.log(chain.v))
            + nu * np.linalg.slogdet(scale_inverse)[1]
            + size * np.log(k)
        )
        parameters = NormalWishartParameters(m, k, nu, scale_inverse)
        return parameters, float(mass + self._log_weights[step])


class _Chain(NamedTuple):
    """The process at one length scale: slice i is rho_i times the one before plus innovations."""

    rho: FloatArray
    """(I,), exp(-delta_i); zero for the first slice."""
    v: FloatArray
    """(I,), 1 - rho_i^2."""
    a: FloatArray
    """(I,), (1 - rho_i) / sqrt(v_i) = sqrt(tanh(delta_i / 2))."""

    def innovations(self, slices: FloatArray) -> FloatArray:
        """z_i = (g_i - rho_i g_{i-1}) / sqrt(v_i), independent N(a_i mu, Omega^-1)."""
        before = np.concatenate([np.zeros((1, slices.shape[1])), slices[:-1]])
        gaps = slices - self.rho[:, None] * before
        return np.asarray(gaps / np.sqrt(self.v)[:, None])


def _links(gaps: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:
    """rho and v = 1 - rho^2 of every gap."""
    deltas = _deltas(gaps, length)
    return np.exp(-deltas), -np.expm1(-2 * deltas)


def _deltas(gaps: FloatArray, length: float) -> FloatArray:
    """Gaps in length scales; what is closer than `CLOSEST` counts as that far apart."""
    return np.maximum(gaps / length, CLOSEST) if length > 0 else np.full(gaps.size, np.inf)


class _Growing:
    """A chain of slices, as deviations from their mean, that new positions join one by one."""

    def __init__(self, positions: FloatArray, gaps: FloatArray, length: float) -> None:
        self._positions, self._gaps, self._length = positions.tolist(), list(gaps), length

    def draw(self, x: float, spread: FloatArray) -> FloatArray:
        """Deviation at a new position from its conditional given the chain, equation (28)."""
        at = bisect_left(self._positions, x)
        if at < len(self._positions) and self._positions[at] == x:
            return np.asarray(self._gaps[at])
        mean, variance = self._conditional(x, at)
        drawn = np.asarray(mean + np.sqrt(variance) * spread)
        self._positions.insert(at, x)
        self._gaps.insert(at, drawn)
        return drawn

    def _conditional(self, x: float, at: int) -> tuple[FloatArray, float]:
        """Mean and variance factor given the slices before and after."""
        if self._length == 0:
            return np.zeros_like(self._gaps[0]), 1.0
        before = np.inf if at == 0 else (x - self._positions[at - 1]) / self._length
        after = np.inf
        if at < len(self._positions):
            after = (self._positions[at] - x) / self._length
        if np.isinf(before) or np.isinf(after):
            r = np.exp(-min(before, after))
            end = self._gaps[0] if at == 0 else self._gaps[-1]
            return r * end, float(-np.expm1(-2 * min(before, after)))
        # w1 = sinh b / sinh(a + b) and so on, without overflow
        total = -np.expm1(-2 * (before + after))
        w1 = np.exp(-before) * -np.expm1(-2 * after) / total
        w2 = np.exp(-after) * -np.expm1(-2 * before) / total
        variance = np.expm1(-2 * before) * np.expm1(-2 * after) / total
        return w1 * self._gaps[at - 1] + w2 * self._gaps[at], float(variance)
