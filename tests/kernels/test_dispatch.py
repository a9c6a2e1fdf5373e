"""The tables from which products are made: every entry gives NumPy's product, and is picked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import njit

from bayesring.kernels import chosen, loops, statistics, tiles

WAYS = [loops] if chosen.PLAIN else [loops, chosen]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.rpartition(".")[2])
@pytest.mark.parametrize("effect", [loops.SET, loops.ADD, loops.SUBTRACT])
def test_every_shape_of_a_table_gives_its_own_product(rng, way, effect):
    """Seen to fail: the sums of one row kept for the next."""
    shapes = [(rows, width) for width in (32, 64, 128) for rows in (1, 2, 3, 8)]
    tile = way.matrix_products(shapes, effect)

    @njit
    def run(rows, width, left, right, inner, columns, out):
        tile(rows, width, left, 0, inner, 1, right, 0, columns, inner, out, 0, columns)

    for rows, width in shapes:
        columns = width // 8
        left, right = rng.standard_normal((rows, 5)), rng.standard_normal((5, columns))
        out = rng.standard_normal((rows + 1, columns))
        before = out.copy()
        run(rows, width, left, right, 5, columns, out)
        product = left @ right
        expected = {0: product, 1: before[:-1] + product, -1: before[:-1] - product}[effect]
        np.testing.assert_allclose(out[:-1], expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(out[-1], before[-1])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.rpartition(".")[2])
def test_every_rank_of_the_table_gives_its_own_product(rng, way):
    square = way.square_products(tiles.SQUARES)

    @njit
    def run(rank, left, right, out):
        square(rank, left, 0, right, 0, out, 0)

    for rank in tiles.SQUARES:
        left, right = rng.standard_normal((2, rank, rank))
        out = np.zeros(rank * rank + tiles.SPARE)
        run(rank, left.ravel(), right.ravel(), out)
        found = out[: rank * rank].reshape(rank, rank)
        np.testing.assert_allclose(found, left @ right, rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 10, 12, 17, 26, 41])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_statistics_of_every_size_meet_shapes_of_the_table(rng, size, dtype):
    width, wide = tiles.padded(size + tiles.SPARE), tiles.padded(size + 1)
    weighted, features = rng.standard_normal((2, tiles.TILE, width)).astype(dtype)
    found = np.zeros((wide + 8, wide + 64))
    statistics.add_products(weighted, features, size, 19, found)
    expected = weighted[:19, :size].T.astype(float) @ features[:19, :size]
    lower = np.tril_indices(size)
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(found[:size, :size][lower], expected[lower], atol=tolerance)


def test_kernels_can_be_pickled():
    again = pickle.loads(pickle.dumps(tiles.padded))
    assert again(17) == 32
