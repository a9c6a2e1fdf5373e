"""Quantiles of mixtures of negative binomials against SciPy's distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import nbinom

from bayesring.kernels import counts


@pytest.mark.parametrize("r", [1e-2, 0.7, 4.0, 300.0, 1e5])
@pytest.mark.parametrize("mean", [1e-6, 0.3, 7.0, 900.0, 1e7])
def test_distribution(r, mean):
    exact = nbinom(r, r / (r + mean))
    for y in (0.0, 1.0, 5.0, np.floor(mean), np.floor(3 * mean), np.floor(0.3 * mean)):
        assert counts.distribution(y, r, mean) == pytest.approx(exact.cdf(y), rel=1e-6, abs=1e-9)
    assert counts.distribution(-1.0, r, mean) == 0.0


@pytest.mark.parametrize("level", [0.0, 0.005, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_are_the_smallest_that_reach(rng, level):
    means = np.exp(rng.normal(0.0, 3.0, (40, 25)))
    r = rng.gamma(2.0, 2.0, 25)
    found = counts.quantiles(level, means, r)

    def reached(y):
        return nbinom.cdf(y[:, None], r, r / (r + means)).mean(axis=1)

    assert np.all(found >= 0)
    assert np.all(found == np.floor(found))
    assert np.all(reached(found) >= level - 1e-9)
    assert np.all((reached(found - 1) < level + 1e-9) | (found == 0))
