"""Running chains: exploration, settling, kept draws within a memory budget.

1. **Exploration**, the first part of the warm-up: the rank adapts, and, if the likelihood wants to
   be calibrated, some training data are held out to bound the noise.
2. **Settling**, the rest of the warm-up: all training data, rank and bounds fixed, the same bounds
   in every chain.
3. **Draws**, kept and thinned to the memory budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.blocks import observations_of
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import hold_out, rejoin
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import folds, gibbs, holdout
from bayesring.infer.holdout import RunningMoments, Watch
from bayesring.infer.problem import BrokenChain, Method, Problem, StepInfo, make_problem
from bayesring.infer.state import Draws, Outcome, ScanReport, Trace
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.rank import Look, RankPolicy
from bayesring.model.spec import Model
from bayesring.model.types import FloatArray, RingState

STANDING = (
    "state",
    "scan",
    "rank",
    "log_likelihood",
    "described",
    "losses",
    "moments",
    "likelihood",
    "kept",
)
"""Attributes of a chain that change while it runs, and that a checkpoint saves."""
FOLDS = "folds"
"""Piece of a checkpoint that holds the ranks of observations left out in folds."""
ADAPT, EXPLORE = 1 / 2, 3 / 4
"""Fractions of the warm-up after which the rank is fixed, and after which exploration ends."""
CALIBRATE_EVERY, CALIBRATE_AFTER = 10, 20
"""Scans between two calibrations of a likelihood, and scans before the first."""


class Length(NamedTuple):
    """How long a chain runs, and the memory for its draws."""

    warmup: int
    draws: int
    max_bytes: int
    """Memory for the kept draws of one chain."""

    @property
    def scans(self) -> int:
        """Number of scans, warm-up included."""
        return self.warmup + self.draws

    @property
    def adapt(self) -> int:
        """Last scan after which the rank may change."""
        return int(ADAPT * self.warmup)

    @property
    def explore(self) -> int:
        """Last scan of exploration."""
        return int(EXPLORE * self.warmup)

    def thinning(self, draw_bytes: int) -> int:
        """Scans per kept draw such that the draws fit in memory."""
        return max(1, -(-self.draws * draw_bytes // self.max_bytes))


class Kept(NamedTuple):
    """One kept draw."""

    ring: ring.FlatRing
    nuisance: FloatArray
    scan: int
    weights: FloatArray


@dataclass
class Chain:
    """A running chain: its state and everything recorded so far."""

    number: int
    streams: Streams
    state: RingState
    scale: float = 1.0
    report: Callable[[ScanReport], None] | None = None
    checkpoint: Checkpoint = NOWHERE
    scan: int = 0
    rank: list[tuple[int, ...]] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    described: dict[str, list[float]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    """Held-out loss after each scan of exploration; empty if nothing is held out."""
    moments: tuple[RunningMoments, ...] = ()
    """Running moments at the held-out observations, see `Watch`."""
    likelihood: Likelihood | None = None
    """Calibrated during exploration."""
    kept: list[Kept] = field(default_factory=list)

    def resume(self) -> None:
        """Restore the last saved state, if there is one."""
        example = (self.state, RunningMoments.empty(0), self.kept_now(), self.likelihood)
        found = self.checkpoint.find(self._piece, example)
        if found is None:
            return
        for name in STANDING:
            setattr(self, name, found[name])

    def write_down(self, always: bool = False) -> None:
        """Save the state between two scans, if a write is due."""
        standing = {name: getattr(self, name) for name in STANDING}
        self.checkpoint.keep(self._piece, standing, always=always)

    @property
    def _piece(self) -> str:
        return f"chain-{self.number}"

    def kept_now(self) -> Kept:
        """The current draw."""
        weights = np.concatenate([each.ravel() for each in self.state.weights])
        return Kept(self.flat, self.state.nuisance, self.scan, weights)

    def step(self, problem: Problem, engine: Engine) -> StepInfo:
        """Run one scan, record its numbers and report them."""
        self.scan += 1
        try:
            self.state, info = gibbs.step(self.streams, self.scan, self.state, problem, engine)
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
            self.report(ScanReport(self.number, self.scan, self.state.rank, numbers))
        return info

    @property
    def flat(self) -> ring.FlatRing:
        """The current ring, weights folded into the cores."""
        return ring.flatten(ring.weighted(self.state.cores, self.state.weights))

    @property
    def draws(self) -> Draws:
        """The kept draws as arrays; there must be at least one."""
        rings, nuisance, scans, weights = zip(*self.kept, strict=True)
        return Draws(
            np.stack([one.flat for one in rings]),
            rings[0].starts,
            rings[0].bonds,
            rings[0].strands,
            np.stack(nuisance),
            np.array(scans),
            np.stack(weights),
        )

    @property
    def trace(self) -> Trace:
        """The recorded numbers as arrays."""
        return Trace(
            np.array(self.rank),
            np.array(self.log_likelihood),
            {name: np.array(numbers) for name, numbers in self.described.items()},
        )


def explore(
    chain: Chain,
    problem: Problem,
    policy: RankPolicy,
    length: Length,
    held: Observations | None = None,
    engine: Engine = ONE_THREAD,
    until: int | None = None,
) -> None:
    """Let the rank adapt, and the likelihood calibrate itself on held-out observations.

    Ends with the exploration of `length`, or already after scan `until`. While the rank changes,
    the likelihood is calibrated by the last scans, afterwards by all since.
    """
    watch = None if held is None else Watch(held, *chain.moments)
    calibrates = problem.likelihood.calibrates
    if chain.likelihood is not None:
        problem = problem._replace(likelihood=chain.likelihood)
    last = length.explore if until is None else min(until, length.explore)
    while chain.scan < last:
        info = chain.step(problem, engine)
        adapts = chain.scan <= length.adapt
        if watch is not None:
            chain.losses.append(
                watch.see(chain.flat, problem.likelihood, chain.state.nuisance, engine)
            )
            moments = watch.recent if adapts else watch.settled
            due = moments.n_scans >= CALIBRATE_AFTER and chain.scan % CALIBRATE_EVERY == 0
            if calibrates and due:
                given = problem.likelihood.locate(watch.data.given, watch.data.along)
                likelihood = problem.likelihood.calibrate(
                    watch.data.values, moments.mean, moments.variance, given=given
                )
                chain.likelihood = likelihood
                problem = problem._replace(likelihood=likelihood)
            if chain.scan == length.adapt:
                watch.settle()
            chain.moments = (watch.recent, watch.settled)
        if adapts:
            left = length.adapt - chain.scan
            look = Look(
                partial(chain.streams.rng, chain.scan, Purpose.RANK),
                chain.scan,
                left,
                info.energy,
                problem.counts,
                problem.information,
                problem.prior,
                chain.losses,
            )
            chain.state = policy.adapt(chain.state, look)
        chain.write_down(always=chain.scan == last)


def collect(
    chain: Chain, problem: Problem, length: Length, engine: Engine = ONE_THREAD
) -> tuple[Draws, Trace]:
    """Settle, then keep draws."""
    while chain.scan < length.warmup:
        chain.step(problem, engine)
        chain.write_down()
    thinning = length.thinning(sum(core.nbytes for core in chain.state.cores))
    for place in range(chain.scan - length.warmup + 1, length.draws + 1):
        chain.step(problem, engine)
        if place % thinning == 0 or (place == length.draws and not chain.kept):
            chain.kept.append(chain.kept_now())
        chain.write_down(always=place == length.draws)
    return chain.draws, chain.trace


class Sampling(NamedTuple):
    """How chains are run."""

    length: Length
    seed: int
    chains: int
    method: Method = Method()
    scale: float = 1.0
    """Scale of the values, in which noise and errors are reported."""


def run_chains(
    data: Observations,
    model: Model,
    sampling: Sampling,
    engine: Engine,
    report: Callable[[ScanReport], None] | None = None,
    checkpoint: Checkpoint = NOWHERE,
    starts: Sequence[RingState] = (),
) -> Outcome:
    """Run several chains on an open engine, resuming from the checkpoint.

    They begin at random, or at `starts`. If there are few observations, all are left out in folds
    afterwards, so that intervals can be calibrated; draws are not touched by that.
    Interrupted when every chain has kept a draw, it returns what there is, and why.
    """
    likelihood, prior, policy = model
    length, seed, n_chains, method, scale = sampling
    explored, held, predicted = data, None, None
    calibrates, long_enough = (
        likelihood.calibrates,
        length.explore - length.adapt >= CALIBRATE_AFTER,
    )
    if (calibrates or policy.judges) and long_enough:
        explored, held = hold_out(data, seed)
    crossed = calibrates and likelihood.ranks_calibrate and long_enough
    crossed = crossed and folds.FEWEST <= len(data.values) < folds.MOST
    few = in_order(data) if crossed else None
    shape, size = data.shape, policy.start(len(data.shape))
    empty = Problem(shape, (), (), likelihood, prior.for_shape(shape), method.update, method.dtype)
    chains = []
    for number in range(n_chains):
        streams = Streams.of_chain(seed, number)
        state = starts[number] if starts else gibbs.init(streams, empty, size)
        chains.append(
            Chain(number, streams, state, scale, report, checkpoint, likelihood=likelihood)
        )
    for chain in chains:
        chain.resume()
    finished = all(chain.scan == length.scans for chain in chains)
    handed = [explored]
    del data, explored  # blocks hold all of it
    problem: Problem | None = None
    if not finished:
        problem = make_problem(handed.pop(), likelihood, prior, method, engine)
        watched = None if held is None else held.data
        engine.map_chains(
            partial(
                explore,
                problem=problem,
                policy=policy,
                length=length,
                held=watched,
                engine=engine,
            ),
            chains,
        )
    if held is not None:
        predicted = holdout.pooled(held.data, [chain.moments[-1] for chain in chains])
        likelihood = predicted.calibrated(likelihood) if calibrates else likelihood
    if problem is not None and held is not None:
        first, problem = problem.views[0], problem._replace(views=())  # room for the next
        explored = observations_of(first, problem.shape)
        del first
        handed = [rejoin(explored, held)]
        del explored
        problem = make_problem(handed.pop(), likelihood, prior, method, engine)
    interrupt: BaseException | None = None
    if problem is not None:
        try:
            engine.map_chains(
                partial(collect, problem=problem, length=length, engine=engine), chains
            )
        except (KeyboardInterrupt, SystemExit) as error:
            if not all(chain.kept for chain in chains):
                raise
            interrupt = error
    if few is not None and interrupt is None:
        crossing = folds.Crossing(likelihood, prior, method, seed)
        states = [chain.state for chain in chains]
        try:
            ranks = checkpoint.find(FOLDS, ())
            if ranks is None:
                ranks = folds.ranks_left_out(few, states, crossing, engine)
                checkpoint.keep(FOLDS, ranks, always=True)
            likelihood = likelihood.calibrate_by_ranks(ranks)
        except (KeyboardInterrupt, SystemExit) as error:
            interrupt = error
    found = [(chain.draws, chain.trace) for chain in chains]
    if calibrates and predicted is not None and (few is None or interrupt is not None):
        likelihood = predicted.calibrated(
            likelihood, np.concatenate([draws.nuisance for draws, _ in found])
        )
    return Outcome(likelihood, found, predicted, interrupt=interrupt)
