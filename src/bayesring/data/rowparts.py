"""One partition of data that are never together in one place, coded by its own labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.data.extras import between, read_extras
from bayesring.data.labels import Zone
from bayesring.data.tables import Columns, code_table
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray

Place = tuple[str, int, int]
"""Name of a partition or file, number of the first row there, and how many follow it."""


class RowPart(NamedTuple):
    """A partition, its keys coded by its own labels; rows without a value are left out."""

    columns: IntArray
    """(D, n) int32."""
    values: FloatArray
    """(n,)."""
    levels: tuple[NDArray[Any], ...]
    """Sorted labels, also of rows without a value; empty arrays if there are no rows."""
    zones: tuple[Zone | None, ...]
    given: Given = NOTHING
    n_rows: int = 0
    """Rows with or without a value."""
    known: NDArray[np.uint8] | None = None
    """Which of its rows are here, eight to a byte."""
    places: tuple[Place, ...] = ()
    """Where all its rows come from, in order."""

    def located(self, error: ValueError) -> ValueError:
        """The error of an observation, with the place and the row where its source has it."""
        text, names = str(error), {name for name, *_ in self.places}
        found = re.search(r"(?<=in row )\d+", text)
        if found is None or self.known is None:
            return ValueError(f"{names.pop()}: {text}") if len(names) == 1 else error
        row = int(np.flatnonzero(np.unpackbits(self.known))[int(found[0])])
        ends = np.cumsum([n_rows for *_, n_rows in self.places])
        name, first, _ = self.places[int(np.searchsorted(ends, row, side="right"))]
        own = first + row - int(ends[ends <= row].max(initial=0))
        return ValueError(f"{name}: {text[: found.start()]}{own}{text[found.end() :]}")


def table_part(frame: Any, number: int, columns: Columns, extras: Mapping[str, str]) -> RowPart:
    """Partition `number`, which is a table."""
    table = nw.from_native(frame, eager_only=True)
    n_rows = len(table)
    for name in (*columns.modes, columns.value, *extras.values()) if n_rows else ():
        if name not in table.columns:
            raise ValueError(
                f"Partition {number} has no column {name!r}; its columns are {table.columns}."
            )
    places = ((f"Partition {number}", 0, n_rows),)
    empty = np.empty((len(columns.modes), 0), dtype=np.int32)
    nothing = RowPart(empty, empty[0], (empty[0],) * len(empty), (None,) * len(empty))
    here = np.ones(n_rows, dtype=bool)
    try:
        found = read_extras(extras, n_rows, table) if n_rows else {}
        if "sample_weight" in found:
            here = found["sample_weight"] > 0
            table = table.filter(here.tolist())
            found = {name: each[here] for name, each in found.items()}
        if not len(table):
            return nothing
        coded = code_table(table, columns._replace(guessed=False))
        values, given = between(coded.values, found)
    except ValueError as error:
        raise nothing._replace(known=np.packbits(here), places=places).located(error) from None
    known, labels = ~np.isnan(values), coded.labels
    codes = np.ascontiguousarray(coded.coords[known].T, dtype=np.int32)
    levels = tuple(each for each in labels.levels if each is not None)
    here[here] = known
    at, packed = given.at(known), np.packbits(here)
    return RowPart(codes, values[known], levels, labels.zones, at, n_rows, packed, places)
