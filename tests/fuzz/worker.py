"""Runs cases one after the other, a line for each; the program that `tests.fuzz.run` watches."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random

from tests.fuzz.judging import is_refusal, where
from tests.fuzz.targets import TARGETS

MOST_MEMORY = 24 * 2**30
"""Bytes of addresses that a worker may use: far more than any case needs."""


def outcome(target: str, rng: Random, folder: Path) -> str:
    """What became of a case: it works, is refused, or what went wrong."""
    try:
        TARGETS[target](rng, folder)
    except Exception as error:
        return "refused" if is_refusal(error) else where(error)
    return "works"


def case(seed: int, target: str, number: int) -> Random:
    """All choices of one case."""
    return Random(f"{seed} {target} {number}")


def main(target: str, seed: int, begin: int, end: int) -> None:
    """Run the cases `begin` to `end`."""
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    limit_memory()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for warming in range(50):  # compile kernels, import libraries
            outcome(target, case(0, target, warming), folder)
        out.write("ready\n")
        out.flush()
        for number in range(begin, end):
            found = outcome(target, case(seed, target, number), folder)
            out.write(f"{number} {found}\n")
            out.flush()


def limit_memory() -> None:
    """Let an absurd allocation fail instead of the machine."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
