"""Files by extension: tables, arrays and labelled arrays, read and written as a whole.

| extension | read as | written |
|---|---|---|
| .csv, .csv.gz, or "-" for standard streams | pyarrow table | the table with four more columns |
| .parquet, .arrow, .feather | pyarrow table | the same |
| .npy | array | the mean only |
| .npz | its only array, or the one named | mean, std, lower and upper |
| .nc, .zarr | its only variable, or the one named | mean, std, lower and upper as variables |

Results are written under a temporary name and renamed; see `bayesring.data.writing`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.csvfiles import read_csv, with_types, write_csv
from bayesring.data.heaps import check_heaps
from bayesring.data.parquet.footers import find_files
from bayesring.data.parquet.thrift import read_footer
from bayesring.data.writing import ZARR, check_destination, replacing
from bayesring.wording import reason_of

TABLES = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")
ARRAYS = (".npy", ".npz")
LABELLED = (".nc", ".zarr")
STATISTICS = ("mean", "std", "lower", "upper")
STANDARD = "-"
"""Name of the standard streams."""


def extension(path: str) -> str:
    """The known extension of a path."""
    if path == STANDARD:
        return ".csv"
    known = (*TABLES, *ARRAYS, *LABELLED)
    for each in sorted(known, key=len, reverse=True):
        if path.lower().endswith(each):
            return each
    raise ValueError(
        f"{path} has an unknown file extension; known extensions are {', '.join(known)}."
    )


def is_parquet(path: str) -> bool:
    """Whether a path is Parquet data: a file with its extension, or a folder of such files."""
    folder = Path(path)
    return path.lower().endswith(".parquet") or (
        folder.is_dir() and next(folder.rglob("*.parquet"), None) is not None
    )


def family(path: str) -> tuple[str, ...]:
    """All extensions for the same kind of data."""
    return next(group for group in (TABLES, ARRAYS, LABELLED) if extension(path) in group)


def check_output(source: str, target: str, safe_cells: bool = False) -> None:
    """Reject, before any work, a result file whose format cannot hold the source's data."""
    if family(source) != family(target):
        raise ValueError(
            f"{target} cannot hold the result for {source}; choose one of the extensions "
            f"{', '.join(family(source))}."
        )
    if safe_cells and extension(target) not in (".csv", ".csv.gz"):
        raise ValueError(
            f"safe cells are for CSV, where spreadsheets may run text as formulas, but {target} is "
            f"a {extension(target)} file, where text stays text."
        )
    check_target(target)


def check_target(target: str) -> None:
    """Reject, before any work, a file that cannot be written."""
    folder_format = _folder_format(target)
    if target != STANDARD:
        check_destination(target, folder_format)


def read_data(
    path: str,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    kinds: Mapping[str, NDArray[Any] | None] | None = None,
) -> Any:
    """Contents of a file: a pyarrow table, an array, or a labelled xarray array.

    `modes` and `value` name columns; for arrays, `value` names the array or variable. For `kinds`
    see `bayesring.data.csvfiles.read_csv`.
    """
    kind = extension(path)
    if path != STANDARD and not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if kind in (".csv", ".csv.gz"):
        return read_csv(path, modes, value, kinds)
    if kind in TABLES:
        return _read_arrow(path, kind)
    if modes is not None:
        raise ValueError(f"modes name the key columns of a table, but {path} holds an array.")
    return _read_array(path, value) if kind in ARRAYS else _read_labelled(path, value)


def read_features(path: str, name: str, levels: NDArray[Any] | None) -> Any:
    """Features of the labels of a mode: a table whose labels are typed as `levels`, or a matrix.

    In CSV, a column is of numbers or dates if all that it holds are, and empty cells are missing.
    """
    if extension(path) not in (".csv", ".csv.gz"):
        return read_data(path)
    names = read_csv(path, None, None, {}).column_names
    key = name if name in names else names[0]
    return with_types(read_csv(path, None, None, {key: levels}), key)


def write_completion(path: str, completion: Any, safe_cells: bool = False) -> None:
    """Write all statistics of the filled cells that the format can hold.

    For `safe_cells` see `bayesring.data.csvfiles.write_csv`.
    """
    kind = extension(path)
    if kind in TABLES:
        write_table(path, completion.table, safe_cells)
        return
    statistics = {name: getattr(completion, name) for name in STATISTICS}
    if kind in ARRAYS:
        write_arrays(path, statistics)
        return
    xr = _import_xarray()
    dataset = xr.Dataset(statistics).drop_encoding()
    with replacing(path, _folder_format(path)) as temporary:
        if kind == ".nc":
            temporary.unlink()  # HDF5 locks its files itself, and refuses one that is locked
            dataset.to_netcdf(temporary, engine="h5netcdf")
        else:
            dataset.to_zarr(temporary, zarr_format=2, consolidated=True)


def write_table(path: str, table: Any, safe_cells: bool = False) -> None:
    """A pyarrow table; for `safe_cells` see `bayesring.data.csvfiles.write_csv`."""
    kind = extension(path)
    with _target(path) as temporary:
        if kind in (".csv", ".csv.gz"):
            write_csv(temporary, table, kind == ".csv.gz", safe_cells)
        elif kind == ".parquet":
            import_pyarrow()
            from pyarrow import parquet

            parquet.write_table(table, temporary)
        else:
            pa = import_pyarrow()
            with pa.ipc.new_file(str(temporary), table.schema) as writer:
                writer.write_table(table)


def write_arrays(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays; .npy holds the mean only."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if extension(path) == ".npy":
            np.save(file, arrays["mean"])
        else:
            np.savez(file, **dict[str, Any](arrays))


def _folder_format(path: str) -> str | None:
    return ZARR if extension(path) == ".zarr" else None


def _target(path: str) -> AbstractContextManager[str | os.PathLike[str]]:
    return nullcontext(path) if path == STANDARD else replacing(path)


def _read_arrow(path: str, kind: str) -> Any:
    pa = import_pyarrow()
    with _reading(path, kind):
        if kind == ".parquet":
            from pyarrow import parquet

            for file in find_files(Path(path)):
                read_footer(file)  # before Arrow does, because it may crash
            table = parquet.read_table(path)
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
            with _reading(path, kind):
                array = found[chosen]
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} holds {chosen}, which is not an array.")
    return array


def _read_labelled(path: str, name: str | None) -> Any:
    xr = _import_xarray()
    engine = {"engine": "zarr"} if extension(path) == ".zarr" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # stores without consolidated metadata
        with _reading(path, extension(path)):
            if extension(path) == ".nc":
                check_heaps(path)  # before HDF5 does, because it may never end
            opened = xr.open_dataset(path, **engine)
    with opened as dataset:
        chosen = _one_of([str(each) for each in dataset.data_vars], name, path, "variables")
        with _reading(path, extension(path)):
            return dataset[chosen].load()


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


def _import_xarray() -> Any:
    try:
        import xarray
    except ImportError:
        raise ImportError(
            "NetCDF and Zarr files need xarray: pip install 'bayesring[files]'."
        ) from None
    return xarray
