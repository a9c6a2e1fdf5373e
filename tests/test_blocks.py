"""Blocks of slices: every observation once, in an order of their own, each block by itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring.data import observations as module
from bayesring.data.blocks import BLOCK_SIZE, MAX_BLOCKS, Block, blocks_of_modes, observations_of
from bayesring.data.observations import Observations, in_order
from bayesring.model.ring import ring_order
from bayesring.model.types import Given
from tests.models import observations, same_observations, tagged


def rows_of(blocks, mode, order):
    """The observations of a view as rows (coordinates in mode order, value)."""
    rows = []
    for block in blocks:
        columns = np.empty((len(block.values), order + 1))
        columns[:, mode] = block.own
        columns[:, ring_order(mode, order)] = block.others.T
        columns[:, order] = block.values
        rows.append(columns)
    return np.concatenate(rows)


@given(observations(), st.integers(1, 20))
def test_every_view_holds_every_observation_once(data, block_size):
    order = len(data.shape)
    expected = np.column_stack([data.coords, data.values])
    expected = expected[np.lexsort(expected.T[::-1])]
    for mode, blocks in enumerate(blocks_of_modes(data, block_size)):
        rows = rows_of(blocks, mode, order)
        np.testing.assert_array_equal(rows[np.lexsort(rows.T[::-1])], expected)


@given(observations(), st.integers(1, 20))
def test_blocks_cover_the_slices_in_order(data, block_size):
    for mode, blocks in enumerate(blocks_of_modes(data, block_size)):
        assert [block.number for block in blocks] == list(range(len(blocks)))
        covered = []
        for block in blocks:
            slices = range(block.first, block.first + len(block.bounds) - 1)
            assert block.slices == slice(slices.start, slices.stop)
            assert (block.bounds[0], block.bounds[-1]) == (0, len(block.values))
            assert block.others.shape == (len(data.shape) - 1, len(block.values))
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
    for one, two in zip(blocks_of_modes(data, 7), blocks_of_modes(other, 7), strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a.others, b.others)
            np.testing.assert_array_equal(a.values, b.values)


@pytest.mark.parametrize("sizes", [(2, 200_000), (200_000, 2), (700, 700)])
def test_blocks_have_about_equal_numbers_of_observations(rng, sizes):
    n = 100_000
    coords = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    for blocks in blocks_of_modes(Observations(coords, np.zeros(n), sizes)):
        assert 1 < len(blocks) <= MAX_BLOCKS
        assert max(len(block.values) for block in blocks) <= 1.5 * BLOCK_SIZE


def test_large_data_are_kept_small(rng, monkeypatch):
    """36 bytes per observation for three modes; the data they were made of may go."""
    monkeypatch.setattr(module, "COMPACT", 1000)
    n = 1000
    coords = np.stack([rng.integers(0, size, n) for size in (10, 20, 30)], axis=1)
    data = in_order(Observations(coords, rng.standard_normal(n), (10, 20, 30)))
    views = blocks_of_modes(data)
    others = sum(view[0].others.nbytes + view[0].values.nbytes for view in views)
    assert others == 36 * n
    assert not any(np.shares_memory(view[0].others, data.coords) for view in views)


CARRIED = [
    (),
    ("weight",),
    ("offset",),
    ("exposure",),
    ("weight", "offset", "exposure"),
]


@pytest.mark.parametrize("carried", CARRIED, ids="+".join)
@pytest.mark.parametrize("block_size", [20, 200, None])
def test_blocks_of_the_first_mode_give_back_the_sorted_data(rng, carried, block_size):
    data = tagged(rng, (3, 40, 30), 600, carried)
    for cut_slices in (True, False):
        blocks = blocks_of_modes(data, block_size, cut_slices)[0]
        same_observations(observations_of(blocks, data.shape), in_order(data))


@pytest.mark.parametrize("compact", [1, 10**9])
def test_the_data_come_back_in_their_precision(rng, monkeypatch, compact):
    monkeypatch.setattr(module, "COMPACT", compact)
    data = tagged(rng, (3, 40, 30), 600, ("exposure",))
    found = observations_of(blocks_of_modes(data, 50)[0], data.shape)
    assert found.values.dtype == (np.float32 if compact == 1 else np.float64)
    same_observations(found, in_order(data))


@pytest.mark.parametrize("carried", CARRIED, ids="+".join)
def test_what_observations_carry_stays_with_them(rng, carried):
    """In every block of every mode, parts of slices included: the tag tells whose it is."""
    data = tagged(rng, (3, 40, 30), 600, ("exposure", *carried))
    order, seen = len(data.shape), []
    for mode, blocks in enumerate(blocks_of_modes(data, 50)):
        assert any(block.is_part for block in blocks) == (mode == 0)
        for block in blocks:
            rows = block.given.exposure.astype(int)
            seen.append(rows)
            np.testing.assert_array_equal(block.values, data.values[rows])
            np.testing.assert_array_equal(block.own, data.coords[rows, mode])
            np.testing.assert_array_equal(
                block.others, data.coords[rows][:, ring_order(mode, order)].T
            )
            for own, whole in zip(block.given, data.given, strict=True):
                assert (own is None) == (whole is None)
                if own is not None:
                    np.testing.assert_array_equal(own, whole[rows])
    np.testing.assert_array_equal(np.bincount(np.concatenate(seen)), np.full(600, order))


@pytest.mark.parametrize("carried", [(), ("weight", "exposure")], ids="+".join)
def test_a_block_is_sent_alone(rng, carried):
    """Pickled, it takes the bytes of its own observations; unpickled, it holds nothing else."""
    data = tagged(rng, (50, 40, 30), 20_000, carried)
    for blocks in blocks_of_modes(data, 500):
        assert len(blocks) > 20
        for block in blocks:
            own = [block.bounds, block.others, block.values, *filter(holds, block.given)]
            sent = pickle.dumps(block)
            assert len(sent) < sum(array.nbytes for array in own) + 2_000
            received = pickle.loads(sent)
            assert isinstance(received, Block)
            assert (received.mode, received.number, received.first, received.is_part) == (
                block.mode,
                block.number,
                block.first,
                block.is_part,
            )
            arrived = [
                received.bounds,
                received.others,
                received.values,
                *filter(holds, received.given),
            ]
            for one, two in zip(own, arrived, strict=True):
                np.testing.assert_array_equal(one, two)
                assert two.dtype == one.dtype
                assert two.base is None or memoryview(two.base).nbytes <= one.nbytes


def holds(array):
    return array is not None


def test_rows_of_given_are_taken_together():
    assert Given().is_empty
    assert Given().at(slice(0, 1)).is_empty
    given = Given(weight=np.arange(3.0), exposure=np.arange(3.0) + 10)
    assert not given.is_empty
    for rows in (slice(1, 3), np.array([1, 2]), np.array([False, True, True])):
        found = given.at(rows)
        assert found.offset is None
        np.testing.assert_array_equal(found.weight, [1.0, 2.0])
        np.testing.assert_array_equal(found.exposure, [11.0, 12.0])
