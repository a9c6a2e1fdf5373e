"""The truncated gamma that guards the noise precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest, norm

from bayesring.data.moments import moments_of
from bayesring.likelihoods.gaussian import Gaussian, draw_truncated_gamma
from bayesring.model.tails import LEVELS, NORMAL_TAILS, PSEUDO, PSEUDO_SIZES, shrunk


@pytest.mark.parametrize(
    ("shape", "rate", "upper"),
    [
        (2.0, 1.0, np.inf),
        (2.0, 1.0, 3.0),
        (0.5, 1.0, 0.01),
        (50.0, 10.0, 5.2),
        (50.0, 10.0, 4.5),
        (50.0, 10.0, 2.0),
        (20_000.0, 1_000.0, 19.9),
        (20_000.0, 1_000.0, 10.0),
        (1.5, 0.5, 1e-3),
        (2.6, 0.5, 1e-6),
    ],
)
def test_draws_follow_the_truncated_law(rng, shape, rate, upper):
    """Modes below, near and far above the bound: each branch and the seam between them."""
    draws = np.array([draw_truncated_gamma(rng, shape, rate, upper) for _ in range(4000)])
    assert np.all((draws > 0) & (draws <= upper))
    log_mass = gamma.logcdf(upper, shape, scale=1 / rate)

    def distribution(x):
        return np.exp(gamma.logcdf(x, shape, scale=1 / rate) - log_mass)

    if np.isfinite(log_mass):
        assert kstest(draws, distribution).pvalue > 1e-4
    else:  # far in the tail the law is exponential below the bound
        slope = (shape - 1) / upper - rate
        assert kstest((upper - draws) * slope, "expon").pvalue > 1e-4


def test_no_endless_loop_far_beyond_the_bound(rng):
    assert 0 < draw_truncated_gamma(rng, 1e8, 1.0, 1.0) <= 1.0


@pytest.mark.parametrize("level", [0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995])
def test_normal_tails_change_no_level(level):
    plain = Gaussian(max_precision=4.0)
    assert plain.calibrated_level(level) == level
    same = Gaussian(max_precision=4.0, tails=tuple(NORMAL_TAILS))
    assert same.calibrated_level(level) == pytest.approx(level)


def test_tails_make_intervals_cover_errors_that_are_not_normal(rng):
    """Errors of two sizes: normal intervals of 50 % cover far more, calibrated ones 50 %."""
    errors = rng.standard_normal(20_000) * np.where(rng.random(20_000) < 0.1, 1.5, 0.2)
    held, new = errors[:10_000], errors[10_000:]
    likelihood = Gaussian().calibrate(held, np.zeros(10_000), np.zeros(10_000))
    assert len(likelihood.tails) == LEVELS.size
    fitted, tau = np.zeros((3, 1)), np.full((3, 1), likelihood.max_precision)
    for level in (0.2, 0.5, 0.8, 0.9, 0.95):
        ends = [
            likelihood.quantile(tail, fitted, tau)[0] for tail in (0.5 - level / 2, 0.5 + level / 2)
        ]
        assert np.mean((ends[0] <= new) & (new <= ends[1])) == pytest.approx(level, abs=0.02)
    plain = Gaussian(max_precision=likelihood.max_precision)
    ends = [plain.quantile(tail, fitted, tau)[0] for tail in (0.25, 0.75)]
    assert np.mean((ends[0] <= new) & (new <= ends[1])) > 0.6


@pytest.mark.parametrize("size", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [50, 1_000])
def test_tails_of_values_that_are_normal_have_the_size_derived(n, size):
    """Seen to fail: the size by another level than the one its quantile has."""
    scores = size * norm.ppf(0.5 + 0.5 * (np.arange(n) + 0.5) / n)
    own = (n * size + PSEUDO_SIZES) / (n + PSEUDO_SIZES)
    expected = (n * size + PSEUDO * own) / (n + PSEUDO)
    np.testing.assert_allclose((shrunk(scores) / NORMAL_TAILS)[19:95], expected, rtol=0.02)


def test_few_held_out_values_leave_the_tails_nearly_normal(rng):
    few = Gaussian().calibrate(np.full(5, 0.5), np.zeros(5), np.zeros(5)).tails
    assert np.max(np.abs(np.array(few) - NORMAL_TAILS)) < 0.1


def test_wrong_number_of_tails():
    with pytest.raises(ValueError, match="tails of Gaussian must be 99 numbers or none, got 2"):
        Gaussian(tails=(1.0, 2.0))


def test_intervals_of_higher_level_are_wider(rng):
    tails = tuple(np.sort(rng.gamma(0.3, size=LEVELS.size)))
    likelihood = Gaussian(tails=tails)
    levels = np.linspace(0.0005, 0.9995, 2000)
    assert np.all(np.diff([likelihood.calibrated_level(level) for level in levels]) >= 0)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_levels_beyond_the_last_tail_go_on_growing(sign):
    """By the factor of the last tail, though nothing was measured beyond."""
    likelihood = Gaussian(tails=tuple(1.5 * NORMAL_TAILS))
    quantiles = sign * np.array([2.6, 2.8, 3.1, 3.5])
    found = norm.ppf([likelihood.calibrated_level(norm.cdf(each)) for each in quantiles])
    np.testing.assert_allclose(found, 1.5 * quantiles, rtol=1e-6)


def test_a_large_offset_is_not_taken_for_a_constant(rng):
    location, scale = Gaussian().units_from(moments_of(1e13 + rng.standard_normal(1000)))
    assert location == pytest.approx(1e13)
    assert scale == pytest.approx(1.0, abs=0.1)
    assert Gaussian().units_from(moments_of(np.full(1000, 0.1))) == pytest.approx((0.1, 0.1))


def test_very_wide_tails_have_finite_ends_on_both_sides(rng):
    """Seen to fail: the upper end at infinity, its level rounded to one."""
    likelihood = Gaussian(tails=tuple(6.0 * NORMAL_TAILS))
    fitted, tau = rng.standard_normal((9, 4)), np.full((9, 1), 2.0)
    lower, upper = (likelihood.quantile(tail, fitted, tau) for tail in (0.005, 0.995))
    assert np.isfinite(lower).all()
    np.testing.assert_allclose(likelihood.quantile(0.005, -fitted, tau), -upper)


def test_tails_are_counted_in_the_noise_of_the_draws(rng):
    """One outlier among the others doubles the noise of the draws: intervals stay as they were."""
    held, nothing = rng.standard_normal(5_000), np.zeros(5_000)
    ends = []
    for tau in (1.0, 0.25):
        draws = np.full((3, 1), tau)
        likelihood = Gaussian().calibrate(0.3 * held, nothing, nothing, draws)
        ends.append(likelihood.quantile(0.95, np.zeros((3, 1)), draws)[0])
    assert ends == pytest.approx([0.3 * norm.ppf(0.95)] * 2, rel=0.05)
