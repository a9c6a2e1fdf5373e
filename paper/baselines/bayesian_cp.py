"""Bayesian CP factorisation with rank found by pruning (Zhao, Zhang and Cichocki, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, RandomState

from bayesring.checks import check_count
from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray
from paper.baselines.baseline import PredictiveMoments, Step
from paper.baselines.sorted_views import SortedView, lay_out, sorted_view
from paper.baselines.variational import (
    Gamma,
    GammaPriors,
    Statistics,
    VariationalBaseline,
    expect_noise,
    expect_slices,
    noise_variance,
    slice_bound,
)
from paper.kernels.nested import nested_hadamard
from paper.kernels.polyadic import polyadic_entries


class Factor(NamedTuple):
    """Gaussian factors of the rows of one mode."""

    mean: FloatArray
    """(I_d, R)."""
    second: FloatArray
    """(I_d, R (R + 1) / 2), the lower triangles of E[a a'], row by row."""
    log_determinant: float
    """Log determinants of the covariances, summed over rows."""


class CPState(NamedTuple):
    """The approximate posterior."""

    factors: tuple[Factor, ...]
    relevance: Gamma
    """lambda, (R,)."""
    noise: Gamma
    """tau."""


class BayesianCP(VariationalBaseline):
    """Bayesian CP factorisation, by variational inference.

    With the row a^(d)[i] of mode d, R entries, and r an entry,

        y_n ~ N(f_n, 1 / tau),   f_n = sum_r a^(1)[i_1]_r ... a^(D)[i_D]_r,
        a^(d)[i] ~ N(0, diag(lambda)^-1),   lambda_r ~ Ga(c0, d0),   tau ~ Ga(alpha0, beta0).

    One lambda_r controls component r in all modes: as it grows, the component dies out and is
    pruned. Rows have full covariances. Every update is optimal given all others, so the lower bound
    never decreases.

    Parameters
    ----------
    rank : number of components to start with
    likelihood : "gaussian", or "bernoulli" for 0 and 1, see `Baseline`
    shape : sizes of the modes; None takes the largest coordinates plus one
    max_iter : maximum number of sweeps over all modes
    tol : the ascent ends if the relative gain of the lower bound is below this
    threshold : a component is pruned if its energy is below this share of the largest
    initial_precision : E[tau] of the first sweep. At 1, as if everything were noise, sparse data
        lose every component before the noise is known to be smaller.
    c0, d0, alpha0, beta0 : shapes and rates of the gamma priors
    random_state : seed, Generator or RandomState, of the initial factors
    progress : whether to show a progress bar

    Attributes
    ----------
    rank_ : number of components left
    lower_bounds_ : the lower bound after every sweep
    state_ : the approximate posterior, in standard units
    shape_ : sizes of the modes
    """

    def __init__(
        self,
        rank: int = 40,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        max_iter: int = 300,
        tol: float = 1e-6,
        threshold: float = 1e-6,
        initial_precision: float = 100.0,
        c0: float = 1e-6,
        d0: float = 1e-6,
        alpha0: float = 1e-6,
        beta0: float = 1e-6,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        super().__init__(
            rank,
            likelihood,
            shape,
            max_iter,
            tol,
            threshold,
            initial_precision,
            c0,
            d0,
            alpha0,
            beta0,
            random_state,
            progress,
        )

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        rank = check_count(self.rank, "rank", 1)
        views, priors = mode_views(data), self._priors()
        self.state_ = self._ascend(
            initial_state(rng, data.shape, rank, self.initial_precision),
            prune,
            lambda state: sweep(state, views, priors),
            lambda state: f"rank {state.relevance.shape.size}",
            step,
        )
        self.rank_ = self.state_.relevance.shape.size

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        """E[f] and E[f^2] - E[f]^2 + E[1 / tau], exact under the approximate posterior."""
        factors, relevance, noise = self.state_
        columns = np.ascontiguousarray(coords.T, dtype=np.int32)
        means = lay_out([each.mean for each in factors])
        mean = polyadic_entries(*means, columns, np.ones(relevance.shape.size))
        if not with_variance:
            return PredictiveMoments(mean, None)
        rows, others = np.tril_indices(relevance.shape.size)
        seconds = lay_out([each.second for each in factors])
        square = polyadic_entries(*seconds, columns, np.where(rows == others, 1.0, 2.0))
        return PredictiveMoments(mean, np.maximum(square - mean**2, 0.0) + noise_variance(noise))


def mode_views(data: Observations) -> list[SortedView]:
    """Observations sorted by each mode, then by the others, smallest (most shared) first."""
    by_size = np.argsort(data.shape, kind="stable").tolist()
    return [
        sorted_view(data, mode, [other for other in by_size if other != mode])
        for mode in range(len(data.shape))
    ]


def initial_state(rng: Generator, shape: tuple[int, ...], rank: int, precision: float) -> CPState:
    """Random rows, known exactly, for which the entries of the tensor have variance one."""
    spread = rank ** (-0.5 / len(shape))
    factors = []
    for size in shape:
        mean = spread * rng.standard_normal((size, rank))
        factors.append(Factor(mean, _triangles(mean[:, :, None] * mean[:, None, :]), 0.0))
    ones = np.ones(rank)
    return CPState(tuple(factors), Gamma(ones, ones), Gamma(np.array(precision), np.array(1.0)))


def expect_statistics(factors: Sequence[Factor], view: SortedView) -> Statistics:
    """P and q of all rows of a mode; c_n is the entrywise product of the other modes' rows.

    E[c_n c_n'] is therefore the entrywise product of their E[a a'].
    """
    others = [factors[mode] for mode in view.modes]
    n_rows, rank = view.bounds.size - 1, others[0].mean.shape[1]
    shifts = np.empty((n_rows, rank))
    flat, starts = lay_out([each.mean for each in others])
    nested_hadamard(flat, starts, view.others, view.bounds, view.values, shifts)
    triangles = np.empty((n_rows, others[0].second.shape[1]))
    flat, starts = lay_out([each.second for each in others])
    nested_hadamard(flat, starts, view.others, view.bounds, np.ones_like(view.values), triangles)
    products = np.empty((n_rows, rank, rank))
    rows, columns = np.tril_indices(rank)
    products[:, rows, columns] = products[:, columns, rows] = triangles
    return Statistics(products, shifts)


def sweep(
    state: CPState, views: Sequence[SortedView], priors: GammaPriors
) -> tuple[CPState, float]:
    """Update the rows of every mode, then lambda, then tau; also returns the lower bound."""
    factors, precision = list(state.factors), state.relevance.mean
    misfit = 0.0
    for mode, view in enumerate(views):
        found = expect_slices(expect_statistics(factors, view), float(state.noise.mean), precision)
        factors[mode] = Factor(found.mean, _triangles(found.second), found.log_determinant)
        misfit = found.misfit
    squares = [_squares(factor) for factor in factors]
    n_rows = sum(len(factor.mean) for factor in factors)
    relevance = Gamma(
        np.full(precision.size, priors.c0 + 0.5 * n_rows), priors.d0 + 0.5 * np.sum(squares, axis=0)
    )
    noise, bound = expect_noise(views[0].values, misfit, priors)
    bound -= relevance.divergence(priors.c0, priors.d0)
    for factor, own in zip(factors, squares, strict=True):
        bound += slice_bound(
            len(factor.mean), own, factor.log_determinant, relevance.mean, relevance.log_mean
        )
    return CPState(tuple(factors), relevance, noise), bound


def prune(state: CPState, threshold: float) -> CPState:
    """Drop the components whose mean square over all cells is negligible."""
    factors, relevance, noise = state
    energy = np.prod([np.mean(each.mean**2, axis=0) for each in factors], axis=0)
    kept = energy >= threshold * energy.max()
    if kept.all():
        return state
    rows, columns = np.tril_indices(kept.size)
    pairs = kept[rows] & kept[columns]
    fewer = tuple(
        Factor(each.mean[:, kept], each.second[:, pairs], each.log_determinant) for each in factors
    )
    return CPState(fewer, Gamma(relevance.shape[kept], relevance.rate[kept]), noise)


def _triangles(matrices: FloatArray) -> FloatArray:
    """Lower triangles (J, R (R + 1) / 2), row by row."""
    rows, columns = np.tril_indices(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def _squares(factor: Factor) -> FloatArray:
    """Sum over rows of E[a_r^2], (R,)."""
    diagonal = np.arange(1, factor.mean.shape[1] + 1).cumsum() - 1
    return np.asarray(factor.second[:, diagonal].sum(axis=0))
