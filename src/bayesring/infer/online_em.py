"""Online EM: rings learned from mini-batches, with their own choice of rank and end.

1. **Candidates.** A ring of every size in question learns until held-out predictions stop getting
   better, its rate halved at every standstill. The largest before they get worse stays.
2. **Members.** More rings of that size learn from other starts. They end in different places, and
   their predictions are averaged.
3. **Settling.** Held-out observations join the rest, and every ring goes on a little while.
4. **Draws.** Every slice is taken to be normal round its estimate, with the precision of data and
   prior together. Draws of it are kept as those of a chain would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from bayesring.infer import holdout
from bayesring.infer.problem import BrokenChain
from bayesring.infer.holdout import Predicted
from bayesring.infer.learner import Learner
from bayesring.data.batches import ArrayRows, Rows, batches
from bayesring.infer.chains import Draws, Outcome, Trace
from bayesring.infer.streams import Purpose, Streams
from bayesring.engine.threads import one_blas_thread
from bayesring.kernels import entries as entries_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Observations, in_order
from bayesring.priors.protocol import RingPrior
from bayesring.model.types import FloatArray, IntArray, RingSize

RATE = 0.1
"""Adam's first rate. The paper's, 0.01, comes after some halvings; as the first it ends in worse
places."""
FEWEST_BATCHES, MOST_ROWS = 50, 2**20
"""Between two looks at held-out observations: batches at least, rows at most; a pass if between."""
FINDING, PATIENCE, GAIN = 10, 3, 1e-3
"""Looks without a gain of that share after which the prior is learned, and the rate halved."""
HALVINGS = 5
LATE = 5
"""Looks whose rings are averaged at the end, and which settling takes."""
WORSE, TRIES = 0.01, 3
"""Share by which a larger ring may predict worse than the best so far and still be taken, since
averages over rings gain more from larger ones; and larger rings that may fail in that before the
search for a size ends."""
JUDGED_DRAWS = 50
"""Draws per ring by which held-out observations are predicted."""
WIDTHS = (1.0, 0.75, 0.5, 0.25)
"""Factors of the deviations of slices, of which held-out observations choose one."""
SETTLING = RATE / 32
"""Rate at which held-out observations are learned from in the end."""


class Settings(NamedTuple):
    """How rings learn."""

    seed: int
    members: int
    draws: int
    """Per member."""
    max_bytes: int
    """Budget of the draws of one member."""
    batch_size: int
    epochs: int
    """Passes over the data at most, for each ring; of few data, so many looks."""
    scale: float = 1.0
    """Unit of the values, in which noise and errors are reported."""


class Progress(NamedTuple):
    """Where one ring stands after a look."""

    ring: int
    rows: int
    """Rows learned from so far."""
    size: RingSize
    rate: float
    loss: float
    """Of held-out observations."""


Report = Callable[[Progress], None]


class Student:
    """A ring on its way through the data, and what was seen at every look."""

    def __init__(
        self,
        number: int,
        learner: Learner,
        rows: Rows,
        judged: Observations,
        settings: Settings,
        report: Report | None = None,
    ) -> None:
        self.number, self.learner, self.judged = number, learner, judged
        self._settings, self._report = settings, report
        self._columns = np.ascontiguousarray(judged.coords.T, dtype=np.int32)
        self.streams = Streams.of_chain(settings.seed, number)
        self.failure: Exception | None = None
        """What ended the stream of rows before its time, if anything."""
        self._judges = learner.likelihood.calibrates
        self.losses: list[float] = []
        self.described: dict[str, list[float]] = {}
        self.log_likelihood: list[float] = []
        self.take(rows)

    def take(self, rows: Rows) -> None:
        """Learn from other rows from now on."""
        self._source = batches(rows, self.streams, self._settings.batch_size)
        self.learner.set_counts(rows.counts)

    @property
    def rows_seen(self) -> int:
        """Rows learned from so far."""
        return self.learner.rows_seen

    @property
    def look_rows(self) -> int:
        """Rows between two looks."""
        n = self.learner.n_observations
        return min(max(n, FEWEST_BATCHES * min(self._settings.batch_size, n)), MOST_ROWS)

    def look(self, rate: float, expects: bool) -> float:
        """Learn from as many rows as lie between two looks; returns the loss then."""
        learner, end = self.learner, self.rows_seen + self.look_rows
        while self.rows_seen < end:
            try:
                columns, values = next(self._source)
            except (OSError, ValueError) as error:
                if self.rows_seen == 0:
                    raise
                self.failure = error
                break
            learner.learn(columns, values, rate, expects)
        likelihood, values = learner.likelihood, self.judged.values
        mean = likelihood.mean(learner.fitted(self._columns))
        loss = likelihood.loss(values, mean)
        if not np.isfinite(loss):
            raise BrokenChain(
                f"Online EM broke down in ring {self.number} after {self.rows_seen:,} rows: "
                "predictions are not finite; look for extreme outliers among the values."
            )
        if self._judges:
            learner.likelihood = likelihood.calibrate(values, mean, np.zeros(values.size))
        self._write_down(loss)
        if self._report is not None:
            self._report(Progress(self.number, self.rows_seen, learner.size, rate, loss))
        return loss

    def _write_down(self, loss: float) -> None:
        learner = self.learner
        assert learner.statistics is not None  # something was learned
        self.losses.append(loss)
        total = learner.likelihood.total_log_prob(learner.statistics, learner.nuisance)
        self.log_likelihood.append(total)
        numbers = learner.likelihood.describe(
            learner.statistics, learner.nuisance, self._settings.scale
        )
        for name, number in numbers.items():
            self.described.setdefault(name, []).append(float(number))

    @property
    def trace(self) -> Trace:
        """What was seen."""
        learner = self.learner
        rank = tuple(learner.size.strands * bond for bond in learner.size.bonds)
        return Trace(
            np.tile(rank, (len(self.losses), 1)),
            np.array(self.log_likelihood),
            {name: np.array(each) for name, each in self.described.items()},
        )

    def train(self) -> float:
        """Learn until held-out predictions stop getting better; returns their loss.

        The prior is learned from the first standstill on, and what counts as the best begins anew;
        at every other the rate is halved. The ring goes back to its best each time, and ends with
        the mean of its last looks. When the passes are nearly used up, the rate falls to its end
        in the few looks that are left.
        """
        learner, best, waited = self.learner, np.inf, 0
        kept = learner.state, learner.moments
        rate, expects = RATE, False
        least = rate * 0.5 ** (HALVINGS + 1)
        finding = min(FINDING, max(1, self._most_looks // 16))
        fading = min(HALVINGS + 1, max(1, self._most_looks // 4))
        free = self._most_looks - fading - self._n_late
        while rate > least and len(self.losses) < free and not self.failure:
            loss = self.look(rate, expects)
            waited += 1
            if loss < best * (1 - GAIN):
                best, kept, waited = loss, (learner.state, learner.moments.copy()), 0
            if waited >= (PATIENCE if expects else finding):
                learner.restore(*kept)
                if not expects:
                    self._wake_prior()
                    best = np.inf
                rate, expects, waited = (rate / 2 if expects else rate), True, 0
        if not expects and self.losses:
            self._wake_prior()
        fall = (least / rate) ** (1 / fading)
        for _ in range(fading if rate > least else 0):
            if self.failure:
                break
            rate *= fall
            self.look(rate, expects=True)
        self.settle(rate)
        return min(best, self.losses[-1])

    def _wake_prior(self) -> None:
        """First E-step; noise and prior, and so the size of gradients, come from the data now."""
        self.learner.expect()
        self.learner.forget()

    @property
    def _most_looks(self) -> int:
        """Looks that the passes allowed make; of few data, as many as passes."""
        passes = self._settings.epochs * max(self.learner.n_observations, self.look_rows)
        return max(1, passes // self.look_rows)

    @property
    def _n_late(self) -> int:
        """Looks at the end whose rings are averaged."""
        return min(LATE, max(1, self._most_looks // 8))

    def settle(self, rate: float) -> None:
        """Go on for some looks, as long as there are rows, and keep the mean of the rings there."""
        states = [self.learner.state] if self.failure else []
        while len(states) < self._n_late and not self.failure:
            self.look(rate, expects=True)
            states.append(self.learner.state)
        self.learner.restore([np.mean(each, axis=0) for each in zip(*states, strict=True)])

    def rejoin(self, rows: Rows) -> None:
        """Learn a little from all rows, held-out ones among them."""
        self._judges = False
        self.take(rows)
        self.settle(SETTLING)


class Sources(NamedTuple):
    """What rings learn from."""

    part: Rows
    """All rows but the held-out ones."""
    whole: Rows
    """All rows to settle on in the end; the same as `part` if held-out ones stay out."""
    judged: Observations
    """Observations that rings are judged by: those held out, or all if there are too few."""
    sample: Rows
    """Rows on which the size of the ring is chosen."""
    is_held_out: bool
    """Whether those that judge were held out."""

    @classmethod
    def in_memory(cls, data: Observations, seed: int) -> Sources:
        """Of observations in memory, some of which are held out."""
        explored, held = holdout.hold_out(in_order(data), seed)
        part = ArrayRows(explored)
        whole = part if held is None else ArrayRows(data)
        return cls(part, whole, explored if held is None else held, part, held is not None)


def run(
    sources: Sources,
    likelihood: Likelihood,
    prior: RingPrior,
    sizes: Sequence[RingSize],
    settings: Settings,
    n_jobs: int,
    report: Report | None = None,
) -> Outcome:
    """Learn rings and draw from round them."""

    def student(number: int, size: RingSize, rows: Rows) -> Student:
        streams = Streams.of_chain(settings.seed, number)
        learner = Learner(streams, size, rows.counts, likelihood, prior)
        return Student(number, learner, rows, sources.judged, settings, report)

    with one_blas_thread, ThreadPoolExecutor(n_jobs) as pool:
        first = choose(sizes, lambda size: student(0, size, sources.sample), pool, n_jobs)
        size, tried = first.learner.size, sources.sample is sources.part
        students = [student(each, size, sources.part) for each in range(settings.members)]
        if tried:
            students[0] = first
        list(pool.map(Student.train, students[1 if tried else 0 :]))
        likelihood, predicted = judge(students, sources, likelihood)
        for each in students:
            each.learner.likelihood = likelihood
        if sources.whole is not sources.part:
            list(pool.map(lambda each: each.rejoin(sources.whole), students))
        rings = list(pool.map(lambda each: draw(each, sources.whole, settings), students))
    chains = [(own, each.trace) for own, each in zip(rings, students, strict=True)]
    learners = tuple(each.learner for each in students)
    failure = next((each.failure for each in students if each.failure), None)
    return Outcome(likelihood, chains, predicted, learners, failure)


def choose(
    sizes: Sequence[RingSize],
    student: Callable[[RingSize], Student],
    pool: ThreadPoolExecutor,
    n_jobs: int,
) -> Student:
    """Train a ring of every size, from small to large, until larger ones predict worse.

    Some are trained side by side; those beyond the end of the search are not looked at, so the
    choice does not depend on how many those are.
    """
    best, least, failed = None, np.inf, 0
    for begin in range(0, len(sizes), n_jobs):
        group = [student(size) for size in sizes[begin : begin + n_jobs]]
        for each, loss in zip(group, pool.map(Student.train, group), strict=True):
            if best is None or loss < (1 + WORSE) * least:
                best, least, failed = each, min(loss, least), 0
                continue
            failed += 1
            if failed == TRIES:
                return best
    assert best is not None  # there is at least one size
    return best


def judge(
    students: Sequence[Student], sources: Sources, likelihood: Likelihood
) -> tuple[Likelihood, Predicted | None]:
    """The likelihood as held-out observations have it, and what was expected of them.

    The normals round the estimates ignore much, so held-out observations choose their width, by
    their log score under all rings together.
    """
    held = sources.judged
    if not sources.is_held_out:
        return likelihood, None
    columns = np.ascontiguousarray(held.coords.T, dtype=np.int32)
    nuisance = np.concatenate(
        [np.tile(each.learner.nuisance, (JUDGED_DRAWS, 1)) for each in students]
    )
    gaps = [
        draw_gaps(each.learner, each.streams.rng(0, Purpose.SPREAD), JUDGED_DRAWS)
        for each in students
    ]
    best, fitted, chosen = -np.inf, np.empty(0), 1.0
    for width in WIDTHS:
        tried = np.concatenate(
            [
                _predict(each.learner, width * own, columns)
                for each, own in zip(students, gaps, strict=True)
            ]
        )
        scores = logsumexp(likelihood.log_prob(tried, held.values, nuisance), axis=0)
        if np.mean(scores) > best:
            best, fitted, chosen = float(np.mean(scores)), tried, width
    for each in students:
        each.learner.width = chosen
    means = likelihood.mean(fitted)
    noise = likelihood.variance(fitted, nuisance).mean(axis=0)
    predicted = Predicted(held, means.mean(axis=0), means.var(axis=0), noise)
    return likelihood.calibrate(held.values, predicted.mean, predicted.variance), predicted


def _predict(learner: Learner, gaps: FloatArray, columns: IntArray) -> FloatArray:
    """F at some cells in rings so far from the one learned, (draws, n)."""
    ring = learner.ring
    rings = [ring._replace(flat=ring.flat + own) for own in gaps]
    return np.stack(
        [entries_kernel.entries(*each, 0, columns[0], columns[1:], 0) for each in rings]
    )


def draw(student: Student, rows: Rows, settings: Settings) -> Draws:
    """Draws of one ring, after one pass over the data for the curvature where it stands.

    If the data cannot be read to their end, the curvature found while learning has to do.
    """
    learner, before = student.learner, student.learner.curvature.copy()
    try:
        if student.failure is None:
            learner.measure(rows, student.streams, settings.batch_size)
    except (OSError, ValueError) as error:
        student.failure, learner.curvature[:] = error, before
    return draw_from(learner, student.streams, settings)


def draw_from(learner: Learner, streams: Streams, settings: Settings) -> Draws:
    """Draws of a ring whose curvature is known."""
    n_draws = min(settings.draws, max(2, settings.max_bytes // (8 * learner.flat.size)))
    flat = draw_gaps(learner, streams.rng(1, Purpose.SPREAD), n_draws)
    flat *= learner.width
    flat += learner.ring.flat
    _, starts, bonds, strands = learner.ring
    nuisance = np.tile(learner.nuisance, (n_draws, 1))
    weights = np.tile(np.concatenate([each.ravel() for each in learner.weights]), (n_draws, 1))
    return Draws(flat, starts, bonds, strands, nuisance, np.arange(1, n_draws + 1), weights)


def draw_gaps(learner: Learner, rng: Generator, n_draws: int) -> FloatArray:
    """How far weighted cores, laid end to end, are from the estimate: equation (23).

    Draws (n_draws, size) come in pairs, as far above the estimate as below, so that their mean is
    close to it.
    """
    gaps = np.empty((n_draws, learner.flat.size))
    start = 0
    for mode, (core, weights) in enumerate(zip(learner.cores, learner.weights, strict=True)):
        own = gaps[:, start : start + core.size]
        drawn = learner.deviations(mode, rng, (n_draws + 1) // 2) * weights[:, None]
        own[::2] = drawn.reshape(len(drawn), -1)
        own[1::2] = -own[::2][: n_draws // 2]
        start += core.size
    return gaps
