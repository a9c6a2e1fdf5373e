"""Predictions for reports and pictures: parts of the tensor, surprises, uncertainty, similarity.

The work is bounded whatever the size of the tensor: predictions are made at chosen levels or at
cells drawn at random with the model's own seed. Everything is a summary of predictions; cores are
never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, Given, IntArray
from bayesring.posterior import Posterior
from bayesring.posterior.suggest import candidate_cells, most_uncertain

N_CANDIDATES = 20_000
"""Number of observations or cells searched for surprises and uncertain cells."""
N_FIBRE = 200
"""Number of cells over which two levels are compared."""
FEWEST_STEPS = 12
"""Number of levels kept by a mode that is neither rows nor columns if a part must shrink."""


class Part(NamedTuple):
    """Some levels of every mode, and all cells where they intersect."""

    levels: tuple[IntArray, ...]
    observed: FloatArray
    """NaN where nothing was observed; the mean of repeated observations, of an exposure of one."""
    mean: FloatArray
    deviation: FloatArray
    """Error bar of a new observation; of the probability if values are binary."""


def default_axes(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a slice: two modes of equal size, as in an image, or the longest two."""
    for mode, size in enumerate(shape):
        if size > 2 and size in shape[mode + 1 :]:
            return mode, shape.index(size, mode + 1)
    first, second = sorted(np.argsort([-size for size in shape], kind="stable")[:2].tolist())
    return first, second


def part_sizes(shape: tuple[int, ...], budget: int) -> tuple[int, ...]:
    """Number of levels per mode within a budget of cells; rows and columns shrink last."""
    sizes = list(shape)
    axes = default_axes(shape)
    steps = [mode for mode in range(len(shape)) if mode not in axes]
    while prod(sizes) > budget:
        wide = [mode for mode in steps if sizes[mode] > FEWEST_STEPS]
        mode = max(wide or range(len(shape)), key=lambda mode: sizes[mode])
        allowed = budget * sizes[mode] // prod(sizes)
        sizes[mode] = max(allowed, sizes[mode] * 9 // 10, FEWEST_STEPS if wide else 1)
    return tuple(sizes)


def choose_levels(counts: IntArray, n: int) -> IntArray:
    """At most `n` levels of a mode in order: evenly spread, or the most observed ones.

    The latter is used if observations are so uneven that an even choice would miss them: if the
    median level has less than a third of the mean count.
    """
    size = len(counts)
    if n >= size:
        return np.arange(size)
    if np.median(counts) < counts.mean() / 3:
        return np.sort(np.argsort(-counts, kind="stable")[:n])
    return np.linspace(0, size - 1, n).round().astype(int)


def part(
    posterior: Posterior, observed: Observations | None, levels: Sequence[IntArray], noise: bool
) -> Part:
    """Observed values and predictions where the given levels intersect."""
    mean, deviation = posterior.at_levels(levels).tensor(noise)
    known = np.full(mean.shape, np.nan) if observed is None else _spread(observed, levels)
    return Part(tuple(levels), known, mean, deviation)


def _spread(observed: Observations, levels: Sequence[IntArray]) -> FloatArray:
    """Observed values at the chosen levels as an array, NaN elsewhere."""
    sizes = tuple(len(chosen) for chosen in levels)
    places = np.empty_like(observed.coords)
    for mode, (size, chosen) in enumerate(zip(observed.shape, levels, strict=True)):
        lookup = np.full(size, -1)
        lookup[chosen] = np.arange(len(chosen))
        places[:, mode] = lookup[observed.coords[:, mode]]
    inside = np.all(places >= 0, axis=1)
    flat = np.ravel_multi_index(tuple(places[inside].T), sizes)
    ones = np.ones(len(observed.values))
    weight, exposure = (
        (ones if own is None else own)[inside]
        for own in (observed.given.weight, observed.given.exposure)
    )
    shares = np.bincount(flat, weight * exposure, prod(sizes))
    sums = np.bincount(flat, weight * observed.values[inside], prod(sizes))
    means = np.divide(sums, shares, out=np.full(shares.size, np.nan), where=shares > 0)
    return np.asarray(means.reshape(sizes))


class Surprises(NamedTuple):
    """Observed values far out in their predictive distribution, most extreme first."""

    coords: IntArray
    values: FloatArray
    mean: FloatArray
    deviation: FloatArray
    distance: FloatArray
    """Error divided by error bar; for binary data the probability of the observed value."""
    n_searched: int


def surprises(
    posterior: Posterior, observed: Observations, is_binary: bool, n: int, seed: int
) -> Surprises:
    """Search at most `N_CANDIDATES` observations, drawn at random, for the `n` most surprising."""
    searched = _draw(seed, len(observed.values))
    coords, values = observed.coords[searched], observed.values[searched]
    given = Given(exposure=observed.given.at(searched).exposure)
    mean, deviation = posterior.described(coords, (), given=given)
    if is_binary:
        distance = np.where(values > 0.5, mean, 1.0 - mean)
        order = np.argsort(distance, kind="stable")[:n]
    else:
        distance = (values - mean) / deviation
        order = np.argsort(-np.abs(distance), kind="stable")[:n]
    return Surprises(
        coords[order], values[order], mean[order], deviation[order], distance[order], len(searched)
    )


class Doubts(NamedTuple):
    """Unobserved cells with the most uncertain means, most uncertain first."""

    coords: IntArray
    mean: FloatArray
    deviation: FloatArray
    """Standard deviation of the mean or probability itself, without noise."""
    n_searched: int


def doubts(posterior: Posterior, observed: Observations | None, n: int, seed: int) -> Doubts:
    """Search at most `N_CANDIDATES` cells, like `TensorRing.suggest`, which searches more."""
    cells = candidate_cells(posterior.shape, observed, seed, N_CANDIDATES)
    rows, deviation = most_uncertain(posterior, cells, n)
    mean, _ = posterior.moments(cells[rows], noise=False)
    return Doubts(cells[rows], mean, deviation, len(cells))


class Likeness(NamedTuple):
    """Similarity of the levels of a mode."""

    levels: IntArray
    """Ordered so that similar levels are adjacent."""
    correlation: FloatArray
    """Correlation of the predictions for two levels over the cells of the other modes."""

    def closest(self, n: int) -> list[tuple[int, int, float]]:
        """The `n` pairs of positions with the highest correlation."""
        rows, columns = np.triu_indices(len(self.levels), 1)
        order = np.argsort(-self.correlation[rows, columns], kind="stable")[:n]
        return [
            (int(i), int(j), float(self.correlation[i, j]))
            for i, j in zip(rows[order], columns[order], strict=True)
        ]


def likeness(posterior: Posterior, mode: int, levels: IntArray, seed: int) -> Likeness:
    """Correlate predicted values of levels over random cells of the other modes, and sort them.

    The order comes from hierarchical clustering (average linkage of 1 - correlation).
    """
    rng = np.random.default_rng([seed, mode])
    others = [rng.integers(0, size, N_FIBRE) for size in posterior.shape]
    coords = np.stack([np.tile(other, len(levels)) for other in others], axis=1)
    coords[:, mode] = np.repeat(levels, N_FIBRE)
    fibres = posterior.moments(coords, noise=False)[0].reshape(len(levels), N_FIBRE)
    centred = fibres - fibres.mean(axis=1, keepdims=True)
    size = np.sqrt(np.sum(centred**2, axis=1, keepdims=True))
    unit = np.divide(centred, size, out=np.zeros_like(centred), where=size > 0)
    correlation = np.clip(unit @ unit.T, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    order = _by_likeness(correlation)
    return Likeness(levels[order], correlation[np.ix_(order, order)])


def _by_likeness(correlation: FloatArray) -> IntArray:
    """Order that puts similar levels next to each other."""
    if len(correlation) < 3:
        return np.arange(len(correlation))
    distances = squareform(1.0 - correlation, checks=False)
    return np.asarray(leaves_list(linkage(distances, "average", optimal_ordering=True)))


def _draw(seed: int, n: int) -> IntArray:
    """All `n` indices, or a sorted random sample of as many as may be searched."""
    if n <= N_CANDIDATES:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, N_CANDIDATES, replace=False))
