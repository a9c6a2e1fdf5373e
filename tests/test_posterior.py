"""Predictions against plain averages over draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from bayesring.engine import protocol
from bayesring.engine.threads import Threads
from bayesring.infer.state import Draws
from bayesring.likelihoods import Bernoulli, Gaussian, StudentT
from bayesring.model import ring
from bayesring.model.types import Given, RingSize
from bayesring.posterior import Posterior, pieces
from bayesring.posterior import posterior as posterior_module
from tests.models import random_coords

SHAPE = (4, 3, 5)


SIZES = RingSize(1, (2, 3, 2)), RingSize(2, (1, 2, 3))


def make_posterior(rng, likelihood, n_draws=(6, 4), n_jobs=2, sizes=SIZES):
    """Two chains of different sizes."""
    chains = []
    for n, size in zip(n_draws, sizes, strict=True):
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


@pytest.mark.parametrize("bonds", [(1, 1, 3), (1, 3, 1), (3, 1, 1), (1, 1, 1)])
def test_entries_of_rings_with_thin_bonds(rng, coords, bonds, monkeypatch):
    """By matrix products, which are plain products only if all bonds are of rank one."""
    monkeypatch.setattr(protocol, "SPARSE", 10**9)
    posterior = make_posterior(rng, Gaussian(), sizes=(RingSize(1, bonds), RingSize(2, bonds)))
    np.testing.assert_allclose(
        posterior.entries(coords), all_entries(posterior, coords), rtol=1e-10, atol=1e-12
    )


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


def test_replicates_have_the_errors_and_offsets_of_their_values(rng):
    """In the units of the data, on top of the noise; offsets are those of standard units."""
    posterior = make_posterior(rng, Gaussian())
    cells = random_coords(rng, SHAPE, 20_000)
    given = Given(error=np.full(len(cells), 50.0), offset=np.full(len(cells), 40.0))
    gaps = posterior.replicate(rng, cells, given) - 3 - 2.5 * (all_entries(posterior, cells) + 40)
    expected = np.hypot(50.0, 2.5 / np.sqrt(posterior.nuisance[:, 0]))
    np.testing.assert_allclose(gaps.std(axis=1), expected, rtol=0.03)
    np.testing.assert_allclose(gaps.mean(axis=1) / expected, 0.0, atol=0.04)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
@pytest.mark.parametrize("cells", [1, 7, 2**20])
def test_whole_tensor_equals_cell_by_cell(rng, likelihood, cells, monkeypatch):
    monkeypatch.setattr(posterior_module, "PORTION", cells)
    posterior = make_posterior(rng, likelihood)
    everywhere = np.stack([index.ravel() for index in np.indices(SHAPE)], axis=1)
    for noise in (True, False):
        tensor = posterior.tensor(noise)
        by_cell = posterior.moments(everywhere, noise)
        for one, two in zip(tensor, by_cell, strict=True):
            np.testing.assert_allclose(one.ravel(), two, rtol=1e-10, atol=1e-12)


def test_a_part_of_the_levels_is_a_part_of_the_tensor(rng):
    posterior = make_posterior(rng, Gaussian())
    levels = [np.sort(rng.choice(size, max(1, size - 1), False)) for size in posterior.shape]
    whole, _ = posterior.tensor()
    part, _ = posterior.at_levels(levels).tensor()
    np.testing.assert_allclose(part, whole[np.ix_(*levels)])


def plain_moments(posterior, coords, noise):
    """By NumPy, from the entries of every draw."""
    f, nuisance = all_entries(posterior, coords), posterior.nuisance
    means = posterior.likelihood.mean(f, nuisance)
    variance = means.var(axis=0)
    if noise:
        variance = variance + posterior.likelihood.variance(f, nuisance).mean(axis=0)
    return means.mean(axis=0), np.sqrt(variance)


@pytest.mark.parametrize("likelihood", [Gaussian(), Bernoulli()], ids=repr)
@pytest.mark.parametrize(("sparse", "most"), [(0, 2**13), (10**9, 2**13), (4, 7), (4, 2**13)])
@pytest.mark.parametrize("noise", [True, False])
def test_cells_by_tables_and_apart(rng, coords, likelihood, sparse, most, noise, monkeypatch):
    """All by matrix products, none, and in small pieces: up to rounding, it is the same."""
    monkeypatch.setattr(protocol, "SPARSE", sparse)
    monkeypatch.setattr(pieces, "FEWEST", min(most, 64))
    monkeypatch.setattr(pieces, "MOST", most)
    monkeypatch.setattr(pieces, "WIDE", 2)
    posterior = make_posterior(rng, likelihood)
    found = posterior.summarise(coords, 0.8, noise)
    mean, deviation = plain_moments(posterior, coords, noise)
    location, scale = posterior.location, posterior.scale
    np.testing.assert_allclose(found.mean, location + scale * mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.std, scale * deviation, rtol=1e-9)
    for one, two in zip(found[2:], posterior.interval(coords, 0.8, noise), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_threads_do_not_change_a_bit(rng, monkeypatch):
    """Many pieces of unequal work, with gaps between the cells."""
    monkeypatch.setattr(pieces, "FEWEST", 3)
    monkeypatch.setattr(pieces, "MOST", 3)
    posterior = make_posterior(rng, StudentT())
    cells = random_coords(rng, SHAPE, 30)
    one, many = (replace(posterior, engine=Threads(jobs)).summarise(cells, 0.9) for jobs in (1, 5))
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("n", [1, 3, 4, 8, 9, 60])
def test_pieces_hold_every_cell_once(rng, n, monkeypatch):
    """Whether or not they come out even."""
    monkeypatch.setattr(pieces, "FEWEST", 4)
    monkeypatch.setattr(pieces, "MOST", 4)
    cells = np.argwhere(np.ones(SHAPE, dtype=bool))[rng.permutation(60)[:n]]
    order, cuts = pieces.cut(cells, SHAPE, 10)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    held = np.concatenate([np.arange(*bounds) for bounds in cuts])
    np.testing.assert_array_equal(held, np.arange(n))


def test_shapes_of_more_cells_than_numbers(rng, monkeypatch):
    """Cells then cannot be numbered, and repeated ones are worked out again."""
    posterior = make_posterior(rng, Gaussian())
    cells = random_coords(rng, SHAPE, 30)
    expected = posterior.summarise(cells, 0.9)
    monkeypatch.setattr(pieces, "MOST_NUMBERED", 10)
    for one, two in zip(posterior.summarise(cells, 0.9), expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_cells_that_are_done_are_reported(rng, coords):
    done = []
    posterior = replace(make_posterior(rng, Gaussian()), report=done.append)
    posterior.interval(coords, 0.9)
    assert sum(done) == len(np.unique(coords, axis=0))


def test_the_summary_may_have_medians(rng, coords):
    posterior = make_posterior(rng, Gaussian())
    mean, median = (posterior.summarise(coords, 0.8, point=point) for point in ("mean", "median"))
    np.testing.assert_array_equal(mean[1:], median[1:])
    np.testing.assert_allclose(median.mean, posterior.medians(coords), rtol=1e-10)
    assert np.abs(median.mean - mean.mean).max() > 1e-3
    without = 3 + 2.5 * np.median(all_entries(posterior, coords), axis=0)
    np.testing.assert_allclose(posterior.medians(coords, noise=False), without, rtol=1e-9)


def test_the_summary_is_of_probabilities_where_there_are_two_values(rng, coords):
    for likelihood, noise in ((Gaussian(), True), (Bernoulli(), False)):
        posterior = make_posterior(rng, likelihood)
        np.testing.assert_array_equal(
            posterior.summarise(coords, 0.8), posterior.summarise(coords, 0.8, noise)
        )


def test_the_order_of_cells_does_not_change_a_bit_of_the_summary(rng, coords, monkeypatch):
    monkeypatch.setattr(pieces, "FEWEST", 7)
    monkeypatch.setattr(pieces, "MOST", 7)
    posterior = make_posterior(rng, Gaussian())
    order = rng.permutation(np.repeat(np.arange(len(coords)), 2))
    turned = posterior.summarise(coords[order], 0.9)
    for one, two in zip(posterior.summarise(coords, 0.9), turned, strict=True):
        np.testing.assert_array_equal(one[order], two)
