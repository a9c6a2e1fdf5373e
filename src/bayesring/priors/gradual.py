"""What priors of modes with a length scale have in common: it is learned, and may be zero."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, ModePrior
from bayesring.priors.normal_wishart import (
    SCANS,
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


class Steps(Protocol):
    """The process at one length scale: each slice given some before it, plus an innovation."""

    @property
    def v(self) -> FloatArray:
        """(I,), variance of each slice given those before it, in units of Omega^-1."""

    @property
    def a(self) -> FloatArray:
        """(I,), what multiplies mu in the innovations."""

    def innovations(self, slices: FloatArray) -> FloatArray:
        """z (I, K), independent N(a_i mu, Omega^-1)."""


class Gradual(ModePrior):
    """Normal-Wishart prior whose slices are alike where their labels lie close together.

    With C(ell) the correlations between slices and Omega^-1 the covariance within one, (mu, Omega)
    are as in `NormalWishart`, and ell is learned on a grid that begins with zero. What is here
    needs innovations only: equations (25) and (27) of docs/model.md.
    """

    k0: float
    scale: float
    extra_degrees: float
    learned: bool

    learns_scale: ClassVar[bool] = True

    @abstractmethod
    def bind(self, axis: Axis) -> Gradual:
        """Take the positions of the labels."""

    @property
    @abstractmethod
    def lengths(self) -> FloatArray:
        """The grid of length scales, zero first."""

    @abstractmethod
    def _first_step(self) -> int:
        """Where a chain starts on the grid."""

    def _neighbour(self, rng: Generator, step: int) -> int:
        """Another length scale, from which this one is proposed as often; perhaps off the grid."""
        return step + (1 if rng.random() < 0.5 else -1)

    @abstractmethod
    def _chain(self, step: int) -> Steps:
        """The process at a length scale of the grid."""

    @abstractmethod
    def new_given(
        self, shared: SmoothHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters."""

    @abstractmethod
    def beside_given(self, shared: SmoothHyper, core: FloatArray, axis: Axis) -> SlicePrior:
        """Gaussian prior of new slices given the known ones and the hyperparameters."""

    @property
    def exchangeable(self) -> NormalWishart:
        """Prior of (mu, Omega), and of the slices without order."""
        return NormalWishart(self.k0, self.scale, self.extra_degrees, self.learned)

    def length(self, hyper: SmoothHyper) -> float:
        """ell, in the units of the positions."""
        return float(self.lengths[hyper.step[0]])

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> SmoothHyper:
        """Draw (mu, Omega) and the length scale from their priors."""
        weights = np.exp(self._log_weights)
        step = rng.choice(weights.size, p=weights / weights.sum())
        mean, precision, scales = self.exchangeable.draw_hyper(rng, shape)
        return SmoothHyper(mean, precision, np.array([step]), scales)

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
            other = self._neighbour(rng, step)
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
        other = self._neighbour(rng, int(hyper.step[0]))
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

    def beside(self, rng: Generator, core: FloatArray, axis: Axis) -> SlicePrior:
        """The process at known and new positions, given the known slices."""
        return self.beside_given(self._draw_shared(rng, core), core, axis)

    @cached_property
    def _log_weights(self) -> FloatArray:
        """Log prior of the length scales, up to a constant."""
        count = len(self.lengths)
        if count == 1:
            return np.zeros(1)
        ordered = np.full(count - 1, (1 - UNORDERED) / (count - 1))
        return np.asarray(np.log(np.append(UNORDERED, ordered)))

    def _draw_shared(self, rng: Generator, core: FloatArray) -> SmoothHyper:
        """Length scale, (mu, Omega) and s given nothing but the slices."""
        scales = self.exchangeable.first_scales(rng, core)
        steps, masses = self._masses(core, scales)
        chances = np.exp(masses - np.max(masses))
        step = int(steps[rng.choice(len(chances), p=chances / chances.sum())])
        drawn = self._draw_given(rng, core, step, scales)
        for _ in range(SCANS - 1 if self.learned else 0):
            drawn = self._draw_given(rng, core, step, drawn.scales)
        return drawn

    def _masses(self, core: FloatArray, scales: FloatArray) -> tuple[IntArray, FloatArray]:
        """Length scales of the grid, and log p(core, ell) of each up to a constant."""
        steps = np.arange(len(self.lengths))
        return steps, np.array([self._marginal(core, int(step), scales)[1] for step in steps])

    def _draw_given(
        self, rng: Generator, core: FloatArray, step: int, scales: FloatArray
    ) -> SmoothHyper:
        """(mu, Omega) given a length scale and scales, and new scales given these."""
        mean, precision = draw_normal_wishart(rng, self._marginal(core, step, scales)[0])
        drawn = self.exchangeable.draw_scales(rng, np.diag(precision))
        return SmoothHyper(mean, precision, np.array([step]), drawn)

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
