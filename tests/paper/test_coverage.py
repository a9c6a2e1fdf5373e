"""The runner of simulated tables goes on where it stopped, and its tables are what they say."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from paper import coverage
from paper.simulated_tables import CASES, SHAPES, draw_table

FOUND = {
    "50%": 0.51,
    "90%": 0.9,
    "99%": 0.985,
    "width 90%": 1.0,
    "trivial width": 3.0,
    "RMSE": 0.4,
    "RMSE of the mean": 1.0,
}


def test_what_is_there_is_not_worked_out_again(tmp_path, monkeypatch):
    asked = []

    def measure(job):
        asked.append(job)
        return FOUND

    monkeypatch.setattr(coverage, "measure", measure)
    path = tmp_path / "coverage.json"
    coverage.run(path, islice(coverage.jobs(2, 0), 7))
    known = coverage.run(path, coverage.jobs(2, 0))
    assert len(asked) == len(set(asked)) == len(known) == 2 * 4 * 5 * 2
    assert coverage.read(path) == known
    assert len(list(coverage.jobs(2, 1))) == 2 * 4 * 5 * 2 + 10


def test_the_table_marks_what_is_off():
    rows = {}
    for seed in range(4):
        for each, half in zip(coverage.INFERENCES, (0.51, 0.54), strict=True):
            job = coverage.CoverageJob("normal noise", 600, each, seed)
            rows[job] = FOUND | {"50%": half + 0.001 * seed}
    _, _, right, wrong = coverage.table(rows).splitlines()
    assert "off" not in right
    assert "| 54.1% | 90.0% | 98.5% | off |" in wrong
    few = dict(list(rows.items())[1:2])
    assert "| 54.0% | 90.0% | 98.5% | open |" in coverage.table(few)


@pytest.mark.parametrize("case", CASES)
def test_tables_have_the_cells_they_promise(case):
    table, again = draw_table(case, 600, 3), draw_table(case, 600, 3)
    np.testing.assert_array_equal(table.values, again.values)
    known = {tuple(cell) for cell in table.coords}
    assert len(known) == 600
    assert not known & {tuple(cell) for cell in table.hidden}
    assert len(table.hidden) == np.prod(SHAPES[600]) - 600
    if table.tosses is not None:
        assert 0.02 < table.values.mean() < 0.2
        assert np.all((table.truth > 0) & (table.truth < 1))
    counts = np.bincount(table.coords[:, 0], minlength=SHAPES[600][0])
    assert (counts[0] > 3 * counts[-1]) == (case == "skewed missingness")


def test_calibration_error(rng):
    chances = rng.random(20_000)
    tosses = (rng.random(20_000) < chances) * 1.0
    assert coverage.calibration_error(chances, tosses) < 0.02
    assert coverage.calibration_error(0.5 * chances, tosses) == pytest.approx(0.25, abs=0.02)
