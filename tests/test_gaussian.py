"""The truncated gamma that guards the noise precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from bayesring.likelihoods.gaussian import draw_truncated_gamma


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
