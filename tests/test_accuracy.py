"""The table of accuracies: cells, their files, what the table says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bayesring.datasets import load_enron
from bayesring.experiments import accuracy
from bayesring.observations import Observations

QUICK = {"rank": 2, "warmup": 4, "draws": 4, "chains": 1, "progress": False}


def small(seed):
    """A scene of 20 x 21 x 4 cells, a third known."""
    rng = np.random.default_rng(seed)
    scene = np.add.outer(np.add.outer(rng.random(20), rng.random(21)), rng.random(4))
    return accuracy._cells(100 * scene, 1 / 3, seed)


@pytest.fixture
def tasks(monkeypatch):
    """Small stand-ins for a real-valued set with pictures and a binary one."""
    image = accuracy.TASKS["Indian Pines"]._replace(load=small, latent=2)
    links = accuracy.TASKS["Enron"]._replace(load=links_of, latent=2)
    monkeypatch.setattr(accuracy, "TASKS", {"Indian Pines": image, "Enron": links})


def links_of(fold):
    train, test = small(fold)
    return tuple(
        Observations(part.coords, (part.values > 150).astype(float), part.shape)
        for part in (train, test)
    )


def test_cells_are_kept_and_only_missing_ones_worked_out(tasks, tmp_path):
    accuracy.run(tmp_path, methods=[accuracy.OURS], folds=[0, 1], **QUICK)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "Enron-bayesring-0.json",
        "Enron-bayesring-1.json",
        "Indian_Pines-bayesring-0.json",
        "Indian_Pines-bayesring-1.json",
    ]
    kept = tmp_path / names[0]
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"AUC": 0.123}))
    accuracy.run(tmp_path, methods=[accuracy.OURS], folds=[0, 1], **QUICK)
    assert json.loads(kept.read_text())["AUC"] == 0.123
    table = accuracy.table(tmp_path)
    assert table.count("\n") == 4
    for words in ("PSNR / SSIM | 29.71 / 0.84 |", "2 of 5 folds", "intervals cover", "by chance"):
        assert words in table


def test_scores_are_those_of_the_predictions(tasks):
    train, test = small(3)
    found = accuracy.cell("Indian Pines", accuracy.OURS, 3, **QUICK)
    assert found["rank"] == [[2, 2, 2]]
    assert 0 <= found["coverage"] <= 1
    truth = np.empty(train.shape)
    for part in (train, test):
        truth[tuple(part.coords.T)] = part.values
    perfect = accuracy.SCORES["SSIM"](train, test, test.values)
    assert perfect == pytest.approx(1.0)
    off = accuracy.SCORES["PSNR"](train, test, test.values + 1.0)
    expected = 20 * np.log10(truth.max() / np.sqrt(len(test.values) / truth.size))
    assert off == pytest.approx(expected)


def test_smurff_predicts_the_same_cells(data_folder):
    pytest.importorskip("smurff")
    train, test = load_enron(0)
    predicted = accuracy.predict_smurff(train, test, 4, binary=True)
    assert accuracy.SCORES["AUC"](train, test, predicted) > 0.8
