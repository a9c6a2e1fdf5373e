"""Model files: checked on reading, never half written."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from bayesring import TensorRing, estimator, load
from bayesring.data.observations import HeldOut
from bayesring.infer import chain
from bayesring.infer.state import rounded
from bayesring.posterior import store as storage

X = np.array([[0, 0, 0], [1, 1, 1], [2, 0, 1]])


@pytest.fixture
def path(tmp_path):
    ring = TensorRing(1, warmup=2, draws=3, chains=1, random_state=0, progress=False)
    ring.fit(X, [1.0, 2.0, 3.0]).save(tmp_path / "model.ring")
    return tmp_path / "model.ring"


def rewrite(path, change):
    """Apply `change` to the description inside a model file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members[storage.DESCRIPTION])
    change(description)
    members[storage.DESCRIPTION] = json.dumps(description).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_no_pickle_inside(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            assert name == storage.DESCRIPTION or name.endswith(".npy")
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    np.lib.format.read_array(member, allow_pickle=False)


def test_names_that_were_given_come_back(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 4, (60, 3))
    ring = TensorRing(
        likelihood="auto", warmup=4, draws=3, chains=1, random_state=0, progress=False
    ).fit(cells, rng.poisson(30.0, 60).astype(float))
    ring.save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    assert loaded.get_params() == ring.get_params()
    assert type(loaded.posterior_.likelihood).__name__ == "NegativeBinomial"
    real = loaded.fit(cells, rng.standard_normal(60))  # chosen anew, not taken from the file
    assert type(real.posterior_.likelihood).__name__ == "Gaussian"


@pytest.mark.parametrize(
    "asked", [{"rank": "many"}, {"likelihood": "normal"}, {"epochs": "2"}, ["auto"]]
)
def test_names_that_mean_nothing_are_refused(path, asked):
    rewrite(path, lambda description: description.update(asked=asked))
    with pytest.raises(ValueError, match=r"model\.ring is not a complete bayesring model"):
        load(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.ring").write_text("not a model")
    with pytest.raises(ValueError, match="not a bayesring model, or is damaged"):
        load(tmp_path / "text.ring")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a bayesring model"):
        load(tmp_path / "arrays.npz")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.ring")


def test_a_flipped_byte_is_noticed(path):
    content = bytearray(path.read_bytes())
    place = content.find(b"NUMPY") + 200
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        load(path)


def test_a_truncated_file_is_noticed(path):
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d.update(version=99),
            "format version 99, but this release reads versions 2 and 3",
        ),
        (
            lambda d: d.update(version=1),
            "format version 1, but this release reads versions 2 and 3; load",
        ),
        (lambda d: d.update(format="other"), "is not a bayesring model"),
        (lambda d: d.update(shape=[3, 2, 9]), "draws of chain 0 do not fit the shape"),
        (lambda d: d.pop("scale"), "not a complete bayesring model"),
        (
            lambda d: d["likelihood"].update({"class": "os.system"}),
            "uses 'os.system', which this release does not know",
        ),
    ],
)
def test_wrong_descriptions_are_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_a_missing_folder_is_named(path):
    with pytest.raises(FileNotFoundError, match="cannot be written: there is no folder"):
        load(path).save(path.parent / "nowhere" / "model.ring")


def test_a_folder_is_left_alone(path):
    ring = load(path)
    folder = path.parent / "folder"
    folder.mkdir()
    (folder / "thesis.txt").write_text("ten years")
    for write in (ring.save, ring.report):
        with pytest.raises(IsADirectoryError, match="folder cannot be written: it is a folder"):
            write(folder)
    assert [each.read_text() for each in folder.iterdir()] == ["ten years"]
    assert sorted(path.parent.iterdir()) == [folder, path]


def test_a_report_is_not_worked_out_for_a_place_that_cannot_hold_it(path, monkeypatch):
    def render(*_):
        raise AssertionError("the page was worked out first.")

    ring = load(path)
    monkeypatch.setattr("bayesring.report.page.render", render)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ring.report(path.parent / "nowhere" / "report.html")


def test_predictions_for_held_out_values_are_kept(path):
    ring = load(path)
    assert ring.held_out_ is None
    ring.held_out_ = HeldOut(X, *np.arange(9.0).reshape(3, 3))
    ring.save(path)
    for found, given in zip(load(path).held_out_, ring.held_out_, strict=True):
        np.testing.assert_array_equal(found, given)


def test_what_held_out_values_taught_is_kept(tmp_path):
    """The bound of the noise and the tails, and so every interval."""
    rng = np.random.default_rng(0)
    coords = rng.integers(0, 6, (600, 3))
    ring = TensorRing(1, warmup=100, draws=3, chains=1, random_state=0, progress=False)
    ring.fit(coords, rng.standard_t(3, 600)).save(tmp_path / "model.ring")
    assert len(ring.posterior_.likelihood.tails) == 99
    loaded = load(tmp_path / "model.ring")
    assert loaded.posterior_.likelihood == ring.posterior_.likelihood
    assert loaded.likelihood == "gaussian"
    for level in (0.5, 0.95):
        ends = zip(loaded.predict_interval(X, level), ring.predict_interval(X, level), strict=True)
        for found, given in ends:
            np.testing.assert_array_equal(found, given)


def test_more_than_ten_chains_come_back_in_their_order(tmp_path):
    ring = TensorRing(1, warmup=1, draws=2, chains=12, random_state=0, progress=False)
    ring.fit(X, [1.0, 2.0, 3.0]).save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    for found, given in zip(loaded.posterior_.chains, ring.posterior_.chains, strict=True):
        np.testing.assert_array_equal(found.flat, given.flat)
    for found, given in zip(loaded.trace_, ring.trace_, strict=True):
        np.testing.assert_array_equal(found.log_likelihood, given.log_likelihood)


def test_more_than_ten_rings_of_online_em_come_back_in_their_order(tmp_path):
    ring = TensorRing(
        1, inference="online-em", epochs=1, draws=2, chains=12, random_state=0, progress=False
    )
    ring.fit(X, [1.0, 2.0, 3.0]).save(tmp_path / "model.ring")
    for found, given in zip(load(tmp_path / "model.ring").estimates_, ring.estimates_, strict=True):
        np.testing.assert_array_equal(found.cores, given.cores)


def test_files_have_the_usual_rights(path):
    (path.parent / "plain").touch()
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


@pytest.mark.parametrize("rank", [np.int64(2), np.array(2), [1, 2, 1], np.array([1, 2, 1])])
def test_awkward_parameters_are_saved(tmp_path, rank):
    ring = TensorRing(
        rank, shape=np.array([3, 2, 2]), warmup=2, draws=3, random_state=np.int64(4), progress=False
    )
    ring.fit(X, [1, 2, 3]).save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    np.testing.assert_array_equal(loaded.predict(X), ring.predict(X))
    np.testing.assert_array_equal(loaded.fit(X, [1, 2, 3]).predict(X), ring.predict(X))


def test_a_failed_write_leaves_the_old_file(path):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        storage.write(path, {}, {"bad": np.array([object()], dtype=object)})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_training_observations_are_kept_in_order_and_in_their_units(path, monkeypatch):
    observed = load(path).observed_
    np.testing.assert_array_equal(observed.coords, X)
    np.testing.assert_array_equal(observed.values, [1.0, 2.0, 3.0])
    assert observed.coords.dtype == np.int32
    assert observed.shape == (3, 2, 2)
    monkeypatch.setattr(estimator, "COMPACT", 3)
    assert (
        TensorRing(1, warmup=1, draws=2, progress=False).fit(X, [1.0, 2.0, 3.0]).observed_ is None
    )


def test_a_ring_of_coordinates_has_plain_labels(path):
    labels = load(path).labels_
    assert labels.names == ("mode 0", "mode 1", "mode 2")
    assert labels.levels == (None, None, None)
    assert labels.value is None


def test_the_width_of_a_ring_is_kept(tmp_path):
    settings = {"inference": "online-em", "epochs": 1, "draws": 2, "chains": 1, "progress": False}
    ring = TensorRing(1, random_state=0, **settings).fit(X, [1.0, 2.0, 3.0])
    ring.estimates_ = [ring.estimates_[0]._replace(width=0.25)]
    ring.save(tmp_path / "model.ring")
    assert load(tmp_path / "model.ring").estimates_[0].width == 0.25


def test_kept_draws_are_float32_and_come_back_as_they_were(tmp_path, rng):
    """In memory as in the file, so that a loaded model predicts the same bits."""
    X = np.stack([rng.integers(0, size, 90) for size in (5, 6, 7)], axis=1)
    model = TensorRing(2, warmup=4, draws=6, chains=2, random_state=0, progress=False)
    model.fit(X, rng.standard_normal(90)).save(tmp_path / "m.ring")
    loaded = load(tmp_path / "m.ring")
    for own, back in zip(model.posterior_.chains, loaded.posterior_.chains, strict=True):
        assert own.flat.dtype == back.flat.dtype == np.float32
        np.testing.assert_array_equal(own.flat, back.flat)
    np.testing.assert_array_equal(model.predict_interval(X), loaded.predict_interval(X))


def test_cores_beyond_float32_stay_as_they_are():
    large = np.array([[1.0, 1e300]])
    np.testing.assert_array_equal(rounded(large), large)
    assert rounded(large[:, :1]).dtype == np.float32


def test_draws_are_thinned_to_their_room_evenly(monkeypatch, rng):
    """As many as the room allows, yet never fewer than are needed; the last scans among them."""
    X = np.stack([rng.integers(0, size, 90) for size in (5, 6, 7)], axis=1)
    y = rng.standard_normal(90)

    def scans(room, fewest):
        monkeypatch.setattr(chain, "ROOM", room)
        monkeypatch.setattr(chain, "FEWEST_KEPT", fewest)
        model = TensorRing(2, warmup=4, draws=12, chains=2, random_state=0, progress=False)
        return [own.scans.tolist() for own in model.fit(X, y).posterior_.chains]

    one = 4 * (5 + 6 + 7) * 4
    assert scans(8 * one, 2) == [[7, 10, 13, 16]] * 2
    assert scans(one, 12) == [[6, 8, 10, 12, 14, 16]] * 2
    assert scans(100 * one, 2) == [list(range(5, 17))] * 2
