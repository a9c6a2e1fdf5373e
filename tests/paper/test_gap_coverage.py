"""Cells are hidden as the names of the patterns say, and rows are judged by their own limits."""

from __future__ import annotations

import numpy as np
import pytest

from paper import gap_coverage
from paper.gap_coverage import OF_DAYS, GapJob, jobs, lines

SHAPE = (40, 30, 12)
COORDS = np.argwhere(np.ones(SHAPE, dtype=bool))


@pytest.fixture
def hidden(rng, request):
    hide, _ = OF_DAYS[request.param]
    return hide(rng, COORDS, SHAPE).reshape(SHAPE)


@pytest.mark.parametrize("hidden", ["single cells"], indirect=True)
def test_single_cells(hidden):
    assert 0.27 < hidden.mean() < 0.33
    assert np.ptp(hidden.mean(axis=(1, 2))) < 0.2


@pytest.mark.parametrize("hidden", ["whole days of a series"], indirect=True)
def test_whole_days(hidden):
    assert 0.25 < hidden.mean() < 0.35
    assert np.array_equal(hidden.all(axis=2), hidden.any(axis=2))


@pytest.mark.parametrize("hidden", ["some hours of all series"], indirect=True)
def test_some_hours(hidden):
    assert np.array_equal(hidden.all(axis=0), hidden.any(axis=0))
    slots = hidden[0].sum(axis=1)
    assert set(slots) == {0, 4}
    assert np.all(np.abs(np.diff(hidden[0].astype(int), axis=1)).sum(axis=1) <= 2)


@pytest.mark.parametrize("hidden", ["a series after some day"], indirect=True)
def test_for_good(hidden):
    days = hidden.any(axis=2)
    assert not days[:, :15].any()
    assert np.all(np.diff(days.astype(int), axis=1) >= 0)
    assert 0 < days.any(axis=1).sum() < 20


@pytest.mark.parametrize("hidden", ["the first and last days"], indirect=True)
def test_both_ends(hidden):
    days = hidden.all(axis=(0, 2))
    assert np.array_equal(days, hidden.any(axis=(0, 2)))
    assert days[[0, -1]].all()
    assert not days[5:-5].any()


def test_stripes_are_four_rows_of_one_band(rng):
    hidden = gap_coverage.stripes(rng, COORDS, SHAPE, 0, 2).reshape(SHAPE)
    assert np.array_equal(hidden.all(axis=1), hidden.any(axis=1))
    assert np.all(hidden.any(axis=1).sum(axis=0) >= 4)
    assert not np.array_equal(hidden[:, 0, 0], hidden[:, 0, 1])


def test_rows_are_means_and_have_limits_of_their_own():
    row = {"RMSE": 2.0, "RMSE of main effects": 4.0}
    known = {
        GapJob("Birmingham", pattern, mask): row | {"coverage": share}
        for pattern, shares in (
            ("single cells", (0.93, 0.95)),
            ("the first and last days", (0.95,)),
        )
        for mask, share in enumerate(shares)
    }
    found = lines(known).splitlines()
    assert found[2] == "| Birmingham | single cells | 2 | 94.0% | 93.0% to 95.0% | off | 2 | 4 |"
    assert "| 95.0% | 95.0% to 95.0% |  | 2 | 4 |" in found[3]
    assert len(found) == 4


def test_masks_come_one_after_the_other():
    found = list(jobs(2))
    assert len({*found}) == len(found) == 24
    assert [job.mask for job in found] == [0] * 12 + [1] * 12
