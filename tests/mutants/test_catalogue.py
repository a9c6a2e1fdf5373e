"""The planted bugs still apply, all packages have some, and the runner judges as it says.

Quick: nothing is planted here but into small copies. `make mutants` runs them all.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import run
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import PACKAGE, ROOT, DoesNotApply, Mutant

MODULES = (
    "classifier.py",
    "completion.py",
    "estimator.py",
    "fitting.py",
    "predicting.py",
    "settings.py",
)
"""Modules beside the packages that must have a mutant of their own."""
EXAMPLE = Mutant("two is three", "a.py", "x = 2\n", "x = 3\n", ("tests/test_a.py::test_a",))


def test_every_mutant_applies_once_and_is_a_program():
    broken = []
    for mutant in MUTANTS:
        try:
            ast.parse(mutant.applied((PACKAGE / mutant.file).read_text("utf-8")))
        except DoesNotApply as error:
            broken.append(str(error))
        except SyntaxError as error:
            broken.append(f"mutant {mutant.name!r} is no Python: {error}.")
        if mutant.old == mutant.new:
            broken.append(f"mutant {mutant.name!r} changes nothing.")
    assert not broken, "\n".join(["", *broken])


def test_names_are_given_once():
    assert not [name for name, n in Counter(each.name for each in MUTANTS).items() if n > 1]
    assert len(MUTANTS) >= 80


def test_the_tests_named_exist():
    lost = []
    for mutant in MUTANTS:
        assert mutant.tests, mutant.name
        for node in mutant.tests:
            path, _, function = node.partition("::")
            text = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""
            name = re.escape(function.partition("[")[0])
            if not text or (function and not re.search(rf"^def {name}\(", text, re.MULTILINE)):
                lost.append(f"{mutant.name}: {node}")
    assert not lost, "\n".join(["", *lost])


def test_bits_that_were_recorded_are_no_witness():
    """They are compared on one kind of machine only, and recorded anew when they change."""
    nodes = [test for each in MUTANTS for test in each.tests]
    assert not [node for node in nodes if node.startswith("tests/same_bits/")]


def test_every_package_has_mutants():
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    expected = {*packages - {Path()}, *map(Path, MODULES)}
    covered = {parent for each in MUTANTS for parent in (Path(each.file), *Path(each.file).parents)}
    assert len(expected) > 15
    assert not expected - covered


def test_a_mutant_that_does_not_apply_says_so():
    assert EXAMPLE.applied("x = 2\ny = 2\n") == "x = 3\ny = 2\n"
    for text, times in (("x = 4\n", 0), ("x = 2\nx = 2\n", 2)):
        with pytest.raises(DoesNotApply, match=f"'two is three'.*a.py has its old text {times} ti"):
            EXAMPLE.applied(text)


def test_a_bug_is_planted_in_the_copy_alone(tmp_path):
    """Files of a copy are hard links; what was compiled from the old text is not used."""
    for folder in ("original", "copy"):
        (tmp_path / folder / "__pycache__").mkdir(parents=True)
    source, copy = tmp_path / "original" / "a.py", tmp_path / "copy" / "a.py"
    source.write_text("x = 2\n")
    os.link(source, copy)
    for name in ("a.cpython-311.pyc", "b.cpython-311.pyc", "b.kernel.nbi"):
        (copy.parent / "__pycache__" / name).touch()
    EXAMPLE.plant(tmp_path / "copy")
    assert (source.read_text(), copy.read_text()) == ("x = 2\n", "x = 3\n")
    left = sorted(path.name for path in (copy.parent / "__pycache__").iterdir())
    assert left == ["b.cpython-311.pyc", "b.kernel.nbi"]
    assert not EXAMPLE.is_kernel
    kernel = EXAMPLE._replace(file="kernels/a.py")
    assert kernel.is_kernel
    (tmp_path / "copy" / "kernels" / "__pycache__").mkdir(parents=True)
    (tmp_path / "copy" / "kernels" / "a.py").write_text("x = 2\n")
    kernel.plant(tmp_path / "copy")
    assert not (tmp_path / "copy" / "kernels" / "__pycache__").exists()


@pytest.mark.parametrize(
    ("code", "shown", "outcome", "word"),
    [
        (0, "1 passed", run.SURVIVED, "all of its tests pass"),
        (1, "FAILED tests/test_a.py::test_a - assert 2 == 3", run.KILLED, "test_a.py::test_a"),
        (1, "ERROR tests/test_a.py::test_a - ValueError", run.KILLED, "test_a.py::test_a"),
        (2, "ERROR tests/test_a.py - SyntaxError", run.ERROR, "code 2"),
        (4, "", run.ERROR, "code 4: no word"),
        (5, "no tests ran", run.ERROR, "code 5: no tests ran"),
    ],
)
def test_only_tests_that_fail_kill(code, shown, outcome, word):
    found = run._judge(subprocess.CompletedProcess([], code, shown, ""))
    assert found[0] == outcome
    assert word in found[1]


def test_one_that_is_not_killed_fails_the_run(capsys):
    def verdict(outcome):
        return run.Verdict(EXAMPLE, outcome, 1.0, "why")

    assert run._summary([verdict(run.KILLED)] * 2, 60.0) == 0
    assert "2 mutants: 2 killed, 0 survived, 0 error; 1.0 minutes." in capsys.readouterr().out
    for outcome in (run.SURVIVED, run.ERROR):
        assert run._summary([verdict(run.KILLED), verdict(outcome)], 60.0) == 1
        assert f"{outcome}: a.py: two is three: why" in capsys.readouterr().out
