"""Packed second moments against E[A ⊗ A] written out."""

from __future__ import annotations

import numpy as np
import pytest

from paper.baselines.ring_moments import (
    Blocks,
    keep,
    mean_square,
    n_pairs,
    pack,
    unpack_transposed,
)

SIZES = [(1, 1, 1), (2, 3, 2), (3, 1, 2), (4, 4, 4)]


def moments(rng, rows, columns, n=2):
    """E[vec A vec A'] of random matrices with mean and covariance, (n, a b, a b)."""
    draws = rng.standard_normal((n, rows * columns + 2, rows * columns))
    return np.einsum("jqk,jql->jkl", draws, draws)


def kronecker(second, rows, columns):
    """E[A ⊗ A] with rows (r, r') and columns (s, s')."""
    split = second.reshape(-1, rows, columns, rows, columns).transpose(0, 1, 3, 2, 4)
    return split.reshape(-1, rows**2, columns**2)


@pytest.mark.parametrize(("a", "b", "c"), SIZES)
def test_blocks_of_a_product_are_products_of_blocks(a, b, c, rng):
    first, other = moments(rng, a, b), moments(rng, b, c)
    blocks = [x @ y for x, y in zip(pack(first, a, b), pack(other, b, c), strict=True)]
    product = kronecker(first, a, b) @ kronecker(other, b, c)
    expected = product.reshape(-1, a, a, c, c).transpose(0, 4, 2, 3, 1)  # s', r', s, r
    found = unpack_transposed(Blocks(*blocks), a, c).reshape(-1, c, a, c, a)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("a", "b", "_"), SIZES)
def test_mean_square_of_a_trace(a, b, _, rng):
    first, other = moments(rng, a, b), moments(rng, b, a)
    found = mean_square(pack(first, a, b), pack(other, b, a))
    full = kronecker(first, a, b) @ kronecker(other, b, a)
    np.testing.assert_allclose(found, np.trace(full, axis1=1, axis2=2), rtol=1e-11)


def test_keeping_rows_and_columns(rng):
    second = moments(rng, 3, 4)
    rows, columns = np.array([True, False, True]), np.array([False, True, True, True])
    entries = np.multiply.outer(rows, columns).ravel()
    fewer = pack(second[:, entries][:, :, entries], 2, 3)
    for found, expected in zip(keep(pack(second, 3, 4), rows, columns), fewer, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nothing_is_lost_or_kept_twice():
    """Both blocks together have as many entries as the triangle of E[vec A vec A']."""
    for a, b, _ in SIZES:
        entries = sum(p * q for p, q in zip(n_pairs(a), n_pairs(b), strict=True))
        assert entries == a * b * (a * b + 1) // 2
