"""Mode views and blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring.data import observations as module
from bayesring.data.observations import BLOCK_SIZE, MAX_BLOCKS, Observations, in_order, mode_views
from bayesring.model.ring import ring_order


@st.composite
def observations(draw):
    order = draw(st.integers(2, 5))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=order, max_size=order)))
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    coords = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    return Observations(coords, rng.integers(0, 5, n).astype(float), shape)


def rows_of(blocks, mode, order):
    """The observations of a view as rows (coordinates in mode order, value)."""
    rows = []
    for block in blocks:
        columns = np.empty((len(block.values), order + 1))
        columns[:, mode] = block.own
        columns[:, ring_order(mode, order)] = block.others[:, block.bounds[0] : block.bounds[-1]].T
        columns[:, order] = block.values
        rows.append(columns)
    return np.concatenate(rows)


@given(observations(), st.integers(1, 20))
def test_every_view_holds_every_observation_once(data, block_size):
    order = len(data.shape)
    expected = np.column_stack([data.coords, data.values])
    expected = expected[np.lexsort(expected.T[::-1])]
    for mode, blocks in enumerate(mode_views(data, block_size)):
        rows = rows_of(blocks, mode, order)
        np.testing.assert_array_equal(rows[np.lexsort(rows.T[::-1])], expected)


@given(observations(), st.integers(1, 20))
def test_blocks_cover_the_slices_in_order(data, block_size):
    for mode, blocks in enumerate(mode_views(data, block_size)):
        assert [block.number for block in blocks] == list(range(len(blocks)))
        covered = []
        for block in blocks:
            slices = range(block.first, block.first + len(block.bounds) - 1)
            assert block.bounds[-1] - block.bounds[0] == len(block.values)
            if block.is_part:
                assert len(slices) == 1
                covered += [block.first] if covered[-1:] != [block.first] else []
            else:
                covered += list(slices)
        assert covered == list(range(data.shape[mode]))


@given(observations(), st.integers(0, 2**32 - 1))
def test_order_of_arrival_does_not_matter(data, seed):
    shuffle = np.random.default_rng(seed).permutation(len(data.values))
    other = Observations(data.coords[shuffle], data.values[shuffle], data.shape)
    for one, two in zip(mode_views(data, 7), mode_views(other, 7), strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.others, b.others)
            np.testing.assert_array_equal(a.values, b.values)


@pytest.mark.parametrize("sizes", [(2, 200_000), (200_000, 2), (700, 700)])
def test_blocks_have_about_equal_numbers_of_observations(rng, sizes):
    n = 100_000
    coords = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    for blocks in mode_views(Observations(coords, np.zeros(n), sizes)):
        assert 1 < len(blocks) <= MAX_BLOCKS
        assert max(len(block.values) for block in blocks) <= 1.5 * BLOCK_SIZE


@given(observations())
def test_sorted_data_are_those_of_numpy_in_standard_units(data):
    found = in_order(data._replace(location=1.0, scale=2.0))
    keys = (data.values, *(data.coords[:, mode] for mode in reversed(range(len(data.shape)))))
    order = np.lexsort(keys)
    np.testing.assert_array_equal(found.coords, data.coords[order])
    np.testing.assert_array_equal(found.values, (data.values[order] - 1.0) / 2.0)
    assert in_order(found) is found


def test_large_data_are_kept_small(rng, monkeypatch):
    """40 bytes per observation for three modes, and nothing twice."""
    monkeypatch.setattr(module, "COMPACT", 1000)
    n = 1000
    coords = np.stack([rng.integers(0, size, n) for size in (10, 20, 30)], axis=1)
    data = in_order(Observations(coords, rng.standard_normal(n), (10, 20, 30)))
    views = mode_views(data)
    assert views[0][0].others.base is data.coords.base
    others = sum(view[0].others.nbytes + view[0].values.nbytes for view in views)
    assert others + data.coords[:, 0].nbytes == 40 * n
