"""The Gibbs sampler. One scan draws, mode by mode, the hyperparameters of the core's prior, the
slices of the core, the weights of its bond and their gains, and last the likelihood's parameters.

Each conditional is a pure function and cites its equation in docs/model.md. Work on observations
is a function of one block; `map_blocks` decides who does it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from bayesring.model import ring
from bayesring.infer.problem import BlockMap, BrokenChain, Problem, StepInfo
from bayesring.infer.streams import Purpose, Streams
from bayesring.engine.operations import CoreTask, Update
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import slices as slices_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Block
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray, RingSize, RingState


class WeightStatistics(NamedTuple):
    """Sums over observations for the weights of a bond, equation (7)."""

    precision: FloatArray
    """sum w a a', (S R_d, S R_d)."""
    linear: FloatArray
    """sum s a, (S R_d,)."""


def init(streams: Streams, problem: Problem, size: RingSize) -> RingState:
    """Random state to start a chain from: unit weights and gains, entries of f of size one."""
    shape, prior = problem.shape, problem.prior
    cores, hyper = [], []
    for mode, n_slices in enumerate(shape):
        rng = streams.rng(0, Purpose.START, mode)
        core = rng.standard_normal(size.core_shape(mode, n_slices))
        cores.append(core * size.spread(mode))
        hyper.append(prior.cores.update_hyper(rng, cores[-1]))
    ones = tuple(np.ones((size.strands, r)) for r in size.bonds)
    return RingState(tuple(cores), ones, ones, tuple(hyper), problem.likelihood.initial_nuisance())


def step(
    streams: Streams, scan: int, state: RingState, problem: Problem, map_blocks: BlockMap = map
) -> tuple[RingState, StepInfo]:
    """One scan: a pure function of the state, the data and the streams of `scan`."""
    cores, weights, gains, hyper, nuisance = (*map(list, state[:4]), state.nuisance)
    likelihood, prior = problem.likelihood, problem.prior
    for mode, blocks in enumerate(problem.views):
        hyper[mode] = prior.cores.update_hyper(streams.rng(scan, Purpose.HYPER, mode), cores[mode])
        task = CoreTask(
            mode,
            ring.flatten(ring.weighted(cores, weights), problem.dtype),
            weights[mode].ravel(),
            cores[mode],
            prior.cores.slice_prior(cores[mode].shape, hyper[mode]),
            likelihood,
            nuisance,
            streams,
            scan,
        )
        cores[mode], statistics = draw_core(task, blocks, problem.update, map_blocks)
        if prior.weights.learned:
            weights[mode] = draw_weights(
                streams, scan, mode, statistics, prior.weights.precisions(gains[mode])
            )
        gains[mode] = prior.weights.update_gains(
            streams.rng(scan, Purpose.GAINS, mode), weights[mode], gains[mode]
        )

    flat = ring.flatten(ring.weighted(cores, weights), problem.dtype)
    totals = likelihood_statistics(flat, problem, map_blocks)
    nuisance = likelihood.update_nuisance(streams.rng(scan, Purpose.NUISANCE), totals)
    new_state = RingState(tuple(cores), tuple(weights), tuple(gains), tuple(hyper), nuisance)
    log_likelihood = likelihood.total_log_prob(totals, nuisance)
    return new_state, StepInfo(totals, log_likelihood, energy(weights[-1], statistics))


def draw_core(
    task: CoreTask, blocks: tuple[Block, ...], update: Update, map_blocks: BlockMap = map
) -> tuple[FloatArray, WeightStatistics]:
    """Draw all slices of a core, equation (6), and the statistics of its bond's weights."""
    shape = task.core.shape
    rank = task.weights.size
    core = np.empty((shape[0], task.core[0].size))
    totals = WeightStatistics(np.zeros((rank, rank)), np.zeros(rank))
    parts: list[FloatArray] = []
    results = map_blocks(partial(update.draw, task), blocks)
    for block, result in zip(blocks, results, strict=True):
        if not block.is_part:
            core[block.first : block.first + len(result[0])] = result[0]
            totals = WeightStatistics(totals.precision + result[1], totals.linear + result[2])
            continue
        parts.append(result[0])
        following = block.number + 1
        if following == len(blocks) or blocks[following].first != block.first:
            core[block.first] = draw_whole_slice(task, block, parts, totals)
            parts = []
    check_finite(core, task)
    return core.reshape(shape), totals


def draw_whole_slice(
    task: CoreTask,
    last: Block,
    parts: list[FloatArray],
    totals: WeightStatistics,
) -> FloatArray:
    """Add up the parts of a slice that was cut, draw it, and add its terms to `totals`."""
    prior = task.slice_prior
    own = slice(None) if len(prior.linear) == 1 else slice(last.first, last.first + 1)
    rng = task.streams.rng(task.scan, Purpose.SLICES, task.mode, last.number)
    drawn: FloatArray = slices_kernel.draw_slice(
        sum(parts[1:], parts[0]),
        task.flat.bonds[task.mode],
        task.weights,
        prior.precision,
        prior.diagonal[own],
        prior.linear[own],
        rng.standard_normal(len(prior.precision)),
        totals.precision,
        totals.linear,
    )
    return drawn


def draw_weights(
    streams: Streams, scan: int, mode: int, statistics: WeightStatistics, precisions: FloatArray
) -> FloatArray:
    """lambda^(d) jointly from N(P^-1 h, P^-1), P = diag(phi) + sum w a a', h = sum s a (7)."""
    noise = streams.rng(scan, Purpose.WEIGHTS, mode).standard_normal(precisions.size)
    drawn = np.empty(precisions.size)
    precision = statistics.precision + np.diag(precisions.ravel())
    if not slices_kernel.draw_gaussian(precision, statistics.linear, noise, drawn):
        raise BrokenChain(f"the weights of bond {mode} could not be drawn")
    return drawn.reshape(precisions.shape)


def energy(weights: FloatArray, statistics: WeightStatistics) -> float:
    """Sum of w f^2 over the observations: with f_n = a_n . lambda, lambda' (sum w a a') lambda."""
    own = weights.ravel()
    return float(own @ statistics.precision @ own)


def likelihood_statistics(
    flat: FlatRing, problem: Problem, map_blocks: BlockMap = map
) -> FloatArray:
    """The likelihood's statistics at the current entries, summed over blocks in their order."""
    evaluate = partial(_block_statistics, flat, problem.likelihood)
    first, *rest = map_blocks(evaluate, problem.views[0])
    return np.asarray(sum(rest, first))


def _block_statistics(flat: FlatRing, likelihood: Likelihood, block: Block) -> FloatArray:
    fitted = entries_kernel.entries(*flat, 0, block.own, block.others, block.bounds[0])
    return likelihood.statistics(fitted, block.values)


def check_finite(core: FloatArray, task: CoreTask) -> None:
    """Stop with mode and slice named when a draw failed."""
    broken = np.flatnonzero(~np.isfinite(core).all(axis=1))
    if broken.size:
        raise BrokenChain(f"slice {broken[0]} of mode {task.mode} could not be drawn")
