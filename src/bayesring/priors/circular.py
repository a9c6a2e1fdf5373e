"""Core prior of a circular mode, such as the hours of the day: the last label is next to the first.

The process is that of `Smooth` wrapped around a circle, which keeps what makes it cheap: given two
slices, those on one arc between them do not depend on those on the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesring.model.triangular import in_columns
from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.directed import Directed, DirectedSteps, Parents, given_known
from bayesring.priors.first_order import CLOSEST, GrowingChain, deltas_of
from bayesring.priors.gradual import LONGEST, SHORTEST, START, STEPS, SmoothHyper
from bayesring.priors.normal_wishart import NormalWishart

RUN = 64
"""Slices drawn jointly; circles of more are cut at single slices."""


@dataclass(frozen=True)
class Circular(Directed):
    """Normal-Wishart prior whose slices follow a first-order process around a circle.

    With L the period and d the distance of two labels along the circle, the covariance of their
    slices is cosh((L/2 - d) / ell) / cosh(L/2 ell) Omega^-1; all else is as in `Smooth`. Equations
    (48) to (50) of docs/model.md.

    Parameters
    ----------
    period : the distance after which labels come round again: 24 for hours, 12 for months, 360 for
        degrees; of times, in days
    k0, scale, extra_degrees, learned : as in `NormalWishart`
    positions : (I_d,), increasing or decreasing, within one period; set when the prior is bound

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import Circular
    >>> TensorRing(prior={"hour": Circular(24)}).prior["hour"].period    # or order={"hour": 24}
    24
    """

    period: float
    k0: float = 2.0
    scale: float = 1.0
    extra_degrees: float = 0.0
    positions: tuple[float, ...] = ()
    learned: bool = False

    def __post_init__(self) -> None:
        self.exchangeable  # noqa: B018 checks its parameters
        if not 0 < self.period < np.inf:
            raise ValueError(f"period of Circular must be a positive number, got {self.period!r}.")
        if len(self.positions) < 2:
            return
        if not np.all(np.diff(self._x) > 0):
            raise ValueError("positions of Circular must increase or decrease.")
        if not self._x[-1] < self.period:
            raise ValueError(
                f"labels of a circular mode must lie within one period of {self.period:g}, but "
                f"they are from {self.positions[0]:g} to {self.positions[-1]:g}."
            )

    def bind(self, axis: Axis) -> Circular:
        """Take the positions of the labels."""
        if axis.positions is None or axis.positions.shape[1] != 1:
            raise ValueError(
                "Circular needs a mode whose labels are numbers or times, but those of its mode "
                "are neither."
            )
        return replace(self, positions=tuple(axis.positions[:, 0].tolist()))

    @classmethod
    def around(cls, prior: NormalWishart, period: float) -> Circular:
        """The circular form of an exchangeable prior."""
        return cls(period, prior.k0, prior.scale, prior.extra_degrees, learned=prior.learned)

    @cached_property
    def lengths(self) -> FloatArray:
        """The grid of length scales, zero first."""
        if len(self.positions) < 2:
            return np.zeros(1)
        high = LONGEST * self.period / 2
        low = max(SHORTEST * float(np.median(self._gaps)), CLOSEST * high)
        if not (np.finfo(float).tiny < low and high < np.inf):
            return np.zeros(1)  # too close or too far apart for arithmetic
        count = int(np.ceil(STEPS * np.log2(high / low))) + 1
        return np.concatenate([[0.0], low * 2.0 ** (np.arange(count) / STEPS)])

    def patches(self, n_slices: int, scan: int, room: float = np.inf) -> list[IntArray]:
        """The whole circle, or arcs between single slices, which are drawn in a second pass.

        These move by half an arc from scan to scan.
        """
        if n_slices <= RUN:
            return [np.array([[0, n_slices]])]
        count = -(-n_slices // (RUN + 1))
        first = n_slices // (2 * count) if scan % 2 else 0
        borders = first + np.arange(count) * n_slices // count
        ends = np.append(borders[1:], borders[0] + n_slices)
        return [np.stack([borders + 1, ends], axis=1), np.stack([borders, borders + 1], axis=1)]

    def new_given(
        self, shared: SmoothHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters.

        Each new position is drawn given the slices on either side of it, known or drawn before.
        """
        spread = in_columns(noise, shared.precision)
        gaps = core.reshape(len(core), -1) - shared.mean
        if axis.positions is None:
            return np.asarray((shared.mean + spread).reshape(noise.shape))
        circle = GrowingCircle(self._x, self.period, self.length(shared), gaps)
        for place, x in enumerate(self._turned(axis.positions[:, 0])):
            spread[place] = circle.draw(float(x), spread[place])
        return np.asarray((shared.mean + spread).reshape(noise.shape))

    def beside_given(self, shared: SmoothHyper, core: FloatArray, axis: Axis) -> SlicePrior:
        """The circle of known and new positions, given the known slices and hyperparameters."""
        slices = core.reshape(len(core), -1)
        new = self._turned(np.full(axis.n, np.nan) if axis.positions is None else axis.positions)
        x = np.append(self._x, new)
        if axis.positions is None or len(np.unique(x)) < len(x):
            raise ValueError(
                "labels of a circular mode that are folded in must be numbers or times that differ "
                f"from those known by more than whole periods of {self.period:g}."
            )
        order = np.argsort(x, kind="stable")
        gaps = np.diff(np.append(x[order], x[order[0]] + self.period))
        steps = circle_steps(gaps, self.length(shared))
        return given_known(steps, order, slices, shared)

    def _turned(self, positions: FloatArray) -> FloatArray:
        """Positions along the circle, from that of the first label on."""
        turned = self._direction * (positions.ravel() - self.positions[0])
        return np.asarray(np.mod(turned, self.period))

    @cached_property
    def _x(self) -> FloatArray:
        """Distances from the first label, in the direction of the others."""
        return self._direction * (np.array(self.positions) - self.positions[0])

    @property
    def _direction(self) -> float:
        return -1.0 if self.positions and self.positions[-1] < self.positions[0] else 1.0

    @property
    def _gaps(self) -> FloatArray:
        """(I,), distance from each label to the next, from the last to the first."""
        return np.diff(np.append(self._x, self.period))

    def _first_step(self) -> int:
        lengths = self.lengths
        if lengths.size == 1:
            return 0
        return 1 + int(np.argmin(np.abs(np.log(lengths[1:] / (START * self.period)))))

    def _steps(self, length: float) -> DirectedSteps:
        return circle_steps(self._gaps, length)

    @property
    def _known_size(self) -> int:
        return 8 * len(self.positions)


def circle_steps(gaps: FloatArray, length: float) -> DirectedSteps:
    """The process around a circle with these gaps (I,), the last one from the last to the first.

    Each slice depends on the one before it and on the first, equation (49).
    """
    n = len(gaps)
    before = np.maximum(np.arange(n) - 1, 0)
    parents = Parents(np.arange(n), np.stack([before, np.zeros(n, dtype=np.int64)], axis=1))
    weights, v, rest = np.zeros((n, 2)), np.ones(n), np.ones(n)
    if length == 0 or n == 1:
        return DirectedSteps(parents, weights, v, rest)
    deltas = deltas_of(gaps, length)
    whole, b = float(np.sum(deltas)), np.cumsum(deltas[::-1])[::-1]
    a, b = deltas[:-1], b[1:]
    w1, w2, v[1:], rest[1:] = between(a, b, whole)
    weights[1:, 0], weights[1:, 1] = w1, w2
    closing = np.exp(-whole)
    v[1] = np.expm1(-2 * b[0]) * np.expm1(-2 * a[0]) / (1 + closing) ** 2
    rest[1] = np.expm1(-a[0]) * np.expm1(-b[0]) / (1 + closing)
    return DirectedSteps(parents, weights, v, rest)


def between(a: FloatArray, b: FloatArray, whole: float) -> tuple[FloatArray, ...]:
    """Weights of two slices at distances a and b, variance given both, and one minus the weights.

    Of a circle of circumference `whole`, all in length scales: w = sinh b / sinh(a + b) and so on,
    written without overflow.
    """
    total = -np.expm1(-2 * (a + b))
    w1 = np.exp(-a) * -np.expm1(-2 * b) / total
    w2 = np.exp(-b) * -np.expm1(-2 * a) / total
    v = np.expm1(-2 * a) * np.expm1(-2 * b) / total * np.tanh(0.5 * whole)
    return w1, w2, v, np.expm1(-a) * np.expm1(-b) / (1 + np.exp(-(a + b)))


class GrowingCircle(GrowingChain):
    """A circle of slices that new positions, from 0 to the period, join one by one (49)."""

    def __init__(
        self, positions: FloatArray, period: float, length: float, gaps: FloatArray
    ) -> None:
        super().__init__(positions, gaps, length)
        self._period = period

    def _conditional(self, x: float, at: int) -> tuple[FloatArray, float]:
        """Mean and variance factor given the slices before and after."""
        if self._length == 0:
            return np.zeros_like(self._gaps[0]), 1.0
        after = at % len(self._positions)
        a = np.mod(x - self._positions[at - 1], self._period) / self._length
        b = np.mod(self._positions[after] - x, self._period) / self._length
        w1, w2, v, _ = between(a, b, self._period / self._length)
        return w1 * self._gaps[at - 1] + w2 * self._gaps[after], float(v)
