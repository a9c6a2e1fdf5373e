"""PG(b, z) against exact moments, exact distribution functions and another library."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import erfc
from scipy.stats import ks_2samp

from bayesring.kernels.polyagamma import (
    TERMS,
    draw,
    draw_sums,
    is_below_ratio,
    left_probability,
    look_up_left_probability,
    mean,
    rest,
    sums_over_rest,
)

B = (1e-3, 0.05, 0.5, 1.0, 1.5, 2.0, 3.7, 12.0, 170.0, 1e4, 1e6)
Z = (0.0, 0.1, 1.0, 4.0, 10.0, 12.0, 17.0, 19.0, 50.0, 1e3)
GRID = pytest.mark.parametrize(("b", "z"), [(b, z) for b in B for z in Z])


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


def scales(z, first=1):
    """c_k of the sum of gammas, k = first, ..., so many that squares of the others are nothing."""
    k = np.arange(first, 200_001)
    return 0.5 / (np.pi**2 * (k - 0.5) ** 2 + z**2 / 4)


@cache
def cumulants_of_one(z):
    """The first six of PG(1, z): (n - 1)! sum_k c_k^n."""
    c = scales(z)
    return np.array([exact_mean(z), *(math.factorial(n - 1) * np.sum(c**n) for n in range(2, 7))])


def cumulants(b, z):
    return b * cumulants_of_one(z)


def central_moments(b, z):
    """Orders 2 to 6, from the cumulants."""
    _, two, three, four, five, six = cumulants(b, z)
    return (
        two,
        three,
        four + 3 * two**2,
        five + 10 * three * two,
        six + 15 * four * two + 10 * three**2 + 15 * two**3,
    )


def log_cosh(s):
    return s + np.log1p(np.exp(-2 * s)) - np.log(2)


def log_transform(b, z):
    """Log E exp(-t omega), as a function of complex t."""
    return lambda t: b * (log_cosh(z / 2) - log_cosh(np.sqrt(z**2 / 4 + t / 2)))


def invert_on_line(x, log_phi, spread, nodes=100, reach=14.0):
    """1 / (2 pi i) int exp(t x) phi(t) / t dt along t = (1 + i w) / spread: Gil-Pelaez, shifted."""
    w = (np.arange(nodes) + 0.5) * reach / nodes
    t = (1 + 1j * w) / spread
    values = np.exp(t * x[:, None] + log_phi(t)) / (1 + 1j * w)
    return values.real.sum(1) * reach / (nodes * np.pi)


def invert_on_parabola(x, log_phi, z, spread, density=False):
    """The same integral where t = 2 s^2 - z^2 / 2 and s has a constant real part.

    There exp(t x) falls like a normal density, however slowly phi does. Without division by t the
    integral is the density.
    """
    nodes, x = 300, x[:, None]
    real = np.sqrt(z**2 / 4 + 0.5 / np.minimum(x, spread))
    step = 6.5 / (nodes * np.sqrt(2 * x))
    s = real + 1j * step * (np.arange(nodes) + 0.5)
    t = 2 * (s - z / 2) * (s + z / 2)
    values = np.exp(t * x + log_phi(t)) * 4 * s / (1 if density else t)
    return values.real.sum(1) * step[:, 0] / np.pi


def exact_cdf(x, b, z):
    """Distribution function of PG(b, z), to 1e-5 for b = 1e6 and 1e-8 for b < 1e4."""
    log_phi, spread = log_transform(b, z), np.sqrt(cumulants(b, z)[1])
    if b < 30:
        return invert_on_parabola(x, log_phi, z, spread)
    return invert_on_line(x, log_phi, spread)


def distance_from_law(draws, b, z):
    """Kolmogorov's distance times the root of the number of draws, from 300 of their quantiles."""
    n = draws.size
    places = np.linspace(0, n - 1, 302).astype(int)[1:-1]
    x = np.sort(draws)[places]
    return np.sqrt(n) * np.abs((places + 0.5) / n - exact_cdf(x, b, z)).max()


def errors_of_moments(draws, b, z):
    """Errors of mean, variance and third central moment, in exact standard errors."""
    away = draws - cumulants(b, z)[0]
    two, three, four, _, six = central_moments(b, z)
    found = np.array([away.mean(), np.mean(away**2), np.mean(away**3)])
    variances = np.array([two, four - two**2, six - three**2])
    return (found - [0.0, two, three]) / np.sqrt(variances / draws.size)


def assert_exact(rng, b, z, n):
    draws = draw_sums(rng, np.full(n, b), np.full(n, z))
    assert np.abs(errors_of_moments(draws, b, z)).max() < 5
    assert distance_from_law(draws, b, z) < 2.4  # reached once in 50,000 tests


def test_inversion_of_the_transform_is_exact():
    x = np.geomspace(0.01, 2, 40)
    n = np.arange(30)[:, None]
    closed = np.sum((-1.0) ** n * 2 * erfc((2 * n + 1) / np.sqrt(8 * x)), axis=0)
    np.testing.assert_allclose(exact_cdf(x, 1.0, 0.0), closed, rtol=0, atol=1e-12)
    for z in Z:
        phi, spread = log_transform(30.0, z), np.sqrt(cumulants(30.0, z)[1])
        x = cumulants(30.0, z)[0] + spread * np.linspace(-4, 6, 40)
        one, other = invert_on_parabola(x, phi, z, spread), invert_on_line(x, phi, spread)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@GRID
def test_sums_have_the_exact_moments_and_law(rng, b, z):
    assert_exact(rng, b, z, 1_000_000 if b < 0.01 else 100_000)


@pytest.mark.slow
@GRID
def test_sums_have_the_exact_moments_and_law_in_many_draws(rng, b, z):
    assert_exact(rng, b, z, 10_000_000 if b < 0.01 else 5_000_000)


@pytest.mark.parametrize("b", [1e-3, 0.3, 0.9, 1.7, 6.0])
def test_proposals_are_accepted_by_the_ratio_of_densities(b):
    """The density at z = 0 against 2^b times that of the limit of inverse Gaussians."""
    x = np.geomspace(0.02, 3, 60)
    x = x[x > b**2 / 100]
    bound = 2**b * b / 2 / np.sqrt(2 * np.pi * x**3) * np.exp(-(b**2) / (8 * x))
    density = invert_on_parabola(x, log_transform(b, 0.0), 0.0, np.inf, density=True)
    ratio = density / bound
    assert ratio.max() < 1 + 1e-9
    assert ratio.min() < 0.1
    for each, level in zip(x, ratio, strict=True):
        assert level < 1e-8 or is_below_ratio(level - 1e-8, b, each)
        assert level > 1 - 1e-8 or not is_below_ratio(level + 1e-8, b, each)


@pytest.mark.parametrize("z", [0.0, 1e-3, 0.5, 1.99, 2.01, 3.0, 8.0, 14.0, 30.0])
def test_sums_over_the_rest_are_exact(z):
    c = scales(z, TERMS + 1)
    beyond = 0.5 / (np.pi**2 * 200_000)
    expected = [c.sum() + beyond, np.sum(c**2), np.sum(c**3)]
    np.testing.assert_allclose(sums_over_rest(z, np.exp(-z)), expected, rtol=1e-9)


@pytest.mark.parametrize("b", [2.001, 3.0, 5.001, 40.0])
@pytest.mark.parametrize("part", [0.0, 0.6, 1.0])
def test_the_series_errs_as_little_as_it_says(b, part):
    """With all gammas but two replaced, over the z for which that is done."""
    z = part * np.log(2 * b)
    shift, centre, tilt = rest(z, np.exp(-z))

    def log_phi(t):
        gammas = sum(np.log1p(c * t) for c in scales(z)[:TERMS])
        root = np.sqrt(tilt**2 + 2 * t)
        return -b * (shift * t + gammas + centre * tilt * (root - tilt))

    average, spread = cumulants(b, z)[0], np.sqrt(cumulants(b, z)[1])
    x = average + spread * np.linspace(-2.5, 6, 40)
    both = [
        invert_on_line(x, each, spread, 3000, 1500.0 if b < 3 else 300.0)
        for each in (log_phi, log_transform(b, z))
    ]
    assert shift > 0
    assert np.abs(both[0] - both[1]).max() < (7e-7 if b < 5 else 4e-8)


@pytest.mark.parametrize("z", [0.0, 1.5, 6.0])
@pytest.mark.parametrize(
    ("a", "b"), [(0.4, 0.3), (1.0, 0.7), (1.3, 1.6), (2.5, 40.0), (900.0, 0.01)]
)
def test_sums_add_up(rng, a, b, z):
    n = 50_000
    one, two, both = (draw_sums(rng, np.full(n, c), np.full(n, z)) for c in (a, b, a + b))
    assert ks_2samp(one + two, both).pvalue > 1e-4


def every_pair():
    b, z = np.meshgrid([*B, 1.2, 2.3, 30.0], [*Z, 2.0, 3.0])
    return np.repeat(b, 20), np.repeat(z, 20)


def test_sums_are_even_in_z_and_follow_from_the_seed(seed):
    b, z = every_pair()
    first = draw_sums(np.random.default_rng(seed), b, z)
    np.testing.assert_array_equal(draw_sums(np.random.default_rng(seed), b, -z), first)
    stream = np.random.default_rng(seed)
    halves = [draw_sums(stream, b[part], z[part]) for part in (slice(0, 999), slice(999, None))]
    np.testing.assert_array_equal(np.concatenate(halves), first)
    assert np.unique(first).size > 0.99 * first.size


def test_a_sum_of_one_has_the_bits_of_a_single_draw(seed):
    z = np.repeat(Z, 1000)
    ones = draw_sums(np.random.default_rng(seed), np.ones(z.size), z)
    np.testing.assert_array_equal(ones, draw(np.random.default_rng(seed), z))


@pytest.mark.parametrize("b", [1.001, 1.5, 2.0])
def test_up_to_two_nothing_is_replaced(seed, b):
    """Draws are sums of exact ones, which a test of distributions could hardly tell."""
    rng = np.random.default_rng(seed)
    found = draw_sums(np.random.default_rng(seed), np.full(100, b), np.full(100, 0.3))
    z = np.array([0.3])
    parts = [draw(rng, z) + draw_sums(rng, np.array([b - 1.0]), z) for _ in range(100)]
    np.testing.assert_array_equal(found, np.concatenate(parts))


def test_bad_numbers_give_nan_and_leave_others_alone(rng):
    b = np.array([0.0, -0.0, -1.0, -np.inf, np.inf, np.nan, 1.0, 0.5, 3.0, 3.0, 3.0])
    z = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, np.nan, np.inf, -np.inf, np.nan, 1.0])
    draws = draw_sums(rng, b, z)
    assert np.isnan(draws[:-1]).all()
    assert draws[-1] > 0
    assert draw_sums(rng, np.empty(0), np.empty(0)).size == 0


def test_extreme_numbers_neither_hang_nor_fail(rng):
    """From the smallest to the largest double; where the spread is small, draws are at the mean."""
    b = [5e-324, 1e-300, 1e-154, 1e-20, 1e-6, 1 + 2**-52, 2 - 2**-52, 1e9, 1e16, 1e154, 1e300]
    z = [0.0, 5e-324, 1e-300, 1e-12, 1e-4, 2.0, 33.0, 36.0, 354.0, 690.0, 745.0, 1e8, 1e154, 1e300]
    b, z = np.meshgrid([*b, np.finfo(float).max], [*z, np.finfo(float).max])
    b, z = np.repeat(b, 50), np.repeat(z, 50)
    draws = draw_sums(rng, b, z)
    assert np.isfinite(draws).all()
    assert (draws >= 0).all()
    with np.errstate(over="ignore"):
        narrow = (b >= 1e9) & (z < 1e300)
        expected = mean(b, z)
    np.testing.assert_allclose(draws[narrow], expected[narrow], rtol=1e-3)


def test_mean_is_exact_and_stable():
    for z in (0.0, 1e-300, 1e-9, 9.9e-5, 1.01e-4, 0.3, 5.0, 800.0):
        assert mean(3.5, z) == pytest.approx(3.5 * exact_mean(z), rel=1e-9)
        assert mean(3.5, -z) == mean(3.5, z)
    assert mean(np.array([1.0, 2.0]), np.zeros((3, 1))).tolist() == [[0.25, 0.5]] * 3
    assert np.isnan(mean(1.0, np.nan))
