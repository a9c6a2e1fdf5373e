"""Interface of the prior of bond weights."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.random import Generator

from bayesring.model.types import FloatArray


@runtime_checkable
class BondPrior(Protocol):
    """Prior of the weights of one bond and their gains, (S, R_d) each.

    Examples
    --------
    >>> from bayesring.priors import BondPrior, GammaProcess
    >>> isinstance(GammaProcess(), BondPrior)
    True
    """

    @property
    def learned(self) -> bool:
        """Whether the weights are drawn; otherwise they stay at one."""

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
        """log p(weights, gains), constants included."""

    def expected_log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """E log p(weights, gains) - E log q(gains), with q from `expect_gains`."""
