"""Data sets: shapes, splits, checksums, and what is said when a file is absent."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.datasets import load_enron, load_indian_pines, load_ushcn, random_split


def test_indian_pines():
    scene = load_indian_pines()
    assert scene.shape == (145, 145, 200)
    assert (scene.min(), scene.max()) == (955, 9604)


def test_ushcn(data_folder):
    tensor = load_ushcn()
    assert tensor.shape == (17, 125, 156)
    assert np.isfinite(tensor).all()
    assert abs(tensor.mean()) < 0.05
    assert abs(tensor.std() - 1) < 0.05


@pytest.mark.parametrize("fold", range(5))
def test_enron(data_folder, fold):
    train, test = load_enron(fold)
    assert train.coords.shape == (1136, 3)
    assert test.coords.shape == (128, 3)
    assert set(np.unique(train.values)) == {0.0, 1.0}
    for part in (train, test):
        assert (part.coords.max(axis=0) < part.shape).all()


def test_unknown_fold():
    with pytest.raises(ValueError, match="fold must be 0 to 4, got 5"):
        load_enron(5)


def test_splits_are_disjoint_complete_and_repeatable():
    train, test = random_split((4, 5, 6), 0.25, seed=1)
    assert len(train) == 30
    both = {tuple(row) for row in np.concatenate([train, test])}
    assert len(both) == 120
    np.testing.assert_array_equal(train, random_split((4, 5, 6), 0.25, seed=1).train)


def test_absent_and_damaged_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESRING_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"but ushcn/USHCN.mat is not in it"):
        load_ushcn()
    (tmp_path / "ushcn").mkdir()
    (tmp_path / "ushcn" / "USHCN.mat").write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the published file: its checksum differs"):
        load_ushcn()
