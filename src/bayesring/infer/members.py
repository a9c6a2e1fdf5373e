"""One ring of online EM while it learns: looks, schedule, recorded losses.

A `Member` never changes: every function here takes one and returns another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.batches import LARGE, Batch, Feed, Position, Rows, count_batches
from bayesring.data.observations import Observations
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Streams
from bayesring.engine.threads import Stopped
from bayesring.infer import em
from bayesring.infer.em import Setting
from bayesring.infer.estimate import (
    RingEstimate,
    averaged,
    forgotten,
    gone_back,
)
from bayesring.infer.problem import BrokenChain
from bayesring.infer.schedule import Phase, Schedule
from bayesring.infer.state import LookReport, Trace
from bayesring.likelihoods import Likelihood
from bayesring.model.types import RingSize
from bayesring.priors import RingPrior

FEWEST_BATCHES, MOST_ROWS = 25, 2**20
"""Between two looks at the held-out observations: fewest batches, most rows; otherwise one pass."""
FEWEST_LARGE = 20
"""Fewest large batches between two looks, however many rows they have."""


class Learning(NamedTuple):
    """How rings learn."""

    seed: int
    members: int
    draws: int
    """Per member."""
    max_bytes: int
    """Memory for the draws of one member."""
    batch_size: int
    epochs: int
    """Most passes over the data per ring; for small data, most looks."""
    scale: float = 1.0
    """Scale of the values, in which noise and errors are reported."""
    warmup: int | None = None
    """Scans of the chains around the rings before their first draw; None for as many as usual."""


Report = Callable[[LookReport], None]


class Seen(NamedTuple):
    """What the looks at one ring recorded."""

    losses: tuple[float, ...] = ()
    log_likelihood: tuple[float, ...] = ()
    described: tuple[dict[str, float], ...] = ()

    def and_then(self, loss: float, log_likelihood: float, numbers: dict[str, float]) -> Seen:
        """Append one look."""
        return Seen(
            (*self.losses, loss),
            (*self.log_likelihood, log_likelihood),
            (*self.described, numbers),
        )

    def trace(self, size: RingSize) -> Trace:
        """As arrays."""
        rank = tuple(size.strands * bond for bond in size.bonds)
        names = self.described[0] if self.described else ()
        return Trace(
            np.tile(rank, (len(self.losses), 1)),
            np.array(self.log_likelihood),
            {name: np.array([float(each[name]) for each in self.described]) for name in names},
        )


class Member(NamedTuple):
    """One ring while it learns. Immutable."""

    number: int
    estimate: RingEstimate
    likelihood: Likelihood
    seen: Seen = Seen()
    loss: float = np.inf
    """Smallest loss at the end of learning."""
    failure: Exception | None = None
    """Error that ended the stream of rows early, if any."""

    @property
    def trace(self) -> Trace:
        """The recorded numbers as arrays."""
        return self.seen.trace(self.estimate.size)


class Course(NamedTuple):
    """What all members share."""

    judged: Observations
    learning: Learning
    prior: RingPrior
    engine: Engine
    report: Report | None = None
    checkpoint: Checkpoint = NOWHERE

    def setting(self, likelihood: Likelihood) -> Setting:
        """The setting with this likelihood, calibrated or not."""
        return Setting(likelihood, self.prior, self.engine)

    def streams(self, member: Member) -> Streams:
        """All the random streams of a member."""
        return Streams.of_chain(self.learning.seed, member.number)

    def feed(self, member: Member, rows: Rows) -> Feed:
        """Batches for a member."""
        return Feed(rows, self.streams(member), self.learning.batch_size)

    def look_rows(self, n: int) -> int:
        """Rows between two looks if a pass has n rows."""
        size = self.learning.batch_size
        if min(size, n) > LARGE:
            return max(n, FEWEST_LARGE * min(size, n))
        passes = max(1.0, FEWEST_BATCHES / max(1, count_batches(n, size)))
        return int(min(passes * n, MOST_ROWS))

    def most_looks(self, n: int) -> int:
        """Number of looks within the allowed passes; for small data, one per pass."""
        each = self.look_rows(n)
        return max(1, self.learning.epochs * max(n, each) // each)


def begin(
    number: int, size: RingSize, rows: Rows, likelihood: Likelihood, course: Course
) -> Member:
    """A ring at a random starting point."""
    streams = Streams.of_chain(course.learning.seed, number)
    estimate = em.start(streams, size, rows.counts, course.setting(likelihood))
    return Member(number, estimate, likelihood)


def look(
    member: Member, feed: Feed, schedule: Schedule, course: Course, judges: bool = True
) -> Member:
    """Learn from the rows until the next look, then predict the held-out observations."""
    before, likelihood = member.estimate, member.likelihood
    batches = _UntilFailure(feed.read(before.position, course.look_rows(before.n_observations)))
    estimate = em.learn(
        before, batches, schedule.rate, schedule.expects, course.setting(likelihood)
    )
    if batches.failure is not None and estimate.rows_seen == 0:
        raise batches.failure
    values, given = (
        course.judged.values,
        likelihood.locate(course.judged.given, course.judged.along),
    )
    columns = np.ascontiguousarray(course.judged.coords.T, dtype=np.int32)
    fitted = estimate.fitted(columns, course.engine)
    fitted = fitted if given.offset is None else fitted + given.offset
    mean = likelihood.mean(fitted, estimate.nuisance, given)
    loss = likelihood.loss(values, mean, given)
    if not np.isfinite(loss):
        raise BrokenChain(
            f"Online EM broke down in ring {member.number} after {estimate.rows_seen:,} rows: "
            "predictions are not finite; look for extreme outliers among the values."
        )
    if judges:
        likelihood = likelihood.calibrate(values, mean, np.zeros(values.size), given=given)
    assert estimate.statistics is not None  # something was learned
    numbers = likelihood.describe(estimate.statistics, estimate.nuisance, course.learning.scale)
    total = likelihood.total_log_prob(estimate.statistics, estimate.nuisance)
    if course.report is not None:
        course.report(
            LookReport(member.number, estimate.rows_seen, estimate.size, schedule.rate, loss)
        )
    return member._replace(
        estimate=estimate,
        likelihood=likelihood,
        seen=member.seen.and_then(loss, total, numbers),
        failure=batches.failure,
    )


class _UntilFailure:
    """Batches until one cannot be read; `failure` is the error that ended them early, if any."""

    def __init__(self, batches: Iterator[tuple[Batch, Position]]) -> None:
        self._batches = batches
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[tuple[Batch, Position]]:
        try:
            yield from self._batches
        except ConnectionError:  # a cluster is lost, not rows
            raise
        except (OSError, ValueError) as error:
            self.failure = error


class Way(NamedTuple):
    """The state of a learning ring between two looks."""

    schedule: Schedule
    member: Member
    best: RingEstimate
    """The best ring so far."""
    late: tuple[RingEstimate, ...] = ()
    """Rings to average at the end."""

    @property
    def done(self) -> bool:
        """Whether the schedule is done, or the rows ended."""
        return self.schedule.phase is Phase.DONE or self.member.failure is not None

    def end(self) -> Member:
        """The learned ring."""
        member, losses = self.member, self.member.seen.losses
        averages = averaged(member.estimate, list(self.late))
        return member._replace(estimate=averages, loss=min(self.schedule.best, losses[-1]))


def train(member: Member, rows: Rows, course: Course, piece: str) -> Member:
    """Learn until the held-out loss stops improving."""
    judges = member.likelihood.calibrates
    schedule = Schedule.begin(course.most_looks(member.estimate.n_observations))
    return _follow(Way(schedule, member, member.estimate), rows, course, judges, piece)


def rejoin(member: Member, rows: Rows, course: Course) -> Member:
    """Learn briefly from all rows, including those held out."""
    estimate = member.estimate._replace(counts=tuple(rows.counts), position=Position())
    member = member._replace(estimate=estimate)
    if member.failure is not None:
        return member
    schedule = Schedule.settling(course.most_looks(estimate.n_observations))
    way = Way(schedule, member, estimate)
    return _follow(way, rows, course, judges=False, piece=f"settled-{member.number}")


def _follow(way: Way, rows: Rows, course: Course, judges: bool, piece: str) -> Member:
    """Follow the schedule until it is done or the rows end.

    Resumes this `piece` from the checkpoint; rows that could not be read are tried again.
    """
    way = course.checkpoint.find(piece, way) or way
    with closing(course.feed(way.member, rows)) as feed:
        while not way.done:
            try:
                way = _one_look(way, feed, course, judges)
                if way.member.failure is None:
                    course.checkpoint.keep(piece, way, always=way.done)
            except (KeyboardInterrupt, SystemExit, Stopped):
                if way.member.seen.losses:
                    course.checkpoint.keep(piece, way, always=True)
                raise
    return way.end()


def _one_look(way: Way, feed: Feed, course: Course, judges: bool) -> Way:
    schedule, member, best, late = way
    member = look(member, feed, schedule, course, judges)
    finding = not schedule.expects
    schedule, advice = schedule.after(member.seen.losses[-1])
    estimate, setting = member.estimate, course.setting(member.likelihood)
    if advice.keep:
        best = estimate
    if advice.go_back:
        estimate = gone_back(estimate, best)
    if advice.wake or (finding and member.failure is not None):
        estimate = forgotten(em.expect(estimate, setting))
    if advice.late or member.failure is not None:
        late = (*late, estimate)
    return Way(schedule, member._replace(estimate=estimate), best, late)
