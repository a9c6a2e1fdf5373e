"""Files by extension: tables, arrays and labelled arrays, read and written as a whole.

| extension | read as | written |
|---|---|---|
| .csv, .csv.gz, or "-" for standard streams | pyarrow table | the table with four more columns |
| .parquet, .arrow, .feather | pyarrow table | the same |
| .xlsx | pyarrow table | the same, on one sheet |
| a folder, or a pattern such as `2020-*.csv` | one table | not written |
| .npy | array | the mean only |
| .npz | its only array, or the one named | mean, std, lower and upper |
| .nc, .zarr | its only variable, or the one named | mean, std, lower and upper as variables |

Results are written under a temporary name and renamed; see `bayesring.data.writing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.csvfiles import read_texts, typed, write_csv
from bayesring.data.dialects import PLAIN, Dialect
from bayesring.data.expanding import (
    check_arrow,
    check_expanded,
    check_zipped,
    size_of_parquet,
)
from bayesring.data.folders import ending_of, files_in, is_among, is_many, joined_tables
from bayesring.data.labelledfiles import (
    Surroundings,
    read_labelled,
    read_surroundings,
    write_labelled,
)
from bayesring.data.parquet.footers import is_pattern
from bayesring.data.parquet.thrift import read_footer
from bayesring.data.spreadsheets import check_sheet, import_openpyxl, read_sheet, write_sheet
from bayesring.data.writing import ZARR, check_destination, replacing
from bayesring.wording import reason_of

TABLES = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".feather")
TEXTS = (".csv", ".csv.gz", ".tsv")
SHEETS = (".xlsx",)
ARRAYS = (".npy", ".npz")
LABELLED = (".nc", ".zarr")
POINTS, SPREADS = ("mean", "median"), ("std", "lower", "upper")
NOWHERE = Surroundings({}, {})
STANDARD = "-"
"""Name of the standard streams."""


def extension(path: str) -> str:
    """The known extension of a path."""
    if path == STANDARD:
        return ".csv"
    known = (*TABLES, *SHEETS, *ARRAYS, *LABELLED)
    for each in sorted(known, key=len, reverse=True):
        if path.lower().endswith(each):
            return each
    raise ValueError(
        f"{path} has an unknown file extension; known extensions are {', '.join(known)}."
    )


def format_of(path: str) -> str:
    """The extension of an input, or of the files that it stands for."""
    return ending_of(path, (*TABLES, *SHEETS)) if is_many(path) else extension(path)


def is_parquet(path: str) -> bool:
    """Whether a path is Parquet data: a file with its extension, or a folder of such files."""
    if path == STANDARD or path.lower().endswith(".parquet"):
        return path != STANDARD
    return format_of(path) == ".parquet"


def family(path: str) -> tuple[str, ...]:
    """All extensions for the same kind of data as an input that can be written."""
    kind = format_of(path)
    return next(group for group in ((*TABLES, *SHEETS), ARRAYS, LABELLED) if kind in group)


def check_output(source: str, target: str, safe_cells: bool = False) -> None:
    """Reject, before any work, a result file whose format cannot hold the source's data."""
    if target != STANDARD and any(mark in target for mark in "*?"):
        raise ValueError(f"{target} cannot be written: a pattern names no file.")
    if STANDARD not in (source, target) and is_many(source) and is_among(target, source):
        raise ValueError(f"{target} cannot be written: it would be part of the input {source}.")
    if extension(target) not in family(source):
        raise ValueError(
            f"{target} cannot hold the result for {source}; choose one of the extensions "
            f"{', '.join(family(source))}."
        )
    if safe_cells and extension(target) not in TEXTS:
        raise ValueError(
            f"safe cells are for CSV, where spreadsheets may run text as formulas, but {target} is "
            f"a {extension(target)} file, where text stays text."
        )
    check_target(target)


def check_target(target: str) -> None:
    """Reject, before any work, a file that cannot be written."""
    folder_format = _folder_format(target)
    if extension(target) in SHEETS:
        import_openpyxl()
    if target != STANDARD:
        check_destination(target, folder_format)


def read_data(
    path: str,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    kinds: Mapping[str, NDArray[Any] | None] | None = None,
    dialect: Dialect = PLAIN,
    numbers: Sequence[str] = (),
) -> Any:
    """Contents of a file: a pyarrow table, an array, or a labelled xarray array.

    `modes`, `value` and `numbers`, other columns of numbers, name columns; for arrays, `value`
    names the array or variable. For `kinds` and `dialect` see `bayesring.data.csvfiles.read_csv`.
    """
    dialect = dialect.checked()
    kind = format_of(path)
    if path != STANDARD and not is_pattern(path) and not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if kind in TEXTS:
        dialect.refuse_unused(("sep", "decimal", "encoding", "na"), path, kind)
        if kind == ".tsv" and dialect.sep is None:
            dialect = dialect._replace(sep="\t")
    else:
        used = ("decimal", "na", "sheet") if kind in SHEETS else ("na",)
        dialect.refuse_unused(used, path, kind)
    if kind in TABLES or kind in SHEETS:
        table = _read_table(path, kind, dialect)
        if kind in TEXTS or kind in SHEETS:
            return typed(table, modes, value, kinds, dialect, numbers)
        return _without_codes(table, value, dialect)
    if modes is not None:
        raise ValueError(f"modes name the key columns of a table, but {path} holds an array.")
    array: Any = _read_array(path, value) if kind in ARRAYS else _read_labelled(path, value)
    codes = dialect.codes()
    if not codes:
        return array
    known = ~np.isin(array, codes)
    return array.where(known) if kind in LABELLED else np.where(known, array, np.nan)


def _read_table(path: str, kind: str, dialect: Dialect) -> Any:
    """A table, of texts if the file holds texts; one that is in many files is put together."""
    if path == STANDARD or not is_many(path):
        return _read_one(path, kind, dialect)
    files = files_in(path, (*TABLES, *SHEETS))
    return joined_tables(path, files, [_read_one(str(each), kind, dialect) for each in files])


def _read_one(path: str, kind: str, dialect: Dialect) -> Any:
    if kind in TEXTS:
        return read_texts(path, dialect)
    if kind in SHEETS:
        with _reading(path, kind):
            archive = ZipFile(path)
        with archive:
            check_sheet(path, archive)
        with _reading(path, kind):
            return read_sheet(path, dialect.sheet)
    return _read_arrow(path, kind)


def _without_codes(table: Any, value: str | None, dialect: Dialect) -> Any:
    """A table whose values, or all floats if none is named, are missing where they are a code."""
    codes = dialect.codes()
    if not codes:
        return table
    pa = import_pyarrow()
    from pyarrow import compute

    for place, name in enumerate(table.column_names):
        column = table[name]
        if not (name == value or (value is None and pa.types.is_floating(column.type))):
            continue
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            known = compute.invert(
                compute.is_in(column.cast(pa.float64()), value_set=pa.array(codes, pa.float64()))
            )
            table = table.set_column(
                place, name, compute.if_else(known, column, pa.scalar(None, column.type))
            )
    return table


def write_completion(
    path: str, completion: Any, safe_cells: bool = False, source: str | None = None
) -> None:
    """Write all statistics of the filled cells that the format can hold.

    A NetCDF file or Zarr store gets what is around the variable in its `source`. For `safe_cells`
    see `bayesring.data.csvfiles.write_csv`.
    """
    kind = extension(path)
    if kind in (*TABLES, *SHEETS):
        write_table(path, completion.table, safe_cells)
        return
    around = NOWHERE
    if source is not None and kind in LABELLED:
        done = f"bayesring complete: gaps filled, with {completion.level:.0%} intervals"
        around = read_surroundings(source, lambda: _reading(source, extension(source)), done)
    write_statistics(path, completion.statistics, around)


def write_statistics(
    path: str, statistics: Mapping[str, Any], around: Surroundings = NOWHERE
) -> None:
    """Write named arrays, labelled ones with what is `around` them."""
    kind = extension(path)
    if kind in ARRAYS:
        write_arrays(path, statistics)
        return
    with replacing(path, _folder_format(path)) as temporary:
        if kind == ".nc":
            temporary.unlink()  # HDF5 locks its files itself, and refuses one that is locked
        write_labelled(temporary, statistics, around, kind)


def write_table(path: str, table: Any, safe_cells: bool = False) -> None:
    """A pyarrow table; for `safe_cells` see `bayesring.data.csvfiles.write_csv`."""
    kind = extension(path)
    with _target(path) as temporary:
        if kind in TEXTS:
            write_csv(temporary, table, kind, safe_cells)
        elif kind in SHEETS:
            write_sheet(temporary, table)
        elif kind == ".parquet":
            import_pyarrow()
            from pyarrow import parquet

            parquet.write_table(table, temporary)
        else:
            pa = import_pyarrow()
            with pa.ipc.new_file(str(temporary), table.schema) as writer:
                writer.write_table(table)


def write_arrays(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays; .npy holds the first only, the mean or the median."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if extension(path) == ".npy":
            np.save(file, next(iter(arrays.values())))
        else:
            np.savez(file, **dict[str, Any](arrays))


def _folder_format(path: str) -> str | None:
    return ZARR if extension(path) == ".zarr" else None


def _target(path: str) -> AbstractContextManager[str | os.PathLike[str]]:
    return nullcontext(path) if path == STANDARD else replacing(path)


def _read_arrow(path: str, kind: str) -> Any:
    pa = import_pyarrow()
    if kind == ".parquet":
        with _reading(path, kind):
            groups = read_footer(Path(path))  # before Arrow does, because it may crash
            size = size_of_parquet(path, groups)
        check_expanded(path, size, "read it with another library and save it as CSV")
    else:
        check_arrow(path)
    with _reading(path, kind):
        if kind == ".parquet":
            from pyarrow import parquet

            table = parquet.read_table(path, partitioning=None)
        else:
            with pa.OSFile(path) as file:
                table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)  # Arrow itself trusts offsets and text
        return table


def _read_array(path: str, name: str | None) -> NDArray[Any]:
    kind = extension(path)
    with _reading(path, kind):
        opened = open(path, "rb")  # noqa: SIM115, by NumPy a damaged archive is left open
    with opened as file:
        with _reading(path, kind):
            found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return found
        with found:
            chosen = _one_of(list(found), name, path, "arrays")
            own = [chosen, f"{chosen}.npy"]
            check_zipped(path, found.zip, "save it uncompressed, as numpy.savez does", own)
            with _reading(path, kind):
                array = found[chosen]
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} holds {chosen}, which is not an array.")
    return array


def _read_labelled(path: str, name: str | None) -> Any:
    return read_labelled(
        path,
        lambda names: _one_of(names, name, path, "variables"),
        lambda: _reading(path, extension(path)),
    )


@contextmanager
def _reading(path: str, kind: str) -> Iterator[None]:
    """Say in one sentence that a file is damaged; its library may raise anything then."""
    try:
        yield
    except MemoryError:
        raise ValueError(
            f"{path} declares more data than memory can hold; it may be damaged."
        ) from None
    except Exception as error:
        raise ValueError(f"{path} is not a {kind} file: {reason_of(error)}.") from None


def _one_of(names: list[str], name: str | None, path: str, what: str) -> str:
    """The named array, or the only one."""
    if name in names or (name is None and len(names) == 1):
        return name or names[0]
    raise ValueError(f"{path} holds the {what} {names}; name one of them with value.")
