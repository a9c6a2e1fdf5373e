"""`complete` on long tables: rows, columns, index and order come back as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesring import complete
from tests.gappy import (
    KEYS,
    NUMBERS,
    QUICK,
    STATIONS,
    STATISTICS,
    gappy_array,
    long_columns,
)


@pytest.fixture(scope="module")
def array():
    return gappy_array()


@pytest.fixture(scope="module")
def completed(array):
    return complete(array, **QUICK)


TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def column(table, name):
    """A column of any table as a NumPy array."""
    return (
        np.array(pl.DataFrame(table)[name])
        if isinstance(table, pl.DataFrame)
        else np.array(table[name])
    )


@pytest.mark.parametrize("kind", TABLES)
def test_tables_come_back_with_their_rows_and_columns(array, completed, kind):
    data = TABLES[kind](long_columns(array))
    found = complete(data, modes=KEYS, value="t", **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        assert type(result) is type(data)
        for key in KEYS:
            np.testing.assert_array_equal(column(result, key), column(data, key))
        np.testing.assert_array_equal(column(result, "t"), getattr(completed, name).ravel())
        np.testing.assert_array_equal(column(found.table, name), column(result, "t"))
    assert type(found.table) is type(data)
    given = column(found.table, "t").astype(float)
    np.testing.assert_array_equal(given, array.ravel())
    assert found.model.table_kind_ == kind


@pytest.mark.parametrize("kind", TABLES)
def test_row_order_never_matters(array, completed, kind):
    order = np.random.default_rng(1).permutation(array.size)
    found = complete(TABLES[kind](long_columns(array, order)), modes=KEYS, value="t", **QUICK)
    for name in STATISTICS:
        np.testing.assert_array_equal(
            column(found.table, name), getattr(completed, name).ravel()[order]
        )


@pytest.mark.parametrize("kind", TABLES)
def test_absent_cells_get_rows_if_asked(array, completed, kind):
    rows = np.flatnonzero(~np.isnan(array.ravel()))
    columns = long_columns(array, rows) | {"comment": ["as given"] * len(rows)}
    data = TABLES[kind](columns)
    found = complete(data, modes=KEYS, value="t", fill="all", **QUICK)
    assert len(found.table) == array.size
    np.testing.assert_array_equal(column(found.table, "mean")[: len(rows)], array.ravel()[rows])
    absent = np.argwhere(np.isnan(array))
    np.testing.assert_array_equal(
        column(found.table, "station")[len(rows) :], STATIONS[absent[:, 0]]
    )
    np.testing.assert_array_equal(column(found.table, "number")[len(rows) :], NUMBERS[absent[:, 2]])
    np.testing.assert_array_equal(
        column(found.table, "mean")[len(rows) :], completed.mean[np.isnan(array)]
    )
    if kind == "pandas":
        assert found.table.index.is_unique


def test_gaps_and_absent_cells_get_their_own_predictions(array):
    """A table that has both, filled at once."""
    rows = np.delete(np.arange(array.size), np.flatnonzero(np.isnan(array.ravel()))[::2])
    data = pd.DataFrame(long_columns(array, rows))
    found = complete(data, modes=KEYS, value="t", fill="all", **QUICK)
    table, filled = found.table, found.table["std"] > 0
    assert len(data) < len(table) == array.size
    assert filled[: len(data)].any()
    assert filled[len(data) :].all()
    asked = found.model.predict_table(table[filled])
    np.testing.assert_allclose(table["mean"][filled], asked["mean"], rtol=1e-9)
    np.testing.assert_allclose(table["upper"][filled], asked["upper"], rtol=1e-9)


def test_repeated_rows_are_repeated_observations(array):
    columns = long_columns(array)
    data = pd.DataFrame({name: values + values[:7] for name, values in columns.items()})
    data.loc[len(data) - 7 :, "t"] = 31.5
    found = complete(data, modes=KEYS, value="t", **QUICK)
    assert found.model.n_observations_ == np.count_nonzero(~np.isnan(array)) + 7
    assert len(found.table) == len(data)
    assert (found.table["mean"].tail(7) == 31.5).all()


def test_categories_and_an_index_are_kept(array):
    data = pd.DataFrame(long_columns(array)).astype({"station": "category"})
    data.index = data.index[::-1] + 100
    found = complete(data, modes=KEYS, value="t", **QUICK)
    assert found.table["station"].dtype == data["station"].dtype
    pd.testing.assert_index_equal(found.mean.index, data.index)
    every = complete(data.dropna(), modes=KEYS, value="t", fill="all", **QUICK)
    assert every.table["station"].dtype == data["station"].dtype


def test_obvious_columns_need_no_names(array):
    data = pl.DataFrame(long_columns(array))
    found = complete(data, **QUICK)
    assert found.model.labels_.names == ("station", "month", "number")
    assert found.model.labels_.value == "t"


def test_known_values_below_zero_have_no_error_of_minus_zero(array):
    """Which files would show."""
    below = array - 100.0
    columns = long_columns(below, np.arange(below.size))
    shortest = QUICK | {"warmup": 2, "draws": 2}
    assert not np.signbit(complete(below, **shortest).std).any()
    table = complete(pd.DataFrame(columns), modes=KEYS, value="t", **shortest).table
    assert np.sum(table["std"] == 0) == np.sum(np.isfinite(below))
    assert not np.signbit(table["std"]).any()
