"""Predictions against plain averages over draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from bayesring.engine.threads import Threads
from bayesring.infer.state import Draws
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.types import RingSize
from bayesring.posterior import Posterior
from bayesring.posterior import posterior as posterior_module
from tests.models import random_coords

SHAPE = (4, 3, 5)


def make_posterior(rng, likelihood, n_draws=(6, 4), n_jobs=2):
    """Two chains of different sizes."""
    chains = []
    for n, size in zip(n_draws, [RingSize(1, (2, 3, 2)), RingSize(2, (1, 2, 3))], strict=True):
        rings = [
            ring.flatten([rng.standard_normal(size.core_shape(d, SHAPE[d])) for d in range(3)])
            for _ in range(n)
        ]
        nuisance = np.stack([likelihood.draw_nuisance(rng) for _ in range(n)])
        chains.append(
            Draws(
                np.stack([r.flat for r in rings]),
                rings[0].starts,
                rings[0].bonds,
                rings[0].strands,
                nuisance,
                np.arange(n),
                np.ones((n, size.strands * sum(size.bonds))),
            )
        )
    location, scale = (3.0, 2.5) if isinstance(likelihood, Gaussian) else (0.0, 1.0)
    return Posterior(SHAPE, likelihood, location, scale, tuple(chains), Threads(n_jobs))


def all_entries(posterior, coords):
    return np.stack([ring.entries(posterior.cores(s), coords) for s in range(posterior.n_draws)])


@pytest.fixture
def coords(rng):
    return random_coords(rng, SHAPE, 50)


def test_entries_pool_all_chains(rng, coords):
    posterior = make_posterior(rng, Gaussian())
    np.testing.assert_allclose(
        posterior.entries(coords), all_entries(posterior, coords), rtol=1e-10, atol=1e-12
    )
    with pytest.raises(IndexError, match="beyond the 10 kept ones"):
        posterior.cores(10)


def test_gaussian_moments(rng, coords):
    posterior = make_posterior(rng, Gaussian())
    f = all_entries(posterior, coords)
    mean, deviation = posterior.moments(coords)
    np.testing.assert_allclose(mean, 3 + 2.5 * f.mean(axis=0), rtol=1e-10, atol=1e-12)
    noise = np.mean(1 / posterior.nuisance[:, 0])
    np.testing.assert_allclose(deviation, 2.5 * np.sqrt(f.var(axis=0) + noise), rtol=1e-9)
    _, of_mean = posterior.moments(coords, noise=False)
    np.testing.assert_allclose(of_mean, 2.5 * f.std(axis=0), rtol=1e-9)


def test_gaussian_interval_is_the_quantile_of_the_mixture(rng, coords):
    posterior = make_posterior(rng, Gaussian())
    f = all_entries(posterior, coords)
    ends = posterior.interval(coords, 0.8)
    for end, level in zip(ends, (0.1, 0.9), strict=True):
        standard = (end - 3) / 2.5
        reached = norm.cdf((standard - f) * np.sqrt(posterior.nuisance)).mean(axis=0)
        np.testing.assert_allclose(reached, level, rtol=1e-8)
    lower, upper = posterior.interval(coords, 0.8, noise=False)
    np.testing.assert_allclose(lower, 3 + 2.5 * np.quantile(f, 0.1, axis=0), rtol=1e-9)
    np.testing.assert_allclose(upper, 3 + 2.5 * np.quantile(f, 0.9, axis=0), rtol=1e-9)


def test_bernoulli_predictions(rng, coords):
    posterior = make_posterior(rng, Bernoulli())
    p = expit(all_entries(posterior, coords) + posterior.nuisance)
    mean, deviation = posterior.moments(coords)
    np.testing.assert_allclose(mean, p.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(deviation**2, mean * (1 - mean), rtol=1e-9)
    np.testing.assert_allclose(posterior.moments(coords, noise=False)[1], p.std(axis=0))
    lower, upper = posterior.interval(coords, 0.9)
    np.testing.assert_array_equal(lower, (mean > 0.95).astype(float))
    np.testing.assert_array_equal(upper, (mean > 0.05).astype(float))
    lower, upper = posterior.interval(coords, 0.9, noise=False)
    np.testing.assert_allclose(lower, np.quantile(p, 0.05, axis=0))


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
def test_log_score_is_the_log_of_the_mean_density(rng, coords, likelihood):
    posterior = make_posterior(rng, likelihood)
    f = all_entries(posterior, coords)
    if isinstance(likelihood, Gaussian):
        y = rng.standard_normal(50)
        width = 2.5 / np.sqrt(posterior.nuisance)
        density = norm.pdf(y, 3 + 2.5 * f, width).mean(axis=0)
    else:
        y, f = (rng.random(50) < 0.5).astype(float), f + posterior.nuisance
        density = np.where(y == 1, expit(f), expit(-f)).mean(axis=0)
    np.testing.assert_allclose(posterior.log_score(coords, y), np.log(density), rtol=1e-9)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
def test_samples_have_the_predictive_moments(rng, coords, likelihood):
    posterior = make_posterior(rng, likelihood)
    samples = posterior.sample(rng, coords, 40_000)
    assert samples.shape == (40_000, 50)
    mean, deviation = posterior.moments(coords)
    assert np.all(np.abs(samples.mean(axis=0) - mean) < 5 * deviation / 200 + 1e-9)
    np.testing.assert_allclose(samples.std(axis=0), deviation, rtol=0.05, atol=0.02)


def test_few_samples_use_distinct_draws(rng, coords):
    posterior = make_posterior(rng, Gaussian(max_precision=1e12, alpha0=1e9, beta0=1e-2))
    samples = posterior.sample(rng, coords, posterior.n_draws)
    expected = 3 + 2.5 * all_entries(posterior, coords)
    order = np.argsort(samples[:, 0]), np.argsort(expected[:, 0])
    np.testing.assert_allclose(samples[order[0]], expected[order[1]], atol=1e-3)


def test_samples_pair_every_ring_with_its_own_noise(rng, coords):
    """Rings on either side of zero, those above with hardly any noise."""
    posterior = make_posterior(rng, Gaussian(), n_draws=(6, 4))
    for draws, level in zip(posterior.chains, (1.0, -1.0), strict=True):
        draws.flat[:] = 0.0
        for row in range(len(draws.flat)):
            for core in posterior_module._unflatten(draws, row, SHAPE):
                core[:, 0, 0, 0] = 10.0
        draws.flat[:, : draws.starts[1]] *= level
        draws.nuisance[:] = 1e12 if level > 0 else 1e-2
    samples = (posterior.sample(rng, coords, 400) - 3.0) / 2.5
    above = samples.mean(axis=1) > 0
    assert 200 < np.count_nonzero(above) < 280
    np.testing.assert_allclose(samples[above], 1000.0, atol=1e-4)
    assert 9.0 < np.std(samples[~above] + 1000.0) < 11.0


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
@pytest.mark.parametrize("cells", [1, 7, 2**20])
def test_whole_tensor_equals_cell_by_cell(rng, likelihood, cells, monkeypatch):
    monkeypatch.setattr(posterior_module, "DENSE_CELLS", cells)
    posterior = make_posterior(rng, likelihood)
    everywhere = np.stack([index.ravel() for index in np.indices(SHAPE)], axis=1)
    for noise in (True, False):
        tensor = posterior.tensor(noise)
        by_cell = posterior.moments(everywhere, noise)
        for one, two in zip(tensor, by_cell, strict=True):
            np.testing.assert_allclose(one.ravel(), two, rtol=1e-8, atol=1e-9)


def test_a_part_of_the_levels_is_a_part_of_the_tensor(rng):
    posterior = make_posterior(rng, Gaussian())
    levels = [np.sort(rng.choice(size, max(1, size - 1), False)) for size in posterior.shape]
    whole, _ = posterior.tensor()
    part, _ = posterior.at_levels(levels).tensor()
    np.testing.assert_allclose(part, whole[np.ix_(*levels)])


def test_chunks_change_nothing(rng, coords, monkeypatch):
    posterior = make_posterior(rng, Gaussian())
    whole = posterior.moments(coords), posterior.interval(coords, 0.9)
    monkeypatch.setattr(posterior_module, "CHUNK_BYTES", 8 * posterior.n_draws * 7)
    pieces = posterior.moments(coords), posterior.interval(coords, 0.9)
    np.testing.assert_array_equal(whole, pieces)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
@pytest.mark.parametrize("box", [0, 10**9])
@pytest.mark.parametrize("noise", [True, False])
def test_the_summary_is_moments_and_interval(rng, coords, likelihood, box, noise, monkeypatch):
    """By boxes, if they may be as large as they like, and cell by cell, if they may not."""
    monkeypatch.setattr(posterior_module, "DENSE_BOX", box)
    posterior = make_posterior(rng, likelihood)
    found = posterior.summarise(coords, 0.8, noise)
    expected = (*posterior.moments(coords, noise), *posterior.interval(coords, 0.8, noise))
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-12)


def test_the_summary_is_of_probabilities_where_there_are_two_values(rng, coords):
    for likelihood, noise in ((Gaussian(), True), (Bernoulli(), False)):
        posterior = make_posterior(rng, likelihood)
        np.testing.assert_array_equal(
            posterior.summarise(coords, 0.8), posterior.summarise(coords, 0.8, noise)
        )


def test_the_order_of_cells_does_not_change_a_bit_of_the_summary(rng, coords, monkeypatch):
    monkeypatch.setattr(posterior_module, "CHUNK_BYTES", 8 * 10 * 7)
    posterior = make_posterior(rng, Gaussian())
    order = rng.permutation(np.repeat(np.arange(len(coords)), 2))
    turned = posterior.summarise(coords[order], 0.9)
    for one, two in zip(posterior.summarise(coords, 0.9), turned, strict=True):
        np.testing.assert_array_equal(one[order], two)
