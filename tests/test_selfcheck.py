"""`check` believes a right model and flags one whose noise was halved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesring import TensorRing
from bayesring.data.observations import in_order
from bayesring.infer import gibbs, selfcheck
from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from tests.models import random_coords

SHAPE = (8, 7, 6)


def table(seed, n=300, binary=False):
    rng = np.random.default_rng([seed, n])
    cores = [0.7 * rng.standard_normal((size, 1, 2, 2)) + 0.6 * np.eye(2) for size in SHAPE]
    coords = random_coords(rng, SHAPE, n)
    f = ring.entries(cores, coords)
    f = (f - f.mean()) / f.std()
    if binary:
        return coords, (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(float)
    return coords, 10.0 + 3.0 * (f + 0.4 * rng.standard_normal(n))


def fit(seed, n_jobs=1, binary=False, **changes):
    settings = {"warmup": 60, "draws": 100, "chains": 2, "shape": SHAPE, "progress": False}
    likelihood = "bernoulli" if binary else "gaussian"
    model = TensorRing(
        2, likelihood=likelihood, random_state=seed, n_jobs=n_jobs, **settings | changes
    )
    return model.fit(*table(seed, binary=binary))


def with_half_the_noise(model):
    """The same model, its kept precisions four times as large."""
    posterior = model.posterior_
    chains = tuple(draws._replace(nuisance=4.0 * draws.nuisance) for draws in posterior.chains)
    model.posterior_ = replace(posterior, chains=chains)
    return model


def test_a_right_model_is_believed_and_half_the_noise_is_not():
    model = fit(1)
    right = model.check()
    assert right.believable, right
    assert "can be believed" in str(right)
    assert right.ranks.shape[0] == selfcheck.REFITS
    assert np.all((right.ranks >= 0) & (right.ranks <= 1))
    assert right.coverage[0.9] == pytest.approx(0.9, abs=0.06)
    assert right.scatter == pytest.approx(1.0, abs=0.15)
    wrong = with_half_the_noise(model).check()
    assert not wrong.believable
    assert wrong.scatter == pytest.approx(4.0, abs=0.8)
    assert "Do not believe" in wrong.sentence


def test_half_the_noise_is_seen_in_the_ranks_alone(monkeypatch):
    """Simulated and observed values disagree on the noise, so refits find it between the two."""
    monkeypatch.setattr(selfcheck, "observed_scatter", lambda *_: 1.0)
    model = fit(2)
    assert model.check().believable
    found = with_half_the_noise(model).check()
    assert not found.believable
    assert found.coverage[0.5] > 0.6


@pytest.mark.ci
def test_binary_values():
    found = fit(3, binary=True, chains=4, warmup=300, draws=200).check()
    assert found.believable, found
    assert found.scatter == pytest.approx(1.0, abs=0.3)


def test_one_seed_one_answer_on_any_number_of_threads():
    one, two = fit(4, n_jobs=1, draws=20).check(), fit(4, n_jobs=2, draws=20).check()
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert one.sentence == two.sentence


def test_a_truth_above_all_draws_has_the_last_of_their_places(monkeypatch):
    """One more than there are draws, spread evenly. Seen to fail: divided by one place more."""
    model, own, calls = fit(4, draws=20), Gaussian.simulate, []

    def simulated(self, rng, fitted, *rest):
        calls.append(fitted)
        values = own(self, rng, fitted, *rest)
        return values if len(calls) == 1 else np.full_like(values, -np.inf)

    monkeypatch.setattr(Gaussian, "simulate", simulated)
    posterior = model.posterior_
    data = in_order(model.observed_)
    standard = (data.values - posterior.location) / posterior.scale
    checked = selfcheck.CheckedFit(
        posterior.chains,
        SHAPE,
        posterior.likelihood,
        model.prior_,
        data._replace(values=standard),
        seed=1,
        scans=2 * 20,
        n_fits=2,
    )
    ranks = selfcheck.refit(checked, 0)
    assert len(calls) == 1 + 10, "half of 20 scans"
    assert ranks.min() >= 10 / 11
    assert ranks.max() > 1 - 0.1 / 11


@pytest.mark.parametrize(("draws", "refits"), [(0, 2), (1, 10), (4, 20)])
def test_a_check_makes_no_more_scans_than_the_fit(monkeypatch, draws, refits):
    """Seen to fail: after a fit of 100 scans it made 200."""
    warmup, draws = (10, 5) if draws == 0 else (60, 40 * draws)
    model, scans = fit(4, warmup=warmup, draws=draws, chains=1), []
    step = gibbs.step

    def counted(streams, scan, *rest, **also):
        scans.append(scan)
        return step(streams, scan, *rest, **also)

    monkeypatch.setattr(gibbs, "step", counted)
    assert len(model.check().ranks) == refits
    assert len(scans) <= max(warmup + draws, 20)
    assert len(model.check(n_fits=2).ranks) == 2


def test_online_em_can_be_checked_too():
    model = fit(5, inference="online-em", epochs=20)
    found = model.check()
    assert found.ranks.shape[0] == selfcheck.REFITS
    assert found.believable, found
    assert model.check(n_fits=3).ranks.shape[0] == 3
    with pytest.raises(ValueError, match="n_fits must be an integer of at least 2, got 1"):
        model.check(n_fits=1)


def test_without_training_data_it_says_what_is_missing():
    model = fit(6, draws=10, warmup=5)
    model.observed_ = None
    with pytest.raises(ValueError, match="has not kept them"):
        model.check()


@pytest.mark.parametrize(
    ("coverage", "believable"),
    [(0.9, True), (0.87, True), (0.8, False), (0.96, True), (1.0, False)],
)
def test_the_verdict_follows_coverage(rng, coverage, believable):
    ranks = rng.random((20, 4_000))
    outside = ranks[np.abs(ranks - 0.5) > 0.45]
    inside = ranks[np.abs(ranks - 0.5) <= 0.45]
    chosen = rng.random(ranks.shape) < coverage
    made = np.where(chosen, rng.choice(inside, ranks.shape), rng.choice(outside, ranks.shape))
    assert selfcheck.judged(made, 1.0).believable is believable


@pytest.mark.slow
def test_twenty_trials():
    """Half the noise is flagged in at least 19 of 20 tables, a right model in at most one."""
    right, flagged = 0, 0
    for seed in range(100, 120):
        model = fit(seed)
        right += model.check().believable
        flagged += not with_half_the_noise(model).check().believable
    assert right >= 19
    assert flagged >= 19
