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
from paper import accuracy, published
from paper.accuracy import load_cells
from paper.contenders import OURS, SMURFF
from paper.results_store import COMMITTED, ROOT, Result, ResultsStore
from paper.runner import run_cells
from paper.tasks import TASKS, Task, show

README, PAGE = ROOT / "README.md", ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def table(store: ResultsStore) -> str:
    """The defaults next to the paper's best and SMURFF, in Markdown."""
    lines = [
        "| | paper's best | SMURFF | bayesring | goal | intervals or probabilities | minutes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        ours, theirs = (load_cells(store, name, method) for method in (OURS, SMURFF))
        if not ours:
            continue
        printed = [published.best(name, score).mean for score in task.scores]
        lines.append(
            f"| {name}, {' / '.join(task.scores)} | {' / '.join(printed)} "
            f"| {_figures(task, theirs)} | **{_figures(task, ours)}** "
            f"| {' / '.join(map(str, task.goal))} | {_trusted(ours)} "
            f"| {sum(each['seconds'] for each in ours) / 60:.0f} |"
        )
    return "\n".join(lines) + "\n"


def short_table(store: ResultsStore) -> str:
    """The same without spreads, goals and times, and with the coverage of real values only."""
    lines = [
        "| | paper's best | SMURFF | bayesring | its 90 % intervals cover |",
        "|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        ours, theirs = (load_cells(store, name, method) for method in (OURS, SMURFF))
        if not ours:
            continue
        printed = [published.best(name, score).mean for score in task.scores]
        cover = [each["coverage"] for each in ours if "coverage" in each]
        lines.append(
            f"| {name}, {' / '.join(task.scores)} | {' / '.join(printed)} "
            f"| {_means(task, theirs)} | **{_means(task, ours)}** "
            f"| {f'{np.mean(cover):.1%}' if cover else ''} |"
        )
    return "\n".join(lines) + "\n"


def _means(task: Task, cells: list[Result]) -> str:
    if not cells:
        return "-"
    means = [show(score, float(np.mean([each[score] for each in cells]))) for score in task.scores]
    return " / ".join(means)


def _figures(task: Task, cells: list[Result]) -> str:
    if not cells:
        return "-"
    numbers = {score: [each[score] for each in cells] for score in task.scores}
    means = " / ".join(show(score, float(np.mean(each))) for score, each in numbers.items())
    spread = " / ".join(show(score, float(np.std(each))) for score, each in numbers.items())
    folds = "" if len(cells) == N_FOLDS else f", {len(cells)} of {N_FOLDS} folds"
    return f"{means} (± {spread}{folds})"


def _trusted(cells: list[Result]) -> str:
    if "coverage" in cells[0]:
        return f"90 % intervals cover {np.mean([each['coverage'] for each in cells]):.1%}"
    pooled = metrics.CalibrationBins(*np.sum([each["bins"] for each in cells], axis=0))
    return f"calibration error {pooled.error():.3f}, by chance below {pooled.chance():.3f}"


def main(names: list[str]) -> None:
    """Compute missing cells, print the table, and update README and page."""
    store = ResultsStore(ROOT / COMMITTED)
    outcome = run_cells(accuracy.make_cells(names or None, [OURS, SMURFF]), store)
    found = table(store)
    typer.echo("\n".join([found, *outcome.unavailable, *outcome.failed]))
    for path, lines in ((README, short_table(store)), (PAGE, found)):
        before, rest = path.read_text().split(BEGIN)
        path.write_text(f"{before}{BEGIN}\n{lines}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
