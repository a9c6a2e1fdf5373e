"""PG(1, z) against exact moments, exact tails and another library."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from bayesring.kernels.polyagamma import draw, left_probability, look_up_left_probability


def exact_mean(z):
    return 0.25 if z == 0 else np.tanh(z / 2) / (2 * z)


def exact_variance(z):
    """(sinh z - z) / (4 z^3 cosh^2(z/2)), written so that nothing overflows."""
    if z == 0:
        return 1 / 24
    decay = np.exp(-z)
    return (1 - decay**2 - 2 * z * decay) / (2 * z**3 * (1 + decay) ** 2)


@pytest.mark.parametrize("z", [0.0, 1e-3, 0.1, 1.0, 1.56, 1.57, 3.0, 3.2, 10, 50, 150, 200, 1000])
def test_mean_and_variance_are_exact(rng, z):
    """|error| within 4.5 standard errors; a wrong cut or a dropped series term gives over 20."""
    n = 400_000
    for sign in (1, -1):
        draws = draw(rng, np.full(n, sign * float(z)))
        mean, variance = exact_mean(z), exact_variance(z)
        assert abs(draws.mean() - mean) < 4.5 * np.sqrt(variance / n)
        fourth = np.mean((draws - mean) ** 4)
        assert abs(np.mean((draws - mean) ** 2) - variance) < 4.5 * np.sqrt(fourth / n)


@pytest.mark.parametrize("z", [0.0, 0.7, 2.0, 5.0, 20.0, 100.0])
def test_laplace_transform_is_exact(rng, z):
    """E exp(-t omega) = cosh(z/2) / cosh(sqrt(z^2/4 + t/2)), for several t."""
    n = 400_000
    draws = draw(rng, np.full(n, z))
    for t in (0.5, 2.0, 10.0, 100.0):
        root = np.sqrt(z**2 / 4 + t / 2)
        exact = np.exp(np.logaddexp(z / 2, -z / 2) - np.logaddexp(root, -root))
        values = np.exp(-t * draws)
        assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(n) + 1e-12


@pytest.mark.parametrize("z", [0.0, 1.0, 4.0, 30.0, 100.0])
def test_same_law_as_the_polyagamma_package_where_that_is_right(rng, z):
    polyagamma = pytest.importorskip("polyagamma")
    ours = draw(rng, np.full(50_000, z))
    theirs = polyagamma.random_polyagamma(1.0, z, size=50_000, random_state=rng)
    assert ks_2samp(ours, theirs).pvalue > 1e-4


def test_bad_numbers_give_nan_at_once(rng):
    assert np.isnan(draw(rng, np.array([np.nan, np.inf, -np.inf]))).all()


def test_huge_numbers_neither_hang_nor_fail(rng):
    z = np.array([1e4, 1e6, 1e10, 1e100, 1e300])
    draws = draw(rng, z)
    np.testing.assert_allclose(draws[:3] * 2 * z[:3], 1.0, rtol=0.1)
    assert np.all(np.isfinite(draws))
    assert np.all(draws >= 0)


def test_the_table_of_proposals_is_exact_to_1e_11():
    z = np.linspace(0, 20, 20_001)
    found = [look_up_left_probability(each) for each in z]
    np.testing.assert_allclose(found, left_probability(z), rtol=0, atol=1e-11)
