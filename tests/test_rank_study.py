"""The rank study: its data, and how it goes on after a stop."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.experiments import rank_study
from bayesring.experiments.rank_study import Run, RunResult, all_runs, error_map, run_study


def test_data_have_the_stated_noise_and_missing_cells(rng):
    tensor = rank_study.draw_tensor(rng, (10, 9, 8, 7), (3, 2, 3, 2))
    assert abs(tensor.mean()) < 1e-12
    assert tensor.std() == pytest.approx(1.0)
    data = rank_study.observe(rng, tensor, snr=10, missing=0.3)
    assert len(np.unique(data.coords, axis=0)) == len(data.values) == round(0.7 * tensor.size)
    noise = data.values - tensor[tuple(data.coords.T)]
    assert noise.std() == pytest.approx(10**-0.5, rel=0.05)


def test_rank_error_is_that_of_the_paper():
    assert rank_study.rank_error((5, 6, 4, 5), (5, 5, 5, 5)) == pytest.approx(0.1)


def test_a_study_goes_on_where_it_stopped(tmp_path, monkeypatch):
    performed = []

    def perform(run, seed, warmup):
        performed.append(run)
        if len(performed) == 3:
            raise KeyboardInterrupt
        return RunResult((5, 5, 5, 6), 0.05, 0.1, 1.0)

    monkeypatch.setattr(rank_study, "perform", perform)
    runs = all_runs(tensors=[0, 1], starts=[("adaption", 2)], noise=[10], missing=[0.1, 0.3])
    with pytest.raises(KeyboardInterrupt):
        run_study(tmp_path, runs)
    results = run_study(tmp_path, runs)
    assert performed == [runs[0], runs[1], runs[2], runs[2], runs[3]]
    assert results == {run: RunResult((5, 5, 5, 6), 0.05, 0.1, 1.0) for run in runs}
    assert not list(tmp_path.rglob(".*"))


def test_means_are_over_tensors_then_cells(tmp_path):
    errors = {0.1: [0.0, 0.2], 0.9: [1.0, 1.0]}
    results = {
        Run("adaption", 2, 10, missing, tensor): RunResult((5,) * 4, error, 0.1, 2.0)
        for missing, each in errors.items()
        for tensor, error in enumerate(each)
    }
    found = error_map(results, "adaption", 2)
    np.testing.assert_allclose(found[0], [0.1, np.nan, np.nan, np.nan, 1.0])
    assert np.isnan(found[1:]).all()
    summary = rank_study.write_study(tmp_path, results)
    row = summary["adaption from 2"]
    assert (row["up_to_70_missing"], row["all"], row["runs"]) == (0.1, 0.55, 4)
    assert "| adaption from 2 | 0.100 | 0.550 | 4 | 2.0 |" in rank_study.table(summary)
    assert (tmp_path / "rank.png").stat().st_size > 0
