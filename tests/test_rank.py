"""Changing the rank: what is dropped, what is added, when."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring import ring
from bayesring.infer import gibbs
from bayesring.infer import rank as rank_module
from bayesring.infer.base import StepInfo, make_problem
from bayesring.infer.rank import Adaption, Truncation, add_factor
from bayesring.infer.run import Schedule, run_chains
from bayesring.infer.streams import Streams
from bayesring.likelihoods import Gaussian
from tests.models import CORE_PRIORS, draw_model, name_of
from tests.sampling import bugs

RANK = (3, 4, 2)


def entries_of(state):
    return ring.dense(ring.weighted(state.cores, state.weights))


def without_factor(state, bond, factor):
    weights = list(state.weights)
    weights[bond] = weights[bond].copy()
    weights[bond][:, factor] = 0.0
    return state._replace(weights=tuple(weights))


def drop_changes_no_entry(rng, core_prior) -> bool:
    """Whether dropping a factor of weight zero leaves the tensor as it was, on every bond."""
    state, _, prior = draw_model(rng, Gaussian(), core_prior, (3, 4, 2), RANK)
    same = True
    for bond, size in enumerate(RANK):
        silent = without_factor(state, bond, 1)
        keep = np.arange(size) != 1
        smaller = rank_module.drop_factors(rng, silent, bond, keep, prior)
        assert smaller.rank == tuple(r - (d == bond) for d, r in enumerate(RANK))
        same &= np.allclose(entries_of(smaller), entries_of(silent), rtol=1e-12)
    return same


@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
def test_dropping_a_silent_factor_changes_no_entry(rng, core_prior):
    assert drop_changes_no_entry(rng, core_prior)


def test_a_factor_dropped_in_the_wrong_core_is_caught(rng, monkeypatch):
    bugs.factor_dropped_in_the_wrong_core(monkeypatch)
    assert not drop_changes_no_entry(rng, CORE_PRIORS[0])


@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
def test_adding_a_factor_keeps_the_old_ones(rng, core_prior):
    state, data, prior = draw_model(rng, Gaussian(), core_prior, (3, 4, 2), RANK)
    for bond, size in enumerate(RANK):
        larger = add_factor(rng, state, bond, prior)
        assert larger.rank == tuple(r + (d == bond) for d, r in enumerate(RANK))
        np.testing.assert_allclose(
            entries_of(without_factor(larger, bond, size)), entries_of(state), rtol=1e-10
        )
        problem = make_problem(data, Gaussian(), prior)
        after, _ = gibbs.step(Streams.of_chain(0, 0), 1, larger, problem)
        assert after.rank == larger.rank


def adapt_once(rng, policy, contributions, scan):
    state, data, prior = draw_model(rng, Gaussian(), CORE_PRIORS[0], (3, 4, 2), RANK)
    info = StepInfo(np.zeros(2), 0.0, tuple(np.array([each]) for each in contributions))
    problem = make_problem(data, Gaussian(), prior)
    return policy.adapt(Streams.of_chain(0, 0), scan, state, info, problem).rank


SMALL = ([0.5, 0.001, 0.4], [0.0, 0.0, 0.0, 0.0], [0.5, 0.5])
LARGE = ([0.3] * 3, [0.2] * 4, [0.5] * 2)


def test_truncation_only_drops_and_never_the_last(rng):
    assert adapt_once(rng, Truncation(every=5), SMALL, 10) == (2, 1, 2)
    assert adapt_once(rng, Truncation(every=5), LARGE, 10) == RANK


def test_adaption_drops_or_grows_per_bond(rng):
    certain = Adaption(every=5, kappa0=0.0, kappa1=-1e-12, maximum=4)
    assert adapt_once(rng, certain, SMALL, 10) == (2, 1, 3)
    assert adapt_once(rng, certain, LARGE, 10) == (4, 4, 3)


def test_nothing_happens_between_looks_and_growth_fades(rng):
    assert adapt_once(rng, Adaption(every=5), SMALL, 11) == RANK
    assert adapt_once(rng, Adaption(every=5, kappa1=-10.0), LARGE, 10) == RANK


def test_kappa1_must_be_negative():
    with pytest.raises(ValueError, match=r"kappa1 of Adaption must be negative, got 0\.1"):
        Adaption(kappa1=0.1)


def test_the_rank_rests_before_the_first_kept_draw(rng):
    _, data, prior = draw_model(rng, Gaussian(), CORE_PRIORS[0])
    policy = Adaption(every=1, kappa1=-1e-12, maximum=50, threshold=0.0)
    schedule = Schedule(21, 9, 2**30)
    [(draws, trace)] = run_chains(data, Gaussian(), prior, policy, schedule, 0, 1, 1).chains
    assert tuple(trace.rank[0]) == (2, 2, 2)
    assert tuple(trace.rank[schedule.adapt - 1]) != tuple(trace.rank[schedule.adapt])
    assert len(set(map(tuple, trace.rank[schedule.adapt :]))) == 1
    assert draws.rank == tuple(trace.rank[-1])
