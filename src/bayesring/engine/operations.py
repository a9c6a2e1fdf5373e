"""Operations on a block: each is a pure function of a task and one block.

A task holds everything a block needs besides its own data. Tasks, blocks and results can be sent to
another process. Kernels are called only through these functions and the methods of `Engine`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesring.data.blocks import Block
from bayesring.engine.streams import Purpose, Streams
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import entrywise as entrywise_kernel
from bayesring.kernels import slices as slices_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray, IntArray, SlicePrior, WorkingResponse


class CoreTask(NamedTuple):
    """Everything a block needs, besides its own data, to draw its slices."""

    flat: FlatRing
    """The ring with its weights folded in."""
    weights: FloatArray
    """lambda^(d), (S R_d,)."""
    core: FloatArray
    """Current G^(d), (I_d, S, R_{d-1}, R_d)."""
    slice_prior: SlicePrior
    likelihood: Likelihood
    nuisance: FloatArray
    streams: Streams
    scan: int
    runs: IntArray | None = None
    """(n, 2), first and end slice of each run drawn jointly; None to draw each slice alone."""


class StatisticsTask(NamedTuple):
    """Everything a block needs for the statistics of its likelihood."""

    flat: FlatRing
    likelihood: Likelihood
    nuisance: FloatArray
    streams: Streams
    scan: int


Drawn = tuple[FloatArray, ...]
"""Slices (J, K), and sums w a a' and s a for the bond's weights, equation (7); for a part of a
slice, only its statistics (4)."""


class Update(NamedTuple):
    """A way to draw the slices of a block."""

    draw: Callable[[CoreTask, Block], Drawn]
    cuts_slices: bool
    """Whether a large slice may be cut into several blocks."""
    diagonal_only: bool
    """Whether it needs a prior with independent entries."""


def draw_jointly(task: CoreTask, block: Block) -> Drawn:
    """All entries of a slice at once, equations (4) to (6)."""
    arguments = (*task.flat, block.mode, block.others, block.bounds, *working_response(task, block))
    if block.is_part:
        return (slices_kernel.slice_statistics(*arguments),)
    return slices_kernel.draw_slices(  # type: ignore[no-any-return]
        *arguments,
        task.weights,
        task.slice_prior.precision,
        *task.slice_prior.rows(block.slices),
        _noise(task, block),
    )


def draw_entrywise(task: CoreTask, block: Block) -> Drawn:
    """One entry after another, given the rest of its slice, equation (6')."""
    slices = task.core[block.slices]
    diagonal, linear, _ = task.slice_prior.rows(block.slices)
    return entrywise_kernel.draw_entries(  # type: ignore[no-any-return]
        *task.flat,
        block.mode,
        block.others,
        block.bounds,
        *working_response(task, block),
        task.weights,
        slices.reshape(len(slices), -1),
        diagonal,
        linear,
        _noise(task, block),
    )


def draw_runs(task: CoreTask, block: Block) -> Drawn:
    """Draw the task's runs that lie in the block, each jointly; NaN in all other slices."""
    assert task.runs is not None
    weight, shift = working_response(task, block)
    noise = _noise(task, block)
    rank = task.weights.size
    slices = np.full(noise.shape, np.nan)
    totals = np.zeros((rank, rank)), np.zeros(rank)
    columns, size = int(task.flat.bonds[block.mode]), noise.shape[1]
    inside = (task.runs[:, 0] >= block.slices.start) & (task.runs[:, 1] <= block.slices.stop)
    for first, last in task.runs[inside] - block.first:
        found = []
        for j in range(first, last):
            cut = slice(block.bounds[j], block.bounds[j + 1])
            others = np.ascontiguousarray(block.others[:, cut])
            bounds = np.array([0, others.shape[1]])
            response = weight[cut], shift[cut]
            found.append(
                slices_kernel.slice_statistics(*task.flat, block.mode, others, bounds, *response)
            )
        terms = [slices_kernel.slice_terms(each, columns, task.weights, size) for each in found]
        slices[first:last] = draw_run(task, block.first + first, terms, noise[first:last])
        for each, drawn in zip(found, slices[first:last], strict=True):
            slices_kernel.weight_terms(each, columns, drawn, *totals)
    return slices, *totals


def draw_run(
    task: CoreTask, first: int, terms: list[tuple[FloatArray, FloatArray]], noise: FloatArray
) -> FloatArray:
    """Draw consecutive slices (m, K) jointly, given the ones before and after them.

    Their precision is block tridiagonal, M = L L'. With L_i on the diagonal of L and B_i' below it,
    L_i L_i' = M_ii - B_{i-1}' B_{i-1} and B_i = L_i^-1 M_{i,i+1}; the draw is
    L^-T (L^-1 h + noise), forward and then backward.
    """
    prior, n_slices = task.slice_prior, len(task.core)
    last = first + len(terms)
    diagonal, linear, factors = prior.rows(slice(first, last))

    def own(table: FloatArray, i: int) -> FloatArray:
        return np.asarray(table[0 if len(table) == 1 else i])

    def neighbour(link: int, slice_at: int) -> FloatArray:
        assert prior.links is not None
        return np.asarray(prior.links[link] * prior.precision @ task.core[slice_at].ravel())

    lowers: list[FloatArray] = []
    bands: list[FloatArray] = []
    solved: list[FloatArray] = []
    for i, (precision, shift) in enumerate(terms):
        matrix = own(factors, i) * prior.precision + np.diag(own(diagonal, i)) + precision
        right = own(linear, i) + shift
        if prior.links is not None and i == 0 and first > 0:
            right = right + neighbour(first - 1, first - 1)
        if prior.links is not None and i == len(terms) - 1 and last < n_slices:
            right = right + neighbour(last - 1, last)
        if i > 0:
            matrix = matrix - bands[-1].T @ bands[-1]
            right = right - bands[-1].T @ solved[-1]
        lowers.append(np.linalg.cholesky(matrix))
        solved.append(np.linalg.solve(lowers[-1], right))
        if i + 1 < len(terms):
            assert prior.links is not None  # otherwise slices would be drawn one by one
            bands.append(np.linalg.solve(lowers[-1], -prior.links[first + i] * prior.precision))
    drawn = np.empty_like(noise)
    for i in reversed(range(len(terms))):
        right = solved[i] + noise[i]
        if i + 1 < len(terms):
            right = right - bands[i] @ drawn[i + 1]
        drawn[i] = np.linalg.solve(lowers[i].T, right)
    return drawn


JOINT = Update(draw_jointly, cuts_slices=True, diagonal_only=False)
ENTRYWISE = Update(draw_entrywise, cuts_slices=False, diagonal_only=True)
UPDATES = {"slice": JOINT, "entry": ENTRYWISE}


def statistics(task: StatisticsTask, block: Block) -> FloatArray:
    """The likelihood's statistics of the block's observations at the current entries."""
    likelihood, response = task.likelihood, None
    predictor = fitted(task.flat, block)
    if likelihood.sees_response:
        rng = task.streams.rng(task.scan, Purpose.STATISTICS, block.mode, block.number)
        response = likelihood.augment(rng, predictor, block.values, task.nuisance, block.given)
    return likelihood.statistics(predictor, block.values, task.nuisance, block.given, response)


def working_response(task: CoreTask, block: Block) -> WorkingResponse:
    """w_n and s_n of the block's observations, redrawn in every pass if they are random.

    They are a function of the ring at the beginning of the pass, so repeated calls within a pass
    give the same values.
    """
    likelihood, offset = task.likelihood, block.given.offset
    if likelihood.augments:
        rng = task.streams.rng(task.scan, Purpose.AUGMENT, block.mode, block.number)
        weight, shift = likelihood.augment(
            rng, fitted(task.flat, block), block.values, task.nuisance, block.given
        )
    else:
        weight, shift = likelihood.augment(
            None, block.values, block.values, task.nuisance, block.given
        )
    return WorkingResponse(weight, shift if offset is None else shift - weight * offset)


def fitted(flat: FlatRing, block: Block) -> FloatArray:
    """f_n of the block's observations, offsets included."""
    found = entries_kernel.entries(*flat, block.mode, block.own, block.others)
    return np.asarray(found if block.given.offset is None else found + block.given.offset)


def compiled() -> bool:
    """Whether the slowest kernel to compile has been compiled, by this or an earlier process."""
    kernel = slices_kernel.draw_slices
    cached = Path(kernel.stats.cache_path).glob("slices.draw_slices-*.nbi")
    return bool(kernel.signatures) or any(cached)


def _noise(task: CoreTask, block: Block) -> FloatArray:
    rng = task.streams.rng(task.scan, Purpose.SLICES, block.mode, block.number)
    return rng.standard_normal((block.bounds.size - 1, len(task.slice_prior.precision)))
