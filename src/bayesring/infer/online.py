"""Online EM: rings learned from mini-batches, with their own choice of rank and end.

1. **Candidates.** A ring of every size in question learns until held-out predictions stop getting
   better, its rate halved at every standstill. The largest before they get worse stays.
2. **Members.** More rings of that size learn from other starts. They end in different places, and
   their predictions are averaged.
3. **Settling.** Held-out observations join the rest, and every ring goes on a little while.
4. **Draws.** Short chains of the Gibbs sampler start from the rings as they were before settling,
   and calibrate the likelihood as any chains do. Where the data are too many or in files, every
   slice is taken to be normal around its estimate instead, with the precision of data and prior
   together, and draws of it are kept as those of a chain would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from scipy.special import logsumexp

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.batches import LARGE, ArrayRows, Rows, Sources
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import hold_out
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.infer import em
from bayesring.infer.chain import DRAW_BYTES, FEWEST_KEPT, ROOM
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.em import Setting
from bayesring.infer.estimate import (
    RingEstimate,
    draw_gaps,
    grown,
)
from bayesring.infer.holdout import Predicted
from bayesring.infer.length import Length
from bayesring.infer.members import (
    Course,
    Learning,
    Member,
    Report,
    begin,
    rejoin,
    train,
)
from bayesring.infer.state import Draws, Outcome, rounded
from bayesring.likelihoods import Likelihood
from bayesring.model.rank import FixedRank
from bayesring.model.spec import Model
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState
from bayesring.priors import RingPrior

WORSE, GAIN, TRIES = 0.01, 0.01, 3
"""Share by which a larger ring may predict worse than the best so far and still be taken, since
averages over rings gain more from larger ones; share by which it must predict better where more
strands make intervals wider; and larger rings that may fail in that before the search for a size
ends."""
JUDGED_DRAWS = 50
"""Draws per ring by which held-out observations are predicted."""
WIDTHS = (1.0, 0.75, 0.5, 0.25)
"""Factors of the deviations of slices, of which held-out observations choose one."""
SETTLE = 80
"""Scans before the first draw of a chain that starts from a ring learned."""
MOST_SAMPLED = 2**17
"""Observations up to which draws are those of chains around the rings."""
FEWEST_DRAWS, MOST_SCANNED = 10, 2**21
"""Draws of such a chain at least, and observations that all its draws together may take."""
MORE_RATES = tuple(0.0025 * 0.5 ** (step // 4) for step in range(20))
"""Adam's rates on new observations; each for a pass, or for `FEWEST_BATCHES`."""
FEWEST_BATCHES = 50

SAMPLE_BATCH = 2048
"""Rows per batch of a sample, if those of all rows are large."""
PLACED = 4
"""E-steps that place new slices where their features say, before they learn."""


def sources_in_memory(data: Observations, seed: int) -> Sources:
    """Of observations in memory, some of which are held out."""
    data = in_order(data)
    explored, held = hold_out(data, seed)
    part = ArrayRows(explored)
    whole = part if held is None else ArrayRows(data)
    judged = explored if held is None else held.data
    return Sources(part, whole, judged, part, held is not None, data)


def run(
    sources: Sources,
    likelihood: Likelihood,
    prior: RingPrior,
    sizes: Sequence[RingSize],
    learning: Learning,
    engine: Engine,
    report: Report | None = None,
    checkpoint: Checkpoint = NOWHERE,
) -> Outcome:
    """Learn rings and draw from around them, on an open engine."""
    bound = prior.for_shape([len(each) for each in sources.part.counts])
    course = Course(sources.judged, learning, bound.exchangeable, engine, report, checkpoint)

    def fresh(number: int, size: RingSize, rows: Rows, piece: str) -> Member:
        own = course
        if rows is not sources.part and learning.batch_size > LARGE:  # a sample is small
            own = course._replace(learning=learning._replace(batch_size=SAMPLE_BATCH))
        return train(begin(number, size, rows, likelihood, own), rows, own, piece)

    def candidate(size: RingSize) -> Member:
        name = "x".join(map(str, size.bonds))
        return fresh(0, size, sources.sample, f"candidate-{size.strands}-{name}")

    first = choose(sizes, candidate, engine, -GAIN if likelihood.strands_widen else WORSE)
    size, tried = first.estimate.size, sources.sample is sources.part
    others = range(1 if tried else 0, learning.members)
    members = engine.map_pieces(
        lambda each: fresh(each, size, sources.part, f"ring-{each}"), others
    )
    members = [first, *members] if tried else members
    learned, open_likelihood = [each.estimate for each in members], likelihood
    likelihood, predicted, width = judge(members, course, likelihood, sources.is_held_out)
    members = [
        each._replace(likelihood=likelihood, estimate=each.estimate._replace(width=width))
        for each in members
    ]
    if sources.whole is not sources.part:
        members = engine.map_pieces(lambda each: rejoin(each, sources.whole, course), members)
    members = engine.map_pieces(lambda each: measured(each, sources.whole, course), members)
    data, interrupt = sources.in_memory, None
    if data is not None and len(data.values) <= MOST_SAMPLED:
        sampled = sample_around(learned, data, open_likelihood, course._replace(prior=bound))
        likelihood, predicted = sampled.likelihood, sampled.held_out
        interrupt = sampled.interrupt
        drawn = [own for own, _ in sampled.chains]
    else:
        drawn = engine.map_pieces(
            lambda each: draw(each.estimate, course.streams(each), learning), members
        )
        if predicted is not None and open_likelihood.calibrates:
            likelihood = predicted.calibrated(
                likelihood, np.concatenate([own.nuisance for own in drawn])
            )
    chains = [(own, each.trace) for own, each in zip(drawn, members, strict=True)]
    estimates = tuple(each.estimate for each in members)
    failure = next((each.failure for each in members if each.failure), None)
    return Outcome(likelihood, chains, predicted, False, estimates, failure, interrupt)


def sample_around(
    estimates: Sequence[RingEstimate], data: Observations, likelihood: Likelihood, course: Course
) -> Outcome:
    """Short chains that start from the rings learned.

    If the likelihood is still to be calibrated, they explore without the observations that the
    rings have not seen either, so that these can judge them.
    """
    learning, prior = course.learning, course.prior
    starts = [
        state_of(each, prior, Streams.of_chain(learning.seed, number))
        for number, each in enumerate(estimates)
    ]
    n_draws = min(learning.draws, max(FEWEST_DRAWS, MOST_SCANNED // max(1, len(data.values))))
    fitting = max(1, learning.max_bytes // (DRAW_BYTES * estimates[0].cores.size))
    if fitting < n_draws:  # thinned to no fewer than fit
        n_draws = fitting * -(-n_draws // fitting)
    settle = SETTLE if learning.warmup is None else learning.warmup
    length = Length(settle, n_draws, learning.max_bytes)
    sampling = Sampling(length, learning.seed, len(starts), scale=learning.scale)
    size = estimates[0].size
    model = Model(likelihood, prior, FixedRank(size.bonds, size.strands))
    return run_chains(
        data, model, sampling, course.engine, checkpoint=course.checkpoint, starts=starts
    )


def state_of(estimate: RingEstimate, prior: RingPrior, streams: Streams) -> RingState:
    """The estimate as a state of a chain, with hyperparameters drawn given the cores."""
    hyper = [
        own.update_hyper(streams.rng(0, Purpose.HYPER, mode), core)
        for mode, (own, core) in enumerate(zip(prior.modes, estimate.core_list, strict=True))
    ]
    cores = tuple(core.copy() for core in estimate.core_list)
    return RingState(cores, estimate.weights, estimate.gains, tuple(hyper), estimate.nuisance)


def choose(
    sizes: Sequence[RingSize],
    trained: Callable[[RingSize], Member],
    engine: Engine,
    worse: float = WORSE,
) -> Member:
    """Train a ring of every size, from small to large, until larger ones predict worse.

    Some are trained side by side; those beyond the end of the search are not looked at, so the
    choice does not depend on how many those are. A larger ring is taken if its loss exceeds the
    least so far by no more than the share `worse`, or, if that is negative, falls below it by more.
    """
    best, least, failed = None, np.inf, 0
    for start in range(0, len(sizes), engine.n_local):
        group = engine.map_pieces(trained, sizes[start : start + engine.n_local])
        for each in group:
            if best is None or each.loss < (1 + worse) * least:
                best, least, failed = each, min(each.loss, least), 0
                continue
            failed += 1
            if failed == TRIES:
                return best
    assert best is not None  # there is at least one size
    return best


def judge(
    members: Sequence[Member], course: Course, likelihood: Likelihood, is_held_out: bool
) -> tuple[Likelihood, Predicted | None, float]:
    """The likelihood as held-out observations have it, what was expected of them, and the width.

    The normals around the estimates ignore much, so held-out observations choose their width, by
    their log score under all rings together.
    """
    held, engine = course.judged, course.engine
    if not is_held_out or not len(held.values):
        return likelihood, None, 1.0
    columns = np.ascontiguousarray(held.coords.T, dtype=np.int32)
    nuisance = np.concatenate(
        [np.tile(each.estimate.nuisance, (JUDGED_DRAWS, 1)) for each in members]
    )
    gaps = [
        draw_gaps(each.estimate, course.streams(each).rng(0, Purpose.SPREAD), JUDGED_DRAWS)
        for each in members
    ]
    given = likelihood.locate(held.given, held.along)
    offset: FloatArray | float = 0.0 if given.offset is None else given.offset
    best, fitted, chosen = -np.inf, np.empty(0), 1.0
    for width in WIDTHS:
        tried = np.concatenate(
            [
                _predict(each.estimate, width * own, columns, engine)
                for each, own in zip(members, gaps, strict=True)
            ]
        )
        tried += offset
        scores = logsumexp(likelihood.log_prob(tried, held.values, nuisance, given), axis=0)
        if np.mean(scores) > best:
            best, fitted, chosen = float(np.mean(scores)), tried, width
    means = likelihood.mean(fitted, nuisance, given)
    noise = likelihood.variance(fitted, nuisance, given).mean(axis=0)
    predicted = Predicted(held, means.mean(axis=0), means.var(axis=0), noise)
    likelihood = predicted.calibrated(likelihood) if likelihood.calibrates else likelihood
    return likelihood, predicted, chosen


def _predict(
    estimate: RingEstimate, gaps: FloatArray, columns: IntArray, engine: Engine
) -> FloatArray:
    """f at some cells in rings so far from the one learned, (draws, n)."""
    ring = estimate.flat
    return np.stack([engine.entries(ring._replace(flat=ring.flat + own), columns) for own in gaps])


def measured(member: Member, rows: Rows, course: Course) -> Member:
    """With the curvature where the ring stands, by one pass over the data.

    If the data cannot be read to their end, the curvature found while learning has to do.
    """
    if member.failure is not None:
        return member
    piece = f"measured-{member.number}"
    found = course.checkpoint.find(piece, member.estimate)
    if found is not None:
        return member._replace(estimate=found)
    setting, size = course.setting(member.likelihood), course.learning.batch_size
    try:
        estimate = em.measure(member.estimate, rows, course.streams(member), size, setting)
    except ConnectionError:  # a cluster is lost, not rows
        raise
    except (OSError, ValueError) as error:
        return member._replace(failure=error)
    course.checkpoint.keep(piece, estimate, always=True)
    return member._replace(estimate=estimate)


def draw(estimate: RingEstimate, streams: Streams, learning: Learning) -> Draws:
    """Draws of a ring whose curvature is known."""
    draw_bytes = DRAW_BYTES * estimate.cores.size
    room = max(ROOM // draw_bytes, FEWEST_KEPT) // learning.members
    most = learning.max_bytes // draw_bytes
    n_draws = min(learning.draws, max(1, most), max(1, room))
    flat = draw_gaps(estimate, streams.rng(1, Purpose.SPREAD), n_draws)
    flat *= estimate.width
    weighted, starts, bonds, strands = estimate.flat
    flat += weighted
    nuisance = np.tile(estimate.nuisance, (n_draws, 1))
    weights = np.tile(np.concatenate([each.ravel() for each in estimate.weights]), (n_draws, 1))
    scans = np.arange(1, n_draws + 1)
    return Draws(rounded(flat), starts, bonds, strands, nuisance, scans, weights)


def learn_more(
    estimates: Sequence[RingEstimate],
    course: Course,
    likelihood: Likelihood,
    everything: Observations | None = None,
) -> tuple[list[RingEstimate], list[Draws]]:
    """Go on with the observations of a course, in the units of the old; modes may have grown.

    Draws are those of chains if `everything`, all observations so far in standard units, is known.
    The estimates given stay as they are: whatever interrupts this, nothing is learned by halves.
    """
    data, learning, prior, engine = course.judged, course.learning, course.prior, course.engine
    rows = ArrayRows(data)
    per_pass = max(1, -(-len(data.values) // learning.batch_size))
    passes = -(-FEWEST_BATCHES // per_pass)
    rates = [rate for rate in MORE_RATES for _ in range(passes)]
    bound = prior.for_shape(data.shape)
    setting = Setting(likelihood, bound.exchangeable, engine)
    informed = any(own.informed for own in bound.modes)

    def more(numbered: tuple[int, RingEstimate]) -> RingEstimate:
        number, estimate = numbered
        piece = f"more-{number}"
        found = course.checkpoint.find(piece, estimate)
        if found is not None:
            return cast(RingEstimate, found)
        streams = Streams.of_chain(learning.seed, number)
        wider = grown(estimate, data.shape)
        for _ in range(PLACED if informed and wider.shape != estimate.shape else 0):
            wider = em.expect(wider, setting)._replace(nuisance=estimate.nuisance)
        learned = em.add(wider, rows, streams, learning.batch_size, rates, setting)
        course.checkpoint.keep(piece, learned, always=True)
        return learned

    found = engine.map_pieces(more, list(enumerate(estimates)))
    if everything is not None and len(everything.values) <= MOST_SAMPLED:
        around = course._replace(judged=everything, prior=bound)
        sampled = sample_around(found, everything, likelihood, around)
        if sampled.interrupt is not None:
            raise sampled.interrupt
        return found, [own for own, _ in sampled.chains]
    streams = [Streams.of_chain(learning.seed, number) for number in range(len(found))]
    return found, [draw(new, own, learning) for new, own in zip(found, streams, strict=True)]
