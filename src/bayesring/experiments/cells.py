"""Cells of tables and figures: each worked out once and kept in a file of its own.

A file is written under a temporary name and renamed, so that an interrupted run leaves whole cells
only, and the next one works out what is missing.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from bayesring.experiments.bench.timing import machine
from bayesring.infer.threads import count_threads
from bayesring.progress import cell_progress
from bayesring.writing import replacing

PACKAGES = ("bayesring", "numpy", "scipy", "numba")
Result = dict[str, Any]


class Unavailable(Exception):
    """A method or a package is not here; the sentence says what to do."""


class Cell(NamedTuple):
    """One piece of work: a data set, a method, and the file that keeps what was found."""

    folder: str
    """Under the folder of results."""
    data: str
    method: str
    part: str
    """What tells cells of one data set and method apart, such as the fold."""
    work: Callable[..., Result]
    """Called with the arguments and `threads`; a function of a module, for worker processes."""
    arguments: tuple[Any, ...]
    cost: float = 1.0
    """Expected seconds, roughly, for the time left."""

    @property
    def name(self) -> str:
        """What progress and messages call the cell."""
        return f"{self.data}/{self.method}/{self.part}"

    def path(self, out: Path) -> Path:
        """The cell's file."""
        file = f"{self.data}-{self.method}-{self.part}.json".replace(" ", "_")
        return out / self.folder / file

    def load(self, out: Path) -> Result | None:
        """What was found, or None if that is still to be worked out."""
        path = self.path(out)
        return json.loads(path.read_text()) if path.exists() else None


class Outcome(NamedTuple):
    """What became of a list of cells."""

    computed: int
    kept: int
    """Cells that were there already."""
    unavailable: list[str]
    """Sentences on methods that are not installed."""
    failed: list[str]


def choose(cells: Sequence[Cell], only: Iterable[str]) -> list[Cell]:
    """Cells that one of the patterns names: DATASET/METHOD, or one of both; * stands for any."""
    patterns = list(only)
    for pattern in patterns:
        if not any(_matches(cell, pattern) for cell in cells):
            data, methods = (
                ", ".join(dict.fromkeys(names))
                for names in ([cell.data for cell in cells], [cell.method for cell in cells])
            )
            raise ValueError(
                f"--only {pattern} names none of the data sets ({data}) or methods ({methods})."
            )
    return [
        cell for cell in cells if not patterns or any(_matches(cell, each) for each in patterns)
    ]


def _matches(cell: Cell, pattern: str) -> bool:
    data, method, wanted = (
        each.lower().replace(" ", "_") for each in (cell.data, cell.method, pattern)
    )
    return any(fnmatch(name, wanted) for name in (f"{data}/{method}", data, method))


def provenance() -> Result:
    """Versions and machine, which results depend on besides seed and code."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    about = machine()
    return {"versions": found, "machine": f"{about['processor']}, {about['cores']} cores"}


def work_out(cell: Cell, out: Path, threads: int) -> Result:
    """Compute a cell and write its file. What does not fit into memory is a result, too."""
    try:
        found = cell.work(*cell.arguments, threads=threads)
    except MemoryError as error:
        found = {"cannot": str(error) or "there is not enough memory."}
    named = {"data": cell.data, "method": cell.method}
    result = named | {"threads": threads} | found | provenance()
    write_json(cell.path(out), result)
    return result


def write_json(path: Path, content: Any) -> None:
    """Write a file whole or not at all; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def run_cells(
    cells: Sequence[Cell], out: Path, jobs: int = 1, show: bool = True, debug: bool = False
) -> Outcome:
    """Work out the cells that `out` does not have yet, `jobs` at a time.

    A failure is noted and the others go on; an interrupt stops at once.
    """
    missing = [cell for cell in cells if not cell.path(out).exists()]
    unavailable: list[str] = []
    failed: list[str] = []
    with cell_progress(show, [cell.cost for cell in missing], jobs) as bar:
        for cell, result in _results(missing, out, jobs, bar.begin):
            if isinstance(result, Unavailable):
                unavailable.append(str(result))
            elif isinstance(result, Exception):
                failed.append(f"{cell.name}: {result}")
                if debug:
                    traceback.print_exception(result)
            bar.done(cell.name, cell.cost, summary(result))
    done = len(missing) - len(unavailable) - len(failed)
    return Outcome(done, len(cells) - len(missing), list(dict.fromkeys(unavailable)), list(failed))


def _results(
    cells: Sequence[Cell], out: Path, jobs: int, begin: Callable[[str], None]
) -> Iterator[tuple[Cell, Result | Exception]]:
    """Cells with what was found, or the exception, as they come."""
    threads = max(1, count_threads(None) // jobs)
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            begin(cell.name)
            try:
                yield cell, work_out(cell, out, threads)
            except Exception as error:
                yield cell, error
        return
    begin(f"{min(jobs, len(cells))} cells at a time")
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL)
    ) as pool:
        try:
            futures = {pool.submit(work_out, cell, out, threads): cell for cell in cells}
            for future in as_completed(futures):
                trouble = future.exception()
                if isinstance(trouble, Exception):
                    yield futures[future], trouble
                else:
                    yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def summary(result: Result | Exception) -> str:
    """One line on what a cell found."""
    if isinstance(result, Exception):
        return str(result)
    if "cannot" in result:
        return str(result["cannot"])
    hidden = ("fold", "seconds", "threads", "latent", "initial", "snr", "missing", "tensor")
    numbers = {
        name: value
        for name, value in result.items()
        if isinstance(value, float) and name not in hidden
    }
    texts = [f"{name} {value:.4g}" for name, value in numbers.items()]
    return ", ".join([*texts, f"{result.get('seconds', 0):.0f} s"])
