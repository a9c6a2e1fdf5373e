"""Accuracy of the defaults next to the paper's best and SMURFF: `make accuracy`.

A short table goes into the README and the whole one into docs/accuracy.md.

The cells are shared with `make reproduce`, and existing ones are not recomputed. Pass names of data
sets to restrict the run to these.
"""

from __future__ import annotations

import sys

import numpy as np
import typer

from bayesring import metrics
from bayesring.datasets.dataset import N_FOLDS
from paper import accuracy, published, smurff_search
from paper.accuracy import is_outdated, load_cells, settings_of
from paper.contenders import FAVOURED, OURS, PEERS, SMURFF
from paper.results_store import COMMITTED, ROOT, Result, ResultsStore
from paper.runner import run_cells
from paper.tasks import TASKS, Task, show

README, PAGE = ROOT / "README.md", ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
BEFORE = (
    "† computed before K and cap were chosen on inner splits: K by test error, cap at its default."
)
WITH_PREDICTIONS = (
    "‡ measured earlier on another machine with other work, predictions included; SMURFF may have "
    "had fewer threads."
)
OLDER = (
    "§ measured before automatic run length and the intercept of binary data; to be measured anew."
)
NOTES = (BEFORE, WITH_PREDICTIONS, OLDER)
"""What marks in a table mean, said below it."""


def table(store: ResultsStore) -> str:
    """The defaults next to the paper's best and SMURFF, in Markdown."""
    lines = [
        "| | paper's best | SMURFF | SMURFF, best by test error, which favours it | bayesring "
        "| goal | intervals or probabilities | minutes per fit | SMURFF's |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    notes: dict[str, None] = {}
    for name, task in TASKS.items():
        ours, theirs, best = (load_cells(store, name, each) for each in (OURS, SMURFF, FAVOURED))
        if not ours:
            continue
        lines.append(
            f"| {name}, {' / '.join(task.scores)} | {_printed(name, task)} "
            f"| {_figures(task, theirs)}{_settings(theirs, notes)} "
            f"| {_figures(task, best)}{_settings(best, notes)} "
            f"| {_marked(name, task, ours, theirs)}{_spreads(task, ours)}{_older(ours, notes)} "
            f"| {_goals(task, ours)} | {_trusted(ours)} "
            f"| {_minutes(ours, notes)} | {_minutes(theirs, notes)} |"
        )
    return _with_notes(lines, notes)


def short_table(store: ResultsStore) -> str:
    """The same without spreads, and with the coverage of real values only."""
    lines = [
        "| | paper's best | SMURFF | bayesring | goal | its 90 % intervals cover | minutes per fit "
        "| SMURFF's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    notes: dict[str, None] = {}
    for name, task in TASKS.items():
        ours, theirs = (load_cells(store, name, method) for method in (OURS, SMURFF))
        if not ours:
            continue
        cover = [each["coverage"] for each in ours if "coverage" in each]
        lines.append(
            f"| {name}, {' / '.join(task.scores)} | {_printed(name, task)} "
            f"| {_means(task, theirs)}{_settings(theirs, notes)} "
            f"| {_marked(name, task, ours, theirs)}{_older(ours, notes)} "
            f"| {_goals(task, ours)} | {f'{np.mean(cover):.1%}' if cover else ''} "
            f"| {_minutes(ours, notes)} | {_minutes(theirs, notes)} |"
        )
    return _with_notes(lines, notes)


def _with_notes(lines: list[str], notes: dict[str, None]) -> str:
    told = "".join(f"\n{note}\n" for note in NOTES if note in notes)
    return "\n".join(lines) + "\n" + told


def _printed(name: str, task: Task) -> str:
    return " / ".join(published.best(name, score).mean for score in task.scores)


def _settings(cells: list[Result], notes: dict[str, None]) -> str:
    """SMURFF's number of factors and cap, with a mark if they were not chosen on an inner split."""
    if not cells:
        return ""
    latent = cells[0].get("latent") or cells[0].get("rank")
    known = [settings_of(each) for each in cells]
    if None in known:
        notes[BEFORE] = None
        return f" (K {latent}, cap 10 †)"
    cap = "" if "bins" in cells[0] else f", cap {known[0].cap:g}" if known[0] else ""
    return f" (K {latent}{cap})"


def _goals(task: Task, cells: list[Result]) -> str:
    """The goals, those that are missed marked as such."""
    texts = []
    for score, goal in zip(task.scores, task.goal, strict=True):
        mean = float(np.mean([each[score] for each in cells]))
        met = mean <= goal if score in published.LOWER_IS_BETTER else mean >= goal
        texts.append(f"{goal:g}{'' if met else ' (missed)'}")
    return " / ".join(texts)


def _minutes(cells: list[Result], notes: dict[str, None]) -> str:
    """Mean minutes of a fit, with a mark if they include predictions."""
    if not cells:
        return "-"
    mark = "" if all("prediction_seconds" in each for each in cells) else " ‡"
    if mark:
        notes[WITH_PREDICTIONS] = None
    return f"{np.mean([each['seconds'] for each in cells]) / 60:.1f}{mark}"


def _means(task: Task, cells: list[Result]) -> str:
    if not cells:
        return "-"
    means = [show(score, float(np.mean([each[score] for each in cells]))) for score in task.scores]
    return " / ".join(means)


def _marked(name: str, task: Task, ours: list[Result], theirs: list[Result]) -> str:
    """Our means, in bold where neither the paper's best nor SMURFF is as good."""
    texts = []
    for score, text in zip(task.scores, _means(task, ours).split(" / "), strict=True):
        sign = 1 if score in published.LOWER_IS_BETTER else -1
        others = [float(published.best(name, score).mean)]
        others += [float(np.mean([each[score] for each in theirs]))] if theirs else []
        mean = float(np.mean([each[score] for each in ours]))
        best = all(sign * mean < sign * other for other in others)
        texts.append(f"**{text}**" if best else text)
    return " / ".join(texts)


def _older(cells: list[Result], notes: dict[str, None]) -> str:
    """A mark if these are not figures of the present defaults."""
    if all("prediction_seconds" in each for each in cells):
        return ""
    notes[OLDER] = None
    return " §"


def _figures(task: Task, cells: list[Result]) -> str:
    return f"{_means(task, cells)}{_spreads(task, cells)}"


def _spreads(task: Task, cells: list[Result]) -> str:
    if not cells:
        return ""
    numbers = {score: [each[score] for each in cells] for score in task.scores}
    spread = " / ".join(show(score, float(np.std(each))) for score, each in numbers.items())
    folds = "" if len(cells) == N_FOLDS else f", {len(cells)} of {N_FOLDS} folds"
    return f" (± {spread}{folds})"


def _trusted(cells: list[Result]) -> str:
    if "coverage" in cells[0]:
        return f"90 % intervals cover {np.mean([each['coverage'] for each in cells]):.1%}"
    pooled = metrics.CalibrationBins(*np.sum([each["bins"] for each in cells], axis=0))
    return f"calibration error {pooled.error():.3f}, by chance below {pooled.chance():.3f}"


def main(names: list[str]) -> None:
    """Compute missing cells, print the table, and update README and page."""
    store = ResultsStore(ROOT / COMMITTED)
    chosen = [name for name in TASKS if not names or name in names]
    searched = run_cells(smurff_search.make_cells(chosen), store)
    cells = accuracy.make_cells(chosen, [OURS, *PEERS], store=store)
    again = [cell for cell in cells if is_outdated(cell, store)]
    outcomes = [searched, run_cells(cells, store), run_cells(again, store, again=True)]
    found = table(store)
    told = [line for each in outcomes for line in (*each.unavailable, *each.failed)]
    typer.echo("\n".join([found, *dict.fromkeys(told)]))
    for path, lines in ((README, short_table(store)), (PAGE, found)):
        before, rest = path.read_text().split(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{lines}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
