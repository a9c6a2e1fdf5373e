"""A partition of a Dask DataFrame as a row group, read as those of Parquet files are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bayesring.checks import import_pyarrow
from bayesring.data.parquet.arrowkeys import key_type
from bayesring.data.parquet.footers import check_value_type
from bayesring.data.parquet.reading import BATCH, Group, RowBatch, RowSource
from bayesring.wording import reason_of


class FramePartition(RowSource):
    """Partition `number` of a Dask DataFrame. As in tables, NaN is a missing value."""

    def __init__(self, frame: Any, number: int, modes: tuple[str, ...], value: str) -> None:
        pa = import_pyarrow()
        self.modes, self.value, self.number, self.n_rows = modes, value, number, len(frame)
        names = [*modes, value]
        columns = [self._column(frame[name], name) for name in names]
        if pa.types.is_floating(columns[-1].type):
            columns[-1] = pa.compute.if_else(columns[-1].is_nan(), None, columns[-1])
        self._rows = pa.RecordBatch.from_arrays(columns, names)
        if not self.n_rows:  # says nothing about types
            self.kinds = ()
            return
        check_value_type(columns[-1].type, self.place(number), value)
        try:
            self.kinds = tuple(
                key_type(own.type, name) for own, name in zip(columns, modes, strict=False)
            )
        except ValueError as error:
            raise ValueError(f"{self.place(number)}: {error}") from None

    def place(self, file: int) -> str:
        """As in `RowSource`."""
        return f"Partition {file}"

    def read(self, group: Group) -> Iterator[RowBatch]:
        """As in `RowSource`."""
        if self.n_rows != group.n_rows:
            raise ValueError(
                f"{self.place(self.number)} has changed while it was read: it had "
                f"{group.n_rows:,} rows, and now has {self.n_rows:,}."
            )
        for begin in range(0, self.n_rows, BATCH):
            yield RowBatch(self.number, begin, None, self._rows.slice(begin, BATCH))

    def _column(self, column: Any, name: str) -> Any:
        pa = import_pyarrow()
        try:
            found = pa.Array.from_pandas(column)
        except (pa.ArrowException, TypeError) as error:
            where = f"{self.place(self.number)}, column {name!r}"
            raise ValueError(f"{where}: {reason_of(error)}.") from None
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
