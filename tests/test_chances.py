"""Probabilities that come true as often as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from bayesring import TensorRing, load
from bayesring.likelihoods import Bernoulli
from bayesring.model import chances
from bayesring.model.types import Given


def draws_of(rng, n, spread, draws=200):
    """Log odds of every draw, their probabilities' mean and variance, and outcomes of the mean."""
    centre = rng.normal(0.0, 2.0, n)
    odds = centre + spread * rng.standard_normal((draws, n))
    own = expit(odds)
    return odds, own.mean(axis=0), own.var(axis=0), centre


def test_scatter_is_found_where_draws_scatter_too_much(rng):
    _, mean, variance, centre = draws_of(rng, 20_000, 2.0)
    tossed = {
        name: (rng.random(mean.size) < truth) * 1.0
        for name, truth in (
            ("right", mean),
            ("no scatter", expit(centre)),
            ("half", expit(centre[None] + rng.standard_normal((400, 1))).mean(axis=0)),
        )
    }
    found = {name: chances.fit_scatter(y, mean, variance) for name, y in tossed.items()}
    assert abs(found["right"] - 1.0) <= 0.1
    assert found["no scatter"] <= 0.3
    assert 0.3 < found["half"] < 0.7


def test_the_approximation_is_that_of_the_draws(rng):
    odds, mean, variance, _ = draws_of(rng, 2_000, 1.5, draws=4_000)
    for scatter in (0.0, 0.5, 1.0, 1.4):
        exact = expit(chances.moved(odds, scatter, ())).mean(axis=0)
        np.testing.assert_allclose(chances.scattered(mean, variance, scatter), exact, atol=0.02)


def test_few_values_change_nothing(rng):
    """Nothing is done to what is right, nor by values too few to tell."""
    _, mean, variance, centre = draws_of(rng, 30, 2.0)
    y = (rng.random(30) < expit(centre)) * 1.0
    assert chances.fit_scatter(y, mean, variance) == 1.0
    mean = rng.random(3_000)
    assert chances.fit_curve((rng.random(3_000) < mean) * 1.0, mean) == ()


def test_a_curve_is_learned_increases_and_reaches_its_aim(rng):
    """Said p, comes true with p^2: the curve undoes it, for every cell's mean over draws."""
    said = rng.uniform(0.001, 0.999, 40_000)
    curve = chances.fit_curve((rng.random(said.size) < said**2) * 1.0, said)
    assert np.all(np.diff(curve) >= 0)
    asked = np.linspace(0.02, 0.98, 200)
    odds = logit(asked) + 0.8 * rng.standard_normal((100, 200))
    mean = expit(odds).mean(axis=0)
    after = expit(chances.moved(odds, 1.0, curve)).mean(axis=0)
    np.testing.assert_allclose(after, expit(chances.along(np.array(curve), logit(mean))), atol=1e-7)
    np.testing.assert_allclose(after, mean**2, atol=0.03)
    order = np.argsort(mean)
    assert np.all(np.diff(after[order]) > -1e-9)


def test_a_factor_does_not_move_the_mean_probability(rng):
    """Ones are surer than zeros, and draws that scatter less would make them more frequent."""
    centre = np.where(rng.random(1_500) < 0.5, 4.0, -2.5)
    odds = centre + 3.0 * rng.standard_normal((200, centre.size))
    own = expit(odds)
    mean, variance = own.mean(axis=0), own.var(axis=0)
    y = (rng.random(mean.size) < expit(centre - 0.5)) * 1.0
    found = Bernoulli().calibrate(y, mean, variance, np.ones((1, 1)))
    assert found.scatter < 0.6
    np.testing.assert_allclose(np.diff(found.curve), np.diff(chances.KNOTS))
    sharper = expit(chances.moved(odds, found.scatter, ())).mean()
    after = expit(chances.moved(odds, found.scatter, found.curve)).mean()
    assert abs(sharper - y.mean()) > 0.01
    assert abs(after - y.mean()) < 0.5 * abs(sharper - y.mean())


def test_a_shift_needs_values(rng):
    """Said 20 %, comes true with 30 %: log odds rise by .54, and hardly if few values say so."""
    said = np.full(100_000, 0.2)
    y = (rng.random(said.size) < 0.3) * 1.0
    many = np.subtract(chances.fit_shift(y, said), chances.KNOTS)
    few = np.subtract(chances.fit_shift(y[:20], said[:20]), chances.KNOTS)
    np.testing.assert_allclose(many, logit(0.3) - logit(0.2), atol=0.03)
    assert np.abs(few).max() < 0.25


def test_beyond_its_ends_a_curve_is_parallel():
    curve = chances.KNOTS + 0.7
    np.testing.assert_allclose(chances.along(curve, np.array([-30.0, 30.0])), [-29.3, 30.7])


def test_a_weight_counts_as_so_many_values(rng):
    mean = rng.uniform(0.1, 0.9, 4_000)
    y = (rng.random(4_000) < mean**2) * 1.0
    none, some = np.zeros(4_000), np.ones((1, 1))
    once = Bernoulli().calibrate(np.repeat(y, 3), np.repeat(mean, 3), np.repeat(none, 3), some)
    given = Given(weight=np.full(4_000, 3.0))
    assert Bernoulli().calibrate(y, mean, none, some, given) == once
    assert once.curve
    assert Bernoulli().calibrate(y, mean, none) == Bernoulli()  # not before the chains have ended


@pytest.fixture(scope="module")
def ring():
    rng = np.random.default_rng(0)
    shape = (12, 10, 8)
    coords = np.argwhere(rng.random(shape) < 0.6)
    effect = np.sin(coords[:, 0]) * 2 + np.cos(2.0 * coords[:, 1])
    y = (rng.random(len(coords)) < expit(effect)) * 1.0
    settings = {"chains": 2, "warmup": 90, "draws": 60, "random_state": 0, "progress": False}
    return TensorRing(3, likelihood="bernoulli", shape=shape, **settings).fit(coords, y)


CURVE = tuple((1.3 * chances.KNOTS - 0.4).tolist())


@pytest.mark.parametrize(("scatter", "curve"), [(0.4, ()), (1.0, CURVE), (0.6, CURVE)])
def test_everything_that_is_predicted_follows(ring, scatter, curve, tmp_path):
    """Mean, deviation, interval, tensor, table and samples are those of the moved draws."""
    posterior = ring.posterior_
    assert not posterior.likelihood.calibrates  # the fit has looked
    cells = np.argwhere(np.ones((3, 4, 8)))
    plain, score = ring.predict(cells), ring.log_score(cells, np.ones(len(cells)))
    np.testing.assert_allclose(
        np.exp(score), expit(posterior.entries(cells) + posterior.nuisance).mean(axis=0)
    )
    own = replace(posterior.likelihood, scatter=scatter, curve=curve)
    try:
        ring.posterior_ = replace(posterior, likelihood=own)
        odds = posterior.entries(cells) + posterior.nuisance
        expected = expit(chances.moved(odds, scatter, curve))
        mean, deviation = ring.predict(cells, return_std=True, noise=False)
        np.testing.assert_allclose(mean, expected.mean(axis=0), rtol=1e-9)
        np.testing.assert_allclose(deviation, expected.std(axis=0), rtol=1e-9)
        assert np.abs(mean - plain).max() > 0.01
        ends = ring.predict_interval(cells, 0.8, noise=False)
        np.testing.assert_allclose(ends, np.quantile(expected, [0.1, 0.9], axis=0), rtol=1e-9)
        whole = ring.predict_tensor(return_std=True, noise=False)
        for found, asked in zip(whole, (mean, deviation), strict=True):
            np.testing.assert_allclose(found[tuple(cells.T)], asked, rtol=1e-9)
        samples = ring.sample(cells, 4_000, random_state=0)
        error = 5 * np.sqrt(mean * (1 - mean) / 4_000 + 1e-6)
        assert np.all(np.abs(samples.mean(axis=0) - mean) < error)
        np.testing.assert_array_equal(ring.log_score(cells, np.ones(len(cells))), score)
        ring.save(tmp_path / "model.ring")
        np.testing.assert_array_equal(load(tmp_path / "model.ring").predict(cells), mean)
    finally:
        ring.posterior_ = posterior


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="scatter of Bernoulli must not be negative, got -1"):
        Bernoulli(scatter=-1.0)
    with pytest.raises(ValueError, match="16 increasing numbers or none, got"):
        Bernoulli(curve=(1.0, 2.0))
    with pytest.raises(ValueError, match="16 increasing numbers or none, got"):
        Bernoulli(curve=tuple(-chances.KNOTS))


@pytest.mark.ci
def test_links_without_zeros_by_the_recipe(rng):
    """As docs/your-own-data.md has it: sampled zeros, odds corrected by the share of them."""
    shape = (24, 20, 16)
    effects = [rng.standard_normal(size) for size in shape]
    odds = -3.6 + effects[0][:, None, None] + effects[1][:, None] + 0.5 * effects[2]
    truth = expit(odds)
    links = np.argwhere(rng.random(shape) < truth)
    listed = set(map(tuple, links))
    cells = np.stack([rng.integers(0, n, 3 * len(links)) for n in shape], axis=1)
    zeros = np.array([cell for cell in map(tuple, cells) if cell not in listed])
    model = TensorRing(likelihood="bernoulli", shape=shape, chains=2, warmup=200, draws=100)
    model.set_params(random_state=0, progress=False)
    model.fit(np.vstack([links, zeros]), np.repeat([1, 0], [len(links), len(zeros)]))
    p = model.predict_tensor()
    q = len(zeros) / (np.prod(shape) - len(links))
    right = q * p / (1 - p + q * p)
    assert p.mean() > 2.5 * truth.mean()  # before the correction, far too high
    assert right.mean() == pytest.approx(truth.mean(), rel=0.25)
    order = np.argsort(right.ravel())
    for part in np.array_split(order, 4)[1:]:
        assert right.ravel()[part].mean() == pytest.approx(truth.ravel()[part].mean(), rel=0.5)
