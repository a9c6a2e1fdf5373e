"""Ordered modes from a table to predictions: between, beyond, saved, resumed, on threads."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, load
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
    plain = fit(seen, "hierarchical")
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
    with pytest.warns(UserWarning, match="not know"):
        lower, upper = ring.predict_interval(future)
    assert np.all(np.diff(upper - lower) > 0)


def test_order_costs_no_accuracy_where_there_is_none(rng):
    table, known = smooth_table(rng)
    days = table.day.unique()
    shuffled = dict(zip(days, rng.permutation(days), strict=True))
    table["day"] = table.day.map(shuffled)
    ordered, plain = fit(table[known], {"day": Smooth()}), fit(table[known], "hierarchical")
    hidden = table[~known]
    assert error(ordered, hidden) < 1.05 * error(plain, hidden)


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


def test_online_em_says_that_it_cannot(rng):
    table, known = smooth_table(rng)
    with pytest.raises(ValueError, match="which online EM cannot do"):
        fit(table[known], {"day": Smooth()}, inference="online-em")


def test_equal_numbers_are_refused(rng):
    """Integers that are the same as floats cannot be put in order."""
    table, known = smooth_table(rng, n_days=4)
    table["day"] = 2**60 + (table.day - table.day.min()).dt.days
    with pytest.raises(ValueError, match="numbers or times"):
        fit(table[known], {"day": Smooth()})


def test_a_mode_of_one_position_is_no_trouble(rng):
    table, _ = smooth_table(rng, n_days=1)
    ring = fit(table, {"day": Smooth()})
    assert ring.prior_.modes[1] == NormalWishart()
    assert np.isfinite(ring.predict(table)).all()
