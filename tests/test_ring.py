"""Algebra of the ring, by Hypothesis over orders, shapes and ranks."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring.kernels.entries import entries as entries_kernel
from bayesring.model import ring


@st.composite
def rings(draw, min_order=2, max_order=6):
    """Random weighted cores of any order, with any number of strands and any rank per bond."""
    order = draw(st.integers(min_order, max_order))
    shape = draw(st.lists(st.integers(1, 4), min_size=order, max_size=order))
    rank = draw(st.lists(st.integers(1, 4), min_size=order, max_size=order))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    strands = draw(st.integers(1, 3))
    return [rng.standard_normal((shape[d], strands, rank[d - 1], rank[d])) for d in range(order)]


def by_einsum(cores):
    """The tensor by one einsum: the definition, equation (1)."""
    order = len(cores)
    bonds, modes = string.ascii_lowercase[:order], string.ascii_uppercase[:order]
    terms = ",".join(modes[d] + "z" + bonds[d - 1] + bonds[d] for d in range(order))
    return np.einsum(f"{terms}->{modes}", *cores)


def all_coords(cores):
    shape = [len(core) for core in cores]
    return np.stack([index.ravel() for index in np.indices(shape)], axis=1)


@given(rings())
def test_entries_and_dense_equal_einsum(cores):
    expected = by_einsum(cores)
    np.testing.assert_allclose(
        ring.entries(cores, all_coords(cores)), expected.ravel(), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(ring.dense(cores), expected, rtol=1e-10, atol=1e-10)


@given(rings(), st.data())
def test_entries_kernel_equals_its_twin_from_every_mode(cores, data):
    mode = data.draw(st.integers(0, len(cores) - 1))
    coords = all_coords(cores)
    columns = np.ascontiguousarray(coords.T, dtype=np.int32)
    others = columns[ring.ring_order(mode, len(cores))]
    fitted = entries_kernel(*ring.flatten(cores), mode, columns[mode], others)
    np.testing.assert_allclose(fitted, ring.entries(cores, coords), rtol=1e-12, atol=1e-12)


@given(rings(), st.integers(0, 7))
def test_turning_the_ring_rotates_the_modes(cores, steps):
    order = len(cores)
    axes = [(mode + steps) % order for mode in range(order)]
    np.testing.assert_allclose(
        ring.dense(ring.turn(cores, steps)),
        ring.dense(cores).transpose(axes),
        rtol=1e-10,
        atol=1e-10,
    )


@given(rings(), st.data())
def test_gauge_moves_change_no_entry(cores, data):
    bond = data.draw(st.integers(0, len(cores) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    strands, size = cores[bond].shape[1], cores[bond].shape[3]
    matrix = np.linalg.qr(rng.standard_normal((strands, size, size)))[0]
    matrix = matrix * rng.uniform(0.5, 2, size)
    np.testing.assert_allclose(
        ring.dense(ring.change_gauge(cores, bond, matrix)),
        ring.dense(cores),
        rtol=1e-8,
        atol=1e-8,
    )


@given(rings(min_order=2, max_order=2))
def test_order_two_is_a_matrix_of_rank_at_most_the_product_of_bonds(cores):
    left = cores[0].reshape(len(cores[0]), -1)
    right = np.swapaxes(cores[1], 2, 3).reshape(len(cores[1]), -1)
    np.testing.assert_allclose(ring.dense(cores), left @ right.T, rtol=1e-10, atol=1e-10)


@given(rings())
def test_rank_one_is_an_outer_product(cores):
    vectors = [core[:, :1, :1, :1] for core in cores]
    expected = np.ones(())
    for vector in vectors:
        expected = np.multiply.outer(expected, vector.ravel())
    np.testing.assert_allclose(ring.dense(vectors), expected, rtol=1e-12)


@given(rings(), st.data())
def test_features_are_linear_in_slice_and_weights(cores, data):
    """f_n = c_n . vec G[i] = a_n . lambda: equations (3) and (7), at every mode."""
    mode = data.draw(st.integers(0, len(cores) - 1))
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(core.shape[1::2]) for core in cores]
    folded = ring.weighted(cores, weights)
    coords = all_coords(cores)
    f = ring.entries(folded, coords)
    c = ring.features(folded, weights[mode], mode, coords)
    slices = cores[mode].reshape(len(cores[mode]), -1)[coords[:, mode]]
    np.testing.assert_allclose(np.sum(c * slices, axis=1), f, rtol=1e-9, atol=1e-9)
    a = ring.weight_features(folded, cores[mode], mode, coords)
    np.testing.assert_allclose(a @ weights[mode].ravel(), f, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ((2, 3), "rank has 2 numbers, but the data have 3 modes"),
        (0, "rank must be made of integers of at least 1, got 0"),
        ((2, -1, 2), "rank must be made of integers of at least 1"),
        ((2, 2.5, 2), "rank must be made of integers of at least 1"),
    ],
)
def test_wrong_ranks_are_refused(rank, message):
    with pytest.raises(ValueError, match=message):
        ring.expand_rank(rank, 3)


@given(rings())
def test_weights_can_be_taken_out_again(cores):
    """But for those that are zero, which leave nothing behind."""
    for core in cores:
        weights = np.linspace(-2.0, 1e-30, core[0, :, 0].size).reshape(core.shape[1], -1)
        (laden,) = ring.weighted([core], [weights])
        np.testing.assert_allclose(ring.unweighted(laden, weights), core, rtol=1e-12)
        assert not np.any(ring.unweighted(0 * laden, 0 * weights))
