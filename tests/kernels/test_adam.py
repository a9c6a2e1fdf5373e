"""Adam's step in vectors, against the formulas of Kingma and Ba (2015)."""

import numpy as np
import pytest
from numba import njit

from bayesring.kernels.adam import FIRST, SECOND, TINY, adam


@njit
def steps(slopes, scale, pull, pull_at, arrays, at, size, share, rate):
    """As many steps as there are rows of `slopes`."""
    first, second, cores, weighted = arrays
    for t in range(len(slopes)):
        lift = rate / (1 - FIRST ** (t + 1))
        square_lift = 1 / (1 - SECOND ** (t + 1))
        adam(
            slopes[t],
            scale,
            pull,
            pull_at,
            first,
            second,
            cores,
            weighted,
            at,
            size,
            share,
            lift,
            square_lift,
        )


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 16, 25])
def test_steps_are_those_of_adam_and_stay_in_their_slice(rng, size):
    """Seen to fail: the mask one lane too long; the root taken before its bias is mended."""
    before, behind, n_steps, share, rate = 5, 11, 4, 0.3, 0.02
    slopes = rng.standard_normal((n_steps, size))
    scale, pull = rng.standard_normal(size), rng.standard_normal(3 + size)
    arrays = tuple(rng.gamma(1.0, size=before + size + behind) for _ in range(4))
    own = slice(before, before + size)
    mean, square, core, _ = (each[own].copy() for each in arrays)
    untouched = [np.delete(each, np.arange(before, before + size)) for each in arrays]
    steps(slopes, scale, pull, 3, arrays, before, size, share, rate)
    for t, slope in enumerate(slopes, start=1):
        up = slope * scale - share * pull[3:]
        mean = FIRST * mean + (1 - FIRST) * up
        square = SECOND * square + (1 - SECOND) * up**2
        core += rate * (mean / (1 - FIRST**t)) / (np.sqrt(square / (1 - SECOND**t)) + TINY)
    for found, expected in zip(arrays, (mean, square, core, core * scale), strict=True):
        np.testing.assert_allclose(found[own], expected, rtol=1e-12)
    for found, expected in zip(arrays, untouched, strict=True):
        outside = np.delete(found, np.arange(before, before + size))
        np.testing.assert_array_equal(outside, expected)
