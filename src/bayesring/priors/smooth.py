"""Core prior of an ordered mode: slices change gradually along the positions of their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular

from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.first_order import (
    CLOSEST,
    ChainSteps,
    GrowingChain,
    deltas_of,
    links_of,
)
from bayesring.priors.mode_prior import CoreShape, Coupling, ModePrior
from bayesring.priors.normal_wishart import (
    SCANS,
    MeanAndPrecision,
    NormalWishart,
    NormalWishartParameters,
    draw_normal_wishart,
)

STEPS = 4
"""Length scales of the grid per factor of two."""
SHORTEST, LONGEST = 0.25, 8.0
"""Ends of the grid, as multiples of the median gap between positions and of their range."""
START = 0.1
"""Length scale to start from, as a fraction of the range of the positions."""
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
    scales: FloatArray
    """s, (K,), as in `NormalWishart`."""


@dataclass(frozen=True)
class Smooth(ModePrior):
    """Normal-Wishart prior whose slices follow a first-order process along their positions.

    vec G[i] has mean mu, and the covariance of slices i and j is exp(-|x_i - x_j| / ell) Omega^-1;
    (mu, Omega) are as in `NormalWishart`. The length scale ell is learned on a geometric grid that
    contains zero, which is the exchangeable prior. Equations (25) to (28) of docs/model.md.

    Parameters
    ----------
    k0, scale, extra_degrees, learned : as in `NormalWishart`
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
    learned: bool = False

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
        return NormalWishart(self.k0, self.scale, self.extra_degrees, self.learned)

    @classmethod
    def along(cls, prior: NormalWishart) -> Smooth:
        """The ordered form of an exchangeable prior."""
        return cls(prior.k0, prior.scale, prior.extra_degrees, learned=prior.learned)

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
        mean, precision, scales = self.exchangeable.draw_hyper(rng, shape)
        return SmoothHyper(mean, precision, np.array([step]), scales)

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
        """Move the length scale with (mu, Omega) integrated out, then draw these given it (27).

        The scales come last, given Omega.
        """
        if hyper is None:
            step, scales = self._first_step(), self.exchangeable.first_scales(rng, core)
            return self._draw_given(rng, core, step, scales)
        step, scales = int(hyper.step[0]), hyper.scales
        mass = self._marginal(core, step, scales)[1]
        for _ in range(MOVES):
            other = step + (1 if rng.random() < 0.5 else -1)
            chance = np.log(rng.random())
            if not 0 <= other < len(self.lengths):
                continue
            new_mass = self._marginal(core, other, scales)[1]
            if chance < new_mass - mass:
                step, mass = other, new_mass
        return self._draw_given(rng, core, step, scales)

    def resized_hyper(self, rng: Generator, core: FloatArray, hyper: SmoothHyper) -> SmoothHyper:
        """Draw (mu, Omega) at the same length scale."""
        scales = self.exchangeable.first_scales(rng, core)
        return self._draw_given(rng, core, int(hyper.step[0]), scales)

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
        weights = self._log_weights
        log_shared = self.exchangeable.log_shared(hyper)
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
        chain = GrowingChain(self._x, gaps, self.length(shared))
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
        links = links_of(np.diff(x[order]), self.length(shared))
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
        """Length scale, (mu, Omega) and s given nothing but the slices."""
        scales = self.exchangeable.first_scales(rng, core)
        masses = [self._marginal(core, step, scales)[1] for step in range(len(self.lengths))]
        chances = np.exp(masses - np.max(masses))
        step = int(rng.choice(len(chances), p=chances / chances.sum()))
        drawn = self._draw_given(rng, core, step, scales)
        for _ in range(SCANS - 1 if self.learned else 0):
            drawn = self._draw_given(rng, core, step, drawn.scales)
        return drawn

    def _draw_given(
        self, rng: Generator, core: FloatArray, step: int, scales: FloatArray
    ) -> SmoothHyper:
        """(mu, Omega) given a length scale and scales, and new scales given these."""
        mean, precision = draw_normal_wishart(rng, self._marginal(core, step, scales)[0])
        drawn = self.exchangeable.draw_scales(rng, np.diag(precision))
        return SmoothHyper(mean, precision, np.array([step]), drawn)

    def _chain(self, step: int) -> ChainSteps:
        length = self.lengths[step]
        gaps = np.diff(self._x)
        deltas = np.append(np.inf, deltas_of(gaps, length))
        return ChainSteps(np.exp(-deltas), -np.expm1(-2 * deltas), np.sqrt(np.tanh(0.5 * deltas)))

    def _marginal(
        self, core: FloatArray, step: int, scales: FloatArray
    ) -> tuple[NormalWishartParameters, float]:
        """Conditional of (mu, Omega), and log p(core, ell) without them up to a constant (27)."""
        chain, slices = self._chain(step), core.reshape(len(core), -1)
        prior = self.exchangeable._prior(slices.shape[1], scales)
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
