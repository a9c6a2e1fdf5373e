"""Regression of slices on the features of their labels: the algebra of `Featured`.

Slices G (n, K) with design X (n, F): G = 1 mu' + X B + E, rows of E independent N(0, Omega^-1),
rows of B independent N(0, s Omega^-1), mu ~ N(0, (k0 Omega)^-1), Omega ~ W(W0, nu0). Slices that
depend on each other are whitened first, and X and the column of ones with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.model.triangular import in_columns
from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.normal_wishart import (
    MeanAndPrecision,
    NormalWishartParameters,
    draw_normal_wishart,
)

Design = Any
"""(n, F): an array, or a sparse matrix of SciPy."""


class FeaturedHyper(NamedTuple):
    """What the slices of a mode with features share."""

    mean: FloatArray
    """mu, (K,)."""
    precision: FloatArray
    """Omega, (K, K)."""
    slopes: FloatArray
    """B, (F, K)."""
    strength: FloatArray
    """s, (1,)."""
    step: IntArray
    """(1,), which length scale if the mode is ordered, otherwise 0."""
    scales: FloatArray
    """s, (K,), as in `NormalWishart`: the diagonal of W0^-1."""


class FeaturedParameters(NamedTuple):
    """Parameters of the distribution of (mu, Omega, B) at the most probable strength."""

    shared: NormalWishartParameters
    slopes: FloatArray
    strength: float


class Spectrum(NamedTuple):
    """X' T T X = V diag(sigma^2) V', where T takes out the mean; zeros may be left out.

    T = I - (1 - sqrt(k0 / k)) u u' for u along the whitened column of ones, so that T T = I - 1 1'
    / k is what is left of a Gaussian when mu is integrated out.
    """

    vectors: FloatArray
    """V, (F, r)."""
    squares: FloatArray
    """sigma^2, (r,)."""


class Centring(NamedTuple):
    """The matrix T of `Spectrum`."""

    ones: FloatArray
    """(n,), the whitened column of ones."""
    k0: float

    @property
    def k(self) -> float:
        """k0 + 1'1."""
        return self.k0 + float(self.ones @ self.ones)

    def apply(self, rows: FloatArray) -> FloatArray:
        """T times (n, m)."""
        square = float(self.ones @ self.ones)
        shrink = (1 - np.sqrt(self.k0 / self.k)) / square
        return np.asarray(rows - np.outer(shrink * self.ones, self.ones @ rows))

    def twice(self, rows: FloatArray) -> FloatArray:
        """T T times (n, m)."""
        return np.asarray(rows - np.outer(self.ones / self.k, self.ones @ rows))


def spectrum_of(design: FloatArray, centring: Centring) -> Spectrum:
    """By the smaller of X' T T X and T X X' T."""
    centred = centring.apply(design)
    n, count = centred.shape
    if count <= n:
        squares, vectors = np.linalg.eigh(centred.T @ centred)
        return Spectrum(vectors, np.maximum(squares, 0.0))
    squares, left = np.linalg.eigh(centred @ centred.T)
    kept = squares > 1e-12 * max(squares[-1], 1e-300)
    return Spectrum(centred.T @ (left[:, kept] / np.sqrt(squares[kept])), squares[kept])


class Regressed(NamedTuple):
    """What whitened slices say of mu, B and Omega, at every strength s."""

    slices: FloatArray
    design: FloatArray
    centring: Centring
    spectrum: Spectrum
    turned: FloatArray
    """V' X' T T G, (r, K)."""
    nu: float
    scale_inverse: FloatArray
    """W0^-1 + G' T T G."""

    def gains(self, strength: float) -> FloatArray:
        """s / (1 + s sigma^2): the variance of the slopes along V, in units of Omega^-1."""
        return np.asarray(strength / (1.0 + strength * self.spectrum.squares))

    def scale_at(self, strength: float) -> FloatArray:
        """W0^-1 + G' T (I + s T X X' T)^-1 T G, equation (42)."""
        explained = self.turned.T @ (self.gains(strength)[:, None] * self.turned)
        return np.asarray(self.scale_inverse - explained)

    def log_mass(self, strength: float, spread: FloatArray | None = None) -> float:
        """log p(G | s) with mu, B and Omega integrated out, up to a constant, equation (43)."""
        size = len(self.scale_inverse)
        scale = self.scale_at(strength)
        scale = scale if spread is None else scale + spread
        return -0.5 * float(
            self.nu * np.linalg.slogdet(scale)[1]
            + size * np.log(self.centring.k)
            + size * np.sum(np.log1p(strength * self.spectrum.squares))
        )

    def slopes(self, strength: float) -> FloatArray:
        """E[B | G, s], (F, K)."""
        return np.asarray(self.spectrum.vectors @ (self.gains(strength)[:, None] * self.turned))

    def mean(self, slopes: FloatArray) -> FloatArray:
        """E[mu | G, B]."""
        ones, k = self.centring.ones, self.centring.k
        return np.asarray(ones @ (self.slices - self.design @ slopes) / k)

    def draw(self, rng: Generator, strength: float) -> tuple[MeanAndPrecision, FloatArray]:
        """(mu, Omega) and B given G and s: Omega first, then B, then mu, equation (44)."""
        size = len(self.scale_inverse)
        parameters = NormalWishartParameters(
            np.zeros(size), self.centring.k, self.nu, self.scale_at(strength)
        )
        gap, precision = draw_normal_wishart(rng, parameters)
        noise = rng.standard_normal((len(self.spectrum.vectors), size))
        slopes = np.zeros_like(noise)
        if strength > 0:
            along = self.spectrum.vectors.T @ noise
            roots = np.sqrt(self.gains(strength)) - np.sqrt(strength)
            noise = np.sqrt(strength) * noise + self.spectrum.vectors @ (roots[:, None] * along)
            slopes = self.slopes(strength) + in_columns(noise, precision)
        return MeanAndPrecision(self.mean(slopes) + gap, precision), slopes


def moved(prior: SlicePrior, by: FloatArray) -> SlicePrior:
    """The prior of slices that are `by` (n, K) further from zero."""
    pulled = np.broadcast_to(prior.factors, len(by))[:, None] * by
    if prior.links is not None:
        pulled[:-1] -= prior.links[:, None] * by[1:]
        pulled[1:] -= prior.links[:, None] * by[:-1]
    if prior.graph is not None:
        pulled -= prior.graph.pull(by)
    linear = prior.linear + pulled @ prior.precision
    return prior._replace(linear=linear, diagonal=np.zeros(linear.shape))


def said(axis: Axis, hyper: FeaturedHyper) -> tuple[FloatArray, NDArray[np.bool_]]:
    """B' x of new labels, (n, K), zero where x is not known, and where that is."""
    if axis.features is None:
        return np.zeros((axis.n, hyper.slopes.shape[1])), np.ones(axis.n, dtype=bool)
    says = np.asarray(axis.features @ hyper.slopes)
    unknown = np.isnan(says).any(axis=1)
    return np.where(unknown[:, None], 0.0, says), unknown


def without_features(hyper: FeaturedHyper, fitted: FloatArray) -> MeanAndPrecision:
    """Slices of labels whose x is not known, but normal, with the covariance of those known."""
    average = fitted.mean(axis=0)
    spread = (fitted - average).T @ (fitted - average) / len(fitted)
    precision = np.linalg.inv(np.linalg.inv(hyper.precision) + spread)
    return MeanAndPrecision(hyper.mean + average, precision)
