"""Rules of the house that a reader relies on: sizes, names, streams and the way to the kernels.

Each rule finds its offenders by reading the source, so that a new module is judged as soon as it
exists. Exceptions are named here with their reasons; `TO_DO` holds what breaks a rule today, and
`test_nothing_is_left_on_the_list_once_it_is_done` sees to it that the list only gets shorter.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULE_LINES, PARAMETERS = 400, 8

SAME_STEM = {"posterior/posterior.py": "the class that its package is about"}
"""Modules that may share their name with a package."""

MANY_PARAMETERS = {
    "src/bayesring/estimator.py:TensorRing.fit": "public: what may be known of observations",
    "src/bayesring/classifier.py:TensorRingClassifier.fit": "public: the same",
    "src/bayesring/growing.py:Growing.partial_fit": "public: what may be known of observations",
    "src/bayesring/classifier.py:TensorRingClassifier.partial_fit": "public: the same",
    "src/bayesring/estimator.py:TensorRing.__init__": "public: the settings of the estimator",
    "src/bayesring/classifier.py:TensorRingClassifier.__init__": "public: the same",
    "src/bayesring/report/svg.py:chart": "a picture's many options, all named where it is called",
    "src/bayesring/command/cli.py:complete": "public: the options of a command",
    "src/bayesring/command/cli.py:fit": "public: the options of a command",
    "src/bayesring/command/cli.py:predict": "public: the options of a command",
    "src/bayesring/command/cli.py:forecast": "public: the options of a command",
    "src/bayesring/command/clusters.py:_fit": "the same, called from Python",
    "src/bayesring/command/workflows.py:complete_file": "the same, called from Python",
    "src/bayesring/command/judged.py:predict_file": "the same, called from Python",
    "src/bayesring/command/judged.py:forecast_file": "the same, called from Python",
    "src/bayesring/completion.py:complete": "public: what to complete and how",
    "paper/bench/timing.py:TimedChain.__init__": "what a measurement varies",
    "paper/reproduce.py:reproduce": "the options of a command",
    "paper/studies.py:reproduce": "the same, called from Python",
    "paper/baselines/bayesian_cp.py:BayesianCP.__init__": "the settings of an estimator",
    "paper/baselines/ring_vi.py:BayesianRingVI.__init__": "the settings of an estimator",
    "paper/baselines/smurff.py:Smurff.__init__": "the settings of an estimator",
    "paper/baselines/variational.py:VariationalBaseline.__init__": "the settings of an estimator",
}
"""Functions that may have more than eight parameters, and why."""

MAY_IMPORT_KERNELS = {
    "src/bayesring/kernels/": "each other",
    "src/bayesring/engine/": "every operation on observations goes through here",
    "src/bayesring/data/": "sorting, hashing, pools of rows",
    "src/bayesring/likelihoods/": "draws and quantiles of their own distributions",
    "paper/bench/scans.py": "times the kernels themselves",
    "paper/baselines/sorted_views.py": "sorts for kernels of its own",
}
"""Who may import `bayesring.kernels`, and what for."""

STREAMS = "src/bayesring/engine/streams.py"
STREAM_MAKERS = {"default_rng", "SeedSequence", "Philox", "PCG64"}
OLD_NAMES = re.compile(r"Learner|Student(?!.?[tT])|Pupil")

TO_DO: dict[str, set[str]] = {}
"""Offenders that are known, by rule. Nothing may be added."""


@cache
def sources() -> dict[str, str]:
    """Text of every module of the package and of the evaluation, by its path from the root."""
    found = [*(ROOT / "src" / "bayesring").rglob("*.py"), *(ROOT / "paper").rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(found)}


@cache
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in sources().items()}


def repeated(places: dict[str, list[str]]) -> set[str]:
    return {f"{name}: {', '.join(at)}" for name, at in places.items() if len(at) > 1}


def stems_that_occur_twice() -> set[str]:
    """Modules and packages of one name, by which nobody could tell what an import means."""
    places = defaultdict(list)
    for path in sources():
        file = Path(path)
        if file.name == "__main__.py" or any(path.endswith(each) for each in SAME_STEM):
            continue
        places[file.parent.name if file.name == "__init__.py" else file.stem].append(path)
    del places["kernels"]  # of the package, and of the baselines: both are what they say
    return repeated(places)


def classes_that_occur_twice() -> set[str]:
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    return repeated(places)


def modules_that_are_too_long() -> set[str]:
    return {path for path, text in sources().items() if text.count("\n") > MODULE_LINES}


def functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function and method with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield inside + node.name, node
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from functions(node, f"{inside}{node.name}.")
        else:
            yield from functions(node, inside)


def functions_with_too_many_parameters() -> set[str]:
    """Kernels aside, which take arrays one by one."""
    offenders = set()
    for path, tree in trees().items():
        if "kernels" in Path(path).parts:
            continue
        for name, node in functions(tree):
            where = f"{path}:{name}"
            if count_parameters(node) > PARAMETERS and where not in MANY_PARAMETERS:
                offenders.add(where)
    return offenders


def count_parameters(node: ast.FunctionDef) -> int:
    given = node.args
    own = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return sum(each.arg not in ("self", "cls") for each in own)


def names_from_streams(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "bayesring.engine.streams"
        for alias in node.names
    }


def is_seed(node: ast.expr) -> bool:
    name = getattr(node, "id", None) or getattr(node, "attr", "")
    return bool(re.fullmatch(r"_?seed_?", name))


def is_own_number(node: ast.expr, known: set[str]) -> bool:
    """Whether it is a number written here, or a constant that `streams` did not define."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Name):
        return node.id.isupper() and node.id not in known
    return isinstance(node, ast.Attribute) and node.attr.isupper() and is_foreign(node, known)


def is_foreign(node: ast.Attribute, known: set[str]) -> bool:
    return not (isinstance(node.value, ast.Name) and node.value.id in known)


def stream_numbers_elsewhere() -> set[str]:
    """A number that sets streams of one seed apart, anywhere but in `engine/streams.py`.

    Either beside a seed in a list or tuple, in a list that makes a generator, or by its name.
    """
    offenders = set()
    for path, tree in trees().items():
        if path == STREAMS:
            continue
        known = names_from_streams(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and is_named_stream(node):
                offenders.add(f"{path}: {ast.unparse(node)}")
            candidates: list[ast.expr] = [node] if isinstance(node, ast.expr) else []
            makes_stream = isinstance(node, ast.Call) and called(node) in STREAM_MAKERS
            if isinstance(node, ast.Call) and makes_stream:
                candidates = node.args
            for keys in candidates:
                if not isinstance(keys, (ast.List, ast.Tuple)):
                    continue
                is_key = makes_stream or any(map(is_seed, keys.elts))
                if is_key and any(is_own_number(each, known) for each in keys.elts):
                    offenders.add(f"{path}: {ast.unparse(keys)}")
    return offenders


def is_named_stream(node: ast.Assign) -> bool:
    """Whether a number gets a name that calls it a stream."""
    is_number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
    return is_number and any("STREAM" in getattr(each, "id", "") for each in node.targets)


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", None) or getattr(node.func, "attr", "")


def imports_of_kernels() -> set[str]:
    offenders = set()
    for path, tree in trees().items():
        if path.startswith(tuple(MAY_IMPORT_KERNELS)):
            continue
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            if any(f"{each}.".startswith("bayesring.kernels.") for each in modules):
                offenders.add(f"{path}: {ast.unparse(node)}")
    return offenders


def old_names() -> set[str]:
    return {
        f"{path}: {found}"
        for path, text in sources().items()
        if path != "paper/bench/side.py"  # drives releases of before, by the names they had
        for found in OLD_NAMES.findall(text + Path(path).stem)
    }


RULES = [
    stems_that_occur_twice,
    classes_that_occur_twice,
    modules_that_are_too_long,
    functions_with_too_many_parameters,
    stream_numbers_elsewhere,
    imports_of_kernels,
    old_names,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_nobody_breaks(rule):
    offenders = rule() - TO_DO.get(rule.__name__, set())
    assert not offenders, "\n".join(["", *sorted(offenders)])


def test_nothing_is_left_on_the_list_once_it_is_done():
    for rule in RULES:
        done = TO_DO.get(rule.__name__, set()) - rule()
        assert not done, f"take off the list of {rule.__name__}: {sorted(done)}"


def test_exceptions_exist():
    """An exception for something that is gone would let the next offender of its name pass."""
    paths = sources()
    for each in SAME_STEM:
        assert any(path.endswith(each) for path in paths), each
    for each in MAY_IMPORT_KERNELS:
        assert any(path.startswith(each) for path in paths), each
    for each in MANY_PARAMETERS:
        path, name = each.split(":")
        assert count_parameters(dict(functions(trees()[path]))[name]) > PARAMETERS, each


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("rng = default_rng([seed, 3])", True),
        ("rng = default_rng([self.seed_, ORDER])", True),
        ("own = (seed, SAMPLE)", True),
        ("SAMPLE_STREAM = 1", True),
        ("rng = default_rng([seed, mode])", False),
        ("from bayesring.engine.streams import SAMPLE\nrng = default_rng([seed, SAMPLE])", False),
        ("from bayesring.engine.streams import Purpose\nkey = [seed, Purpose.RANK]", False),
    ],
)
def test_the_rule_on_streams_sees(monkeypatch, text, breaks):
    monkeypatch.setitem(globals(), "trees", lambda: {"src/bayesring/new.py": ast.parse(text)})
    assert bool(stream_numbers_elsewhere()) == breaks


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("import bayesring.kernels.slices", True),
        ("from bayesring.kernels import slices", True),
        ("from bayesring import kernels", True),
        ("from paper.kernels.train import train_loss", False),
    ],
)
def test_the_rule_on_kernels_sees(monkeypatch, text, breaks):
    monkeypatch.setitem(globals(), "trees", lambda: {"src/bayesring/new.py": ast.parse(text)})
    assert bool(imports_of_kernels()) == breaks
