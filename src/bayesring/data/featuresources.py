"""Features of labels in files: tables or matrices."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.csvfiles import NUMBER, read_texts, typed
from bayesring.data.dialects import MISSING, PLAIN, Dialect
from bayesring.data.files import TEXTS, extension, read_data

YEAR = re.compile(r"\d{4}-\d")
"""How a date begins."""


def read_features(
    path: str, name: str, levels: NDArray[Any] | None, dialect: Dialect = PLAIN
) -> Any:
    """Features of the labels of a mode: a table whose labels are typed as `levels`, or a matrix.

    In CSV, a column is of numbers or dates if all that it holds are, and empty cells are missing.
    """
    if extension(path) not in TEXTS:
        return read_data(path)
    texts = read_texts(path, dialect)
    key = name if name in texts.column_names else texts.column_names[0]
    return with_types(typed(texts, None, None, {key: levels}, dialect), key)


def with_types(table: Any, key: str) -> Any:
    """The table with numbers or dates where a column of text holds nothing else; not in `key`."""
    pa = import_pyarrow()
    columns = {key: table[key]}
    for name in table.column_names:
        if name == key:
            continue
        cells = [None if text in MISSING else text for text in table[name].to_pylist()]
        known = [text for text in cells if text is not None]
        convert: Any = None
        if known and all(NUMBER.fullmatch(text) for text in known):
            convert = float
        elif known and all(map(_is_date, known)):
            convert = np.datetime64
        if convert is None:
            columns[name] = pa.array(cells, pa.string())
        elif convert is float:
            columns[name] = pa.array([None if c is None else float(c) for c in cells], pa.float64())
        else:
            times = np.array([np.datetime64("NaT" if c is None else c, "us") for c in cells])
            columns[name] = pa.array(times)
    return pa.table(columns)


def _is_date(text: str) -> bool:
    if not YEAR.match(text):
        return False  # NumPy knows "today"
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return True
