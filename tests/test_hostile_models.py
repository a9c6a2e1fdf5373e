"""Model files that need not be trusted, and those of releases before."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bayesring import TensorRing, TensorRingClassifier, load
from bayesring.priors import Fixed, GammaProcess, NormalGamma, NormalWishart, RingPrior
from tests.hostile_models import members_of, zipped

DATA = Path(__file__).parent / "data"
GIBBS, ONLINE = DATA / "model-v3-gibbs.ring", DATA / "model-v3-online-em.ring"
OLD_GIBBS, OLD_ONLINE = DATA / "model-v2-gibbs.ring", DATA / "model-v2-online-em.ring"
CELLS = {"site": ["s3", "s2", "s2"], "year": [2001, 2002, 2001], "item": [0, 1, 2]}
RECORDED = {
    GIBBS: {
        "mean": [4.5072727133542045, 4.706114304118405, 6.041883084617503],
        "std": [1.7159543811535074, 1.6656745959949415, 1.7548122693174704],
        "lower": [1.7984899073002967, 1.8683028733494829, 3.210012831331322],
        "upper": [7.358574411993665, 7.281561130884358, 8.931016705358845],
    },
    ONLINE: {
        "mean": [5.754152187656219, 4.463693366707667, 6.768798234266481],
        "std": [2.1604074139332448, 2.107208803443407, 2.729937143718567],
        "lower": [2.212862877676459, 1.0136131718895411, 2.4057442409753977],
        "upper": [9.321706411122628, 7.945921701649493, 11.412672177857985],
    },
}
N_ALTERED = 600
MODES = "'modes' of RingPrior must be a list of priors of modes"


@pytest.mark.parametrize(
    ("path", "version"),
    [(OLD_GIBBS, 2), (OLD_ONLINE, 2), (GIBBS, 3), (ONLINE, 3)],
    ids=lambda value: getattr(value, "stem", ""),
)
def test_files_of_every_version_predict_what_they_did(path, version, tmp_path):
    """Both versions hold the same fits. Saved again, a file has the version of this release."""
    assert version_of(path) == version
    ring = load(path)
    assert ring.prior_ == RingPrior.of(*[NormalWishart()] * 3)
    recorded = RECORDED[GIBBS if "gibbs" in path.stem else ONLINE]
    ring.save(tmp_path / "again.ring")
    assert version_of(tmp_path / "again.ring") == 3
    for model in (ring, load(tmp_path / "again.ring")):
        found = model.predict_table(pa.table(CELLS))
        for name, numbers in recorded.items():
            np.testing.assert_allclose(found[name].to_numpy(), numbers, rtol=1e-9)


def version_of(path):
    return json.loads(members_of(path.read_bytes())["description.json"])["version"]


@pytest.mark.parametrize("path", [OLD_ONLINE, ONLINE], ids=lambda path: path.stem)
def test_a_ring_of_online_em_learns_on(path):
    ring = load(path)
    ring.partial_fit(pa.table({**CELLS, "v": [1.0, 2.0, 3.0]}))
    assert ring.n_observations_ == 27


@pytest.mark.parametrize(
    "prior",
    [
        {"place": NormalGamma(), "time": "hierarchical"},
        RingPrior((NormalWishart(), Fixed(2.0), NormalGamma(3.0)), GammaProcess(3.0)),
    ],
    ids=["by name", "by place"],
)
def test_priors_of_modes_are_kept(tmp_path, prior):
    names = ["place", "time", "kind"]
    columns = [column.ravel() for column in np.indices((3, 2, 2))]
    table = pa.table(dict(zip(names, columns, strict=True)) | {"v": np.arange(12.0)})
    settings = {"warmup": 2, "draws": 3, "chains": 1, "random_state": 0, "progress": False}
    ring = TensorRing(1, prior=prior, **settings).fit(table, modes=names, value="v")
    ring.save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    assert loaded.prior_ == ring.prior_
    assert len({type(each) for each in loaded.prior_.modes}) > 1
    assert ring.predict_table(table).equals(loaded.predict_table(table))


def test_altered_files_are_refused_or_work(tmp_path, seed):
    """In a process of its own: an array that misleads a kernel ends the interpreter."""
    program = [sys.executable, Path(__file__).with_name("hostile_models.py")]
    done = subprocess.run(
        [*program, str(seed), str(N_ALTERED), tmp_path, GIBBS, ONLINE, OLD_GIBBS, OLD_ONLINE],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2000:]
    outcomes = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert len(outcomes) == N_ALTERED
    assert set(outcomes) == {"refused", "works"}


def altered(tmp_path, changes, source=ONLINE):
    """A model file with some of its arrays changed by functions."""
    members = members_of(source.read_bytes())
    for name, change in changes.items():
        buffer = io.BytesIO()
        np.save(buffer, change(np.load(io.BytesIO(members[f"{name}.npy"]))))
        members[f"{name}.npy"] = buffer.getvalue()
    path = tmp_path / "altered.ring"
    path.write_bytes(zipped(members))
    return path


def put(place, value):
    """A function that puts a value at a place of an array."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("0/starts", put(1, 10**9), "'starts' of chain 0 says that the cores begin at"),
        ("0/starts", put(1, 15), "but they begin at \\[0, 16, 28\\]"),
        ("0/flat", put((0, 3), np.nan), "'flat' of chain 0 holds numbers that are not finite"),
        ("0/flat", put((0, 3), 1e99), "entries could reach 1e"),
        ("0/flat", lambda a: a.astype(complex), "holds complex128, but numbers are required"),
        ("0/flat", lambda a: a.astype(str), "but numbers are required"),
        ("0/flat", lambda a: a[:, :-1], "draws of chain 0 do not fit the shape"),
        ("0/bonds", put(1, 0), "'bonds' of chain 0 holds numbers from 0 to 2"),
        ("0/bonds", put(1, 2**62), "'bonds' of chain 0 holds numbers from 2 to 4611686"),
        ("0/bonds", lambda a: a[:2], r"'bonds' of chain 0 has the shape \(2,\), but \(3,\)"),
        ("0/strands", lambda a: np.array(0), "'strands' of chain 0 holds numbers from 0 to 0"),
        ("0/nuisance", put((1, 0), -1.0), "'nuisance' of chain 0 holds numbers from -1.0"),
        ("0/nuisance", put((1, 0), 5e-324), "'nuisance' of chain 0 holds numbers from 5e-324"),
        ("0/nuisance", lambda a: a[:, :0], "'nuisance' of chain 0 has the shape"),
        ("0/scans", put(1, 1), "'scans' of chain 0 must increase"),
        ("0/weights", lambda a: a[:, 1:], "'weights' of chain 0 has the shape"),
        ("0/rank", lambda a: a[:, 1:], "'rank' of chain 0 has the shape"),
        ("1/trace noise", lambda a: a[1:], "'trace noise' of chain 1 has the shape"),
        ("labels/1", put(1, 2000), "labels of mode 1 are not distinct"),
        ("labels/1", lambda a: a[1:], r"labels of mode 1 have the shape \(2,\)"),
        ("labels/1", lambda a: a.astype(complex), "labels of mode 1 are of type complex128"),
        ("observed/coords", put((0, 0), 4), "coordinates of the training data are beyond"),
        ("observed/coords", put((0, 0), -1), "'coords' of the training data holds numbers from -1"),
        ("observed/coords", lambda a: a.astype(float), "holds float64, but numbers are required"),
        ("observed/values", put(0, np.inf), "'values' of the training data holds numbers that are"),
        ("observed/values", lambda a: a[1:], "'values' of the training data has the shape"),
        ("learner 1/counts 0", put(0, -1), "'counts 0' of learner 1 holds numbers from -1"),
        ("learner 1/counts 0", put(0, 99), "counts of learner 1 must sum to one positive number"),
        ("learner 1/prior 0 precision", lambda a: a[1:], "'prior 0 precision' of learner 1 has"),
        ("learner 1/prior 0 linear", lambda a: a[:, 1:], "'prior 0 linear' of learner 1 has"),
        ("learner 1/weights 0", lambda a: a.T, "'weights 0' of learner 1 has the shape"),
        ("learner 1/flat", lambda a: a[1:], "'flat' of learner 1 has the shape"),
        ("learner 1/width", lambda a: np.array(-1.0), "'width' of learner 1 holds numbers from"),
        ("learner 1/curvature", put(0, -1.0), "'curvature' of learner 1 holds numbers from -1"),
    ],
)
def test_arrays_are_checked(tmp_path, name, change, message):
    path = altered(tmp_path, {name: change})
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path} is not a complete bayesring model: ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("0/secret", "chain 0 has an array 'secret', which is unknown"),
        ("learner 1/secret", "learner 1 has an array 'secret', which is unknown"),
        ("observed/secret", "the training data has an array 'secret', which is unknown"),
        ("secret/0", "it has an array 'secret/0', which is unknown"),
    ],
)
def test_unknown_arrays_are_refused(tmp_path, name, message):
    members = members_of(ONLINE.read_bytes())
    members[f"{name}.npy"] = members["0/scans.npy"]
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "altered.ring")


def test_chains_have_the_same_traces(tmp_path):
    """Seen to fail: `diagnostics` ended with a KeyError."""
    members = members_of(GIBBS.read_bytes())
    del members["1/trace noise.npy"]
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    with pytest.raises(ValueError, match="the traces of chain 1 are not those of chain 0"):
        load(tmp_path / "altered.ring")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["yes", "no"], "must be different and sorted"),
        (["no", "no"], "must be different and sorted"),
        (["a", "b", "c"], "must be two labels"),
    ],
)
def test_classes_are_checked(tmp_path, labels, message):
    """Swapped, every probability would be that of the other class."""
    path, cells = tmp_path / "model.ring", [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]]
    ring = TensorRingClassifier(1, warmup=2, draws=3, chains=1, progress=False)
    ring.fit(cells, ["yes", "no", "no", "yes"]).save(path)
    members, buffer = members_of(path.read_bytes()), io.BytesIO()
    np.save(buffer, np.array(labels))
    members["classes/labels.npy"] = buffer.getvalue()
    path.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=message):
        load(path)


OF_MODE_3 = {"class": "Gaussian", "noise_by": 3, "group_mode": 3, "caps": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("scale",), -2.0, "'scale' in the description must be a positive finite number, got -2.0"),
        (("scale",), float("inf"), "'scale' in the description must be a positive finite number"),
        (("location",), "5", "'location' in the description must be a finite number, got '5'"),
        (("location",), 10**400, "'location' in the description must be a finite number"),
        (("shape",), [4, 3, True], "'shape' in the description must be a list"),
        (("shape",), [4, -3, 3], "'shape' in the description must be a list"),
        (("warmup",), -1, "'warmup' in the description must be an integer of at least 0"),
        (("n_observations",), 0, "'n_observations' in the description must be an integer of at"),
        (("labels", "names"), ["a", "b"], r"must have 3 names, got \('a', 'b'\)"),
        (("labels", "names"), ["a", "b", 3], "'names' in the labels must be a list of texts"),
        (("labels", "table kind"), "os", "the library 'os' of its table is unknown"),
        (("parameters", "kernel"), 1, "the parameters contain 'kernel', which is unknown"),
        (("parameters", "random_state"), -1, "'random_state' in the parameters must be an integer"),
        (("parameters", "n_jobs"), 10**6, "'n_jobs' in the parameters must be null or an integer"),
        (("parameters", "warmup"), "4", "'warmup' in the parameters must be 'auto' or an integer"),
        (("prior", "modes"), [{"class": "UnitWeights"}], MODES),
        (("prior", "modes"), [], MODES),
        (("prior", "modes"), 3, MODES),
        (("prior", "modes"), [{"class": "Fixed"}] * 2, "has priors for 2 modes, but the data have"),
        (("prior", "modes"), [{"class": "Fixed"}] * 65, MODES),
        (("prior", "cores"), {"class": "UnitWeights"}, MODES),
        (("prior",), {"class": "CorePrior"}, "uses 'CorePrior', which this release does not know"),
        (("rank", "rank"), "x", "'rank' of FixedRank must be a positive integer or a list"),
        (("rank", "speed"), 1, "FixedRank has no field 'speed'"),
        (("likelihood",), {"class": "Fixed"}, "'likelihood' in the description must be a Likelih"),
        (("fitted likelihood", "tails"), ["a"] * 99, "'tails' of Gaussian must be a list of fini"),
        (("fitted likelihood", "alpha0"), 10**400, "'alpha0' of Gaussian must be a finite number"),
        (("fitted likelihood",), OF_MODE_3, "noise_by refers to mode 3, which is not there"),
        (("prior", "share"), [[0, 3]], "which are no pairs of equal modes"),
        (("prior", "share"), [[0, 1]], "which are no pairs of equal modes"),
        (("symmetric",), [[0, 1]], "which are not shared"),
    ],
)
def test_descriptions_are_checked(tmp_path, place, value, message):
    members = members_of(GIBBS.read_bytes())
    description = json.loads(members["description.json"])
    node = description
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    members["description.json"] = json.dumps(description).encode()
    path = tmp_path / "altered.ring"
    path.write_bytes(zipped(members))
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path} is not a complete bayesring model: ")


def peak_of(path, message):
    """Most memory that Python took while a file was refused, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as caught:
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert str(path) in str(caught.value)


def npy(header, content=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (500000000,), }"


@pytest.mark.parametrize(
    ("members", "method", "message"),
    [
        ({"0/flat.npy": npy(HUGE)}, zipfile.ZIP_STORED, "declares the shape"),
        ({"0/flat.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED, "is compressed or encrypted"),
        ({"description.json": b"[" * 100_000}, zipfile.ZIP_STORED, "recursion"),
        ({"description.json": b" " * 2**21}, zipfile.ZIP_STORED, "2,097,152 bytes, more than"),
        ({"description.json": b'{"a": NaN}'}, zipfile.ZIP_STORED, "NaN, which is not a number"),
        ({"description.json": b'{"a": 1, "a": 2}'}, zipfile.ZIP_STORED, "two entries with the"),
        ({"description.json": b'{"a": ' + b"9" * 9999}, zipfile.ZIP_STORED, "limit"),
        ({"description.json": b"\xff\xfe"}, zipfile.ZIP_STORED, "decode"),
        ({"description.json": b"[]"}, zipfile.ZIP_STORED, "is not a JSON object"),
        ({"0/flat.npy": b"\x80\x04pickle"}, zipfile.ZIP_STORED, "does not begin like a NumPy"),
        ({"0/flat.npy": npy("__import__('os')")}, zipfile.ZIP_STORED, "no header of a plain array"),
        ({"0/flat.npy": npy(HUGE.replace("<f8", "|O8"))}, zipfile.ZIP_STORED, "no header"),
        ({"program.py": b"1"}, zipfile.ZIP_STORED, "'program.py' is not an array"),
        ({"a" * 300: b"1"}, zipfile.ZIP_STORED, "a member has the name 'aaa"),
    ],
)
def test_archives_are_refused_before_memory_is_taken(tmp_path, members, method, message):
    path = tmp_path / "altered.ring"
    path.write_bytes(zipped(members_of(GIBBS.read_bytes()) | members, method))
    assert peak_of(path, message) < 20_000_000


def test_members_may_not_overlap_nor_be_there_twice(tmp_path):
    path = tmp_path / "altered.ring"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("description.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("description.json", "{}")
    with pytest.raises(ValueError, match=r"two members 'description\.json'"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("0/flat.npy", bytes(1000))
        for number in range(1, 100):
            copied = archive.getinfo("0/flat.npy")
            other = zipfile.ZipInfo(f"{number}/flat.npy")
            for field in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(other, field, getattr(copied, field))
            archive.filelist.append(other)
    with pytest.raises(ValueError, match=r"declare 100,000 bytes, but the file has"):
        load(path)


def test_bits_that_are_no_text_are_refused(tmp_path):
    members = members_of(GIBBS.read_bytes())
    members["labels/0.npy"] = members["labels/0.npy"][:-4] + b"\xff" * 4
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    with pytest.raises(ValueError, match="holds bits that are not valid text"):
        load(tmp_path / "altered.ring")


def test_what_is_no_file_is_refused_without_waiting(tmp_path):
    (tmp_path / "empty.ring").touch()
    os.mkfifo(tmp_path / "pipe.ring")
    (tmp_path / "folder.ring").mkdir()
    for name, message in {
        "empty": "it is empty",
        "pipe": "not a regular file",
        "folder": "not a regular file",
    }.items():
        errors = []

        def attempt(path=tmp_path / f"{name}.ring", errors=errors):
            try:
                load(path)
            except ValueError as error:
                errors.append(str(error))

        thread = threading.Thread(target=attempt, daemon=True)
        thread.start()
        thread.join(10)
        expected = f"{tmp_path / name}.ring is not a bayesring model, or is damaged: "
        assert [each.startswith(expected) for each in errors] == [True]
        assert message in errors[0]


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    ring = load(GIBBS)
    ring.description_["parameters"]["epochs"] = 1.5
    with pytest.raises(ValueError, match="'epochs' in the parameters must be an integer"):
        ring.save(tmp_path / "model.ring")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("setting", [{"warmup": np.int64(2)}, {"random_state": 2**100}])
def test_settings_at_the_edge_are_kept(tmp_path, setting):
    settings = {"warmup": 2, "random_state": 0, "draws": 3, "chains": 1, "progress": False}
    X = np.array([[0, 0, 0], [1, 1, 1], [2, 0, 1]])
    ring = TensorRing(1, **settings | setting).fit(X, [1.0, 2.0, 3.0])
    ring.save(tmp_path / "model.ring")
    np.testing.assert_array_equal(load(tmp_path / "model.ring").predict(X), ring.predict(X))
