"""The rank study: its runs, errors, summary and pictures."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.datasets import make_ring
from bayesring.model.rank import Adaption
from paper import rank_study
from paper.rank_study import Run, all_runs, error_map
from paper.results_store import Provenance, ResultsStore


def test_rank_error_is_that_of_the_paper():
    assert rank_study.rank_error((5, 6, 4, 5), (5, 5, 5, 5)) == pytest.approx(0.1)


def test_all_strategies_have_their_runs():
    runs = all_runs()
    assert len(runs) == 25 * (3 * 5 + 2)
    assert {run.tensor for run in runs if run.strategy == "BTR-VI"} == {0}
    assert max(run.initial for run in runs if run.strategy == "BTR-VI") == 5
    assert len({run.cell().key for run in runs}) == len(runs)


def test_a_run_draws_the_same_tensor_from_every_start(monkeypatch):
    seen = []

    def find(data, policy, seed, warmup):
        seen.append(data)
        return (5, 5, 5, 6), 0.3

    monkeypatch.setattr(rank_study, "find_rank", find)
    for start in (("adaption", 2), ("truncation", 10)):
        found = rank_study.work(Run(*start, 10, 0.9, 1), quick=True)
        assert found["error"] == pytest.approx(0.05)
    np.testing.assert_array_equal(seen[0].values, seen[1].values)
    assert len(seen[0].values) == 1000


def test_means_are_over_tensors_then_cells(tmp_path):
    errors = {0.1: [0.0, 0.2], 0.9: [1.0, 1.0]}
    results = {
        Run("adaption", 2, 10, missing, tensor): {"error": error, "seconds": 2.0}
        for missing, each in errors.items()
        for tensor, error in enumerate(each)
    }
    found = error_map(results, "adaption", 2)
    np.testing.assert_allclose(found[0], [0.1, np.nan, np.nan, np.nan, 1.0])
    assert np.isnan(found[1:]).all()
    store = ResultsStore(tmp_path)
    for run, result in results.items():
        run.cell().keep(store, result, Provenance("", ""))
    (tmp_path / "tables").mkdir()
    rank_study.write(store, tmp_path)
    assert "| adaption from 2 | 0.100 | 1.000 | 0.550 | 4 | 2.0 |" in (
        (tmp_path / "tables" / "rank.md").read_text()
    )
    for ending in ("png", "svg"):
        assert (tmp_path / "images" / f"rank.{ending}").stat().st_size > 0


def test_find_rank_gives_one_rank_per_bond_and_the_noise():
    data = make_ring((6, 6, 6), 2, snr=20, missing=0.2, seed=0).observations
    found = rank_study.find_rank(data, Adaption(2), seed=0, warmup=40)
    assert found == rank_study.find_rank(data, Adaption(2), seed=0, warmup=40)
    rank, noise = found
    assert len(rank) == 3
    assert min(rank) >= 1
    assert noise > 0
