"""Held-out observations bound the noise."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring import TensorRing, metrics
from bayesring.data.observations import Observations
from bayesring.infer import chains
from bayesring.infer.holdout import MEMORY, RunningMoments, pooled
from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from tests.models import random_coords

SHAPE = (12, 12, 12)


def test_running_moments_forget(rng):
    moments = RunningMoments.empty(3)
    for value in [*[100.0] * 50, *[1.0] * (20 * MEMORY)]:
        moments = moments.add(np.full(3, value), np.full(3, 0.5))
    np.testing.assert_allclose(moments.mean, 1.0, rtol=1e-5)
    np.testing.assert_allclose(moments.variance, 0.0, atol=1e-4)
    moments = RunningMoments.empty(1)
    for value in [2.0, 4.0]:
        moments = moments.add(np.array([value]), np.array([value]))
    assert moments.mean[0] == 3.0
    assert moments.variance[0] == 1.0


def test_the_bound_is_the_excess_of_held_out_error():
    """Drawn towards no excess by 100 pseudo-values: by half for 100 values, hardly for many."""
    for n, share in ((100, 1 / 2), (300, 3 / 4), (9900, 0.99)):
        values, mean = np.tile([0.5, -0.5], n // 2), np.zeros(n)
        bound = Gaussian().calibrate(values, mean, np.full(n, 0.05)).max_precision
        np.testing.assert_allclose(bound, 1 / (share * 0.2))
        all_noise = Gaussian().calibrate(10 * values, mean, np.zeros(n)).max_precision
        np.testing.assert_allclose(all_noise, 1 / share)
        assert Gaussian().calibrate(values, mean, np.ones(n)).max_precision > 1e9


def test_chains_are_pooled_with_the_variance_between_them():
    chains = [RunningMoments(5, *np.array([[m], [m**2 + 0.5], [m / 4 + 0.25]])) for m in (1.0, 3.0)]
    found = pooled(Observations(np.zeros((1, 3)), np.zeros(1), SHAPE), chains)
    assert [float(each[0]) for each in found[1:]] == [2.0, 1.5, 0.75]


@pytest.fixture
def watched(rng, monkeypatch):
    """A fit of three chains, the values that each scan saw, and what the chains expected."""
    seen, moments = {}, {}
    step, explore = chains.gibbs.step, chains.explore

    def noted(streams, scan, state, problem, *engine):
        values = np.concatenate([block.values for block in problem.views[0]])
        seen.setdefault(scan, []).append(np.sort(values))
        return step(streams, scan, state, problem, *engine)

    def explored(chain, **named):
        explore(chain, **named)
        moments[chain.number] = chain.moments[-1]

    monkeypatch.setattr(chains.gibbs, "step", noted)
    monkeypatch.setattr(chains, "explore", explored)
    monkeypatch.setattr(chains.folds, "MOST", 0)  # not what is tested here
    coords, y = random_coords(rng, SHAPE, 600), 5.0 + 2.0 * rng.standard_normal(600)
    settings = {"warmup": 100, "draws": 4, "chains": 3, "n_jobs": 1, "random_state": 1}
    ring = TensorRing(1, progress=False, **settings).fit(coords, y)
    return ring, y, seen, [moments[chain] for chain in range(3)]


def test_held_out_values_are_left_out_of_exploration_and_rejoin_for_the_rest(watched):
    ring, y, seen, _ = watched
    scale = ring.posterior_.location, ring.posterior_.scale
    everything = np.sort((y - scale[0]) / scale[1])
    held = (ring.held_out_.values - scale[0]) / scale[1]
    assert 45 <= len(held) <= 75
    for scan in range(1, 105):
        assert len(seen[scan]) == 3
        for values in seen[scan]:
            if scan <= 75:
                values = np.sort(np.concatenate([values, held]))
            np.testing.assert_allclose(values, everything, atol=1e-12)


def test_the_noise_is_bounded_by_all_chains_since_the_rank_rests(watched):
    ring, _, _, moments = watched
    location, scale = ring.posterior_.location, ring.posterior_.scale
    assert [each.n_scans for each in moments] == [25] * 3
    found = ring.held_out_
    means = np.stack([each.mean for each in moments])
    np.testing.assert_allclose(found.mean, location + scale * means.mean(axis=0))
    variance = means.var(axis=0) + np.mean([each.variance for each in moments], axis=0)
    noise = np.mean([each.noise for each in moments], axis=0)
    np.testing.assert_allclose(found.std, scale * np.sqrt(variance + noise))
    standard = (found.values - location) / scale
    bounded = Gaussian().calibrate(standard, means.mean(axis=0), variance, ring.posterior_.nuisance)
    likelihood = ring.posterior_.likelihood
    np.testing.assert_allclose(likelihood.max_precision, bounded.max_precision)
    np.testing.assert_allclose(likelihood.tails, bounded.tails)


def test_noise_that_is_not_normal_is_not_fitted_away(rng):
    """Heavy-tailed noise whose size differs between slices: left free, the noise level falls to a
    tenth of the truth and predictions get worse; the guard keeps it and covers.
    """
    vectors = [rng.standard_normal(size) for size in SHAPE]
    sizes = rng.gamma(1.0, 1.0, (SHAPE[0], 1, 1))
    tensor = np.einsum("i,j,k->ijk", *vectors) + sizes * rng.standard_t(3, SHAPE)
    coords = np.stack([index.ravel() for index in np.indices(SHAPE)], axis=1)
    coords = coords[rng.permutation(len(coords))]
    y = tensor[tuple(coords.T)]
    settings = {"warmup": 240, "draws": 60, "chains": 1, "random_state": 1, "progress": False}
    errors, covers = [], []
    for likelihood in (Gaussian(max_precision=np.inf), Gaussian()):
        model = TensorRing(6, likelihood=likelihood, shape=SHAPE, **settings)
        model.fit(coords[:900], y[:900])
        errors.append(metrics.rmse(y[900:], model.predict(coords[900:])))
        covers.append(metrics.coverage(y[900:], *model.predict_interval(coords[900:])))
    assert errors[1] < 0.95 * errors[0]
    assert covers[0] < 0.85 < covers[1]


@pytest.mark.ci
def test_the_guard_does_little_where_noise_is_normal(rng):
    """Rank and noise as modelled: with the guard, errors and log scores are as good as without."""
    ratios, scores = [], []
    for seed in range(4):
        cores = [rng.standard_normal((size, 1, 1, 1)) for size in (15, 12, 10)]
        coords = random_coords(rng, (15, 12, 10), 1600)
        y = ring.entries(cores, coords) + 0.7 * rng.standard_normal(1600)
        for likelihood in (Gaussian(), Gaussian(max_precision=np.inf)):
            model = TensorRing(
                2,
                likelihood=likelihood,
                shape=(15, 12, 10),
                warmup=200,
                draws=100,
                random_state=seed,
                progress=False,
            ).fit(coords[:600], y[:600])
            ratios.append(np.mean(model.trace_[0].described["noise"][-100:]) / 0.7)
            scores.append(model.posterior_.log_score(coords[600:], y[600:]).mean())
    assert np.all(np.abs(np.array(ratios) - 1) < 0.15)
    assert np.mean(scores[0::2]) > np.mean(scores[1::2]) - 0.02


def test_a_bound_that_was_given_stays(rng, monkeypatch):
    """Values are held out to choose the size; they do not move a bound that the user set.

    Neither at the end nor in any scan.
    """
    step, seen = chains.gibbs.step, []

    def noted(streams, scan, state, problem, *engine):
        seen.append(problem.likelihood)
        return step(streams, scan, state, problem, *engine)

    monkeypatch.setattr(chains.gibbs, "step", noted)
    X = np.stack([rng.integers(0, n, 800) for n in (9, 8, 7)], axis=1)
    y = rng.standard_normal(800)
    given = Gaussian(max_precision=50.0)
    ring = TensorRing(likelihood=given, warmup=120, draws=10, chains=1, random_state=0)
    ring.set_params(progress=False, shape=(9, 8, 7)).fit(X, y)
    assert ring.held_out_ is not None
    assert ring.posterior_.likelihood == given
    assert len(seen) == 130
    assert all(each == given for each in seen)
