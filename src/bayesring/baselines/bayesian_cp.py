"""Bayesian CP factorisation whose rank is found by pruning (Zhao, Zhang and Cichocki, 2015)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState

from bayesring.baselines.base import Baseline, Moments, Step
from bayesring.baselines.variational import (
    Gamma,
    Statistics,
    data_bound,
    expect_slices,
    has_settled,
    slice_bound,
)
from bayesring.baselines.views import SortedView, lay_out, sorted_view
from bayesring.checks import check_count
from bayesring.kernels.nested import nested_hadamard
from bayesring.observations import Observations
from bayesring.types import FloatArray, IntArray

CHUNK = 65_536
"""Cells predicted at a time."""


class Factor(NamedTuple):
    """Gaussian factors of the rows of one mode."""

    mean: FloatArray
    """(I_d, R)."""
    second: FloatArray
    """(I_d, R (R + 1) / 2), the lower triangles of E[a a'], row by row."""
    log_determinant: float
    """Of the covariances, summed over rows."""


class CPState(NamedTuple):
    """The approximate posterior."""

    factors: tuple[Factor, ...]
    relevance: Gamma
    """lambda, (R,)."""
    noise: Gamma
    """tau."""


class BayesianCP(Baseline):
    """Bayesian CP factorisation, by variational inference.

    With the row a^(d)[i] of mode d, R entries, and r an entry,

        y_n ~ N(f_n, 1 / tau),   f_n = sum_r a^(1)[i_1]_r ... a^(D)[i_D]_r,
        a^(d)[i] ~ N(0, diag(lambda)^-1),   lambda_r ~ Ga(c0, d0),   tau ~ Ga(alpha0, beta0).

    One lambda_r rules component r in all modes: where it grows, the component dies out and is
    pruned. Rows have full covariances; every update is the best one given all others, so the lower
    bound never falls.

    Parameters
    ----------
    rank : number of components to start with
    likelihood : "gaussian", or "bernoulli" for 0 and 1, see `Baseline`
    shape : sizes of the modes; None takes the largest coordinates plus one
    max_iter : sweeps over all modes at most
    tol : the relative gain in the lower bound below which the ascent ends
    threshold : a component is pruned when its energy is below this share of the largest one's
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
        rank: int = 10,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        threshold: float = 1e-6,
        c0: float = 1e-6,
        d0: float = 1e-6,
        alpha0: float = 1e-6,
        beta0: float = 1e-6,
        random_state: int | Generator | RandomState | None = None,
        progress: bool = True,
    ) -> None:
        self.rank = rank
        self.likelihood = likelihood
        self.shape = shape
        self.max_iter = max_iter
        self.tol = tol
        self.threshold = threshold
        self.c0 = c0
        self.d0 = d0
        self.alpha0 = alpha0
        self.beta0 = beta0
        self.random_state = random_state
        self.progress = progress

    def _steps(self) -> int:
        return check_count(self.max_iter, "max_iter", 1)

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        views = _views(data)
        state = initial_state(rng, data.shape, check_count(self.rank, "rank", 1), self.init_v)
        bounds: list[float] = []
        for _ in range(self.max_iter):
            state = prune(state, self.threshold)
            state, bound = sweep(state, views, self.c0, self.d0, self.alpha0, self.beta0)
            bounds.append(bound)
            step(f"rank {state.relevance.shape.size}")
            if has_settled(bounds, self.tol):
                break
        self.state_ = state
        self.rank_ = state.relevance.shape.size
        self.lower_bounds_ = np.array(bounds)

    def _moments(self, coords: IntArray, with_variance: bool) -> Moments:
        factors, _, noise = self.state_
        mean = _products([each.mean for each in factors], coords, None)
        if not with_variance:
            return Moments(mean, None)
        weights = np.where(np.equal(*np.tril_indices(self.rank_)), 1.0, 2.0)
        square = _products([each.second for each in factors], coords, weights)
        return Moments(mean, square - mean**2 + noise.rate / (noise.shape - 1.0))


def _products(tables, coords, weights):
    """Row sums of the products over modes of table rows, weighted."""
    out = np.empty(len(coords))
    for begin in range(0, len(coords), CHUNK):
        part = coords[begin : begin + CHUNK]
        product = tables[0][part[:, 0]]
        for mode in range(1, len(tables)):
            product *= tables[mode][part[:, mode]]
        out[begin : begin + CHUNK] = product.sum(axis=1) if weights is None else product @ weights
    return out


def _views(data: Observations) -> list[SortedView]:
    by_size = np.argsort(data.shape, kind="stable").tolist()
    return [
        sorted_view(data, mode, [other for other in by_size if other != mode])
        for mode in range(len(data.shape))
    ]


def initial_state(rng: Generator, shape, rank: int, v=0.0) -> CPState:
    spread = rank ** (-0.5 / len(shape))
    means = [spread * rng.standard_normal((size, rank)) for size in shape]
    factors = tuple(Factor(mean, _triangles(mean[:, :, None] * mean[:, None, :]+v*np.eye(rank)), 0.0) for mean in means)
    ones = np.ones(rank)
    return CPState(factors, Gamma(ones, ones), Gamma(np.float64(1.0), np.float64(1.0)))


def _triangles(matrices: FloatArray) -> FloatArray:
    rows, columns = np.tril_indices(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, rows, columns])


def _squares(triangles: FloatArray) -> FloatArray:
    """Diagonals, summed over rows."""
    rank = round((np.sqrt(8 * triangles.shape[1] + 1) - 1) / 2)
    places = np.arange(1, rank + 1).cumsum() - 1
    return triangles[:, places].sum(axis=0)


def statistics(factors, view: SortedView) -> Statistics:
    others = [factors[mode] for mode in view.modes]
    n_slices, rank = view.bounds.size - 1, factors[0].mean.shape[1]
    shifts = np.empty((n_slices, rank))
    flat, starts = lay_out([each.mean for each in others])
    nested_hadamard(flat, starts, view.others, view.bounds, view.values, shifts)
    triangles = np.empty((n_slices, rank * (rank + 1) // 2))
    flat, starts = lay_out([each.second for each in others])
    nested_hadamard(flat, starts, view.others, view.bounds, np.ones_like(view.values), triangles)
    products = np.empty((n_slices, rank, rank))
    rows, columns = np.tril_indices(rank)
    products[:, rows, columns] = triangles
    products[:, columns, rows] = triangles
    return Statistics(products, shifts)


def sweep(state: CPState, views, c0, d0, alpha0, beta0):
    factors = list(state.factors)
    precision = state.relevance.mean
    n = views[0].values.size
    for mode, view in enumerate(views):
        found = expect_slices(statistics(factors, view), float(state.noise.mean), precision)
        factors[mode] = Factor(found.mean, _triangles(found.second), found.log_determinant)
    squares = sum(_squares(each.second) for each in factors)
    n_rows = sum(len(each.mean) for each in factors)
    relevance = Gamma(np.full(precision.size, c0 + 0.5 * n_rows), d0 + 0.5 * squares)
    error = views[0].values @ views[0].values + found.misfit
    noise = Gamma(np.float64(alpha0 + 0.5 * n), np.float64(beta0 + 0.5 * error))
    bound = data_bound(n, error, noise) - noise.divergence(alpha0, beta0) - relevance.divergence(c0, d0)
    for each in factors:
        bound += slice_bound(len(each.mean), _squares(each.second), each.log_determinant, relevance.mean, relevance.log_mean)
    return CPState(tuple(factors), relevance, noise), bound


def prune(state: CPState, threshold: float) -> CPState:
    factors, relevance, noise = state
    energy = np.prod([np.mean(each.mean**2, axis=0) for each in factors], axis=0)
    kept = energy >= threshold * energy.max()
    if kept.all():
        return state
    rows, columns = np.tril_indices(kept.size)
    pairs = kept[rows] & kept[columns]
    fewer = tuple(Factor(each.mean[:, kept], np.ascontiguousarray(each.second[:, pairs]), each.log_determinant) for each in factors)
    return CPState(fewer, Gamma(relevance.shape[kept], relevance.rate[kept]), noise)
