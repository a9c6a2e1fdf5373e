"""Sums of products over modes against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.observations import Observations
from paper.baselines.sorted_views import lay_out, sorted_view
from paper.kernels.nested import count_products, nested_hadamard, nested_matrices
from paper.kernels.polyadic import polyadic_entries
from tests.models import random_coords

SHAPES = [(5, 4), (5, 3, 4), (4, 3, 2, 3), (2, 2, 2, 2, 2)]


def observations(rng, shape, n=60):
    """Observations with duplicates, and none in the last slice of any mode."""
    coords = random_coords(rng, tuple(max(size - 1, 1) for size in shape), n)
    coords[5] = coords[3]
    return Observations(coords, rng.standard_normal(n), shape)


def sum_by_slice(terms, index, size):
    out = np.zeros((size, *terms.shape[1:]))
    np.add.at(out, index, terms)
    return out


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_hadamard_sums(shape, rng):
    data = observations(rng, shape)
    tables = [rng.standard_normal((size, 3)) for size in shape]
    for mode, size in enumerate(shape):
        others = [other for other in range(len(shape)) if other != mode][::-1]
        view = sorted_view(data, mode, others)
        out = np.full((size, 3), np.nan)
        flat, starts = lay_out([tables[other] for other in others])
        nested_hadamard(flat, starts, view.others, view.bounds, view.values, out)
        terms = np.prod([tables[other][data.coords[:, other]] for other in others], axis=0)
        expected = sum_by_slice(data.values[:, None] * terms, data.coords[:, mode], size)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrix_sums(shape, rng):
    """All bonds differ, so that a product in the wrong order cannot even be formed."""
    data, order = observations(rng, shape), len(shape)
    bonds = [3, 1, 4, 2, 5][:order]
    tables = [
        rng.standard_normal((size, bonds[mode - 1], bonds[mode])) for mode, size in enumerate(shape)
    ]
    for mode, size in enumerate(shape):
        others = [(mode + step) % order for step in range(1, order)]
        view = sorted_view(data, mode, others)
        sizes = np.array([bonds[mode], *(bonds[other] for other in others)])
        flat, starts = lay_out([tables[other] for other in others])
        out = np.full((size, sizes[0] * sizes[-1]), np.nan)
        nested_matrices(flat, starts, sizes, view.others, view.bounds, view.values, out)
        terms = data.values[:, None, None] * tables[others[0]][data.coords[:, others[0]]]
        for other in others[1:]:
            terms = terms @ tables[other][data.coords[:, other]]
        expected = sum_by_slice(terms, data.coords[:, mode], size).reshape(size, -1)
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_factors_in_common_are_multiplied_once(rng):
    """A full tensor of three modes needs one product per pair of indices, not one per cell."""
    shape = (3, 4, 5)
    coords = np.stack(np.unravel_index(np.arange(60), shape), axis=1)
    view = sorted_view(Observations(coords, np.ones(60), shape), 0, [1, 2])
    assert count_products(view.others, view.bounds) == 3 * 4


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_polyadic_entries(shape, rng):
    coords = random_coords(rng, shape, 20)
    tables = [rng.standard_normal((size, 4)) for size in shape]
    weights = rng.standard_normal(4)
    found = polyadic_entries(*lay_out(tables), np.ascontiguousarray(coords.T), weights)
    rows = [table[coords[:, mode]] for mode, table in enumerate(tables)]
    np.testing.assert_allclose(found, np.prod(rows, axis=0) @ weights, rtol=1e-12)
