"""Observations held out of the data, and put back again."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data import observations as module
from bayesring.data.observations import Observations, in_order
from bayesring.data.splitting import FEWEST, MOST, hold_out, rejoin
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
    assert len(held.data.values) == len(held.places) == 60
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
    assert len(hold_out(make(rng, 11 * MOST), 0)[1].data.values) == MOST


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
