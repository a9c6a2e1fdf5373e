"""Running chains: exploration, settling, kept draws within a memory budget.

1. **Exploration**, the first part of the warm-up: the rank adapts, and, if the likelihood wants to
   be calibrated, some training data are held out to bound the noise.
2. **Settling**, the rest of the warm-up: all training data, rank and bounds fixed, the same bounds
   in every chain.
3. **Draws**, kept and thinned to the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bayesring.model import ring
from bayesring.infer import gibbs, holdout
from bayesring.infer.problem import BlockMap, BrokenChain, Problem, StepInfo, make_problem
from bayesring.infer.holdout import Predicted, RunningMoments, Watch
from bayesring.infer.learner import Learner
from bayesring.model.rank import Look, RankPolicy
from bayesring.infer.streams import Streams
from bayesring.engine.threads import ChainThreads
from bayesring.engine.operations import JOINT, Update
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Observations
from bayesring.priors.protocol import RingPrior
from bayesring.model.types import FloatArray, IntArray, RingState

ADAPT, EXPLORE = 1 / 2, 3 / 4
"""Shares of the warm-up after which the rank rests, and after which exploration ends."""
CALIBRATE_EVERY, CALIBRATE_AFTER = 10, 20
"""Scans between two calibrations of a likelihood, and scans that the first needs."""


class Schedule(NamedTuple):
    """How long a chain runs and how much of it is kept."""

    warmup: int
    draws: int
    max_bytes: int
    """Budget of the kept draws of one chain."""

    @property
    def adapt(self) -> int:
        """Last scan after which the rank may change."""
        return int(ADAPT * self.warmup)

    @property
    def explore(self) -> int:
        """Last scan of exploration."""
        return int(EXPLORE * self.warmup)

    def thinning(self, draw_bytes: int) -> int:
        """Scans per kept draw, so that the draws fit in the budget."""
        return max(1, -(-self.draws * draw_bytes // self.max_bytes))


class Draws(NamedTuple):
    """Kept draws of one chain, all of one rank, weights folded into the cores."""

    flat: FloatArray
    """(draws, N), one row per draw, laid out as in `ring.FlatRing`."""
    starts: IntArray
    bonds: IntArray
    """(D,), rank of each bond of a strand."""
    strands: int
    nuisance: FloatArray
    """(draws, p)."""
    scans: IntArray
    """(draws,), which scans were kept, from 1."""
    weights: FloatArray
    """(draws, W), lambda of every bond, end to end."""

    @property
    def rank(self) -> tuple[int, ...]:
        """Rank of each bond, all strands together."""
        return tuple(self.strands * int(number) for number in self.bonds)

    def bond_weights(self, row: int, bond: int) -> FloatArray:
        """lambda^(d) of one draw, (S, R_d)."""
        ends = np.cumsum(self.rank)
        return np.split(self.weights[row], ends[:-1])[bond].reshape(self.strands, -1)


class Trace(NamedTuple):
    """What was seen at every scan of one chain, warm-up included."""

    rank: IntArray
    """(scans, D)."""
    log_likelihood: FloatArray
    """(scans,)."""
    described: dict[str, FloatArray]
    """The likelihood's own numbers, (scans,) each."""


class Outcome(NamedTuple):
    """What a run of several chains gives."""

    likelihood: Likelihood
    """The one that the chains ended with: calibrated, if it had open bounds."""
    chains: list[tuple[Draws, Trace]]
    held_out: Predicted | None
    """Expectations for held-out observations before the chains saw them, if any were held out."""
    learners: tuple[Learner, ...] = ()
    """The rings of online EM, which may go on with more data."""
    failure: Exception | None = None
    """What ended a stream of data before its time."""


class Report(NamedTuple):
    """Progress of one chain after one scan."""

    chain: int
    scan: int
    rank: tuple[int, ...]
    described: dict[str, float]


@dataclass
class Chain:
    """A chain on its way: where it stands and what has been seen."""

    number: int
    streams: Streams
    state: RingState
    scale: float = 1.0
    report: Callable[[Report], None] | None = None
    scan: int = 0
    rank: list[tuple[int, ...]] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    described: dict[str, list[float]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    """Held-out loss after each scan of exploration; empty if nothing is held out."""

    def step(self, problem: Problem, map_blocks: BlockMap) -> StepInfo:
        """Go on by one scan, write down what is seen, and report it."""
        self.scan += 1
        try:
            self.state, info = gibbs.step(self.streams, self.scan, self.state, problem, map_blocks)
        except (BrokenChain, np.linalg.LinAlgError) as error:
            raise BrokenChain(
                f"Sampling broke down in chain {self.number}, scan {self.scan}: {error}. Numbers "
                "became too large or are not finite; try a smaller rank, or look for extreme "
                "outliers among the values."
            ) from None
        numbers = problem.likelihood.describe(info.statistics, self.state.nuisance, self.scale)
        self.rank.append(self.state.rank)
        self.log_likelihood.append(info.log_likelihood)
        for name, number in numbers.items():
            self.described.setdefault(name, []).append(float(number))
        if self.report is not None:
            self.report(Report(self.number, self.scan, self.state.rank, numbers))
        return info

    @property
    def flat(self) -> ring.FlatRing:
        """The ring as it stands, weights folded in."""
        return ring.flatten(ring.weighted(self.state.cores, self.state.weights))

    @property
    def trace(self) -> Trace:
        """What was seen, as arrays."""
        return Trace(
            np.array(self.rank),
            np.array(self.log_likelihood),
            {name: np.array(numbers) for name, numbers in self.described.items()},
        )


def explore(
    chain: Chain,
    problem: Problem,
    policy: RankPolicy,
    schedule: Schedule,
    held: Observations | None = None,
    map_blocks: BlockMap = map,
    until: int | None = None,
) -> RunningMoments | None:
    """Let the rank adapt, and the likelihood calibrate itself on held-out observations.

    Ends with the exploration of `schedule`, or already after scan `until`. While the rank changes,
    the likelihood is calibrated by the last scans, afterwards by all since; the moments of these
    are what is returned.
    """
    watch = None if held is None else Watch(held)
    last = schedule.explore if until is None else min(until, schedule.explore)
    while chain.scan < last:
        info = chain.step(problem, map_blocks)
        adapts = chain.scan <= schedule.adapt
        if watch is not None:
            chain.losses.append(watch.see(chain.flat, problem.likelihood, chain.state.nuisance))
            moments = watch.recent if adapts else watch.settled
            if moments.n_scans >= CALIBRATE_AFTER and chain.scan % CALIBRATE_EVERY == 0:
                likelihood = problem.likelihood.calibrate(
                    watch.data.values, moments.mean, moments.variance
                )
                problem = problem._replace(likelihood=likelihood)
            if chain.scan == schedule.adapt:
                watch.settle()
        if adapts:
            left = schedule.adapt - chain.scan
            look = Look(chain.streams, chain.scan, left, info, problem, chain.losses)
            chain.state = policy.adapt(chain.state, look)
    return None if watch is None else watch.settled


def collect(
    chain: Chain, problem: Problem, schedule: Schedule, map_blocks: BlockMap = map
) -> tuple[Draws, Trace]:
    """Settle, then keep draws."""
    while chain.scan < schedule.warmup:
        chain.step(problem, map_blocks)
    thinning = schedule.thinning(sum(core.nbytes for core in chain.state.cores))
    kept: list[ring.FlatRing] = []
    nuisance: list[FloatArray] = []
    scans: list[int] = []
    weights: list[FloatArray] = []
    for place in range(1, schedule.draws + 1):
        chain.step(problem, map_blocks)
        if place % thinning == 0 or (place == schedule.draws and not kept):
            kept.append(chain.flat)
            nuisance.append(chain.state.nuisance)
            scans.append(chain.scan)
            weights.append(np.concatenate([each.ravel() for each in chain.state.weights]))
    draws = Draws(
        np.stack([one.flat for one in kept]),
        kept[0].starts,
        kept[0].bonds,
        kept[0].strands,
        np.stack(nuisance),
        np.array(scans),
        np.stack(weights),
    )
    return draws, chain.trace


def run_chains(
    data: Observations,
    likelihood: Likelihood,
    prior: RingPrior,
    policy: RankPolicy,
    schedule: Schedule,
    seed: int,
    n_chains: int,
    n_jobs: int,
    scale: float = 1.0,
    report: Callable[[Report], None] | None = None,
    update: Update = JOINT,
    block_size: int | None = None,
    dtype: str = "float64",
) -> Outcome:
    """Run several chains on `n_jobs` threads."""
    explored, held, predicted = data, None, None
    wanted = likelihood.calibrates or policy.judges
    if wanted and schedule.explore - schedule.adapt >= CALIBRATE_AFTER:
        explored, held = holdout.hold_out(data, seed)
    problem = make_problem(explored, likelihood, prior, update, block_size, dtype)
    with ChainThreads(n_chains, n_jobs) as threads:
        size = policy.start(len(data.shape))
        chains = []
        for number in range(n_chains):
            streams = Streams.of_chain(seed, number)
            state = gibbs.init(streams, problem, size)
            chains.append(Chain(number, streams, state, scale, report))

        def explore_one(chain: Chain) -> RunningMoments | None:
            return explore(chain, problem, policy, schedule, held, threads.map_blocks)

        moments = [each for each in threads.map_chains(explore_one, chains) if each is not None]
        if held is not None:
            predicted = holdout.pooled(held, moments)
            likelihood = likelihood.calibrate(held.values, predicted.mean, predicted.variance)
            explored, problem = data, problem._replace(views=())  # room for the next
            problem = make_problem(data, likelihood, prior, update, block_size, dtype)

        def collect_one(chain: Chain) -> tuple[Draws, Trace]:
            return collect(chain, problem, schedule, threads.map_blocks)

        return Outcome(likelihood, threads.map_chains(collect_one, chains), predicted)
