"""Labelled arrays: what results are called, what files keep, which gaps stay gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sparse
import xarray as xr
from typer.testing import CliRunner

from bayesring import TensorRing, complete, load
from bayesring.command import cli
from bayesring.data.containers import open_container
from bayesring.data.labelled import Statistic, described
from bayesring.data.masks import tell_empty_fibres

QUICK = {"rank": 1, "warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}
OPTIONS = ["--rank", "1", "--warmup", "2", "--draws", "2", "--chains", "1", "--quiet"]
TIMES = pd.date_range("2020-01-01", periods=6, unit="ns")
ATTRIBUTES = {"units": "K", "standard_name": "air_temperature", "long_name": "2 m temperature"}


@pytest.fixture(scope="module")
def array():
    """Temperatures with scattered gaps, and two places that never have a value."""
    rng = np.random.default_rng(5)
    values = rng.normal(280, 5, (6, 4, 5))
    values[rng.random(values.shape) < 0.1] = np.nan
    values[:, 1, 2] = values[:, 3, 0] = np.nan
    return xr.DataArray(
        values,
        {"time": TIMES, "lat": [50.0, 51.0, 52.0, 53.0]},
        ("time", "lat", "lon"),
        "t2m",
        ATTRIBUTES,
    )


@pytest.fixture(scope="module")
def completed(array):
    return complete(array, likelihood="gaussian", **QUICK)


def test_results_are_called_what_they_are(completed):
    assert completed.mean.attrs == ATTRIBUTES | {"long_name": "2 m temperature, gaps filled"}
    assert completed.std.attrs == {
        "units": "K",
        "units_metadata": "temperature: difference",
        "standard_name": "air_temperature standard_error",
        "long_name": "standard deviation of 2 m temperature",
    }
    for name in ("lower", "upper"):
        found = getattr(completed, name).attrs
        assert found["standard_name"] == "air_temperature"
        assert found["units"] == "K"
        assert found["long_name"] == f"{name} end of the 90 % interval of 2 m temperature"


@pytest.mark.parametrize("name", ["mean", "std", "lower", "upper"])
def test_probabilities_have_no_unit_and_no_standard_name(name):
    found = described({"units": "K", "standard_name": "x"}, Statistic(name, True, 0.5, True), "v")
    assert found["units"] == "1"
    assert "standard_name" not in found
    assert "the probability that x is 1" in found["long_name"]
    plain = described({"units": "m", "actual_range": [0, 1]}, Statistic(name, True, 0.975), None)
    assert plain["units"] == "m"
    assert set(plain) == {"units", "long_name"}
    assert name not in ("lower", "upper") or "97.5 % interval of value" in plain["long_name"]


def test_whole_fibres_that_are_filled_are_told(completed):
    (note,) = completed.notes
    assert note.startswith("2 of 20 fibres along 'time' have no value at all; their 12 cells")
    assert "mask='time' leaves them missing" in note
    assert not np.isnan(completed.mean).any()


def test_gaps_that_chance_left_are_not_told():
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(40):
        shape = tuple(rng.integers(2, 9, 3))
        values = np.where(rng.random(shape) < rng.uniform(0.2, 0.9), np.nan, 1.0)
        values.flat[:2] = 1.0, np.nan
        told += len(tell_empty_fibres(open_container(values)))
    assert told <= 4


def places(array):
    return np.isnan(array).all("time")


@pytest.mark.parametrize("kind", ["name", "names", "DataArray", "turned", "array", "number"])
def test_masked_gaps_stay(array, completed, kind):
    never = places(array)
    mask = {
        "name": "time",
        "names": ["time"],
        "DataArray": never,
        "turned": never.transpose("lon", "lat"),
        "array": np.broadcast_to(never.values, array.shape),
        "number": 0,
    }[kind]
    found = complete(array, mask=mask, likelihood="gaussian", **QUICK)
    for name in ("mean", "std", "lower", "upper"):
        expected = getattr(completed, name).where(~never)
        np.testing.assert_array_equal(getattr(found, name), expected.transpose(*array.dims))
    assert found.n_filled == completed.n_filled - 12
    assert found.notes == (f"12 of {completed.n_filled} gaps are masked and stay as they are.",)


def test_masks_of_other_containers(array):
    values, never = array.values, places(array).values
    found = complete(np.ma.masked_invalid(values), mask=0, likelihood="gaussian", **QUICK)
    assert found.mean.mask.sum() == 12
    np.testing.assert_array_equal(found.mean.mask, np.broadcast_to(never, values.shape))
    coo = sparse.COO(np.argwhere(values == values).T, values[values == values], values.shape)
    found = complete(coo, fill="all", mask=0, likelihood="gaussian", **QUICK)
    assert found.mean.nnz == values.size - 12
    explicit = sparse.COO(np.indices(values.shape).reshape(3, -1), values.ravel(), values.shape)
    found = complete(explicit, mask=0, likelihood="gaussian", **QUICK)
    assert np.isnan(found.std.data).sum() == 12
    table = array.to_dataframe().reset_index()
    named = {"modes": ["time", "lat", "lon"], "value": "t2m", "likelihood": "gaussian"}
    found = complete(table, mask="time", **named, **QUICK)
    assert found.table["mean"].isna().sum() == found.table["std"].isna().sum() == 12
    short = table.dropna()
    found = complete(short, fill="all", mask="time", **named, **QUICK)
    assert len(found.table) == values.size - 12


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((4, 5)), "mask must be an array of booleans, True where a gap stays a gap"),
        (np.ones((4, 4), bool), r"mask has the shape \(4, 4\), but data has \(6, 4, 5\)"),
        (np.ones((6, 4, 5), bool), "mask leaves all .* gaps as they are"),
        ("height", "mask names the mode 'height', but the modes are"),
        (["time", "lat", "lon"], "mask names all modes"),
        (True, "mask must be an array of booleans"),
        (xr.DataArray([True], dims="z"), "mask has a dimension 'z', but those of data are"),
        (
            xr.DataArray([True] * 4, {"lat": [1.0, 2, 3, 4]}),
            "mask and data have different coordinates along 'lat'",
        ),
        (xr.DataArray([True] * 3, dims="lon"), "mask has the shape"),
    ],
)
def test_bad_masks(array, mask, message):
    with pytest.raises((ValueError, TypeError), match=message):
        complete(array, mask=mask, likelihood="gaussian", **QUICK)


def test_a_table_has_no_mask_of_booleans(array):
    table = array.to_dataframe().reset_index()
    with pytest.raises(ValueError, match="mask of a table must name a mode"):
        complete(table, modes=["time", "lat", "lon"], value="t2m", mask=np.ones(120, bool), **QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fill": "all"}, "fill='all' is for tables and sparse arrays"),
        ({"implicit": "observed"}, "implicit='observed' is for sparse arrays, but data is of type"),
        ({"shape": (9, 9, 9)}, "shape is for coordinates; data given to complete have their own"),
        ({"epochs": 3}, "epochs=3 is for inference='online-em', but inference is 'gibbs'"),
    ],
)
def test_no_argument_is_ignored(array, arguments, message):
    with pytest.raises(ValueError, match=message):
        complete(array, likelihood="gaussian", **arguments, **QUICK)


def test_a_ring_fitted_to_a_labelled_array(array, tmp_path):
    ring = TensorRing(order=["time"], **QUICK).fit(array)
    mean, std = ring.predict_tensor(return_std=True)
    for found in (mean, std):
        assert found.dims == array.dims
        xr.testing.assert_equal(found["time"], array["time"])
        xr.testing.assert_equal(found["lat"], array["lat"])
    assert mean.name == "t2m"
    assert "deviation" in std.attrs["long_name"]
    cells = xr.DataArray([[0, 1, 2], [5, 3, 4]], dims=("cell", "mode"))
    found = ring.predict(cells)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, ring.predict(cells.values))
    np.testing.assert_allclose(found, [mean[0, 1, 2], mean[5, 3, 4]], rtol=1e-9)
    ring.save(tmp_path / "m.ring")
    xr.testing.assert_equal(load(tmp_path / "m.ring").predict_tensor(), mean)
    ahead = ring.forecast(2)
    assert ahead.mean.dims == array.dims
    np.testing.assert_array_equal(
        ahead.mean["time"].values, TIMES[-1] + pd.to_timedelta([1, 2], "D")
    )
    some = ring.forecast(2, cells=[[0, 1], [3, 2]])
    np.testing.assert_allclose(some.mean[1], ahead.mean.values[:, 3, 2], rtol=1e-9)
    np.testing.assert_allclose(some.upper[0], ahead.upper.values[:, 0, 1], rtol=1e-9)
    assert complete(array, likelihood="gaussian", **QUICK).model.predict_tensor().dims == array.dims


@pytest.mark.parametrize(
    "arguments", [{"modes": ["a", "b", "c"]}, {"shape": (6, 4, 5)}, {"sample_weight": np.ones(120)}]
)
def test_a_whole_tensor_has_names_and_shape_of_its_own(array, arguments):
    with pytest.raises(ValueError, match="X without y is a whole tensor"):
        TensorRing(**QUICK).fit(array, **arguments)
    with pytest.raises(ValueError, match="X holds no value at all"):
        TensorRing(**QUICK).fit(array * np.nan)


def written(array, path):
    """A file as climate data come: bounds, a grid mapping, compression, global attributes."""
    data = array.to_dataset()
    data.attrs = {"title": "reanalysis", "Conventions": "CF-1.11", "history": "made up"}
    data["crs"] = xr.DataArray(0, attrs={"grid_mapping_name": "latitude_longitude"})
    data["t2m"].attrs["grid_mapping"] = "crs"
    data["time_bnds"] = (("time", "nv"), np.stack([TIMES, TIMES + TIMES.freq], axis=1))
    data["time"].attrs["bounds"] = "time_bnds"
    data["time"].encoding = {"units": "hours since 1900-01-01", "dtype": "int32"}
    if path.suffix == ".nc":
        encoding = {"zlib": True, "complevel": 5, "shuffle": True, "chunksizes": (3, 4, 5)}
        data.to_netcdf(path, encoding={"t2m": encoding})
    else:
        from numcodecs import Zstd

        encoding = {"compressors": [Zstd(level=7)], "chunks": (3, 4, 5)}
        data.to_zarr(path, zarr_format=2, encoding={"t2m": encoding}, consolidated=True)
    return path


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_files_keep_what_describes_them(array, tmp_path, ending):
    source, target = written(array, tmp_path / f"in{ending}"), tmp_path / f"out{ending}"
    arguments = ["complete", source, "-o", target, "--mask", "time", *OPTIONS]
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    with xr.open_dataset(target, decode_coords="all") as found:
        assert set(found.data_vars) == {"mean", "std", "lower", "upper"}
        assert {"time_bnds", "crs"} <= set(found.coords)
        assert found.attrs["title"] == "reanalysis"
        assert found.attrs["Conventions"] == "CF-1.11"
        assert found.attrs["history"].startswith("bayesring complete: gaps filled, with 90% inter")
        assert found.attrs["history"].endswith("\nmade up")
        assert found["mean"].attrs["ancillary_variables"] == "std lower upper"
        assert found["std"].attrs["standard_name"] == "air_temperature standard_error"
        assert found["time"].encoding["units"] == "hours since 1900-01-01"
        assert np.isnan(found["mean"]).sum() == 12
        for name in found.data_vars:
            encoding = found[name].encoding
            if ending == ".nc":
                assert encoding["zlib"]
                assert encoding["complevel"] == 5
                assert encoding["chunksizes"] == (3, 4, 5)
            else:
                assert encoding["chunks"] == (3, 4, 5)
                assert "level=7" in repr(encoding["compressors"])
    first = sorted((path.name, path.read_bytes()) for path in files_of(target))
    again = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert again.exit_code == 0, again.output  # ours, so it may be replaced
    assert sorted((path.name, path.read_bytes()) for path in files_of(target)) == first


def files_of(path):
    return [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]


def test_a_store_of_the_third_version(array, tmp_path):
    array.to_dataset().to_zarr(tmp_path / "in.zarr", zarr_format=3, consolidated=False)
    arguments = ["complete", tmp_path / "in.zarr", "-o", tmp_path / "out.zarr", *OPTIONS]
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    with xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as found:
        assert not np.isnan(found["mean"]).any()


DAY = np.datetime64("2000-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")
PACKED = {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -9999}
UNITS = "days since 1990-01-01"
SOME_DAYS = np.where(np.arange(20).reshape(5, 4) == 6, np.datetime64("NaT"), DAY)


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize(
    ("dims", "values", "encoding"),
    [
        ("lat", [47, 47.25, 47.5, 47.75, 48], PACKED),
        ("lat", [47, 47.25, 47.5, 47.75, 48], PACKED | {"add_offset": 40.0}),
        (("lat", "time"), np.where(np.eye(5, 4) == 1, np.nan, 100.5), PACKED),
        (("lat", "time"), np.where(np.eye(5, 4) == 1, np.nan, 3), {"dtype": "i4", "_FillValue": 9}),
        ("lat", [True, False, True, True, False], {}),
        ("time", DAY, {"units": UNITS, "dtype": "i4", "scale_factor": 0.25, "_FillValue": -9}),
        ("time", DAY + 1, {}),
        ("time", DAY, {"units": UNITS, "dtype": "float64"}),
        (("lat", "time"), SOME_DAYS, {"units": UNITS, "dtype": "f8", "_FillValue": -1.0}),
        (
            ("lat", "time"),
            SOME_DAYS,
            {"units": "hours since 1990-01-01", "dtype": "i4", "_FillValue": -9},
        ),
        ("time", DAY - DAY[0], {"units": "hours", "dtype": "int16"}),
    ],
)
def test_coordinates_of_a_result_are_those_of_its_source(tmp_path, ending, dims, values, encoding):
    """Seen to fail: latitudes of 47.25 became 47, and missing coordinates 0."""
    numbers = np.random.default_rng(0).normal(size=(5, 4))
    numbers[1, 1] = np.nan
    name = dims if isinstance(dims, str) else "other"
    data = xr.Dataset({"v": (("lat", "time"), numbers)}, {name: (dims, values)})
    data[name].encoding = encoding
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    if ending == ".nc":
        data.to_netcdf(source, engine="h5netcdf")
    else:
        data.to_zarr(source, zarr_format=2, consolidated=True)
    arguments = ["complete", source, "-o", target, *OPTIONS]
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    read, written = (xr.load_dataset(each, decode_timedelta=True) for each in (source, target))
    xr.testing.assert_identical(written[name].drop_attrs(), read[name].drop_attrs())
    assert written[name].dtype == read[name].dtype


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"_FillValue": np.int32(-1), "missing_value": np.int32(-2)},
        {"missing_value": np.array([-1, -2], dtype=np.int32)},
        {"_Unsigned": "true"},
    ],
)
def test_times_with_odd_attributes_are_written_anew(tmp_path, ending, attributes):
    """Seen to fail: after the fit, xarray refused to write them, or they were other days."""
    numbers = np.random.default_rng(0).normal(size=(5, 4, 3))
    numbers[0, 0, 0] = np.nan
    days = np.arange(60_000, 60_005).astype("u2" if "_Unsigned" in attributes else "i4")
    stored = days.view("i2") if "_Unsigned" in attributes else days
    times = ("time", stored, {"units": "days since 1850-01-01"} | attributes)
    rest = {"y": np.arange(4), "x": np.arange(3)}
    data = xr.Dataset({"v": (("time", "y", "x"), numbers)}, {"time": times} | rest)
    source, target = tmp_path / "in.nc", tmp_path / f"out{ending}"
    data.to_netcdf(source, engine="h5netcdf")
    arguments = ["complete", source, "--value", "v", "-o", target, *OPTIONS]
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    expected = np.datetime64("1850-01-01") + days.astype("m8[D]")
    np.testing.assert_array_equal(xr.load_dataset(target)["time"].values, expected)


@pytest.mark.parametrize(
    ("first", "unit"), [("3000-01-01", "us"), ("1500-06-01", "s"), ("2020-01-01", "ns")]
)
def test_times_of_results_are_those_of_the_data(tmp_path, first, unit):
    """Seen to fail: nanoseconds reach to 2262, and the year 3000 came back as 1830."""
    times = (np.datetime64(first, "D") + np.arange(8)).astype(f"M8[{unit}]")
    values = np.random.default_rng(0).normal(size=(6, 4, 5))
    array = xr.DataArray(values, {"time": times[:6]}, ("time", "lat", "lon"), "v")
    ring = TensorRing(order=["time"], **QUICK).fit(array)
    ring.save(tmp_path / "m.ring")
    for found in (ring, load(tmp_path / "m.ring")):
        np.testing.assert_array_equal(found.predict_tensor()["time"].values, times[:6])
        np.testing.assert_array_equal(found.forecast(2).mean["time"].values, times[6:])
    dtype = ring.predict_tensor()["time"].dtype
    assert dtype == ("M8[ns]" if unit == "ns" else "M8[s]")
