"""Cells of tables and figures, each computed once and kept in its own row.

An interrupted run leaves only complete cells, and the next run computes what is missing. Worker
processes compute; the parent process writes.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from bayesring.engine.threads import count_threads
from paper.bench.timing import machine
from paper.cell_progress import cell_progress
from paper.results_store import CellKey, Provenance, Result, ResultsStore, this_code

PACKAGES = ("bayesring", "numpy", "scipy", "numba")


class Unavailable(Exception):
    """A method or package is not available; the message says what to do."""


class ResultCell(NamedTuple):
    """One piece of work: a data set, a method, and the row that keeps the result."""

    study: str
    """Name of the study, which is also the name of the results file."""
    data: str
    method: str
    part: str
    """Distinguishes cells of the same data set and method, such as the fold."""
    work: Callable[..., Result]
    """Called with the arguments and `threads`; a module-level function, for worker processes."""
    arguments: tuple[Any, ...]
    cost: float = 1.0
    """Approximate expected seconds, for the time left."""

    @property
    def name(self) -> str:
        """Name of the cell in progress bars and messages."""
        return f"{self.data}/{self.method}/{self.part}"

    @property
    def key(self) -> CellKey:
        """The name of the cell's row."""
        return CellKey(self.data, self.method, self.part)

    def load(self, store: ResultsStore) -> Result | None:
        """The result, or None if it is not computed yet."""
        return store.load(self.study, self.key)

    def keep(self, store: ResultsStore, result: Result, source: Provenance) -> None:
        """Add or replace the cell's row."""
        store.keep(self.study, self.key, result, source)


class RunOutcome(NamedTuple):
    """Outcome of a list of cells."""

    computed: int
    kept: int
    """Number of cells that already existed."""
    unavailable: list[str]
    """Messages about methods that are not installed."""
    failed: list[str]


def choose(cells: Sequence[ResultCell], only: Iterable[str]) -> list[ResultCell]:
    """Cells that match a pattern: DATASET/METHOD, or either of them; * matches anything."""
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


def _matches(cell: ResultCell, pattern: str) -> bool:
    data, method, wanted = (
        each.lower().replace(" ", "_") for each in (cell.data, cell.method, pattern)
    )
    return any(fnmatch(name, wanted) for name in (f"{data}/{method}", data, method))


def circumstances() -> Result:
    """Versions and machine, on which results depend besides seed and code."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    about = machine()
    return {"versions": found, "machine": f"{about['processor']}, {about['cores']} cores"}


def work_out(cell: ResultCell, threads: int) -> Result:
    """Compute a cell. Not fitting into memory also counts as a result."""
    try:
        found = cell.work(*cell.arguments, threads=threads)
    except MemoryError as error:
        found = {"cannot": str(error) or "there is not enough memory."}
    named = {"data": cell.data, "method": cell.method}
    return named | {"threads": threads} | found | circumstances()


def run_cells(
    cells: Sequence[ResultCell],
    store: ResultsStore,
    jobs: int = 1,
    show: bool = True,
    debug: bool = False,
    again: bool = False,
) -> RunOutcome:
    """Compute the cells missing in `store`, or all if `again`, `jobs` at a time.

    A failure is recorded and the other cells continue; an interrupt stops at once.
    """
    missing = [cell for cell in cells if again or cell.load(store) is None]
    unavailable: list[str] = []
    failed: list[str] = []
    with cell_progress(show, [cell.cost for cell in missing], jobs) as bar:
        for cell, result in _results(missing, store, jobs, bar.begin):
            if isinstance(result, Unavailable):
                unavailable.append(str(result))
            elif isinstance(result, Exception):
                failed.append(f"{cell.name}: {result}")
                if debug:
                    traceback.print_exception(result)
            bar.done(cell.name, cell.cost, summary(result))
    done = len(missing) - len(unavailable) - len(failed)
    return RunOutcome(
        done, len(cells) - len(missing), list(dict.fromkeys(unavailable)), list(failed)
    )


def _results(
    cells: Sequence[ResultCell], store: ResultsStore, jobs: int, begin: Callable[[str], None]
) -> Iterator[tuple[ResultCell, Result | Exception]]:
    """Cells with their result, which is kept, or the exception, as they finish."""
    source = this_code()
    threads = max(1, count_threads(None) // jobs)
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            begin(cell.name)
            try:
                result = work_out(cell, threads)
                cell.keep(store, result, source)
            except Exception as error:
                yield cell, error
            else:
                yield cell, result
        return
    begin(f"{min(jobs, len(cells))} cells at a time")
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_DFL)
    ) as pool:
        try:
            futures = {pool.submit(work_out, cell, threads): cell for cell in cells}
            for future in as_completed(futures):
                trouble = future.exception()
                if isinstance(trouble, Exception):
                    yield futures[future], trouble
                else:
                    result = future.result()
                    futures[future].keep(store, result, source)
                    yield futures[future], result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def summary(result: Result | Exception) -> str:
    """One line about the result of a cell."""
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
