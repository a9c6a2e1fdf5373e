"""Operations on a block: each is a pure function of a task and one block.

A task holds everything a block needs besides its own data. Tasks, blocks and results can be sent to
another process. Kernels are called only through these functions and the methods of `Engine`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.blocks import Block
from bayesring.engine.streams import Purpose, Streams
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import entrywise as entrywise_kernel
from bayesring.kernels import patches as patches_kernel
from bayesring.kernels import runs as runs_kernel
from bayesring.kernels import slices as slices_kernel
from bayesring.kernels.tiles import padded
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
    alternatives: tuple[SlicePrior, ...] = ()
    """Slice priors under each of which runs are drawn; the driver chooses one."""
    seen: dict[int, tuple[WorkingResponse, FloatArray]] | None = None
    """Working response and noise of blocks that an earlier pass of the scan has met: they are the
    same in every pass, so that a copy of the task that lacks them only takes longer."""


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
    reads_core: bool = True
    """Whether it depends on the slices that it replaces, in other ways than by the ring."""


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


def slice_statistics(
    flat: FlatRing,
    weights: FloatArray,
    mode: int,
    others: IntArray,
    response: WorkingResponse,
) -> tuple[FloatArray, FloatArray]:
    """Sums w c c' (K, K) and s c (K,) over observations of one slice, equation (4).

    `others` (D - 1, n) are their indices in the other modes, in ring order. The kernel's entries
    are those of t_n: c_n is t_n transposed, strand by strand, times the weights.
    """
    rows, columns = int(flat.bonds[mode - 1]), int(flat.bonds[mode])
    size = flat.strands * rows * columns
    bounds = np.array([0, others.shape[1]])
    padded = slices_kernel.slice_statistics(*flat, mode, others, bounds, *response)
    turned = np.arange(size).reshape(flat.strands, columns, rows).swapaxes(1, 2).ravel()
    scale = np.repeat(weights.reshape(flat.strands, 1, columns), rows, axis=1).ravel()
    lower = np.tril(padded[:size, :size])
    whole = lower + np.tril(lower, -1).T
    return scale[:, None] * whole[np.ix_(turned, turned)] * scale, scale * padded[size, turned]


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


class DrawnRuns(NamedTuple):
    """Some slices drawn jointly under one slice prior."""

    slices: FloatArray
    """(J, K), NaN where no run was drawn."""
    precision: FloatArray
    linear: FloatArray
    """Sums w a a' and s a for the bond's weights, equation (7)."""
    log_mass: float
    """Sum over the runs of h' M^-1 h / 2 - log|M| / 2: log density of what was drawn from, up to
    what the run does not affect, with the run integrated out."""


class LooseEnd(NamedTuple):
    """Slices of a run that goes on in another block: what the driver needs to draw it."""

    first: int
    statistics: FloatArray
    """(m, wide, wide), padded."""
    noise: FloatArray
    """(m, K)."""


def draw_runs(task: CoreTask, block: Block) -> tuple[list[DrawnRuns], list[LooseEnd]]:
    """Draw the task's runs within the block, each jointly, under every alternative slice prior.

    Of runs that reach into other blocks, return the statistics.
    """
    assert task.runs is not None
    response, noise = _seen(task, block)
    own, found, loose = block.slices, [], []
    for first, last in task.runs[_meet(task.runs, own, len(task.core))]:
        ends = [(first, min(last, len(task.core))), (0, last - len(task.core))]
        for begin, end in ends:
            if begin >= own.stop or end <= own.start:
                continue
            inside = slice(max(begin, own.start) - own.start, min(end, own.stop) - own.start)
            statistics = runs_kernel.run_statistics(
                *task.flat,
                block.mode,
                block.others,
                block.bounds[inside.start : inside.stop + 1],
                *response,
            )
            if first < own.start or last > own.stop:
                loose.append(LooseEnd(own.start + inside.start, statistics, noise[inside]))
            else:
                found.append((inside, draw_run(task, block.mode, first, statistics, noise[inside])))
    drawn = []
    for number in range(len(task.alternatives)):
        slices = np.full(noise.shape, np.nan)
        for inside, alternatives in found:
            slices[inside] = alternatives[number].slices
        drawn.append(summed([each[number] for _, each in found], slices, task.weights.size))
    return drawn, loose


def _meet(runs: IntArray, own: slice, n_slices: int) -> NDArray[np.bool]:
    """Which runs have slices of a block."""
    here = (runs[:, 1] > own.start) & (runs[:, 0] < own.stop)
    return np.asarray(here | (runs[:, 1] > own.start + n_slices))


def _seen(task: CoreTask, block: Block) -> tuple[WorkingResponse, FloatArray]:
    """Working response and noise of a block."""
    if task.seen is None:
        return working_response(task, block), _noise(task, block)
    if block.number not in task.seen:
        task.seen[block.number] = working_response(task, block), _noise(task, block)
    return task.seen[block.number]


def summed(runs: Sequence[DrawnRuns], slices: FloatArray, rank: int) -> DrawnRuns:
    """The terms of some runs added up, beside their slices."""
    precision, linear, log_mass = np.zeros((rank, rank)), np.zeros(rank), 0.0
    for each in runs:
        precision, linear = precision + each.precision, linear + each.linear
        log_mass += each.log_mass
    return DrawnRuns(slices, precision, linear, log_mass)


def draw_run(
    task: CoreTask, mode: int, first: int, statistics: FloatArray, noise: FloatArray
) -> list[DrawnRuns]:
    """Draw consecutive slices from `first` on, given their neighbours, under every alternative."""
    last, columns = first + len(noise), int(task.flat.bonds[mode])
    drawn = []
    for prior in task.alternatives:
        if prior.graph is not None:
            drawn.append(_draw_patch(task, columns, prior, first, statistics, noise))
            continue
        diagonal, linear, factors = prior.rows(slice(first, last))
        links = np.zeros(len(task.core) - 1) if prior.links is None else prior.links
        pulled = np.broadcast_to(linear, noise.shape).copy()
        for link, neighbour, row in ((first - 1, first - 1, 0), (last - 1, last, -1)):
            if 0 <= neighbour < len(task.core):
                pulled[row] += links[link] * prior.precision @ task.core[neighbour].ravel()
        drawn.append(
            DrawnRuns(
                *runs_kernel.draw_run(
                    statistics,
                    columns,
                    task.weights,
                    prior.precision,
                    factors,
                    diagonal,
                    pulled,
                    np.ascontiguousarray(links[first : last - 1]),
                    noise,
                    _room(2 * len(noise), noise.shape[1]),
                )
            )
        )
    return drawn


def _draw_patch(
    task: CoreTask,
    columns: int,
    prior: SlicePrior,
    first: int,
    statistics: FloatArray,
    noise: FloatArray,
) -> DrawnRuns:
    """Draw a patch of slices from `first` on, given all other slices."""
    assert prior.graph is not None
    members = (first + np.arange(len(noise))) % len(task.core)
    slices = task.core.reshape(len(task.core), -1)
    between, pull = patches_kernel.around_patch(*prior.graph, first, len(noise), slices)
    linear = np.broadcast_to(prior.linear, slices.shape)[members] + pull @ prior.precision
    factors = np.broadcast_to(prior.factors, len(slices))[members]
    diagonal = prior.diagonal if len(prior.diagonal) == 1 else prior.diagonal[members]
    place, count = patches_kernel.slots(between)
    return DrawnRuns(
        *patches_kernel.draw_patch(
            statistics,
            columns,
            task.weights,
            prior.precision,
            factors,
            diagonal,
            linear,
            between,
            place,
            noise,
            _room(len(noise) + count, noise.shape[1]),
        )
    )


class _Rooms(threading.local):
    """Scratch of each thread, which lasts as long as the thread."""

    flat: FloatArray = np.zeros(0)


_ROOMS = _Rooms()


def _room(matrices: int, size: int) -> FloatArray:
    """Scratch for so many padded matrices, as this thread used it last."""
    needed = matrices * padded(size) ** 2
    if _ROOMS.flat.size < needed:
        _ROOMS.flat = np.zeros(needed)
    return _ROOMS.flat


JOINT = Update(draw_jointly, cuts_slices=True, diagonal_only=False, reads_core=False)
ENTRYWISE = Update(draw_entrywise, cuts_slices=False, diagonal_only=True)
UPDATES = {"slice": JOINT, "entry": ENTRYWISE}


def statistics(task: StatisticsTask, block: Block) -> FloatArray:
    """The likelihood's statistics of the block's observations at the current entries."""
    likelihood, rng = task.likelihood, None
    given = likelihood.locate(block.given, block.along)
    if likelihood.draws_for_statistics(given):
        rng = task.streams.rng(task.scan, Purpose.STATISTICS, block.mode, block.number)
    return likelihood.statistics(fitted(task.flat, block), block.values, task.nuisance, given, rng)


def working_response(task: CoreTask, block: Block) -> WorkingResponse:
    """w_n and s_n of the block's observations, redrawn in every pass if they are random.

    They are a function of the ring at the beginning of the pass, so repeated calls within a pass
    give the same values.
    """
    likelihood, offset = task.likelihood, block.given.offset
    given, rng, predictor = likelihood.locate(block.given, block.along), None, block.values
    if likelihood.augments(given):
        rng = task.streams.rng(task.scan, Purpose.AUGMENT, block.mode, block.number)
        predictor = fitted(task.flat, block)
    weight, shift = likelihood.augment(rng, predictor, block.values, task.nuisance, given)
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
