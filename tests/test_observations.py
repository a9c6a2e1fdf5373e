"""Sorted observations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from bayesring.data import observations as module
from bayesring.data.observations import in_order
from bayesring.model.types import NOTHING
from tests.models import observations, same_observations, tagged


@given(observations())
def test_sorted_data_are_those_of_numpy_in_standard_units(data):
    found = in_order(data._replace(location=1.0, scale=2.0))
    keys = (data.values, *(data.coords[:, mode] for mode in reversed(range(len(data.shape)))))
    order = np.lexsort(keys)
    np.testing.assert_array_equal(found.coords, data.coords[order])
    np.testing.assert_array_equal(found.values, (data.values[order] - 1.0) / 2.0)
    assert in_order(found) is found


@pytest.mark.parametrize("carried", [("weight",), ("offset",), ("weight", "offset")], ids="+".join)
@pytest.mark.parametrize("compact", [1, 10**9])
def test_what_observations_carry_is_sorted_with_them(rng, monkeypatch, carried, compact):
    """Cells that are observed several times, with equal values too, among them."""
    monkeypatch.setattr(module, "COMPACT", compact)
    data = tagged(rng, (3, 4, 2), 400, (*carried, "exposure"))
    found = in_order(data._replace(location=1.0, scale=2.0))
    rows = found.given.exposure.astype(int)
    np.testing.assert_array_equal(np.sort(rows), np.arange(400))
    np.testing.assert_array_equal(found.coords, data.coords[rows])
    np.testing.assert_array_equal(found.values, (data.values[rows] - 1.0) / 2.0)
    for name in carried:
        own, whole = getattr(found.given, name), getattr(data.given, name)
        np.testing.assert_array_equal(own, whole[rows])
    assert found.coords.dtype == np.int32
    assert found.values.dtype == (np.float32 if compact == 1 else np.float64)
    assert (found.location, found.scale) == (0.0, 1.0)
    same_observations(in_order(found), found)


def test_what_is_carried_does_not_change_the_order_of_cells_and_values(rng):
    data = tagged(rng, (3, 4, 2), 400, ("exposure",))
    plain = in_order(data._replace(given=NOTHING))
    found = in_order(data)
    np.testing.assert_array_equal(found.coords, plain.coords)
    np.testing.assert_array_equal(found.values, plain.values)


def test_order_of_arrival_does_not_matter_to_what_is_carried(rng):
    """Not even between observations that differ in nothing else."""
    data = tagged(rng, (2, 2), 400, ("weight", "exposure"))
    shuffle = rng.permutation(400)
    other = data._replace(
        coords=data.coords[shuffle], values=data.values[shuffle], given=data.given.at(shuffle)
    )
    same_observations(in_order(data), in_order(other))
