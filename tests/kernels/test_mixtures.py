"""Quantiles of mixtures of normals and of t, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

from bayesring.kernels.mixtures import _following, normal_mixture_quantiles
from bayesring.likelihoods import Gaussian, StudentT
from bayesring.model.tails import LEVELS, NORMAL_TAILS, level_of

EXTREMES = [1e-9, 1e-5, 0.001, 0.05, 0.5, 0.95, 0.999, 0.99999]


def beyond(likelihood, x, fitted, nuisance, upper):
    """What the mixture leaves beyond x, on the side asked for."""
    z = (x - fitted) * np.sqrt(nuisance[:, :1]) * (1.0 if upper else -1.0)
    if isinstance(likelihood, StudentT):
        return t.sf(z, nuisance[:, 1:2]).mean(axis=0)
    return norm.sf(z).mean(axis=0)


def nuisances(likelihood, tau, nu=None):
    """(draws, p) with these precisions, and degrees of freedom if there are any."""
    if isinstance(likelihood, Gaussian):
        return tau[:, None]
    pairs = np.stack([tau, np.full(tau.size, 5.0) if nu is None else nu], axis=1)
    return np.tile(pairs, likelihood.initial_nuisance().size // 2)


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()], ids=["normal", "t"])
@pytest.mark.parametrize("level", EXTREMES)
def test_quantiles_solve_the_mixture_distribution(rng, level, likelihood):
    """Well separated, equal, and wildly different centres and widths."""
    centres = rng.standard_normal((7, 40)) * 10.0 ** rng.integers(-3, 4, 40)
    centres[:, 0] = 3.0
    nuisance = nuisances(likelihood, 10.0 ** rng.uniform(-4, 6, 7), rng.uniform(2.05, 9.0, 7))
    found = likelihood.quantile(level, centres, nuisance)
    reached = beyond(likelihood, found, centres, nuisance, level > 0.5)
    np.testing.assert_allclose(reached, min(level, 1 - level), rtol=2e-6)


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e3, 1e100])
@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()], ids=["normal", "t"])
def test_quantiles_have_the_scale_of_the_data(rng, likelihood, scale):
    fitted = rng.standard_normal((20, 5))
    plain = nuisances(likelihood, rng.uniform(1.0, 4.0, 20))
    small = nuisances(likelihood, plain[:, 0] / scale**2)
    for level in (0.001, 0.5, 0.95):
        found = likelihood.quantile(level, scale * fitted, small)
        expected = scale * likelihood.quantile(level, fitted, plain)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize("degrees", [2.001, 2.5, 4.0, 30.0, 1e4])
@pytest.mark.parametrize("level", EXTREMES)
def test_one_draw_is_its_own_noise(level, degrees):
    likelihood = StudentT()
    nuisance = nuisances(likelihood, np.array([4.0]), np.array([degrees]))
    found = likelihood.quantile(level, np.array([[1.0]]), nuisance)
    np.testing.assert_allclose(found, 1.0 + 0.5 * t.ppf(level, degrees), rtol=1e-6)
    found = Gaussian().quantile(level, np.array([[1.0]]), np.array([[4.0]]))
    np.testing.assert_allclose(found, norm.ppf(level, 1.0, 0.5), rtol=1e-7)


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()], ids=["normal", "t"])
def test_several_quantiles_at_once_are_those_of_each(rng, likelihood):
    fitted, nuisance = rng.standard_normal((30, 12)), nuisances(likelihood, np.full(30, 6.0))
    found = likelihood.quantiles(EXTREMES, fitted, nuisance)
    each = [likelihood.quantile(level, fitted, nuisance) for level in EXTREMES]
    np.testing.assert_allclose(found, each, rtol=1e-12)
    assert np.all(np.diff(found, axis=0) > 0)


def test_calibrated_tails_are_quantiles_of_another_level(rng):
    """By bisection of the mixture, far beyond what was held out."""
    tails = tuple(NORMAL_TAILS * np.linspace(0.8, 2.0, LEVELS.size))
    likelihood, fitted = Gaussian(tails=tails), rng.standard_normal((9, 1))
    tau = rng.uniform(1.0, 9.0, (9, 1))
    for level in (0.00001, 0.001, 0.05, 0.4, 0.999):
        tail, upper = level_of(tails, min(level, 1 - level)), level > 0.5
        gap = lambda x: np.log(beyond(likelihood, x, fitted, tau, upper)[0] / tail)  # noqa: E731
        exact = brentq(gap, -14.0, 14.0, xtol=1e-12)
        assert likelihood.quantile(level, fitted, tau)[0] == pytest.approx(exact, abs=1e-7)


def test_after_a_bisection_as_much_is_left_as_it_was_long():
    """Halley's step from here leaves the bracket; what is left is not the cube of the bisection."""
    sums, spread = (0.4, 0.1, -0.01), (1.0, 0.5)
    place, left = _following(0.0, (0.0, 0.002), np.log(1e-3), sums, spread)
    assert (place, left) == pytest.approx((0.001, 0.002))
    place, left = _following(0.0, (0.0, 100.0), np.log(0.39), sums, spread)
    assert 0.0 < left < place, "a step within the bracket leaves about its cube"


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_between_draws_far_apart_quantiles_are_at_the_nearer_ones(side):
    """Half of the mixture lies beyond every place of the gap. Seen to fail: the middle of it."""
    centres, roots = np.array([[0.0, 1000.0]]), np.ones(2)
    tails, scores = np.array([0.5]), np.array([0.0])
    [[found]] = normal_mixture_quantiles(tails, scores, np.array([side]), centres, roots)
    assert abs(found - (0.0 if side > 0 else 1000.0)) < 10.0


@pytest.mark.parametrize("degrees", [300.0, 1e3, 1e10])
def test_draws_further_apart_than_a_tail_of_t_reaches(degrees):
    """Seen to fail: a division by zero, where the tail is less than any float."""
    centres, pairs = np.array([[0.0], [1.0]]), np.array([[1e6, degrees], [1e6, 4.0]])
    nuisance = np.tile(pairs, StudentT().initial_nuisance().size // 2)
    for level in (0.01, 0.3, 0.7, 0.99):
        found = StudentT().quantile(level, centres, nuisance)
        reached = beyond(StudentT(), found, centres, nuisance, level > 0.5)
        np.testing.assert_allclose(reached, min(level, 1 - level), rtol=2e-6)
