"""The paper's first core prior: independent normals with known precision."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, ModePrior


class FixedHyper(NamedTuple):
    """Nothing is learned."""


@dataclass(frozen=True)
class Fixed(ModePrior):
    """Every entry of a core ~ N(0, 1 / precision).

    Parameters
    ----------
    precision : psi; the paper uses 1

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import Fixed
    >>> TensorRing(prior=Fixed(precision=2.0)).prior.precision
    2.0
    """

    precision: float = 1.0

    diagonal: ClassVar[bool] = True
    learns_scale: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.precision > 0:
            raise ValueError(f"precision of Fixed must be positive, got {self.precision!r}.")

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> FixedHyper:
        """Return the empty tuple."""
        return FixedHyper()

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: FixedHyper) -> FloatArray:
        """Draw independent normals."""
        return np.asarray(rng.standard_normal(shape) / np.sqrt(self.precision))

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw independent normals: other slices carry no information about a new one."""
        return np.asarray(noise / np.sqrt(self.precision))

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> FixedHyper:
        """Return the empty tuple."""
        return FixedHyper()

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> FixedHyper:
        """There is nothing to learn."""
        return FixedHyper()

    def estimate_hyper(self, parameters: FixedHyper) -> FixedHyper:
        """Return the empty tuple."""
        return parameters

    def expected_log_prob(
        self, core: FloatArray, spread: FloatArray, parameters: FixedHyper
    ) -> float:
        """E log p(core)."""
        return self.log_prob(core, parameters) - 0.5 * self.precision * float(np.sum(spread))

    def slice_prior(self, core: FloatArray, hyper: FixedHyper) -> SlicePrior:
        """Give every entry of every slice the precision psi and mean zero."""
        size = core[0].size
        zero = np.zeros((size, size))
        return SlicePrior(zero, np.full((1, size), self.precision), np.zeros((1, size)))

    def log_prob(self, core: FloatArray, hyper: FixedHyper) -> float:
        """log p(core)."""
        constant = core.size * log(self.precision / (2 * pi))
        return float(0.5 * (constant - self.precision * np.sum(core**2)))
