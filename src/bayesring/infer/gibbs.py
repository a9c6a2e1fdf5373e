"""The Gibbs sampler. One scan draws, mode by mode, the hyperparameters of the core's prior, the
slices of the core, the weights of its bond and their gains, and last the likelihood's parameters.

Each conditional is a pure function and cites its equation in docs/model.md. Work on observations
is an operation on one block; the engine decides where it runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesring.data.blocks import Block
from bayesring.engine.operations import CoreTask, StatisticsTask
from bayesring.engine.protocol import Blocks, Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer.problem import BrokenChain, Problem, StepInfo
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState
from bayesring.priors import Coupling, ModePrior

RUN = 64
"""Number of slices drawn jointly if slices depend on their neighbours."""


class WeightStatistics(NamedTuple):
    """Sums over observations for the weights of a bond, equation (7)."""

    precision: FloatArray
    """sum w a a', (S R_d, S R_d)."""
    linear: FloatArray
    """sum s a, (S R_d,)."""


def init(streams: Streams, problem: Problem, size: RingSize) -> RingState:
    """Random initial state of a chain: unit weights and gains, f with variance one."""
    cores, hyper = [], []
    for mode, (n_slices, prior) in enumerate(zip(problem.shape, problem.prior.modes, strict=True)):
        rng = streams.rng(0, Purpose.START, mode)
        core = rng.standard_normal(size.core_shape(mode, n_slices))
        cores.append(core * size.spread(mode))
        hyper.append(prior.update_hyper(rng, cores[-1]))
    ones = tuple(np.ones((size.strands, r)) for r in size.bonds)
    return RingState(tuple(cores), ones, ones, tuple(hyper), problem.likelihood.initial_nuisance())


def step(
    streams: Streams, scan: int, state: RingState, problem: Problem, engine: Engine = ONE_THREAD
) -> tuple[RingState, StepInfo]:
    """One scan: a pure function of the state, the data and the streams of `scan`."""
    cores, weights, gains, hyper, nuisance = (*map(list, state[:4]), state.nuisance)
    likelihood, bonds = problem.likelihood, problem.prior.weights
    for mode, prior in enumerate(problem.prior.modes):
        rng = streams.rng(scan, Purpose.HYPER, mode)
        hyper[mode] = prior.update_hyper(rng, cores[mode], hyper[mode])
        task = CoreTask(
            ring.flatten(ring.weighted(cores, weights), problem.dtype),
            weights[mode].ravel(),
            cores[mode],
            prior.slice_prior(cores[mode], hyper[mode]),
            likelihood,
            nuisance,
            streams,
            scan,
        )
        if prior.coupling is Coupling.NONE:
            cores[mode], statistics = draw_core(task, mode, problem, engine)
        else:
            cores[mode], statistics = draw_coupled(
                task, problem.views[mode], prior, hyper[mode], engine
            )
        if bonds.learned:
            weights[mode] = draw_weights(
                streams, scan, mode, statistics, bonds.precisions(gains[mode]), engine
            )
        gains[mode] = bonds.update_gains(
            streams.rng(scan, Purpose.GAINS, mode), weights[mode], gains[mode]
        )

    flat = ring.flatten(ring.weighted(cores, weights), problem.dtype)
    asked = StatisticsTask(flat, likelihood, nuisance, streams, scan)
    totals = engine.statistics(asked, problem.views[0])
    nuisance = likelihood.update_nuisance(streams.rng(scan, Purpose.NUISANCE), totals, nuisance)
    new_state = RingState(tuple(cores), tuple(weights), tuple(gains), tuple(hyper), nuisance)
    log_likelihood = likelihood.total_log_prob(totals, nuisance)
    return new_state, StepInfo(totals, log_likelihood, energy(weights[-1], statistics))


def draw_core(
    task: CoreTask, mode: int, problem: Problem, engine: Engine = ONE_THREAD
) -> tuple[FloatArray, WeightStatistics]:
    """Draw all slices of a core, equation (6), and the statistics of its bond's weights."""
    blocks, shape = problem.views[mode], task.core.shape
    core = np.empty((shape[0], task.core[0].size))
    totals = _no_statistics(task)
    parts: list[FloatArray] = []
    results = engine.draw(problem.update, task, blocks)
    for block, result in zip(blocks, results, strict=True):
        if not block.is_part:
            core[block.slices] = result[0]
            totals = WeightStatistics(totals.precision + result[1], totals.linear + result[2])
            continue
        parts.append(result[0])
        following = block.number + 1
        if following == len(blocks) or blocks[following].first != block.first:
            core[block.first] = draw_whole_slice(task, block, parts, totals, engine)
            parts = []
    check_finite(core, mode)
    return core.reshape(shape), totals


def draw_whole_slice(
    task: CoreTask,
    last: Block,
    parts: list[FloatArray],
    totals: WeightStatistics,
    engine: Engine = ONE_THREAD,
) -> FloatArray:
    """Sum the parts of a slice that was cut, draw it, and add its terms to `totals`."""
    rng = task.streams.rng(task.scan, Purpose.SLICES, last.mode, last.number)
    noise = rng.standard_normal(len(task.slice_prior.precision))
    return engine.draw_slice(task, last, sum(parts[1:], parts[0]), noise, totals)


def draw_coupled(
    task: CoreTask, blocks: Blocks, prior: ModePrior, hyper: object, engine: Engine = ONE_THREAD
) -> tuple[FloatArray, WeightStatistics]:
    """Draw the slices of a core that depend on each other, in several passes.

    The runs of a pass are independent given all other slices. Their boundaries depend on the scan
    and the blocks, never on the slices.
    """
    totals, core = _no_statistics(task), task.core.copy()
    for runs in passes(prior, blocks, len(core), task.scan):
        own = prior.slice_prior(core, hyper) if prior.coupling is Coupling.GRAPH else None
        asked = task._replace(core=core, runs=runs, slice_prior=own or task.slice_prior)
        flat = core.reshape(len(core), -1)
        drawn = np.zeros(len(core), dtype=bool)
        for first, last in runs:
            drawn[first:last] = True
        for block, result in zip(blocks, engine.draw_runs(asked, blocks), strict=True):
            here = drawn[block.slices]
            flat[block.slices][here] = result[0][here]
            totals = WeightStatistics(totals.precision + result[1], totals.linear + result[2])
    check_finite(core.reshape(len(core), -1), blocks[0].mode)
    return core, totals


def passes(prior: ModePrior, blocks: Blocks, n_slices: int, scan: int) -> list[IntArray]:
    """Runs (n, 2) of slices for every pass: one colour, or every other run of a chain.

    A run of a chain ends with its block; the boundaries within a block shift by half a run from
    scan to scan.
    """
    if prior.coupling is Coupling.GRAPH:
        colours = prior.colours(n_slices)
        each = np.stack([np.arange(n_slices), np.arange(1, n_slices + 1)], axis=1)
        return [each[colours == colour] for colour in range(int(colours.max()) + 1)]
    shift = RUN // 2 if scan % 2 else 0
    edges = {0, n_slices, *(block.first for block in blocks), *range(shift, n_slices, RUN)}
    cuts = np.array(sorted(edges))
    runs = np.stack([cuts[:-1], cuts[1:]], axis=1)
    return [runs[::2], runs[1::2]]


def _no_statistics(task: CoreTask) -> WeightStatistics:
    rank = task.weights.size
    return WeightStatistics(np.zeros((rank, rank)), np.zeros(rank))


def draw_weights(
    streams: Streams,
    scan: int,
    mode: int,
    statistics: WeightStatistics,
    precisions: FloatArray,
    engine: Engine = ONE_THREAD,
) -> FloatArray:
    """lambda^(d) jointly from N(P^-1 h, P^-1), P = diag(phi) + sum w a a', h = sum s a (7)."""
    noise = streams.rng(scan, Purpose.WEIGHTS, mode).standard_normal(precisions.size)
    precision = statistics.precision + np.diag(precisions.ravel())
    drawn = engine.draw_gaussian(precision, statistics.linear, noise)
    if drawn is None:
        raise BrokenChain(f"the weights of bond {mode} could not be drawn")
    return drawn.reshape(precisions.shape)


def energy(weights: FloatArray, statistics: WeightStatistics) -> float:
    """Sum of w f^2 over the observations: with f_n = a_n . lambda, lambda' (sum w a a') lambda."""
    own = weights.ravel()
    return float(own @ statistics.precision @ own)


def check_finite(core: FloatArray, mode: int) -> None:
    """Raise an error that names the mode and slice of a failed draw."""
    broken = np.flatnonzero(~np.isfinite(core).all(axis=1))
    if broken.size:
        raise BrokenChain(f"slice {broken[0]} of mode {mode} could not be drawn")
