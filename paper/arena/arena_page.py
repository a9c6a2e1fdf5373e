"""The page of the arena: a table per data set, published figures first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paper.accuracy import load_cells
from paper.arena import rolling
from paper.arena.arena_cells import STUDY, is_elsewhere
from paper.arena.contests import CONTESTS, NOTEBOOKS
from paper.arena.rivals import rivals
from paper.contenders import SMURFF
from paper.results_store import CellKey, Result, ResultsStore

RISING = {"PSNR", "SSIM"}
"""Scores of which more is better."""


class ArenaRow(NamedTuple):
    """A method: figures as text, one list per column, and what else is known."""

    method: str
    figures: list[list[str]]
    coverage: str = ""
    seconds: str = ""

    def line(self) -> str:
        """The row in Markdown."""
        figures = [" / ".join(each) for each in self.figures]
        return f"| {' | '.join([self.method, *figures, self.coverage, self.seconds])} |"


def page(store: ResultsStore) -> str:
    """All tables."""
    tables = [*(section(store, name) for name in CONTESTS), forecasts(store)]
    return PAGE.format(tables="\n\n".join(tables))


def section(store: ResultsStore, name: str) -> str:
    """Heading, table and source of the published figures of a data set."""
    contest = CONTESTS[name]
    rows = [
        *(
            ArenaRow(f"{method}, published", [text.split(" / ") for text in texts])
            for method, texts in contest.printed.items()
        ),
        *(ours(store, name, method) for method in rivals(contest)),
    ]
    table = _table(rows, contest.masks, contest.scores)
    return f"## {name}\n\n{table}\n\nPublished figures: {contest.source}"


def _table(rows: list[ArenaRow], masks: Sequence[str], scores: tuple[str, ...]) -> str:
    """The rows in Markdown, under a head."""
    what = " / ".join(f"{score} {'↑' if score in RISING else '↓'}" for score in scores)
    columns = [f"{mask}, {what}" for mask in masks] or [what]
    head = [
        f"| {' | '.join(['', *columns, '90 % intervals cover', 'seconds'])} |",
        "|---" * (len(columns) + 3) + "|",
    ]
    return "\n".join([*head, *(row.line() for row in mark_best(rows, scores))])


def forecasts(store: ResultsStore) -> str:
    """Heading, table and source of the rolling forecasts."""
    scores = tuple(f"RMSE {horizon}" for horizon in rolling.HORIZONS)
    rows = [
        ArenaRow(f"{method}, published", [text.split(" / ") for text in texts])
        for method, texts in rolling.PRINTED.items()
    ]
    for method in rolling.forecasters(quick=False, threads=1):
        keys = [CellKey(f"{rolling.NAME} {mask}", method, "0") for mask in rolling.MASKS]
        columns = [[] if (cell := store.load(STUDY, key)) is None else [cell] for key in keys]
        figures = [_figures(scores, cells) for cells in columns]
        rows.append(ArenaRow(method, figures, _coverage(columns), _seconds(columns)))
    return FORECASTS.format(table=_table(rows, rolling.MASKS, scores), source=NOTEBOOKS)


def ours(store: ResultsStore, name: str, method: str) -> ArenaRow:
    """What has been computed for a method; "-" where nothing has been."""
    contest = CONTESTS[name]
    if is_elsewhere(name, method):
        columns = [load_cells(ResultsStore(store.folder), name, method)]
    else:
        columns = [
            [
                found
                for fold in folds
                if (found := store.load(STUDY, CellKey(column, method, str(fold)))) is not None
            ]
            for column, folds in contest.columns(name).items()
        ]
    everything = [cell for cells in columns for cell in cells]
    label = method
    wanted = sum(map(len, contest.columns(name).values()))
    if not contest.masks and 0 < len(everything) < wanted:
        label = f"{label}, {len(everything)} of {wanted} folds"
    if method == SMURFF and any("cap" not in cell for cell in everything):
        label = f"{label} †"
    return ArenaRow(
        label,
        [_figures(contest.scores, cells) for cells in columns],
        _coverage(columns),
        _seconds(columns),
    )


def _figures(scores: tuple[str, ...], cells: list[Result]) -> list[str]:
    if not cells:
        return ["-"] * len(scores)
    return [show(float(np.mean([cell[score] for cell in cells]))) for score in scores]


def _seconds(columns: list[list[Result]]) -> str:
    found = [cell["seconds"] for cells in columns for cell in cells]
    return f"{np.mean(found):.1f}" if found else ""


def _coverage(columns: list[list[Result]]) -> str:
    if not any("coverage" in cell for cells in columns for cell in cells):
        return ""
    means = [np.mean([cell["coverage"] for cell in cells]) if cells else None for cells in columns]
    return " / ".join("-" if each is None else f"{each:.1%}" for each in means)


def show(number: float) -> str:
    """Four digits, three decimals at most."""
    return f"{number:.3f}" if abs(number) < 10 else f"{number:.2f}"


def mark_best(rows: list[ArenaRow], scores: tuple[str, ...]) -> list[ArenaRow]:
    """The rows with the best figure of every column and score in bold."""
    found = [row._replace(figures=[list(each) for each in row.figures]) for row in rows]
    for column in range(len(rows[0].figures)):
        for place, score in enumerate(scores):
            known = [
                float(row.figures[column][place])
                for row in rows
                if row.figures[column][place] != "-"
            ]
            best = (max if score in RISING else min)(known, default=None)
            for row in found:
                text = row.figures[column][place]
                if text != "-" and float(text) == best:
                    row.figures[column][place] = f"**{text}**"
    return found


PAGE = """# The arena: published figures, trivial methods, and bayesring

Made by `make arena`; the numbers behind it are in `paper/results/arena.json`. What is there is not
computed again; `make arena ONLY='Birmingham*/bayesring NYC*/mean'` computes some cells only. Where
a table has folds or seeds, figures are means over five of them; the columns of the traffic tables
are masks: `RM` hides cells at random, `NM` whole days of a series, 40 or 60 per cent of them. The
best figure of a column is in bold. Absolute errors, MAE and MAPE (a share), are those of the median
where a method has one, squared errors those of the mean.

Trivial methods use the known cells like this; where they know nothing, they give main effects:

* `mean`: the same value everywhere.
* `additive`: main effects of all modes.
* `slot`, `slot and weekday`: mean and median of the same series at the same time of the day, of the
  day and week, or of the year. `mean of the series` and `mean of the pixel` ignore time and band.
* `along`: straight lines between the neighbours of a series along an ordered mode.
* `plane`: linear interpolation on triangles in a plane of two ordered modes.
* `neighbours of`: main effects, plus what they leave over in the ten most similar slices of a mode.

SMURFF chooses between 5, 10, 20, 40 and 80 factors and caps of 10, 100 and 1,000 on the
signal-to-noise ratio, on a tenth of its training data; figures marked † have a cap of 10 and at
most 40 factors, and were measured before. Its seconds are those of its last fit, by a clock in its
own process. `bayesring` is `TensorRing()` with nothing set; ordered modes are given as
`positions=dataset.positions`. `bayesring auto` has `likelihood="auto"`, which looks at the values,
as `complete` does: counts get a negative binomial model unless normal noise predicts them better.
On the sets of the paper, the figures of SMURFF and bayesring are those of `make accuracy`, where
all errors are those of the mean. Test values are read only for scoring. Seconds are means over the
fits of a row, on two cores that others used as well.

{tables}
"""
FORECASTS = """## Hangzhou, forecasts

The last seven days, two, four and six slots of ten minutes at a time, for all stations at once:
every method knows the days before, and of the day itself what the mask shows of earlier slots. All
values of the seven days are scored. bayesring is fitted once, to the first 18 days; the day that
has begun is folded in before every forecast (`fold_in`), and nothing is fitted anew. `last value`
is that of the day, `slot and weekday, times the last hour` the usual day scaled by how busy the
station was in the last six slots.

{table}

Published figures: {source}"""
