"""Few observations, each left out once, calibrate the intervals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from bayesring import TensorRing
from bayesring.data.splitting import folds_of
from bayesring.infer import folds
from bayesring.likelihoods import Gaussian
from bayesring.likelihoods.real_valued import SMALLEST_SIZE
from bayesring.model.tails import LEVELS, NORMAL_TAILS
from bayesring.model.types import Observations
from tests.models import random_coords
from tests.online.planted import planted

SHAPE = (8, 7, 6)


def fit(X, y, n_jobs=1, **changes):
    settings = {"warmup": 80, "draws": 40, "chains": 2, "random_state": 1, "progress": False}
    return TensorRing(2, shape=SHAPE, n_jobs=n_jobs, **settings | changes).fit(X, y)


def test_every_observation_is_in_one_fold():
    coords = np.argwhere(np.ones(SHAPE))[:309:3]
    data = Observations(coords, np.zeros(103), SHAPE)
    places = folds_of(data, 8, seed=4)
    assert sorted(np.bincount(places)) == [12] + [13] * 7
    np.testing.assert_array_equal(places, folds_of(data, 8, seed=4))
    assert np.any(places != folds_of(data, 8, seed=5))


def test_left_out_values_are_not_seen(rng, monkeypatch):
    """Whoever predicts a value must not have been given it.

    The fold's chains get data without it, and their scans know of nothing else.
    """
    X = random_coords(rng, SHAPE, 60)
    y = np.arange(60.0)
    seen = []
    own = folds.left_out

    def watched(data, chosen):
        kept, held = own(data, chosen)
        seen.append((kept.values, held.values))
        return kept, held

    monkeypatch.setattr(folds, "left_out", watched)
    fit(X, y)
    assert len(seen) == folds.FOLDS
    for kept, held in seen:
        assert not set(kept) & set(held)
        assert len(kept) + len(held) == 60
    assert len({value for _, held in seen for value in held}) == 60


def test_ranks_are_means_over_the_scans_that_count(rng, monkeypatch):
    """Seen to fail: one scan more than they are divided by, so that F could be above one."""
    X, y, _ = planted(rng, 60, shape=SHAPE)
    found, own = [], folds.ranks_left_out

    def watched(*arguments):
        with monkeypatch.context() as within:
            within.setattr(Gaussian, "cdf", lambda self, values, *_: np.full(len(values), 0.5))
            found.append(own(*arguments))
        return found[-1]

    monkeypatch.setattr(folds, "ranks_left_out", watched)
    fit(X, y)
    np.testing.assert_allclose(found[0], 0.5, rtol=1e-12)


def test_every_chain_has_streams_of_its_own_in_every_fold(rng, monkeypatch):
    """Of four chains at most. Seen to fail: one stream for all folds; only the first chain."""
    X, y, _ = planted(rng, 60, shape=SHAPE)
    seen, own = [], folds._ranks

    def watched(start, **named):
        seen.append(start[1])
        return own(start, **named)

    monkeypatch.setattr(folds, "_ranks", watched)
    fit(X, y, chains=folds.CHAINS + 1)
    assert len(seen) == len(set(seen)) == folds.FOLDS * folds.CHAINS


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupted_in_the_folds_intervals_are_calibrated_by_what_was_held_out(
    rng, monkeypatch, error
):
    """And by the draws, as those of more observations are; the draws are there.

    Seen to fail: SystemExit, that is SIGTERM, lost all draws; the noise of the draws forgotten.
    """
    X, y, _ = planted(rng, 900, shape=SHAPE)
    monkeypatch.setattr(folds, "MOST", 0)
    expected = fit(X, y).posterior_.likelihood
    monkeypatch.setattr(folds, "MOST", 2_000)

    def interrupted(*arguments):
        raise error

    monkeypatch.setattr(folds, "ranks_left_out", interrupted)
    settings = {"warmup": 80, "draws": 40, "chains": 2, "random_state": 1, "progress": False}
    model = TensorRing(2, shape=SHAPE, n_jobs=1, **settings)
    with pytest.raises(error):
        model.fit(X, y)
    assert model.interrupted_
    assert model.posterior_.likelihood == expected


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0])
def test_tails_take_on_the_size_of_normal_scores(rng, size):
    """Intervals too wide or too narrow by a factor are mended by it, with 400 values."""
    likelihood = Gaussian().calibrate_by_ranks(ndtr(size * rng.standard_normal(400)))
    np.testing.assert_allclose((likelihood.tails / NORMAL_TAILS)[20:], size, rtol=0.25)
    assert likelihood.tails[89] / NORMAL_TAILS[89] == pytest.approx(size, rel=0.15)
    assert likelihood.stretch == pytest.approx(size, rel=0.15)


def test_few_values_move_tails_little_and_equal_ones_not_to_zero():
    few = Gaussian().calibrate_by_ranks(ndtr(3.0 * ndtri(np.arange(1, 4) / 4)))
    assert 1.0 < few.stretch < 1.7
    equal = Gaussian().calibrate_by_ranks(np.full(300, 0.5))
    assert np.all(equal.tails >= SMALLEST_SIZE * NORMAL_TAILS)
    assert len(equal.tails) == LEVELS.size


def test_only_intervals_and_samples_of_gibbs_change(rng, monkeypatch):
    """Draws, and so means and everything without noise, are those of the chains."""
    X, y, _ = planted(rng, 150, shape=SHAPE)
    model = fit(X, y)
    assert model.posterior_.likelihood.tails
    monkeypatch.setattr(folds, "FEWEST", 10_000)
    plain = fit(X, y)
    assert not plain.posterior_.likelihood.tails
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    for one, two in zip(model.posterior_.chains, plain.posterior_.chains, strict=True):
        np.testing.assert_array_equal(one.flat, two.flat)


@pytest.mark.parametrize("inference", ["gibbs", "online-em"])
def test_threads_do_not_change_the_calibration(rng, inference):
    X, y, _ = planted(rng, 120, shape=SHAPE)
    own = {"epochs": 10} if inference == "online-em" else {}
    one, two = (fit(X, y, n, inference=inference, **own) for n in (1, 2))
    assert one.posterior_.likelihood == two.posterior_.likelihood
    np.testing.assert_array_equal(one.predict_interval(X), two.predict_interval(X))


def test_short_warmups_and_plain_priors_are_left_alone(rng):
    X, y, _ = planted(rng, 120, shape=SHAPE)
    assert not fit(X, y, warmup=20).posterior_.likelihood.tails
    paper = fit(X, y, likelihood=Gaussian(max_precision=np.inf))
    assert not paper.posterior_.likelihood.tails


@pytest.mark.ci
@pytest.mark.parametrize("inference", ["gibbs", "online-em"])
def test_intervals_of_few_observations_cover(inference):
    """Ten tables of 150 observations: means within five points and chance.

    Seen to fail: draws of online EM around its rings, 68 to 78 % in 90 % intervals.
    """
    inside = []
    for seed in range(10):
        rng = np.random.default_rng([7, seed])
        X, y, _ = planted(rng, 1_150, shape=SHAPE, noise=0.4)
        own = {"epochs": 20} if inference == "online-em" else {}
        model = fit(X[:150], y[:150], inference=inference, **own)
        ends = [model.predict_interval(X[150:], level) for level in (0.5, 0.9)]
        inside.append([np.mean((low <= y[150:]) & (y[150:] <= high)) for low, high in ends])
    half, most = np.mean(inside, axis=0)
    assert half == pytest.approx(0.5, abs=0.08)
    assert most == pytest.approx(0.9, abs=0.06)
