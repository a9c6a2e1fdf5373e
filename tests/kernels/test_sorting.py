"""Sorting by counting against NumPy's sorts."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.kernels import sorting


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000])
def test_sorts_are_those_of_numpy(rng, n):
    column = rng.integers(0, 7, n).astype(np.int32)
    order = rng.permutation(n).astype(np.int32)
    ordered = np.empty_like(order)
    starts = sorting.slice_starts(column, 9)
    sorting.sort_by(column, starts, order, ordered)
    np.testing.assert_array_equal(ordered, order[np.argsort(column[order], kind="stable")])
    counts = np.bincount(column, minlength=9)
    np.testing.assert_array_equal(starts, np.concatenate([[0], np.cumsum(counts)]))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 10, 12, 1000])
def test_a_part_of_an_array_is_sorted(rng, n):
    values = rng.integers(0, n, n + 4).astype(float)
    expected = values.copy()
    expected[2:-2].sort()
    sorting.shell_sort(values, 2, n + 2)
    np.testing.assert_array_equal(values, expected)
