"""Sums that do not round: the same bits however values are cut up and ordered."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring.data.moments import UNIT, Tally, exact_sum, moments_of
from bayesring.likelihoods import Gaussian

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(FLOATS, max_size=20))
def test_sums_are_exact(numbers):
    expected = sum(map(Fraction, numbers), Fraction(0))
    assert Fraction(exact_sum(np.array(numbers, dtype=float)), 1 << UNIT) == expected


@given(st.lists(st.floats(-1e304, 1e304), min_size=1, max_size=20), st.integers(0, 20))
def test_parts_add_up_to_the_bit(numbers, cut):
    values = np.array(numbers)
    whole = moments_of(values)
    parts = [values[:cut], values[cut:][::-1]]
    tally = Tally.of(parts[1]).plus(Tally.of(parts[0]))
    assert tally.moments(sum(map(tally.squares, parts))) == whole
    mean = float(sum(map(Fraction, numbers)) / len(numbers))
    assert whole.mean == mean
    assert (whole.smallest, whole.largest) == (values.min(), values.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_are_mean_and_deviation(rng, dtype):
    values = (3.0 + 2.0 * rng.standard_normal((1000, 2))).astype(dtype)[:, 0]
    found, wide = moments_of(values, np.full(1000, 2.5)), values.astype(float)
    assert found.mean == pytest.approx(wide.mean(), rel=1e-14)
    assert found.deviation == pytest.approx(wide.std(), rel=1e-14)
    assert (found.binary, found.whole, found.exposure) == (False, False, 2.5)
    assert moments_of(np.array([0.0, 1.0, 1.0])).binary
    assert moments_of(np.array([0.0, 1.0, 7.0]))[4:7:2] == (False, True)
    assert moments_of(values).exposure == 1.0


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1e300])
def test_no_size_overflows_or_vanishes(size):
    values = size * np.array([1.0, 1.0, 3.0, 3.0])
    found = moments_of(values)
    assert found.mean == 2.0 * size
    assert found.deviation == pytest.approx(size, rel=1e-15, abs=0)


def test_neighbours_among_floats_differ_and_equal_values_do_not():
    close = moments_of(np.array([1e16, 1e16 + 2.0, 1e16 + 4.0]))
    assert close.deviation == pytest.approx(sqrt(8 / 3))
    assert Gaussian().units_from(close)[1] == close.deviation
    assert moments_of(np.full(1000, 0.1))[:2] == (0.1, 0.0)
