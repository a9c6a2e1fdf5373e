"""Every observation left out once: what calibrates intervals where few can be held out.

The chains go on from where they ended, without the observations of one fold, forget them in some
scans, and predict them in some more. Only the distribution function of the predictions at the
values is kept, averaged over scans and chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.data.splitting import folds_of, left_out
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, Problem, make_problem
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import FloatArray, RingState
from bayesring.priors import RingPrior

FOLDS = 8
FEWEST, MOST = 20, 2_000
"""Observations below which leaving some out says nothing, and from which a tenth says enough."""
FORGET, PREDICT = 20, 20
"""Scans of each chain without the observations of a fold: before any counts, and those that do."""
CHAINS = 4
"""Chains that go on, at most."""


class Crossing(NamedTuple):
    """What chains have in common while they leave out observations."""

    likelihood: Likelihood
    prior: RingPrior
    method: Method
    seed: int


def ranks_left_out(
    data: Observations, states: Sequence[RingState], crossing: Crossing, engine: Engine
) -> FloatArray:
    """F(y_n) under the draws of chains that have not seen y_n, (M,), in the order of `data`.

    Without values of which only the ends are known. Depends on the seed and on the observations
    alone, not on who works.
    """
    places = folds_of(data, FOLDS, crossing.seed)
    ranks = np.empty(len(data.values))
    for fold in range(FOLDS):
        kept, held = left_out(data, places == fold)
        problem = make_problem(kept, crossing.likelihood, crossing.prior, crossing.method, engine)
        streams = [Streams.of_fold(crossing.seed, k, fold) for k in range(len(states))][:CHAINS]
        starts = list(zip(states, streams, strict=False))
        ask = partial(_ranks, problem=problem, held=held, engine=engine)
        ranks[places == fold] = np.mean(engine.map_chains(ask, starts), axis=0)
    censored = data.given.censored
    return ranks if censored is None else ranks[~censored]


def _ranks(
    start: tuple[RingState, Streams], problem: Problem, held: Observations, engine: Engine
) -> FloatArray:
    """F at the held values, averaged over the scans that count."""
    state, streams = start
    columns = np.ascontiguousarray(held.coords.T, dtype=np.int32)
    given = problem.likelihood.locate(held.given, held.along)
    total = np.zeros(len(held.values))
    for scan in range(1, FORGET + PREDICT + 1):
        state, _ = gibbs.step(streams, scan, state, problem, engine)
        if scan > FORGET:
            flat = ring.flatten(ring.weighted(state.cores, state.weights))
            fitted = engine.entries(flat, columns)
            if given.offset is not None:
                fitted = fitted + given.offset
            total += problem.likelihood.cdf(held.values, fitted, state.nuisance, given)
    return total / PREDICT
