"""Noise precisions of groups that resemble each other as much as the data say.

tau_j ~ Ga(kappa, kappa / tau), cut off above `caps`, tau ~ Ga(alpha0, beta0) and
log kappa ~ N(KAPPA, KAPPA_SPREAD^2): for large kappa all groups are equally noisy. Parameters are
(tau, kappa, tau_1, ..., tau_J).
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc

from bayesring.model.truncated_gamma import draw_truncated_gamma
from bayesring.model.types import FloatArray

KAPPA, KAPPA_SPREAD = 1.0, 1.5
STEP, TRIES = 1.0, 50
"""Width of a slice to begin with, and how often it grows or shrinks."""
COMMON = 2
"""Parameters before those of the groups."""


class GroupedNoise(NamedTuple):
    """Prior of the precisions of some groups."""

    alpha0: float
    beta0: float
    caps: FloatArray
    """(J,)."""

    def draw(self, rng: Generator) -> FloatArray:
        """All parameters from their prior."""
        tau = float(rng.gamma(self.alpha0) / self.beta0)
        kappa = float(np.exp(KAPPA + KAPPA_SPREAD * rng.standard_normal()))
        own = [draw_truncated_gamma(rng, kappa, kappa / tau, cap) for cap in self.caps]
        return np.array([tau, kappa, *own])

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of all parameters."""
        tau, kappa, own = float(nuisance[0]), float(nuisance[1]), nuisance[COMMON:]
        if tau <= 0 or kappa <= 0 or np.any(own <= 0) or np.any(own > self.caps):
            return -np.inf
        rate = kappa / tau
        each = kappa * log(rate) - lgamma(kappa) + (kappa - 1) * np.log(own) - rate * own
        with np.errstate(divide="ignore"):
            each = each - np.log(gammainc(kappa, rate * self.caps))
        common = self.alpha0 * log(self.beta0) - lgamma(self.alpha0)
        common += (self.alpha0 - 1) * log(tau) - self.beta0 * tau
        gap = (log(kappa) - KAPPA) / KAPPA_SPREAD
        common += -0.5 * gap**2 - log(KAPPA_SPREAD * kappa) - 0.5 * log(2 * np.pi)
        return float(common + each.sum())

    def conditional(
        self, counts: FloatArray, squares: FloatArray, nuisance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Shape and rate of every tau_j before it is cut off."""
        tau, kappa = nuisance[0], nuisance[1]
        return kappa + 0.5 * counts, kappa / tau + 0.5 * squares

    def update(
        self, rng: Generator, counts: FloatArray, squares: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw every tau_j from its conditional, then tau and kappa by slice sampling."""
        shapes, rates = self.conditional(counts, squares, nuisance)
        own = [
            draw_truncated_gamma(rng, *each)
            for each in zip(shapes.tolist(), rates.tolist(), self.caps.tolist(), strict=True)
        ]
        new = np.array([nuisance[0], nuisance[1], *own])
        for place in range(COMMON):

            def log_density(x: float, place: int = place) -> float:
                moved = new.copy()
                moved[place] = np.exp(x)
                return self.log_prior(moved) + x  # x is the logarithm

            new[place] = np.exp(draw_by_slice(rng, log_density, float(np.log(new[place]))))
        return new

    def estimate(self, counts: FloatArray, squares: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Modes of the tau_j; tau and kappa by their mean and variance."""
        shapes, rates = self.conditional(counts, squares, nuisance)
        own = np.minimum(np.maximum(shapes - 1, 1e-6) / rates, self.caps)
        tau = float(own.mean())
        return np.array([tau, min(max(tau**2 / max(float(own.var()), 1e-12), 0.5), 100.0), *own])


def draw_by_slice(rng: Generator, log_density: Callable[[float], float], x: float) -> float:
    """One step of slice sampling with stepping out (Neal, 2003, figures 3 and 5)."""
    level = log_density(x) - float(rng.standard_exponential())
    low = x - STEP * float(rng.random())
    high = low + STEP
    outwards = int(rng.integers(TRIES))
    for _ in range(outwards):
        if log_density(low) <= level:
            break
        low -= STEP
    for _ in range(TRIES - 1 - outwards):
        if log_density(high) <= level:
            break
        high += STEP
    while True:
        new = low + (high - low) * float(rng.random())
        if log_density(new) > level:
            return new
        if high - low < 1e-12 * (1.0 + abs(x)):
            return x
        if new < x:
            low = new
        else:
            high = new
