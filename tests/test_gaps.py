"""What is held out is missing as the user's own cells are."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.gaps import SCATTERED, GapPattern, find_pattern, hold_out_alike, known_cells
from bayesring.data.observations import in_order
from bayesring.data.splitting import folds_of, hold_out, rejoin
from bayesring.model.types import Observations

SHAPE = (20, 40, 12)


def observed(known):
    coords = np.argwhere(known)
    return in_order(Observations(coords, np.arange(len(coords), dtype=float), known.shape))


def scattered(rng):
    return rng.random(SHAPE) < 0.6


def skewed(rng):
    """Every label has its own share of known cells."""
    shares = [rng.uniform(0.3, 1.0, n) for n in SHAPE]
    return rng.random(SHAPE) < np.einsum("i,j,k->ijk", *shares)


def whole_days(rng):
    """Stations fail for a whole day, all hours of it."""
    return (rng.random(SHAPE) < 0.95) & (rng.random((*SHAPE[:2], 1)) < 0.7)


def everybody(rng):
    """All stations are off in some hours of some days."""
    return (rng.random(SHAPE) < 0.95) & (rng.random((1, *SHAPE[1:])) < 0.7)


def off_for_good(rng):
    """Half of the stations end some day."""
    known = rng.random(SHAPE) < 0.95
    for station in range(0, 20, 2):
        known[station, rng.integers(10, 35) :] = False
    return known


def outages(rng):
    """Runs of missing cells along a long mode, no fibre as a whole."""
    known = np.ones((15, 4, 400), dtype=bool)
    for fibre in known.reshape(-1, 400):
        for start in rng.integers(0, 380, 6):
            fibre[start : start + 20] = False
    return known


def nights(rng):
    """Stations close late in the evening, most of them before the last hours."""
    closing = rng.choice([20, 21, 22, 23, 24], size=(20, 30, 1), p=[0.1, 0.2, 0.3, 0.2, 0.2])
    return np.arange(24) < closing


@pytest.mark.parametrize(
    ("missing", "expected", "words"),
    [
        (nights, GapPattern(2), "parts of fibres along 'hour'"),
        (scattered, SCATTERED, "single cells"),
        (skewed, SCATTERED, "single cells"),
        (whole_days, GapPattern(2, True), "whole fibres along 'hour'"),
        (everybody, GapPattern(0, True), "whole fibres along 'station'"),
        (off_for_good, GapPattern(2, True, 1), "whole fibres along 'hour', in runs along 'day'"),
        (outages, GapPattern(2), "parts of fibres along 'hour'"),
    ],
)
def test_patterns_are_found(rng, missing, expected, words):
    for _ in range(5):
        found = find_pattern(observed(missing(rng)))
        assert found == expected
        assert found.describe(("station", "day", "hour")) == words


def test_whole_fibres_are_held_out_whole(rng):
    data = observed(whole_days(rng))
    explored, held = hold_out(data, 0)
    assert held.pattern.whole
    assert 0.08 < len(held.data.values) / len(data.values) < 0.12
    fibres = {tuple(row) for row in held.data.coords[:, :2]}
    assert not fibres & {tuple(row) for row in explored.coords[:, :2]}
    back = rejoin(explored, held)
    np.testing.assert_array_equal(back.coords, data.coords)
    np.testing.assert_array_equal(back.values, data.values)


def test_which_fibres_are_held_out_depends_on_the_seed(rng):
    data = observed(whole_days(rng))
    one, again, other = (hold_out(data, seed)[1].places for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_ends_are_held_out_where_stations_ended(rng):
    """What is held out of a station is the last days that it has."""
    data = observed(off_for_good(rng))
    explored, held = hold_out(data, 3)
    assert held.pattern.runs == 1
    last = [held.data.coords[held.data.coords[:, 0] == s, 1] for s in range(20)]
    ends = [own.max() - own.min() + 1 for own in last if own.size]
    assert ends
    assert min(ends) >= 5
    for station in np.unique(held.data.coords[:, 0]):
        left = explored.coords[explored.coords[:, 0] == station, 1]
        assert left.size
        assert left.max() < last[station].max()


def test_outages_are_runs_among_what_is_held_out(rng):
    data = observed(outages(rng))
    known = known_cells(data)
    held = hold_out_alike(known, find_pattern(data), rng, 2_000 / len(data.values))
    assert not np.any(held & ~known)
    runs = np.count_nonzero(np.diff(held.astype(int), axis=2, prepend=0) == 1)
    assert held.sum() / runs > 8
    assert 1_800 < held.sum() < 2_300


def test_no_line_loses_all_of_its_values(rng):
    data = observed(outages(rng))
    explored, _ = hold_out(data, 1)
    assert len(np.unique(explored.coords[:, :2], axis=0)) == 60


def test_folds_keep_fibres_together(rng):
    data = observed(whole_days(rng)[:, :10])
    places = folds_of(data, 8, seed=2)
    assert set(places) == set(range(8))
    for fibre in np.unique(data.coords[:, :2], axis=0):
        assert len(set(places[np.all(data.coords[:, :2] == fibre, axis=1)])) == 1
    plain = folds_of(observed(scattered(rng)), 8, seed=2)
    assert np.ptp(np.bincount(plain)) <= 1


def held_at(known, rng):
    """Share of held-out cells at each label of the last mode."""
    held = hold_out_alike(known, GapPattern(2), rng, 0.1)
    assert held.sum() == pytest.approx(0.1 * known.sum(), rel=0.05)
    assert not np.any(held & ~known)
    return held.sum(axis=(0, 1)) / held.sum()


def test_hours_that_are_always_missing_do_not_speak_for_the_others(rng):
    """Few stations have values late at night, and these would be all that is held out."""
    day = held_at(nights(rng), rng)[:20]
    assert day.sum() > 0.7
    assert day.min() > 0.4 / day.size


def test_a_station_that_ended_is_held_out_at_its_end(rng):
    """What few stations miss says where they miss it: at the end, where nothing comes after."""
    known = np.ones((20, 4, 60), dtype=bool)
    known[:3, :, 45:] = False
    assert held_at(known, rng)[45:].sum() == pytest.approx(1.0)
