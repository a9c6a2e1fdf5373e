"""The numbers behind the pictures against direct computation."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from scipy.stats import t

from bayesring.data.observations import HeldOut, Observations
from bayesring.likelihoods import Gaussian
from bayesring.report import cells, summary
from bayesring.report.svg import number, percent, ticks
from tests.report.conftest import SHAPE


def full_mask(observed):
    mask = np.zeros(observed.shape, dtype=bool)
    mask[tuple(observed.coords.T)] = True
    return mask


def test_density_counts_each_cell_once(real_ring):
    mask = full_mask(real_ring.observed_)
    known = summary.distinct_cells(real_ring.observed_)
    assert len(known) < real_ring.n_observations_
    found = summary.density(known, SHAPE)
    assert found.n_cells == mask.sum()
    assert found.share == mask.mean()
    for mode, shares in enumerate(found.by_mode):
        others = tuple(other for other in range(3) if other != mode)
        np.testing.assert_allclose(shares, mask.mean(axis=others))


@pytest.mark.parametrize("most", [3, 100])
def test_pair_density_is_the_mean_over_bins(real_ring, most):
    known = summary.distinct_cells(real_ring.observed_)
    mask = full_mask(real_ring.observed_)
    found = summary.pair_density(known, SHAPE, (1, 2), most)
    rows, columns = (
        np.arange(SHAPE[mode]) * min(SHAPE[mode], most) // SHAPE[mode] for mode in (1, 2)
    )
    assert found.shape == (min(12, most), min(9, most))
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            inside = mask[:, rows == i][:, :, columns == j]
            assert found[i, j] == pytest.approx(inside.mean())


def test_a_part_is_what_predict_says(ring):
    levels = [np.array([0, 3]), np.array([1, 5, 11]), np.array([2])]
    noise = not ring.posterior_.likelihood.binary
    found = cells.part(ring.posterior_, ring.observed_, levels, noise)
    grid = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1)
    mean, deviation = ring.predict(grid.reshape(-1, 3), return_std=True, noise=noise)
    np.testing.assert_allclose(found.mean.ravel(), mean)
    np.testing.assert_allclose(found.deviation.ravel(), deviation)


def test_a_part_shows_observed_values_and_means_of_repeated_ones():
    coords = np.array([[0, 1], [0, 1], [2, 0], [1, 1]])
    observed = Observations(coords, np.array([1.0, 4.0, 7.0, 9.0]), (3, 2))
    found = cells._spread(observed, [np.array([0, 2]), np.array([0, 1])])
    np.testing.assert_array_equal(found, [[np.nan, 2.5], [7.0, np.nan]])


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((17, 125, 156), (1, 2)), ((145, 145, 200), (0, 1)), ((9, 4, 3, 7), (0, 3)), ((8, 5), (0, 1))],
)
def test_slices_show_pictures_or_the_longest_modes(shape, axes):
    assert cells.default_axes(shape) == axes


@pytest.mark.parametrize(
    "shape", [(17, 125, 156), (145, 145, 200), (10_000, 200, 10_000), (40, 30, 50, 60), (10**6, 3)]
)
def test_parts_stay_within_the_budget(shape):
    sizes = cells.part_sizes(shape, 350_000)
    assert prod(sizes) <= 350_000
    assert all(1 <= n <= size for n, size in zip(sizes, shape, strict=True))
    if prod(shape) <= 350_000:
        assert sizes == shape
    else:
        assert prod(sizes) > 200_000


def test_levels_are_even_or_where_the_data_are():
    np.testing.assert_array_equal(cells.choose_levels(np.full(9, 7), 3), [0, 4, 8])
    np.testing.assert_array_equal(cells.choose_levels(np.array([0, 9, 0, 0, 5, 1]), 2), [1, 4])
    np.testing.assert_array_equal(cells.choose_levels(np.full(4, 7), 9), [0, 1, 2, 3])


def test_surprises_are_the_observations_furthest_off(real_ring):
    observed = real_ring.observed_
    found = cells.surprises(real_ring.posterior_, observed, False, 5, 0)
    mean, std = real_ring.predict(observed.coords, return_std=True)
    distance = (observed.values - mean) / std
    order = np.argsort(-np.abs(distance))[:5]
    np.testing.assert_array_equal(found.coords, observed.coords[order])
    np.testing.assert_allclose(found.distance, distance[order])
    assert found.n_searched == 200


def test_binary_surprises_had_the_smallest_probability(binary_ring):
    observed = binary_ring.observed_
    found = cells.surprises(binary_ring.posterior_, observed, True, 5, 0)
    one = binary_ring.predict(observed.coords)
    given = np.where(observed.values > 0.5, one, 1 - one)
    np.testing.assert_allclose(found.distance, np.sort(given)[:5])


def test_search_is_bounded_and_repeatable(real_ring, monkeypatch):
    monkeypatch.setattr(cells, "N_CANDIDATES", 50)
    observed, posterior = real_ring.observed_, real_ring.posterior_
    one, two = (cells.surprises(posterior, observed, False, 5, 3) for _ in range(2))
    assert one.n_searched == 50
    np.testing.assert_array_equal(one.coords, two.coords)
    assert cells.doubts(posterior, observed, 5, 3).n_searched <= 50


def test_doubts_are_what_suggest_suggests(ring):
    found = cells.doubts(ring.posterior_, ring.observed_, 4, ring.seed_)
    np.testing.assert_array_equal(found.coords, ring.suggest(4))
    mean, deviation = ring.predict(found.coords, return_std=True, noise=False)
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.deviation, deviation)
    assert not full_mask(ring.observed_)[tuple(found.coords.T)].any()


def test_likeness_correlates_predictions(real_ring):
    levels = np.arange(12)
    found = cells.likeness(real_ring.posterior_, 1, levels, 0)
    assert sorted(found.levels) == list(levels)
    tensor = np.moveaxis(real_ring.predict_tensor(), 1, 0).reshape(12, -1)
    whole = np.corrcoef(tensor)[np.ix_(found.levels, found.levels)]
    assert np.abs(found.correlation - whole).max() < 0.25, "200 random cells against all of them"
    np.testing.assert_array_equal(found.correlation, found.correlation.T)
    first, second, highest = found.closest(1)[0]
    assert highest == np.max(found.correlation - 2 * np.eye(12))
    assert found.correlation[first, second] == highest


def test_like_levels_come_to_stand_together():
    """Two kinds of levels in turn are parted into two blocks."""
    pattern = np.array([1, 0, 1, 0, 1, 0])
    correlation = np.where(pattern[:, None] == pattern, 0.9, -0.5)
    np.fill_diagonal(correlation, 1.0)
    order = pattern[cells._by_likeness(correlation)]
    assert np.sum(np.diff(order) != 0) == 1


def held_with_errors(errors):
    n = len(errors)
    return HeldOut(np.zeros((n, 3), int), 5 + 2 * errors, np.full(n, 5.0), np.full(n, 2.0))


def test_coverage_without_correction_counts_values_inside():
    errors = np.random.default_rng(0).standard_normal(999)
    found = summary.calibration(held_with_errors(errors), Gaussian(max_precision=1.0))
    inside = np.mean(np.abs(errors) <= 1.6448536)
    assert found.plain[np.isclose(found.nominal, 0.9)] == pytest.approx(inside)
    assert found.n == 999


def test_chance_explains_what_it_should():
    """Coverage of right 80 % intervals, measured on 50 values, is in the range 95 % of the time."""
    shares = np.random.default_rng(0).binomial(50, 0.8, 20_000) / 50
    low, high = summary.chance_range(np.array([0.8]), 50)
    assert np.mean((low <= shares) & (shares <= high)) == pytest.approx(0.95, abs=0.02)
    np.testing.assert_array_equal(summary.chance_range(np.array([0.0, 1.0]), 9), [[0, 1], [0, 1]])


def test_equal_ranks_are_set_apart(real_ring):
    found = summary.rank_paths(real_ring.trace_)[1]
    assert found.shape == (40, 3)
    np.testing.assert_allclose(found[-1], [1.94, 2.0, 2.06])
    np.testing.assert_array_equal(np.round(found), real_ring.trace_[1].rank)


def test_correction_learnt_on_one_half_mends_the_other():
    """Heavy tails: plain normal intervals cover too much, corrected ones what they say."""
    errors = t(3, scale=1 / np.sqrt(3)).rvs(6000, random_state=0)
    found = summary.calibration(held_with_errors(errors), Gaussian())
    assert np.max(np.abs(found.plain - found.nominal)) > 0.07
    assert np.max(np.abs(found.observed - found.nominal)) < 0.02
    assert found.at(0.9) == pytest.approx(0.9, abs=0.02)


def test_no_half_is_corrected_with_itself():
    """Small errors are inside intervals made for large ones at all levels, large ones never."""
    errors = np.tile([1.0, 3.0], 300) * np.linspace(0.97, 1.03, 600)
    found = summary.calibration(held_with_errors(errors), Gaussian())
    np.testing.assert_array_equal(found.observed, 0.5)


def test_reliability_bins():
    probability = np.array([0.02, 0.08, 0.55, 1.0])
    found = summary.reliability(np.array([0.0, 1.0, 1.0, 1.0]), probability)
    np.testing.assert_allclose(found.predicted, [0.05, 0.55, 1.0])
    np.testing.assert_allclose(found.observed, [0.5, 1.0, 1.0])
    np.testing.assert_array_equal(found.n, [2, 1, 1])
    assert np.all(found.lower < found.observed)
    assert np.all(found.lower < found.upper)


def test_held_out_scores_name_a_baseline(ring):
    scores = {
        score.name: score
        for score in summary.held_out_scores(ring.held_out_, ring.posterior_.likelihood.binary)
    }
    values, mean = ring.held_out_.values, ring.held_out_.mean
    if "log loss" in scores:
        right = np.mean((mean > 0.5) == values)
        assert scores["accuracy"].value == pytest.approx(right)
        assert scores["area under the curve"].baseline == 0.5
        assert scores["log loss"].value < scores["log loss"].baseline
    else:
        error = scores["root mean squared error"]
        assert error.value == pytest.approx(np.sqrt(np.mean((values - mean) ** 2)))
        assert error.baseline == pytest.approx(np.std(values))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.12345, "0.123"), (12345.6, "12,346"), (-3.0, "-3.00"), (2e-7, "2e-07")],
)
def test_numbers_are_written_to_three_figures(value, text):
    assert number(value) == text


def test_ticks_are_round_and_inside():
    assert [text for _, text in ticks(-0.07, 0.93)] == ["0.0", "0.2", "0.4", "0.6", "0.8"]
    assert [text for _, text in ticks(13011.0, 13990.0)] == ["13,200", "13,400", "13,600", "13,800"]
    assert percent(0.000138) == "0.0138 %"
