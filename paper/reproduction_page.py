"""The reproduction page: prose with tables, pictures and numbers from the cells.

The text is in `reproduction.md` next to this file. `{{name}}` is replaced by a part generated here,
`{a/b/c}` by a number. A paragraph with a number that is not yet known is omitted.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from paper import accuracy, comparison, published, rank_from_truth, rank_study, scale
from paper.contenders import METHODS
from paper.results_store import ResultsStore
from paper.runner import ResultCell
from paper.tasks import TASKS, show

TEXT = Path(__file__).parent / "reproduction.md"
NUMBER = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")
PART = re.compile(r"\{\{([^{}]+)\}\}")


def write(store: ResultsStore, out: Path, quick: bool = False) -> Path:
    """Write the page for the results in `store`, next to the tables and pictures in `out`."""
    text = TEXT.read_text(encoding="utf-8")
    numbers = known_numbers(store)
    paragraphs = [fill(paragraph, numbers) for paragraph in text.split("\n\n")]
    if quick:
        paragraphs.insert(1, "**A smoke test: these numbers are meaningless.**")
    parts = known_parts(store, out)
    page = "\n\n".join(each for each in paragraphs if each is not None)
    page = PART.sub(lambda found: parts[found[1]], page)
    path = out / "reproduction.md"
    path.write_text(page, encoding="utf-8")
    return path


def fill(paragraph: str, numbers: dict[str, str]) -> str | None:
    """A paragraph with its numbers, or None if one of them is not known."""
    if any(key not in numbers for key in NUMBER.findall(paragraph)):
        return None
    return NUMBER.sub(lambda found: numbers[found[1]], paragraph)


def known_numbers(store: ResultsStore) -> dict[str, str]:
    """All numbers available to the text, by key."""
    found = {
        f"paper/{data}/{method}/{score}": "NA" if figure is None else figure.mean
        for (data, score, method), figure in published.FIGURES.items()
    }
    for name in TASKS:
        for row in comparison.compare(store, name):
            for figure in row.figures:
                found[f"{name}/{row.method}/{figure.score}"] = show(figure.score, figure.mean)
    for start, about in rank_study.summarise(rank_study.load_results(store)).items():
        for part in ("up_to_70_missing", "at_90_missing", "all"):
            if about[part] is not None:
                found[f"rank/{start}/{part}"] = f"{about[part]:.3f}"
    errors = rank_from_truth.rank_errors()
    if errors:
        found["rank/truth/mean"] = f"{np.mean(errors):.2f}"
    for method, results in scale.summarise(store).items():
        for size, each in results.items():
            if "least" in each:
                found[f"scale/{method}/{size}"] = scale.duration(each["least"])
    return found


def known_parts(store: ResultsStore, out: Path) -> dict[str, str]:
    """Tables and pictures."""
    parts = {"status": status(store), "rank from truth": rank_from_truth.shown()}
    for name in ("rank", "scale"):
        path = out / "tables" / f"{name}.md"
        picture = f"\n![{name}](images/{name}.png)"
        parts[name] = path.read_text() + picture if path.exists() else "Not computed yet."
    for name in ("continuous", "binary"):
        parts[name] = comparison.markdown(store, name).strip()
        parts[f"differences {name}"] = differences(store, name)
    return parts


def status(store: ResultsStore) -> str:
    """How much has been computed, and with which versions and machines."""
    studies = {
        "rank study": rank_study.make_cells(),
        "scale study": scale.make_cells(),
        "table of continuous data": accuracy.make_cells(
            comparison.names_of("continuous"), store=store
        ),
        "table of binary data": accuracy.make_cells(comparison.names_of("binary"), store=store),
    }
    counts = []
    machines: dict[str, None] = {}
    for name, cells in studies.items():
        found = [result for result in (cell.load(store) for cell in cells) if result is not None]
        counts.append(f"{len(found)} of {len(cells)} cells of the {name}")
        for result in found:
            versions = ", ".join(f"{key} {value}" for key, value in result["versions"].items())
            machines[f"{result['machine']}; {versions}"] = None
    about = "".join(f"\n- {each}" for each in machines)
    missing = "".join(f"\n- {line}" for line in _missing(studies, store))
    return (
        f"Computed so far: {', '.join(counts)}."
        + (f"\n\nComputed on:\n{about}" if machines else "")
        + (f"\n\nStill to be computed:\n{missing}" if missing else "")
    )


def _missing(studies: dict[str, list[ResultCell]], store: ResultsStore) -> list[str]:
    """Data sets and methods with missing cells, one line per study and method."""
    lines = []
    for name, cells in studies.items():
        lacking: dict[str, dict[str, int]] = {}
        for cell in cells:
            if cell.load(store) is None:
                per_data = lacking.setdefault(cell.method, {})
                per_data[cell.data] = per_data.get(cell.data, 0) + 1
        for method, per_data in lacking.items():
            number = sum(per_data.values())
            where = f" ({', '.join(per_data)})" if len(per_data) <= len(TASKS) else ""
            cells_word = "cell" if number == 1 else "cells"
            lines.append(f"{name}, {method}: {number} {cells_word}{where}")
    return lines


def differences(store: ResultsStore, table_name: str) -> str:
    """Where our mean differs from the paper's by more than two combined standard deviations."""
    lines, same = [], []
    for name in comparison.names_of(table_name):
        for row in comparison.compare(store, name):
            told = [text for figure in row.figures if (text := _difference(figure))]
            label = f"{name}, {METHODS[row.method].label}"
            if told:
                lines.append(f"- {label}: {'; '.join(told)}.")
            elif any(figure.printed for figure in row.figures):
                same.append(label)
    if same:
        lines.append(f"- Within two standard deviations: {'; '.join(same)}.")
    return "\n".join(lines) if lines else "Nothing computed yet."


def _difference(figure: comparison.Figure) -> str | None:
    """Description of a difference that exceeds chance, else None."""
    gap, printed = figure.difference, figure.printed
    if gap is None or printed is None:
        return None
    rounding = 0.5 * 10**-printed.digits
    if abs(gap) <= 2 * np.hypot(figure.deviation, float(printed.deviation)) + rounding:
        return None
    better = (gap < 0) == (figure.score in published.LOWER_IS_BETTER)
    return (
        f"{figure.score} {show(figure.score, figure.mean)}, paper {printed.mean} "
        f"({'better' if better else 'worse'})"
    )
