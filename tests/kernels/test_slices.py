"""The slice kernel against its specification in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.kernels import slices as kernel
from bayesring.model import ring
from bayesring.model.types import RingSize
from tests.models import random_coords

CASES = [
    ((3, 4), RingSize(1, (2, 3))),
    ((3, 4), RingSize(3, (2, 1))),
    ((3, 1, 4), RingSize(1, (2, 3, 1))),
    ((3, 2, 4), RingSize(4, (2, 2, 2))),
    ((3, 2, 4), RingSize(5, (1, 1, 1))),
    ((2, 3, 2, 2), RingSize(1, (3, 1, 2, 4))),
    ((2, 3, 2, 2), RingSize(2, (3, 1, 2, 4))),
    ((2, 3, 2, 2), RingSize(3, (2, 2, 2, 2))),
    ((2, 3, 2, 2), RingSize(9, (1, 1, 1, 1))),
    ((2, 2, 2, 2, 2), RingSize(1, (2, 3, 2, 1, 2))),
    ((2, 2, 2, 1, 2, 2), RingSize(1, (1, 2, 1, 2, 2, 1))),
    ((4, 3, 3), RingSize(1, (5, 5, 5))),
    ((3, 2, 3), RingSize(1, (7, 7, 7))),
    ((3, 2, 3), RingSize(1, (8, 8, 8))),
    ((3, 2, 3), RingSize(1, (4, 3, 6))),
]


def problem(rng, shape, ring_size, mode, n):
    """Inputs of the kernel, observations sorted by the mode's index; the last slice is empty."""
    order = len(shape)
    cores = [rng.standard_normal(ring_size.core_shape(d, shape[d])) for d in range(order)]
    weights = rng.standard_normal(ring_size.strands * ring_size.bonds[mode])
    coords = random_coords(rng, shape, n)
    coords[:, mode] = np.minimum(coords[:, mode], max(shape[mode] - 2, 0))
    coords = coords[np.argsort(coords[:, mode], kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(coords[:, mode], minlength=shape[mode]))])
    others = np.ascontiguousarray(coords[:, ring.ring_order(mode, order)].T, dtype=np.int32)
    weight, shift = rng.gamma(2.0, size=n), rng.standard_normal(n)
    size = cores[mode][0].size
    root = rng.standard_normal((size, size))
    prior = (root @ root.T + np.eye(size), rng.gamma(1.0, size=(1, size)), np.ones((1, size)))
    prior = (*prior, np.ones(1))
    return cores, weights, coords, bounds, others, weight, shift, prior


def expected_terms(cores, weights, mode, coords, weight, shift, prior, rows):
    features = ring.features(cores, weights.reshape(cores[mode].shape[1::2]), mode, coords[rows])
    precision = prior[0] + np.diag(prior[1][0])
    precision = precision + (features.T * weight[rows]) @ features
    return precision, prior[2][0] + features.T @ shift[rows]


@pytest.mark.parametrize(("shape", "ring_size"), CASES)
@pytest.mark.parametrize("n", [1, 40, 700])
def test_draws_have_the_conditional_mean_and_covariance(rng, shape, ring_size, n):
    """Zero noise gives the mean; unit vectors give the columns of the root of the covariance."""
    for mode in range(len(shape)):
        cores, weights, coords, bounds, others, weight, shift, prior = problem(
            rng, shape, ring_size, mode, n
        )
        size = cores[mode][0].size

        def draw(noise, mode=mode, cores=cores):
            return kernel.draw_slices(
                *ring.flatten(cores),
                mode,
                others,
                bounds,
                weight,
                shift,
                weights,
                *prior,
                np.tile(noise, (shape[mode], 1)),
            )[0]

        means = draw(np.zeros(size))
        roots = np.stack([draw(unit) - means for unit in np.eye(size)], axis=2)
        for i in range(shape[mode]):
            rows = slice(bounds[i], bounds[i + 1])
            precision, linear = expected_terms(
                cores, weights, mode, coords, weight, shift, prior, rows
            )
            covariance = np.linalg.inv(precision)
            np.testing.assert_allclose(means[i], covariance @ linear, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(roots[i] @ roots[i].T, covariance, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("shape", "ring_size"), CASES)
def test_weight_statistics_follow_from_slice_statistics(rng, shape, ring_size):
    """No second pass over the data: sums of w a a' and s a equal those of the definition."""
    for mode in range(len(shape)):
        cores, weights, coords, bounds, others, weight, shift, prior = problem(
            rng, shape, ring_size, mode, 60
        )
        noise = rng.standard_normal((shape[mode], cores[mode][0].size))
        slices, precision, linear = kernel.draw_slices(
            *ring.flatten(cores), mode, others, bounds, weight, shift, weights, *prior, noise
        )
        core = slices.reshape(cores[mode].shape)
        a = ring.weight_features(cores, core, mode, coords)
        np.testing.assert_allclose(precision, (a.T * weight) @ a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(linear, a.T @ shift, rtol=1e-9, atol=1e-9)


SINGLES = {8: RingSize(2, (2, 3, 2)), 9: RingSize(1, (3, 3, 3)), 20: RingSize(5, (2, 2, 2))}
"""By the number of entries of a slice: a panel of eight, one more, and two and a half."""


@pytest.mark.parametrize(
    ("entries", "dtype"),
    [
        (8, "float64"),
        (9, "float64"),
        (20, "float64"),
        pytest.param(20, "float32", marks=pytest.mark.ci),
    ],
)
def test_single_observations_are_drawn_as_any_others(rng, entries, dtype):
    """Many labels with one observation each: the same Gaussian as by a factor of each slice.

    Mean and covariance follow from draws with no noise and with unit noise. Among them are slices
    without and with more observations.
    """
    counts = np.ones(kernel.MANY + 60, dtype=int)
    counts[[0, 7, 8, 100, -2, -1]] = 0, 3, 2, 0, 5, 0
    counts[120:200] = 0  # over two tiles of observations
    shape, ring_size = (len(counts), 4, 5), SINGLES[entries]
    cores, weights, *_, prior = problem(rng, shape, ring_size, 0, 10)
    prior = (*prior[:3], np.array([2.5]))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    n, size = int(bounds[-1]), cores[0][0].size
    others = np.stack([rng.integers(0, each, n) for each in shape[1:]]).astype(np.int32)
    weight, shift = rng.gamma(2.0, size=n), rng.standard_normal(n)
    flat = ring.flatten(cores, dtype)

    def draw(first, last, noise):
        cut = slice(bounds[first], bounds[last])
        own = np.ascontiguousarray(others[:, cut]), bounds[first : last + 1] - cut.start
        return kernel.draw_slices(
            *flat, 0, *own, weight[cut], shift[cut], weights, *prior, noise[first:last]
        )

    def both(noise):
        middle = kernel.MANY // 2
        parts = [draw(0, middle, noise), draw(middle, 2 * middle - 10, noise)]
        parts.append(draw(2 * middle - 10, len(counts), noise))
        return draw(0, len(counts), noise), [np.concatenate([each[0] for each in parts])]

    near = {"rtol": 1e-8, "atol": 1e-8} if dtype == "float64" else {"rtol": 1e-3, "atol": 1e-4}
    nothing = np.zeros((len(counts), size))
    together, apart = both(nothing)
    np.testing.assert_allclose(together[0], apart[0], **near)
    roots = [np.empty((len(counts), size, size)) for _ in range(2)]
    for k in range(size):
        unit = nothing.copy()
        unit[:, k] = 1.0
        moved = both(unit)
        roots[0][:, :, k] = moved[0][0] - together[0]
        roots[1][:, :, k] = moved[1][0] - apart[0]
    spread = [root @ root.swapaxes(1, 2) for root in roots]
    np.testing.assert_allclose(spread[0], spread[1], **near)
    assert not np.allclose(roots[0][20], roots[1][20])  # it was another way
    several = counts > 1
    assert np.array_equal(together[0][several], apart[0][several])
    if dtype == "float64":
        coords = np.stack([np.repeat(np.arange(len(counts)), counts), *others], axis=1)
        a = ring.weight_features(cores, together[0].reshape(cores[0].shape), 0, coords)
        np.testing.assert_allclose(together[1], (a.T * weight) @ a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(together[2], a.T @ shift, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.7e308], ids=["nan", "inf", "overflow"])
def test_single_observations_that_cannot_be_drawn_are_not_numbers(rng, wrong):
    """The slice of such an observation, and no other, and sums leave it out.

    Without noise and with a prior mean of zero, nothing but 1 + w q'q overflows.
    """
    shape = (kernel.MANY + 9, 4, 5)
    cores, weights, *_, prior = problem(rng, shape, SINGLES[20], 0, 10)
    n = shape[0]
    others = np.stack([rng.integers(0, each, n) for each in shape[1:]]).astype(np.int32)
    weight, shift = rng.gamma(2.0, size=n), rng.standard_normal(n)
    noise, prior = rng.standard_normal((n, 20)), (*prior[:2], np.zeros((1, 20)), prior[3])
    noise[40] = 0.0
    given = *ring.flatten(cores), 0, others, np.arange(n + 1)
    right, *_ = kernel.draw_slices(*given, weight, shift, weights, *prior, noise)
    assert np.isfinite(right).all()
    weight[40] = wrong
    found, precision, linear = kernel.draw_slices(*given, weight, shift, weights, *prior, noise)
    assert np.isnan(found[40]).all()
    rest = np.arange(n) != 40
    assert np.array_equal(found[rest], right[rest])
    assert np.isfinite(precision).all()
    assert np.isfinite(linear).all()


def test_slices_may_have_a_prior_of_their_own_each(rng):
    """Factors, diagonals and linear terms, one row per slice, as if each slice were alone."""
    shape, mode = (5, 4, 3), 0
    cores, weights, _, bounds, others, weight, shift, prior = problem(
        rng, shape, RingSize(2, (2, 3, 2)), mode, 80
    )
    size = cores[mode][0].size
    diagonal, linear = rng.gamma(1.0, size=(5, size)), rng.standard_normal((5, size))
    factors, noise = rng.gamma(2.0, size=5), rng.standard_normal((5, size))
    flat = ring.flatten(cores)

    def draw(slices, *own):
        cut = slice(bounds[slices.start], bounds[slices.stop])
        return kernel.draw_slices(
            *flat,
            mode,
            np.ascontiguousarray(others[:, cut]),
            bounds[slices.start : slices.stop + 1] - cut.start,
            weight[cut],
            shift[cut],
            weights,
            *own,
            noise[slices],
        )

    together = draw(slice(0, 5), prior[0], diagonal, linear, factors)
    alone = [
        draw(slice(i, i + 1), factors[i] * prior[0], diagonal[[i]], linear[[i]], np.ones(1))
        for i in range(5)
    ]
    np.testing.assert_allclose(together[0], np.concatenate([each[0] for each in alone]), rtol=1e-9)
    for place in (1, 2):
        total = sum(each[place] for each in alone)
        np.testing.assert_allclose(together[place], total, rtol=1e-9, atol=1e-9)


def test_parts_of_a_slice_add_up_to_the_whole(rng):
    cores, weights, _, bounds, others, weight, shift, prior = problem(
        rng, (1, 4, 3), RingSize(2, (2, 3, 2)), 0, 500
    )
    flat, noise = ring.flatten(cores), rng.standard_normal((1, 8))
    whole = kernel.draw_slices(*flat, 0, others, bounds, weight, shift, weights, *prior, noise)
    statistics = [
        kernel.slice_statistics(
            *flat, 0, others, np.array(part), weight[slice(*part)], shift[slice(*part)]
        )
        for part in ((0, 130), (130, 131), (131, 500))
    ]
    precision, linear = np.zeros((4, 4)), np.zeros(4)
    drawn = kernel.draw_slice(sum(statistics), 2, weights, *prior[:3], noise[0], precision, linear)
    np.testing.assert_allclose(drawn, whole[0][0], rtol=1e-10)
    np.testing.assert_allclose(precision, whole[1], rtol=1e-10)
    np.testing.assert_allclose(linear, whole[2], rtol=1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_matrix_that_is_not_positive_definite_is_reported(bad):
    precision = np.diag([1.0, bad, 1.0])
    assert not kernel.draw_gaussian(precision, np.ones(3), np.zeros(3), np.empty(3))


def test_a_linear_term_that_is_not_finite_is_reported():
    linear = np.array([1.0, np.nan, 1.0])
    assert not kernel.draw_gaussian(np.eye(3), linear, np.zeros(3), np.empty(3))


@pytest.mark.ci
@pytest.mark.parametrize(("shape", "ring_size"), CASES)
def test_products_in_float32_give_the_draws_of_float64_to_its_precision(rng, shape, ring_size):
    for mode in range(len(shape)):
        cores, weights, _, bounds, others, weight, shift, prior = problem(
            rng, shape, ring_size, mode, 300
        )
        noise = rng.standard_normal((shape[mode], cores[mode][0].size))
        double, single = (
            kernel.draw_slices(
                *ring.flatten(cores, dtype),
                mode,
                others,
                bounds,
                weight,
                shift,
                weights,
                *prior,
                noise,
            )
            for dtype in ("float64", "float32")
        )
        for expected, found in zip(double, single, strict=True):
            scale = max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 25, 64, 100])
def test_draws_of_a_gaussian_are_those_of_numpy(rng, size):
    root = rng.standard_normal((size, size))
    precision, linear, noise = root @ root.T + np.eye(size), root[0].copy(), root[-1].copy()
    drawn = np.empty(size)
    assert kernel.draw_gaussian(precision, linear, noise, drawn)
    lower = np.linalg.cholesky(precision)
    expected = np.linalg.solve(lower.T, np.linalg.solve(lower, linear) + noise)
    np.testing.assert_allclose(drawn, expected, rtol=1e-8, atol=1e-9)
