"""A ring estimated by online EM: its immutable state and the quantities derived from it.

Slices are normal around their estimates, with the combined precision of prior and data; equations
(20) and (23) of docs/model.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring.data.batches import Position
from bayesring.engine.protocol import Engine
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize, SlicePrior
from bayesring.priors import ModePrior

FEWEST, ELEMENTS = 16, 2**18
"""Minimum number of slices per mode whose covariances an E-step computes; more as long as their
total K^3 stays below the second number."""
NEWEST = 0.1
"""Weight of the latest of these slices in the moving average that represents all slices."""
TOGETHER = 256
"""Number of slices whose precisions are factored at once."""
ALL = slice(None)


class AdamMoments(NamedTuple):
    """Adam's moments: mean and square of the gradients, and their bias corrections."""

    first: FloatArray
    second: FloatArray
    powers: FloatArray
    """Both decay rates to the power of the steps taken, per slice (n, 2), or (1, 2) for weights."""

    @classmethod
    def empty(cls, size: int, n: int) -> AdamMoments:
        """Moments before the first step."""
        return cls(np.zeros(size), np.zeros(size), np.ones((n, 2)))

    def copy(self) -> AdamMoments:
        """A copy."""
        return AdamMoments(*(each.copy() for each in self))


class RingEstimate(NamedTuple):
    """State of one ring during learning. Its arrays are never written to."""

    size: RingSize
    counts: tuple[IntArray, ...]
    """D arrays (I_d,), number of observations of each slice in one pass over the data."""
    cores: FloatArray
    """G, all cores end to end as in `ring.FlatRing`, without the weights."""
    weights: tuple[FloatArray, ...]
    """lambda, D arrays (S, R_d)."""
    gains: tuple[FloatArray, ...]
    """E[delta], D arrays (S, R_d)."""
    nuisance: FloatArray
    slice_priors: tuple[SlicePrior, ...]
    curvature: FloatArray
    """Contribution of the data to the precision of every entry, in the order of complements."""
    adam: AdamMoments
    weight_adam: tuple[AdamMoments, ...]
    weight_gradient: FloatArray
    """Gradients of the weights of all bonds, summed since their last update."""
    statistics: FloatArray | None = None
    """The likelihood's statistics scaled to all observations; recent ones count most."""
    spreads: tuple[FloatArray | None, ...] = ()
    """Moving average of the covariances of a subset of slices, for modes that use one."""
    batches: int = 0
    unweighed: int = 0
    """Number of observations since the last update of the weights."""
    rows_seen: int = 0
    rows_remembered: int = 0
    """Rows that the statistics hold at most."""
    """Number of observations processed so far."""
    e_steps: int = 0
    width: float = 1.0
    """Factor by which draws scale the deviations of slices from their estimates."""
    position: Position = Position()
    """Position of the next batch."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of slices of each mode."""
        return tuple(len(each) for each in self.counts)

    @property
    def n_observations(self) -> int:
        """Number of observations in one pass."""
        return int(self.counts[0].sum())

    @property
    def core_list(self) -> list[FloatArray]:
        """G^(d), (I_d, S, R_{d-1}, R_d) each."""
        return as_cores(self.cores, self.size, self.shape)

    @property
    def flat(self) -> ring.FlatRing:
        """The weighted cores in the form used by the kernels."""
        return ring.flatten(ring.weighted(self.core_list, self.weights))

    def fitted(self, columns: IntArray, engine: Engine) -> FloatArray:
        """f at the cells whose indices are the first D of `columns` (D or more, n)."""
        return engine.entries(self.flat, columns)


def as_cores(flat: FloatArray, size: RingSize, shape: Sequence[int]) -> list[FloatArray]:
    """Views of cores stored end to end."""
    shapes = [size.core_shape(mode, n) for mode, n in enumerate(shape)]
    ends = np.cumsum([np.prod(each) for each in shapes])
    return [part.reshape(own) for part, own in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


def forgotten(estimate: RingEstimate) -> RingEstimate:
    """The estimate with Adam's moments reset, because gradients will change in scale."""
    return estimate._replace(
        adam=AdamMoments.empty(estimate.cores.size, sum(estimate.shape)),
        weight_adam=tuple(AdamMoments.empty(each.size, 1) for each in estimate.weights),
    )


def restarted(estimate: RingEstimate, cores: Sequence[FloatArray]) -> RingEstimate:
    """Replace the cores; Adam's moments, curvature and all counts are reset."""
    flat = ring.flatten(cores).flat
    return forgotten(
        estimate._replace(
            cores=flat,
            curvature=np.zeros(flat.size),
            weight_gradient=np.zeros_like(estimate.weight_gradient),
            spreads=(None,) * len(cores),
            batches=0,
            unweighed=0,
            rows_seen=0,
            rows_remembered=0,
        )
    )


def gone_back(estimate: RingEstimate, kept: RingEstimate) -> RingEstimate:
    """Restore cores, weights and Adam's moments of the cores from `kept`."""
    return estimate._replace(cores=kept.cores, weights=kept.weights, adam=kept.adam)


def averaged(estimate: RingEstimate, late: Sequence[RingEstimate]) -> RingEstimate:
    """The estimate with the mean of some rings; the rest is unchanged."""
    pairs = zip(*(each.weights for each in late), strict=True)
    return estimate._replace(
        cores=np.mean([each.cores for each in late], axis=0),
        weights=tuple(np.mean(each, axis=0) for each in pairs),
    )


def curvatures(estimate: RingEstimate, mode: int, slices: slice = ALL) -> FloatArray:
    """Contribution of the data to the precision of each entry of some slices, (I_d, K)."""
    turned = as_cores(estimate.curvature, estimate.size, estimate.shape)[mode]
    n, strands, rows, columns = turned.shape
    squares = np.swapaxes(turned.reshape(n, strands, columns, rows)[slices], 2, 3)
    weighted = squares * estimate.weights[mode][:, None] ** 2
    return np.asarray(weighted.reshape(len(weighted), -1))


def spread(
    estimate: RingEstimate, mode: int, prior: ModePrior
) -> tuple[FloatArray, FloatArray | None]:
    """Uncertainty of a core in the form that `ModePrior.conditional` expects, equation (20).

    For many slices with dependent entries, a different subset each time represents all of them, in
    a moving average that is also returned.
    """
    own = estimate.slice_priors[mode]
    if prior.diagonal:
        return 1.0 / (curvatures(estimate, mode) + own.diagonal), None
    core = estimate.core_list[mode]
    n, size = len(core), core[0].size
    apart = max(1, n // max(FEWEST, ELEMENTS // size**3))
    chosen = slice(estimate.e_steps % apart, None, apart)
    some = curvatures(estimate, mode, chosen) + own.diagonal
    new = np.linalg.inv(slice_precisions(own, some)).sum(axis=0) * (n / len(some))
    if apart == 1:
        return np.asarray(new), None
    old = estimate.spreads[mode]
    average = np.asarray(new if old is None else old + NEWEST * (new - old))
    return average, average


def prior_means(estimate: RingEstimate, mode: int, slices: IntArray) -> FloatArray:
    """Prior mean of some slices of a core, shaped like them."""
    precision, diagonal, linear, *_ = estimate.slice_priors[mode]
    own = slices if len(linear) > 1 else np.zeros(1, dtype=np.int64)
    matrices = precision + np.eye(linear.shape[1]) * diagonal[own, None]
    means = np.linalg.solve(matrices, linear[own][..., None])[..., 0]
    shape = estimate.size.core_shape(mode, len(slices))
    return np.broadcast_to(means, (len(slices), linear.shape[1])).reshape(shape)


def grown(estimate: RingEstimate, shape: tuple[int, ...]) -> RingEstimate:
    """Add slices, which start from their prior means; no mode may shrink."""
    cores, curvature, counts, priors = [], [], [], []
    old = as_cores(estimate.curvature, estimate.size, estimate.shape)
    for mode, (core, more) in enumerate(zip(estimate.core_list, shape, strict=True)):
        new = np.zeros(more - len(core), dtype=np.int64)
        cores.append(np.concatenate([core, prior_means(estimate, mode, new)]))
        curvature += [old[mode].ravel(), np.zeros(core[0].size * len(new))]
        counts.append(np.concatenate([estimate.counts[mode], new]))
        priors.append(more_rows(estimate.slice_priors[mode], len(new)))
    wider = estimate._replace(counts=tuple(counts), slice_priors=tuple(priors))
    return restarted(wider, cores)._replace(curvature=np.concatenate(curvature))


def deviations(estimate: RingEstimate, mode: int, rng: Generator, n: int) -> FloatArray:
    """Draw n deviations of the slices of a core from their estimates, equation (23).

    Slice i is normal with precision Omega_i plus the curvature of its data. Returns n arrays with
    the shape of the core.
    """
    core, prior = estimate.core_list[mode], estimate.slice_priors[mode]
    size = core[0].size
    entries = curvatures(estimate, mode) + prior.diagonal
    if not prior.precision.any():
        noise = rng.standard_normal((n, len(core), size))
        return (noise / np.sqrt(entries)).reshape(n, *core.shape)
    gaps = np.empty((n, len(core), size))
    for begin in range(0, len(core), TOGETHER):
        some = slice(begin, begin + TOGETHER)
        lower = np.linalg.cholesky(slice_precisions(prior, entries[some]))
        roots = np.linalg.inv(lower)  # R with R' R = the covariance
        noise = rng.standard_normal((len(roots), n, size))
        gaps[:, some] = np.swapaxes(noise @ roots, 0, 1)
    return gaps.reshape(n, *core.shape)


def draw_gaps(estimate: RingEstimate, rng: Generator, n_draws: int) -> FloatArray:
    """Draw deviations of weighted cores, end to end, from the estimate, equation (23).

    Draws (n_draws, size) come in antithetic pairs, so that their mean is close to the estimate.
    """
    gaps = np.empty((n_draws, estimate.cores.size))
    start = 0
    for mode, (core, weights) in enumerate(zip(estimate.core_list, estimate.weights, strict=True)):
        own = gaps[:, start : start + core.size]
        drawn = deviations(estimate, mode, rng, (n_draws + 1) // 2) * weights[:, None]
        own[::2] = drawn.reshape(len(drawn), -1)
        own[1::2] = -own[::2][: n_draws // 2]
        start += core.size
    return gaps


def slice_precisions(prior: SlicePrior, entries: FloatArray) -> FloatArray:
    """Precision of slices with individual diagonal `entries` (n, K), (n, K, K)."""
    return np.asarray(prior.precision + np.eye(entries.shape[1]) * entries[:, None])


def more_rows(prior: SlicePrior, n: int) -> SlicePrior:
    """The prior of `n` more slices: the mean of the others, if each has its own."""
    if len(prior.diagonal) == 1:
        return prior
    diagonal, linear = (
        np.concatenate([each, np.tile(each.mean(axis=0), (n, 1))])
        for each in (prior.diagonal, prior.linear)
    )
    return SlicePrior(prior.precision, diagonal, linear)
