"""What a prior of the cores must say about itself, and the prior of a whole ring.

A new core prior is one new file in this folder and one line in its `__init__`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.random import Generator

from bayesring.priors.gamma_process import GammaProcess
from bayesring.priors.unit_weights import UnitWeights
from bayesring.types import FloatArray, SlicePrior

CoreShape = tuple[int, int, int, int]
"""(I_d, S, R_{d-1}, R_d)."""


@runtime_checkable
class CorePrior(Protocol):
    """Prior of the slices of one core, G^(d)[i] for i = 1..I_d, with its hyperparameters.

    `hyper` is a NamedTuple of arrays that only the prior itself looks into.
    """

    @property
    def diagonal(self) -> bool:
        """Whether the entries of a slice are independent given the hyperparameters."""

    @property
    def learns_scale(self) -> bool:
        """Whether the hyperparameters fit the size of the entries to the data."""

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> Any:
        """Draw the hyperparameters of a core of `shape` from their prior."""

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: Any) -> FloatArray:
        """Draw the slices of a core given the hyperparameters."""

    def update_hyper(self, rng: Generator, core: FloatArray) -> Any:
        """Draw the hyperparameters from their conditional given the core."""

    def new_slices(self, rng: Generator, core: FloatArray, noise: FloatArray) -> FloatArray:
        """Draw slices beyond those of the core, given all of it.

        What all new slices share comes from `rng`, what each has to itself from its own standard
        normal `noise` (n, S, R_{d-1}, R_d).
        """

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> Any:
        """Law of the hyperparameters given the core, or its mean and `spread`.

        `spread` is how uncertain slices are round the `core`, not at all if left out: the variance
        of every entry (I_d, K) if the prior is diagonal, or the sum of their covariances (K, K).
        """

    def estimate_hyper(self, law: Any) -> Any:
        """What online EM takes the hyperparameters for, given the law that `conditional` gave.

        Their expectation, or the mode of the law.
        """

    def expected_log_prob(self, core: FloatArray, spread: FloatArray, law: Any) -> float:
        """E log p(core, hyper) - E log law(hyper), with hyper of `law` and the core uncertain.

        For a prior that takes the mode for its estimate: E log p(core, hyper) there.
        """

    def slice_prior(self, shape: CoreShape, hyper: Any) -> SlicePrior:
        """Precision and linear term of each slice's Gaussian prior given the hyperparameters."""

    def log_prob(self, core: FloatArray, hyper: Any) -> float:
        """Log p(core, hyper), constants included."""


@runtime_checkable
class BondPrior(Protocol):
    """Prior of the weights of one bond and their gains, (S, R_d) each."""

    @property
    def learned(self) -> bool:
        """Whether the weights are drawn; they stay at one otherwise."""

    def precisions(self, gains: FloatArray) -> FloatArray:
        """Prior precision of each weight given the gains."""

    def draw_gains(self, rng: Generator, shape: tuple[int, int]) -> FloatArray:
        """Draw the gains from their prior."""

    def draw_weights(self, rng: Generator, gains: FloatArray) -> FloatArray:
        """Draw the weights from their prior given the gains."""

    def update_gains(self, rng: Generator, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """Draw the gains from their conditional given the weights."""

    def expect_gains(self, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """Expectation of each gain given the weights and the expectations of the others."""

    def log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """Log p(weights, gains), constants included."""

    def expected_log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """E log p(weights, gains) - E log q(gains), with q as `expect_gains` has it."""


@dataclass(frozen=True)
class RingPrior:
    """Prior of a whole ring: one prior for the cores, one for the weights of the bonds.

    Parameters
    ----------
    cores : prior of the slices
    weights : prior of the bond weights
    """

    cores: CorePrior
    weights: BondPrior

    @classmethod
    def of(cls, cores: CorePrior) -> RingPrior:
        """Unit weights for cores that learn their scale, the gamma process for others."""
        return cls(cores, UnitWeights() if cores.learns_scale else GammaProcess())
