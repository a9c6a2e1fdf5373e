"""Plant every bug of the catalogue, one at a time, and see that the tests named with it fail.

    python -m tests.mutants.run --jobs 2 --only checkpoint

Each bug goes into a copy of `src` in a temporary folder; the checkout is never touched. Kernels
that Numba keeps on disk are copied along, so that only bugs in kernels cost a compilation. First
all tests that are named run without any bug: what fails then proves nothing.

A mutant is *killed* if a test fails or the interpreter crashes, and *survives* if all pass.
Anything else is an *error*: its old text is not there exactly once, the tests cannot be collected,
or they take too long, unless the catalogue says of the mutant that it hangs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import PACKAGE, ROOT, DoesNotApply, Mutant

PATIENCE, ENDLESS = 400.0, 120.0
"""Seconds for the tests of one mutant; kernels may have to be compiled. Of one that hangs."""
KILLED, SURVIVED, ERROR = "killed", "survived", "error"
PASSED, FAILED = 0, 1
"""Exit codes of pytest."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    seconds: float
    detail: str
    """The first test that failed and why, or what went wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that are asked for; 0 if all were killed."""
    parser = argparse.ArgumentParser(description="plant bugs and see that tests notice them")
    parser.add_argument("--only", default="", help="pattern that name or file must match")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    given = parser.parse_args(arguments)
    chosen = [
        each for each in MUTANTS if re.search(given.only, f"{each.file} {each.name}", re.IGNORECASE)
    ]
    if not chosen:
        parser.error(f"no mutant matches {given.only!r}.")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        home = Path(folder)
        original = home / "original"
        shutil.copytree(PACKAGE, original / "bayesring")
        if not _passes_without(chosen, original, home, given.jobs):
            return 1
        with ThreadPoolExecutor(given.jobs) as pool:
            numbered = enumerate(chosen)
            found = []
            for verdict in pool.map(lambda each: _try(*each, original, home), numbered):
                _say(_line(verdict))
                found.append(verdict)
    return _summary(found, time.monotonic() - begin)


def _passes_without(chosen: Sequence[Mutant], original: Path, home: Path, jobs: int) -> bool:
    """Whether the tests pass on the copy as it is; compiles what Numba had not kept."""
    where = subprocess.run(
        [sys.executable, "-c", "import bayesring; print(bayesring.__file__)"],
        env=_environment(original),
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    if Path(where.strip()) != original / "bayesring" / "__init__.py":
        _say(f"the copy is not what Python imports, but {where.strip() or 'nothing'}.")
        return False
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    begin = time.monotonic()
    side_by_side = ["-n", str(jobs)] if jobs > 1 and len(tests) > jobs else []
    done = _pytest([*side_by_side, *tests], original, home / "without", None)
    if done.returncode != PASSED:
        _say(done.stdout + done.stderr)
        _say("the tests fail without any mutant; nothing was planted.")
        return False
    _say(f"{len(tests)} tests pass without a mutant, in {time.monotonic() - begin:.0f} s.")
    return True


def _try(number: int, mutant: Mutant, original: Path, home: Path) -> Verdict:
    """Plant one mutant in a copy of its own, and run its tests."""
    begin = time.monotonic()
    source = home / f"mutant-{number}"
    shutil.copytree(original, source, copy_function=os.link)
    try:
        mutant.plant(source / "bayesring")
        patience = ENDLESS if mutant.hangs else PATIENCE
        done = _pytest(mutant.tests, source, home / f"tests-{number}", patience)
        outcome, detail = _judge(done)
    except DoesNotApply as error:
        outcome, detail = ERROR, str(error)
    except subprocess.TimeoutExpired:
        outcome = KILLED if mutant.hangs else ERROR
        detail = f"its tests took more than {patience:.0f} s."
    finally:
        shutil.rmtree(source, ignore_errors=True)
        shutil.rmtree(home / f"tests-{number}", ignore_errors=True)
    return Verdict(mutant, outcome, time.monotonic() - begin, detail)


def _pytest(
    tests: Sequence[str], source: Path, scratch: Path, patience: float | None
) -> subprocess.CompletedProcess[str]:
    """Run tests of the checkout against the package in `source`."""
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "--tb=line", f"--basetemp={scratch}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *tests],
        env=_environment(source),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=patience,
    )


def _environment(source: Path) -> dict[str, str]:
    """Python finds the copy first; kernels are kept in the copy and nowhere else."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    paths = os.pathsep.join([str(source), str(ROOT)])
    return kept | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


def _judge(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    if done.returncode == PASSED:
        return SURVIVED, "all of its tests pass."
    lines = re.findall(r"^(?:FAILED|ERROR) (.+)$", done.stdout, re.MULTILINE)
    if done.returncode == FAILED and lines:
        return KILLED, lines[0].removeprefix("tests/")
    if done.returncode < 0:  # ended by a signal: a memory error, for one
        return KILLED, f"the interpreter ended with signal {-done.returncode}."
    told = (done.stderr or done.stdout).strip().splitlines()
    return ERROR, f"pytest ended with code {done.returncode}: {told[-1] if told else 'no word'}"


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    what = f"{mutant.file}: {mutant.name}"
    return f"{verdict.outcome:<9}{verdict.seconds:6.1f} s  {what:<90}  {verdict.detail[:110]}"


def _summary(found: Sequence[Verdict], seconds: float) -> int:
    counts = {
        outcome: sum(each.outcome == outcome for each in found)
        for outcome in (KILLED, SURVIVED, ERROR)
    }
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
    _say(f"{len(found)} mutants: {told}; {seconds / 60:.1f} minutes.")
    for each in found:
        if each.outcome != KILLED:
            _say(f"{each.outcome}: {each.mutant.file}: {each.mutant.name}: {each.detail}")
    return 0 if counts[KILLED] == len(found) else 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
