"""What the two variational baselines share: gamma and Gaussian factors, the bound, the ascent.

Both models are linear in each slice g (K entries) of each mode given the other modes,

    f_n = c_n . g_i,   g_i ~ N(0, diag(pi)^-1),   y_n ~ N(f_n, 1 / tau),

with pi made of the precisions lambda that decide which factors are relevant. The posterior is
approximated by a product of Gaussians over slices and gammas over lambda and tau; expectations
under it are written E.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from bayesring.types import FloatArray

LOG_2PI = float(np.log(2 * np.pi))


class Gamma(NamedTuple):
    """Gamma factors with given shape and rate, of any array shape."""

    shape: FloatArray
    rate: FloatArray

    @property
    def mean(self) -> FloatArray:
        """E[x] = shape / rate."""
        return self.shape / self.rate

    @property
    def log_mean(self) -> FloatArray:
        """E[log x]."""
        return np.asarray(digamma(self.shape) - np.log(self.rate))

    def divergence(self, shape0: float, rate0: float) -> float:
        """KL divergence from the prior Ga(shape0, rate0), summed."""
        terms = (
            (self.shape - shape0) * digamma(self.shape)
            - gammaln(self.shape)
            + gammaln(shape0)
            + shape0 * (np.log(self.rate) - np.log(rate0))
            + self.shape * (rate0 / self.rate - 1.0)
        )
        return float(np.sum(terms))


class Statistics(NamedTuple):
    """What the observations say about some slices, given the other modes."""

    products: FloatArray
    """(J, K, K), sum over the slice's observations of E[c_n c_n']."""
    shifts: FloatArray
    """(J, K), sum of y_n E[c_n]."""


class Slices(NamedTuple):
    """Gaussian factors of some slices."""

    mean: FloatArray
    """(J, K)."""
    second: FloatArray
    """(J, K, K), E[g g']."""
    log_determinant: float
    """Of the covariances, summed over slices."""
    misfit: float
    """E[sum of f_n^2 - 2 y_n f_n] over the observations of these slices."""


def expect_slices(statistics: Statistics, tau: float, precision: FloatArray) -> Slices:
    """Optimal Gaussian factors: V = (E[tau] P + diag(E[pi]))^-1, mean E[tau] V q."""
    products, shifts = statistics
    size = precision.size
    inverse = tau * products
    inverse[:, np.arange(size), np.arange(size)] += precision
    root = np.linalg.cholesky(inverse)
    log_determinant = -2.0 * float(np.sum(np.log(np.diagonal(root, axis1=1, axis2=2))))
    covariance = np.linalg.inv(inverse)
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    mean = tau * np.einsum("jkl,jl->jk", covariance, shifts)
    second = covariance + mean[:, :, None] * mean[:, None, :]
    misfit = float(np.sum(products * second) - 2.0 * np.sum(shifts * mean))
    return Slices(mean, second, log_determinant, misfit)


def slice_bound(
    n_slices: int,
    squares: FloatArray,
    log_determinant: float,
    precision: FloatArray,
    log_precision: FloatArray,
) -> float:
    """E[log p(g)] - E[log q(g)] of all slices of a mode.

    Parameters
    ----------
    squares : (K,), sum over slices of E[g_k^2]
    log_determinant : of the covariances, summed over slices
    precision, log_precision : (K,), E[pi] and E[log pi]
    """
    prior = n_slices * np.sum(log_precision) - precision @ squares
    return 0.5 * float(prior + log_determinant + n_slices * precision.size)


def data_bound(n: int, squared_error: float, tau: Gamma) -> float:
    """E[log p(y given f, tau)], with the expected squared error E[sum (y_n - f_n)^2]."""
    return 0.5 * float(n * (tau.log_mean - LOG_2PI) - tau.mean * squared_error)


def has_settled(bounds: list[float], tolerance: float) -> bool:
    """Whether the last step raised the bound by less than `tolerance`, relative to its size."""
    return len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < tolerance * abs(bounds[-1])
