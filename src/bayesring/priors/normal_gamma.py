"""Hierarchical core prior, diagonal form: each entry position learns its mean and precision."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import digamma, gammaln

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.entry_gamma import gamma_divergence
from bayesring.priors.mode_prior import CoreShape, ModePrior


class MeanAndPrecisions(NamedTuple):
    """What the slices of a mode share."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """psi, (K,): the diagonal of Omega."""


class NormalGammaParameters(NamedTuple):
    """mu_k | psi_k ~ N(m_k, 1 / (k psi_k)), psi_k ~ Ga(c, d_k)."""

    m: FloatArray
    k: float
    c: float
    d: FloatArray


@dataclass(frozen=True)
class NormalGamma(ModePrior):
    """vec G[i] ~ N(mu, diag(psi)^-1), mu_k | psi_k ~ N(0, 1 / (k0 psi_k)), psi_k ~ Ga(c0, d0).

    Slices with few observations fall back on the mean slice instead of zero. Cheaper than
    `NormalWishart` and suitable for entry-wise updates, but ignores correlations between entries.

    Parameters
    ----------
    k0 : strength of the belief in a zero mean, as a number of slices
    c0, d0 : shape and rate of the precisions

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import NormalGamma
    >>> TensorRing(prior=NormalGamma(k0=1.0)).prior.k0
    1.0
    """

    k0: float = 2.0
    c0: float = 2.0
    d0: float = 1.0

    diagonal: ClassVar[bool] = True
    learns_scale: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.k0 > 0 and self.c0 > 0 and self.d0 > 0):
            raise ValueError(
                "k0, c0 and d0 of NormalGamma must be positive, "
                f"got {self.k0!r}, {self.c0!r} and {self.d0!r}."
            )

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> MeanAndPrecisions:
        """Draw the precisions, then the means, from their priors."""
        size = prod(shape[1:])
        precision = rng.gamma(self.c0, 1 / self.d0, size=size)
        return MeanAndPrecisions(
            rng.standard_normal(size) / np.sqrt(self.k0 * precision), precision
        )

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: MeanAndPrecisions) -> FloatArray:
        """Draw the slices around their mean."""
        return around_mean(rng.standard_normal(shape), hyper)

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw (mu, psi) given the slices, then new slices around that mean."""
        return around_mean(noise, self.update_hyper(rng, core))

    def conditional(
        self, core: FloatArray, spread: FloatArray | None = None
    ) -> NormalGammaParameters:
        """Conditional of (mu, psi) given the slices, equation (13)."""
        slices = core.reshape(len(core), -1)
        n_slices = len(slices)
        average = slices.mean(axis=0)
        scatter = np.sum((slices - average) ** 2, axis=0)
        if spread is not None:
            scatter += spread.sum(axis=0)
        k_n = self.k0 + n_slices
        return NormalGammaParameters(
            m=n_slices * average / k_n,
            k=k_n,
            c=self.c0 + 0.5 * n_slices,
            d=self.d0 + 0.5 * (scatter + self.k0 * n_slices / k_n * average**2),
        )

    def update_hyper(
        self, rng: Generator, core: FloatArray, hyper: Any = None
    ) -> MeanAndPrecisions:
        """Draw (mu, psi) from their joint conditional given the slices."""
        parameters = self.conditional(core)
        precision = rng.gamma(parameters.c, size=parameters.m.size) / parameters.d
        noise = rng.standard_normal(parameters.m.size)
        return MeanAndPrecisions(
            parameters.m + noise / np.sqrt(parameters.k * precision), precision
        )

    def estimate_hyper(self, parameters: NormalGammaParameters) -> MeanAndPrecisions:
        """E[mu] and E[psi]."""
        return MeanAndPrecisions(parameters.m, parameters.c / parameters.d)

    def expected_log_prob(
        self, core: FloatArray, spread: FloatArray, parameters: NormalGammaParameters
    ) -> float:
        """E log p(core | mu, psi) - KL of the parameters of (mu, psi) from its prior."""
        slices = core.reshape(len(core), -1)
        psi = parameters.c / parameters.d
        log_psi = digamma(parameters.c) - np.log(parameters.d)
        squares = psi * ((slices - parameters.m) ** 2 + spread) + 1 / parameters.k
        log_core = 0.5 * np.sum(log_psi - np.log(2 * np.pi) - squares)
        ratio = self.k0 / parameters.k
        of_mean = 0.5 * np.sum(self.k0 * psi * parameters.m**2 + ratio - 1 - np.log(ratio))
        of_psi = np.sum(gamma_divergence(parameters.c, parameters.d, self.c0, self.d0))
        return float(log_core - of_mean - of_psi)

    def slice_prior(self, core: FloatArray, hyper: MeanAndPrecisions) -> SlicePrior:
        """diag(psi) and psi mu, shared by all slices."""
        size = hyper.mean.size
        linear = (hyper.precision * hyper.mean)[None]
        return SlicePrior(np.zeros((size, size)), hyper.precision[None], linear)

    def log_prob(self, core: FloatArray, hyper: MeanAndPrecisions) -> float:
        """log p(core | mu, psi) + log p(mu | psi) + log p(psi)."""
        slices = core.reshape(len(core), -1)
        mean, psi, c0, d0 = hyper.mean, hyper.precision, self.c0, self.d0
        log_core = 0.5 * np.sum(np.log(psi / (2 * np.pi)) - psi * (slices - mean) ** 2)
        log_mean = 0.5 * np.sum(np.log(self.k0 * psi / (2 * np.pi)) - self.k0 * psi * mean**2)
        log_psi = np.sum(c0 * np.log(d0) - gammaln(c0) + (c0 - 1) * np.log(psi) - d0 * psi)
        return float(log_core + log_mean + log_psi)


def around_mean(noise: FloatArray, hyper: MeanAndPrecisions) -> FloatArray:
    """Slices around their mean, from standard normal noise."""
    slices = hyper.mean + noise.reshape(len(noise), -1) / np.sqrt(hyper.precision)
    return slices.reshape(noise.shape)
