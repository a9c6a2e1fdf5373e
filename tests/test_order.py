"""Ordered modes from a table to predictions: between, beyond, saved, resumed, on threads."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, complete, load
from bayesring.data.labels import Zone
from bayesring.data.positions import following, positions_of
from bayesring.priors import NormalWishart, Smooth
from tests.checkpoint.fits import fingerprint


def smooth_table(rng, n_days=60, known=0.3, noise=0.1):
    """Two slow curves over days, mixed by station; some cells, and the truth of all."""
    days = np.datetime64("2024-01-01") + np.arange(n_days)
    time = np.arange(n_days)
    curves = np.stack([np.sin(time / 8), np.cos(time / 11)], axis=1)
    stations, hours = rng.standard_normal((8, 2)), 1 + 0.3 * rng.standard_normal((4, 2))
    truth = np.einsum("tr,sr,hr->tsh", curves, stations, hours)
    table = pd.DataFrame(
        [(days[t], f"s{s}", h) for t in range(n_days) for s in range(8) for h in range(4)],
        columns=["day", "station", "hour"],
    )
    table["truth"] = truth.ravel()
    table["y"] = table.truth + noise * rng.standard_normal(len(table))
    return table, rng.random(len(table)) < known


def fit(table, prior, **settings):
    settings = {"warmup": 60, "draws": 40, "chains": 2, "random_state": 0} | settings
    ring = TensorRing(2, prior=prior, progress=False, **settings)
    return ring.fit(table, modes=["day", "station", "hour"], value="y")


def error(ring, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(np.sqrt(np.mean((ring.predict(table) - table.truth) ** 2)))


def test_days_without_any_value_are_interpolated(rng):
    """A tenth of the days, and the days after the last, are never observed."""
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    gone = (day % 10 == 5) | (day >= 57)
    seen = table[known & ~gone]
    ordered = fit(seen, {"day": Smooth()})
    plain = fit(seen, "hierarchical", order=None)
    between = table[gone & (day < 57)]
    assert error(ordered, between) < 0.35 * error(plain, between)
    length = ordered.prior_.modes[0].length
    assert ordered.prior_.modes[0].positions[1] - ordered.prior_.modes[0].positions[0] == 1.0
    assert callable(length)


def test_intervals_widen_with_the_distance(rng):
    table, known = smooth_table(rng)
    ring = fit(table[known], {"day": Smooth()})
    future = pd.DataFrame(
        {
            "day": np.datetime64("2024-01-01") + 59 + np.array([1, 3, 10, 40]),
            "station": "s3",
            "hour": 2,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is strange about the days to come
        lower, upper = ring.predict_interval(future)
    assert np.all(np.diff(upper - lower) > 0)


def test_order_costs_no_accuracy_where_there_is_none(rng):
    table, known = smooth_table(rng)
    days = table.day.unique()
    shuffled = dict(zip(days, rng.permutation(days), strict=True))
    table["day"] = table.day.map(shuffled)
    ordered, plain = (
        fit(table[known], {"day": Smooth(k0=0.02, learned=True)}),
        fit(table[known], "hierarchical", order=None),
    )
    hidden = table[~known]
    assert error(ordered, hidden) < 1.1 * error(plain, hidden)


def test_saved_models_answer_alike(rng, tmp_path):
    table, known = smooth_table(rng, known=0.1)
    day = (table.day - table.day.min()).dt.days
    ring = fit(table[known & (day % 7 != 3)], {"day": Smooth(k0=3.0)})
    ring.save(tmp_path / "model.ring")
    again = load(tmp_path / "model.ring")
    assert again.prior_ == ring.prior_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        np.testing.assert_array_equal(again.predict(table), ring.predict(table))


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_same_bits_on_threads_and_when_resumed(rng, tmp_path, likelihood):
    table, known = smooth_table(rng)
    if likelihood == "bernoulli":
        table["y"] = (table.y > 0).astype(float)
    settings = {"likelihood": likelihood, "warmup": 20, "draws": 10}
    one = fingerprint(fit(table[known], {"day": Smooth()}, n_jobs=1, **settings))
    assert fingerprint(fit(table[known], {"day": Smooth()}, n_jobs=2, **settings)) == one
    ring = TensorRing(
        2, prior={"day": Smooth()}, chains=2, random_state=0, progress=False, **settings
    )
    modes = {"modes": ["day", "station", "hour"], "value": "y"}
    kept = {"checkpoint": tmp_path, "checkpoint_every": 0}
    assert fingerprint(ring.fit(table[known], **modes, **kept)) == one
    for path in tmp_path.glob("chain-1.*"):
        path.unlink()
    assert fingerprint(ring.fit(table[known], **modes, **kept)) == one


def test_text_has_no_order(rng):
    table, known = smooth_table(rng)
    with pytest.raises(ValueError, match="Smooth needs a mode whose labels are numbers or times"):
        fit(table[known], {"station": Smooth()})


@pytest.mark.ci
def test_online_em_follows_the_order_in_its_chains(rng):
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    seen, between = table[known & (day % 10 != 5)], table[day % 10 == 5]
    settings = {"inference": "online-em", "chains": 2, "epochs": 20}
    ordered, plain = (fit(seen, "hierarchical", order=each, **settings) for each in ("auto", None))
    assert error(ordered, between) < 0.5 * error(plain, between)


def test_files_have_no_order(rng, tmp_path):
    table, _ = smooth_table(rng)
    table.to_parquet(tmp_path / "table.parquet")
    ring = TensorRing(2, inference="online-em", order=["day"], progress=False)
    with pytest.raises(ValueError, match=r"order needs chains, which .* does not run on files"):
        ring.fit(tmp_path / "table.parquet", modes=["day", "station", "hour"], value="y")


def test_equal_numbers_are_refused(rng):
    """Integers that are the same as floats cannot be put in order."""
    table, known = smooth_table(rng, n_days=4)
    table["day"] = 2**60 + (table.day - table.day.min()).dt.days
    with pytest.raises(ValueError, match="numbers or times"):
        fit(table[known], {"day": Smooth()})


@pytest.mark.filterwarnings("ignore:.* has one label only")
def test_a_mode_of_one_position_is_no_trouble(rng):
    table, _ = smooth_table(rng, n_days=1)
    ring = fit(table, {"day": Smooth()})
    assert ring.prior_.modes[1] == NormalWishart(k0=0.02, learned=True)
    assert np.isfinite(ring.predict(table)).all()


def test_modes_are_ordered_by_their_labels(rng):
    """Dates and floats are, text is not, integers are if there are values enough to tell."""
    table, known = smooth_table(rng)
    table["depth"] = table.hour * 0.5

    def ordered(modes, **settings):
        ring = TensorRing(2, warmup=1, draws=1, chains=1, progress=False, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ring.fit(table[known], modes=modes, value="y")
        return [isinstance(own, Smooth) for own in ring.prior_.modes]

    keys = ["day", "station", "hour"]
    assert ordered(keys) == [True, False, True]
    assert ordered(["day", "station", "depth"]) == [True, False, True]
    assert ordered(keys, order=None) == [False, False, False]
    assert ordered(keys, order=["hour"]) == [False, False, True]
    assert ordered(keys, order=[0]) == [True, False, False]
    assert ordered(keys, prior=NormalWishart()) == [False, False, False]
    assert ordered(keys, prior={"station": NormalWishart(k0=3.0)}) == [True, False, True]
    table["hour"] += 100_000 * rng.integers(0, 200, len(table))  # mere numbers of things
    assert ordered(keys) == [True, False, False]
    for wrong, message in (
        (["station"], "order names the mode 'station', but its labels are not numbers or times"),
        (["year"], "order names the mode 'year', but the modes are"),
        ("day", r"got 'day'; for one mode, give \['day'\]"),
        (3, "order must be 'auto', None or a list of modes, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            ordered(keys, order=wrong)
    with pytest.raises(ValueError, match="its prior, Fixed, has no ordered form"):
        ordered(keys, order=["day"], prior="paper")


def test_axes_of_arrays_count_and_coordinates_do_not(rng):
    values = np.add.outer(np.sin(np.arange(30) / 5), rng.standard_normal(12))
    values = np.add.outer(values, rng.standard_normal(2))
    holes = np.where(rng.random(values.shape) < 0.3, np.nan, values)
    quick = {"warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = complete(holes, rank=1, **quick).model
        coords = np.argwhere(~np.isnan(holes))
        bare = TensorRing(1, **quick).fit(coords, holes[tuple(coords.T)])
        days = np.datetime64("2020-02-01") - np.arange(30)
        placed = TensorRing(1, **quick).fit(
            coords, holes[tuple(coords.T)], positions={"mode 0": days, 1: np.geomspace(1, 9, 12)}
        )
    assert [isinstance(own, Smooth) for own in found.prior_.modes] == [True, True, False]
    assert [isinstance(own, Smooth) for own in bare.prior_.modes] == [False, False, False]
    assert [isinstance(own, Smooth) for own in placed.prior_.modes] == [True, True, False]
    assert placed.prior_.modes[1].positions == tuple(np.geomspace(1, 9, 12))
    assert np.isfinite(placed.predict(coords)).all()


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({0: [1.0, 2.0]}, "positions of the mode 'mode 0' must be 3 numbers or times"),
        ({0: ["a", "b", "c"]}, "must be 3 numbers or times"),
        ({0: [1.0, 3.0, 2.0]}, "must be finite and increase from each coordinate to the next"),
        ({0: [1.0, 2.0, np.inf]}, "must be finite and increase"),
        ({5: [1.0]}, "positions names the mode 5, but the modes are"),
    ],
)
def test_wrong_positions(positions, message):
    ring = TensorRing(1, warmup=1, draws=1, chains=1, progress=False)
    with pytest.raises(ValueError, match=message):
        ring.fit(np.indices((3, 3)).reshape(2, -1).T, np.arange(9.0), positions=positions)


def test_forecasts_go_on_and_widen(rng):
    table, known = smooth_table(rng)
    ring = fit(table[known], "hierarchical", order=["day"])
    found = ring.forecast(5)
    assert len(found) == 5 * 8 * 4
    assert found.day.min() == table.day.max() + pd.Timedelta(days=1)
    assert found.day.nunique() == 5
    again = ring.predict_table(found[["day", "station", "hour"]])
    pd.testing.assert_frame_equal(again, found)
    widths = (found.upper - found.lower).groupby(found.day).mean()
    assert np.all(np.diff(widths) > 0)
    with pytest.raises(ValueError, match="mode names 'hour', which is not ordered"):
        ring.forecast(2, mode="hour")
    with pytest.raises(ValueError, match="forecast needs an ordered mode"):
        fit(table[known], "hierarchical", order=None, warmup=1, draws=2).forecast(1)


def test_forecasts_of_arrays(rng):
    values = np.sin(np.arange(40) / 6)[:, None, None] * (1 + rng.random((40, 4, 3)) / 50)
    coords = np.argwhere(rng.random(values.shape) < 0.8)
    ring = TensorRing(1, warmup=60, draws=40, chains=1, random_state=0, progress=False)
    ring.fit(coords, values[tuple(coords.T)], positions={0: np.arange(40) / 2}, shape=(40, 4, 3))
    found = ring.forecast(2)
    assert found.mean.shape == (2, 4, 3)
    assert np.abs(found.mean[0] - np.sin(40 / 6)).max() < 0.25
    assert np.all(found.upper > found.lower)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (np.array([1, 2, 4, 5]), [6, 7]),
        (np.array([2.0, 1.5, 1.0]), [0.5, 0.0]),
        (np.array(["2020-01", "2020-02", "2020-03"], "M8[D]"), ["2020-04-01", "2020-05-01"]),
        (np.array(["2019-01-15", "2020-01-15"], "M8[D]"), ["2021-01-15", "2022-01-15"]),
        (np.array(["2020-01-01T12", "2020-01-01T18"], "M8[s]"), ["2020-01-02T00", "2020-01-02T06"]),
        (np.array([7]), [8, 9]),
        (
            np.array(["2020-01-31", "2020-02-29", "2020-03-31"], "M8[D]"),
            ["2020-04-30", "2020-05-31"],
        ),
        (np.array(["2020-03-31", "2020-06-30"], "M8[s]"), ["2020-09-30", "2020-12-31"]),
        (
            np.array(["2020-01-03", "2020-01-02", "2020-01-01"], "M8[D]"),
            ["2020-01-04", "2020-01-05"],
        ),
        (np.array([2**62, 2**62 + 1]), [2**62 + 2, 2**62 + 3]),
        (np.array([1, 2, 4], "m8[h]"), [6, 8]),
    ],
)
def test_labels_that_follow(levels, expected):
    np.testing.assert_array_equal(following(levels, 2), np.array(expected, levels.dtype))


def test_medians_are_those_of_samples(rng):
    table, known = smooth_table(rng)
    ring = fit(table[known], "hierarchical", warmup=10)
    cells = table[~known][:50]
    samples = ring.sample(cells, 4000)
    mean, std = ring.predict(cells, return_std=True)
    median = ring.predict(cells, point="median")
    assert np.all(np.abs(median - np.median(samples, axis=0)) < 0.1 * std)
    assert not np.array_equal(mean, median)
    with pytest.raises(ValueError, match="point must be"):
        ring.predict(cells, point="mode")


@pytest.mark.ci
def test_partial_fit_goes_on_with_the_next_days(rng):
    """The chain grows at its end; a day in between is out of line, and the order is given up."""
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    settings = {"inference": "online-em", "chains": 2, "epochs": 10}
    ring = fit(table[known & (day < 50) & (day != 20)], "hierarchical", order=["day"], **settings)
    more = table[known & (day >= 50)]
    ring.partial_fit(more.drop(columns="truth"))
    assert len(ring.prior_.modes[0].positions) == 59
    assert error(ring, table[day >= 50]) < 0.6
    ring.partial_fit(table[known & (day == 20)].drop(columns="truth"))
    assert isinstance(ring.prior_.modes[0], NormalWishart)


def test_labels_that_follow_by_the_clocks_of_a_zone():
    """Midnight stays midnight when clocks are put forward, and months begin at midnight."""
    zone = Zone("Europe/Berlin", "ns")
    for freq, expected in (
        ("D", ["2020-03-29", "2020-03-30", "2020-03-31"]),
        ("MS", ["2020-12-01", "2021-01-01", "2021-02-01"]),
    ):
        start = "2020-03-20" if freq == "D" else "2020-03-01"
        times = pd.date_range(start, periods=9, freq=freq, tz="Europe/Berlin")
        known = times.tz_convert("UTC").tz_localize(None).to_numpy()
        found = pd.DatetimeIndex(following(known, 3, zone)).tz_localize("UTC")
        local = found.tz_convert("Europe/Berlin")
        assert local.strftime("%Y-%m-%d").tolist() == expected
        assert set(local.hour) == {0}


@pytest.mark.parametrize("levels", [np.array([0, 2**62]), np.array([0.0, 1.5e308])])
def test_labels_that_cannot_follow(levels):
    with pytest.raises(ValueError, match="are too large for"):
        following(levels, 3)


def test_positions_of_times_far_away():
    """Not in nanoseconds, which end in 2262."""
    times = np.array(["1420-06-01", "1700-01-01", "2590-01-20"], "M8[s]")
    np.testing.assert_array_equal(positions_of(times), times.astype("M8[D]").astype(float))
    assert positions_of(np.array([36], "m8[h]")) == [1.5]
    assert positions_of(np.array(["2000", "2001"], "M8[Y]"))[1] == 11_323


def test_positions_must_be_arrays():
    ring = TensorRing(1, warmup=1, draws=1, chains=1, progress=False)
    X, y = np.indices((3, 3)).reshape(2, -1).T, np.arange(9.0)
    for wrong in ([1, 2, 3], "day"):
        with pytest.raises(TypeError, match="positions must map modes to arrays"):
            ring.fit(X, y, positions=wrong)
    for wrong in (None, {1, 2, 3}, [[1], [2, 3]], [np.nan] * 3):
        with pytest.raises(ValueError, match="positions of the mode 'mode 0' must be"):
            ring.fit(X, y, positions={0: wrong})
    days = pd.date_range("2020-01-30", periods=3)
    for right in ([1, 2, 3], (1.0, 5.0, 9.0), days, pd.Series(days), list(days.date)):
        assert isinstance(ring.fit(X, y, positions={0: right}).prior_.modes[0], Smooth)


def test_order_as_arrays_and_twice(rng):
    table, known = smooth_table(rng, n_days=8)
    quick = {"warmup": 1, "draws": 2, "chains": 1}
    assert isinstance(
        fit(table[known], "hierarchical", order=np.array(["day"]), **quick).prior_.modes[0], Smooth
    )
    with pytest.raises(ValueError, match="order names a mode twice"):
        fit(table[known], "hierarchical", order=["day", 0], **quick)


def test_too_long_forecasts_are_refused_at_once(rng):
    table, known = smooth_table(rng, n_days=8)
    ring = fit(table[known], "hierarchical", order=["day"], warmup=1, draws=2)
    with pytest.raises(ValueError, match="a forecast of"):
        ring.forecast(10**12)
