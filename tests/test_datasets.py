"""Data sets: shapes, folds, descriptions, checksums, and what is said when a file is absent."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import asdict

import numpy as np
import pytest

from bayesring import datasets
from bayesring.datasets import (
    balanced_fold,
    load_alog,
    load_birmingham,
    load_dblp,
    load_enron,
    load_hangzhou,
    load_indian_pines,
    load_kinship,
    load_nyc,
    load_server_room,
    load_ushcn,
    random_split,
)
from bayesring.datasets.cache import fetch
from bayesring.datasets.server_room import unpickled_parts
from bayesring.datasets.traffic import shown_cells

LOADERS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("load_")]
REQUEST = ("a/file.txt", hashlib.sha256(b"right").hexdigest(), "owner/name", "commit", "file.txt")


@pytest.mark.parametrize("load", LOADERS)
def test_every_set_is_described_labelled_and_split(data_folder, load):
    data = load()
    for field, text in asdict(data.description).items():
        assert len(text) > 3, field
    assert [len(levels) for levels in data.labels.values()] == list(data.shape)
    train, test = data.split(data.folds[1])
    for part in (train, test):
        assert part.shape == data.shape
        assert part.coords.shape == (len(part.values), len(data.shape))
        assert part.coords.min() >= 0
        assert (part.coords.max(axis=0) < data.shape).all()
    again = data.split(data.folds[1]).train
    np.testing.assert_array_equal(train.coords, again.coords)
    cells = np.ravel_multi_index(tuple(data.observations.coords.T), data.shape)
    assert len(np.unique(cells)) == len(cells)
    for name, positions in data.positions.items():
        assert len(positions) == len(data.labels[name])
        assert len(np.unique(positions, axis=0)) == len(positions)
        assert positions.dtype.kind in "fM"
    with pytest.raises(ValueError, match=r"fold must be (0 to 4|'RM 40', 'RM 60' or 'NM 40'), got"):
        data.split(5)


def test_there_are_ten():
    assert len(LOADERS) == 10


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
    north, east = data.positions["place"].T
    said = [f"{a}N {-b}W" for a, b in zip(north, east, strict=True)]
    assert said == data.labels["place"].tolist()


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


@pytest.mark.parametrize(
    ("load", "shape", "known", "modes"),
    [
        (load_birmingham, (30, 77, 18), 35_389, ["day", "half_hour"]),
        (load_hangzhou, (80, 25, 108), 209_763, ["day", "slot"]),
        (load_nyc, (30, 30, 1464), 974_456, ["hour"]),
    ],
)
def test_traffic(data_folder, load, shape, known, modes):
    data = load()
    assert data.shape == shape
    assert list(data.positions) == modes
    assert len(data.observations.values) == known
    for mask in data.folds:
        train, test = data.split(mask)
        assert len(train.values) + len(test.values) == known
        assert min(train.values.min(), test.values.min()) > 0
        assert len(test.values) / known == pytest.approx(int(mask[-2:]) / 100, abs=0.02)


def test_masks_hide_single_cells_or_days():
    np.random.seed(1000)  # noqa: NPY002 (the masks were published this way)
    published = np.round(np.random.rand(4, 5, 6) + 0.5 - 0.4)  # noqa: NPY002
    np.testing.assert_array_equal(shown_cells((4, 5, 6), "RM 40"), published == 1)
    np.random.seed(1000)  # noqa: NPY002
    published = np.round(np.random.rand(4, 5) + 0.5 - 0.4)[:, :, None]  # noqa: NPY002
    np.testing.assert_array_equal(
        shown_cells((4, 5, 6), "NM 40"), np.broadcast_to(published == 1, (4, 5, 6))
    )
    np.random.seed(1000)  # noqa: NPY002
    drawn = np.random.rand(4, 5, 6)  # noqa: NPY002
    shown = shown_cells((4, 5, 6), "NM 40", steps_of_day=3)
    for hour in range(6):
        published = np.round(drawn[:, :, hour // 3] + 0.5 - 0.4)
        np.testing.assert_array_equal(shown[:, :, hour], published == 1)


def test_server_room(data_folder):
    data = load_server_room()
    assert data.shape == (3, 3, 34, 1001)
    assert (data.positions["time"][0], data.positions["time"][-1]) == (0, 1)
    for fold in range(5):
        assert [len(part.values) for part in data.split(fold)] == [8000, 2000]
    assert len(data.observations.values) == 9860


def test_server_room_as_published(data_folder, tmp_path, monkeypatch):
    plain = load_server_room()
    folds = []
    for fold in range(5):
        pairs = zip(("tr", "te"), plain.split(fold), strict=True)
        folds.append(
            {
                key: array
                for part, data in pairs
                for key, array in [
                    (f"{part}_ind", data.coords[:, :3]),
                    (f"{part}_T_disct", data.coords[:, 3]),
                    (f"{part}_y", data.values[:, None]),
                ]
            }
        )
    path = tmp_path / "server_room" / "server.npy"
    path.parent.mkdir()
    monkeypatch.setenv("BAYESRING_DATA", str(tmp_path))
    np.save(path, {"ndims": [3, 3, 34], "data": folds}, allow_pickle=True)
    read = load_server_room().split(1)
    np.testing.assert_array_equal(read.test.values, plain.split(1).test.values)
    folds[0]["te_y"] = folds[0]["te_y"] + 1
    np.save(path, {"data": folds}, allow_pickle=True)
    with pytest.raises(ValueError, match="not the published file: its numbers differ"):
        load_server_room()
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="not the published file"):
        load_server_room()


def test_a_pickle_may_create_arrays_only(tmp_path):
    class Hostile:
        def __reduce__(self):
            return print, ("hello",)

    np.save(tmp_path / "server.npy", {"data": Hostile()}, allow_pickle=True)
    with pytest.raises(pickle.UnpicklingError, match=r"builtins.print does not belong"):
        unpickled_parts(tmp_path / "server.npy")


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
