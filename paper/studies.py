"""Every number and figure of the paper's evaluation, next to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from bayesring.engine.threads import count_threads
from paper import accuracy, comparison, rank_study, reproduction_page, scale
from paper.results_store import ResultsStore
from paper.runner import ResultCell, RunOutcome, choose, run_cells


class Study(NamedTuple):
    """A table or figure of the paper."""

    cells: Callable[[bool, ResultsStore], list[ResultCell]]
    """The cells to compute, given what is there; fewer for a smoke test."""
    write: Callable[[ResultsStore, Path, bool], None]
    """Write tables and pictures of the existing results."""
    jobs: Callable[[int | None], int]
    """Number of cells at a time, given the user's request."""


def _table(name: str) -> Study:
    def cells(quick: bool, store: ResultsStore) -> list[ResultCell]:
        names = comparison.names_of(name)
        if quick:
            return accuracy.make_cells(names, folds=[0], quick=True)
        return accuracy.make_cells(names, store=store)

    return Study(cells, lambda store, out, _: comparison.write(store, out, name), count_threads)


STUDIES = {
    "rank": Study(lambda quick, _: rank_study.make_cells(quick), rank_study.write, count_threads),
    "scale": Study(lambda quick, _: scale.make_cells(quick), scale.write, lambda _: 1),
    "continuous": _table("continuous"),
    "binary": _table("binary"),
}
"""One cell per core at a time with one thread each; timings run one after another."""


def reproduce(
    what: str = "all",
    out: Path = Path("results"),
    results: Path | None = None,
    quick: bool = False,
    only: Iterable[str] = (),
    jobs: int | None = None,
    show: bool = True,
    debug: bool = False,
    again: bool = False,
) -> RunOutcome:
    """Compute missing cells, then write tables, pictures and the page.

    Parameters
    ----------
    what : "rank", "scale", "continuous", "binary" or "all"
    out : folder for tables, pictures and the page
    results : folder of the cells, `out` by default
    quick : a smoke test of every path; its meaningless results go to a separate folder
    only : patterns DATASET/METHOD of the cells to compute
    jobs : number of cells at a time, each with its share of the cores
    again : recompute existing cells too
    """
    if what != "all" and what not in STUDIES:
        raise ValueError(f"what must be one of {', '.join(STUDIES)} or all, got {what!r}.")
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be 1 or more, got {jobs}.")
    results = results or out
    out, results = (each / "quick" if quick else each for each in (out, results))
    store = ResultsStore(results)
    studies = STUDIES if what == "all" else {what: STUDIES[what]}
    cells = {name: study.cells(quick, store) for name, study in studies.items()}
    chosen = set(choose([cell for each in cells.values() for cell in each], only))
    outcome = RunOutcome(0, 0, [], [])
    for name, study in studies.items():
        mine = [cell for cell in cells[name] if cell in chosen]
        outcome = _add(outcome, run_cells(mine, store, study.jobs(jobs), show, debug, again))
        (out / "tables").mkdir(parents=True, exist_ok=True)
        study.write(store, out, quick)
    reproduction_page.write(store, out, quick)
    return outcome


def _add(one: RunOutcome, other: RunOutcome) -> RunOutcome:
    return RunOutcome(
        one.computed + other.computed,
        one.kept + other.kept,
        list(dict.fromkeys(one.unavailable + other.unavailable)),
        one.failed + other.failed,
    )
