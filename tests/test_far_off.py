"""Values beside which all others drown, and integers that floats cannot hold: both are said."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from bayesring import TensorRing
from bayesring.data.moments import ENDS, between_ends, ends_of
from bayesring.likelihoods import Gaussian, StudentT

DROWNED = "over 1,000,000 times as far from the median as almost all others"


@pytest.mark.parametrize("likelihood", [Gaussian(), StudentT()])
@pytest.mark.parametrize("usual", [1.0, -3.0, 1e-200])
@pytest.mark.parametrize("size", [3, 64, 5000])
def test_one_value_far_from_equal_ones_is_said(likelihood, usual, size):
    values = np.full(size, usual)
    values[1] = 1e12
    (concern,) = likelihood.data_concerns(values)
    assert concern.startswith(f"y holds 1e+12 in row 1, {DROWNED}")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(64) == 7,  # without a size to compare with
        np.where(np.arange(64) == 7, 1e6, 1.0),
        np.where(np.arange(64) == 7, -5.0, 1e-5),
        np.ones(64),
        np.zeros(64),
        np.array([1e12]),
        np.array([1.0, 1e12]),
    ],
)
def test_one_value_that_differs_is_not_far_off_for_that(values):
    assert Gaussian().data_concerns(values) == []


def parquet_of(path, values, batch=None):
    """A file of values in the cells of a tensor."""
    cells = np.argwhere(np.ones((len(values) // 16, 4, 4)))
    table = pa.table({name: cells[:, d] for d, name in enumerate("abc")} | {"v": values})
    pq.write_table(table, path, row_group_size=batch)
    return path


def told_of(path, likelihood="gaussian"):
    """What is warned about when a file is learned from."""
    ring = TensorRing(
        inference="online-em",
        likelihood=likelihood,
        rank=2,
        epochs=1,
        draws=2,
        random_state=0,
        progress=False,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ring.fit(path, modes=["a", "b", "c"], value="v")
    return [str(each.message) for each in caught if each.category is UserWarning]


def ordinary(n=64):
    return np.random.default_rng(0).uniform(-50, 50, n)


@pytest.mark.parametrize("value", [1e12, -1e12, 1e100])
@pytest.mark.parametrize("batch", [7, None])
def test_a_value_in_a_file_beside_which_all_others_drown_is_said(tmp_path, value, batch):
    values = ordinary()
    values[5] = value
    (told,) = told_of(parquet_of(tmp_path / "x.parquet", values, batch))
    assert told.startswith(f"y holds {value:g}, {DROWNED}: beside it they look equal")
    (same,) = Gaussian().data_concerns(values)
    assert told == same.replace(" in row 5", "")


def test_files_of_equal_values_and_one_far_off(tmp_path):
    values = np.where(np.arange(64) == 9, 1e12, 1.0)
    (told,) = told_of(parquet_of(tmp_path / "x.parquet", values))
    assert told.startswith(f"y holds 1e+12, {DROWNED}")


@pytest.mark.parametrize("strays", [1, 2, 15])
def test_as_many_may_be_far_off_as_in_memory(tmp_path, strays):
    values = ordinary(16_000)
    values[-strays:] = 1e12
    (told,) = told_of(parquet_of(tmp_path / "x.parquet", values, 3000))
    assert told.startswith(f"y holds 1e+12, {DROWNED}")


@pytest.mark.parametrize(
    "values",
    [
        ordinary(),
        np.exp(0.1 * ordinary()),
        np.sinh(0.3 * ordinary()),
        1e16 + ordinary(),
        np.where(np.arange(64) == 7, 1e6, 1.0),
        np.where(np.arange(64) == 7, 1.0, 0.0),
        np.arange(64) * 2**40,
        np.full(64, 7.0),
        np.arange(64, dtype=np.float32),
        np.arange(64, dtype=np.uint8),
        np.random.default_rng(1).standard_cauchy(1600),
    ],
)
def test_ordinary_files_are_not_complained_about(tmp_path, values):
    assert told_of(parquet_of(tmp_path / "x.parquet", values, 16)) == []


@pytest.mark.parametrize("kind", ["poisson", "ordinal"])
def test_likelihoods_say_what_they_think_of_a_file(tmp_path, kind):
    values = np.arange(64) % 5
    values[3] = 6
    assert told_of(parquet_of(tmp_path / "x.parquet", values), kind) == []


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_of_a_file_that_floats_cannot_hold_are_said(tmp_path, kind):
    values = 2**53 + 2 * np.arange(64, dtype=kind)
    assert told_of(parquet_of(tmp_path / "x.parquet", values)) == []
    values[41] -= kind(1)
    known = pa.array(values, mask=np.arange(64) == 3)
    (told,) = told_of(parquet_of(tmp_path / "x.parquet", known, 10))
    assert told == (
        "value column 'v' holds integers beyond 2^53 that are rounded to the nearest float64, such "
        f"as {2**53 + 81} in row 41 of file {tmp_path / 'x.parquet'}, which becomes {2**53 + 80}."
    )


@pytest.mark.parametrize("n", [1, 31, 32, 33, 500])
def test_ends_are_the_same_however_values_are_cut_up(n):
    values = np.random.default_rng(n).normal(size=n).round(1)
    found = ends_of(values)
    ordered = np.sort(values)
    expected = ordered if n <= 2 * ENDS else np.append(ordered[:ENDS], ordered[-ENDS:])
    np.testing.assert_array_equal(found, expected)
    parts = [ends_of(part) for part in np.array_split(values, 7)]
    np.testing.assert_array_equal(ends_of(np.concatenate(parts)), found)
    whole = between_ends(found, n)
    assert len(whole) == n
    assert np.all(np.diff(whole) >= 0)
    np.testing.assert_array_equal(ends_of(whole), found)
