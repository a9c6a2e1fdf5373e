"""Counts that vary as little as counts of independent events do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Self

import numpy as np
from numpy.random import Generator

from bayesring.likelihoods.count_valued import CountValued
from bayesring.model.types import FloatArray, Moments

RARE = 0.1
"""Mean count from which on r no longer falls with it."""


@dataclass(frozen=True)
class Poisson(CountValued):
    """y_n ~ Poisson(E_n exp(f_n + b)), as the negative binomial of a large, fixed size r.

    r is the mean count over `excess`: at the mean count the variance is 1 + `excess` times that.
    For a boundless r the chains would hardly move, since omega grows with r, and f is the surer
    given omega. At an excess of 0.02 omega is about six times what a count says of f.

    Parameters
    ----------
    centre, spread : of the intercept b; by default the centre is the logarithm of the mean count
    excess : variance over mean, less one, at the mean count
    r : the size; None to choose it by `excess`

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.likelihoods import Poisson
    >>> TensorRing(likelihood=Poisson(excess=0.05)).likelihood.excess
    0.05
    """

    excess: float = 0.02
    r: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.excess < inf and (self.r is None or 0 < self.r < inf)):
            raise ValueError(
                f"excess and r of Poisson must be positive, got {self.excess!r} and {self.r!r}."
            )

    def bind(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Self:
        """Choose r by the mean count."""
        own = super().bind(moments, names, shape)
        return own if own.r is not None else replace(own, r=max(moments.mean, RARE) / own.excess)

    @property
    def _size(self) -> float:
        return 1.0 / self.excess if self.r is None else self.r

    def initial_nuisance(self) -> FloatArray:
        """Start with the mean count."""
        return np.array([self._size, self._centre])

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw b from its prior."""
        return np.array([self._size, self.draw_intercept(rng)])

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of b."""
        return self.log_prior_intercept(nuisance)

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw b from its conditional."""
        return np.array([self._size, self.update_intercept(rng, statistics)])

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """b at the mode of its conditional."""
        return np.array([self._size, self.conditional(statistics)[0]])
