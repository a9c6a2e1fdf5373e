"""The paper's two tables next to ours: means, differences, marks for the best."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesring.datasets.dataset import N_FOLDS
from bayesring.model.types import FloatArray
from paper import accuracy, published
from paper.contenders import METHODS
from paper.results_store import Result, ResultsStore, write_json
from paper.tasks import TASKS, show


class Figure(NamedTuple):
    """One score of one method on one data set, with the paper's."""

    score: str
    mean: float
    deviation: float
    printed: published.Printed | None
    place: int
    """1 for the best of all rows, 2 for the second best, as displayed."""

    @property
    def difference(self) -> float | None:
        """Our value minus the paper's."""
        return None if self.printed is None else self.mean - self.printed.value


class ComparisonRow(NamedTuple):
    """One method on one data set."""

    method: str
    folds: int
    figures: tuple[Figure, ...]
    """Empty if it could not run or has not run yet."""
    cannot: str | None
    minutes: float
    budget: str
    """What the method was given and what it used of that."""


def compare(store: ResultsStore, name: str) -> list[ComparisonRow]:
    """Rows of a data set, one per method."""
    task = TASKS[name]
    found = {
        method: accuracy.load_cells(store, name, method)
        for method, about in METHODS.items()
        if about.runs_on(name)
    }
    scored = {method: [c for c in cells if "cannot" not in c] for method, cells in found.items()}
    places = {score: _places(scored, score) for score in task.scores}
    rows = []
    for method, cells in found.items():
        good = scored[method]
        figures = tuple(
            Figure(
                score,
                float(np.mean([cell[score] for cell in good])),
                float(np.std([cell[score] for cell in good])),
                printed_for(name, score, method),
                places[score][method],
            )
            for score in task.scores
            if good
        )
        cannot = next((cell["cannot"] for cell in cells if "cannot" in cell), None)
        minutes = float(np.mean([cell["seconds"] for cell in good])) / 60 if good else 0.0
        rows.append(ComparisonRow(method, len(good), figures, cannot, minutes, budget(good)))
    return rows


def budget(cells: list[Result]) -> str:
    """Initial rank, scans, sweeps or epochs of some fits, as far as their rows say so."""
    known = [cell["budget"] for cell in cells if "budget" in cell]
    if not any({"rank", "latent"} & {*cell} for cell in cells):
        return ""
    if len(known) < len(cells):
        return "before budgets were equal"
    texts = []
    if "start" in known[0]:
        texts.append(f"rank {_span([each['start'] for each in known])}")
    if "cap" in cells[0]:
        texts.append(f"cap {cells[0]['cap']:g}")
    if "limit" in known[0]:
        texts.append(f"{_span([e['steps'] for e in known])} of {known[0]['limit']} steps")
    for unit in ("scans", "epochs"):
        if unit in known[0]:
            per_chain = [each[unit] for each in known]
            chains = [*map(np.size, per_chain)]
            times = f" x {_span(chains)}" if max(chains) > 1 else ""
            texts.append(f"{_span(np.concatenate([*map(np.atleast_1d, per_chain)]))}{times} {unit}")
    return ", ".join(texts)


def _span(numbers: Sequence[float] | FloatArray) -> str:
    """The numbers, or the least and the largest if they differ."""
    low, high = min(numbers), max(numbers)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def printed_for(name: str, score: str, method: str) -> published.Printed | None:
    """The paper's figure for the row of a method."""
    row = METHODS[method].printed
    return None if row is None else published.FIGURES[name, score, row]


def _places(scored: dict[str, list[Result]], score: str) -> dict[str, int]:
    """Rank of each method by its displayed mean; methods with the same figure share a rank."""
    means = {
        method: float(show(score, float(np.mean([cell[score] for cell in cells]))))
        for method, cells in scored.items()
        if cells
    }
    order = sorted(set(means.values()), reverse=score not in published.LOWER_IS_BETTER)
    return {method: 1 + order.index(mean) for method, mean in means.items()}


def table(store: ResultsStore, name: str) -> str:
    """A data set as Markdown: for each score our value, the paper's and the difference."""
    scores = TASKS[name].scores
    arrows = {True: "↓", False: "↑"}
    heads = [
        f"{score} {arrows[score in published.LOWER_IS_BETTER]} | paper | difference"
        for score in scores
    ]
    lines = [
        f"| {name} | {' | '.join(heads)} | folds | minutes per fit | budget |",
        f"|---|{'---|' * (3 * len(scores) + 3)}",
    ]
    for row in compare(store, name):
        label = METHODS[row.method].label
        if not row.figures:
            said = "cannot run" if row.cannot else "not computed"
            blank = " | ".join(
                f"{said} | {_printed(name, score, row.method)} | " for score in scores
            )
            lines.append(f"| {label} | {blank} | {row.folds} of {N_FOLDS} |  |  |")
            continue
        cells = " | ".join(_cells(name, row.method, figure) for figure in row.figures)
        lines.append(
            f"| {label} | {cells} | {row.folds} of {N_FOLDS} | {row.minutes:.1f} | {row.budget} |"
        )
    return "\n".join(lines) + "\n"


def _cells(name: str, method: str, figure: Figure) -> str:
    text = f"{show(figure.score, figure.mean)} ± {show(figure.score, figure.deviation)}"
    mark = {1: "**", 2: "*"}.get(figure.place, "")
    gap = figure.difference
    difference = "" if gap is None else _signed(figure.score, gap)
    return f"{mark}{text}{mark} | {_printed(name, figure.score, method)} | {difference}"


def _signed(score: str, gap: float) -> str:
    size = show(score, abs(gap))
    return size if float(size) == 0 else f"{'+' if gap > 0 else '-'}{size}"


def _printed(name: str, score: str, method: str) -> str:
    row = METHODS[method].printed
    if row is None:
        return "-"
    return str(published.FIGURES[name, score, row] or "NA")


def reasons(store: ResultsStore, name: str) -> list[str]:
    """Notes on methods that cannot run on a data set."""
    return [
        f"{METHODS[row.method].label} cannot run on {name}: {row.cannot}"
        for row in compare(store, name)
        if row.cannot
    ]


def names_of(table_name: str) -> list[str]:
    """Data sets of one of the paper's tables."""
    return [name for name, task in TASKS.items() if task.table == table_name]


def write(store: ResultsStore, out: Path, table_name: str) -> None:
    """Write one of the paper's tables as JSON and as Markdown."""
    names = names_of(table_name)
    content = {
        name: {
            row.method: {
                "folds": row.folds,
                "cannot": row.cannot,
                "minutes": round(row.minutes, 2),
                "budget": row.budget,
                "scores": {
                    figure.score: {
                        "mean": figure.mean,
                        "deviation": figure.deviation,
                        "paper": figure.printed and figure.printed.value,
                        "difference": figure.difference,
                        "place": figure.place,
                    }
                    for figure in row.figures
                },
            }
            for row in compare(store, name)
        }
        for name in names
    }
    write_json(out / "tables" / f"{table_name}.json", content)
    (out / "tables" / f"{table_name}.md").write_text(markdown(store, table_name))


def markdown(store: ResultsStore, table_name: str) -> str:
    """All data sets of one of the paper's tables."""
    names = names_of(table_name)
    parts = [table(store, name) for name in names]
    notes = [f"- {reason}" for name in names for reason in reasons(store, name)]
    return "\n".join([*parts, *notes]) + "\n"
