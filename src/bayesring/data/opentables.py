"""Tables as users have them: in memory, lazy, or read in pieces."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
from narwhals.exceptions import DuplicateError
from narwhals.stable.v2.dependencies import is_into_dataframe

from bayesring.wording import reason_of, shown


def is_dask(data: Any) -> bool:
    """Whether this is a Dask DataFrame, or another collection of Dask's."""
    return type(data).__module__.startswith("dask") and hasattr(data, "to_delayed")


def is_table(data: Any) -> bool:
    """Whether `data` is a table, or the promise of one."""
    return is_into_dataframe(data) or hasattr(data, "collect_schema") or _is_arrow_source(data)


def _is_arrow_source(data: Any) -> bool:
    """Whether `data` is a Dataset, RecordBatchReader or RecordBatch of pyarrow."""
    if isinstance(data, type) or not type(data).__module__.startswith("pyarrow"):
        return False
    return any(hasattr(data, own) for own in ("to_batches", "read_next_batch", "to_struct_array"))


def loaded(data: Any, argument: str = "data") -> Any:
    """A table in memory; a lazy one, or one read in pieces, is loaded, and only once.

    LazyFrames become polars tables, a Dataset or RecordBatchReader of pyarrow a pyarrow table.
    Anything else is returned as it is, but for what only a cluster should load.
    """
    if is_dask(data):
        raise TypeError(
            f"{argument} is a Dask {type(data).__name__}, but data in memory are required here: "
            "give its computed partitions in turn, or use predict_table, which takes it as it is."
        )
    if _is_arrow_source(data) and not is_into_dataframe(data):
        import pyarrow as pa

        try:
            if isinstance(data, pa.RecordBatch):
                return pa.Table.from_batches([data])
            return data.read_all() if hasattr(data, "read_all") else data.to_table()
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{argument} cannot be read: {reason_of(error)}.") from None
    if type(data).__module__.partition(".")[0] == "polars" and hasattr(data, "collect"):
        try:
            return data.collect()
        except Exception as error:  # polars has many of its own, some over many lines
            raise ValueError(f"{argument} cannot be read: {reason_of(error)}.") from None
    return data


def open_table(data: Any, argument: str = "data") -> nw.DataFrame[Any]:
    """The table as a narwhals frame."""
    data = loaded(data, argument)
    try:
        frame: nw.DataFrame[Any] = nw.from_native(data, eager_only=True)
    except TypeError:
        raise TypeError(
            f"{argument} is a lazy table or of an unknown kind ({type(data).__name__}), but a "
            "pandas, polars or pyarrow table is required; load it first, for example with "
            ".collect()."
        ) from None
    except DuplicateError as error:
        twice = reason_of(ValueError(" ".join(str(error).split())))
        raise ValueError(f"{argument} has several columns of one name: {twice}.") from None
    names = frame.columns
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{argument} has several columns of one name, {shown(twice)}.")
    if len(frame) == 0:
        raise ValueError(f"{argument} is empty: found a table with 0 rows.")
    return frame


def in_arrow(table: Any) -> Any:
    """A table of any library as a pyarrow table."""
    return nw.from_native(table, eager_only=True).to_arrow()


def kind_of(frame: nw.DataFrame[Any]) -> str:
    """The library that a table belongs to: "pandas", "polars", "pyarrow"."""
    return str(frame.implementation.value)
