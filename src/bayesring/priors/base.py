"""What a prior of the cores must say about itself, and the prior of a whole ring.

A new core prior is one new file in this folder and one line in its `__init__`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from numpy.random import Generator

from bayesring.priors.gamma_process import GammaProcess
from bayesring.types import FloatArray, SlicePrior

CoreShape = tuple[int, int, int]


@runtime_checkable
class CorePrior(Protocol):
    """Prior of the slices of one core, G^(d)[i] for i = 1..I_d, with its hyperparameters.

    `hyper` is a NamedTuple of arrays that only the prior itself looks into.
    """

    @property
    def diagonal(self) -> bool:
        """Whether the entries of a slice are independent given the hyperparameters."""

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> Any:
        """Draw the hyperparameters of a core of `shape` (I_d, R_{d-1}, R_d) from their prior."""

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: Any) -> FloatArray:
        """Draw the slices of a core given the hyperparameters."""

    def update_hyper(self, rng: Generator, core: FloatArray) -> Any:
        """Draw the hyperparameters from their conditional given the core."""

    def slice_prior(self, shape: CoreShape, hyper: Any) -> SlicePrior:
        """Precision and linear term of each slice's Gaussian prior given the hyperparameters."""

    def log_prob(self, core: FloatArray, hyper: Any) -> float:
        """Log p(core, hyper), constants included."""


@dataclass(frozen=True)
class RingPrior:
    """Prior of a whole ring: one prior for the cores, one for the weights of the bonds.

    Parameters
    ----------
    cores : prior of the slices
    weights : prior of the bond weights
    """

    cores: CorePrior
    weights: GammaProcess = field(default_factory=GammaProcess)
