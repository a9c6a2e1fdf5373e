"""What a disk, a folder or another fit can do to a checkpoint."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesring import TensorRing, complete
from bayesring.checkpoint import generations
from bayesring.checkpoint.manifest import digest, open_checkpoint, seed_in
from bayesring.checkpoint.trees import classes_in, put_together, take_apart
from bayesring.data.batches import Position
from bayesring.data.labels import plain_labels
from bayesring.data.observations import Observations
from bayesring.fitting import Keep
from bayesring.infer.schedule import Schedule
from bayesring.likelihoods import Gaussian
from bayesring.model.types import Given, RingSize
from bayesring.priors import NormalGamma
from bayesring.settings import resolve
from tests.checkpoint.fits import SHAPE, data, fingerprint, run, write_parquet


@pytest.fixture(scope="module")
def expected() -> str:
    return fingerprint(run("gibbs", None))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fit that ended in its draws."""
    folder = tmp_path_factory.mktemp("original") / "folder"
    with pytest.MonkeyPatch.context() as monkeypatch:
        end_after(monkeypatch, 250)
        with pytest.raises(EndHere):
            run("gibbs", folder)
    return folder


@pytest.fixture
def begun(original: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(original, tmp_path / "folder"))


class EndHere(BaseException):
    """Ends a fit."""


def end_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    count = [0]
    write = generations.write

    def counted(*arguments: Any) -> None:
        write(*arguments)
        count[0] += 1
        if count[0] == writes:
            raise EndHere

    monkeypatch.setattr(generations, "write", counted)


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999999])
@pytest.mark.parametrize("kind", ["flipped", "cut", "empty"])
def test_an_older_generation_is_used(begun: Path, share: float, kind: str, expected: str) -> None:
    path = begun / "chain-0.state"
    content = path.read_bytes()
    place = int(share * len(content))
    damaged = {"flipped": flipped(content, place), "cut": content[:place], "empty": b""}[kind]
    path.write_bytes(damaged)
    (begun / "fit.state").write_bytes(flipped((begun / "fit.state").read_bytes(), 40))
    assert fingerprint(run("gibbs", begun)) == expected


def test_killed_between_two_renames(begun: Path, expected: str) -> None:
    (begun / "chain-1.state").unlink()
    (begun / "fit.state").unlink()
    assert fingerprint(run("gibbs", begun)) == expected


def test_the_older_generation_is_read_if_the_newer_is_gone_or_damaged(tmp_path: Path) -> None:
    assert generations.read(tmp_path, "piece") is None
    for number in (1, 2, 3):
        generations.write(tmp_path, "piece", number, [np.arange(number)])
    newest = tmp_path / "piece.state"
    content = newest.read_bytes()
    for damaged, expected in ((content, 3), (flipped(content, len(content) // 2), 2), (None, 2)):
        newest.unlink() if damaged is None else newest.write_bytes(damaged)
        plain, (array,) = generations.read(tmp_path, "piece") or (0, [None])
        assert (plain, len(array)) == (expected, expected)


def test_the_older_generation_is_read_if_the_disk_fails_in_the_newer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the error of the disk ends the fit, though the older one can be read."""
    for number in (1, 2):
        generations.write(tmp_path, "piece", number, [])
    read, broken = Path.read_bytes, {".state"}

    def failing(path: Path) -> bytes:
        if path.suffix in broken:
            raise OSError(errno.EIO, "Input/output error")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", failing)
    assert generations.read(tmp_path, "piece") == (1, [])
    broken.add(".previous")
    with pytest.raises(generations.Damaged, match=r"piece\.state cannot be read: .*Input/output"):
        generations.read(tmp_path, "piece")


@pytest.mark.parametrize("name", ["chain-0", "fit"])
def test_both_generations_damaged(begun: Path, name: str) -> None:
    for extension in ("state", "previous"):
        path = begun / f"{name}.{extension}"
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        ValueError, match=rf"{name}\.state is damaged: its checksum.*Delete the fol"
    ):
        run("gibbs", begun)


@pytest.mark.parametrize("name", ["chain-0", "fit"])
def test_states_of_other_versions_are_told_from_damaged_ones(begun: Path, name: str) -> None:
    for extension in ("state", "previous"):
        path = begun / f"{name}.{extension}"
        path.write_bytes(path.read_bytes().replace(b"checkpoint 2", b"checkpoint 3", 1))
    with pytest.raises(
        ValueError, match=rf"{name}\.state was written by another version.*Delete the"
    ):
        run("gibbs", begun)


def test_states_that_nothing_describes_are_not_called_foreign(begun: Path) -> None:
    for extension in ("state", "previous"):
        (begun / f"fit.{extension}").unlink()
    before = sorted(begun.iterdir())
    with pytest.raises(ValueError, match=r"has no fit\.state.*Delete the folder"):
        run("gibbs", begun)
    assert sorted(begun.iterdir()) == before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"draws": 31}, "draws=30, but now draws=31"),
        ({"warmup": 81}, "warmup=80, but now warmup=81"),
        ({"random_state": 4}, "random_state=3, but now random_state=4"),
        ({"rank": 3}, "rank=StrandGrowth"),
        ({"prior": "paper"}, "prior=.*NormalWishart.*Fixed"),
        ({"chains": 2}, "chains=3, but now chains=2"),
        ({"max_memory": 2**20}, "max_memory="),
        ({"dtype": "float32"}, "method="),
        ({"inference": "online-em"}, "inference='gibbs', but now inference='online-em'"),
    ],
)
def test_another_fit_is_refused(begun: Path, settings: dict[str, Any], sentence: str) -> None:
    before = {path: path.read_bytes() for path in begun.iterdir()}
    with pytest.raises(ValueError, match=sentence):
        run("gibbs", begun, **settings)
    assert {path: path.read_bytes() for path in begun.iterdir()} == before


@pytest.mark.parametrize("change", ["value", "coordinate", "row", "shape"])
def test_other_data_are_refused(begun: Path, change: str) -> None:
    coords, values = data("gibbs")
    shape = None
    if change == "value":
        values[-1] += 1e-12
    elif change == "coordinate":
        coords[0, 2] = (coords[0, 2] + 1) % 8
    elif change == "row":
        coords, values = coords[:-1], values[:-1]
    else:
        shape = (12, 9, 9)
    ring = TensorRing(warmup=80, draws=30, chains=3, random_state=3, progress=False)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        ring.fit(coords, values, checkpoint=begun, shape=shape)


@pytest.mark.parametrize("change", ["keys", "values", "order"])
def test_other_rows_of_a_file_are_refused(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same labels, counts and moments. Seen to fail: the fit mixed both."""
    source, folder = write_parquet(tmp_path), tmp_path / "state"
    end_after(monkeypatch, 4)
    with pytest.raises(EndHere):
        run("online EM, Parquet", folder, source=source)
    monkeypatch.undo()
    table = pq.read_table(source)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    if change == "keys":
        columns["a"] = np.random.default_rng(0).permutation(columns["a"])
    elif change == "values":
        columns["y"][[0, 1]] = columns["y"][[1, 0]]
    else:
        columns = {name: own[::-1] for name, own in columns.items()}
    pq.write_table(pa.table(columns), source, row_group_size=150)
    with pytest.raises(ValueError, match="belongs to a fit with other data"):
        run("online EM, Parquet", folder, source=source)


def test_the_same_rows_under_another_name_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = write_parquet(tmp_path), tmp_path / "state"
    whole = fingerprint(run("online EM, Parquet", None, source=source))
    end_after(monkeypatch, 4)
    with pytest.raises(EndHere):
        run("online EM, Parquet", folder, source=source)
    monkeypatch.undo()
    moved = source.rename(tmp_path / "moved.parquet")
    assert fingerprint(run("online EM, Parquet", folder, source=moved)) == whole


def test_a_damaged_generation_does_not_take_the_place_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: killed between two renames, the only whole one was gone."""
    for number in (1, 2):
        generations.write(tmp_path, "piece", number, [])
    newest = tmp_path / "piece.state"
    newest.write_bytes(flipped(newest.read_bytes(), 40))

    def killed(temporary: Any, place: Any) -> None:
        if str(place).endswith(".state"):
            raise EndHere
        replace(temporary, place)

    replace = os.replace
    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(EndHere):
        generations.write(tmp_path, "piece", 3, [])
    monkeypatch.undo()
    assert generations.read(tmp_path, "piece") == (1, [])
    generations.write(tmp_path, "piece", 3, [])
    assert generations.read(tmp_path, "piece") == (3, [])
    newest.unlink()
    assert generations.read(tmp_path, "piece") == (1, [])


def test_another_version_is_refused(begun: Path) -> None:
    facts, _ = generations.read(begun, "fit") or ({}, [])
    for _ in range(2):
        generations.write(begun, "fit", facts | {"bayesring": "0.0.1"}, [])
    with pytest.raises(ValueError, match=r"a fit with bayesring 0\.0\.1, but this is"):
        run("gibbs", begun)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"new or empty folder.*holds 'thesis\.tex'"):
        run("gibbs", tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_fit_killed_before_its_first_file_can_begin_again(tmp_path: Path) -> None:
    """Seen to fail: what it left, the lock and half a file, taken for the files of others."""
    (tmp_path / "lock").touch()
    (tmp_path / ".fit.state.0123abcd.tmp").write_text("half")
    with open_checkpoint(tmp_path, 1.0, {"random_state": "3"}):
        pass
    assert seed_in(tmp_path) == 3
    assert not list(tmp_path.glob(".*"))


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refused(file: Any, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with open_checkpoint(tmp_path, 1.0, {"random_state": "3"}):
        assert seed_in(tmp_path) == 3


def test_digests_tell_arrays_apart_that_have_the_same_bytes() -> None:
    numbers = np.arange(6.0)
    others = [(numbers.reshape(2, 3),), (numbers.view(np.int64),), (numbers[:2], numbers[2:])]
    assert len({digest(*each) for each in [(numbers,), *others]}) == 4


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something")
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        run("gibbs", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "something"


@pytest.mark.parametrize("how", ["fit", "partial_fit", "complete"])
def test_folders_are_looked_at_before_the_data(tmp_path: Path, how: str) -> None:
    """Seen to fail: data refused first, after they were read and coded."""
    (tmp_path / "thesis.tex").write_text("years of work")
    nonsense = np.full((3, 2), -1.5)
    ring = TensorRing(inference="online-em")
    call = {
        "fit": lambda: ring.fit(nonsense, nonsense, checkpoint=tmp_path),
        "partial_fit": lambda: ring.partial_fit(nonsense, nonsense, checkpoint=tmp_path),
        "complete": lambda: complete(nonsense, checkpoint=tmp_path),
    }[how]
    with pytest.raises(ValueError, match=r"holds 'thesis\.tex'"):
        call()


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesring.infer import chains

    monkeypatch.setattr(chains.Chain, "step", lambda *arguments: pytest.fail("it began to work"))
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(PermissionError, match="no file can be created in the folder"):
        run("gibbs", tmp_path / "folder")


def test_a_full_disk_warns_once_and_the_fit_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: str
) -> None:
    write, count = generations.write, [0]

    def full(*arguments: Any) -> None:
        count[0] += 1
        if count[0] > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*arguments)

    monkeypatch.setattr(generations, "write", full)
    with pytest.warns(UserWarning, match="No space left on device") as caught:
        ring = run("gibbs", tmp_path)
    assert fingerprint(ring) == expected
    told = [str(each.message) for each in caught if "checkpoint" in str(each.message)]
    assert len(told) == 1
    assert "device. The fit continues" in told[0]
    monkeypatch.undo()
    assert fingerprint(run("gibbs", tmp_path)) == expected


def test_a_disk_that_is_full_from_the_start_ends_the_fit_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"fit\.state cannot be written: no space left on device\.$"):
        run("gibbs", tmp_path)
    monkeypatch.undo()
    left = [each.name for each in tmp_path.iterdir() if each.name != "lock"]
    assert not left


def test_two_fits_do_not_share_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with (
        open_checkpoint(tmp_path, 1.0, {"random_state": "3"}),
        pytest.raises(ValueError, match="in use by another fit"),
    ):
        run("gibbs", tmp_path)


def test_leftovers_are_removed_and_nothing_else(begun: Path) -> None:
    ours = begun / ".chain-0.state.0123abcd.tmp"
    theirs = [begun / ".notes.txt", begun / ".letter.doc.0123abcd.tmp", begun / "a.tmp"]
    for path in (ours, *theirs):
        path.write_text("half")
    run("gibbs", begun)
    assert not ours.exists()
    assert all(path.exists() for path in theirs)


@pytest.mark.parametrize("every", [-1.0, float("nan"), float("inf"), "30", True, None])
def test_seconds_that_are_none(tmp_path: Path, every: Any) -> None:
    ring = TensorRing(2, warmup=1, draws=1, chains=1, progress=False)
    with pytest.raises(ValueError, match="checkpoint_every must be a number of seconds"):
        ring.fit(*data("gibbs"), checkpoint=tmp_path / "folder", checkpoint_every=every)
    assert not (tmp_path / "folder").exists()


def test_state_comes_back_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tree = {
        "fortran": np.asfortranarray(rng.standard_normal((3, 4))),
        "none": None,
        "numbers": [1, 2.5, float("inf"), -0.0, np.float64(0.1), np.int32(7), True],
        "tuples": ((1, 2), [3, (4,)], {}),
        "empty": np.empty((0, 3), dtype=np.int32),
        7: "text as it is: \u00e9\n",
    }
    generations.write(tmp_path, "piece", *take_apart(tree))
    plain, arrays = generations.read(tmp_path, "piece") or (None, [])
    found = put_together(plain, arrays, classes_in(tree))
    assert found["fortran"].flags.f_contiguous
    assert not found["fortran"].flags.c_contiguous
    assert found["fortran"].tobytes() == tree["fortran"].tobytes()  # type: ignore[union-attr]
    assert [type(each) for each in found["numbers"]] == [type(each) for each in tree["numbers"]]  # type: ignore[union-attr]
    assert found["numbers"] == tree["numbers"]
    assert found["tuples"] == tree["tuples"]
    assert found["empty"].shape == (0, 3)
    assert found["empty"].dtype == np.int32
    assert found[7] == tree[7]
    with pytest.raises(TypeError, match="cannot hold object"):
        take_apart(object())


def test_classes_are_found_wherever_they_are() -> None:
    """In tuples, lists, mappings and in each other."""
    size, phase = RingSize(2, (1, 2)), Schedule.begin(9)
    tree = {"a": [size, (phase,)], "b": {"c": [[Position(3, 4)]]}}
    plain, arrays = take_apart(tree)
    assert put_together(json.loads(json.dumps(plain)), arrays, classes_in(tree)) == tree
    with pytest.raises(KeyError, match="RingSize"):
        put_together(plain, arrays, classes_in([Position(0, 0)]))


def test_other_offsets_are_refused(tmp_path: Path) -> None:
    """What observations carry belongs to the data."""
    coords, values = data("gibbs")
    ring = TensorRing(1, warmup=1, draws=1, chains=1, random_state=0, progress=False)
    for offset in (0.5, 0.75):
        given = Given(offset=np.full(len(values), offset))
        observed = Observations(coords, values, SHAPE, given=given)
        if offset == 0.5:
            ring.fit_observations(observed, plain_labels(3), keep=Keep(tmp_path, 0.0))
            continue
        with pytest.raises(ValueError, match="belongs to a fit with other data"):
            ring.fit_observations(observed, plain_labels(3), keep=Keep(tmp_path, 0.0))


def test_every_setting_is_a_fact() -> None:
    """But for the number of threads and whether bars are shown, on which no result depends."""
    parameters = TensorRing(random_state=0).get_params(deep=False)
    before = resolve(parameters).facts()
    others = {
        "rank": 3,
        "likelihood": Gaussian(2.0),
        "inference": "online-em",
        "prior": NormalGamma(),
        "order": None,
        "update": "entry",
        "warmup": 301,
        "draws": 201,
        "chains": 3,
        "max_time": 60.0,
        "max_memory": 2**20,
        "dtype": "float32",
        "batch_size": 100,
        "epochs": 201,
        "random_state": 1,
    }
    assert set(others) == set(parameters) - {"shape", "share", "n_jobs", "progress"}
    for name, value in others.items():
        settings = parameters | {name: value}
        if name in ("batch_size", "epochs"):
            settings["inference"] = "online-em"
            plain = resolve(parameters | {"inference": "online-em"}).facts()
            assert resolve(settings).facts() != plain, name
        if name == "update":
            settings["prior"] = NormalGamma()
            assert resolve(settings).facts() != resolve(settings | {"update": "slice"}).facts()
        if name == "warmup":  # "auto" has another rank policy
            given = resolve(parameters | {name: value - 1}).facts()
            assert resolve(settings).facts() != given
        assert resolve(settings).facts() != before, name
    for n_jobs, progress in ((1, True), (3, False)):
        assert resolve(parameters | {"n_jobs": n_jobs, "progress": progress}).facts() == before


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    """Its checksum is right, but it is where another chain stands."""
    for name in ("chain 0", "chain 1"):
        generations.write(tmp_path, name, name, [])
    (tmp_path / "chain 0.state").write_bytes((tmp_path / "chain 1.state").read_bytes())
    with pytest.raises(generations.Damaged, match="it holds chain 1, not chain 0"):
        generations.read(tmp_path, "chain 0")
