"""A first-order process along positions: its steps, and its values at new positions."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from bayesring.model.types import FloatArray

CLOSEST = 1e-7
"""Length scales that neighbours are apart at least: closer ones could not be told apart, and no
matrix of them be factorised."""


class ChainSteps(NamedTuple):
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


def links_of(gaps: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:
    """rho and v = 1 - rho^2 of every gap."""
    deltas = deltas_of(gaps, length)
    return np.exp(-deltas), -np.expm1(-2 * deltas)


def deltas_of(gaps: FloatArray, length: float) -> FloatArray:
    """Gaps in length scales; what is closer than `CLOSEST` counts as that far apart."""
    return np.maximum(gaps / length, CLOSEST) if length > 0 else np.full(gaps.size, np.inf)


class GrowingChain:
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
