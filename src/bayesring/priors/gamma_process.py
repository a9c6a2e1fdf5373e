"""The multiplicative gamma process on the weights of a bond (Bhattacharya and Dunson, 2011).

Weights and gains of a bond are (S, R_d); each strand has its own process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.special import digamma, gammaln

from bayesring.model.types import FloatArray


@dataclass(frozen=True)
class GammaProcess:
    """lambda_r ~ N(0, 1 / phi_r), phi_r = delta_1 ... delta_r, delta_r ~ Ga(a0, 1).

    With ``a0 > 1`` the precisions grow with r on average, so later factors are shrunk more.

    Parameters
    ----------
    a0 : shape of the gains; the paper uses 2

    Examples
    --------
    >>> from bayesring.priors import Fixed, GammaProcess, RingPrior
    >>> RingPrior(Fixed(), GammaProcess(a0=3.0)).weights.a0    # the paper's prior, steeper
    3.0
    """

    a0: float = 2.0

    learned = True

    def __post_init__(self) -> None:
        if not self.a0 > 1:
            raise ValueError(f"a0 of GammaProcess must be above 1, got {self.a0!r}.")

    def precisions(self, gains: FloatArray) -> FloatArray:
        """phi, in the shape of `gains`; phi_r includes delta_r."""
        return np.cumprod(gains, axis=-1)

    def draw_gains(self, rng: Generator, shape: tuple[int, int]) -> FloatArray:
        """Draw delta (S, R_d) from its prior."""
        return rng.gamma(self.a0, size=shape)

    def draw_weights(self, rng: Generator, gains: FloatArray) -> FloatArray:
        """Draw lambda from its prior given the gains."""
        return rng.standard_normal(gains.shape) / np.sqrt(self.precisions(gains))

    def gain_conditional(
        self, index: int, weights: FloatArray, gains: FloatArray
    ) -> tuple[float, float]:
        """Shape and rate of one strand's delta_r given the rest (8); `index` is r - 1."""
        others = gains.copy()
        others[index] = 1.0
        products = np.cumprod(others)[index:]
        shape = self.a0 + 0.5 * (gains.size - index)
        return shape, 1.0 + 0.5 * float(weights[index:] ** 2 @ products)

    def update_gains(self, rng: Generator, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """Draw each delta_r in turn from its conditional."""
        updated = gains.copy()
        for own_weights, own_gains in zip(weights, updated, strict=True):
            for index in range(own_gains.size):
                shape, rate = self.gain_conditional(index, own_weights, own_gains)
                own_gains[index] = max(rng.gamma(shape) / rate, 1e-100)
        return updated

    def expect_gains(self, weights: FloatArray, gains: FloatArray) -> FloatArray:
        """E[delta_r], each in turn from the expectations of the others."""
        updated = gains.copy()
        for own_weights, own_gains in zip(weights, updated, strict=True):
            for index in range(own_gains.size):
                shape, rate = self.gain_conditional(index, own_weights, own_gains)
                own_gains[index] = shape / rate
        return updated

    def log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """log p(lambda, delta), constants included."""
        phi = self.precisions(gains)
        log_weights = 0.5 * np.sum(np.log(phi / (2 * np.pi)) - phi * weights**2)
        log_gains = np.sum((self.a0 - 1) * np.log(gains) - gains - gammaln(self.a0))
        return float(log_weights + log_gains)

    def expected_log_prob(self, weights: FloatArray, gains: FloatArray) -> float:
        """E log p(lambda, delta) + entropy of q, delta_r ~ Ga(a0 + (R - r + 1) / 2, .) under q.

        The shapes of q never change, so the expectations `gains` determine it completely.
        """
        shape = self.a0 + 0.5 * np.arange(gains.shape[-1], 0, -1)
        rate = shape / gains
        log_gains = digamma(shape) - np.log(rate)
        log_phi = np.cumsum(log_gains, axis=-1)
        log_weights = 0.5 * np.sum(
            log_phi - np.log(2 * np.pi) - self.precisions(gains) * weights**2
        )
        log_prior = np.sum((self.a0 - 1) * log_gains - gains - gammaln(self.a0))
        entropy = np.sum(shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape))
        return float(log_weights + log_prior + entropy)
