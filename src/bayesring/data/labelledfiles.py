"""NetCDF files and Zarr stores: one variable in, four statistics of it out.

A result keeps what describes the source: global attributes, coordinates with their bounds, grid
mapping, and how the variable was compressed and cut into chunks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.expanding import check_variable
from bayesring.data.heaps import check_heaps

Reading = Callable[[], AbstractContextManager[None]]
"""Turns errors of the library into one sentence about the file."""
COORDINATE_ENCODING = ("calendar", "bounds", "grid_mapping", "climatology")
TIME_ENCODING = ("units", "dtype", "_FillValue")
"""Of times that are whole numbers of their units; others would not be exact."""
PACKING = ("scale_factor", "add_offset", "_Unsigned", "missing_value")
"""What says that the numbers of a file stand for others: such times are written anew."""
NETCDF_ENCODING = (
    *("zlib", "complevel", "shuffle", "fletcher32", "chunksizes", "original_shape"),
    *("compression", "compression_opts", "grid_mapping"),
)
ZARR_ENCODING = ("compressors", "chunks", "grid_mapping")
ANCILLARY = "ancillary_variables"


class Surroundings(NamedTuple):
    """What a file holds besides the variable that is completed."""

    attributes: dict[str, Any]
    """Of the whole file."""
    coordinates: dict[str, Any]
    """All of them, bounds and grid mappings too."""


def read_labelled(path: str, choose: Callable[[list[str]], str], reading: Reading) -> Any:
    """The variable that `choose` picks by name, in memory."""
    with _opened(path, reading) as dataset:
        chosen = choose([str(each) for each in dataset.data_vars])
        check_variable(path, dataset[chosen])
        with reading():
            return dataset[chosen].load()


def names_besides_coordinates(path: str) -> set[str]:
    """The variables and groups of a file or store, but for coordinates, bounds and the like."""
    with _opened(path, nullcontext) as dataset:
        coordinates, variables = set(map(str, dataset.coords)), set(map(str, dataset.data_vars))
    return (variables | _groups(path)) - coordinates


def _groups(path: str) -> set[str]:
    """Names of the groups of a file; of a store, of its arrays, too."""
    if _is_zarr(path):
        return {each.name for each in Path(path).iterdir() if each.is_dir()}
    import h5py

    with h5py.File(path, "r") as file:
        return {name for name, each in file.items() if isinstance(each, h5py.Group)}


def read_surroundings(path: str, reading: Reading, done: str) -> Surroundings:
    """What is to be kept of a source, with what was `done` at the beginning of its history."""
    with _opened(path, reading) as dataset, reading():
        before = str(dataset.attrs.get("history", ""))
        history = {"history": f"{done}\n{before}" if before else done}
        coordinates = {str(name): each.variable.load() for name, each in dataset.coords.items()}
        return Surroundings(dict(dataset.attrs) | history, coordinates)


def _opened(path: str, reading: Reading) -> Any:
    xr = import_xarray()
    engine = {"engine": "zarr"} if _is_zarr(path) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # stores without consolidated metadata
        with reading():
            if not _is_zarr(path):
                check_heaps(path)  # before HDF5 does, because it may never end
                _let_end_in_silence()
            return xr.open_dataset(path, decode_coords="all", **engine)


def _let_end_in_silence() -> None:
    """Files that h5netcdf fails to open lack what it asks for when they go, and Python says so."""
    with suppress(ImportError):
        from h5netcdf import File

        if not hasattr(File, "_writable"):
            File._writable = False


def write_labelled(
    path: str | Path, statistics: Mapping[str, Any], around: Surroundings, kind: str
) -> None:
    """Write one variable per statistic, with what was around the source."""
    xr = import_xarray()
    own = NETCDF_ENCODING if kind == ".nc" else ZARR_ENCODING
    encodings = {name: _kept(each.encoding, own) for name, each in statistics.items()}
    dataset = xr.Dataset({name: each.copy(deep=False) for name, each in statistics.items()})
    more = {name: own for name, own in around.coordinates.items() if name not in dataset.coords}
    dataset = dataset.assign_coords(more)
    of_coordinates = {name: _of_coordinate(each.encoding) for name, each in dataset.coords.items()}
    dataset = dataset.drop_encoding()
    for name, encoding in (encodings | of_coordinates).items():
        dataset[name].encoding = encoding
    point, *others = statistics
    known = str(dataset[point].attrs.get(ANCILLARY, "")).split()
    dataset[point].attrs[ANCILLARY] = " ".join(dict.fromkeys([*known, *others]))
    dataset.attrs = around.attributes
    if kind == ".nc":
        dataset.to_netcdf(path, engine="h5netcdf")
    else:
        version = 3 if any(map(_is_version_3, encodings.values())) else 2
        dataset.to_zarr(path, zarr_format=version, consolidated=version == 2)


def _of_coordinate(encoding: Mapping[str, Any]) -> dict[str, Any]:
    """How a coordinate is written, such that the same numbers are read again: not packed."""
    whole = np.dtype(encoding.get("dtype", float)).kind in "iu"
    is_time = "units" in encoding and whole and not any(name in encoding for name in PACKING)
    return _kept(encoding, COORDINATE_ENCODING + (TIME_ENCODING if is_time else ()))


def _kept(encoding: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: encoding[name] for name in names if name in encoding}


def _is_version_3(encoding: Mapping[str, Any]) -> bool:
    """Whether a compressor is one of the third version of Zarr."""
    found = encoding.get("compressors") or ()
    return any(type(each).__module__.startswith("zarr.") for each in found)


def _is_zarr(path: str) -> bool:
    return path.lower().endswith(".zarr")


def import_xarray() -> Any:
    """Import xarray, or raise an error that says how to install it."""
    try:
        import xarray
    except ImportError:
        raise ImportError(
            "NetCDF and Zarr files need xarray: pip install 'bayesring[files]'."
        ) from None
    return xarray
