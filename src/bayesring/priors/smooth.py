"""Core prior of an ordered mode: slices change gradually along the positions of their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from bayesring.model.triangular import in_columns
from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.first_order import (
    CLOSEST,
    ChainSteps,
    GrowingChain,
    deltas_of,
    links_of,
)
from bayesring.priors.gradual import (
    LONGEST,
    SHORTEST,
    START,
    STEPS,
    Gradual,
    SmoothHyper,
)
from bayesring.priors.mode_prior import CoreShape, Coupling
from bayesring.priors.normal_wishart import MeanAndPrecision, NormalWishart


@dataclass(frozen=True)
class Smooth(Gradual):
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
        if axis.positions.shape[1] > 1:
            raise ValueError(
                "Smooth needs a mode whose labels lie on a line, but those of its mode have "
                f"{axis.positions.shape[1]} coordinates each; use Spatial."
            )
        return replace(self, positions=tuple(axis.positions[:, 0].tolist()))

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

    def start(self, core: FloatArray, hyper: Any = None) -> FloatArray:
        """Independent slices made to follow the process, at the first length scale if it is new."""
        rho = self._chain(self._first_step() if hyper is None else int(hyper.step[0])).rho
        new = core.copy()
        for i in range(1, len(core)):
            new[i] = rho[i] * new[i - 1] + np.sqrt(1 - rho[i] ** 2) * core[i]
        return new

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: SmoothHyper) -> FloatArray:
        """Draw the slices one after the other."""
        noise = rng.standard_normal((shape[0], prod(shape[1:])))
        chain = self._chain(int(hyper.step[0]))
        gaps = in_columns(noise, hyper.precision)
        for i in range(1, shape[0]):
            gaps[i] = chain.rho[i] * gaps[i - 1] + np.sqrt(chain.v[i]) * gaps[i]
        return np.asarray((hyper.mean + gaps).reshape(shape))

    def slice_prior(self, core: FloatArray, hyper: SmoothHyper) -> SlicePrior:
        """Block-tridiagonal precision Q x Omega and linear terms (Q1)_i Omega mu."""
        chain = self._chain(int(hyper.step[0]))
        rho, v = np.append(chain.rho, 0.0), np.append(chain.v, 1.0)
        factors = 1 / v[:-1] + rho[1:] ** 2 / v[1:]
        links = chain.rho[1:] / chain.v[1:]
        sums = factors - np.append(0.0, links) - np.append(links, 0.0)
        linear = sums[:, None] * (hyper.precision @ hyper.mean)
        return SlicePrior(hyper.precision, np.zeros((1, hyper.mean.size)), linear, factors, links)

    def new_given(
        self, shared: SmoothHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters.

        Each new position is drawn given the slices on either side of it, known or drawn before,
        equation (28). Without positions, new labels are far from all others.
        """
        spread = in_columns(noise, shared.precision)
        gaps = core.reshape(len(core), -1) - shared.mean
        if axis.positions is None:
            return np.asarray((shared.mean + spread).reshape(noise.shape))
        chain = GrowingChain(self._x, gaps, self.length(shared))
        for place, x in enumerate(self._direction * axis.positions[:, 0]):
            spread[place] = chain.draw(float(x), spread[place])
        return np.asarray((shared.mean + spread).reshape(noise.shape))

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

    def _first_step(self) -> int:
        lengths = self.lengths
        if lengths.size == 1:
            return 0
        aim = START * (self._x[-1] - self._x[0])
        return 1 + int(np.argmin(np.abs(np.log(lengths[1:] / aim))))

    def _chain(self, step: int) -> ChainSteps:
        length = self.lengths[step]
        gaps = np.diff(self._x)
        deltas = np.append(np.inf, deltas_of(gaps, length))
        return ChainSteps(np.exp(-deltas), -np.expm1(-2 * deltas), np.sqrt(np.tanh(0.5 * deltas)))
