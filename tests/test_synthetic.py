"""Generators: noise, missing cells, values and seeds as asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from bayesring.datasets import make_cp, make_ring

MAKERS = [make_ring, make_cp]
SHAPE = (12, 11, 10, 9)


def all_cells(shape):
    return np.indices(shape).reshape(len(shape), -1).T


@pytest.mark.parametrize("make", MAKERS)
def test_entries_are_standardised_over_the_whole_tensor(make):
    entries = make(SHAPE, 3, seed=4).entries(all_cells(SHAPE))
    assert abs(entries.mean()) < 1e-12
    assert entries.std() == pytest.approx(1.0)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("snr", "missing"), [(10, 0.3), (25, 0.9)])
def test_noise_and_missing_cells_are_as_asked(make, snr, missing):
    found = make(SHAPE, 3, snr=snr, missing=missing, seed=1)
    seen = found.observations
    n = round((1 - missing) * np.prod(SHAPE))
    assert len(np.unique(seen.coords, axis=0)) == len(seen.values) == n
    noise = seen.values - found.entries(seen.coords)
    assert noise.std() == pytest.approx(10 ** (-snr / 20), rel=4 / np.sqrt(2 * n))
    hidden = found.hidden()
    assert len(hidden.values) == np.prod(SHAPE) - n
    np.testing.assert_allclose(hidden.values, found.entries(hidden.coords))


@pytest.mark.parametrize("make", MAKERS)
def test_without_noise_values_are_the_entries(make):
    found = make((5, 6, 7), 2, seed=3)
    assert len(found.observations.values) == 210
    np.testing.assert_array_equal(
        found.observations.values, found.entries(found.observations.coords)
    )


@pytest.mark.parametrize("make", MAKERS)
def test_binary_values_follow_the_log_odds(make):
    found = make((30, 30, 30), 2, snr=10, missing=0.2, binary=True, seed=2)
    seen = found.observations
    assert set(np.unique(seen.values)) == {0.0, 1.0}
    log_odds = found.entries(seen.coords)
    assert log_odds.std() == pytest.approx(np.sqrt(10), rel=0.05)
    p = expit(log_odds)
    z = np.sum(seen.values - p) / np.sqrt(np.sum(p * (1 - p)))
    assert abs(z) < 4
    hidden = found.hidden().values
    assert ((hidden > 0) & (hidden < 1)).all()


@pytest.mark.parametrize("make", MAKERS)
def test_one_seed_one_tensor(make):
    one, same, other = (make((5, 6, 7), 2, snr=10, missing=0.5, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.observations.values, same.observations.values)
    np.testing.assert_array_equal(one.observations.coords, same.observations.coords)
    assert not np.array_equal(one.observations.values, other.observations.values)


def test_ranks_per_bond_and_tensors_larger_than_memory():
    found = make_ring((2000, 3000, 4000, 5000), (1, 2, 3, 2), missing=1 - 1e-10, seed=0)
    assert found.rank == (1, 2, 3, 2)
    assert len(found.observations.values) == 12_000
    with pytest.raises(ValueError, match="too large to list"):
        found.hidden()


def test_nothing_left_is_refused():
    with pytest.raises(ValueError, match="missing must be at least 0 and below 1, got 1"):
        make_ring((3, 3), 1, missing=1)
    with pytest.raises(ValueError, match="no cell of"):
        make_cp((3, 3), 1, missing=0.99)
