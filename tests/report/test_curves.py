"""What the report says of ordered modes."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.report import charts
from bayesring.report.curves import Curve, curves, duration
from bayesring.report.fitted import Fitted
from tests.test_order import fit, smooth_table


@pytest.fixture(scope="module")
def fitted():
    table, known = smooth_table(np.random.default_rng(5))
    day = (table.day - table.day.min()).dt.days
    table["y"] += 20.0
    ring = fit(table[known & ~day.between(20, 24)], "hierarchical", order=["day", "hour"])
    return table, Fitted(**ring._parts())


def test_curves_follow_the_mean_of_the_table(fitted):
    table, parts = fitted
    day, hour = curves(parts)
    assert (day.mode, hour.mode) == (0, 2)
    means = 20 + table.groupby("day").truth.mean()
    kept = means[np.isin(means.index.to_numpy().astype("M8[D]"), parts.labels.levels[0])]
    np.testing.assert_allclose(day.middle, kept, atol=0.1)
    assert np.all(day.lower < day.middle)
    assert np.all(day.middle < day.upper)


def test_how_fast_they_change_is_said_in_their_own_units(fitted):
    """Sine and cosine of day / 8 and day / 11 lose their likeness within one and a half weeks."""
    day, hour = curves(fitted[1])
    assert 6 < day.reach < 16
    assert day.words.startswith("changes over about ")
    assert day.words.endswith(" days")
    assert not hour.is_time


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (900.0, "2.5 years"),
        (70.0, "2.3 months"),
        (9.04, "9 days"),
        (0.5, "12 hours"),
        (0.05, "72 minutes"),
        (5e5, "1400 years"),
    ],
)
def test_durations(days, words):
    assert duration(days) == words


def test_words():
    x = np.arange(3.0)
    own = Curve(0, x, x, x, x, 0.0, False)
    assert own.words == "differs from one to the next"
    assert own._replace(reach=np.inf).words == "hardly changes"
    assert own._replace(reach=2.5).words == "changes over about 2.5"


def test_the_chart_tells_what_it_shows(fitted):
    _, parts = fitted
    picture = charts.curve_chart(parts, curves(parts)[0])
    assert "Mean of y along day, from 2024-01-01 to 2024-02-29: between 1" in picture
    assert "it changes over about" in picture
