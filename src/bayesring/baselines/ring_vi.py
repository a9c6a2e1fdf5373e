"""Bayesian tensor ring with relevance priors, by variational inference (Long et al., 2021)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState

from bayesring import ring
from bayesring.baselines.base import Baseline, Moments, Step, TooLarge
from bayesring.baselines.ring_moments import (
    Blocks,
    keep,
    mean_square,
    n_pairs,
    pack,
    unpack_transposed,
)
from bayesring.baselines.variational import (
    Gamma,
    Statistics,
    data_bound,
    expect_slices,
    has_settled,
    slice_bound,
)
from bayesring.baselines.views import SortedView, lay_out, sorted_view
from bayesring.checks import check_count, free_memory
from bayesring.kernels.nested import count_products, nested_matrices
from bayesring.observations import Observations
from bayesring.types import FloatArray, IntArray, RingSize

CHUNK_BYTES = 2**26
"""Slices and cells are worked on in pieces whose moments take about this much."""
PRODUCTS_PER_SECOND = 1e9
"""Multiplications by which time is estimated."""


class Core(NamedTuple):
    """Gaussian factors of the slices of one core."""

    mean: FloatArray
    """(I_d, R_{d-1}, R_d)."""
    second: Blocks
    """E[G ⊗ G] of every slice."""
    squares: FloatArray
    """(R_{d-1}, R_d), sum over slices of E[G_sr^2]."""
    log_determinant: float
    """Of the covariances, summed over slices."""


class RingVIState(NamedTuple):
    """The approximate posterior."""

    cores: tuple[Core, ...]
    relevance: tuple[Gamma, ...]
    """lambda^(d), (R_d,) each."""
    noise: Gamma
    """tau."""


class Hyper(NamedTuple):
    """Shapes and rates of the gamma priors."""

    c0: float
    d0: float
    alpha0: float
    beta0: float


class BayesianRingVI(Baseline):
    def __init__(
        self,
        rank: int | tuple[int, ...] = 5,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        max_iter: int = 100,
        tol: float = 1e-5,
        threshold: float = 1e-6,
        c0: float = 1e-6,
        d0: float = 1e-6,
        alpha0: float = 1e-6,
        beta0: float = 1e-6,
        max_memory: int | None = None,
        max_hours: float = 24.0,
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
        self.max_memory = max_memory
        self.max_hours = max_hours
        self.random_state = random_state
        self.progress = progress

    def _steps(self) -> int:
        return check_count(self.max_iter, "max_iter", 1)

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        rank = ring.expand_rank(self.rank, len(data.shape))
        order = len(data.shape)
        hyper = Hyper(self.c0, self.d0, self.alpha0, self.beta0)
        views = [sorted_view(data, mode, ring.ring_order(mode, order)) for mode in range(order)]
        state = initial_state(rng, data.shape, rank)
        bounds: list[float] = []
        for _ in range(self.max_iter):
            state = prune(state, self.threshold)
            state, bound = sweep(state, views, hyper)
            bounds.append(bound)
            step("rank " + "x".join(str(each.shape.size) for each in state.relevance))
            if has_settled(bounds, self.tol):
                break
        self.state_ = state
        self.rank_ = tuple(each.shape.size for each in state.relevance)
        self.lower_bounds_ = np.array(bounds)

    def _moments(self, coords: IntArray, with_variance: bool) -> Moments:
        cores, _, noise = self.state_
        first, *rest = cores
        means = [core.mean[:, None] for core in cores]
        mean, square = np.empty((2, len(coords)))
        chunk = chunk_size(first)
        for begin in range(0, len(coords), chunk):
            part = coords[begin : begin + chunk]
            mean[begin : begin + chunk] = ring.entries(means, part)
            if with_variance:
                view = SortedView(np.arange(len(part) + 1), tuple(range(1, len(cores))), np.ascontiguousarray(part[:, 1:].T), np.ones(len(part)))
                own = Blocks(*(block[part[:, 0]] for block in first.second))
                square[begin : begin + chunk] = mean_square(own, complement_moments(cores, view, 0, len(part)))
        if not with_variance:
            return Moments(mean, None)
        return Moments(mean, square - mean**2 + noise.rate / (noise.shape - 1.0))


def chunk_size(core: Core) -> int:
    return max(1, CHUNK_BYTES // (8 * core.mean[0].size ** 2))


def initial_state(rng: Generator, shape: tuple[int, ...], rank: tuple[int, ...]) -> RingVIState:
    cores = []
    size = RingSize(1, rank)
    for mode, n_slices in enumerate(shape):
        mean = size.spread(mode) * rng.standard_normal((n_slices, rank[mode - 1], rank[mode]))
        vectors = mean.reshape(n_slices, -1)
        second = pack(vectors[:, :, None] * vectors[:, None, :], *mean.shape[1:])
        cores.append(Core(mean, second, np.sum(mean**2, axis=0), 0.0))
    relevance = tuple(Gamma(np.ones(each), np.ones(each)) for each in rank)
    return RingVIState(tuple(cores), relevance, Gamma(np.float64(100.0), np.float64(1.0)))


def complement_moments(cores, view: SortedView, first: int, last: int) -> Blocks:
    """Sum over the observations of slices first:last of E[T_n ⊗ T_n]."""
    others = [cores[mode] for mode in view.modes]
    bounds = view.bounds[first : last + 1]
    weights = np.ones(view.others.shape[1])
    found = []
    for kind in range(2):
        tables = [each.second[kind] for each in others]
        sizes = np.array([tables[0].shape[1], *(each.shape[2] for each in tables)])
        found.append(_nested(tables, sizes, view, bounds, weights))
    return Blocks(*found)


def _nested(tables, sizes, view, bounds, weights):
    out = np.zeros((bounds.size - 1, sizes[0] * sizes[-1]))
    flat, starts = lay_out(tables)
    if out.size:
        nested_matrices(flat, starts, sizes, view.others, bounds, weights, out)
    return out.reshape(len(out), sizes[0], sizes[-1])


def statistics(cores, view: SortedView, first: int, last: int) -> Statistics:
    others = [cores[mode] for mode in view.modes]
    blocks = complement_moments(cores, view, first, last)
    means = [each.mean for each in others]
    sizes = np.array([means[0].shape[1], *(each.shape[2] for each in means)])
    shifts = _nested(means, sizes, view, view.bounds[first : last + 1], view.values)
    products = unpack_transposed(blocks, sizes[0], sizes[-1])
    return Statistics(products, np.swapaxes(shifts, 1, 2).reshape(len(shifts), -1))


def expect_core(cores, mode, view, tau, precision):
    """Optimal q of one core; also E[sum f² - 2 y f]."""
    core = cores[mode]
    n_slices, rows, columns = core.mean.shape
    chunk = chunk_size(core)
    edges = [*range(0, n_slices, chunk), n_slices]
    parts = []
    for first, last in pairwise(edges):
        found = expect_slices(statistics(cores, view, first, last), tau, precision.ravel())
        squares = np.einsum("jkk->k", found.second)
        parts.append((found.mean, *pack(found.second, rows, columns), squares, found.log_determinant, found.misfit))
    means, symmetric, antisymmetric, squares, log_determinants, misfits = zip(*parts, strict=True)
    return Core(
        np.concatenate(means).reshape(core.mean.shape),
        Blocks(np.concatenate(symmetric), np.concatenate(antisymmetric)),
        np.sum(squares, axis=0).reshape(rows, columns),
        sum(log_determinants),
    ), sum(misfits)


def sweep(state: RingVIState, views, hyper: Hyper):
    cores, relevance = list(state.cores), list(state.relevance)
    order = len(cores)
    for mode, view in enumerate(views):
        precision = np.multiply.outer(relevance[mode - 1].mean, relevance[mode].mean)
        cores[mode], misfit = expect_core(cores, mode, view, float(state.noise.mean), precision)
    for bond in range(order):
        relevance[bond] = expect_relevance(cores, relevance, bond, hyper)
    values = views[0].values
    error = values @ values + misfit
    noise = Gamma(np.float64(hyper.alpha0 + 0.5 * values.size), np.float64(hyper.beta0 + 0.5 * error))
    bound = data_bound(values.size, error, noise) - noise.divergence(hyper.alpha0, hyper.beta0)
    for mode, core in enumerate(cores):
        before, after = relevance[mode - 1], relevance[mode]
        bound -= after.divergence(hyper.c0, hyper.d0)
        bound += slice_bound(
            len(core.mean),
            core.squares.ravel(),
            core.log_determinant,
            np.multiply.outer(before.mean, after.mean).ravel(),
            np.add.outer(before.log_mean, after.log_mean).ravel(),
        )
    return RingVIState(tuple(cores), tuple(relevance), noise), bound


def expect_relevance(cores, relevance, bond: int, hyper: Hyper) -> Gamma:
    after = (bond + 1) % len(cores)
    left, right = cores[bond], cores[after]
    entries = len(left.mean) * left.mean.shape[1] + len(right.mean) * right.mean.shape[2]
    energy = relevance[bond - 1].mean @ left.squares + right.squares @ relevance[after].mean
    return Gamma(np.full(energy.size, hyper.c0 + 0.5 * entries), hyper.d0 + 0.5 * energy)


def prune(state: RingVIState, threshold: float) -> RingVIState:
    cores, relevance, noise = state
    kept = []
    for bond, core in enumerate(cores):
        after = cores[(bond + 1) % len(cores)]
        energy = np.sum(core.mean**2, axis=(0, 1)) * np.sum(after.mean**2, axis=(0, 2))
        kept.append(energy >= threshold * energy.max())
    if all(mask.all() for mask in kept):
        return state
    fewer = tuple(
        Core(
            core.mean[:, kept[mode - 1]][:, :, kept[mode]],
            keep(core.second, kept[mode - 1], kept[mode]),
            core.squares[kept[mode - 1]][:, kept[mode]],
            core.log_determinant,
        )
        for mode, core in enumerate(cores)
    )
    precisions = tuple(
        Gamma(each.shape[mask], each.rate[mask]) for each, mask in zip(relevance, kept, strict=True)
    )
    return RingVIState(fewer, precisions, noise)
