"""Circular modes from a table to predictions: across midnight, saved, on threads, refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesring import TensorRing, load
from bayesring.command.cli import app
from bayesring.command.options import order_in
from bayesring.priors import Circular, NormalWishart, Smooth, Spatial
from tests.checkpoint.fits import fingerprint

KEYS = ["hour", "station", "year"]


def hourly_table(rng, known=0.3):
    """Two waves around the clock, mixed by station; some cells, and the truth of all."""
    hours = np.arange(24)
    waves = np.stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24 + 2)], axis=1)
    stations, years = rng.standard_normal((8, 2)), 1 + 0.3 * rng.standard_normal((6, 2))
    truth = np.einsum("tr,sr,yr->tsy", waves, stations, years)
    cells = np.argwhere(np.ones(truth.shape))
    table = pd.DataFrame(cells, columns=KEYS)
    table["station"] = "s" + table.station.astype(str)
    table["truth"] = truth.ravel()
    table["y"] = table.truth + 0.1 * rng.standard_normal(len(table))
    return table, rng.random(len(table)) < known


def fit(table, **settings):
    settings = {"warmup": 60, "draws": 40, "chains": 2, "random_state": 0} | settings
    ring = TensorRing(2, progress=False, **settings)
    return ring.fit(table, modes=KEYS, value="y")


def error(ring, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(np.sqrt(np.mean((ring.predict(table) - table.truth) ** 2)))


def test_hours_around_midnight_are_interpolated(rng):
    """The hours 23, 0 and 1 are never observed: beyond both ends of a line, but not of a circle."""
    table, known = hourly_table(rng, 0.6)
    gone = table.hour.isin([23, 0, 1])
    circle = fit(table[known & ~gone], order={"hour": 24, "year": False})
    assert isinstance(circle.prior_.modes[0], Circular)
    assert isinstance(circle.prior_.modes[2], NormalWishart)
    line = fit(table[known & ~gone], order=["hour"])
    none = fit(table[known & ~gone], order=None)
    found = [error(each, table[gone]) for each in (circle, line, none)]
    assert found[0] < 0.4 * found[1]
    assert found[0] < 0.3 * found[2]
    later = table[gone].assign(hour=lambda own: own.hour + 24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is strange about new hours
        again = circle.predict(later)
    np.testing.assert_allclose(
        again, circle.predict(table[gone]), atol=0.3 * table.truth.std()
    )  # the same slices but for chance


def test_saved_models_answer_alike(rng, tmp_path):
    table, known = hourly_table(rng)
    ring = fit(table[known & (table.hour != 5)], order={"hour": 24, "year": True}, warmup=20)
    assert [type(own) for own in ring.prior_.modes] == [Circular, NormalWishart, Smooth]
    ring.save(tmp_path / "model.ring")
    again = load(tmp_path / "model.ring")
    assert again.prior_ == ring.prior_
    assert again.order == {"hour": 24, "year": True}
    np.testing.assert_array_equal(again.predict(table), ring.predict(table))
    more = ring.fold_in(table[known & (table.hour == 5)][[*KEYS, "y"]])
    assert more.prior_.modes[0].positions == tuple(range(24))
    assert error(more, table[table.hour == 5]) < 0.1


@pytest.mark.parametrize(
    "likelihood", ["gaussian", pytest.param("bernoulli", marks=pytest.mark.ci)]
)
def test_same_bits_on_threads_and_when_resumed(rng, tmp_path, likelihood):
    table, known = hourly_table(rng)
    if likelihood == "bernoulli":
        table["y"] = (table.y > 0).astype(float)
    settings = {"likelihood": likelihood, "warmup": 20, "draws": 10, "order": {"hour": 24}}
    one = fingerprint(fit(table[known], n_jobs=1, **settings))
    assert fingerprint(fit(table[known], n_jobs=2, **settings)) == one
    ring = TensorRing(2, chains=2, random_state=0, progress=False, **settings)
    modes = {"modes": KEYS, "value": "y"}
    kept = {"checkpoint": tmp_path, "checkpoint_every": 0}
    assert fingerprint(ring.fit(table[known], **modes, **kept)) == one
    for path in tmp_path.glob("chain-1.*"):
        path.unlink()
    assert fingerprint(ring.fit(table[known], **modes, **kept)) == one


def test_an_expert_says_it_by_the_prior(rng):
    table, known = hourly_table(rng)
    quick = {"warmup": 1, "draws": 2, "chains": 1}
    ring = fit(table[known], prior={"hour": Circular(24, k0=3.0)}, **quick)
    assert ring.prior_.modes[0].k0 == 3.0
    ways = [fit(table[known], order={"hour": how}, **quick) for how in (24, Circular(24))]
    assert ways[0].prior_ == ways[1].prior_
    with pytest.raises(ValueError, match="forecast needs an ordered mode"):
        fit(table[known], order={"hour": 24, "year": False}, **quick).forecast(1)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ({"hour": 12}, "a period of 12, but its labels, from 0 to 23, do not lie within one"),
        ({"station": 8}, "order names the mode 'station', but its labels are not numbers"),
        ({"hour": "day"}, "order of the mode 'hour' must be True, False, the period"),
        ({"hour": -1}, r"must be True, False, .* or Spatial\(\), got -1"),
        ({"hour": Circular(24, k0=1.0)}, "give it as prior={'hour': ...}"),
        ({"hour": Spatial()}, "'hour' lies on a map, but its labels have one coordinate"),
        ({"hour": 24, 0: 24}, "order names a mode twice"),
        ({"day": 7}, "order names the mode 'day', but the modes are"),
    ],
)
def test_wrong_periods(rng, order, message):
    table, known = hourly_table(rng)
    with pytest.raises(ValueError, match=message):
        fit(table[known], order=order, warmup=1, draws=1)


def test_periods_on_the_command_line(rng, tmp_path):
    assert order_in("hour:24,day") == {"hour": 24.0, "day": True}
    assert order_in("a:b,day") == ["a:b", "day"]
    assert order_in("auto") == "auto"
    assert order_in("none") is None
    table, known = hourly_table(rng)
    table.loc[~known, "y"] = np.nan
    table[[*KEYS, "y"]].to_csv(tmp_path / "in.csv", index=False)
    model = tmp_path / "model.ring"
    command = ["fit", str(tmp_path / "in.csv"), "-o", str(model), "--order", "hour:24"]
    command += ["--rank", "1", "--warmup", "2", "--draws", "2", "--chains", "1", "--value", "y"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert isinstance(load(model).prior_.modes[0], Circular)
