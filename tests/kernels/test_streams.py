"""Kernels of streams against plain NumPy."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from bayesring.kernels import pools as streams


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counts_and_codes(rng, dtype):
    keys = rng.choice([-5, -1, 2, 9], 1000).astype(dtype)
    seen, counts = np.zeros(20, dtype=bool), np.zeros(20, dtype=np.int64)
    streams.count(keys, -6, seen, counts, 2)
    np.testing.assert_array_equal(counts, 2 * np.bincount(keys + 6, minlength=20))
    np.testing.assert_array_equal(seen, counts > 0)
    table = np.full(15, -1, dtype=np.int32)
    table[[0, 4, 7, 14]] = [3, 1, 0, 2]
    out = np.empty(1000, dtype=np.int32)
    assert streams.look_up(keys, -5, table, out) == -1
    np.testing.assert_array_equal(out, table[keys + 5])
    limits = np.iinfo(dtype)
    for unknown in (-6, 10, 0, limits.min, limits.max):
        keys[700] = unknown
        assert streams.look_up(keys, -5, table, out) == 700


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_summary_and_units(rng, dtype):
    values = rng.normal(3.0, 2.0, 1000).astype(dtype)
    wide = values.astype(np.float64)
    wrong, mean, squares, *limits, binary = streams.summarise(values)
    np.testing.assert_allclose([mean, squares], [wide.mean(), 1000 * wide.var()], rtol=1e-12)
    assert [wrong, *limits, binary] == [-1, values.min(), values.max(), False]
    assert streams.summarise(np.array([0, 1, 1], dtype=dtype))[-1]
    out = np.empty(1000, dtype=np.float32)
    assert streams.standardise(values, 3.0, 2.0, out) == -1
    np.testing.assert_array_equal(out, ((wide - 3) / 2).astype(np.float32))
    for bad in (np.nan, np.inf, -np.inf):
        values[77] = bad
        assert streams.summarise(values)[0] == 77
        assert streams.standardise(values, 0.0, 1.0, out) == 77


@pytest.mark.parametrize("n", [0, 1, 5, 20_000])
def test_mixed_rows_are_the_same_rows(rng, n):
    pool = rng.integers(0, 1000, (2 * n + 7, 4)).astype(np.int32)
    begins, ends = np.array([2, n + 3]), np.array([2 + n // 3, n + 3 + n - n // 3])
    draws = rng.integers(0, 2**32, n, dtype=np.uint32)
    buckets = np.frombuffer(rng.bytes(n), dtype=np.uint8)
    mixed, order = np.empty_like(pool), np.empty(n, dtype=np.int32)
    streams.mix(pool, begins, ends, buckets, draws, mixed, order)
    expected = np.concatenate([pool[a:b] for a, b in zip(begins, ends, strict=True)])
    found = mixed[order]
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))
    assert n < 9 or np.mean(np.all(found == expected, axis=1)) < 0.01
    columns, values = np.empty((3, n), dtype=np.int32), np.empty(n, dtype=np.int32)
    streams.deal(mixed, order, columns, values)
    np.testing.assert_array_equal(columns, found[:, :3].T)
    np.testing.assert_array_equal(values, found[:, 3])


def test_every_order_of_a_bucket_has_its_draws():
    """Draws in the middle of each of k equal parts, for the k-th place, give every order once."""
    buckets = np.array([7, 7, 3, 7, 3, 7], dtype=np.uint8)
    pool = np.array([[2], [3], [0], [4], [1], [5]], dtype=np.int32)
    mixed, order = np.empty_like(pool), np.empty(6, dtype=np.int32)
    chances = np.array([1, 2, 1, 2, 3, 4])  # two rows in one bucket, four in the other
    found = []
    for parts in product(*map(range, chances)):
        draws = (2**32 * (np.array(parts) + 0.5) / chances).astype(np.uint32)
        streams.mix(pool, np.array([0]), np.array([6]), buckets, draws, mixed, order)
        found.append(tuple(mixed[order, 0]))
    expected = product(permutations(range(2)), permutations(range(2, 6)))
    assert sorted(found) == sorted(first + second for first, second in expected)
