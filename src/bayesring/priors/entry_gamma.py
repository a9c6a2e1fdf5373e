"""The paper's second core prior: a gamma precision for every entry of every slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import digamma, gammaln, ndtr, stdtrit

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, ModePrior


class EntryPrecisions(NamedTuple):
    """Precision of each entry of a core."""

    psi: FloatArray
    """(I_d, S, R_{d-1}, R_d)."""


@dataclass(frozen=True)
class EntryGamma(ModePrior):
    """g ~ N(0, 1 / psi), psi ~ Ga(c0, d0), one psi per entry.

    Parameters
    ----------
    c0, d0 : shape and rate of the precisions

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import EntryGamma
    >>> TensorRing(prior=EntryGamma(c0=2.0)).prior.c0
    2.0
    """

    c0: float = 2.0
    d0: float = 1.0

    diagonal: ClassVar[bool] = True
    learns_scale: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.c0 > 0 and self.d0 > 0):
            raise ValueError(
                f"c0 and d0 of EntryGamma must be positive, got {self.c0!r} and {self.d0!r}."
            )

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> EntryPrecisions:
        """Draw every psi from its gamma prior."""
        return EntryPrecisions(rng.gamma(self.c0, 1 / self.d0, size=shape))

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: EntryPrecisions) -> FloatArray:
        """Draw independent normals with the given precisions."""
        return rng.standard_normal(shape) / np.sqrt(hyper.psi)

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw from the prior: other slices carry no information about a new one.

        g sqrt(c0 / d0) has a t distribution with 2 c0 degrees of freedom; entries are at the
        quantiles of the noise.
        """
        sizes = -stdtrit(2 * self.c0, ndtr(-np.abs(noise)))
        return np.asarray(np.sign(noise) * sizes * np.sqrt(self.d0 / self.c0))

    def conditional(
        self, core: FloatArray, spread: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Shape and rates of psi given the core: c0 + 1/2 and d0 + g^2 / 2, equation (11)."""
        squares = core**2 if spread is None else core**2 + spread.reshape(core.shape)
        return self.c0 + 0.5, self.d0 + 0.5 * squares

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> EntryPrecisions:
        """Draw every psi from its conditional."""
        shape, rate = self.conditional(core)
        return EntryPrecisions(rng.gamma(shape, size=core.shape) / rate)

    def estimate_hyper(self, parameters: tuple[float, FloatArray]) -> EntryPrecisions:
        """E[psi]."""
        shape, rate = parameters
        return EntryPrecisions(shape / rate)

    def expected_log_prob(
        self, core: FloatArray, spread: FloatArray, parameters: tuple[float, FloatArray]
    ) -> float:
        """E log p(core | psi) - KL of the parameters of psi from its prior."""
        shape, rate = parameters
        log_psi = digamma(shape) - np.log(rate)
        squares = core**2 + spread.reshape(core.shape)
        log_core = 0.5 * np.sum(log_psi - np.log(2 * np.pi) - shape / rate * squares)
        return float(log_core - np.sum(gamma_divergence(shape, rate, self.c0, self.d0)))

    def slice_prior(self, core: FloatArray, hyper: EntryPrecisions) -> SlicePrior:
        """diag(psi) for each slice, mean zero."""
        n_slices, size = len(core), core[0].size
        diagonal = hyper.psi.reshape(n_slices, size)
        return SlicePrior(np.zeros((size, size)), diagonal, np.zeros((n_slices, size)))

    def log_prob(self, core: FloatArray, hyper: EntryPrecisions) -> float:
        """log p(core | psi) + log p(psi)."""
        psi, c0, d0 = hyper.psi, self.c0, self.d0
        log_core = 0.5 * np.sum(np.log(psi / (2 * np.pi)) - psi * core**2)
        log_psi = np.sum(c0 * np.log(d0) - gammaln(c0) + (c0 - 1) * np.log(psi) - d0 * psi)
        return float(log_core + log_psi)


def gamma_divergence(shape: float, rate: FloatArray, shape0: float, rate0: float) -> FloatArray:
    """KL divergence of Ga(shape, rate) from Ga(shape0, rate0)."""
    return np.asarray(
        (shape - shape0) * digamma(shape)
        - gammaln(shape)
        + gammaln(shape0)
        + shape0 * (np.log(rate) - np.log(rate0))
        + shape * (rate0 - rate) / rate
    )
