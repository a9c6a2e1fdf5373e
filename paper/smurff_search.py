"""SMURFF at its best: its number of factors K and its cap on the signal-to-noise ratio.

Every pair of K and cap is one cell: a fit on nine tenths of the training data of the first fold,
seed or mask, scored on the last tenth, and a fit on all of it, scored on the test data. The pair
with the least error on the tenth is SMURFF's on all folds. The pair with the least test error is
shown beside it; it favours SMURFF. The noise of binary values is fixed, so they have no cap.

`make peers` computes the cells that are missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import typer

from bayesring.data.observations import Observations
from bayesring.datasets.splits import Fold
from paper.arena.contests import CONTESTS
from paper.contenders import SMURFF, Job, PeerChoice, error_of, hold_out, smurff
from paper.results_store import COMMITTED, ROOT, Result, ResultsStore
from paper.runner import ResultCell, run_cells
from paper.tasks import SCORES, TASKS, Task

STUDY = "smurff_search"
LATENT = (5, 10, 20, 40, 80)
CAPS = (10.0, 100.0, 1000.0)
LARGE = {"DBLP"}
"""Sets with so many slices that the largest number of factors would take hours."""
TRAFFIC = {"Birmingham RM 40": "Birmingham", "Hangzhou RM 40": "Hangzhou"}


class SearchSet(NamedTuple):
    """A data set on which SMURFF is tried."""

    task: Task
    split: Callable[[], Fold]
    """Training and test data of the first fold, seed or mask."""


def search_sets() -> dict[str, SearchSet]:
    """The six sets of the paper, and two of traffic."""
    found = {name: SearchSet(task, partial(_first, task, 0)) for name, task in TASKS.items()}
    for name, contest in TRAFFIC.items():
        task = Task(CONTESTS[contest].load, "continuous", ("RMSE", "MAE"), ())
        found[name] = SearchSet(task, partial(_first, task, name.removeprefix(f"{contest} ")))
    return found


def _first(task: Task, fold: int | str) -> Fold:
    return task.load().split(fold)


def choices(task: Task, latent: Iterable[int] = LATENT) -> list[PeerChoice]:
    """Pairs of K and cap; of binary values, K alone."""
    caps = CAPS[:1] if task.likelihood == "bernoulli" else CAPS
    return [PeerChoice(each, cap) for each in latent for cap in caps]


def make_cells(names: Iterable[str] | None = None) -> list[ResultCell]:
    """One cell for each set, K and cap."""
    sets = search_sets()
    return [
        ResultCell(STUDY, name, SMURFF, _part(choice), work, (name, choice), float(choice.latent))
        for name in (sets if names is None else names)
        for choice in choices(sets[name].task, LATENT[:-1] if name in LARGE else LATENT)
    ]


def _part(choice: PeerChoice) -> str:
    return f"K {choice.latent}, cap {choice.cap:g}"


def work(name: str, choice: PeerChoice, threads: int) -> Result:
    """Both fits of a cell."""
    task, split = search_sets()[name]
    train, test = split()
    inner = inner_error(train, Job(train, task, 0, threads, False, choice))
    whole = smurff(Job(train, task, 0, threads, False, choice))
    predicted = whole.predict(test.coords)
    scores = {score: SCORES[score](train, test, predicted) for score in task.scores}
    found: dict[str, Any] = {"latent": choice.latent, "inner": inner}
    return found | whole.described | scores | {"test": error_of(task, test.values, predicted)}


def inner_error(train: Observations, job: Job) -> float:
    """Error on a tenth of the training data of a fit to the others."""
    part, held = hold_out(train, job.seed)
    return error_of(job.task, held.values, smurff(job._replace(train=part)).predict(held.coords))


def choose_inside(job: Job, latent: Iterable[int] = LATENT) -> tuple[PeerChoice, dict[str, float]]:
    """The choice with the least error on a tenth of the training data, and the error of each."""
    tried = choices(job.task, latent)
    errors = {each: inner_error(job.train, job._replace(peer=each)) for each in tried}
    return min(tried, key=errors.__getitem__), {_part(each): errors[each] for each in tried}


def chosen(store: ResultsStore, name: str) -> PeerChoice | None:
    """SMURFF's settings by the inner split; None until every cell is there."""
    return _least(store, name, "inner")


def favoured(store: ResultsStore, name: str) -> PeerChoice | None:
    """SMURFF's settings by test error, which favours it; None until every cell is there."""
    return _least(store, name, "test")


def _least(store: ResultsStore, name: str, field: str) -> PeerChoice | None:
    found = [cell.load(store) for cell in make_cells([name])]
    cells = [each for each in found if each is not None and field in each]
    if not cells or len(cells) < len(found):
        return None
    best = min(cells, key=lambda cell: float(cell[field]))
    return PeerChoice(int(best["latent"]), float(best["cap"]))


def named(text: str) -> list[str] | None:
    """Names of sets with commas between them; None, for all sets, if there are none."""
    names = [name for each in text.split(",") if (name := each.strip())]
    unknown = [name for name in names if name not in search_sets()]
    if unknown:
        raise ValueError(
            f"the name of a set was {unknown[0]!r}, but there are {', '.join(search_sets())}."
        )
    return names or None


def main(names: list[str] | None) -> None:
    """Compute missing cells of all or of some sets."""
    outcome = run_cells(make_cells(names), ResultsStore(ROOT / COMMITTED))
    typer.echo("\n".join([f"{outcome.computed} cells computed.", *outcome.failed]))


if __name__ == "__main__":
    main(named(",".join(sys.argv[1:])))
