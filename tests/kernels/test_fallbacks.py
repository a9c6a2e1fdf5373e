"""Plain loops in place of vectors: their results, and how the choice is made and remembered."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bayesring.kernels import chosen, entries, gradient, slices, verdict
from bayesring.model import ring

ROOT = Path(__file__).resolve().parents[2]
CASES = [(1, 3, "float64"), (2, 3, "float64"), (5, 1, "float64"), (14, 1, "float64")]
CASES += [(5, 1, "float32")]


def results(all_kernels: bool) -> dict[str, np.ndarray]:
    """What the public kernels give for random cases, or `entries` alone in float64."""
    found = {}
    for rank, strands, dtype in CASES if all_kernels else CASES[:-1]:
        rng = np.random.default_rng([rank, strands])
        shape, n, size = (4, 5, 3), 150, strands * rank * rank
        cores = [rng.standard_normal((each, strands, rank, rank)) / rank for each in shape]
        flat = ring.flatten(cores, dtype)
        own = np.sort(rng.integers(0, 4, n)).astype(np.int32)
        others = np.stack([rng.integers(0, each, n) for each in shape[1:]]).astype(np.int32)
        case = f"rank {rank}, {dtype}"
        found[f"entries, {case}"] = entries.entries(*flat, 0, own, others)
        if not all_kernels:
            continue
        drawn = slices.draw_slices(
            *flat,
            0,
            others,
            np.searchsorted(own, np.arange(5)),
            rng.gamma(2.0, size=n),
            rng.standard_normal(n),
            rng.standard_normal(strands * rank),
            np.eye(size),
            rng.gamma(1.0, size=(1, size)),
            np.ones((1, size)),
            np.ones(1),
            rng.standard_normal((4, size)),
        )
        for name, array in zip(("slices", "precision", "linear"), drawn, strict=True):
            found[f"{name}, {case}"] = array
        if dtype == "float64":
            found[f"learned, {case}"] = learned(rng, flat, own, others, shape)
    return found


def learned(rng, flat, own, others, shape):
    """The cores and their moments after a batch of online EM."""
    n, n_rows, length = own.size, sum(shape), flat.flat.size
    size = int(flat.strands * flat.bonds[0] ** 2)
    weighted, cores = flat.flat.copy(), flat.flat.copy()
    moments = np.zeros(length), np.zeros(length), np.ones((n_rows, 2))
    prior = np.eye(size), np.ones((1, size)), np.zeros((1, size)), True
    gradient.learn(
        cores,
        (weighted, *tuple(flat)[1:]),
        np.concatenate([own[None], others, own[None], others[:1]]),
        rng.standard_normal((2, n)) ** 2,
        (np.cumsum([0, *shape[:-1]]), np.zeros(n_rows, dtype=np.int64)),
        np.full(n_rows, 100.0),
        (np.zeros(length), np.zeros(length)),
        moments,
        tuple(np.ones(flat.strands * bond) for bond in flat.bonds),
        (prior,) * 3,
        np.ones(n_rows, dtype=bool),
        0.01,
    )
    return np.concatenate([cores, weighted, *moments[:2]])


FIT = """
import numpy as np
from bayesring import TensorRing
from bayesring.kernels import chosen
rng = np.random.default_rng(0)
coords = np.stack([rng.integers(0, 6, 200) for _ in range(3)], axis=1)
values = np.sin(coords).sum(axis=1)
for settings in ({"warmup": 20}, {"inference": "online-em", "warmup": 0, "epochs": 5}):
    model = TensorRing(2, draws=10, chains=1, random_state=0, progress=False, **settings)
    model.fit(coords, values, shape=(6, 6, 6))
    print(chosen.PLAIN, np.isfinite(model.predict(coords)).all())
"""

BROKEN = """
import llvmlite.ir
def shuffle_vector(*_):
    {what}
llvmlite.ir.IRBuilder.shuffle_vector = shuffle_vector
"""

SAY = """
import json, warnings
from bayesring.kernels import verdict
checks = []
apart = verdict.check_apart
verdict.check_apart = lambda: checks.append(0) or apart()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    works = verdict.use_vectors()
print(json.dumps([works, len(checks), [str(each.message) for each in said]]))
"""


def run(program, cache, *arguments, path=(), **environment):
    """What a Python of its own prints."""
    paths = [*map(str, path), str(ROOT / "src"), str(ROOT)]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {verdict.VARIABLE: "0"} | settings | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def say(cache, path=()):
    """Whether vectors work, the number of checks, and what was said.

    The package around the kernels is a stub: it would make the choice before it can be watched.
    """
    stub = (
        "import sys, types\n"
        "package = types.ModuleType('bayesring')\n"
        f"package.__path__ = [{str(ROOT / 'src' / 'bayesring')!r}]\n"
        "sys.modules['bayesring'] = package\n"
    )
    return json.loads(run(stub + SAY, cache, path=path))


@pytest.fixture(scope="module")
def plain_cache(tmp_path_factory):
    """A folder for what plain kernels are compiled to."""
    return tmp_path_factory.mktemp("plain")


@pytest.mark.ci
@pytest.mark.parametrize("all_kernels", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_plain_loops_give_the_results_of_vectors(tmp_path, plain_cache, all_kernels):
    program = (
        "import sys, numpy as np\n"
        "from bayesring.kernels import chosen\n"
        "from tests.kernels.test_fallbacks import results\n"
        "assert chosen.PLAIN\n"
        f"np.savez(sys.argv[1], **results({all_kernels}))\n"
    )
    target = tmp_path / "plain.npz"
    run(program, plain_cache, str(target), **{verdict.VARIABLE: "1"})
    with np.load(target) as plain:
        for name, expected in results(all_kernels).items():
            scale = max(1.0, np.abs(expected).max())
            tolerance = (1e-12 if "float64" in name else 1e-4) * scale
            np.testing.assert_allclose(plain[name], expected, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.slow
def test_a_fit_works_with_plain_loops(plain_cache):
    assert run(FIT, plain_cache, **{verdict.VARIABLE: "1"}).split() == ["True", "True"] * 2


@pytest.mark.slow
def test_kernels_on_disk_tell_vectors_from_plain_loops(tmp_path):
    """Both are there after a run of each, and neither is taken for the other."""
    program = (
        "import numpy as np\n"
        "from bayesring.kernels import slices\n"
        "slices.draw_gaussian(np.eye(3), np.ones(3), np.zeros(3), np.empty(3))\n"
        "stats = slices.draw_gaussian.stats\n"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))\n"
    )
    for expected in ("0 1", "1 0"):
        for plain in ("0", "1"):
            found = run(program, tmp_path, **{verdict.VARIABLE: plain})
            assert found.strip() == expected
    names = [path.name for path in tmp_path.rglob("slices.draw_gaussian-*.nbi")]
    assert sorted("plain" in name for name in names) == [False, True]


def test_a_verdict_is_remembered(tmp_path):
    assert say(tmp_path) == [True, 1, []]
    assert say(tmp_path) == [True, 0, []]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("raise TypeError('pointers are opaque')", "pointers are opaque"),
        pytest.param("import os; os.abort()", "crashed", marks=pytest.mark.slow),
    ],
)
def test_vectors_that_do_not_work_lead_to_plain_loops_and_a_warning(tmp_path, what, reason):
    (tmp_path / "sitecustomize.py").write_text(BROKEN.format(what=what))
    for checks in (1, 0):
        works, checked, said = say(tmp_path / "cache", path=[tmp_path])
        assert not works
        assert checked == checks
        assert len(said) == 1
        assert reason in said[0]
        assert "plain loops" in said[0]


def test_a_verdict_that_cannot_be_read_is_found_out_again(tmp_path, monkeypatch):
    class Anything:
        class stats:
            cache_path = str(tmp_path)

    monkeypatch.setattr(verdict, "_anything", Anything)
    monkeypatch.setattr(verdict, "check_apart", lambda: "it is broken")
    assert verdict.remembered_failure() == "it is broken"
    (path,) = tmp_path.iterdir()
    path.write_text("{")
    assert verdict.remembered_failure() == "it is broken"
    monkeypatch.setattr(verdict, "check_apart", lambda: pytest.fail("checked again"))
    assert verdict.remembered_failure() == "it is broken"


def test_the_environment_asks_for_plain_loops(monkeypatch):
    monkeypatch.setattr(verdict, "remembered_failure", lambda: "")
    for value, expected in (("1", False), ("yes", False), ("0", True), ("", True)):
        monkeypatch.setenv(verdict.VARIABLE, value)
        assert verdict.use_vectors() is expected


def test_a_program_that_is_no_python_checks_in_its_own_process(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/opt/reader/reader.exe")
    assert verdict.check_apart() is None


def test_names_of_kernels_change_with_any_source(tmp_path, monkeypatch):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("one\n")
    monkeypatch.setattr(verdict, "_HERE", tmp_path)
    found = [verdict.sources()]
    (tmp_path / "b.py").write_text("two\n")
    found.append(verdict.sources())
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    found.append(verdict.sources())
    assert len(set(found)) == 3


def test_names_of_kernels_tell_the_choice(monkeypatch):
    assert slices.draw_slices.py_func.__qualname__.endswith("-plain") == chosen.PLAIN
    assert verdict.sources() in slices.draw_slices.py_func.__qualname__
    names = []
    for vectors in (True, False):  # the choice is made anew in a copy of the module
        monkeypatch.setattr(verdict, "use_vectors", lambda vectors=vectors: vectors)
        spec = importlib.util.spec_from_file_location("chosen_anew", chosen.__file__)
        anew = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(anew)
        assert anew.PLAIN is not vectors

        def twice(x):
            return 2 * x

        names.append(anew.kernel(twice).py_func.__qualname__)
    assert names[1] == names[0] + "-plain"
