"""Data sets: shapes, folds, descriptions, checksums, and what is said when a file is absent."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import numpy as np
import pytest

from bayesring import datasets
from bayesring.datasets import (
    balanced_fold,
    load_alog,
    load_dblp,
    load_enron,
    load_indian_pines,
    load_kinship,
    load_ushcn,
    random_split,
)
from bayesring.datasets.cache import fetch

LOADERS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")]
REQUEST = ("a/file.txt", hashlib.sha256(b"right").hexdigest(), "owner/name", "commit", "file.txt")


@pytest.mark.parametrize("load", LOADERS)
def test_every_set_is_described_labelled_and_split(data_folder, load):
    data = load()
    for field, text in asdict(data.description).items():
        assert len(text) > 3, field
    assert [len(levels) for levels in data.labels.values()] == list(data.shape)
    train, test = data.split(1)
    for part in (train, test):
        assert part.shape == data.shape
        assert part.coords.shape == (len(part.values), len(data.shape))
        assert part.coords.min() >= 0
        assert (part.coords.max(axis=0) < data.shape).all()
    again = data.split(1).train
    np.testing.assert_array_equal(train.coords, again.coords)
    cells = np.ravel_multi_index(tuple(data.observations.coords.T), data.shape)
    assert len(np.unique(cells)) == len(cells)
    with pytest.raises(ValueError, match="fold must be 0 to 4, got 5"):
        data.split(5)


def test_there_are_six():
    assert len(LOADERS) == 6


@pytest.mark.parametrize("seed", [0, 4])
def test_ushcn(data_folder, seed):
    data = load_ushcn()
    assert data.tensor.shape == (17, 125, 156)
    assert np.isfinite(data.tensor).all()
    assert abs(data.tensor.mean()) < 0.05
    assert abs(data.tensor.std() - 1) < 0.05
    train, test = data.split(seed)
    assert (len(train.values), len(test.values)) == (33_150, 298_350)
    np.testing.assert_array_equal(train.values, data.tensor[tuple(train.coords.T)])


def test_indian_pines():
    data = load_indian_pines()
    assert data.shape == (145, 145, 200)
    assert (data.tensor.min(), data.tensor.max()) == (955, 9604)
    assert len(data.split(0).train.values) == 42_050


@pytest.mark.parametrize("fold", range(5))
def test_enron(data_folder, fold):
    train, test = load_enron().split(fold)
    assert (len(train.values), len(test.values)) == (1136, 128)
    assert set(np.unique(train.values)) == {0.0, 1.0}


def test_alog(data_folder):
    data = load_alog()
    assert [len(part.values) for part in data.split(0)] == [21_076, 6_611]
    assert int(np.sum(data.observations.values > 0)) == 13_172
    assert np.isnan(data.tensor).sum() == data.tensor.size - len(data.observations.values)


def test_kinship(data_folder):
    data = load_kinship()
    assert data.tensor.sum() == 10_790
    parts = [data.split(fold).test for fold in range(5)]
    assert sum(len(part.values) for part in parts) == 2 * 10_790
    assert sum(part.values.sum() for part in parts) == 10_790


def test_dblp(data_folder):
    data = load_dblp()
    assert len(data.observations.values) == 193_982
    train, test = data.split(0)
    assert len(train.values) + len(test.values) == 2 * 193_982
    assert abs(train.values.mean() - 0.5) < 0.01


def test_splits_are_disjoint_complete_and_repeatable():
    train, test = random_split((4, 5, 6), 0.25, seed=1)
    assert (len(train), len(test)) == (30, 90)
    both = {tuple(row) for row in np.concatenate([train, test])}
    assert len(both) == 120
    np.testing.assert_array_equal(train, random_split((4, 5, 6), 0.25, seed=1).train)


def test_folds_hold_every_one_once_and_as_many_other_cells():
    shape, n_folds = (6, 5, 4), 5
    ones = np.argwhere(np.random.default_rng(0).random(shape) < 0.3)
    tests = []
    for fold in range(n_folds):
        train, test = balanced_fold(ones, shape, fold, n_folds, seed=1)
        rows = [{tuple(row) for row in part.coords.tolist()} for part in (train, test)]
        assert not rows[0] & rows[1]
        assert len(rows[0] | rows[1]) == 2 * len(ones)
        for part in (train, test):
            is_one = [tuple(row) in set(map(tuple, ones.tolist())) for row in part.coords.tolist()]
            np.testing.assert_array_equal(part.values == 1.0, is_one)
        tests += list(rows[1])
    assert len(tests) == len(set(tests)) == 2 * len(ones)


def test_absent_damaged_and_truncated_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESRING_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"but a/file.txt is not in it"):
        fetch(*REQUEST)
    (tmp_path / "a").mkdir()
    for content in (b"something else", b"righ", b""):
        (tmp_path / "a" / "file.txt").write_bytes(content)
        with pytest.raises(ValueError, match="not the published file: its checksum differs"):
            fetch(*REQUEST)
    (tmp_path / "a" / "file.txt").write_bytes(b"right")
    assert fetch(*REQUEST).read_bytes() == b"right"


class Response:
    """As much of an answer of a server as the download needs."""

    def __init__(self, content):
        self.content, self.headers = content, {"content-length": str(len(content))}

    def raise_for_status(self):
        pass

    def iter_content(self, chunk_size):
        yield self.content


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Answers requests from a list of contents; an exception in it is raised."""
    requests = pytest.importorskip("requests")
    pooch = pytest.importorskip("pooch")
    answers = []

    def get(url, **_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Response(answer)

    monkeypatch.delenv("BAYESRING_DATA", raising=False)
    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    return answers


def test_a_download_is_checked_and_kept(server, capsys):
    server += [b"wrong", b"right"]
    with pytest.raises(ValueError, match=r"file.txt does not give the published file"):
        fetch(*REQUEST)
    path = fetch(*REQUEST)
    assert path.read_bytes() == b"right"
    assert "a/file.txt" in capsys.readouterr().err
    assert fetch(*REQUEST) == path
    path.write_bytes(b"righ")
    server.append(b"right")
    assert fetch(*REQUEST).read_bytes() == b"right"


def test_without_network_one_sentence_says_what_to_do(server):
    server.append(pytest.importorskip("requests").ConnectionError("a long story"))
    with pytest.raises(OSError, match=r"connect to the network, or save https://.*BAYESRING_DATA"):
        fetch(*REQUEST)
