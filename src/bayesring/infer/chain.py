"""One chain: its state, what it records, and its scans while it explores and while it draws.

What all chains decide together is in `bayesring.infer.chains`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.observations import Observations
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.engine.threads import ONE_THREAD, Stopped
from bayesring.infer import gibbs
from bayesring.infer.holdout import RunningMoments, Watch
from bayesring.infer.length import OPEN, Length, Stage
from bayesring.infer.problem import BrokenChain, Problem, StepInfo
from bayesring.infer.state import Draws, ScanReport, Trace, rounded
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.growth import JointGrowth
from bayesring.model.rank import Look, RankPolicy
from bayesring.model.types import FloatArray, IntArray, RingState

STANDING = (
    "state",
    "scan",
    "sized",
    "rank",
    "log_likelihood",
    "described",
    "losses",
    "looks",
    "moments",
    "likelihood",
    "kept",
    "thinning",
    "watched",
)
"""Attributes of a chain that change while it runs, and that a checkpoint saves."""
CALIBRATE_EVERY, CALIBRATE_AFTER = 10, 20
"""Scans between two calibrations of a likelihood, and scans before the first."""
MOST_KEPT = 256
"""Draws that a chain keeps at most if their number is not given."""
DRAW_BYTES = 4
"""Of an entry of a kept draw."""
ROOM, FEWEST_KEPT = 2**25, 200
"""Bytes that the kept draws of all chains take at most, unless fewer draws than this were left:
beyond, every second, third, ... is kept. See docs/choices.md."""


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
    chains: int = 1
    """How many chains run side by side."""
    report: Callable[[ScanReport], None] | None = None
    checkpoint: Checkpoint = NOWHERE
    scan: int = 0
    stage: Stage = Stage.GROW
    sized: int = 0
    """Last scan after which all chains together decided on a size."""
    rank: list[tuple[int, ...]] = field(default_factory=list)
    log_likelihood: list[float] = field(default_factory=list)
    described: dict[str, list[float]] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    """Held-out loss after each scan of exploration; empty if nothing is held out."""
    looks: list[FloatArray] = field(default_factory=list)
    """Predictions for the held-out observations at every look of all chains while they grow."""
    moments: tuple[RunningMoments, ...] = ()
    """Running moments at the held-out observations, see `Watch`."""
    likelihood: Likelihood | None = None
    """Calibrated during exploration."""
    kept: list[Kept] = field(default_factory=list)
    thinning: int = 1
    """Scans per kept draw."""
    watched: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    """Entries at the cells that decide when to end, and the likelihood's parameters, by draw."""
    rests: bool = True
    """Whether nobody works on it now."""

    def resume(self) -> None:
        """Restore the last saved state, if there is one."""
        example = (self.state, RunningMoments.empty(0), self.kept_now(), self.likelihood)
        found = self.checkpoint.find(self._piece, example)
        if found is None:
            return
        for name in STANDING:
            setattr(self, name, found[name])
        self.watched = [(entries, nuisance) for entries, nuisance in self.watched]

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
        ring = self.flat
        kept = ring._replace(flat=rounded(ring.flat))
        return Kept(kept, self.state.nuisance, self.scan, weights)

    def step(self, problem: Problem, engine: Engine) -> StepInfo:
        """Run one scan, record its numbers and report them; if stopped, save what was before it."""
        scan = self.scan + 1
        try:
            state, info = gibbs.step(self.streams, scan, self.state, problem, engine)
        except Stopped:
            self.write_down(always=True)
            raise
        except (BrokenChain, np.linalg.LinAlgError) as error:
            raise BrokenChain(
                f"Sampling broke down in chain {self.number}, scan {scan}: {error}. Numbers "
                "became too large or are not finite; try a smaller rank, or look for extreme "
                "outliers among the values."
            ) from None
        self.scan, self.state = scan, state
        numbers = problem.likelihood.describe(info.statistics, self.state.nuisance, self.scale)
        self.rank.append(self.state.rank)
        self.log_likelihood.append(info.log_likelihood)
        for name, number in numbers.items():
            self.described.setdefault(name, []).append(float(number))
        if self.report is not None:
            self.report(
                ScanReport(self.number, self.scan, self.state.rank, numbers, self.stage.value)
            )
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
    until: int = OPEN,
    adapt: int | None = None,
) -> None:
    """Let the rank adapt, and the likelihood calibrate itself on held-out observations.

    Ends with the exploration of `length`, or already after scan `until`. Up to scan `adapt`, by
    default that of `length`, the rank may change, and the likelihood is calibrated by the last
    scans; afterwards, by all since.
    """
    watch = None if held is None else Watch(held, *chain.moments)
    calibrates = problem.likelihood.calibrates
    adapt = length.adapt if adapt is None else adapt
    if chain.likelihood is not None:
        problem = problem._replace(likelihood=chain.likelihood)
    last = min(until, length.explore)
    chain.rests = chain.scan >= last
    while chain.scan < last:
        if watch is not None and chain.scan == adapt:
            watch.settle()
        chain.stage = Stage.GROW if chain.scan < adapt else Stage.BOUND
        info = chain.step(problem, engine)
        adapts = chain.scan <= adapt
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
            chain.moments = (watch.recent, watch.settled)
            if adapts and isinstance(policy, JointGrowth) and chain.scan == until:
                chain.looks.append(watch.recent.mean)
        if adapts:
            look = Look(
                partial(chain.streams.rng, chain.scan, Purpose.RANK),
                chain.scan,
                adapt - chain.scan,
                info.energy,
                problem.counts,
                problem.information,
                problem.prior,
                chain.losses,
            )
            chain.state = policy.adapt(chain.state, look)
        chain.write_down()
    chain.rests = True


def collect(
    chain: Chain,
    problem: Problem,
    length: Length,
    engine: Engine = ONE_THREAD,
    until: int = OPEN,
    begin: int | None = None,
    cells: IntArray | None = None,
) -> tuple[Draws, Trace] | None:
    """Settle until scan `begin`, by default the warm-up of `length`, then keep draws.

    Ends with the draws of `length`, or already after scan `until`; None if there is no draw yet.
    Entries at `cells` (n, D) are recorded along with every draw.
    """
    begin = (length.warmup or 0) if begin is None else begin
    end = length.end(Stage.DRAW, begin)
    last = min(until, end)
    entries = sum(core.size for core in chain.state.cores)
    draw_bytes = DRAW_BYTES * entries
    room = max(ROOM // draw_bytes, FEWEST_KEPT) // chain.chains
    length = length._replace(max_bytes=min(length.max_bytes, max(1, room) * draw_bytes))
    given = length.draws is not None
    if given:
        chain.thinning = length.thinning(draw_bytes)
    most = max(1, min(MOST_KEPT, length.max_bytes // draw_bytes))
    columns = None if cells is None else np.ascontiguousarray(cells.T, dtype=np.int32)
    chain.rests = chain.scan >= last
    while chain.scan < last:
        chain.stage = Stage.SETTLE if chain.scan < begin else Stage.DRAW
        chain.step(problem, engine)
        place = chain.scan - begin
        if place > 0:
            if columns is not None:
                chain.watched.append((engine.entries(chain.flat, columns), chain.state.nuisance))
            if place % chain.thinning == 0 or (chain.scan == end and not chain.kept):
                chain.kept.append(chain.kept_now())
            if not given and len(chain.kept) > most:  # every second, from the second on
                chain.kept, chain.thinning = chain.kept[1::2], 2 * chain.thinning
        chain.write_down()
    chain.rests = True
    return (chain.draws, chain.trace) if chain.kept else None
