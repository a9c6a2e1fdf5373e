"""Shared by the two variational baselines: gamma and Gaussian factors, the bound, the ascent.

Both models are linear in each slice g (K entries) of each mode given the other modes,

    f_n = c_n . g_i,   g_i ~ N(0, diag(pi)^-1),   y_n ~ N(f_n, 1 / tau),

with pi made of the precisions lambda that decide which factors are relevant. The posterior is
approximated by a product of Gaussians over slices and gammas over lambda and tau, each optimised in
turn given all others; E denotes expectations under it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator, RandomState
from scipy.special import digamma, gammaln

from bayesring.checks import check_count
from bayesring.model.types import FloatArray
from paper.baselines.baseline import Baseline, Step

LOG_2PI = float(np.log(2 * np.pi))
State = TypeVar("State")


class Gamma(NamedTuple):
    """Gamma factors with given shapes and rates, as arrays of any shape."""

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


class GammaPriors(NamedTuple):
    """Shapes and rates of the priors: lambda ~ Ga(c0, d0), tau ~ Ga(alpha0, beta0)."""

    c0: float
    d0: float
    alpha0: float
    beta0: float


class Statistics(NamedTuple):
    """Statistics of the observations of some slices, given the other modes."""

    products: FloatArray
    """P, (J, K, K): sum over the slice's observations of E[c_n c_n']."""
    shifts: FloatArray
    """q, (J, K): sum of y_n E[c_n]."""


class Slices(NamedTuple):
    """Gaussian factors of some slices."""

    mean: FloatArray
    """(J, K)."""
    second: FloatArray
    """(J, K, K), E[g g']."""
    log_determinant: float
    """Log determinants of the covariances, summed over slices."""
    misfit: float
    """E[sum of f_n^2 - 2 y_n f_n] over the observations of these slices."""


def expect_slices(statistics: Statistics, tau: float, precision: FloatArray) -> Slices:
    """Optimal Gaussian factors: covariance V = (E[tau] P + diag(E[pi]))^-1, mean E[tau] V q.

    `precision` (K,) is E[pi].
    """
    products, shifts = statistics
    inverse = tau * products
    diagonal = np.arange(precision.size)
    inverse[:, diagonal, diagonal] += precision
    pivots = np.diagonal(np.linalg.cholesky(inverse), axis1=1, axis2=2)
    covariance = np.linalg.inv(inverse)
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    mean = tau * np.einsum("jkl,jl->jk", covariance, shifts)
    second = covariance + mean[:, :, None] * mean[:, None, :]
    misfit = float(np.vdot(products, second) - 2.0 * np.vdot(shifts, mean))
    return Slices(mean, second, -2.0 * float(np.sum(np.log(pivots))), misfit)


def expect_noise(values: FloatArray, misfit: float, priors: GammaPriors) -> tuple[Gamma, float]:
    """Optimal factor of tau and its part of the bound: E[log p(y, tau)] - E[log q(tau)].

    `misfit` is the misfit of all slices of one mode, given all the others.
    """
    error = float(values @ values) + misfit
    noise = Gamma(
        np.asarray(priors.alpha0 + 0.5 * values.size), np.asarray(priors.beta0 + 0.5 * error)
    )
    fit = 0.5 * float(values.size * (noise.log_mean - LOG_2PI) - noise.mean * error)
    return noise, fit - noise.divergence(priors.alpha0, priors.beta0)


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


class VariationalBaseline(Baseline):
    """Parameters of the variational baselines, and their ascent."""

    def __init__(
        self,
        rank: int | tuple[int, ...],
        likelihood: str,
        shape: tuple[int, ...] | None,
        max_iter: int,
        tol: float,
        threshold: float,
        initial_precision: float,
        c0: float,
        d0: float,
        alpha0: float,
        beta0: float,
        random_state: int | Generator | RandomState | None,
        progress: bool,
    ) -> None:
        self.rank = rank
        self.likelihood = likelihood
        self.shape = shape
        self.max_iter = max_iter
        self.tol = tol
        self.threshold = threshold
        self.initial_precision = initial_precision
        self.c0 = c0
        self.d0 = d0
        self.alpha0 = alpha0
        self.beta0 = beta0
        self.random_state = random_state
        self.progress = progress

    def _steps(self) -> int:
        for name in ("initial_precision", "c0", "d0", "alpha0", "beta0"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}.")
        for name in ("tol", "threshold"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1, got {getattr(self, name)!r}."
                )
        return check_count(self.max_iter, "max_iter", 1)

    def _priors(self) -> GammaPriors:
        return GammaPriors(self.c0, self.d0, self.alpha0, self.beta0)

    def _ascend(
        self,
        state: State,
        prune: Callable[[State, float], State],
        sweep: Callable[[State], tuple[State, float]],
        describe: Callable[[State], str],
        step: Step,
    ) -> State:
        """Prune and sweep until the relative gain of the bound is below `tol`."""
        bounds: list[float] = []
        for _ in range(self.max_iter):
            state, bound = sweep(prune(state, self.threshold))
            bounds.append(bound)
            step(describe(state))
            if len(bounds) > 1 and abs(bound - bounds[-2]) < self.tol * abs(bound):
                break
        self.lower_bounds_ = np.array(bounds)
        return state


def noise_variance(noise: Gamma) -> float:
    """E[1 / tau] = rate / (shape - 1), the variance that noise adds to a new observation."""
    return float(noise.rate / (noise.shape - 1.0)) if noise.shape > 1.0 else float("inf")
