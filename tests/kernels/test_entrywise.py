"""The entry-wise kernel against its specification in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.kernels import entrywise as kernel
from bayesring.model import ring
from tests.kernels.test_slices import CASES, problem


def twin(cores, weights, mode, coords, weight, shift, diagonal, linear, noise, slices):
    """Equation (6'), entry by entry, with residuals computed afresh every time."""
    features = ring.features(cores, weights.reshape(cores[mode].shape[1::2]), mode, coords)
    drawn = slices.copy()
    for i in range(len(drawn)):
        rows = coords[:, mode] == i
        c, w, s = features[rows], weight[rows], shift[rows]
        for k in range(drawn.shape[1]):
            without = c @ drawn[i] - c[:, k] * drawn[i, k]
            precision = diagonal[0, k] + np.sum(w * c[:, k] ** 2)
            mean = (linear[0, k] + np.sum(c[:, k] * (s - w * without))) / precision
            drawn[i, k] = mean + noise[i, k] / np.sqrt(precision)
    return drawn


@pytest.mark.parametrize(("shape", "ring_size"), CASES)
@pytest.mark.parametrize("n", [1, 40, 700])
def test_entries_are_drawn_in_turn_from_their_conditionals(rng, shape, ring_size, n):
    for mode in range(len(shape)):
        cores, weights, coords, bounds, others, weight, shift, prior = problem(
            rng, shape, ring_size, mode, n
        )
        slices = cores[mode].reshape(shape[mode], -1)
        noise = rng.standard_normal(slices.shape)
        drawn, precision, linear = kernel.draw_entries(
            *ring.flatten(cores),
            mode,
            others,
            bounds,
            weight,
            shift,
            weights,
            slices,
            prior[1],
            prior[2],
            noise,
        )
        expected = twin(
            cores, weights, mode, coords, weight, shift, prior[1], prior[2], noise, slices
        )
        np.testing.assert_allclose(drawn, expected, rtol=1e-8, atol=1e-9)
        a = ring.weight_features(cores, drawn.reshape(cores[mode].shape), mode, coords)
        np.testing.assert_allclose(precision, (a.T * weight) @ a, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(linear, a.T @ shift, rtol=1e-8, atol=1e-8)
