"""The fuzzer: many generated cases per target, in a process that is watched and restarted.

    python -m tests.fuzz.run --cases 100000 --seed 1
    python -m tests.fuzz.run --target csv --case 1234 --seed 1      # one case again, in the open

A case works or is refused in one sentence. Anything else is a failure: another error, a crash of
the interpreter, no answer within ten seconds, a result of the wrong shape, or data that came back
changed.
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.targets import SHARES, TARGETS
from tests.fuzz.worker import case

ROOT = Path(__file__).parents[2]
SECONDS = 10.0
"""A case that takes longer hangs."""
SECONDS_TO_START = 180.0
"""Kernels may have to be compiled."""
MOST_FAILURES = 20
"""Failures of a target after which it is left."""


class Tally(NamedTuple):
    """What became of the cases of one target."""

    counts: Counter[str]
    """Number of cases that worked, were refused, or failed."""
    failures: list[str]


def command_of(target: str, *numbers: int) -> list[str]:
    """The program to watch."""
    return [sys.executable, "-m", "tests.fuzz.worker", target, *map(str, numbers)]


def fuzz(target: str, seed: int, n: int) -> Tally:
    """Run `n` cases of a target."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    begin = 0
    while begin < n and len(failures) < MOST_FAILURES:
        done, failure = _watch(target, seed, begin, n, counts, failures)
        begin = done
        if failure is not None:
            counts["failed"] += 1
            failures.append(f"{target} case {done}: {failure}")
            begin += 1
    return Tally(counts, failures)


def _watch(
    target: str, seed: int, begin: int, end: int, counts: Counter[str], failures: list[str]
) -> tuple[int, str | None]:
    """The next case, and how the worker died, if it did."""
    command = command_of(target, seed, begin, end)
    with tempfile.TemporaryFile("w+") as said:
        worker = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, cwd=ROOT, env=os.environ
        )
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(worker, lines), daemon=True)
        reader.start()
        following, limit = begin, SECONDS_TO_START
        try:
            while following < end:
                line = lines.get(timeout=limit)
                if not line:
                    said.seek(0)
                    return following, f"ended with {worker.wait()}: {said.read()[-2000:]}"
                if line != "ready\n":
                    number, found = line.rstrip("\n").split(" ", 1)
                    following = int(number) + 1
                    good = found in ("works", "refused")
                    counts[found if good else "failed"] += 1
                    if not good:
                        failures.append(f"{target} case {number}: {found}")
                    if len(failures) >= MOST_FAILURES:
                        return following, None
                limit = SECONDS
        except queue.Empty:
            return following, f"no answer within {limit:.0f} seconds"
        finally:
            worker.kill()
            worker.wait()
            reader.join()
    return following, None


def _read(worker: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert worker.stdout is not None
    with worker.stdout as written:
        for line in written:
            lines.put(line)
    lines.put("")


def main() -> int:
    """Print counts per target; the exit code says whether anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=sorted(TARGETS), action="append")
    parser.add_argument("--case", type=int, help="run this one only, here, with its traceback")
    given = parser.parse_args()
    targets = given.target or list(SHARES)
    if given.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            TARGETS[targets[0]](case(given.seed, targets[0], given.case), Path(folder))
        return 0
    total: Counter[str] = Counter()
    share = sum(SHARES[target] for target in targets)
    _say(f"seed {given.seed}")
    _say(f"{'target':12} {'cases':>8} {'works':>8} {'refused':>8} {'failed':>8} {'seconds':>8}")
    for target in targets:
        begin = time.perf_counter()
        found = fuzz(target, given.seed, -(-given.cases * SHARES[target] // share))
        _say(_row(target, found.counts, time.perf_counter() - begin))
        for each in found.failures:
            _say(each)
        total += found.counts
    _say(_row("all", total))
    return 1 if total["failed"] else 0


def _row(name: str, counts: Counter[str], seconds: float | None = None) -> str:
    numbers = [sum(counts.values()), *(counts[each] for each in ("works", "refused", "failed"))]
    took = "" if seconds is None else f"{seconds:8.0f}"
    return f"{name:12} " + " ".join(f"{number:8,}" for number in numbers) + f" {took}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
