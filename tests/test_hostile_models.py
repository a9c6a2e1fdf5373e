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
from tests.hostile_models import judge, members_of, zipped
from tests.kinds_of_models import NAMES

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
CLASSIFIER, COUNTS, RATINGS, OUTLIERS = KINDS = [DATA / f"{name}.ring" for name in NAMES]
MODELS = [GIBBS, ONLINE, OLD_GIBBS, OLD_ONLINE, *KINDS]
N_ALTERED = 800
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
        [*program, str(seed), str(N_ALTERED), tmp_path, *MODELS],
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


def put(place, value, dtype=None):
    """A function that puts a value at a place of an array."""

    def change(array):
        array = array.astype(dtype) if dtype else array.copy()
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
        ("0/nuisance", put((1, 0), -1.0), "'nuisance' of chain 0 holds -1, but parameters of Gau"),
        ("0/nuisance", put((1, 0), 5e-324), "'nuisance' of chain 0 holds 4.94066e-324, but param"),
        ("learner 1/nuisance", put(0, 0.0), "'nuisance' of learner 1 holds 0, but parameters of"),
        (
            "labels/0",
            put(1, "a\0b", "U3"),
            r"hold the text 'a\\x00b', but keys are valid Unicode without",
        ),
        ("labels/0", put(1, "\ud800"), r"labels of mode 0 hold the text '\\ud800', but keys are"),
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
    refused(altered(tmp_path, {name: change}), message)


def refused(path, message):
    """The file is refused in one ValueError that names it."""
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert type(caught.value) is ValueError
    assert str(caught.value).startswith(f"{path} is not a complete bayesring model: ")


def row(number, value):
    """A function that puts a value into all rows of a column."""
    return put((slice(None), number), value)


@pytest.mark.parametrize(
    ("source", "name", "change", "message"),
    [
        (COUNTS, "0/nuisance", row(0, -3.0), "holds -3, but parameters of NegativeBinomial are at"),
        (COUNTS, "0/nuisance", row(0, 0.0), "holds 0, but parameters of NegativeBinomial are at"),
        (COUNTS, "0/nuisance", put((0, 0), -1e90), "holds -1e.90, but parameters of NegativeBin"),
        (COUNTS, "0/nuisance", put((3, -1), -1.0), "holds -1, but parameters of NegativeBinomial"),
        (OUTLIERS, "0/nuisance", row(0, -3.0), "holds -3, but parameters of StudentT are at least"),
        (OUTLIERS, "0/nuisance", put((0, 1), 2.0), "holds 2 degrees of freedom, but those of Stud"),
        (OUTLIERS, "1/nuisance", put((0, 3), 1.0), "holds 1 degrees of freedom, but those of Stud"),
        (
            RATINGS,
            "0/nuisance",
            lambda a: a[:, ::-1],
            "cut points of which one is .* below the one",
        ),
        (RATINGS, "0/nuisance", put((0, -1), -99.0), "cut points of which one is .* below the one"),
        (CLASSIFIER, "observed/weight", put(3, -1.0), "'weight' of the training data holds number"),
        (CLASSIFIER, "observed/values", put(3, 7.0), "y must be 0 or 1 for the Bernoulli likeliho"),
        (
            CLASSIFIER,
            "classes/labels",
            put(0, "a\0b", "U3"),
            r"its classes hold the text 'a\\x00b'",
        ),
        (COUNTS, "observed/exposure", put(3, -1.0), "'exposure' of the training data holds number"),
        (COUNTS, "observed/exposure", put(3, 0.0), "'exposure' of the training data holds numbers"),
        (COUNTS, "observed/values", put(3, -1.0), "y must hold counts, 0, 1, 2, ..., for the Nega"),
        (OUTLIERS, "observed/lower", put(0, 9.0), "lower ends below upper ones, got 9 and"),
        (OUTLIERS, "observed/lower", put(-1, 0.0), "lower ends below upper ones, got 0 and nan"),
        (OUTLIERS, "held out/std", put(0, -5.0), "'std' of the held-out data holds numbers from -"),
        (OUTLIERS, "held out/std", put(0, 0.0), "within 1e.100 error bars of their means, got"),
        (
            OUTLIERS,
            "0/scans",
            put(-1, 99),
            r"its draws are from scans up to \[99, 84\], but chains",
        ),
    ],
)
def test_what_no_fit_of_its_kind_ends_with_is_refused(tmp_path, source, name, change, message):
    """Seen to load, and then to predict errors, reversed intervals, or nothing at all."""
    refused(altered(tmp_path, {name: change}, source), message)


def test_counts_may_be_rare(tmp_path):
    """The intercept of their logarithms is then negative."""
    ring = load(altered(tmp_path, {"0/nuisance": row(1, -3.0)}, COUNTS))
    assert ring.predict([[0, 0, 0]]).item() > 0


def test_ends_come_in_pairs(tmp_path):
    members = members_of(OUTLIERS.read_bytes())
    del members["observed/upper.npy"]
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    refused(tmp_path / "altered.ring", "must have both lower and upper ends, or neither")


def test_what_the_likelihood_cannot_use_is_refused(tmp_path):
    members = members_of(RATINGS.read_bytes())
    members["observed/exposure.npy"] = members["observed/values.npy"]
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    refused(tmp_path / "altered.ring", "exposure was given, which the likelihood Ordinal cannot")


def test_held_out_probabilities_are_some(tmp_path):
    members, n = members_of(CLASSIFIER.read_bytes()), 4
    for name, array in {
        "coords": np.zeros((n, 3), dtype=int),
        "values": np.arange(n) % 2.0,
        "mean": np.array([0.1, 0.5, 1.0, 1.1]),
        "std": np.full(n, 0.5),
    }.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        members[f"held out/{name}.npy"] = buffer.getvalue()
    (tmp_path / "altered.ring").write_bytes(zipped(members))
    refused(tmp_path / "altered.ring", "means of the held-out data must be probabilities, got 0.1")


@pytest.mark.parametrize("source", MODELS, ids=lambda path: path.stem)
def test_genuine_files_answer(tmp_path, source):
    (tmp_path / "same.ring").write_bytes(source.read_bytes())
    assert judge(tmp_path / "same.ring", np.argwhere(np.ones((3, 3, 2)))) == "works"


def test_quantiles_far_out_are_numbers(tmp_path):
    """Seen to be NaN: of some degrees of freedom SciPy has no quantiles there."""

    def stretch(description):
        tails = description["fitted likelihood"]["tails"]
        description["fitted likelihood"]["tails"] = [1e6 * tail for tail in tails]

    ring = load(described(tmp_path, stretch, OUTLIERS))
    lower, upper = ring.predict_interval(np.argwhere(np.ones((3, 3, 2))), 0.9)
    assert np.all((np.isfinite(lower)) & (lower < -1e3) & (upper > 1e3) & np.isfinite(upper))


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


FALLING = np.arange(99.0)[::-1].tolist()
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
        (
            ("fitted likelihood", "tails"),
            [-2.0] * 99,
            "tails of Gaussian must not decrease, nor be",
        ),
        (("fitted likelihood", "tails"), [1e300] * 99, "tails of Gaussian must not decrease, nor"),
        (("fitted likelihood", "tails"), FALLING, "tails of Gaussian must not decrease, nor be be"),
        (
            ("warmup",),
            10**15,
            r"its warmup of 1000000000000000 is not within chains of \[7, 7\] sc",
        ),
        (("warmup",), 7, r"its warmup of 7 is not within chains of \[7, 7\] scans"),
        (("labels", "value"), "a\ud800", r"in 'labels', holds the text 'a\\ud800', which is not"),
        (("labels", "names"), ["a", "\udfff", "b"], "which is not valid Unicode"),
        (
            ("versions", "\ud800"),
            "1",
            "in 'versions', holds the text .* which is not valid Unicode",
        ),
        (("parameters", "inference"), "foo", "inference must be 'gibbs' or 'online-em', got 'foo'"),
        (("parameters", "update"), "foo", "update must be 'entry' or 'slice', got 'foo'"),
        (("parameters", "dtype"), "f8", "dtype must be 'float32' or 'float64', got 'f8'"),
    ],
)
def test_descriptions_are_checked(tmp_path, place, value, message):
    refused(described(tmp_path, lambda found: change_at(found, place, value)), message)


def change_at(description, place, value):
    for key in place[:-1]:
        description = description[key]
    description[place[-1]] = value


def described(tmp_path, change, source=GIBBS):
    """A model file whose description was changed by a function."""
    members = members_of(source.read_bytes())
    description = json.loads(members["description.json"])
    change(description)
    members["description.json"] = json.dumps(description).encode()
    path = tmp_path / "altered.ring"
    path.write_bytes(zipped(members))
    return path


@pytest.mark.parametrize(
    ("source", "place", "value", "message"),
    [
        (CLASSIFIER, ("location",), 5.0, "values of Bernoulli have location 0 and scale 1, got 5"),
        (CLASSIFIER, ("scale",), 2.0, "values of Bernoulli have location 0 and scale 1, got 0 and"),
        (COUNTS, ("location",), -1.0, "values of NegativeBinomial have location 0 and scale 1"),
        (RATINGS, ("location",), 0.5, "values of Ordinal have a whole number as location and sca"),
        (RATINGS, ("scale",), 2.0, "values of Ordinal have a whole number as location and scale 1"),
        (
            CLASSIFIER,
            ("asked", "likelihood"),
            "poisson",
            "likelihood must be 'bernoulli', or an ob",
        ),
        (CLASSIFIER, ("likelihood",), {"class": "Gaussian"}, "binary values, but not Gaussian"),
        (ONLINE, ("warmup",), 3, r"its warmup of 3 is not within chains of \[2, 2\] scans"),
    ],
)
def test_descriptions_fit_their_kind(tmp_path, source, place, value, message):
    refused(described(tmp_path, lambda d: change_at(d, place, value), source), message)


def test_a_classifier_has_a_likelihood_of_binary_values(tmp_path):
    """Seen to load: probabilities were 1.129 and -0.129."""
    members, buffer = members_of(GIBBS.read_bytes()), io.BytesIO()
    np.save(buffer, np.array(["no", "yes"]))
    members["classes/labels.npy"] = buffer.getvalue()
    (tmp_path / "plain.ring").write_bytes(zipped(members))
    path = described(
        tmp_path, lambda d: d.update(estimator="TensorRingClassifier"), tmp_path / "plain.ring"
    )
    refused(path, "a TensorRingClassifier has binary values, but not Gaussian")


def test_names_of_files_may_be_any(tmp_path):
    """Of a file whose name is no UTF-8, Python holds the bytes in halves of characters."""
    origin = {"input": "data\udce9.csv, 9 bytes", "command": "bayesring fit data\udce9.csv"}
    ring = load(described(tmp_path, lambda d: d.update(origin=origin)))
    page = ring.report(tmp_path / "page.html", progress=False)
    assert "bayesring fit data\\udce9.csv" in page.read_text("utf-8")


def test_names_that_no_file_holds_are_not_written(tmp_path):
    ring = load(GIBBS)
    ring.labels_ = ring.labels_._replace(value="a\ud800")
    with pytest.raises(ValueError, match="which is not valid Unicode"):
        ring.save(tmp_path / "model.ring")
    assert not list(tmp_path.iterdir())


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
