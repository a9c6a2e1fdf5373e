"""Observations held out of the data, and put back again."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data import observations as module
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import FEWEST, MOST, HoldOutRule, hold_out, rejoin, rule_for
from bayesring.model.types import Given
from tests.models import random_coords, same_observations, tagged

SHAPE = (12, 12, 12)
CARRIED = [(), ("weight",), ("offset",), ("exposure",), ("weight", "offset", "exposure")]


def rows(data):
    return sorted(map(tuple, np.column_stack([data.coords, data.values])))


def make(rng, n):
    return Observations(random_coords(rng, SHAPE, n), rng.standard_normal(n), SHAPE)


def test_parts_are_disjoint_and_complete(rng):
    data = make(rng, 600)
    rest, held = hold_out(data, seed=3)
    assert 40 <= len(held.data.values) == len(held.places) <= 80
    assert sorted(rows(rest) + rows(held.data)) == rows(data)


def test_the_choice_ignores_the_order_of_arrival(rng):
    data = make(rng, 600)
    shuffle = rng.permutation(600)
    other = Observations(data.coords[shuffle], data.values[shuffle], SHAPE)
    assert rows(hold_out(data, 3)[1].data) == rows(hold_out(other, 3)[1].data)
    assert rows(hold_out(data, 3)[1].data) != rows(hold_out(data, 4)[1].data)


def test_few_and_many_observations(rng):
    few = make(rng, 10 * FEWEST - 1)
    assert hold_out(few, 0) == (few, None)
    assert len(hold_out(make(rng, 11 * MOST), 0)[1].data.values) == pytest.approx(MOST, rel=0.12)


def test_values_of_which_only_ends_are_known_are_not_held_out(rng):
    """They were not observed and can judge nothing; without them there may be too few."""
    data = make(rng, 2_000)
    for known, expected in ((1_000, 100), (300, None)):
        censored = np.arange(2_000) >= known
        ends = Given(
            lower=np.where(censored, data.values, np.nan), upper=np.where(censored, np.inf, np.nan)
        )
        rest, held = hold_out(data._replace(given=ends), seed=3)
        if expected is None:
            assert held is None
            assert len(rest.values) == 2_000
            continue
        assert not held.data.given.censored.any()
        assert len(held.data.values) == pytest.approx(expected, rel=0.3)
        assert rest.given.censored.sum() == 1_000


def test_every_part_of_the_data_makes_the_same_choice(rng):
    """Which is by cell: all observations of a cell are held out, or none."""
    data = in_order(make(rng, 5_000))
    rule = rule_for(5_000, None, seed=7)
    whole = rule.chooses(data.coords)
    cuts = np.sort(rng.integers(0, 5_000, 6))
    parts = [rule.chooses(part) for part in np.split(data.coords, cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(hold_out(data, 7)[1].places, np.flatnonzero(whole))
    _, cells = np.unique(data.coords, axis=0, return_inverse=True)
    chosen = np.bincount(cells, whole) / np.bincount(cells)
    assert set(chosen) == {0.0, 1.0}


def test_hashes_of_neighbours_are_not_alike(rng):
    """Chosen cells are spread evenly over every mode and over pairs of neighbours."""
    coords = np.stack(np.unravel_index(np.arange(40 * 50 * 60), (40, 50, 60)), axis=1)
    chosen = HoldOutRule(12345, 0.1).chooses(coords).reshape(40, 50, 60)
    assert chosen.mean() == pytest.approx(0.1, abs=0.004)
    for axis in range(3):
        rest = tuple(other for other in range(3) if other != axis)
        counts = chosen.sum(axis=rest)
        expected = 0.1 * chosen.size / chosen.shape[axis]
        assert np.sum((counts - expected) ** 2 / (0.9 * expected)) < 2 * chosen.shape[axis]
        ahead = np.roll(chosen, 1, axis=axis)
        assert np.mean(chosen & ahead) == pytest.approx(0.01, abs=0.0015)
    others = HoldOutRule(12346, 0.1).chooses(coords).reshape(chosen.shape)
    assert np.mean(chosen & others) == pytest.approx(0.01, abs=0.0015)


@pytest.mark.parametrize("carried", CARRIED, ids="+".join)
@pytest.mark.parametrize("compact", [1, 10**9])
def test_what_was_held_out_goes_back_to_its_place(rng, monkeypatch, carried, compact):
    """To the bit, in float64 and in float32."""
    monkeypatch.setattr(module, "COMPACT", compact)
    data = tagged(rng, (3, 4, 5), 900, carried)._replace(location=0.5, scale=3.0)
    explored, held = hold_out(data, seed=3)
    assert held.data.values.dtype == (np.float32 if compact == 1 else np.float64)
    same_observations(in_order(explored), explored)
    same_observations(in_order(held.data), held.data)
    same_observations(rejoin(explored, held), in_order(data))


def test_parts_too_small_for_float32_keep_it(rng, monkeypatch):
    """The whole is kept in float32, and so are its parts, though each has fewer observations."""
    monkeypatch.setattr(module, "COMPACT", 900)
    data = tagged(rng, (3, 4, 5), 900, ())
    explored, held = hold_out(data, seed=3)
    assert explored.values.dtype == held.data.values.dtype == np.float32
    same_observations(rejoin(explored, held), in_order(data))


@pytest.mark.parametrize("carried", CARRIED, ids="+".join)
def test_what_observations_carry_goes_with_them(rng, carried):
    data = tagged(rng, (3, 4, 5), 900, ("exposure", *carried))
    explored, held = hold_out(data, seed=3)
    tags = []
    for part in (explored, held.data):
        own = part.given.exposure.astype(int)
        tags.append(own)
        np.testing.assert_array_equal(part.coords, data.coords[own])
        np.testing.assert_array_equal(part.values, data.values[own])
        for found, whole in zip(part.given, data.given, strict=True):
            assert (found is None) == (whole is None)
            if found is not None:
                np.testing.assert_array_equal(found, whole[own])
    np.testing.assert_array_equal(np.sort(np.concatenate(tags)), np.arange(900))
