"""Skeleton of a mode prior: slices of unit variance around a learned mean.

Copy it to `src/bayesring/priors/`, rename the classes, list the prior in that folder's
`__init__.py`, and add the log density of its hyperparameters to `LOG_CONDITIONAL` in
`tests/sampling/test_conditionals.py`. If users should be able to select it by name, add it to
`PRIORS` in `src/bayesring/settings.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, prod, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors import ModePrior


class MeanSlice(NamedTuple):
    """What the slices of a mode share; a chain carries it along without looking inside."""

    mean: FloatArray
    """mu, (K,) with K = S R_{d-1} R_d."""


class MeanParameters(NamedTuple):
    """mu ~ N(m, I / k)."""

    m: FloatArray
    k: float


@dataclass(frozen=True)
class UnitAroundMean(ModePrior):
    """vec G[i] ~ N(mu, I), mu ~ N(0, I / k0): slices without data fall back on the mean slice.

    Slices are independent given mu, so `coupling` keeps its default. Online EM is not supported: a
    prior without `estimate_hyper` and `expected_log_prob` is for the sampler only.

    Parameters
    ----------
    k0 : strength of the belief in a zero mean, as a number of slices
    """

    k0: float = 1.0

    diagonal: ClassVar[bool] = True  # entries of a slice are independent given mu
    learns_scale: ClassVar[bool] = False  # the variance is fixed, so bonds get weights

    def __post_init__(self) -> None:
        if not self.k0 > 0:
            raise ValueError(f"k0 of UnitAroundMean must be positive, got {self.k0!r}.")

    def draw_hyper(self, rng: Generator, shape: tuple[int, int, int, int]) -> MeanSlice:
        """Draw mu from its prior."""
        return MeanSlice(rng.standard_normal(prod(shape[1:])) / sqrt(self.k0))

    def draw_core(
        self, rng: Generator, shape: tuple[int, int, int, int], hyper: MeanSlice
    ) -> FloatArray:
        """Draw the slices around mu."""
        return np.asarray(hyper.mean.reshape(shape[1:]) + rng.standard_normal(shape))

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> MeanParameters:
        """Parameters of mu | G ~ N(sum_i vec G[i] / (k0 + I_d), I / (k0 + I_d))."""
        k = self.k0 + len(core)
        return MeanParameters(core.reshape(len(core), -1).sum(axis=0) / k, k)

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> MeanSlice:
        """Draw mu from its conditional given the slices."""
        m, k = self.conditional(core)
        return MeanSlice(m + rng.standard_normal(m.size) / sqrt(k))

    def slice_prior(self, core: FloatArray, hyper: MeanSlice) -> SlicePrior:
        """Precision I and linear term mu; one row, because it is the same for all slices."""
        size = hyper.mean.size
        return SlicePrior(np.zeros((size, size)), np.ones((1, size)), hyper.mean[None])

    def log_prob(self, core: FloatArray, hyper: MeanSlice) -> float:
        """log p(G | mu) + log p(mu), constants included."""
        slices, mean = core.reshape(len(core), -1), hyper.mean
        log_core = -0.5 * (np.sum((slices - mean) ** 2) + slices.size * log(2 * pi))
        log_mean = -0.5 * (self.k0 * np.sum(mean**2) + mean.size * log(2 * pi / self.k0))
        return float(log_core + log_mean)

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw mu given the known slices, then draw new slices around it."""
        mean = self.update_hyper(rng, core).mean
        return np.asarray(mean.reshape(core.shape[1:]) + noise)
