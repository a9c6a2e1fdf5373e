"""Predictions for an exposure other than one: twice the hours, twice the expected count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesring import TensorRing, TensorRingClassifier
from bayesring.model.types import Given

FEW = {"rank": 2, "warmup": 30, "draws": 40, "chains": 2, "random_state": 0, "progress": False}
KEYS = ["site", "species", "year"]


@pytest.fixture(scope="module")
def survey():
    """Counts that are proportional to the hours spent."""
    rng = np.random.default_rng(5)
    cells = np.argwhere(np.ones((6, 5, 4), dtype=bool))
    table = pd.DataFrame(cells, columns=KEYS)
    table["hours"] = rng.choice([1.0, 2.0, 4.0], len(table))
    table["count"] = rng.poisson((1 + cells[:, 0]) * table["hours"]).astype(float)
    return table


@pytest.fixture(scope="module")
def ring(survey):
    own = TensorRing(likelihood="negative-binomial", **FEW)
    return own.fit(survey, modes=KEYS, value="count", exposure="hours")


def test_means_are_proportional_to_exposure(ring, survey):
    hourly, deviation = ring.predict(survey, return_std=True, noise=False)
    found, wider = ring.predict(survey, return_std=True, noise=False, exposure="hours")
    np.testing.assert_allclose(found, hourly * survey["hours"], rtol=1e-9)
    np.testing.assert_allclose(wider, deviation * survey["hours"], rtol=1e-9)
    np.testing.assert_array_equal(ring.predict(survey, exposure=np.ones(len(survey))), hourly)
    assert np.mean((found - survey["count"]) ** 2) < np.mean((hourly - survey["count"]) ** 2)


def test_intervals_are_those_of_counts_with_that_exposure(ring, survey):
    """Not those of one hour, times the hours, which would be too wide."""
    lower, upper = ring.predict_interval(survey, 0.8, exposure="hours")
    X = survey[KEYS].to_numpy()
    posterior, given = ring.posterior_, Given(exposure=survey["hours"].to_numpy())
    fitted = posterior.likelihood.moved(posterior.entries(X), posterior.nuisance, given)

    def below(values):
        return posterior.likelihood.cdf(values, fitted, posterior.nuisance, given).mean(axis=0)

    assert (below(upper) >= 0.9 - 1e-9).all()
    assert (below(upper - 1) < 0.9 + 1e-9).all()
    assert (below(lower) >= 0.1 - 1e-9).all()
    assert (below(lower - 1) < 0.1 + 1e-9).all()
    hourly = np.subtract(*ring.predict_interval(survey, 0.8)[::-1])
    assert (upper - lower).sum() < (hourly * survey["hours"]).sum()


def test_samples_have_the_exposure_of_their_row(ring, survey):
    rows = survey.head(20)
    found = ring.sample(rows, 4000, exposure=7.0)
    expected, deviation = ring.predict(rows, return_std=True, exposure=7.0)
    assert np.all(np.abs(found.mean(axis=0) - expected) < deviation / 4)
    assert (ring.sample(rows, 4000).mean(axis=0) < found.mean(axis=0) / 3).all()


def test_a_column_an_array_and_one_number(ring, survey):
    expected = ring.predict_table(survey, exposure=survey["hours"].to_numpy())
    assert list(expected) == [*KEYS, "mean", "std", "lower", "upper"]
    pd.testing.assert_frame_equal(ring.predict_table(survey, exposure="hours"), expected)
    for table in (pl.DataFrame(survey), pl.DataFrame(survey).lazy(), pa.table(survey)):
        found = ring.predict_table(table, exposure="hours")
        np.testing.assert_array_equal(np.array(found["upper"]), expected["upper"])
    batches = pa.table(survey).to_reader(max_chunksize=50)
    np.testing.assert_array_equal(ring.predict(batches, exposure="hours"), expected["mean"])
    twice = ring.predict(survey[KEYS].to_numpy(), exposure=2.0)
    np.testing.assert_array_equal(twice, ring.predict(survey, exposure=np.full(len(survey), 2.0)))


def test_the_order_of_rows_does_not_change_a_bit(ring, survey):
    rows = pd.concat([survey, survey.assign(hours=3.0)]).sample(frac=1, random_state=1)
    found = ring.predict_table(rows, exposure="hours")
    again = ring.predict_table(rows[::-1], exposure="hours")
    pd.testing.assert_frame_equal(found, again[::-1], check_exact=True)


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        ("effort", "exposure names 'effort', which is not a column of the table"),
        (0.0, "exposure must be positive, got 0 in row 0"),
        ([1.0, 2.0], "exposure"),
        (np.nan, "exposure"),
    ],
)
def test_wrong_exposures_are_refused(ring, survey, exposure, message):
    for method in (ring.predict, ring.predict_interval, ring.predict_table, ring.sample):
        with pytest.raises(ValueError, match=message):
            method(survey, exposure=exposure)


def test_other_likelihoods_have_no_exposure(survey):
    X, y = survey[KEYS].to_numpy(), survey["count"].to_numpy()
    short = FEW | {"warmup": 2, "draws": 2}
    for own in (
        TensorRing(**short).fit(X, y + 0.5),
        TensorRingClassifier(**short).fit(X, y > 2),
    ):
        with pytest.raises(ValueError, match="exposure was given, which the likelihood"):
            own.predict_interval(X, exposure=2.0)


def new_site(hours):
    """Eight counts an hour at a site that nobody has visited before, and a row without a count."""
    cells = np.argwhere(np.ones((5, 4), dtype=bool))
    table = pd.DataFrame(cells, columns=KEYS[1:]).assign(site=6, hours=hours, count=8.0 * hours)
    table.loc[3, "count"] = np.nan
    return table


def test_new_labels_are_folded_in_with_their_exposure(ring):
    table = new_site(4.0)
    found = ring.fold_in(table, exposure="hours").predict(table)
    assert 6 < found.mean() < 10
    assert ring.fold_in(table).predict(table).mean() > 25
    seen = table.dropna()
    again = ring.fold_in(seen[KEYS], seen["count"], exposure=4.0)
    np.testing.assert_array_equal(again.predict(table), found)
    with pytest.raises(ValueError, match="exposure must be positive, got -1 in row 0"):
        ring.fold_in(table, exposure=-1)
    with pytest.raises(ValueError, match="exposure is that of observations, but X is None"):
        ring.fold_in(None, features={"site": table}, exposure=2.0)


def test_online_em_goes_on_with_exposures(survey):
    online = FEW | {"inference": "online-em", "epochs": 40, "likelihood": "negative-binomial"}
    named = {"modes": KEYS, "value": "count"}
    stream = TensorRing(**online).fit(survey, **named, exposure="hours")
    table = new_site(4.0)
    stream.partial_fit(table, exposure="hours")
    assert 6 < stream.predict(table).mean() < 10
    assert stream.observed_.given.exposure.sum() == survey["hours"].sum() + 19 * 4.0
    X, y = survey[KEYS].to_numpy(), survey["count"].to_numpy()
    first = TensorRing(**online).partial_fit(X, y, exposure=survey["hours"].to_numpy())
    assert first.observed_.given.exposure.sum() == survey["hours"].sum()
