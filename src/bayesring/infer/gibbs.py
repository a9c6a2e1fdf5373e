"""The Gibbs sampler. One scan draws, mode by mode, the hyperparameters of the core's prior, the
slices of the core, the weights of its bond and their gains, and last the likelihood's parameters.

Each conditional is a pure function and cites its equation in docs/model.md. Work on observations
is an operation on one block; the engine decides where it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.blocks import Block
from bayesring.engine.operations import CoreTask, DrawnRuns, LooseEnd, StatisticsTask, summed
from bayesring.engine.protocol import Blocks, Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer.problem import BrokenChain, Problem, StepInfo
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState, SlicePrior
from bayesring.priors import Coupling, ModePrior

RUN = 64
"""Number of slices drawn jointly if slices depend on their neighbours."""
WAKE = 8
"""Scans after which slices that do not depend on each other may begin to: in between they are drawn
one by one, as those of any exchangeable prior, and those that do depend may not cease to."""
PROPOSE = 2
"""Scans after which another length scale is proposed with slices integrated out, which takes as
long as to draw the slices; given the slices, it moves in every scan. WAKE is a multiple of it."""
LEAST_WORK = 200
"""Observations of a slice that its share of a patch may take as long as, however few it has."""
PROPOSAL = 1
"""Block number of the stream of hyperparameters from which alternatives are proposed."""


class WeightStatistics(NamedTuple):
    """Sums over observations for the weights of a bond, equation (7)."""

    precision: FloatArray
    """sum w a a', (S R_d, S R_d)."""
    linear: FloatArray
    """sum s a, (S R_d,)."""


def init(streams: Streams, problem: Problem, size: RingSize) -> RingState:
    """Random initial state of a chain: unit weights and gains, f with variance one."""
    cores: list[FloatArray] = []
    hyper: list[Any] = []
    for mode, n_slices in enumerate(problem.shape):
        prior = problem.prior.of_mode(mode, cores)
        rng = streams.rng(0, Purpose.START, mode)
        core = rng.standard_normal(size.core_shape(mode, n_slices))
        cores.append(prior.start(core * size.spread(mode)))
        hyper.append(prior.update_hyper(rng, cores[-1]))
    ones = tuple(np.ones((size.strands, r)) for r in size.bonds)
    return RingState(tuple(cores), ones, ones, tuple(hyper), problem.likelihood.initial_nuisance())


def step(
    streams: Streams, scan: int, state: RingState, problem: Problem, engine: Engine = ONE_THREAD
) -> tuple[RingState, StepInfo]:
    """One scan: a pure function of the state, the data and the streams of `scan`."""
    cores, weights, gains, hyper, nuisance = (*map(list, state[:4]), state.nuisance)
    likelihood, bonds = problem.likelihood, problem.prior.weights
    flat = ring.flatten(ring.weighted(cores, weights), problem.dtype)
    for mode in range(len(cores)):
        prior = problem.prior.of_mode(mode, cores)
        rng = streams.rng(scan, Purpose.HYPER, mode)
        hyper[mode] = prior.update_hyper(rng, cores[mode], hyper[mode])
        task = CoreTask(
            flat,
            weights[mode].ravel(),
            cores[mode],
            problem.prior.slice_prior(mode, cores, hyper),
            likelihood,
            nuisance,
            streams,
            scan,
        )
        asleep = scan % WAKE != 0 and prior.is_exchangeable(hyper[mode])
        if prior.coupling is Coupling.NONE or asleep:
            cores[mode], statistics = draw_core(task, mode, problem, engine)
        else:
            cores[mode], hyper[mode], statistics = draw_coupled(
                task, problem.views[mode], prior, hyper[mode], engine
            )
        if bonds.learned:
            weights[mode] = draw_weights(
                streams, scan, mode, statistics, bonds.precisions(gains[mode]), engine
            )
        gains[mode] = bonds.update_gains(
            streams.rng(scan, Purpose.GAINS, mode), weights[mode], gains[mode]
        )
        [own] = ring.weighted([cores[mode]], [weights[mode]])
        flat = ring.with_core(flat, mode, own)

    asked = StatisticsTask(flat, likelihood, nuisance, streams, scan)
    totals = engine.statistics(asked, problem.views[0])
    if not np.all(totals < np.inf):  # nor not a number, for which no draw would ever be accepted
        raise BrokenChain("the parameters of the likelihood could not be drawn")
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
    task: CoreTask, blocks: Blocks, prior: ModePrior, hyper: Any, engine: Engine = ONE_THREAD
) -> tuple[FloatArray, Any, WeightStatistics]:
    """Draw the slices of a core that depend on each other, pass after pass, and perhaps `hyper`.

    The runs of a pass are independent given all other slices. Run boundaries depend on the scan and
    never on the slices. In the first pass of some scans, the prior may propose other
    hyperparameters: a Metropolis step with all runs of the pass integrated out, equation (26),
    chooses between them.
    """
    mode, totals, core = blocks[0].mode, _no_statistics(task), task.core.copy()
    task = task._replace(seen={}) if prior.coupling is Coupling.PATCHES else task
    rng = task.streams.rng(task.scan, Purpose.HYPER, mode, PROPOSAL)
    n = max(sum(int(block.bounds[-1]) for block in blocks) / len(core), LEAST_WORK)
    for number, runs in enumerate(passes(prior, len(core), task.scan, n / core[0].size)):
        due = number == 0 and task.scan % PROPOSE == 0
        proposed = prior.alternatives(rng, hyper) if due else (hyper,)
        if task.scan % WAKE and any(map(prior.is_exchangeable, proposed)):
            proposed = (hyper,)  # as it could not come back in such a scan
        priors = tuple(prior.slice_prior(core, each) for each in proposed)
        asked = task._replace(core=core, runs=runs, alternatives=priors)
        drawn = _all_runs(asked, mode, blocks, engine)
        free = np.zeros(len(core), dtype=bool)
        for first, last in runs:
            free[np.arange(first, last) % len(core)] = True
        chosen = 0
        if len(proposed) > 1:
            masses = [
                prior.log_constant(core.shape, own) + found.log_mass + _held_mass(terms, core, free)
                for own, terms, found in zip(proposed, priors, drawn, strict=True)
            ]
            chosen = int(np.log(rng.random()) < masses[1] - masses[0])
            hyper = proposed[chosen]
        core.reshape(len(core), -1)[free] = drawn[chosen].slices[free]
        totals = WeightStatistics(
            totals.precision + drawn[chosen].precision, totals.linear + drawn[chosen].linear
        )
    check_finite(core.reshape(len(core), -1), mode)
    return core, hyper, totals


def _all_runs(task: CoreTask, mode: int, blocks: Blocks, engine: Engine) -> list[DrawnRuns]:
    """All runs of a pass under every alternative; runs that blocks share are drawn here."""
    rank, shape = task.weights.size, (len(task.core), task.core[0].size)
    found = [summed([], np.full(shape, np.nan), rank) for _ in task.alternatives]
    ends: dict[int, list[LooseEnd]] = {}
    assert task.runs is not None

    def put(first: int, drawn: Sequence[DrawnRuns]) -> None:
        for place, (before, own) in enumerate(zip(found, drawn, strict=True)):
            here = np.flatnonzero(~np.isnan(own.slices[:, 0]))
            before.slices[(first + here) % len(before.slices)] = own.slices[here]
            found[place] = summed([before, own], before.slices, rank)

    for block, (drawn, loose) in zip(blocks, engine.draw_runs(task, blocks), strict=True):
        put(block.first, drawn)
        for end in loose:
            first, last = run_of(task.runs, end.first, shape[0])
            parts = ends.setdefault(first, [])
            parts.append(end)
            if sum(len(each.noise) for each in parts) < last - first:
                continue
            parts.sort(key=lambda each: (each.first - first) % shape[0])
            statistics = np.concatenate([each.statistics for each in parts])
            noise = np.concatenate([each.noise for each in parts])
            put(first, engine.draw_run(task, mode, first, statistics, noise))
            del ends[first]
    return found


def run_of(runs: IntArray, i: int, n_slices: int) -> tuple[int, int]:
    """First and end slice of the run with slice i; a run may go on at the first slice."""
    within = ((runs[:, 0] <= i) & (i < runs[:, 1])) | (i + n_slices < runs[:, 1])
    first, last = runs[int(np.argmax(within))]
    return int(first), int(last)


def _held_mass(prior: SlicePrior, core: FloatArray, free: NDArray[np.bool]) -> float:
    """-g' M g / 2 + h' g of the slices that are not free; in a chain, none are neighbours."""
    slices = core.reshape(len(core), -1)[~free]
    factors = np.broadcast_to(prior.factors, free.shape)[~free]
    linear = np.broadcast_to(prior.linear, (free.size, slices.shape[1]))[~free]
    squares = np.einsum("ij,jk,ik->i", slices, prior.precision, slices)
    mass = float(np.sum(linear * slices) - 0.5 * factors @ squares)
    if prior.graph is None:
        return mass
    held = np.where(free[:, None], 0.0, core.reshape(len(core), -1))
    return mass + 0.5 * float(np.sum((prior.graph.pull(held) @ prior.precision) * held))


def passes(prior: ModePrior, n_slices: int, scan: int, room: float = np.inf) -> list[IntArray]:
    """Runs (n, 2) of slices for every pass: patches, those of one colour, or those of a chain.

    A chain is cut at single slices, every `RUN` slices, which are drawn in a second pass; from scan
    to scan these move by half a run. `room` is for patches, see `ModePrior.patches`.
    """
    if prior.coupling is Coupling.PATCHES:
        return getattr(prior, "base", prior).patches(n_slices, scan, room)
    each = np.stack([np.arange(n_slices), np.arange(1, n_slices + 1)], axis=1)
    if prior.coupling is Coupling.GRAPH:
        colours = prior.colours(n_slices)
        return [each[colours == colour] for colour in range(int(colours.max()) + 1)]
    borders = np.arange(RUN // 2 if scan % 2 else RUN, n_slices, RUN + 1)
    edges = np.concatenate([[-1], borders, [n_slices]])
    runs = np.stack([edges[:-1] + 1, edges[1:]], axis=1)
    return [runs[runs[:, 1] > runs[:, 0]], *([each[borders]] if borders.size else [])]


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
    finite = np.isfinite(core)
    if not finite.all():
        broken = np.flatnonzero(~finite.all(axis=1))
        raise BrokenChain(f"slice {broken[0]} of mode {mode} could not be drawn")
