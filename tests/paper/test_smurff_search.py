"""SMURFF's settings: chosen on training data, for all folds, and its rows kept up to date."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.observations import Observations
from bayesring.datasets.splits import Fold
from paper import accuracy, accuracy_tables, contenders, smurff_search
from paper.baselines import TooLarge
from paper.contenders import FAVOURED, OURS, SMURFF, VI_RANKS, Job, PeerChoice, Predictor
from paper.results_store import Provenance, ResultsStore
from paper.tasks import TASKS

SOURCE = Provenance("c0ffee", "code")
INNER, BEST = PeerChoice(20, 100.0), PeerChoice(40, 1000.0)


@pytest.fixture
def store(tmp_path):
    return ResultsStore(tmp_path)


def search(store, name, best=BEST, but=None):
    """Every cell of a set but one: least inner error at `INNER`, least test error at `best`."""
    for cell in smurff_search.make_cells([name]):
        choice = cell.arguments[1]
        if choice != but:
            found = {"latent": choice.latent, "cap": choice.cap}
            found |= {"inner": 1.0 - (choice == INNER), "test": 1.0 - (choice == best)}
            cell.keep(store, found, SOURCE)


def row(store, method, fold, **settings):
    (cell,) = accuracy.make_cells(["USHCN"], [method], [fold])
    cell.keep(store, {"RMSE": 0.4, "MAE": 0.2, "seconds": 90.0} | settings, SOURCE)


def test_real_values_have_caps_and_binary_ones_have_none():
    assert len(smurff_search.make_cells(["USHCN"])) == 15
    assert {c.arguments[1].cap for c in smurff_search.make_cells(["Kinship"])} == {10.0}
    assert len(smurff_search.search_sets()) == 8


def test_sets_are_named_with_commas():
    assert smurff_search.named("Enron, Birmingham RM 40") == ["Enron", "Birmingham RM 40"]
    assert smurff_search.named("") is None
    with pytest.raises(ValueError, match=r"'Enrom', but there are USHCN, .*Hangzhou RM 40"):
        smurff_search.named("Enrom")


def test_settings_are_known_when_every_pair_has_been_tried(store):
    search(store, "USHCN", but=PeerChoice(5, 10.0))
    assert smurff_search.chosen(store, "USHCN") is None
    search(store, "USHCN")
    assert smurff_search.chosen(store, "USHCN") == INNER
    assert smurff_search.favoured(store, "USHCN") == BEST
    peers = accuracy.make_cells(["USHCN"], [OURS, SMURFF, FAVOURED], [2], store=store)
    assert [cell.arguments[-1] for cell in peers] == [None, INNER, BEST]


def test_rows_with_other_settings_are_out_of_date(store):
    search(store, "USHCN")
    row(store, SMURFF, 0, latent=80)
    row(store, SMURFF, 1, rank=20, cap=10.0)
    row(store, SMURFF, 2, rank=20, cap=100.0)
    cells = accuracy.make_cells(["USHCN"], [SMURFF], range(4), store=store)
    assert [accuracy.is_outdated(cell, store) for cell in cells] == [True, True, False, False]


def test_settings_that_favour_it_and_are_chosen_are_computed_once(store):
    search(store, "USHCN", best=INNER)
    assert accuracy.make_cells(["USHCN"], [FAVOURED], [0], store=store) == []
    row(store, SMURFF, 0, rank=20, cap=100.0)
    assert len(accuracy.load_cells(store, "USHCN", FAVOURED)) == 1


def test_the_table_says_settings_minutes_and_missed_goals(store):
    row(store, OURS, 0, coverage=0.9, prediction_seconds=1.0)
    row(store, SMURFF, 0, rank=20, cap=100.0, prediction_seconds=1.0)
    for table in (accuracy_tables.table(store), accuracy_tables.short_table(store)):
        assert "(K 20, cap 100)" in table
        assert "| 0.41 / 0.275 |" in table
        assert "| 1.5 | 1.5 |" in table
        assert "†" not in table
        assert "‡" not in table
    row(store, SMURFF, 0, latent=80, seconds=180.0)
    row(store, OURS, 0, RMSE=0.42, coverage=0.9, prediction_seconds=1.0)
    table = accuracy_tables.short_table(store)
    assert "(K 80, cap 10 †)" in table
    assert "| 0.41 (missed) / 0.275 |" in table
    assert "| 1.5 | 3.0 ‡ |" in table
    assert table.endswith(f"{accuracy_tables.BEFORE}\n\n{accuracy_tables.WITH_PREDICTIONS}\n")


def small_set(monkeypatch, rng):
    coords = np.argwhere(np.ones((6, 7, 8)))
    data = Observations(coords, rng.standard_normal(len(coords)), (6, 7, 8))
    fold = Fold(data, data)
    task = TASKS["USHCN"]
    monkeypatch.setattr(
        smurff_search, "search_sets", lambda: {"small": smurff_search.SearchSet(task, lambda: fold)}
    )
    return data


def test_the_choice_is_made_on_a_tenth_of_the_training_data(monkeypatch, rng):
    data = small_set(monkeypatch, rng)
    seen = []

    def fit(job):
        seen.append((job.peer, len(job.train.values)))
        error = abs(job.peer.latent - 10) + job.peer.cap
        return Predictor(lambda coords: np.full(len(coords), error), {"cap": job.peer.cap})

    monkeypatch.setattr(smurff_search, "smurff", fit)
    found = smurff_search.work("small", PeerChoice(20, 10.0), threads=1)
    assert seen == [(PeerChoice(20, 10.0), 302), (PeerChoice(20, 10.0), 336)]
    assert found["inner"] == pytest.approx(20, abs=1)
    assert found["test"] == found["RMSE"] == pytest.approx(20, abs=0.2)
    seen.clear()
    chosen, errors = smurff_search.choose_inside(Job(data, TASKS["USHCN"], 0, 1, False), (5, 10))
    assert chosen == PeerChoice(10, 10.0)
    assert len(errors) == 6
    assert {size for _, size in seen} == {302}


def test_a_ring_by_variational_inference_starts_as_large_as_memory_and_time_allow(monkeypatch, rng):
    tried = []

    def fit(job, name, settings):
        tried.append(settings)
        if settings["rank"] > 5:
            raise TooLarge("it does not fit.")
        return Predictor(lambda coords: coords, {"rank": settings["rank"]})

    monkeypatch.setattr(contenders, "_baseline", fit)
    data = Observations(np.zeros((1, 3), dtype=int), np.zeros(1), (1, 1, 1))
    found = contenders.ring_vi(Job(data, TASKS["USHCN"], 0, 1, False))
    assert found.described == {"rank": 5}
    assert [each["rank"] for each in tried] == [10, 8, 5]
    assert max(VI_RANKS) == 10
    assert {each["max_iter"] for each in tried} == {contenders.SWEEPS}
