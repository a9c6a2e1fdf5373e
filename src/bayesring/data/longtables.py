"""Long tables as containers: rows without a value are gaps, and so are cells without a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.data.cellnumbers import numbers_in_both
from bayesring.data.labelled import Statistic
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.data.opentables import kind_of
from bayesring.data.tables import Coded, add_columns, append_cells
from bayesring.model.types import FloatArray, IntArray


@dataclass(frozen=True)
class Long:
    """A long table; rows without a value, and rows appended for absent cells, are filled.

    A row without a value whose cell has one in another row gets that value, if it is the only one.
    """

    frame: nw.DataFrame[Any]
    coded: Coded
    appended: IntArray
    """(k, D), cells without a row, which are appended at the end."""
    masked: NDArray[np.bool_] | None = None
    """Rows that stay without a value, (n,)."""
    exposed: bool = False
    """Whether rows have exposures of their own, so that a count of one is not that of another."""

    @property
    def observations(self) -> Observations:
        """The rows with a value."""
        return self.coded.observations

    @property
    def labels(self) -> Labels:
        """Labels of the key columns."""
        return self.coded.labels

    @property
    def kind(self) -> str:
        """The table's library."""
        return kind_of(self.frame)

    @property
    def missing(self) -> IntArray:
        """The rows without a value, but for those known elsewhere, then the appended ones."""
        return np.concatenate([self.coded.coords[self.asked], self.appended])

    @cached_property
    def known_elsewhere(self) -> dict[int, float]:
        """Rows without a value, with the one value that other rows give their cell."""
        if self.exposed:
            return {}
        gaps = np.flatnonzero(np.isnan(self.coded.values))
        known = self.observations
        asked, cells = numbers_in_both(self.coded.coords[gaps], known.coords, self.coded.shape)
        both = np.flatnonzero(np.isin(asked, cells))
        if not len(both):
            return {}
        order = np.lexsort([known.values, cells])
        found, first = np.unique(cells[order], return_index=True)
        last = np.append(first[1:], len(cells)) - 1
        low, high = known.values[order][first], known.values[order][last]
        places = np.searchsorted(found, asked[both])
        pairs = zip(gaps[both].tolist(), places.tolist(), strict=True)
        return {row: float(low[at]) for row, at in pairs if low[at] == high[at]}

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """Rows to predict."""
        asked = np.isnan(self.coded.values)
        asked[list(self.known_elsewhere)] = False
        return asked if self.masked is None else asked & ~self.masked

    def leaving(self, masked: NDArray[np.bool_]) -> Long:
        """The same, of which some of the `missing` cells (m,) stay missing."""
        rows = np.zeros(len(self.coded.values), dtype=bool)
        listed = np.flatnonzero(self.asked)
        rows[listed[masked[: len(listed)]]] = True
        return replace(self, appended=self.appended[~masked[len(listed) :]], masked=rows)

    def filled(self, predicted: FloatArray, statistic: Statistic) -> Any:
        """The table with its value column filled in."""
        column = self._column(predicted, statistic)
        return add_columns(self._rows, {str(self.labels.value): column}).to_native()

    def with_statistics(self, predicted: Sequence[tuple[Statistic, FloatArray]]) -> Any:
        """The table with one column added per statistic."""
        columns = {own.name: self._column(numbers, own) for own, numbers in predicted}
        return add_columns(self._rows, columns).to_native()

    @cached_property
    def _rows(self) -> nw.DataFrame[Any]:
        if not len(self.appended):
            return self.frame
        return append_cells(self.frame, self.coded, self.appended)

    def _column(self, predicted: FloatArray, statistic: Statistic) -> FloatArray:
        values = np.append(self.coded.values, np.full(len(self.appended), np.nan))
        values[list(self.known_elsewhere)] = list(self.known_elsewhere.values())
        if not statistic.keeps:
            values = 0.0 * np.abs(values)  # not minus zero
        asked = np.append(self.asked, np.ones(len(self.appended), dtype=bool))
        values[asked] = predicted
        return values
