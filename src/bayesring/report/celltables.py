"""Tables of single cells on the page: the most surprising and the least certain."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from bayesring.model.types import FloatArray, IntArray
from bayesring.report import explorer
from bayesring.report.contents import Contents
from bayesring.report.fitted import Fitted
from bayesring.report.markup import Cell, kept_together, paragraph, table
from bayesring.report.svg import number


def surprise_table(fitted: Fitted, contents: Contents) -> str:
    """Observed values that the model finds surprising."""
    found = contents.surprises
    if found is None:
        return paragraph("Surprises are not listed: the model file holds no observations.", "note")
    if fitted.is_binary:
        columns = {
            "observed": found.values,
            "probability of 1": found.mean,
            "probability of the observed value": found.distance,
        }
    else:
        columns = {
            "observed": found.values,
            "expected": found.mean,
            "error bar": found.deviation,
            "error bars off": found.distance,
        }
    given = fitted.observed is not None and fitted.observed.given.exposure is not None
    exposed = " Expected counts are those of the exposure of each." if given else ""
    return _cell_table(
        "Largest surprises",
        fitted,
        contents,
        found.coords,
        columns,
        f"Observed values far from what the model expects, out of {found.n_searched:,} checked. "
        "The model has seen them, so they pull it towards them: look for errors of measurement or "
        f"copying, and for real events.{exposed}",
    )


def doubt_table(fitted: Fitted, contents: Contents) -> str:
    """Cells the model knows least about."""
    found = contents.doubts
    expected = "probability of 1" if fitted.is_binary else "expected"
    which = "Cells, perhaps observed ones," if fitted.observed is None else "Unobserved cells"
    return _cell_table(
        "Most uncertain cells",
        fitted,
        contents,
        found.coords,
        {expected: found.mean, "its error bar": found.deviation},
        f"{which} with the most uncertain expected values, out of "
        f"{found.n_searched:,} checked: these are the most worth measuring.",
    )


def _cell_table(
    title: str,
    fitted: Fitted,
    contents: Contents,
    coords: IntArray,
    columns: Mapping[str, FloatArray],
    caption: str,
) -> str:
    """Cells by their labels, which sort in the order of the levels, with numbers about them."""
    rows = []
    whole = {name for name, each in columns.items() if np.all(each == np.round(each))}
    for place, cell in enumerate(coords):
        labels = [
            Cell(fitted.level_texts(mode, [index])[0], float(index), is_number=False)
            for mode, index in enumerate(cell)
        ]
        numbers = {name: float(each[place]) for name, each in columns.items()}
        texts = {
            name: f"{each:.0f}" if name in whole else number(each) for name, each in numbers.items()
        }
        rows.append([*labels, *map(Cell, texts.values(), numbers.values())])
    jumps = [explorer.place_in(contents.part, cell) for cell in coords]
    names = [*fitted.labels.names, *columns]
    return kept_together(f"<h3>{escape(title)}</h3>", table(names, rows, caption, jumps))
