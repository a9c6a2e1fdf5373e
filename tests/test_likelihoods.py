"""What every likelihood says of one value, held against itself: density, moments, surrogate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bayesring.likelihoods import Gaussian, NegativeBinomial, Ordinal, Poisson, StudentT
from bayesring.model.types import Given
from tests.models import LIKELIHOODS, name_of

DISCRETE = [each for each in LIKELIHOODS if each.discrete]
COUNTS = [each for each in LIKELIHOODS if isinstance(each, (NegativeBinomial, Poisson))]
FITTED = np.array([-2.0, -0.3, 0.0, 0.4, 1.5])


def support(likelihood):
    """All values that matter."""
    if isinstance(likelihood, Ordinal):
        return np.arange(likelihood.levels, dtype=float)
    return np.arange(2.0 if likelihood.binary else 4_000.0)


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name_of)
@pytest.mark.parametrize("exposure", [None, 7.0])
def test_probabilities_have_the_sum_the_moments_and_the_distribution(likelihood, exposure, rng):
    if exposure is not None and likelihood not in COUNTS:
        pytest.skip("knows of no exposure")
    nuisance = likelihood.draw_nuisance(rng)
    given = Given() if exposure is None else Given(exposure=np.full(FITTED.size, exposure))
    y = support(likelihood)
    logs = np.stack(
        [likelihood.log_prob(FITTED, np.full(FITTED.size, k), nuisance, given) for k in y]
    )
    chances = np.exp(logs)
    np.testing.assert_allclose(chances.sum(axis=0), 1.0, rtol=1e-9)
    mean = likelihood.mean(FITTED, nuisance, given)
    np.testing.assert_allclose(mean, y @ chances, rtol=1e-8)
    variance = likelihood.variance(FITTED, nuisance, given)
    np.testing.assert_allclose(variance, y**2 @ chances - mean**2, rtol=1e-6)
    if likelihood.binary:
        return
    for k in (0.0, 1.0, 2.0):
        upto = chances[: int(k) + 1].sum(axis=0)
        below = likelihood.cdf(np.full(FITTED.size, k), FITTED, nuisance, given)
        np.testing.assert_allclose(below, upto, rtol=1e-7)
    assert np.all(likelihood.cdf(np.full(FITTED.size, -1.0), FITTED, nuisance, given) == 0.0)


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name_of)
def test_quantiles_are_the_smallest_that_reach(likelihood, rng):
    """Of the mixture over draws, exactly, and never beyond the support."""
    fitted = rng.standard_normal((7, 40))
    nuisance = np.stack([likelihood.draw_nuisance(rng) for _ in range(7)])
    y = support(likelihood)
    each = np.stack([likelihood.log_prob(fitted, np.full(40, k), nuisance) for k in y])
    upto = np.cumsum(np.exp(each).mean(axis=1), axis=0)
    for level in (0.05, 0.5, 0.95):
        exact = y[np.argmax(upto >= level - 1e-12, axis=0)]
        near = np.abs(upto - level).min(axis=0) < 1e-9
        found = likelihood.quantile(level, fitted, nuisance)
        np.testing.assert_array_equal(found[~near], exact[~near])
        assert found.min() >= 0


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
@pytest.mark.parametrize("weight", [None, 3.0])
def test_the_surrogate_has_the_slope_of_the_density(likelihood, weight, rng):
    """s - w f is d log p / df, expected; drawn, so it is on average, and w as well."""
    n, h = 40_000, 1e-5
    nuisance = likelihood.draw_nuisance(rng)
    f = np.repeat(FITTED, n // FITTED.size)
    y = np.repeat(likelihood.simulate(rng, FITTED, nuisance), n // FITTED.size)
    given = Given() if weight is None else Given(weight=np.full(n, weight))
    up, down = (likelihood.log_prob(f + gap, y, nuisance, given) for gap in (h, -h))
    slope = ((up - down) / (2 * h)).reshape(FITTED.size, -1)[:, 0]
    expected = likelihood.expect(f, y, nuisance, given)
    found = (expected.shift - expected.weight * f).reshape(FITTED.size, -1)
    np.testing.assert_allclose(found[:, 0], slope, rtol=1e-5, atol=1e-6)
    drawn = likelihood.augment(rng, f, y, nuisance, given)
    for own in (drawn.shift - drawn.weight * f - found.ravel(), drawn.weight - expected.weight):
        parts = own.reshape(FITTED.size, -1)
        error = parts.std(axis=1) / np.sqrt(parts.shape[1]) + 1e-12
        assert np.all(np.abs(parts.mean(axis=1)) < 5 * error)


@pytest.mark.parametrize("likelihood", COUNTS, ids=name_of)
def test_exposure_is_a_known_factor_of_the_mean(likelihood, rng):
    """As an offset of its logarithm, in all that is drawn and expected."""
    nuisance = likelihood.draw_nuisance(rng)
    y, exposure = rng.poisson(3.0, 5) + 0.0, np.array([0.1, 1.0, 2.0, 30.0, 1.0])
    given, f = Given(exposure=exposure), FITTED
    same = [
        (
            likelihood.log_prob(f, y, nuisance, given),
            likelihood.log_prob(f + np.log(exposure), y, nuisance),
        ),
        (likelihood.mean(f, nuisance, given), exposure * likelihood.mean(f, nuisance)),
    ]
    for found, expected in same:
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    own, other = (
        likelihood.expect(f, y, nuisance, given),
        likelihood.expect(f + np.log(exposure), y, nuisance),
    )
    np.testing.assert_allclose(own.weight, other.weight)
    np.testing.assert_allclose(
        own.shift - own.weight * f, other.shift - other.weight * (f + np.log(exposure))
    )


def test_the_size_of_held_out_counts_bounds_r(rng):
    mean = rng.gamma(4.0, 5.0, 30_000)
    y = rng.negative_binomial(6.0, 6.0 / (6.0 + mean)) + 0.0
    found = NegativeBinomial().calibrate(y, mean, np.zeros(mean.size))
    assert found.max_size == pytest.approx(6.0, rel=0.1)
    assert not found.calibrates
    counted = rng.poisson(mean) + 0.0
    assert NegativeBinomial().calibrate(counted, mean, np.zeros(mean.size)).max_size > 50
    unsure = NegativeBinomial().calibrate(y, mean, 0.1 * mean**2)  # the mean itself is uncertain
    assert unsure.max_size > 1.5 * found.max_size


def test_outliers_do_not_bound_the_noise_of_student_t(rng):
    errors = 0.3 * rng.standard_t(4.0, 30_000)
    dirty = np.where(rng.random(errors.size) < 0.02, 8.0, errors)
    none = np.zeros(errors.size)
    found = [StudentT().calibrate(each, none, none).max_precision for each in (errors, dirty)]
    assert found[0] == pytest.approx(1 / 0.09, rel=0.05)
    assert found[1] > 0.5 * found[0]
    assert Gaussian().calibrate(dirty, none, none).max_precision < 0.2 * found[0]


def test_poisson_is_nearly_one(rng):
    """Its variance exceeds the mean by `excess` at the mean count, and its log odds are close."""
    mean, y = 4.0, np.arange(12.0)
    own = Poisson(excess=0.02, r=mean / 0.02)
    nuisance = np.array([own.r, np.log(mean)])
    assert own.variance(np.zeros(1), nuisance)[0] == pytest.approx(1.02 * mean)
    found = own.log_prob(np.zeros(12), y, nuisance)
    np.testing.assert_allclose(found, stats.poisson.logpmf(y, mean), atol=0.12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_reports_match_moments_by_a_distribution_of_the_kind(likelihood, rng):
    mean = np.array([0.3, 0.5, 0.8])
    deviation = np.sqrt(mean + mean**2 / 3)
    y = np.array([0.0, 1.0, 2.0])
    found = likelihood.matched_cdf(y, mean, deviation)
    assert np.all((found > 0) & (found < 1))
    if likelihood in COUNTS:
        exact = stats.nbinom.cdf(y, 3.0, 3.0 / (3.0 + mean))
        np.testing.assert_allclose(found, exact, rtol=1e-7)


def test_cut_points_are_ordered_whatever_is_drawn(rng):
    own = Ordinal(levels=6)
    for _ in range(50):
        points = own.draw_nuisance(rng).reshape(-1, 5)
        assert np.all(np.diff(points, axis=1) > 0)
    assert own.log_prior(np.tile(np.array([0.0, 1.0, 0.5, 2.0, 3.0]), 7)) == -np.inf
    assert replace(own, levels=3).initial_nuisance().size == 2 * 7
