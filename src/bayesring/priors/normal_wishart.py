"""Hierarchical core prior: the slices of a mode share a learned mean and covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import multigammaln

from bayesring.model.triangular import below_diagonal, in_columns, solve_transposed
from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.mode_prior import CoreShape, ModePrior

SCANS = 3
"""Scans over (mu, Omega) and s that start from nothing but slices."""
LEAST_VARIANCE = 1e-12
"""Variance of an entry that slices are taken to have at least, to find scales to start from."""


class MeanAndPrecision(NamedTuple):
    """What the slices of a mode share."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """Omega, (K, K)."""


class NormalWishartHyper(NamedTuple):
    """What the slices of a mode share, and the scales that its prior expects."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """Omega, (K, K)."""
    scales: FloatArray
    """s, (K,), the diagonal of W0^-1."""


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
    """vec G[i] ~ N(mu, Omega^-1), mu | Omega ~ N(0, (k0 Omega)^-1), Omega ~ W(diag(s)^-1, nu0).

    Here nu0 = K + extra_degrees. A slice with few observations falls back on the mean slice instead
    of zero, and main effects come for free.

    The scales s_k are all `scale`, or learned: s_k ~ scale chi^2_1 makes the standard deviation of
    every entry of a slice half-t, with 1 + extra_degrees degrees of freedom, so that it may be
    anything from nothing to large (Huang and Wand, 2013). Entries of which all slices have the
    same, as main effects need them, then cost nothing, provided that k0 is small: their mean is
    expected within k0^-1/2 of their spread.

    Parameters
    ----------
    k0 : strength of the belief in a zero mean, as a number of slices
    scale : the scales s_k, or their mean if they are learned
    extra_degrees : degrees of freedom beyond the number of entries K; above -1
    learned : whether the scales are learned

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
    learned: bool = False

    diagonal: ClassVar[bool] = False
    learns_scale: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.k0 > 0 and self.scale > 0 and self.extra_degrees > -1):
            raise ValueError(
                "NormalWishart needs k0 and scale positive and extra_degrees above -1, "
                f"got {self.k0!r}, {self.scale!r} and {self.extra_degrees!r}."
            )

    def draw_hyper(self, rng: Generator, shape: CoreShape) -> NormalWishartHyper:
        """Draw s, and (mu, Omega) from the normal-Wishart prior."""
        size = prod(shape[1:])
        scales = np.full(size, self.scale)
        if self.learned:
            scales = scales * rng.chisquare(1.0, size)
        return NormalWishartHyper(*draw_normal_wishart(rng, self._prior(size, scales)), scales)

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: NormalWishartHyper) -> FloatArray:
        """Draw the slices around their mean."""
        return around_mean(rng.standard_normal(shape), hyper)

    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw (mu, Omega) given the slices, then new slices around that mean."""
        return around_mean(noise, self.update_hyper(rng, core))

    def new_given(
        self, hyper: NormalWishartHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters."""
        return around_mean(noise, hyper)

    def beside_given(self, hyper: NormalWishartHyper, core: FloatArray, axis: Axis) -> SlicePrior:
        """Prior of new slices given the hyperparameters."""
        return self.slice_prior(core, hyper)

    @property
    def exchangeable(self) -> NormalWishart:
        """The prior itself."""
        return self

    def conditional(
        self, core: FloatArray, spread: FloatArray | None = None
    ) -> NormalWishartParameters:
        """Conditional of (mu, Omega) given the slices, all scales being `scale`."""
        found = self.given_scales(core, np.full(prod(core.shape[1:]), self.scale))
        if spread is None:
            return found
        return found._replace(scale_inverse=found.scale_inverse + spread)

    def given_scales(self, core: FloatArray, scales: FloatArray) -> NormalWishartParameters:
        """Conditional of (mu, Omega) given the slices and s, equation (12)."""
        slices = core.reshape(len(core), -1)
        n_slices, size = slices.shape
        average = slices.mean(axis=0)
        centred = slices - average
        scale_inverse = centred.T @ centred
        scale_inverse.flat[:: size + 1] += scales
        k_n = self.k0 + n_slices
        scale_inverse += self.k0 * n_slices / k_n * (average[:, None] * average)
        nu_n = size + self.extra_degrees + n_slices
        return NormalWishartParameters(n_slices * average / k_n, k_n, nu_n, scale_inverse)

    def update_hyper(
        self, rng: Generator, core: FloatArray, hyper: Any = None
    ) -> NormalWishartHyper:
        """Draw (mu, Omega) from their joint conditional given the slices, and s given Omega.

        Without earlier scales, some scans start from those that fit the variances of the slices.
        """
        scales = self.first_scales(rng, core) if hyper is None else hyper.scales
        for _ in range(SCANS if self.learned and hyper is None else 1):
            shared = draw_normal_wishart(rng, self.given_scales(core, scales))
            drawn = self.with_scales(rng, shared)
            scales = drawn.scales
        return drawn

    def with_scales(self, rng: Generator, shared: MeanAndPrecision) -> NormalWishartHyper:
        """Beside (mu, Omega), scales drawn given them."""
        return NormalWishartHyper(*shared, self.draw_scales(rng, np.diag(shared.precision)))

    @staticmethod
    def of(hyper: Any) -> NormalWishartHyper:
        """The hyperparameters of this prior among those of one that extends it."""
        return NormalWishartHyper(hyper.mean, hyper.precision, hyper.scales)

    def first_scales(self, rng: Generator, core: FloatArray) -> FloatArray:
        """Scales to start from: drawn as if Omega were diagonal and known from the slices."""
        variances = core.reshape(len(core), -1).var(axis=0)
        return self.draw_scales(rng, 1.0 / np.maximum(variances, LEAST_VARIANCE))

    def draw_scales(self, rng: Generator, precisions: FloatArray) -> FloatArray:
        """s given the diagonal of Omega: s_k ~ Ga((nu0 + 1) / 2, (Omega_kk + 1 / scale) / 2) (47).

        Not drawn, but `scale` for all, if they are not learned.
        """
        if not self.learned:
            return np.full(precisions.size, self.scale)
        shape = 0.5 * (precisions.size + self.extra_degrees + 1)
        rates = 0.5 * (precisions + 1.0 / self.scale)
        return np.asarray(rng.standard_gamma(shape, precisions.size) / rates)

    def estimate_hyper(self, parameters: NormalWishartParameters) -> NormalWishartHyper:
        """Mode of (mu, Omega) with sqrt(K) extra degrees of freedom: m and (nu - K + sqrt(K)) W.

        The mean of Omega, nu W, counts the prior's K degrees of freedom as observed slices, and
        shrinks slices with many entries too hard. At the plain mode nothing would constrain
        entries about which the data are uninformative. With the extra degrees of freedom they have
        variance scale / sqrt(K), at which a ring with one strand has entries of variance one.
        Scales are not learned here: at an estimate, entries would lose all of their variance.
        """
        size = parameters.m.size
        degrees = parameters.nu - size + np.sqrt(size)
        precision = degrees * np.linalg.inv(parameters.scale_inverse)
        return NormalWishartHyper(parameters.m, precision, np.full(size, self.scale))

    def expected_log_prob(
        self, core: FloatArray, spread: FloatArray, parameters: NormalWishartParameters
    ) -> float:
        """E log p(core, mu, Omega) at the estimate, including its extra degrees of freedom."""
        prior = replace(self, extra_degrees=self.extra_degrees + float(np.sqrt(parameters.m.size)))
        hyper = self.estimate_hyper(parameters)
        return prior.log_prob(core, hyper) - 0.5 * float(np.sum(spread * hyper.precision))

    def slice_prior(
        self, core: FloatArray, hyper: MeanAndPrecision | NormalWishartHyper
    ) -> SlicePrior:
        """Omega and Omega mu, shared by all slices."""
        size = hyper.mean.size
        linear = (hyper.precision @ hyper.mean)[None]
        return SlicePrior(hyper.precision, np.zeros((1, size)), linear)

    def log_prob(self, core: FloatArray, hyper: NormalWishartHyper) -> float:
        """log p(core | mu, Omega) + log p(mu, Omega | s) + log p(s)."""
        slices = core.reshape(len(core), -1)
        n_slices, size = slices.shape
        mean, precision, _ = hyper
        log_det = np.linalg.slogdet(precision)[1]
        gaps = slices - mean
        constant = log_det - size * np.log(2 * np.pi)
        log_core = 0.5 * (n_slices * constant - np.sum((gaps @ precision) * gaps))
        return float(log_core + self.log_shared(hyper))

    def log_shared(self, hyper: Any) -> float:
        """log p(mu, Omega | s) + log p(s)."""
        size = hyper.mean.size
        total = log_normal_wishart(hyper, self._prior(size, hyper.scales))
        if self.learned:
            relative = hyper.scales / self.scale
            log_chi2 = -0.5 * (relative + np.log(2 * np.pi * relative))
            total += float(np.sum(log_chi2 - np.log(self.scale)))
        return total

    def _prior(self, size: int, scales: FloatArray | None = None) -> NormalWishartParameters:
        own = self.scale * np.eye(size) if scales is None else np.diag(scales)
        return NormalWishartParameters(np.zeros(size), self.k0, size + self.extra_degrees, own)


def draw_normal_wishart(rng: Generator, parameters: NormalWishartParameters) -> MeanAndPrecision:
    """Draw (mu, Omega) by Bartlett's decomposition.

    With W^-1 = C C' and B lower triangular (chi on its diagonal, normal below),
    Omega = U B B' U' for U = C^-T, and mu = m + (U B)^-T noise / sqrt(k).
    """
    size = parameters.m.size
    bartlett = np.where(below_diagonal(size), rng.standard_normal((size, size)), 0.0)
    bartlett.flat[:: size + 1] = np.sqrt(rng.chisquare(parameters.nu - np.arange(size)))
    factor = np.linalg.cholesky(parameters.scale_inverse)
    root = solve_transposed(factor, bartlett)
    noise = solve_transposed(bartlett, rng.standard_normal(size))
    return MeanAndPrecision(parameters.m + factor @ noise / np.sqrt(parameters.k), root @ root.T)


def around_mean(noise: FloatArray, hyper: MeanAndPrecision | NormalWishartHyper) -> FloatArray:
    """Slices around their mean, from standard normal noise: mu + L^-T noise, L L' = Omega."""
    slices = hyper.mean + in_columns(noise, hyper.precision)
    return np.asarray(slices.reshape(noise.shape))


def log_normal_wishart(
    hyper: MeanAndPrecision | NormalWishartHyper, parameters: NormalWishartParameters
) -> float:
    """Log density of (mu, Omega), constants included."""
    size = parameters.m.size
    mean, precision = hyper.mean, hyper.precision
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
