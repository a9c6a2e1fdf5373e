"""Running chains: growing, bounding, settling and drawing, as `bayesring.infer.length` says.

1. **Growing and bounding**: the rank adapts and then rests, and, if the likelihood wants to be
   calibrated, some training data are held out to bound the noise.
2. **Settling**: all training data, rank and bounds fixed, the same bounds in every chain.
3. **Drawing**: draws are kept, thinned to the memory budget.

Chains run side by side from one look to the next, where what they have recorded decides for all of
them. A look depends on records up to its own scan alone, so chains that resume from different scans
decide as they would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import Held
from bayesring.engine.protocol import Engine
from bayesring.engine.spread import Spread
from bayesring.engine.streams import Purpose, Streams
from bayesring.infer import folds, gibbs, holdout
from bayesring.infer.chain import Chain, collect, explore
from bayesring.infer.length import (
    BOUNDING,
    FIRST_DRAWS,
    GROW,
    OPEN,
    STALLED,
    WINDOW,
    Deadline,
    Length,
    Stage,
    most_draws,
    next_draws,
    settled,
)
from bayesring.infer.precision import answer_error, enough, random_cells
from bayesring.infer.problem import Method, Problem, make_problem
from bayesring.infer.state import Outcome, ScanReport
from bayesring.likelihoods import Likelihood
from bayesring.model.growth import JointGrowth
from bayesring.model.rank import FixedRank
from bayesring.model.spec import Model
from bayesring.model.types import NOTHING, FloatArray, IntArray, RingState

FOLDS = "folds"
"""Piece of a checkpoint that holds the ranks of observations left out in folds."""


class Sampling(NamedTuple):
    """How chains are run."""

    length: Length
    seed: int
    chains: int
    method: Method = Method()
    scale: float = 1.0
    """Scale of the values, in which noise and errors are reported."""


class Parts:
    """The data of a run, as blocks: without the held-out observations, then all of them.

    Blocks are made when a chain first needs them, and those of one part go before the other's come.
    """

    def __init__(
        self,
        explored: Observations | Spread,
        held: Held | None,
        model: Model,
        method: Method,
        engine: Engine,
    ) -> None:
        self._handed, self._held = [explored], held
        self._model, self._method, self._engine = model, method, engine
        self._problem: Problem | None = None
        self._whole = held is None

    def problem(self, likelihood: Likelihood, whole: bool) -> Problem:
        """The problem without the held-out observations, or with them."""
        if whole and not self._whole:
            assert self._held is not None
            if self._problem is not None:
                views, shape = [self._problem.views[0]], self._problem.shape
                self._problem = None  # room for the next
                self._handed = [self._engine.take_back(views, shape)]
            self._handed = [self._engine.rejoin(self._handed.pop(), self._held)]
            self._whole = True
        if self._problem is None:
            self._problem = make_problem(
                self._handed.pop(), likelihood, self._model.prior, self._method, self._engine
            )
        return self._problem._replace(likelihood=likelihood)


class Ensemble:
    """Chains that decide together."""

    def __init__(
        self,
        chains: Sequence[Chain],
        parts: Parts,
        model: Model,
        length: Length,
        held: Observations | None,
        shape: tuple[int, ...],
        engine: Engine,
    ) -> None:
        self.chains, self._parts, self._engine = chains, parts, engine
        self._likelihood, prior, self._policy = model
        self._prior = prior.for_shape(shape)
        self._length, self._held, self._shape = length, held, shape
        self._deadline = Deadline(length.max_time)
        self.warmup = 0
        """Scans before the first draw, once there is one."""

    @property
    def hurries(self) -> bool:
        """Whether time is up."""
        return self._deadline.hurries(Stage.DRAW, OPEN)

    def explore(self, information: float) -> int:
        """Grow and bound; returns the last scan of it."""
        adapt = self._grow(information)
        end, scan = self._length.end(Stage.BOUND, adapt), adapt
        if end == OPEN and self._held is None:
            return adapt
        step, end = (WINDOW, adapt + BOUNDING) if end == OPEN else (end, end)
        while scan < end and not self._deadline.hurries(Stage.BOUND, scan - adapt):
            scan = min(scan + step, end)
            self._explore(until=scan, adapt=adapt)
        return scan

    def collect(self, explored: int, likelihood: Likelihood, n: int, seed: int) -> None:
        """Settle and draw."""
        end, scan = self._length.end(Stage.SETTLE, explored), explored
        information = n * likelihood.information
        while scan < end and not self._settled(explored, scan, end, information):
            scan = scan + WINDOW if end == OPEN else end
            self._collect(likelihood, until=scan, begin=scan)
        self.warmup = begin = scan
        end = self._length.end(Stage.DRAW, begin)
        if end < OPEN:
            self._collect(likelihood, until=end, begin=begin)
            return
        cells, most = random_cells(self._shape, seed), most_draws(n)
        while not self._answered(likelihood, cells, begin, scan, most):
            scan = begin + min(next_draws(scan - begin), most)
            self._collect(likelihood, until=scan, begin=begin, cells=cells)

    def _grow(self, information: float) -> int:
        """Let the rank adapt; returns the last scan of it."""
        policy, end = self._policy, self._length.end(Stage.GROW, 0)
        if not isinstance(policy, JointGrowth):
            if end == OPEN:
                end = 0 if isinstance(policy, FixedRank) else GROW
            self._explore(until=end, adapt=end)
            return end
        growth, scan = policy.begin(self._shape, information), 0
        while scan < end:
            scan = min(scan + policy.every, end)
            self._explore(until=scan, adapt=end)
            if scan % policy.every == 0:
                growth = policy.judge(growth, self._losses(scan // policy.every))
            strands = growth.taken if scan == end else growth.strands
            for chain in self.chains:
                if chain.sized < scan:
                    rng = partial(chain.streams.rng, scan, Purpose.RANK)
                    chain.state = policy.resized(rng, chain.state, strands, self._prior)
                    chain.sized = scan
            if end == OPEN and (growth.ended or self._deadline.hurries(Stage.GROW, scan)):
                return scan
        return scan

    def _losses(self, look: int) -> FloatArray | None:
        """Held-out losses of all chains together at a look, from one."""
        if self._held is None:
            return None
        likelihood = self.chains[0].likelihood or self._likelihood
        given = likelihood.locate(self._held.given, self._held.along)
        pooled = np.mean([chain.looks[look - 1] for chain in self.chains], axis=0)
        losses = likelihood.losses(self._held.values, pooled)
        return losses if given.weight is None else losses * given.weight / given.weight.mean()

    def _settled(self, begin: int, scan: int, end: int, information: float) -> bool:
        """Whether settling ends before its given end, or without one."""
        if end < OPEN or scan == begin:
            return False
        if self._deadline.hurries(Stage.SETTLE, scan - begin):
            return True
        traces = [chain.log_likelihood[begin:scan] for chain in self.chains]
        return settled(scan - begin, traces, information)

    def _answered(
        self, likelihood: Likelihood, cells: IntArray, begin: int, scan: int, most: int
    ) -> bool:
        """Whether the draws until this scan are enough."""
        draws = scan - begin
        if draws >= most or self._deadline.hurries(Stage.DRAW, draws):
            return True
        if draws == 0:
            return False
        entries, nuisance = (
            np.array([[one[part] for one in chain.watched[:draws]] for chain in self.chains])
            for part in (0, 1)
        )
        given = likelihood.locate(NOTHING, lambda mode: cells[:, mode])
        half, whole = (
            answer_error(likelihood, entries[:, :end], nuisance[:, :end], given)
            for end in (draws // 2, draws)
        )
        return enough(likelihood, whole) or (draws > FIRST_DRAWS and whole > STALLED * half)

    def _explore(self, until: int, adapt: int) -> None:
        """Run the chains that are not there yet to scan `until`."""
        if any(chain.scan < until for chain in self.chains):
            ask = partial(
                explore,
                problem=self._parts.problem(self._likelihood, whole=False),
                policy=self._policy,
                length=self._length,
                held=self._held,
                engine=self._engine,
                until=until,
                adapt=adapt,
            )
            self._engine.map_chains(ask, self.chains)

    def _collect(
        self, likelihood: Likelihood, until: int, begin: int, cells: IntArray | None = None
    ) -> None:
        """The same with all observations."""
        if any(chain.scan < until for chain in self.chains):
            ask = partial(
                collect,
                problem=self._parts.problem(likelihood, whole=True),
                length=self._length,
                engine=self._engine,
                until=until,
                begin=begin,
                cells=cells,
            )
            self._engine.map_chains(ask, self.chains)

    def write_down(self) -> None:
        """Save the chains that rest, after an interrupt; one that was at work has saved itself."""
        for chain in self.chains:
            if chain.rests and chain.scan:
                chain.write_down(always=True)


def run_chains(
    data: Observations | Spread,
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
    calibrates = likelihood.calibrates
    if (calibrates or policy.judges) and length.long_enough:
        explored, held = engine.hold_out(data, seed)
    n, shape = data.n, data.shape
    crossed = calibrates and likelihood.ranks_calibrate and length.long_enough
    crossed = crossed and folds.FEWEST <= n < folds.MOST
    few = in_order(data) if crossed and isinstance(data, Observations) else None
    size = policy.start(len(shape))
    empty = Problem(shape, (), (), likelihood, prior.for_shape(shape), method.update, method.dtype)
    chains = []
    for number in range(n_chains):
        streams = Streams.of_chain(seed, number)
        state = starts[number] if starts else gibbs.init(streams, empty, size)
        chains.append(
            Chain(
                number, streams, state, scale, n_chains, report, checkpoint, likelihood=likelihood
            )
        )
    for chain in chains:
        chain.resume()
    resumed = [chain.scan for chain in chains]
    information = explored.n * likelihood.information
    parts = Parts(explored, held, model, method, engine)
    del data, explored  # blocks hold all of it
    watched = None if held is None else held.data
    run = Ensemble(chains, parts, model, length, watched, shape, engine)
    try:
        last = run.explore(information)
    except (KeyboardInterrupt, SystemExit):
        run.write_down()
        raise
    if held is not None:
        predicted = holdout.pooled(held.data, [chain.moments[-1] for chain in chains])
        likelihood = predicted.calibrated(likelihood) if calibrates else likelihood
    interrupt: BaseException | None = None
    try:
        run.collect(last, likelihood, n, seed)
        for chain, begun in zip(chains, resumed, strict=True):
            if chain.scan > begun:
                chain.write_down(always=True)
    except (KeyboardInterrupt, SystemExit) as error:
        run.write_down()
        if not all(chain.kept for chain in chains):
            raise
        interrupt = error
    warmup, hurries = run.warmup, run.hurries
    del run, parts
    if few is not None and interrupt is None and not hurries:
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
    if calibrates and predicted is not None and (few is None or interrupt or hurries):
        likelihood = predicted.calibrated(
            likelihood, np.concatenate([draws.nuisance for draws, _ in found])
        )
    return Outcome(likelihood, found, predicted, interrupt=interrupt, warmup=warmup)
