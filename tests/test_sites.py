"""Modes whose labels lie on a map, from a table or array to predictions at new places."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from bayesring import TensorRing, load
from bayesring.command.cli import app
from bayesring.data.labels import Labels
from bayesring.data.sites import EARTH, Sites, pair_in
from bayesring.data.traps import summarise_data
from bayesring.posterior.sitefiles import with_sites
from bayesring.priors import Circular, Featured, NormalWishart, Smooth, Spatial
from tests.checkpoint.fits import fingerprint

KEYS = ["station", "month", "kind"]
QUICK = {"warmup": 2, "draws": 2, "chains": 1}


def map_table(rng, n=40, known=0.3):
    """Smooth fields over stations in the Alps, mixed by month and kind, and the truth of all."""
    lat, lon = rng.uniform(44, 48, n), rng.uniform(6, 16, n)
    fields = np.stack([np.sin(lat) + lon / 5, np.cos(lon / 2) + lat / 4 - 11], axis=1)
    fields -= fields.mean(axis=0)
    months, kinds = rng.standard_normal((6, 2)), rng.standard_normal((4, 2))
    truth = np.einsum("sr,mr,kr->smk", fields, months, kinds)
    cells = np.argwhere(np.ones(truth.shape))
    table = pd.DataFrame(cells, columns=KEYS)
    table["lat"], table["lon"] = lat[table.station], lon[table.station]
    table["station"] = "s" + table.station.astype(str).str.zfill(3)
    table["month"] = "m" + table.month.astype(str)
    table["kind"] = "k" + table.kind.astype(str)
    table["truth"] = truth.ravel()
    table["y"] = table.truth + 0.1 * rng.standard_normal(len(table))
    return table, rng.random(len(table)) < known


def fit(table, features=None, positions=None, **settings):
    settings = {"warmup": 60, "draws": 40, "chains": 2, "random_state": 0} | settings
    ring = TensorRing(2, progress=False, **settings)
    more = {"features": features, "positions": positions}
    return ring.fit(table.drop(columns="truth"), modes=KEYS, value="y", **more)


def error(ring, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(np.sqrt(np.mean((ring.predict(table) - table.truth) ** 2)))


def test_new_stations_are_predicted_from_their_neighbours(rng, tmp_path):
    """Found by the names of two columns; also when saved, and with values of their own."""
    table, known = map_table(rng)
    new = table.station >= "s032"
    ring = fit(table[known & ~new])
    assert isinstance(ring.prior_.modes[0], Spatial)
    plain = fit(table[known & ~new], order=None)
    assert isinstance(plain.prior_.modes[0], NormalWishart)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is strange about stations whose place is known
        found = ring.predict(table[new])
    assert error(ring, table[new]) < 0.5 * error(plain, table[new])
    with pytest.warns(UserWarning, match="Labels that the fit did not know: 8 of 'station'"):
        ring.predict(table[new].drop(columns=["lat", "lon"]))
    ring.save(tmp_path / "model.ring")
    again = load(tmp_path / "model.ring")
    assert again.prior_ == ring.prior_
    np.testing.assert_array_equal(again.predict(table[new]), found)
    more = ring.fold_in(table[known & new].drop(columns="truth"))
    assert len(more.prior_.modes[0].positions) == 40
    assert error(more, table[new]) < 0.6 * error(ring, table[new])


def test_suggestions_know_where_new_stations_lie(rng):
    """They are as uncertain as predictions of the same cells say; seen to fail without places."""
    table, known = map_table(rng)
    new = table.station >= "s032"
    ring = fit(table[known & ~new])
    cells = table[new].drop(columns=["truth", "y"])
    found = ring.suggest(len(cells), cells)["std"].to_numpy()
    _, expected = ring.predict(cells, return_std=True, noise=False)
    np.testing.assert_allclose(found, np.sort(expected)[::-1], rtol=1e-5)


def test_predictions_belong_to_their_stations(rng):
    """Slices stand in another order during a fit, and the answer is for the right ones."""
    table, known = map_table(rng)
    ring = fit(table[known])
    assert error(ring, table) < 0.15 * table.truth.std()
    held = ring.held_out_
    if held is not None:
        values = table[known].set_index(KEYS).y
        keys = [
            tuple(ring.labels_.levels[d][i] for d, i in enumerate(cell)) for cell in held.coords
        ]
        np.testing.assert_allclose(values.loc[keys], held.values, rtol=1e-6)


@pytest.mark.parametrize(
    "likelihood", ["gaussian", pytest.param("bernoulli", marks=pytest.mark.ci)]
)
def test_same_bits_on_threads_and_when_resumed(rng, tmp_path, likelihood):
    table, known = map_table(rng)
    if likelihood == "bernoulli":
        table["y"] = (table.y > 0).astype(float)
    settings = {"likelihood": likelihood, "warmup": 20, "draws": 10}
    one = fingerprint(fit(table[known], n_jobs=1, **settings))
    assert fingerprint(fit(table[known], n_jobs=2, **settings)) == one
    shuffled = table[known].sample(frac=1, random_state=1)
    ring = TensorRing(2, chains=2, random_state=0, progress=False, **settings)
    modes = {"modes": KEYS, "value": "y", "checkpoint": tmp_path, "checkpoint_every": 0}
    assert fingerprint(ring.fit(shuffled, **modes)) == one
    for path in tmp_path.glob("chain-1.*"):
        path.unlink()
    assert fingerprint(ring.fit(shuffled, **modes)) == one


def test_arrays_with_two_coordinates_along_a_dimension(rng):
    table, known = map_table(rng)
    table.loc[~known, "y"] = np.nan
    wide = table.set_index(KEYS).y.to_xarray()
    places = table.groupby("station")[["lat", "lon"]].first()
    wide = wide.assign_coords(latitude=("station", places.lat), longitude=("station", places.lon))
    ring = TensorRing(1, random_state=0, progress=False, **QUICK).fit(wide)
    assert isinstance(ring.prior_.modes[0], Spatial)
    assert list(ring.predict_tensor().station.values) == list(wide.station.values)
    assert "Places of 'station' by 'latitude' and 'longitude'." in summarise_data(
        ring.observed_, ring.labels_
    )
    grid = xr.DataArray(
        np.where(rng.random((5, 6, 4)) < 0.5, np.nan, rng.random((5, 6, 4))),
        {"lat": np.arange(5.0), "lon": np.arange(6.0)},
        ("lat", "lon", "time"),
    )
    found = TensorRing(1, progress=False, **QUICK).fit(grid)
    assert isinstance(found.prior_.modes[0], Smooth)  # modes of their own


def test_the_report_says_that_there_is_a_map(rng, tmp_path):
    table, known = map_table(rng)
    ring = fit(table[known], warmup=20, draws=10)
    page = ring.report(tmp_path / "report.html", progress=False).read_text()
    assert "station, placed by" in page
    assert " km" in page


def test_the_command_line_finds_places(rng, tmp_path):
    """Columns of a CSV file; a dry run says so."""
    table, known = map_table(rng)
    table.loc[~known, "y"] = np.nan
    table.drop(columns="truth").to_csv(tmp_path / "in.csv", index=False)
    asked = ["complete", str(tmp_path / "in.csv"), "--value", "y", "--dry-run"]
    found = CliRunner().invoke(app, asked)
    assert "'lat' and 'lon' say where every station lies." in " ".join(found.output.split())
    quick = ["--rank", "1", "--warmup", "2", "--draws", "2", "--chains", "1", "--value", "y"]
    model = str(tmp_path / "model.ring")
    found = CliRunner().invoke(app, ["fit", str(tmp_path / "in.csv"), "-o", model, *quick])
    assert found.exit_code == 0, found.output
    assert isinstance(load(model).prior_.modes[0], Spatial)


def test_positions_of_coordinates(rng):
    table, known = map_table(rng)
    places = table.groupby("station")[["lat", "lon"]].first()
    codes = [np.unique(table[key], return_inverse=True)[1] for key in KEYS]
    X, y = np.stack(codes, axis=1)[known], table.y[known].to_numpy()
    quick = {"progress": False, "random_state": 0, **QUICK}
    plane = TensorRing(1, **quick).fit(X, y, positions={0: places.to_numpy()})
    globe = TensorRing(1, **quick).fit(X, y, positions={"mode 0": places})
    assert len(plane.prior_.modes[0].positions[0]) == 2
    assert len(globe.prior_.modes[0].positions[0]) == 3  # in space
    named = fit(table[known].drop(columns=["lat", "lon"]), **QUICK)
    assert isinstance(named.prior_.modes[0], NormalWishart)
    named = fit(
        table[known].drop(columns=["lat", "lon"]),
        positions={"station": places.reset_index().sample(frac=1, random_state=0)},
        **QUICK,
    )
    assert named.prior_.modes[0].positions == globe.prior_.modes[0].positions
    for wrong, message in (
        (places.to_numpy()[:5], "must be 40 rows of finite numbers"),
        (np.zeros((40, 2)), "no two alike"),
        (places.assign(lat=95.0), "must be 40 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            TensorRing(1, **quick).fit(X, y, positions={0: wrong})
    with pytest.raises(ValueError, match="must have a row for every label"):
        fit(
            table[known].drop(columns=["lat", "lon"]),
            positions={"station": places.reset_index()[1:]},
            **QUICK,
        )


def test_what_is_no_map(rng):
    """Two stations at one place, rows that disagree, and what the user says."""
    table, known = map_table(rng)
    twice = table.assign(
        lat=table.lat.where(table.station != "s001", table.lat[0]),
        lon=table.lon.where(table.station != "s001", table.lon[0]),
    )
    assert isinstance(fit(twice[known], **QUICK).prior_.modes[0], NormalWishart)
    with pytest.raises(ValueError, match="nor places that all differ"):
        fit(twice[known], order=["station"], **QUICK)
    apart = table.assign(lat=table.lat + rng.random(len(table)))
    assert isinstance(fit(apart[known], **QUICK).prior_.modes[0], NormalWishart)
    found = fit(table[known], order={"station": False}, **QUICK)
    assert isinstance(found.prior_.modes[0], NormalWishart)
    with pytest.raises(ValueError, match="a period, but its labels lie on a map"):
        fit(table[known], order={"station": 360}, **QUICK)
    with pytest.raises(ValueError, match="use Spatial"):
        fit(table[known], prior={"station": Smooth()}, **QUICK)
    with pytest.raises(ValueError, match="labels are numbers or times"):
        fit(table[known], prior={"station": Circular(360)}, **QUICK)
    assert fit(table[known], prior={"station": Spatial(4)}, **QUICK).prior_.modes[0].neighbours == 4


def test_features_with_places(rng):
    """Latitudes and longitudes among features say where labels lie, too."""
    table, known = map_table(rng)
    about = table.groupby("station")[["lat", "lon"]].first().reset_index()
    about["height"] = rng.random(len(about))
    bare = table[known].drop(columns=["lat", "lon"])
    ring = fit(bare, features={"station": about}, **QUICK)
    assert isinstance(ring.prior_.modes[0], Featured)
    assert isinstance(ring.prior_.modes[0].base, Spatial)
    assert np.isfinite(ring.predict(table)).all()


def test_places_in_files_are_checked():
    labels = Labels(("a", "b"), (None, None), None)
    places, said = np.zeros((3, 2)), {"0": {"names": ["lat", "lon"], "globe": True}}
    right = with_sites(labels, said, {"0": places}, (3, 4))
    assert right.sites[0].names == ("lat", "lon")
    assert with_sites(labels, {}, {}, (3, 4)) == labels
    for described, arrays in (
        (said, {}),
        (said, {"0": places[:2]}),
        (said, {"0": places + 100}),
        (said, {"0": np.zeros((3, 3))}),
        (said, {"0": places.astype(int)}),
        ({"7": said["0"]}, {"7": places}),
        ({"0": {"names": [1, 2], "globe": True}}, {"0": places}),
        ({"0": {"names": ["lat", "lon"], "globe": 1}}, {"0": places}),
        ([], {}),
    ):
        with pytest.raises(ValueError, match="its places"):
            with_sites(labels, described, arrays, (3, 4))


def test_distances_on_the_globe():
    """Kilometres; also across the date line and beside the poles."""
    places = np.array([[0.0, 179.5], [0.0, -179.5], [90.0, 0.0], [89.0, 77.0], [45.0, 370.0 - 360]])
    x = Sites(places, ("lat", "lon"), True).coordinates()
    degree = 2 * np.pi * EARTH / 360
    np.testing.assert_allclose(np.linalg.norm(x[0] - x[1]), degree, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(x[2] - x[3]), degree, rtol=1e-4)
    assert pair_in(["Lat", "depth", "LONGITUDE"]) == ("Lat", "LONGITUDE")
    assert pair_in(["lat", "latitude", "lon"]) is None
