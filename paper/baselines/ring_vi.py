"""Bayesian tensor ring with relevance priors, by variational inference (Long et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, RandomState

from bayesring.checks import free_memory
from bayesring.data.observations import Observations
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize
from paper.baselines.baseline import PredictiveMoments, Step, TooLarge
from paper.baselines.ring_moments import (
    Blocks,
    keep,
    mean_square,
    n_pairs,
    pack,
    unpack_transposed,
)
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
from paper.kernels.nested import count_products, nested_matrices

CHUNK_BYTES = 2**26
"""Slices and cells are processed in pieces whose second moments take about this many bytes."""
MULTIPLICATIONS_PER_SECOND = 1e9
"""Assumed speed for the time estimate of a fit."""


class Core(NamedTuple):
    """Gaussian factors of the slices of one core."""

    mean: FloatArray
    """(I_d, R_{d-1}, R_d)."""
    second: Blocks
    """E[G ⊗ G] of every slice."""
    squares: FloatArray
    """(R_{d-1}, R_d), sum over slices of E[G_sr^2]."""
    log_determinant: float
    """Log determinants of the covariances, summed over slices."""


class RingVIState(NamedTuple):
    """The approximate posterior."""

    cores: tuple[Core, ...]
    relevance: tuple[Gamma, ...]
    """lambda^(d), (R_d,) each."""
    noise: Gamma
    """tau."""

    @property
    def rank(self) -> tuple[int, ...]:
        """R_1, ..., R_D."""
        return tuple(each.shape.size for each in self.relevance)


class BayesianRingVI(VariationalBaseline):
    """Bayesian tensor ring with relevance priors on the bonds, by variational inference.

    With slices G^(d)[i] of size (R_{d-1}, R_d), R_0 = R_D, entry (s, r),

        y_n ~ N(f_n, 1 / tau),   f_n = tr(G^(1)[i_1] ... G^(D)[i_D]),
        G^(d)[i]_sr ~ N(0, 1 / (lambda^(d-1)_s lambda^(d)_r)),
        lambda^(d)_r ~ Ga(c0, d0),   tau ~ Ga(alpha0, beta0).

    As lambda^(d)_r grows, factor r of bond d dies out on both sides and is pruned. A slice has a
    full covariance, R^2 x R^2. Every update is optimal given all others, so the lower bound never
    decreases.

    An update needs E[T_n ⊗ T_n], with T_n the product of the other slices, for every observation:
    the paper's O(D M R^6). Here products of observations with common coordinates are shared
    (`paper.kernels.nested`) and taken in blocks (`paper.baselines.ring_moments`). A fit that would
    still take too much memory or time raises `TooLarge` before the first sweep.

    Parameters
    ----------
    rank : initial rank of the bonds, one number for all or one per bond
    likelihood : "gaussian", or "bernoulli" for 0 and 1, see `Baseline`
    shape : sizes of the modes; None takes the largest coordinates plus one
    max_iter : maximum number of sweeps over all modes
    tol : the ascent ends if the relative gain of the lower bound is below this
    threshold : a factor is pruned if its energy is below this share of the largest on its bond
    initial_precision : E[tau] of the first sweep, see `BayesianCP`
    c0, d0, alpha0, beta0 : shapes and rates of the gamma priors
    max_memory : maximum bytes for the fit; None for the free memory
    max_hours : maximum estimated hours for the fit
    random_state : seed, Generator or RandomState, of the initial cores
    progress : whether to show a progress bar

    Attributes
    ----------
    rank_ : rank of each bond after pruning
    lower_bounds_ : the lower bound after every sweep
    state_ : the approximate posterior, in standard units
    shape_ : sizes of the modes
    """

    def __init__(
        self,
        rank: int | tuple[int, ...] = 5,
        *,
        likelihood: str = "gaussian",
        shape: tuple[int, ...] | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        threshold: float = 1e-6,
        initial_precision: float = 100.0,
        c0: float = 1e-6,
        d0: float = 1e-6,
        alpha0: float = 1e-6,
        beta0: float = 1e-6,
        max_memory: int | None = None,
        max_hours: float = 24.0,
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
        self.max_memory = max_memory
        self.max_hours = max_hours

    def _learn(self, data: Observations, rng: Generator, step: Step) -> None:
        order = len(data.shape)
        rank = ring.expand_rank(self.rank, order)
        free = free_memory() if self.max_memory is None else self.max_memory
        refuse_memory(memory_needed(data.shape, rank), free, rank)
        views = [sorted_view(data, mode, ring.ring_order(mode, order)) for mode in range(order)]
        refuse_time(self.max_iter * sweep_seconds(views, rank) / 3600, self.max_hours, rank)
        priors = self._priors()
        self.state_ = self._ascend(
            initial_state(rng, data.shape, rank, self.initial_precision),
            prune,
            lambda state: sweep(state, views, priors),
            lambda state: "rank " + "x".join(map(str, state.rank)),
            step,
        )
        self.rank_ = self.state_.rank

    def _moments(self, coords: IntArray, with_variance: bool) -> PredictiveMoments:
        """E[f] and E[f^2] - E[f]^2 + E[1 / tau], exact under the approximate posterior."""
        cores, _, noise = self.state_
        means = [core.mean[:, None] for core in cores]
        mean, square = np.empty((2, len(coords)))
        chunk = _chunk(max(self.rank_) ** 2)
        for begin in range(0, len(coords), chunk):
            part = coords[begin : begin + chunk]
            mean[begin : begin + chunk] = ring.entries(means, part)
            if with_variance:
                own = Blocks(*(block[part[:, 0]] for block in cores[0].second))
                others = complement_moments(cores, _one_by_one(part), 0, len(part))
                square[begin : begin + chunk] = mean_square(own, others)
        if not with_variance:
            return PredictiveMoments(mean, None)
        return PredictiveMoments(mean, np.maximum(square - mean**2, 0.0) + noise_variance(noise))


def memory_needed(shape: tuple[int, ...], rank: tuple[int, ...]) -> int:
    """Bytes for the second moments of all cores, twice for the current core, and of a piece."""
    sizes = [rank[mode - 1] * rank[mode] for mode in range(len(shape))]
    moments = [n * k * (k + 1) // 2 for n, k in zip(shape, sizes, strict=True)]
    piece = max(CHUNK_BYTES, 8 * max(sizes) ** 2)
    return 8 * (2 * sum(moments) + 2 * max(moments)) + 6 * piece


def refuse_memory(needed: int, free: int | None, rank: tuple[int, ...]) -> None:
    """Reject a ring whose moments do not fit into memory."""
    if free is not None and needed > free:
        raise TooLarge(
            f"Variational inference of a ring of rank {rank} needs about {needed / 2**30:,.1f} GiB "
            f"for second moments, but {free / 2**30:,.1f} GiB may be used; give a smaller rank= or "
            "a larger max_memory=."
        )


def sweep_seconds(views: Sequence[SortedView], rank: tuple[int, ...]) -> float:
    """Estimate of the time of one sweep: products of moments, and inverses of K x K matrices."""
    multiplications = sum(size**3 for size in n_pairs(max(rank)))
    work = 0.0
    for mode, view in enumerate(views):
        work += count_products(view.others, view.bounds) * multiplications
        work += (view.bounds.size - 1) * 3 * (rank[mode - 1] * rank[mode]) ** 3
        work += view.values.size * (rank[mode - 1] * rank[mode]) ** 2
    return work / MULTIPLICATIONS_PER_SECOND


def refuse_time(hours: float, allowed: float, rank: tuple[int, ...]) -> None:
    """Reject a fit that would take too long."""
    if hours > allowed:
        raise TooLarge(
            f"Variational inference of a ring of rank {rank} may take about {hours:,.1f} hours, "
            f"more than max_hours={allowed:g}; give a smaller rank=, a smaller max_iter= or a "
            "larger max_hours=."
        )


def initial_state(
    rng: Generator, shape: tuple[int, ...], rank: tuple[int, ...], precision: float
) -> RingVIState:
    """Random slices, known exactly, for which the entries of the tensor have variance one."""
    cores, size = [], RingSize(1, rank)
    for mode, n_slices in enumerate(shape):
        mean = size.spread(mode) * rng.standard_normal((n_slices, rank[mode - 1], rank[mode]))
        parts = []
        for first, last in _pieces(n_slices, mean[0].size):
            vectors = mean[first:last].reshape(last - first, -1)
            parts.append(pack(vectors[:, :, None] * vectors[:, None, :], *mean.shape[1:]))
        cores.append(Core(mean, _join(parts), np.sum(mean**2, axis=0), 0.0))
    relevance = tuple(Gamma(np.ones(each), np.ones(each)) for each in rank)
    return RingVIState(tuple(cores), relevance, Gamma(np.array(precision), np.array(1.0)))


def complement_moments(cores: Sequence[Core], view: SortedView, first: int, last: int) -> Blocks:
    """Sum of E[T_n ⊗ T_n] over the observations of each of the slices first, ..., last - 1.

    T_n (R_d, R_{d-1}) is the product of the other slices in ring order.
    """
    bounds, weights = view.bounds[first : last + 1], np.ones(view.others.shape[1])
    seconds = [cores[mode].second for mode in view.modes]
    symmetric, antisymmetric = zip(*seconds, strict=True)
    return Blocks(
        _nested_sums(symmetric, view, bounds, weights),
        _nested_sums(antisymmetric, view, bounds, weights),
    )


def expect_statistics(cores: Sequence[Core], view: SortedView, first: int, last: int) -> Statistics:
    """P and q of the slices first, ..., last - 1 of a core; c_n = vec(T_n')."""
    blocks = complement_moments(cores, view, first, last)
    means = [cores[mode].mean for mode in view.modes]
    shifts = _nested_sums(means, view, view.bounds[first : last + 1], view.values)
    _, rows, columns = shifts.shape
    transposed = np.swapaxes(shifts, 1, 2).reshape(len(shifts), rows * columns)
    return Statistics(unpack_transposed(blocks, rows, columns), transposed)


def expect_core(
    cores: Sequence[Core], mode: int, view: SortedView, tau: float, precision: FloatArray
) -> tuple[Core, float]:
    """Optimal Gaussian factors of the slices of one core and their misfit, piece by piece."""
    n_slices, rows, columns = cores[mode].mean.shape
    mean = np.empty((n_slices, rows * columns))
    squares = np.zeros(rows * columns)
    parts, log_determinant, misfit = [], 0.0, 0.0
    for first, last in _pieces(n_slices, rows * columns):
        statistics = expect_statistics(cores, view, first, last)
        found = expect_slices(statistics, tau, precision.ravel())
        mean[first:last] = found.mean
        parts.append(pack(found.second, rows, columns))
        squares += np.einsum("jkk->k", found.second)
        log_determinant += found.log_determinant
        misfit += found.misfit
    shape = (n_slices, rows, columns)
    core = Core(mean.reshape(shape), _join(parts), squares.reshape(shape[1:]), log_determinant)
    return core, misfit


def sweep(
    state: RingVIState, views: Sequence[SortedView], priors: GammaPriors
) -> tuple[RingVIState, float]:
    """Update every core, then lambda of every bond, then tau; also returns the lower bound."""
    cores, relevance = list(state.cores), list(state.relevance)
    misfit = 0.0
    for mode, view in enumerate(views):
        precision = np.multiply.outer(relevance[mode - 1].mean, relevance[mode].mean)
        cores[mode], misfit = expect_core(cores, mode, view, float(state.noise.mean), precision)
    for bond in range(len(cores)):
        relevance[bond] = expect_relevance(cores, relevance, bond, priors)
    noise, bound = expect_noise(views[0].values, misfit, priors)
    for mode, core in enumerate(cores):
        before, after = relevance[mode - 1], relevance[mode]
        bound -= after.divergence(priors.c0, priors.d0)
        bound += slice_bound(
            len(core.mean),
            core.squares.ravel(),
            core.log_determinant,
            np.multiply.outer(before.mean, after.mean).ravel(),
            np.add.outer(before.log_mean, after.log_mean).ravel(),
        )
    return RingVIState(tuple(cores), tuple(relevance), noise), bound


def expect_relevance(
    cores: Sequence[Core], relevance: Sequence[Gamma], bond: int, priors: GammaPriors
) -> Gamma:
    """Optimal factor of lambda^(d), which controls columns of core d and rows of core d + 1.

    Its shape is c0 + (I_d R_{d-1} + I_{d+1} R_{d+1}) / 2, its rate d0 plus half of
    sum_s E[lambda^(d-1)_s] E[G^(d)_sr^2] + sum_t E[lambda^(d+1)_t] E[G^(d+1)_rt^2] over slices.
    """
    after = (bond + 1) % len(cores)
    left, right = cores[bond], cores[after]
    entries = len(left.mean) * left.mean.shape[1] + len(right.mean) * right.mean.shape[2]
    energy = relevance[bond - 1].mean @ left.squares + right.squares @ relevance[after].mean
    return Gamma(np.full(energy.size, priors.c0 + 0.5 * entries), priors.d0 + 0.5 * energy)


def prune(state: RingVIState, threshold: float) -> RingVIState:
    """Drop the factors of each bond whose slices, on both sides together, are negligible."""
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
    left = (Gamma(each.shape[m], each.rate[m]) for each, m in zip(relevance, kept, strict=True))
    return RingVIState(fewer, tuple(left), noise)


def _nested_sums(
    tables: Sequence[FloatArray], view: SortedView, bounds: IntArray, weights: FloatArray
) -> FloatArray:
    """Sums of products of matrices over the observations of slices: (J, rows, columns)."""
    sizes = np.array([tables[0].shape[1], *(table.shape[2] for table in tables)])
    out = np.zeros((bounds.size - 1, sizes[0] * sizes[-1]))
    if sizes.all():
        flat, starts = lay_out(tables)
        nested_matrices(flat, starts, sizes, view.others, bounds, weights, out)
    return out.reshape(len(out), sizes[0], sizes[-1])


def _one_by_one(coords: IntArray) -> SortedView:
    """A view of cells in which each is a separate slice of the first mode."""
    n, order = coords.shape
    others = np.ascontiguousarray(coords[:, 1:].T, dtype=np.int32)
    return SortedView(np.arange(n + 1), tuple(range(1, order)), others, np.ones(n))


def _chunk(size: int) -> int:
    """Number of slices of `size` entries whose second moments make up a piece."""
    return max(1, CHUNK_BYTES // (8 * size**2))


def _pieces(n_slices: int, size: int) -> list[tuple[int, int]]:
    """Cut slices into pieces."""
    return list(pairwise([*range(0, n_slices, _chunk(size)), n_slices]))


def _join(parts: Sequence[Blocks]) -> Blocks:
    symmetric, antisymmetric = zip(*parts, strict=True)
    return Blocks(np.concatenate(symmetric), np.concatenate(antisymmetric))
