"""The estimate of a cell, its mean or its median: in Python, at the command line, in files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from bayesring import TensorRing, TensorRingClassifier, complete, load
from bayesring.command import cli

FEW = {"rank": 1, "warmup": 8, "draws": 20, "chains": 1, "random_state": 0, "progress": False}
QUICK = ["--rank", "1", "--warmup", "8", "--draws", "20", "--chains", "1", "--seed", "0"]
KEYS = ["--modes", "a,b,c", "--value", "n", "--likelihood", "poisson"]


@pytest.fixture(scope="module")
def array():
    """Counts, whose mean and median differ, with gaps."""
    rng = np.random.default_rng(4)
    found = rng.poisson(1.5, (5, 4, 3)).astype(float)
    found[rng.random(found.shape) < 0.3] = np.nan
    return found


@pytest.fixture
def table(array, tmp_path):
    keys = np.indices(array.shape).reshape(3, -1)
    found = pd.DataFrame(dict(zip("abc", keys, strict=True))).assign(n=array.ravel())
    found.to_csv(tmp_path / "in.csv", index=False)
    return found


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(each) for each in arguments])


def test_an_array_is_filled_with_medians(array):
    found = complete(array, likelihood="poisson", point="median", **FEW)
    gaps = np.isnan(array)
    expected = found.model.predict(np.argwhere(gaps), point="median")
    np.testing.assert_array_equal(found.median[gaps], expected)
    np.testing.assert_array_equal(found.median[~gaps], array[~gaps])
    assert (found.median[gaps] != found.model.predict(np.argwhere(gaps))).any()
    assert found.mean is None
    assert list(found.statistics) == ["median", "std", "lower", "upper"]
    means = complete(array, likelihood="poisson", **FEW)
    assert means.median is None
    np.testing.assert_array_equal(means.std, found.std)


def test_the_command_fills_with_medians(table, tmp_path):
    out, model = tmp_path / "out.csv", tmp_path / "m.ring"
    given = ["complete", tmp_path / "in.csv", *KEYS, "-o", out, "--model", model, *QUICK]
    for _ in range(2):  # a result of the first run is replaced by the second
        result = run(*given, "--point", "median")
        assert result.exit_code == 0, result.exception
    found = pd.read_csv(out)
    assert list(found) == ["a", "b", "c", "n", "median", "std", "lower", "upper"]
    gaps = table["n"].isna()
    np.testing.assert_array_equal(found["median"][~gaps], table["n"][~gaps])
    expected = load(model).predict_table(table[gaps], point="median")
    np.testing.assert_allclose(found["median"][gaps], expected["median"])
    np.testing.assert_allclose(found["upper"][gaps], expected["upper"])
    asked = tmp_path / "asked.csv"
    assert (
        run("predict", model, tmp_path / "in.csv", "-o", asked, "--point", "median").exit_code == 0
    )
    again = pd.read_csv(asked)
    assert list(again) == ["a", "b", "c", "median", "std", "lower", "upper"]
    np.testing.assert_allclose(again["median"][gaps], expected["median"])


def test_arrays_in_files(array, tmp_path):
    np.save(tmp_path / "in.npy", array)
    given = ["--likelihood", "poisson", *QUICK, "--point", "median", "--model", tmp_path / "m.ring"]
    result = run("complete", tmp_path / "in.npy", "-o", tmp_path / "out.npy", *given, "--json")
    assert "holds the median only" in json.loads(result.stdout)["notes"][-1]
    ring, gaps = load(tmp_path / "m.ring"), np.argwhere(np.isnan(array))
    expected = ring.predict(gaps, point="median")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")[np.isnan(array)], expected)
    np.save(tmp_path / "ask.npy", gaps)
    for _ in range(2):
        given = [tmp_path / "m.ring", tmp_path / "ask.npy", "-o", tmp_path / "out.npz"]
        assert run("predict", *given, "--point", "median").exit_code == 0
    with np.load(tmp_path / "out.npz") as found:
        assert sorted(found) == ["lower", "median", "std", "upper"]
        np.testing.assert_array_equal(found["median"], expected)


@pytest.mark.parametrize("kind", ["nc", "zarr"])
def test_labelled_arrays_in_files(array, tmp_path, kind):
    data = xr.DataArray(array, dims=("a", "b", "c"), name="n", attrs={"long_name": "birds"})
    source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    if kind == "nc":
        data.to_netcdf(source)
    else:
        data.to_dataset().to_zarr(source, consolidated=False)
    for _ in range(2):
        given = ["complete", source, "-o", target, "--likelihood", "poisson", *QUICK]
        result = run(*given, "--point", "median")
        assert result.exit_code == 0, result.exception
    opened = xr.open_dataset(target) if kind == "nc" else xr.open_zarr(target, consolidated=False)
    with opened as found:
        assert sorted(found) == ["lower", "median", "std", "upper"]
        assert found["median"].attrs["long_name"] == "birds, gaps filled by medians"
        assert found["median"].attrs["ancillary_variables"] == "std lower upper"


@pytest.mark.parametrize("command", ["complete", "predict"])
def test_other_estimates_are_refused_before_any_work(table, tmp_path, command):
    source = tmp_path / "in.csv"
    given = {"complete": [source, *KEYS], "predict": [tmp_path / "absent.ring", source]}[command]
    result = run(command, *given, "-o", tmp_path / "out.csv", "--point", "mode")
    assert "point must be 'mean' or 'median', got 'mode'" in str(result.exception)
    with pytest.raises(ValueError, match="point must be 'mean' or 'median', got 'mode'"):
        complete(table, point="mode")


def test_the_column_of_the_estimate_must_be_free(table):
    named = {"modes": ["a", "b", "c"], "value": "n", "likelihood": "poisson", **FEW}
    with pytest.raises(ValueError, match="already has a column 'median'"):
        complete(table.assign(median=0.0), point="median", **named)
    found = complete(table.assign(mean=0.0), point="median", **named).table
    assert (found["mean"] == 0).all()


@pytest.mark.parametrize("kind", [TensorRing, TensorRingClassifier])
def test_binary_values_have_the_same_intervals_in_arrays_as_in_tables(array, tmp_path, kind):
    """Of the probability of a one; an interval from 0 to 1 would say nothing."""
    X = np.argwhere(~np.isnan(array))
    y = (array[tuple(X.T)] > 1).astype(float)
    binary = {"likelihood": "bernoulli"} if kind is TensorRing else {}
    ring = kind(**FEW, **binary).fit(X, y, shape=array.shape)
    ring.save(tmp_path / "m.ring")
    np.save(tmp_path / "ask.npy", X)
    out = tmp_path / "out.npz"
    result = run("predict", tmp_path / "m.ring", tmp_path / "ask.npy", "-o", out)
    assert result.exit_code == 0, result.exception
    lower, upper = ring.predict_interval(X, noise=False)
    with np.load(out) as found:
        np.testing.assert_array_equal(found["lower"], lower)
        np.testing.assert_array_equal(found["upper"], upper)
        assert ((found["lower"] > 0) & (found["upper"] < 1)).all()
