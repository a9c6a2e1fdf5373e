"""The schedule of online EM: phase by phase, and against the loop that it stands for."""

from __future__ import annotations

from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayesring.infer.schedule import (
    FINDING,
    GAIN,
    HALVINGS,
    LATE,
    LEAST,
    PATIENCE,
    RATE,
    SETTLING,
    Advice,
    Phase,
    Schedule,
)

LONG = 400
"""Looks allowed that no standstill runs short of."""


class Step(NamedTuple):
    """One look: its rate, whether the prior was learned in it, and what was done after."""

    rate: float
    expects: bool
    keep: bool = False
    go_back: bool = False
    wake: bool = False
    late: bool = False


def steps_of(schedule, losses):
    """What a schedule says, look by look, until it is done."""
    found, losses = [], iter(losses)
    while schedule.phase is not Phase.DONE:
        rate, expects = schedule.rate, schedule.expects
        schedule, advice = schedule.after(next(losses))
        found.append(Step(rate, expects, *advice))
    return found, schedule


def restated(most, losses):
    """The same as one plain loop; also the least loss since the prior came in, if it did."""
    found, losses = [], iter(losses)
    best, waited, rate, expects = np.inf, 0, 0.1, False
    least = rate * 0.5**6
    finding, fading = min(10, max(1, most // 16)), min(6, max(1, most // 4))
    n_late = min(5, max(1, most // 8))
    while rate > least and len(found) < most - fading - n_late:
        loss, used, woken = next(losses), (rate, expects), False
        waited += 1
        keep = loss < best * (1 - 1e-3)
        if keep:
            best, waited = loss, 0
        stands = waited >= (3 if expects else finding)
        if stands:
            if expects:
                rate /= 2
            else:
                woken, best = True, np.inf
            expects, waited = True, 0
        found.append(Step(*used, keep=keep, go_back=stands, wake=woken))
    if not expects and found:
        found[-1] = found[-1]._replace(wake=True)
    fall = (least / rate) ** (1 / fading)
    for _ in range(fading if rate > least else 0):
        rate *= fall
        next(losses)
        found.append(Step(rate, True))
    for _ in range(n_late):
        next(losses)
        found.append(Step(rate, True, late=True))
    return found, best


def noisy(seed, fall, noise):
    """Losses that fall and jitter, without end."""
    rng, level = np.random.default_rng(seed), 1.0
    while True:
        level *= 1 - fall * rng.random()
        yield level * np.exp(noise * rng.standard_normal())


MOST = st.one_of(st.integers(1, 40), st.integers(1, 500))


@given(MOST, st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
@example(1, [1.0])
@example(100, [0.0])
@example(300, [1.0, 1.0 - GAIN])
def test_any_losses(most, losses):
    found, schedule = steps_of(Schedule.begin(most), cycle(losses))
    expected, best = restated(most, cycle(losses))
    assert found == expected
    assert schedule.best == best
    assert schedule.looks == len(found) <= max(2, most)


@given(MOST, st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.03, 0.3]), st.floats(0, 0.5))
def test_losses_like_those_of_rings(most, seed, fall, noise):
    """Seen to fail: a best that is not forgotten when the prior comes in; waiting that goes on
    after a standstill; a gain of any size taken for one; fading that falls from the first rate.
    """
    found, schedule = steps_of(Schedule.begin(most), noisy(seed, fall, noise))
    expected, best = restated(most, noisy(seed, fall, noise))
    assert found == expected
    assert schedule.best == best


@given(MOST)
def test_settling(most):
    found, _ = steps_of(Schedule.settling(most), cycle([1.0]))
    assert found == [Step(SETTLING, True, late=True)] * min(LATE, max(1, most // 8))


@given(MOST, st.integers(0, 10**6))
def test_what_holds_of_every_course(most, seed):
    """The prior comes in once, rates never rise, and rings are averaged at the last rate."""
    found, _ = steps_of(Schedule.begin(most), noisy(seed, 0.03, 0.05))
    rates, expects = [step.rate for step in found], [step.expects for step in found]
    assert rates == sorted(rates, reverse=True)
    assert expects == sorted(expects)
    assert sum(step.wake for step in found) == (not expects[0])
    late = [step.late for step in found]
    assert late == sorted(late)
    assert {step.rate for step in found if step.late} == {rates[-1]}
    assert rates[-1] == pytest.approx(LEAST)


def after_all(schedule, losses):
    """The schedule after some looks, and the last advice."""
    advice = Advice()
    for loss in losses:
        schedule, advice = schedule.after(loss)
    return schedule, advice


def test_finding_goes_on_as_long_as_it_gains():
    schedule = Schedule.begin(LONG)
    for look in range(100):
        assert (schedule.phase, schedule.rate, schedule.expects) == (Phase.FIND, RATE, False)
        schedule, advice = schedule.after(0.99**look)
        assert advice == Advice(keep=True)


def test_the_prior_comes_in_at_the_first_standstill():
    schedule, advice = after_all(Schedule.begin(LONG), [1.0] * FINDING)
    assert (schedule.phase, advice) == (Phase.FIND, Advice())
    schedule, advice = schedule.after(1 - 0.9 * GAIN)  # too little to count
    assert advice == Advice(go_back=True, wake=True)
    assert (schedule.phase, schedule.rate, schedule.best) == (Phase.LEARN, RATE, np.inf)
    _, advice = schedule.after(5.0)  # worse than before, but the best of this phase
    assert advice == Advice(keep=True)


def test_rates_are_halved_at_every_other_until_rings_settle():
    schedule, _ = after_all(Schedule.begin(LONG), [1.0] * (FINDING + 1))
    schedule, advice = schedule.after(1.0)
    assert advice.keep
    for halving in range(HALVINGS + 1):
        assert (schedule.phase, schedule.rate) == (Phase.LEARN, RATE / 2**halving)
        schedule, advice = after_all(schedule, [1.0] * (PATIENCE - 1))
        assert advice == Advice()
        schedule, advice = schedule.after(1.0)
        assert advice == Advice(go_back=True)
    assert (schedule.phase, schedule.rate) == (Phase.SETTLE, LEAST)
    for _ in range(LATE):
        assert (schedule.phase, schedule.expects) == (Phase.SETTLE, True)
        schedule, advice = schedule.after(1.0)
        assert advice == Advice(late=True)
    assert schedule.phase is Phase.DONE


@pytest.mark.parametrize("stands", [True, False])
def test_short_of_looks_the_rate_fades(stands):
    """With the first E-step if there was none."""
    most = 40
    losses = [1.0, 1.0, 1.0] * stands + [0.9**look for look in range(most)]
    found, _ = steps_of(Schedule.begin(most), losses)
    fading = [step for step in found if not step.late][-(HALVINGS + 1) :]
    assert len(found) == most
    (woken,) = (place for place, step in enumerate(found) if step.wake)
    assert woken == (2 if stands else most - LATE - HALVINGS - 2)
    ratios = np.divide([step.rate for step in fading][1:], [step.rate for step in fading][:-1])
    np.testing.assert_allclose(ratios, ratios[0])
    assert all(step.expects and not step.keep and not step.go_back for step in fading)
    assert [step.late for step in found] == [False] * (most - LATE) + [True] * LATE


@pytest.mark.parametrize("most", [1, 2])
def test_with_hardly_a_look_it_fades_at_once(most):
    found, _ = steps_of(Schedule.begin(most), islice(cycle([1.0]), 2))
    assert [step.late for step in found] == [False, True]
    assert all(step.expects and not step.wake for step in found)
    np.testing.assert_allclose([step.rate for step in found], LEAST)
