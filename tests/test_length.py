"""How long chains run: rules of the stages, and runs that end by them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bayesring import TensorRing
from bayesring.infer import chains, length
from bayesring.infer.length import WINDOW, Deadline, Length, Stage, settled, stands_still
from bayesring.infer.precision import answer_error
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.growth import JointGrowth
from tests.models import random_coords

SHAPE = (8, 9, 7)
AUTO = {"warmup": "auto", "draws": "auto", "progress": False, "shape": SHAPE}
SHORT = {"chains": 2, "random_state": 3, "n_jobs": 1, **AUTO}


def table(n=700, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    vectors = [1 + rng.standard_normal(size) for size in SHAPE]
    coords = random_coords(rng, SHAPE, n)
    signal = np.einsum("i,j,k->ijk", *vectors)[tuple(coords.T)]
    return coords, signal / signal.std() + noise * rng.standard_normal(n)


def test_given_numbers_mean_what_they_say():
    given = Length(40, 30, 1)
    ends = [given.end(stage, 0) for stage in (Stage.GROW, Stage.BOUND, Stage.SETTLE)]
    assert ends == [20, 30, 40]
    assert given.end(Stage.DRAW, 40) == 70
    assert Length(None, 30, 1).end(Stage.DRAW, 110) == 140
    assert Length(40, None, 1).end(Stage.DRAW, 40) == length.OPEN


def test_chains_that_drift_do_not_stand_still(rng):
    noise = rng.standard_normal((4, 2 * WINDOW))
    assert stands_still(noise)
    drift = 0.2 * np.arange(2 * WINDOW)
    assert not stands_still(noise + drift)
    assert not stands_still(noise - drift)
    assert not stands_still(noise[:, :-1]), "two windows are needed"
    levels = np.array([[-500.0], [0.0], [3.0], [900.0]])
    assert stands_still(noise + levels), "chains may differ"
    assert stands_still(np.concatenate([100 * rng.standard_normal((4, 60)), noise], axis=1))
    step = np.tile([1.0, -1.0], WINDOW) + 1.129 * (np.arange(2 * WINDOW) >= WINDOW)
    assert not stands_still([step]), "by the deviation within windows, not over both"
    assert not settled(WINDOW, noise)
    assert settled(10 * WINDOW, noise + drift), "at the latest"


def test_large_tables_may_drift_by_little_per_observation(rng):
    """The drift from one window to the next is that of 20 scans, 4 in all."""
    traces = rng.standard_normal((4, 2 * WINDOW)) + 0.2 * np.arange(2 * WINDOW)
    assert not settled(2 * WINDOW, traces, information=300)
    assert settled(2 * WINDOW, traces, information=500)
    assert settled(2 * WINDOW, -traces, information=500)


def test_the_drift_is_judged_by_the_number_of_observations(monkeypatch):
    seen = []
    monkeypatch.setattr(chains, "settled", lambda *args: seen.append(args[2]) or True)
    TensorRing(1, **SHORT | {"chains": 1, "draws": 3}).fit(*table(600))
    coords, values = table(600)
    binary = (values > np.median(values)).astype(float)
    TensorRing(1, likelihood="bernoulli", **SHORT | {"chains": 1, "draws": 3}).fit(coords, binary)
    assert seen[0] == 600
    assert seen[1] <= 150, "a binary value counts as a quarter, and repeats of a cell as one"


def test_looks_come_further_and_further_apart():
    looks = [0]
    while looks[-1] < 1000:
        looks.append(length.next_draws(looks[-1]))
    assert looks[:6] == [0, 50, 75, 100, 125, 175]
    assert all(each % length.LOOK == 0 for each in looks)
    assert (length.most_draws(100), length.most_draws(200_000)) == (1000, 500)
    assert length.most_draws(10**9) == 200


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=["real", "binary"])
def test_the_error_of_an_answer_is_what_repeated_runs_show(rng, likelihood):
    """Means or ends of intervals of independent runs differ by the error, within a third."""
    spread, runs, n_chains, draws = 1.5, 300, 4, 60
    entries = spread * rng.standard_normal((runs, n_chains, draws, 1))
    precision = 1.0 + rng.gamma(30.0, 1 / 30.0, (runs, n_chains, draws, 1))
    nuisance = np.zeros_like(precision) if likelihood.binary else precision
    found = np.median(
        [answer_error(likelihood, *run) for run in zip(entries, nuisance, strict=True)]
    )
    parts = (each.reshape(runs, n_chains * draws, 1) for each in (entries, nuisance))
    flat = zip(*parts, strict=True)
    if likelihood.binary:
        answers = [likelihood.mean(f, extra).mean() for f, extra in flat]
        assert found == pytest.approx(np.std(answers), rel=0.33)
        return
    ends = [likelihood.quantile(0.95, f, extra)[0] for f, extra in flat]
    deviation = np.sqrt(spread**2 + np.mean(1 / precision))
    assert found == pytest.approx(np.std(ends) / deviation, rel=0.33)


def test_chains_that_disagree_have_a_large_error(rng):
    entries = rng.standard_normal((4, 100, 20))
    nuisance = np.full((4, 100, 1), 4.0)
    agree = answer_error(Gaussian(), entries, nuisance)
    apart = answer_error(Gaussian(), entries + np.arange(4.0)[:, None, None], nuisance)
    assert agree < 0.2
    assert apart > 2 * agree


@pytest.fixture(scope="module")
def automatic():
    return TensorRing(**SHORT).fit(*table())


def test_a_run_ends_when_the_answer_stands(automatic):
    assert automatic.diagnostics().error < 0.13
    scans = len(automatic.trace_[0].log_likelihood)
    assert scans - automatic.warmup_ in {50, 75, 100, 125, 175, 225, 300, 375, 475}
    assert automatic.posterior_.chains[0].scans[0] > automatic.warmup_
    assert not automatic.diagnostics().problems


@pytest.mark.parametrize("still", [True, False])
def test_bounding_does_not_wait_for_chains_to_stand_still(monkeypatch, still):
    found, explore = [], chains.Ensemble.explore
    monkeypatch.setattr(
        chains.Ensemble, "explore", lambda *args: found.append(explore(*args)) or found[-1]
    )
    monkeypatch.setattr(length, "stands_still", lambda *_: still)
    ring = TensorRing(1, **SHORT | {"chains": 1, "draws": 3}).fit(*table())
    assert found == [2 * WINDOW], "the rank is given, so that nothing grows before"
    assert ring.warmup_ == found[0] + (2 if still else 10) * WINDOW


def test_the_result_does_not_depend_on_threads(automatic):
    again = TensorRing(**SHORT | {"n_jobs": 2}).fit(*table())
    for one, other in zip(automatic.posterior_.chains, again.posterior_.chains, strict=True):
        np.testing.assert_array_equal(one.flat, other.flat)


def test_more_noise_takes_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr(chains, "enough", lambda *_: False)
    monkeypatch.setattr(chains, "STALLED", np.inf)
    monkeypatch.setattr(chains, "most_draws", lambda n: 130)
    ring = TensorRing(2, **SHORT | {"chains": 1}).fit(*table(300))
    assert len(ring.trace_[0].log_likelihood) - ring.warmup_ == 130


def test_chains_that_disagree_for_good_end_at_the_second_look(monkeypatch):
    """Not at the first, where half of the draws are too few to say so."""
    monkeypatch.setattr(chains, "enough", lambda *_: False)
    monkeypatch.setattr(chains, "answer_error", lambda *_: 1.0)
    ring = TensorRing(2, **SHORT | {"chains": 1}).fit(*table(300))
    assert len(ring.trace_[0].log_likelihood) - ring.warmup_ == 75


def test_draws_without_a_number_are_spread_evenly(monkeypatch):
    from bayesring.infer import chain

    monkeypatch.setattr(chain, "MOST_KEPT", 20)
    monkeypatch.setattr(chains, "enough", lambda *_: False)
    monkeypatch.setattr(chains, "STALLED", np.inf)
    monkeypatch.setattr(chains, "most_draws", lambda n: 130)
    ring = TensorRing(2, **SHORT | {"chains": 1}).fit(*table(300))
    kept = ring.posterior_.chains[0].scans - ring.warmup_
    np.testing.assert_array_equal(kept, np.arange(8, 131, 8))


def test_all_chains_together_choose_one_size(monkeypatch):
    """By the loss of their pooled predictions, not of one chain's."""
    seen = []
    judge = chains.Ensemble._losses

    def noted(self, look):
        seen.append(([each.looks[look - 1] for each in self.chains], judge(self, look)))
        return seen[-1][1]

    monkeypatch.setattr(chains.Ensemble, "_losses", noted)
    ring = TensorRing(**SHORT | {"chains": 3, "draws": 5}).fit(*table())
    assert len({draws.rank for draws in ring.posterior_.chains}) == 1
    assert len(seen) >= 4
    values = (ring.held_out_.values - ring.posterior_.location) / ring.posterior_.scale
    for predictions, losses in seen:
        np.testing.assert_allclose(losses, (values - np.mean(predictions, axis=0)) ** 2)


def test_weights_count_when_chains_choose_a_size(rng, monkeypatch):
    """A held-out row of weight three says as much of a size as three rows."""
    seen, judge = [], chains.Ensemble._losses

    def noted(self, look):
        pooled = np.mean([each.looks[look - 1] for each in self.chains], axis=0)
        seen.append((self._held, pooled, judge(self, look)))
        return seen[-1][2]

    monkeypatch.setattr(chains.Ensemble, "_losses", noted)
    coords, values = table()
    weight = rng.integers(1, 4, len(values))
    ring = TensorRing(**SHORT | {"draws": 5, "max_time": 1e-9})
    ring.fit(coords, values, sample_weight=weight)
    for held, pooled, losses in seen:
        own = held.given.weight
        assert np.ptp(own) > 0
        np.testing.assert_allclose(losses, (held.values - pooled) ** 2 * own / own.mean())
    assert seen


def test_growth_that_has_no_time_to_end_goes_back_to_the_best_size(monkeypatch):
    """A given warm-up may end while the chains try a larger ring, which has failed once."""
    monkeypatch.setattr(
        JointGrowth, "judge", lambda self, growth, losses: growth._replace(place=1, failed=1)
    )
    ring = TensorRing(JointGrowth(), **SHORT | {"warmup": 80, "draws": 3}).fit(*table())
    assert {tuple(trace.rank[30]) for trace in ring.trace_} == {(8, 8, 8)}
    assert {draws.strands for draws in ring.posterior_.chains} == {2}


def test_time_that_is_up_ends_every_stage():
    begin = time.monotonic()
    ring = TensorRing(max_time=1e-9, **SHORT).fit(*table())
    assert time.monotonic() - begin < 60
    assert len(ring.trace_[0].log_likelihood) <= 100
    deadline = Deadline(1e-9)
    assert deadline.hurries(Stage.BOUND, WINDOW)
    assert not deadline.hurries(Stage.BOUND, WINDOW - 1)
    assert not Deadline(None).hurries(Stage.DRAW, 10**9)


class PowerCut(BaseException):
    pass


@pytest.mark.parametrize("at", [7, 31, 95, 150])
def test_automatic_runs_resume_with_the_same_bits(tmp_path, monkeypatch, automatic, at):
    """Cut in the second chain, when the first is elsewhere."""
    step = chains.Chain.step

    def cut(self, *rest):
        if self.number == 1 and self.scan == at:
            raise PowerCut
        return step(self, *rest)

    monkeypatch.setattr(chains.Chain, "step", cut)
    with pytest.raises(PowerCut):
        TensorRing(**SHORT).fit(*table(), checkpoint=tmp_path, checkpoint_every=0)
    monkeypatch.undo()
    again = TensorRing(**SHORT).fit(*table(), checkpoint=tmp_path, checkpoint_every=0)
    for one, other in zip(automatic.posterior_.chains, again.posterior_.chains, strict=True):
        np.testing.assert_array_equal(one.flat, other.flat)
    monkeypatch.setattr(chains.Chain, "step", lambda *_: pytest.fail("it was finished"))
    TensorRing(**SHORT).fit(*table(), checkpoint=tmp_path, checkpoint_every=0)


@pytest.mark.parametrize("wrong", [0, -1.0, "long", True, np.nan])
def test_wrong_limits_of_time_are_refused(wrong):
    with pytest.raises(ValueError, match="max_time must be None or a positive number"):
        TensorRing(max_time=wrong).fit([[0, 0, 0]], [1.0])
    with pytest.raises(ValueError, match="warmup must be 'auto' or an integer"):
        TensorRing(warmup="long").fit([[0, 0, 0]], [1.0])


def test_a_time_too_long_for_a_float_is_no_limit():
    found = TensorRing(max_time=10**400, **SHORT | {"draws": 5}).fit(*table())
    assert found.posterior_.n_draws > 0
