"""Normal and gamma draws inside kernels, and the weights of Student's t, against exact laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayesring.kernels import loglikelihoods, normals, scale_mixtures

N = 1_000_000


def test_bits_are_those_of_xoshiro256plusplus():
    """Against the reference in plain integers (Blackman and Vigna's C code)."""
    mask, s = 2**64 - 1, [1, 2, 3, 2**63 + 4]
    state = np.array(s, dtype=np.uint64)

    def turned(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    for _ in range(100):
        expected = (turned((s[0] + s[3]) & mask, 23) + s[0]) & mask
        t = (s[1] << 17) & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)
        assert int(normals.bits(state)) == expected
    assert [int(each) for each in state] == s


def test_layers_have_equal_areas():
    ends, heights = normals.layers()
    areas = ends[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(areas[:-1], normals.AREA, rtol=1e-9)
    np.testing.assert_allclose(areas[-1], normals.AREA, rtol=1e-5)  # the top closes
    tail = np.sqrt(2 * np.pi) * stats.norm.sf(normals.START)
    assert ends[0] * heights[1] == pytest.approx(ends[1] * heights[1] + tail, rel=1e-9)


def test_normals_are_normal(rng):
    state, drawn = normals.seeded(rng), np.empty(N)
    normals.fill(state, drawn)
    assert stats.kstest(drawn, stats.norm.cdf).pvalue > 1e-4
    for power, exact in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        error = np.std(drawn**power) / np.sqrt(N)
        assert abs(np.mean(drawn**power) - exact) < 4.5 * error
    for place in (3.0, normals.START, 4.2):  # the tail has a method of its own
        expected = 2 * N * stats.norm.sf(place)
        assert abs(np.sum(np.abs(drawn) > place) - expected) < 4.5 * np.sqrt(expected)
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4.5 / np.sqrt(N)


def test_one_seed_gives_one_result_one_by_one_or_together():
    one, many = (normals.seeded(np.random.default_rng(3)) for _ in range(2))
    drawn = np.empty(5000)
    normals.fill(many, drawn)
    np.testing.assert_array_equal([normals.normal(one) for _ in range(5000)], drawn)
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("shape", [1.0, 1.6, 2.5, 7.0, 200.0])
def test_gammas_have_their_law(rng, shape):
    drawn = np.empty(N)
    scale_mixtures.draw_gammas(normals.seeded(rng), shape, drawn)
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > 1e-4
    assert abs(drawn.mean() - shape) < 4.5 * np.sqrt(shape / N)
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4.5 / np.sqrt(N)


@pytest.mark.parametrize("shape", [1.0, 1.5, 4.0, 1e3])
def test_squeeze_is_below_what_is_accepted(shape):
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    x = np.linspace(-1 / c, 8.0, 200_001)[1:]
    v = (1 + c * x) ** 3
    accepted = np.exp(0.5 * x**2 + d * (1 - v + np.log(v)))
    assert np.all(1 - scale_mixtures.SQUEEZE * c**2 * x**4 <= accepted + 1e-9)


@pytest.mark.parametrize("mass", [None, 0.05, 0.6, 3.0])
def test_weights_of_student_t(rng, mass):
    """u ~ Ga(m (nu + 1) / 2, (nu + tau gap^2) / 2), whether masses are one number or many."""
    tau, nu, n = 0.7, 3.0, 200_000
    fitted = rng.standard_normal(n)
    values = fitted + rng.choice([-5.0, 0.1, 1.0], n)
    given = np.ones(1) if mass is None else np.full(n, mass)
    state = normals.seeded(rng)
    weight, shift, total = scale_mixtures.student_t_weights(state, fitted, values, given, tau, nu)
    squares = (values - fitted) ** 2
    gammas = weight / tau * 0.5 * (nu + tau * squares)
    assert stats.kstest(gammas, stats.gamma(0.5 * (nu + 1) * (mass or 1.0)).cdf).pvalue > 1e-4
    np.testing.assert_allclose(shift, weight * values)
    assert total == pytest.approx(weight @ squares / tau)


def test_one_observation_may_weigh_little(rng):
    """A block of one: its mass is not one that stands for all others."""
    one, state = np.zeros(1), normals.seeded(rng)
    drawn = [
        scale_mixtures.student_t_weights(state, one, one, np.full(1, 0.1), 1.0, 3.0)[0][0]
        for _ in range(20_000)
    ]
    assert stats.kstest(drawn, stats.gamma(0.2, scale=1 / 1.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("weighted", [False, True])
def test_log_likelihoods_of_student_t(rng, weighted):
    """Against NumPy, with an outlier whose square would overflow in a product."""
    fitted, values = rng.standard_normal((2, 203))
    values[[7, 8, 9, 10, 11, 12, 100]] = 1e60
    weight = rng.gamma(2.0, 1.0, 203) if weighted else np.full(1, 1.0)
    ratios, powers = np.array([1e-3, 0.4, 20.0]), np.array([-2.0, -1.5, -9.0])
    found = loglikelihoods.student_t(fitted, values, weight, ratios, powers)
    each = np.log1p(ratios[:, None] * (values - fitted) ** 2) * weight
    np.testing.assert_allclose(found, powers * each.sum(axis=1), rtol=1e-12)
