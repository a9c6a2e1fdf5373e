"""Online EM: rings learned from mini-batches, with their own choice of rank and end.

1. **Candidates.** A ring of every size in question learns until held-out predictions stop getting
   better, its rate halved at every standstill. The largest before they get worse stays.
2. **Members.** More rings of that size learn from other starts. They end in different places, and
   their predictions are averaged.
3. **Settling.** Held-out observations join the rest, and every ring goes on a little while.
4. **Draws.** Every slice is taken to be normal around its estimate, with the precision of data and
   prior together. Draws of it are kept as those of a chain would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import logsumexp

from bayesring.checkpoint import NOWHERE, Checkpoint
from bayesring.data.batches import ArrayRows, Rows, Sources
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import hold_out
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.infer import em
from bayesring.infer.em import Setting
from bayesring.infer.estimate import (
    RingEstimate,
    draw_gaps,
    grown,
)
from bayesring.infer.holdout import Predicted
from bayesring.infer.members import (
    FEWEST_BATCHES,
    Course,
    Learning,
    Member,
    Report,
    begin,
    rejoin,
    train,
)
from bayesring.infer.state import Draws, Outcome
from bayesring.likelihoods import Likelihood
from bayesring.model.types import FloatArray, IntArray, RingSize
from bayesring.priors import RingPrior

WORSE, TRIES = 0.01, 3
"""Share by which a larger ring may predict worse than the best so far and still be taken, since
averages over rings gain more from larger ones; and larger rings that may fail in that before the
search for a size ends."""
JUDGED_DRAWS = 50
"""Draws per ring by which held-out observations are predicted."""
WIDTHS = (1.0, 0.75, 0.5, 0.25)
"""Factors of the deviations of slices, of which held-out observations choose one."""
MORE_RATES = tuple(0.0025 * 0.5 ** (step // 4) for step in range(20))
"""Adam's rates on new observations; each for a pass, or for as many as make enough batches."""


def sources_in_memory(data: Observations, seed: int) -> Sources:
    """Of observations in memory, some of which are held out."""
    data = in_order(data)
    explored, held = hold_out(data, seed)
    part = ArrayRows(explored)
    whole = part if held is None else ArrayRows(data)
    judged = explored if held is None else held.data
    return Sources(part, whole, judged, part, held is not None)


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
    course = Course(sources.judged, learning, bound, engine, report, checkpoint)

    def fresh(number: int, size: RingSize, rows: Rows, piece: str) -> Member:
        return train(begin(number, size, rows, likelihood, course), rows, course, piece)

    def candidate(size: RingSize) -> Member:
        name = "x".join(map(str, size.bonds))
        return fresh(0, size, sources.sample, f"candidate-{size.strands}-{name}")

    first = choose(sizes, candidate, engine)
    size, tried = first.estimate.size, sources.sample is sources.part
    others = range(1 if tried else 0, learning.members)
    members = engine.map_pieces(
        lambda each: fresh(each, size, sources.part, f"ring-{each}"), others
    )
    members = [first, *members] if tried else members
    likelihood, predicted, width = judge(members, course, likelihood, sources.is_held_out)
    members = [
        each._replace(likelihood=likelihood, estimate=each.estimate._replace(width=width))
        for each in members
    ]
    if sources.whole is not sources.part:
        members = engine.map_pieces(lambda each: rejoin(each, sources.whole, course), members)
    members = engine.map_pieces(lambda each: measured(each, sources.whole, course), members)
    drawn = engine.map_pieces(
        lambda each: draw(each.estimate, course.streams(each), learning), members
    )
    chains = [(own, each.trace) for own, each in zip(drawn, members, strict=True)]
    estimates = tuple(each.estimate for each in members)
    failure = next((each.failure for each in members if each.failure), None)
    return Outcome(likelihood, chains, predicted, False, estimates, failure)


def choose(
    sizes: Sequence[RingSize], trained: Callable[[RingSize], Member], engine: Engine
) -> Member:
    """Train a ring of every size, from small to large, until larger ones predict worse.

    Some are trained side by side; those beyond the end of the search are not looked at, so the
    choice does not depend on how many those are.
    """
    best, least, failed = None, np.inf, 0
    for start in range(0, len(sizes), engine.n_jobs):
        group = engine.map_pieces(trained, sizes[start : start + engine.n_jobs])
        for each in group:
            if best is None or each.loss < (1 + WORSE) * least:
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
    if not is_held_out:
        return likelihood, None, 1.0
    columns = np.ascontiguousarray(held.coords.T, dtype=np.int32)
    nuisance = np.concatenate(
        [np.tile(each.estimate.nuisance, (JUDGED_DRAWS, 1)) for each in members]
    )
    gaps = [
        draw_gaps(each.estimate, course.streams(each).rng(0, Purpose.SPREAD), JUDGED_DRAWS)
        for each in members
    ]
    best, fitted, chosen = -np.inf, np.empty(0), 1.0
    for width in WIDTHS:
        tried = np.concatenate(
            [
                _predict(each.estimate, width * own, columns, engine)
                for each, own in zip(members, gaps, strict=True)
            ]
        )
        scores = logsumexp(likelihood.log_prob(tried, held.values, nuisance), axis=0)
        if np.mean(scores) > best:
            best, fitted, chosen = float(np.mean(scores)), tried, width
    means = likelihood.mean(fitted, nuisance)
    noise = likelihood.variance(fitted, nuisance).mean(axis=0)
    predicted = Predicted(held, means.mean(axis=0), means.var(axis=0), noise)
    calibrated = likelihood.calibrate(held.values, predicted.mean, predicted.variance)
    return calibrated, predicted, chosen


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
    except (OSError, ValueError) as error:
        return member._replace(failure=error)
    course.checkpoint.keep(piece, estimate, always=True)
    return member._replace(estimate=estimate)


def draw(estimate: RingEstimate, streams: Streams, learning: Learning) -> Draws:
    """Draws of a ring whose curvature is known."""
    n_draws = min(learning.draws, max(1, learning.max_bytes // (8 * estimate.cores.size)))
    flat = draw_gaps(estimate, streams.rng(1, Purpose.SPREAD), n_draws)
    flat *= estimate.width
    weighted, starts, bonds, strands = estimate.flat
    flat += weighted
    nuisance = np.tile(estimate.nuisance, (n_draws, 1))
    weights = np.tile(np.concatenate([each.ravel() for each in estimate.weights]), (n_draws, 1))
    return Draws(flat, starts, bonds, strands, nuisance, np.arange(1, n_draws + 1), weights)


def learn_more(
    estimates: Sequence[RingEstimate],
    data: Observations,
    likelihood: Likelihood,
    prior: RingPrior,
    learning: Learning,
    engine: Engine,
) -> tuple[list[RingEstimate], list[Draws]]:
    """Go on with new observations, in the units of the old; modes may have grown.

    The estimates given stay as they are: whatever interrupts this, nothing is learned by halves.
    """
    rows = ArrayRows(data)
    per_pass = max(1, -(-len(data.values) // learning.batch_size))
    passes = -(-FEWEST_BATCHES // per_pass)
    rates = [rate for rate in MORE_RATES for _ in range(passes)]
    setting = Setting(likelihood, prior.for_shape(data.shape), engine)

    def more(numbered: tuple[int, RingEstimate]) -> tuple[RingEstimate, Draws]:
        number, estimate = numbered
        streams = Streams.of_chain(learning.seed, number)
        wider = grown(estimate, data.shape)
        new = em.add(wider, rows, streams, learning.batch_size, rates, setting)
        return new, draw(new, streams, learning)

    found = engine.map_pieces(more, list(enumerate(estimates)))
    return [new for new, _ in found], [drawn for _, drawn in found]
