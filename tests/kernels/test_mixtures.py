"""Quantiles of mixtures of normals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from bayesring.kernels.mixtures import normal_mixture_quantiles


@pytest.mark.parametrize("level", [1e-6, 0.05, 0.5, 0.95, 0.9999])
def test_quantiles_solve_the_mixture_distribution(rng, level):
    """Well separated, equal, and wildly different centres and widths."""
    centres = rng.standard_normal((40, 7)) * 10.0 ** rng.integers(-3, 4, (40, 1))
    centres[0] = 3.0
    roots = 10.0 ** rng.uniform(-2, 3, 7)
    found = normal_mixture_quantiles(level, norm.ppf(level), centres, roots)
    reached = norm.cdf((found[:, None] - centres) * roots).mean(axis=1)
    np.testing.assert_allclose(reached, level, rtol=1e-6)


def test_one_component_is_a_normal():
    found = normal_mixture_quantiles(0.95, norm.ppf(0.95), np.array([[1.0]]), np.array([2.0]))
    np.testing.assert_allclose(found, norm.ppf(0.95, 1.0, 0.5), rtol=1e-10)
