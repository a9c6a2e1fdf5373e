"""Compare scans of the current code with another commit: `make bench-against COMMIT=...`.

Both are measured in turn, a few scans at a time, each in its own process that lives as long as the
measurement, so other work on the machine affects both. The result is the median of the ratios of
neighbouring turns. Two processes that run the same code differ by a few per cent because of their
memory layout, so every case is measured in several pairs of processes.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from bayesring.infer.schedule import RATE
from bayesring.model.types import FloatArray
from bayesring.settings import BATCH
from paper.bench.processes import PEAK, ROOT, run_alone
from paper.command_line import call

RECORDED = Path("tests/same_bits/hashes.json")
"""File with the default commit to compare with."""
SIDE = Path(__file__).with_name("side.py")
LONG_ENOUGH = 0.1
"""Target seconds per turn."""
TURNS, PAIRS = 20, 3
"""Total number of turns per side, and number of process pairs over which they are spread."""

app = typer.Typer(pretty_exceptions_enable=False)
console = Console()


class Case(NamedTuple):
    """Data and model of a chain, or of a ring learning from batches."""

    observations: int
    shape: tuple[int, ...]
    rank: int
    strands: int = 1
    binary: bool = False
    batch: int = 0
    """Number of observations per batch of online EM; 0 for the Gibbs sampler."""
    rate: float = RATE


CASES = {
    "USHCN, rank 5": Case(33_150, (137, 17, 1000), 5),
    "400,000 observations, 5 strands of rank 2": Case(400_000, (500, 400, 300), 2, strands=5),
    "100,000 observations, rank 7": Case(100_000, (100, 90, 80), 7),
    "100,000 observations, rank 10": Case(100_000, (100, 90, 80), 10),
    "Bernoulli, 30,000 observations, rank 3": Case(30_000, (203, 203, 200), 3, binary=True),
    "D = 4, 100,000 observations, rank 4": Case(100_000, (50, 50, 50, 50), 4),
    "500 observations, rank 3": Case(500, (20, 30, 40), 3),
    "online EM, USHCN, rank 5": Case(33_150, (137, 17, 1000), 5, batch=BATCH),
}
"""All cases use the hierarchical prior."""


class Compared(NamedTuple):
    """Turns of the two sides, in seconds per scan."""

    wall: FloatArray
    """(turns, 2), for the other commit and the current code."""
    cpu: FloatArray
    same: bool
    """Whether both sides ended with the same bits."""


class Process:
    """One side, in its own process."""

    def __init__(self, source: Path, case: Case, threads: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SIDE)],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.send({"case": case._asdict(), "threads": threads})

    def send(self, request: Any) -> None:
        """Send a request."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OSError("one side of the comparison ended early; see above.")
        return json.loads(line)

    def ask(self, request: Any) -> Any:
        """Send a request and wait for the answer."""
        self.send(request)
        return self.answer()

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def recorded_commit() -> str:
    """The commit with whose bits the tests compare."""
    return str(json.loads((ROOT / RECORDED).read_text())["commit"])


@contextmanager
def sources_of(commit: str) -> Iterator[Path]:
    """The sources of a commit in a temporary folder."""
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        raise ValueError(f"commit {commit} is not in this clone; fetch the whole history first.")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder) / "src"


def compare(case: Case, threads: int, sources: tuple[Path, Path], turns: int) -> Compared:
    """Some turns of one pair of processes, with alternating order."""
    sides = [Process(source, case, threads) for source in sources]
    try:
        for side in sides:
            side.answer()
        slowest = max(side.ask(3)[0] / 3 for side in sides)
        scans = max(1, round(LONG_ENOUGH / slowest))
        times = np.empty((turns, 2, 2))
        for turn in range(turns):
            for place in (0, 1) if turn % 2 else (1, 0):
                times[turn, place] = sides[place].ask(scans)
        digests = {side.ask(None) for side in sides}
    finally:
        for side in sides:
            side.end()
    return Compared(times[:, :, 0] / scans, times[:, :, 1] / scans, len(digests) == 1)


def ratios(seconds: FloatArray) -> str:
    """Median and quartiles of the ratio new / old."""
    low, middle, high = np.quantile(seconds[:, 1] / seconds[:, 0], [0.25, 0.5, 0.75])
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def _print_row(*columns: str) -> None:
    widths = (44, 8, 18, 24, 24, 6)
    cells = [f"{column:{width}}" for column, width in zip(columns, widths, strict=True)]
    console.print("".join(cells), highlight=False, soft_wrap=True)


@app.command()
def against(
    commit: Annotated[
        str, typer.Option(help="The other commit; by default the recorded one.")
    ] = "",
    only: Annotated[str, typer.Option(help="Only cases whose names contain this.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="Turns of each side, per row.")] = TURNS,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of processes, per row.")] = PAIRS,
    memory: Annotated[
        list[int] | None, typer.Option(help="Also measure fits of this many values.")
    ] = None,
) -> None:
    """Time scans of this code and of another commit in turn, and print the ratios new / old."""
    commit = commit or recorded_commit()
    _print_row(f"new / {commit[:7]}", "threads", "ms CPU", "CPU", "wall", "bits")
    with sources_of(commit) as other:
        sources = other, ROOT / "src"
        chosen = {name: case for name, case in CASES.items() if only in name}
        for (name, case), threads in product(chosen.items(), (1, 2)):
            if case.batch and threads > 1:
                continue  # a ring learns on one thread
            each = -(-turns // pairs)
            found = [compare(case, threads, sources, each) for _ in range(pairs)]
            wall, cpu = (
                np.concatenate([getattr(one, of) for one in found]) for of in ("wall", "cpu")
            )
            _print_row(
                name,
                str(threads),
                " / ".join(f"{1e3 * np.median(side):.2f}" for side in cpu.T[::-1]),
                ratios(cpu),
                ratios(wall),
                "same" if all(one.same for one in found) else "differ",
            )
        for n in memory or ():
            for name, source in zip((commit[:7], "now"), sources, strict=True):
                found_bytes = run_alone(PEAK, str(n), PYTHONPATH=str(source))
                parts = ", ".join(f"{key} {value / n:.1f}" for key, value in found_bytes.items())
                console.print(f"{n:.0e} observations, {name}, bytes per observation: {parts}")


if __name__ == "__main__":
    call(app)
