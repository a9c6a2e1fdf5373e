"""`complete` on arrays of xarray: coordinates, attributes, and encodings of files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesring import complete
from tests.gappy import (
    MONTHS,
    NUMBERS,
    QUICK,
    STATIONS,
    STATISTICS,
    gappy_array,
)


@pytest.fixture(scope="module")
def array():
    return gappy_array()


@pytest.fixture(scope="module")
def completed(array):
    return complete(array, **QUICK)


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
