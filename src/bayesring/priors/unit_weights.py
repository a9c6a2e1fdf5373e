"""Bond weights fixed at one, for core priors that learn their scale themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from bayesring.model.types import FloatArray


@dataclass(frozen=True)
class UnitWeights:
    """lambda_r = 1 for every factor, and no gains to learn.

    Scale can move freely between weights and cores whose covariance is learned. With both, chains
    drift along that direction and predict worse (docs/choices.md), so the hierarchical prior has
    no weights.

    Examples
    --------
    >>> from bayesring.priors import UnitWeights
    >>> UnitWeights().learned
    False
    """

    learned = False

    def precisions(self, gains: FloatArray) -> FloatArray:
        """Infinite: the weights are known."""
        return np.full(gains.shape, np.inf)

    def draw_gains(self, rng: Generator, shape: tuple[int, int]) -> FloatArray:
        """Return ones (S, R_d)."""
        return np.ones(shape)

    def draw_weights(self, rng: Generator, gains: FloatArray) -> FloatArray:
        """Return ones."""
        return np.ones(gains.shape)

    def update_gains(self, rng: Generator, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """Leave them at one."""
        return gains

    def expect_gains(self, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """Leave them at one."""
        return gains

    def log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """Zero: nothing is random."""
        return 0.0

    def expected_log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """Zero: nothing is random."""
        return 0.0
