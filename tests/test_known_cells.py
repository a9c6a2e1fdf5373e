"""Weights, exposures and errors of cells: the same in `fit`, in `complete` and in a shell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesring import TensorRing, complete, load
from tests.shell import call_main

QUICK = {"rank": 1, "warmup": 20, "draws": 20, "chains": 1, "random_state": 0, "progress": False}
SHELL = ["--rank", "1", "--warmup", "20", "--draws", "20", "--chains", "1", "--quiet"]
KEYS = ["site", "year", "species"]


@pytest.fixture
def counts():
    """Counts of 1 to 4 hours, a fifth of them missing; errors and weights known where they are."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(np.indices((6, 5, 4)).reshape(3, -1).T, columns=KEYS)
    table["site"] = "s" + table.site.astype(str)
    table["hours"] = rng.choice([1.0, 4.0], len(table))
    table["sd"] = rng.choice([0.1, 2.0], len(table))
    table["times"] = rng.choice([0.0, 1.0, 3.0], len(table))
    table["n"] = rng.poisson(20 * table.hours).astype(float)
    gone = rng.random(len(table)) < 0.2
    table.loc[gone, ["n", "sd", "times"]] = np.nan
    return table


def test_a_gap_is_filled_with_the_count_of_its_own_exposure(counts):
    found = complete(counts[[*KEYS, "hours", "n"]], exposure="hours", **QUICK)
    gaps = counts.n.isna()
    ring = TensorRing(likelihood="negative-binomial", **QUICK)
    ring.fit(counts, modes=KEYS, value="n", exposure="hours")
    ours = ring.predict(counts[gaps], exposure="hours")
    np.testing.assert_array_equal(found.table["mean"][gaps], ours)
    long = counts.hours[gaps] == 4.0
    assert ours[long].min() > 2 * ours[~long].max()
    assert "Exposures are given: the values are taken as counts." in found.notes


def test_rows_of_a_cell_known_for_another_exposure_are_predicted(counts):
    known = counts.n.first_valid_index()
    more = pd.concat([counts, counts.loc[[known]].assign(n=np.nan, hours=40.0)])
    named = {"modes": KEYS, "value": "n"}
    found = complete(more, exposure="hours", **named, **QUICK)
    assert found.table["mean"].iloc[-1] > 5 * counts.n[known]
    assert complete(more, **named, **QUICK).table["mean"].iloc[-1] == counts.n[known]


def test_weights_and_errors_are_those_of_fit(counts):
    gaps = counts.n.isna()
    named = {"modes": KEYS, "value": "n"}
    for extras in ({"value_error": "sd"}, {"sample_weight": "times"}):
        settings = QUICK | {"likelihood": "gaussian"}
        found = complete(counts, **named, **extras, **settings)
        ring = TensorRing(**settings).fit(counts, **named, **extras)
        arrays = {name: counts[column].to_numpy() for name, column in extras.items()}
        again = complete(counts, **named, **arrays, **settings)
        plain = complete(counts, **named, **settings)
        mean = found.table["mean"][gaps]
        np.testing.assert_array_equal(mean, ring.predict(counts[gaps]))
        np.testing.assert_array_equal(mean, again.table["mean"][gaps])
        assert np.all(mean != plain.table["mean"][gaps])
        np.testing.assert_array_equal(found.mean.n[~gaps], counts.n[~gaps])


def test_a_missing_error_of_a_known_value_is_refused(counts):
    row = counts.n.first_valid_index()
    counts.loc[row, "sd"] = np.nan
    for work in (complete, lambda data, **named: TensorRing(**QUICK).fit(data, **named)):
        with pytest.raises(ValueError, match=f"value_error column 'sd' .* NaN in row {row}"):
            work(counts, modes=KEYS, value="n", value_error="sd")


def test_arrays_have_arrays_of_their_shape(counts):
    counts["sd"] = counts.sd.fillna(1.0)
    cube, sd = (counts[name].to_numpy().reshape(6, 5, 4) for name in ("n", "sd"))
    settings = QUICK | {"likelihood": "gaussian", "order": None}
    found = complete(cube, value_error=sd, **settings)
    table = complete(counts, modes=KEYS, value="n", value_error="sd", **settings)
    np.testing.assert_array_equal(found.mean.ravel(), table.table["mean"])
    by_year = sd[:1, :, :1]
    labelled = xr.DataArray(cube, dims=KEYS)
    spread = complete(
        labelled, value_error=xr.DataArray(by_year[0, :, 0], dims=["year"]), **settings
    )
    plain = complete(cube, value_error=np.broadcast_to(by_year, cube.shape), **settings)
    np.testing.assert_array_equal(spread.mean.values, plain.mean)
    longer = np.where(np.indices(cube.shape)[0] < 3, 1.0, 10.0)
    exposed = complete(np.round(cube), exposure=longer, **QUICK).mean[np.isnan(cube)]
    assert exposed[longer[np.isnan(cube)] == 10].mean() > 0
    for wrong, message in (
        ({"value_error": sd[:2, :2]}, r"value_error has the shape \(2, 2, 4\), but data has"),
        ({"value_error": "sd"}, "value_error names a column of a table, but data is an array"),
        ({"value_error": -sd}, "value_error must be zero or more"),
        ({"exposure": 0.0}, "exposure must be positive"),
        ({"value_upper": sd}, "value_upper is for values that are known in part"),
        ({"value_error": xr.DataArray([1.0], dims=["depth"])}, "has a dimension 'depth'"),
    ):
        with pytest.raises(ValueError, match=message):
            complete(cube, **wrong, **settings)


def test_positions_of_the_axes_of_an_array():
    depth = np.array([0, 1, 2, 50, 51, 52.0])
    cube = np.sin(depth / 20)[:, None, None] + np.zeros((6, 5, 4))
    cube[3, :, 1:] = np.nan
    settings = QUICK | {"order": [0], "likelihood": "gaussian"}
    found = complete(cube, positions={0: depth}, **settings)
    assert found.model.prior_.modes[0].positions == tuple(depth)
    with pytest.raises(ValueError, match="positions of the mode 'mode 0' must be 6 numbers"):
        complete(cube, positions={0: [1.0]}, **settings)


def test_what_tables_cannot_say(counts):
    named = {"modes": KEYS, "value": "n"}
    for wrong, message in (
        ({"exposure": "area"}, "exposure names 'area', which is not a column of the table"),
        ({"exposure": "hours", "fill": "all"}, "cells without a row, whose exposure is not known"),
        ({"sample_weight": "n"}, "sample_weight names 'n', the column that holds the values"),
        ({"exposure": "year"}, "exposure names 'year', the column that holds keys"),
        ({"value_lower": "sd"}, "value_lower is for values that are known in part"),
        ({"exposure": "hours", "likelihood": "gaussian"}, "the likelihood Gaussian cannot use"),
        ({"exposure": "sd"}, "exposure must be known in every row, those to fill"),
    ):
        with pytest.raises(ValueError, match=message):
            complete(counts, **named, **wrong, **QUICK)


def test_the_same_in_a_shell(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts.to_csv("in.csv", index=False, sep=";", decimal=",")
    keys = ["--modes", ",".join(KEYS), "--value", "n", "--decimal", ","]
    hours = ["--exposure", "hours"]
    assert call_main(monkeypatch, "complete", "in.csv", "-o", "out.csv", *keys, *hours, *SHELL) == 0
    wanted = complete(counts, modes=KEYS, value="n", exposure="hours", **QUICK)
    np.testing.assert_allclose(pd.read_csv("out.csv")["mean"], wanted.table["mean"])
    assert call_main(monkeypatch, "fit", "in.csv", "-o", "m.ring", *keys, *hours, *SHELL) == 0
    np.testing.assert_array_equal(
        load("m.ring").predict(counts[:5]), wanted.model.predict(counts[:5])
    )
    said = ["--decimal", ",", "-o", "p.csv", "--quiet"]
    assert call_main(monkeypatch, "predict", "m.ring", "in.csv", *said, *hours) == 0
    ours = wanted.model.predict(counts, exposure="hours")
    np.testing.assert_allclose(pd.read_csv("p.csv")["mean"], ours)


def test_all_that_is_known_of_values_in_a_shell(counts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts["limit"] = np.where(counts.n.isna(), 30.0, np.nan)
    counts.to_csv("in.csv", index=False)
    keys = ["--modes", ",".join(KEYS), "--value", "n", "--likelihood", "gaussian", *SHELL]
    named = {"modes": KEYS, "value": "n"}
    for options, extras in (
        (["--weight", "times"], {"sample_weight": "times"}),
        (["--value-error", "sd"], {"value_error": "sd"}),
        (["--value-upper", "limit"], {"value_upper": "limit"}),
        (["--value-lower", "limit"], {"value_lower": "limit"}),
    ):
        assert call_main(monkeypatch, "fit", "in.csv", "-o", "m.ring", *keys, *options) == 0
        ring = TensorRing(likelihood="gaussian", **QUICK).fit(counts, **named, **extras)
        np.testing.assert_array_equal(load("m.ring").predict(counts), ring.predict(counts))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["fit", "in.csv", "--exposure", "area"], "--exposure names 'area', which is not"),
        (
            ["fit", "in.csv", "--exposure", "site"],
            "column 'site' holds 's0' in line 2, but a number",
        ),
        (["fit", "in.csv", "--weight", "area"], "--weight names 'area', which is not a column"),
        (["fit", "in.npy", "--exposure", "area"], "--exposure names a column, but in.npy holds"),
        (
            ["fit", "in.parquet", "--weight", "hours", "--inference", "online-em"],
            "--weight is for data in memory, but online EM reads in.parquet as a stream",
        ),
        (
            ["fit", "in.parquet", "--weight", "hours", "--local-cluster", "1"],
            "--weight is for data in memory, but a cluster reads files",
        ),
    ],
)
def test_mistakes_in_a_shell(counts, command, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    counts.to_csv("in.csv", index=False)
    counts.to_parquet("in.parquet")
    np.save("in.npy", counts.n.to_numpy().reshape(6, 5, 4))
    named = [] if "in.npy" in command else ["--modes", ",".join(KEYS), "--value", "n"]
    assert call_main(monkeypatch, *command, *named, "-o", "m.ring", *SHELL) == 2
    assert message in " ".join(capsys.readouterr().err.split())
