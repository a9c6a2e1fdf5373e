"""Hierarchical core prior: the slices of a mode share a learned mean and covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import solve_triangular
from scipy.special import multigammaln

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, ModePrior


class MeanAndPrecision(NamedTuple):
    """What the slices of a mode share."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """Omega, (K, K)."""


class NormalWishartParameters(NamedTuple):
    """Parameters of a normal-Wishart distribution of (mu, Omega)."""

    m: FloatArray
    """(K,), mean of mu."""
    k: float
    """mu | Omega ~ N(m, (k Omega)^-1)."""
    nu: float
    """Degrees of freedom of Omega ~ W(W, nu)."""
    scale_inverse: FloatArray
    """W^-1, (K, K)."""


@dataclass(frozen=True)
class NormalWishart(ModePrior):
    """vec G[i] ~ N(mu, Omega^-1), mu | Omega ~ N(0, (k0 Omega)^-1), Omega ~ W(W0, nu0).

    Here W0 = I / scale and nu0 = K + extra_degrees. A slice with few observations falls back on
    the mean slice instead of zero, and main effects come for free.

    Parameters
    ----------
    k0 : strength of the belief in a zero mean, as a number of slices
    scale : W0 is the identity divided by this
    extra_degrees : degrees of freedom beyond the number of entries K; above -1

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import NormalWishart
    >>> TensorRing(prior=NormalWishart(scale=1.2)).prior.scale
    1.2
    """

    k0: float = 2.0
    scale: float = 1.0
    extra_degrees: float = 0.0

    diagonal: ClassVar[bool] = False
    learns_scale: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.k0 > 0 and self.scale > 0 and self.extra_degrees > -1):
            raise ValueError(
                "NormalWishart needs k0 and scale positive and extra_degrees above -1, "
                f"got {self.k0!r}, {self.scale!r} and {self.extra_degrees!r}."
            )

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> MeanAndPrecision:
        """Draw (mu, Omega) from the normal-Wishart prior."""
        return draw_normal_wishart(rng, self._prior(prod(shape[1:])))

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: MeanAndPrecision) -> FloatArray:
        """Draw the slices around their mean."""
        return around_mean(rng.standard_normal(shape), hyper)

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw (mu, Omega) given the slices, then new slices around that mean."""
        return around_mean(noise, self.update_hyper(rng, core))

    def new_given(
        self, hyper: MeanAndPrecision, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters."""
        return around_mean(noise, hyper)

    def beside_given(self, hyper: MeanAndPrecision, core: FloatArray, axis: Axis) -> SlicePrior:
        """Prior of new slices given the hyperparameters."""
        return self.slice_prior(core, hyper)

    @property
    def exchangeable(self) -> NormalWishart:
        """The prior itself."""
        return self

    def conditional(
        self, core: FloatArray, spread: FloatArray | None = None
    ) -> NormalWishartParameters:
        """Conditional of (mu, Omega) given the slices, equation (12)."""
        slices = core.reshape(len(core), -1)
        n_slices, size = slices.shape
        prior = self._prior(size)
        average = slices.mean(axis=0)
        centred = slices - average
        k_n = prior.k + n_slices
        shift = prior.k * n_slices / k_n * np.outer(average, average)
        scale_inverse = prior.scale_inverse + centred.T @ centred + shift
        if spread is not None:
            scale_inverse += spread
        return NormalWishartParameters(
            n_slices * average / k_n, k_n, prior.nu + n_slices, scale_inverse
        )

    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> MeanAndPrecision:
        """Draw (mu, Omega) from their joint conditional given the slices."""
        return draw_normal_wishart(rng, self.conditional(core))

    def estimate_hyper(self, parameters: NormalWishartParameters) -> MeanAndPrecision:
        """Mode of (mu, Omega) with sqrt(K) extra degrees of freedom: m and (nu - K + sqrt(K)) W.

        The mean of Omega, nu W, counts the prior's K degrees of freedom as observed slices, and
        shrinks slices with many entries too hard. At the plain mode nothing would constrain
        entries about which the data are uninformative. With the extra degrees of freedom they have
        variance scale / sqrt(K), at which a ring with one strand has entries of variance one.
        """
        size = parameters.m.size
        degrees = parameters.nu - size + np.sqrt(size)
        return MeanAndPrecision(parameters.m, degrees * np.linalg.inv(parameters.scale_inverse))

    def expected_log_prob(
        self, core: FloatArray, spread: FloatArray, parameters: NormalWishartParameters
    ) -> float:
        """E log p(core, mu, Omega) at the estimate, including its extra degrees of freedom."""
        prior = replace(self, extra_degrees=self.extra_degrees + float(np.sqrt(parameters.m.size)))
        hyper = self.estimate_hyper(parameters)
        return prior.log_prob(core, hyper) - 0.5 * float(np.sum(spread * hyper.precision))

    def slice_prior(self, core: FloatArray, hyper: MeanAndPrecision) -> SlicePrior:
        """Omega and Omega mu, shared by all slices."""
        size = hyper.mean.size
        linear = (hyper.precision @ hyper.mean)[None]
        return SlicePrior(hyper.precision, np.zeros((1, size)), linear)

    def log_prob(self, core: FloatArray, hyper: MeanAndPrecision) -> float:
        """log p(core | mu, Omega) + log p(mu, Omega)."""
        slices = core.reshape(len(core), -1)
        n_slices, size = slices.shape
        mean, precision = hyper
        log_det = np.linalg.slogdet(precision)[1]
        gaps = slices - mean
        constant = log_det - size * np.log(2 * np.pi)
        log_core = 0.5 * (n_slices * constant - np.sum((gaps @ precision) * gaps))
        return float(log_core + log_normal_wishart(hyper, self._prior(size)))

    def _prior(self, size: int) -> NormalWishartParameters:
        return NormalWishartParameters(
            np.zeros(size), self.k0, size + self.extra_degrees, self.scale * np.eye(size)
        )


def draw_normal_wishart(rng: Generator, parameters: NormalWishartParameters) -> MeanAndPrecision:
    """Draw (mu, Omega) by Bartlett's decomposition.

    With W^-1 = C C' and B lower triangular (chi on its diagonal, normal below),
    Omega = U B B' U' for U = C^-T, and mu = m + (U B)^-T noise / sqrt(k).
    """
    size = parameters.m.size
    bartlett = np.tril(rng.standard_normal((size, size)), -1)
    bartlett[np.diag_indices(size)] = np.sqrt(rng.chisquare(parameters.nu - np.arange(size)))
    factor = np.linalg.cholesky(parameters.scale_inverse)
    root = solve_triangular(factor, bartlett, lower=True, trans="T")
    noise = solve_triangular(bartlett, rng.standard_normal(size), lower=True, trans="T")
    return MeanAndPrecision(parameters.m + factor @ noise / np.sqrt(parameters.k), root @ root.T)


def around_mean(noise: FloatArray, hyper: MeanAndPrecision) -> FloatArray:
    """Slices around their mean, from standard normal noise: mu + L^-T noise, L L' = Omega."""
    lower = np.linalg.cholesky(hyper.precision)
    own = noise.reshape(len(noise), -1)
    slices = hyper.mean + solve_triangular(lower, own.T, lower=True, trans="T").T
    return np.asarray(slices.reshape(noise.shape))


def log_normal_wishart(hyper: MeanAndPrecision, parameters: NormalWishartParameters) -> float:
    """Log density of (mu, Omega), constants included."""
    size = parameters.m.size
    mean, precision = hyper
    log_det = np.linalg.slogdet(precision)[1]
    log_det_scale = -np.linalg.slogdet(parameters.scale_inverse)[1]
    gap = mean - parameters.m
    log_mean = 0.5 * (
        size * np.log(parameters.k / (2 * np.pi)) + log_det - parameters.k * gap @ precision @ gap
    )
    log_precision = (
        0.5 * (parameters.nu - size - 1) * log_det
        - 0.5 * np.sum(parameters.scale_inverse * precision)
        - 0.5 * parameters.nu * (size * np.log(2) + log_det_scale)
        - multigammaln(0.5 * parameters.nu, size)
    )
    return float(log_mean + log_precision)
