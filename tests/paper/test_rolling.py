"""Rolling forecasts: what has not come yet is not seen, and every cell is scored once."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.datasets import Dataset, Description
from bayesring.datasets.dataset import numbered, whole
from bayesring.datasets.splits import Fold
from paper.arena import rolling
from paper.arena.rolling import AHEAD, HORIZONS, OURS, STEP, Ahead, Traffic

SHAPE = (3, 16, 12)
METHODS = rolling.forecasters(quick=True, threads=1)


def traffic_of(values, shown=None):
    order = {"day": np.datetime64("2019-01-01") + np.arange(SHAPE[1]), "slot": np.arange(12.0)}
    data = Dataset(
        Description(*["none"] * 6),
        SHAPE,
        numbered(station=3) | order,
        lambda: whole(values),
        lambda fold: Fold(whole(values), whole(values)),
        order,
    )
    return Traffic(data, values, np.ones(SHAPE, dtype=bool) if shown is None else shown)


@pytest.fixture
def values(rng):
    busy = 50 + 30 * np.sin(np.arange(12) / 3) + 10 * rng.random(SHAPE[:2])[:, :, None]
    return busy * np.arange(1, 4)[:, None, None] + rng.random(SHAPE)


def forecasts(method, traffic, n):
    """The first forecasts of a method."""
    forecast = METHODS[method](traffic)
    return [forecast(*origin) for origin, _ in zip(traffic.origins(), range(n), strict=False)]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_seen_before_it_comes(rng, values, method):
    """Neither what comes later, nor what the mask hides, nor what has no value, changes a bit."""
    shown = rng.random(SHAPE) < 0.8
    other, n = values.copy(), 9
    day, slot = list(traffic_of(values).origins())[n - 1]
    other[:, day, slot:] = 7.0
    other[:, day + 1 :] = 7.0
    other[~shown] = 9.0
    for own, its in zip(
        forecasts(method, traffic_of(values, shown), n),
        forecasts(method, traffic_of(other, shown), n),
        strict=True,
    ):
        np.testing.assert_array_equal(own.mean, its.mean)
        np.testing.assert_array_equal(own.interval, its.interval)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "slot"])
def test_what_has_come_is_used(values, method):
    """All but the slot's mean, which is that of other days, change within a day."""
    other, n = values.copy(), 4
    day, slot = list(traffic_of(values).origins())[n - 1]
    other[:, day, slot - 1] *= 3
    if method == "slot and weekday":
        other[:, day - 7] *= 3
    own, its = (forecasts(method, traffic_of(each), n)[-1] for each in (values, other))
    assert np.abs(own.mean - its.mean).max() > 1e-3


def test_days_that_have_ended_are_known_to_their_end(values):
    traffic, other = traffic_of(values), values.copy()
    other[:, traffic.first_day, -1] *= 3
    found = []
    for each in (values, other):
        ring = METHODS[OURS](traffic_of(each))
        found.append(ring(traffic.first_day + 2, 4).mean)
        assert ring._ring.shape_ == (3, traffic.first_day + 2, 12)
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_every_horizon_takes_the_forecasts_made_for_it(values):
    """A forecast that says how far ahead it looks: the errors are 0, 1, ... within a horizon."""
    traffic, asked = traffic_of(values), []

    def forecast(day, slot):
        asked.append((day, slot))
        ahead = np.arange(min(AHEAD, SHAPE[2] - slot))
        truth = values[:, day, slot : slot + AHEAD]
        return Ahead(truth + ahead, (truth, truth + (ahead < STEP) - 0.5))

    found = rolling.walk(traffic, forecast)
    for horizon in HORIZONS:
        exact = np.sqrt(np.mean(np.arange(horizon) ** 2))
        assert found[f"RMSE {horizon}"] == pytest.approx(exact)
    assert asked == sorted(set(asked))
    assert len(asked) == 7 * SHAPE[2] // STEP
    shares = [STEP / horizon for horizon in HORIZONS]
    assert found["coverage"] == pytest.approx(np.mean(shares))


def test_cells_without_a_value_are_not_scored(values):
    values[:, -3:, ::2] = 0.0
    traffic = traffic_of(values, np.zeros(SHAPE, dtype=bool))  # hidden ones are
    gap = 1.0 + (np.arange(SHAPE[1]) >= traffic.first_day)

    def forecast(day, slot):
        truth = values[:, day, slot : slot + AHEAD]
        return Ahead(np.where(truth > 0, truth + gap[day], 1e6))

    assert rolling.walk(traffic, forecast) == {
        f"RMSE {each}": pytest.approx(2.0) for each in (2, 4, 6)
    }


def test_the_trivial():
    known = np.arange(2 * 9 * 4, dtype=float).reshape(2, 9, 4)
    known[:, 8, 2:] = np.nan
    known[0, 1, 3] = np.nan  # the only such weekday
    np.testing.assert_allclose(rolling.usual(known, 2)[1], 36 + np.arange(4) + 4 * 3.5)
    np.testing.assert_allclose(rolling.weekly(known, 2)[1], known[1, 1])
    assert rolling.weekly(known, 2)[0, 3] == rolling.usual(known, 2)[0, 3]
    assert np.all(rolling.last(known, 2)[1] == known[1, 8, 1])
    ratio = known[1, 8, :2].sum() / known[1, 1, :2].sum()
    np.testing.assert_allclose(rolling.level(known, 2)[1], ratio * known[1, 1])
