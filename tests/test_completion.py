"""`complete`: each kind of container comes back as it was, with its gaps filled."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sparse
import xarray as xr

from bayesring import checks, complete
from bayesring.data.traps import DataWarning

QUICK = {
    "rank": 2,
    "order": None,
    "warmup": 20,
    "draws": 20,
    "chains": 1,
    "random_state": 0,
    "progress": False,
}
SHAPE = (5, 6, 4)
STATIONS = np.array(["Aix", "Bonn", "Cork", "Delft", "Essen"])
MONTHS = np.array([datetime.date(2020, month, 1) for month in range(1, 7)])
NUMBERS = np.array([2, 3, 5, 10])
STATISTICS = ("mean", "std", "lower", "upper")


@pytest.fixture(scope="module")
def array():
    """A sum of waves in units of its own; a third of it NaN."""
    rng = np.random.default_rng(7)
    grids = np.meshgrid(*(np.linspace(0, 2, size) for size in SHAPE), indexing="ij")
    values = 30 + 5 * np.sin(sum(grids)) + 0.1 * rng.standard_normal(SHAPE)
    values[rng.random(SHAPE) < 1 / 3] = np.nan
    return values


@pytest.fixture(scope="module")
def completed(array):
    return complete(array, **QUICK)


def long_columns(array, rows=None):
    """The array as columns of a long table."""
    cells = np.argwhere(np.ones(SHAPE, dtype=bool))
    values = array[tuple(cells.T)]
    rows = np.arange(len(cells)) if rows is None else rows
    return {
        "station": STATIONS[cells[rows, 0]].tolist(),
        "month": MONTHS[cells[rows, 1]].tolist(),
        "number": NUMBERS[cells[rows, 2]].tolist(),
        "t": [None if np.isnan(v) else float(v) for v in values[rows]],
    }


TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
KEYS = ["station", "month", "number"]


def column(table, name):
    """A column of any table as a NumPy array."""
    return (
        np.array(pl.DataFrame(table)[name])
        if isinstance(table, pl.DataFrame)
        else np.array(table[name])
    )


def test_arrays_keep_what_is_known_and_fill_the_rest(array, completed):
    known = ~np.isnan(array)
    for name in STATISTICS:
        found = getattr(completed, name)
        assert type(found) is np.ndarray
        assert found.shape == SHAPE
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found[known], 0.0 if name == "std" else array[known])
    assert np.all(completed.std[~known] > 0)
    assert np.all(completed.lower[~known] < completed.mean[~known])
    assert np.all(completed.mean[~known] < completed.upper[~known])
    assert completed.n_filled == np.count_nonzero(~known)
    assert np.isnan(array).any(), "the data given stay as they were"


def test_the_filled_cells_are_the_models_predictions(array, completed):
    cells = np.argwhere(np.isnan(array))
    mean, std = completed.model.predict(cells, return_std=True)
    lower, upper = completed.model.predict_interval(cells, level=0.9)
    for name, expected in zip(STATISTICS, (mean, std, lower, upper), strict=True):
        np.testing.assert_allclose(getattr(completed, name)[np.isnan(array)], expected, rtol=1e-9)


def test_precision_of_fractions_is_kept(array):
    assert complete(array.astype(np.float32), **QUICK).mean.dtype == np.float32


def test_masked_arrays(array, completed):
    values = np.where(np.isnan(array), -999.0, array)
    found = complete(np.ma.masked_array(values, np.isnan(array)), **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        assert isinstance(result, np.ma.MaskedArray)
        assert not result.mask.any()
        np.testing.assert_array_equal(result.data, getattr(completed, name))


def test_masked_whole_numbers_become_fractions():
    counts = np.ma.masked_array(np.arange(24).reshape(2, 3, 4), np.arange(24) % 5 == 0)
    assert complete(counts, **QUICK).mean.dtype == np.float64


LONG_NAMES = {
    "mean": "{}, gaps filled",
    "std": "standard deviation of {}",
    "lower": "lower end of the 90 % interval of {}",
    "upper": "upper end of the 90 % interval of {}",
}


def test_xarray_keeps_coordinates_names_and_attributes(array, completed):
    data = xr.DataArray(
        array,
        dims=("station", "month", "number"),
        coords={
            "station": STATIONS[::-1],
            "month": MONTHS.astype("M8[ns]"),
            "height": ("station", np.arange(5.0)),
        },
        name="t",
        attrs={"units": "K"},
    )
    found = complete(data, **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        expected = {"units": "K", "long_name": LONG_NAMES[name].format("t")}
        if name == "std":
            expected["units_metadata"] = "temperature: difference"
        assert result.attrs == expected
        assert result.name == "t"
        xr.testing.assert_equal(result.coords.to_dataset(), data.coords.to_dataset())
        np.testing.assert_array_equal(result.values, getattr(completed, name))
    labels = found.model.labels_
    assert labels.names == ("station", "month", "number")
    assert labels.value == "t"
    np.testing.assert_array_equal(labels.levels[0], STATIONS[::-1])
    assert labels.levels[1].dtype == "M8[D]"
    np.testing.assert_array_equal(labels.levels[2], np.arange(4))
    asked = pd.DataFrame({"station": ["Essen"], "month": [MONTHS[2]], "number": [3]})
    expected = found.model.predict([[0, 2, 3]])
    np.testing.assert_allclose(found.model.predict(asked), expected, rtol=1e-12)


def written_and_read(result, path):
    """The result as xarray writes it to a NetCDF file, read from there."""
    result.to_netcdf(path)
    with xr.open_dataarray(path) as found:
        return found.load()


def opened(array, path, **encoding):
    """The array as xarray reads it from a NetCDF file, with times counted from 1900."""
    data = xr.DataArray(
        array,
        dims=("station", "month", "number"),
        coords={"month": MONTHS.astype("M8[ns]"), "number": NUMBERS / 10},
        name="t",
        attrs={"units": "K"},
    )
    data["month"].encoding = {"units": "hours since 1900-01-01", "dtype": "int32"}
    data["number"].encoding = {"dtype": "int16", "scale_factor": 0.1, "_FillValue": -1}
    data.to_netcdf(path, encoding={"t": encoding})
    with xr.open_dataarray(path) as found:
        return found.load()


@pytest.mark.parametrize(
    "encoding",
    [
        {"dtype": "int16", "scale_factor": 0.001, "add_offset": 31.0, "_FillValue": -32768},
        {"dtype": "uint8", "scale_factor": 0.1, "add_offset": 20.0, "_FillValue": 255},
        {"dtype": "int16", "scale_factor": 0.001, "add_offset": 31.0, "_FillValue": 0},
        {"dtype": "float32", "_FillValue": 0.0},
        {"dtype": "float64", "zlib": True, "complevel": 4, "chunksizes": (5, 3, 2)},
    ],
)
def test_results_for_packed_data_come_back_from_a_file(array, tmp_path, encoding):
    """A result is not packed as the data were: it would be rounded, masked, or something else."""
    data = opened(array, tmp_path / "in.nc", **encoding)
    assert data.encoding["dtype"] == encoding["dtype"]
    assert np.isnan(data).any()
    given = data.copy(deep=True)
    given.encoding = dict(data.encoding)
    found = complete(data, **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        again = written_and_read(result, tmp_path / "out.nc")
        np.testing.assert_array_equal(again.values, result.values)
        assert again.dtype == result.dtype
        xr.testing.assert_equal(again.coords.to_dataset(), data.coords.to_dataset())
        assert again["month"].encoding["units"] == "hours since 1900-01-01"
        assert again["month"].encoding["dtype"] == "int32"
        assert again["number"].encoding["dtype"] == "int16"
        assert again.attrs == result.attrs
        assert again.attrs["units"] == "K"
        for key in ("zlib", "complevel", "chunksizes"):
            assert again.encoding.get(key) == data.encoding.get(key)
    assert data.encoding == given.encoding
    assert data.attrs == given.attrs


def test_attributes_that_repack_or_mask_are_left_out(array, tmp_path):
    """Data read without decoding have them as attributes."""
    packing = {
        "scale_factor": 0.01,
        "add_offset": 273.15,
        "_FillValue": -999.0,
        "missing_value": 0.0,
        "valid_min": 0.0,
        "valid_max": 1.0,
        "valid_range": [0.0, 1.0],
        "_Unsigned": "true",
    }
    attributes = {**packing, "units": "K", "flag_values": "1b, 2b"}
    data = xr.DataArray(array, dims=("a", "b", "c"), name="t", attrs=attributes)
    found = complete(data, **QUICK)
    for name in STATISTICS:
        result = getattr(found, name)
        assert not set(packing) & set(result.attrs)
        assert {"units": "K", "flag_values": "1b, 2b"}.items() <= result.attrs.items()
        again = written_and_read(result, tmp_path / "out.nc")
        np.testing.assert_array_equal(again.values, result.values)
    assert data.attrs == attributes


def test_encoding_that_loses_digits_is_left_out(array):
    data = xr.DataArray(array, dims=("a", "b", "c"))
    data.encoding = {"least_significant_digit": 1, "filters": ["quantize"], "shuffle": True}
    assert complete(data, **QUICK).mean.encoding == {"shuffle": True}


def test_chunks_of_a_larger_file_are_left_out(array, tmp_path):
    whole = opened(array, tmp_path / "in.nc", chunksizes=(5, 3, 2))
    part = complete(whole[:3], **QUICK).mean
    assert "chunksizes" not in part.encoding
    np.testing.assert_array_equal(written_and_read(part, tmp_path / "out.nc").values, part.values)


def coo(array, fill_value=0.0, explicit_nan=()):
    """The known cells, and some unknown ones, as explicit entries."""
    cells = np.argwhere(~np.isnan(array))
    cells = np.concatenate([cells, np.reshape(explicit_nan, (-1, 3)).astype(int)])
    values = array[tuple(cells.T)]
    return sparse.COO(cells.T, values, shape=array.shape, fill_value=fill_value)


def test_sparse_arrays_fill_what_is_asked(array, completed):
    """A zero fill is no observation: the result is that of the array with NaN."""
    gap = np.argwhere(np.isnan(array))[3]
    data = coo(array, explicit_nan=[gap])
    some = complete(data, **QUICK)
    assert isinstance(some.mean, sparse.COO)
    assert some.n_filled == 1
    assert some.mean.nnz == data.nnz
    np.testing.assert_allclose(
        some.mean.todense()[tuple(gap)], completed.mean[tuple(gap)], rtol=1e-9
    )
    every = complete(data, fill="all", **QUICK)
    assert every.n_filled == completed.n_filled
    for name in STATISTICS:
        np.testing.assert_array_equal(getattr(every, name).todense(), getattr(completed, name))


def test_few_cells_of_a_large_tensor_are_filled():
    """27,000,000,000 cells, of which none but those asked for is ever worked out."""
    corners = np.array([[5, 6, 7], [2999, 0, 7], [0, 0, 0], [2999, 2999, 2999]])
    data = sparse.COO(corners.T, [1.0, 2.0, np.nan, np.nan], shape=(3000, 3000, 3000))
    found = complete(data, **QUICK)
    assert found.n_filled == 2
    assert np.isfinite(found.upper.data).all()


def test_implicit_entries_are_observed_if_asked(array):
    gap = tuple(np.argwhere(np.isnan(array))[0])
    found = complete(coo(array, explicit_nan=[gap]), implicit="observed", **QUICK)
    assert isinstance(found.mean, sparse.COO)
    assert found.model.n_observations_ == array.size - 1
    assert found.mean.fill_value == 0
    assert found.mean.todense()[gap] != 0


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


def test_known_values_below_zero_have_no_error_of_minus_zero(array):
    """Which files would show."""
    below = array - 100.0
    columns = long_columns(below, np.arange(below.size))
    shortest = QUICK | {"warmup": 2, "draws": 2}
    assert not np.signbit(complete(below, **shortest).std).any()
    table = complete(pd.DataFrame(columns), modes=KEYS, value="t", **shortest).table
    assert np.sum(table["std"] == 0) == np.sum(np.isfinite(below))
    assert not np.signbit(table["std"]).any()


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


def test_zeros_and_ones_are_taken_as_binary(array, capsys):
    binary = np.where(np.isnan(array), np.nan, array > np.nanmedian(array))
    found = complete(binary, **QUICK | {"progress": True})
    assert found.model.likelihood == "bernoulli"
    assert "0 or 1: treated as binary" in found.notes[0]
    assert "treated as binary" in " ".join(capsys.readouterr().err.split())
    gaps = np.isnan(binary)
    assert np.all((found.lower >= 0) & (found.upper <= 1), where=gaps)
    assert np.all(found.lower[gaps] < found.upper[gaps])
    as_numbers = complete(binary, likelihood="gaussian", **QUICK)
    assert as_numbers.model.likelihood == "gaussian"
    assert as_numbers.notes == ()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_one_value_alone_is_not_taken_as_binary(array, value):
    """A column of zeros may be anything."""
    with pytest.warns(DataWarning, match="there is nothing to learn"):
        found = complete(np.where(np.isnan(array), np.nan, value), **QUICK)
    assert found.model.likelihood == "gaussian"
    assert not any("binary" in note for note in found.notes)


def test_intervals_have_the_level_asked_for(array, completed):
    found = complete(array, level=0.5, **QUICK)
    assert (completed.level, found.level) == (0.9, 0.5)
    gaps = np.isnan(array)
    lower, upper = found.model.predict_interval(np.argwhere(gaps), 0.5)
    np.testing.assert_allclose(found.lower[gaps], lower, rtol=1e-6)
    np.testing.assert_allclose(found.upper[gaps], upper, rtol=1e-6)
    wide = completed.upper[gaps] - completed.lower[gaps]
    assert np.all(found.upper[gaps] - found.lower[gaps] < 0.7 * wide)


def test_what_does_not_fit_into_memory_is_refused(array, monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 2**10)
    with pytest.raises(ValueError, match=r"shape \(5, 6, 4\) takes 0\.0 GiB, but 0\.0 GiB"):
        complete(array, **QUICK)
    rows = np.flatnonzero(~np.isnan(array.ravel()))
    data = pd.DataFrame(long_columns(array, rows))
    message = r"table of 5 x 6 x 4 = 120 cells takes .* free; list the cells that you need"
    with pytest.raises(ValueError, match=message):
        complete(data, modes=KEYS, value="t", fill="all", **QUICK)


def test_a_huge_table_is_refused_before_any_work():
    data = pd.DataFrame({name: np.arange(30_000) for name in "abc"} | {"t": np.ones(30_000)})
    with pytest.raises(ValueError, match=r"30000 x 30000 x 30000 = 27,000,000,000,000 cells takes"):
        complete(data, modes=["a", "b", "c"], value="t", fill="all", **QUICK)


WIDE = pd.DataFrame({"station": ["a", "b"], "Jan": [1.0, 2.0], "Feb": [2.0, 3.0], "Mar": [0.0, 1]})
LONG = pd.DataFrame({"a": ["x", "x", "y"], "b": [1, 2, 1], "c": [1, 1, 2], "t": [1.0, np.nan, 2.0]})


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (np.ones((2, 3)), {}, "there is nothing to fill: all 6 cells have a value."),
        (np.full((2, 3), np.nan), {}, "data holds no value at all: every cell is missing."),
        (np.array([1.0, np.nan]), {}, "data must have at least 2 modes, got the shape (2,)."),
        (np.array([["a", "b"]]), {}, "data must hold real numbers, got values of type <U1."),
        (
            np.array([[1.0, np.inf], [0.0, np.nan]]),
            {},
            "data must be finite or NaN, got infinity in cell (0, 1).",
        ),
        (np.ones((2, 2)), {"modes": ["a"]}, "modes and value name the columns of a table, but"),
        (LONG, {"fill": "al"}, "fill must be 'all', 'missing' or nothing else, got 'al'. Did you"),
        (LONG, {"level": 90}, "level must lie strictly between 0 and 1, got 90."),
        (LONG, {"modes": ["a", "z"], "value": "t"}, "modes names 'z', which is not a column of"),
        (LONG, {"modes": ["a", "b"], "value": "T"}, "value names 'T', which is not a column of"),
        (LONG, {"modes": "ab", "value": "t"}, "modes must be a list of column names, got the text"),
        (LONG, {"modes": ["a", "a", "b"], "value": "t"}, "modes names a column twice: ['a', 'a',"),
        (LONG, {"modes": ["a", "t"], "value": "t"}, "value 't' is also among the modes"),
        (LONG, {"modes": ["a"], "value": "t"}, "modes must name at least 2 key columns, got ['a']"),
        (LONG, {"value": "a"}, "modes and value are required: name the key columns and the"),
        (
            LONG.assign(b=[1, 2, 3]),
            {},
            "then every row has a different label in 'b', which no key",
        ),
        (LONG.set_index("a"), {"modes": ["a", "b"], "value": "t"}, "'a', which is in the index of"),
        (
            LONG.dropna(),
            {"modes": ["a", "c"], "value": "t"},
            "nothing to fill: no value is missing among the 2 given; fill='all' fills the other 2 ",
        ),
        (LONG.assign(mean=1), {"modes": ["a", "b"], "value": "t"}, "already has a column 'mean'"),
        (
            LONG.assign(b=[1, None, 2]),
            {"modes": ["a", "b"], "value": "t"},
            "no key in row 1: every",
        ),
        (LONG.assign(a=["x", None, "y"]), {}, "column 'a' has no key in row 1: every row must say"),
        (LONG.assign(a=["x", 3, "y"]), {}, "column 'a' holds Python objects of type int and str"),
        (
            LONG.assign(t="?"),
            {"value": "t"},
            "value column 't' holds the text '?' in row 0, but numbers are required.",
        ),
        (LONG.assign(t=[1, np.inf, 2]), {}, "value column 't' must be finite, got infinity in row"),
        (
            LONG.assign(t=np.nan),
            {},
            "value column 't' holds no value in any of its 3 rows.",
        ),
        (LONG.iloc[:0], {}, "data is empty: found a table with 0 rows."),
        (
            WIDE,
            {},
            "the table looks wide: it has 3 columns of numbers such as 'Jan' and 'Feb'; make it "
            "long first, with table.melt(id_vars=['station'], var_name='column'",
        ),
        (pl.from_pandas(WIDE), {}, "with table.unpivot(index=['station'], variable_name='column'"),
        (LONG["t"], {}, "data is a pandas.Series; give a table, for example data.reset_index()."),
        (xr.Dataset(), {}, "data is an xarray.Dataset; give one of its variables"),
        (sparse.COO(np.eye(3)).to_scipy_sparse(), {}, "give sparse.COO.from_scipy_sparse(data)."),
        (sparse.COO(np.eye(3)).asformat("gcxs"), {}, "convert it with .asformat('coo')."),
        (sparse.COO(np.eye(3)), {}, "among the 3 given; fill='all' fills the other 6 cells."),
        (sparse.COO(np.eye(3)), {"implicit": "zero"}, "implicit must be 'missing', 'observed' or"),
    ],
)
def test_refusals_are_one_sentence(data, arguments, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        complete(data, **arguments, **QUICK)
