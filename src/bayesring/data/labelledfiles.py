"""NetCDF files and Zarr stores: one variable in, four statistics of it out.

A result keeps what describes the source: global attributes, coordinates with their bounds, grid
mapping, and how the variable was compressed and cut into chunks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bayesring.data.heaps import check_heaps

Reading = Callable[[], AbstractContextManager[None]]
"""Turns errors of the library into one sentence about the file."""
COORDINATE_ENCODING = ("units", "calendar", "dtype", "bounds", "grid_mapping", "climatology")
NETCDF_ENCODING = (
    *("zlib", "complevel", "shuffle", "fletcher32", "chunksizes", "original_shape"),
    *("compression", "compression_opts", "grid_mapping"),
)
ZARR_ENCODING = ("compressors", "chunks", "grid_mapping")
ANCILLARY = "ancillary_variables"


def read_labelled(
    path: str, choose: Callable[[list[str]], str], reading: Reading, opened: bool = False
) -> Any:
    """The variable that `choose` picks by name, in memory; if `opened`, the global attributes."""
    xr = import_xarray()
    engine = {"engine": "zarr"} if _is_zarr(path) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # stores without consolidated metadata
        with reading():
            if not _is_zarr(path):
                check_heaps(path)  # before HDF5 does, because it may never end
            dataset = xr.open_dataset(path, decode_coords="all", **engine)
    with dataset:
        if opened:
            return dict(dataset.attrs)
        chosen = choose([str(each) for each in dataset.data_vars])
        with reading():
            return dataset[chosen].load()


def write_labelled(
    path: str | Path, statistics: Mapping[str, Any], attributes: Mapping[str, Any], kind: str
) -> None:
    """Write one variable per statistic, with global attributes."""
    xr = import_xarray()
    own = NETCDF_ENCODING if kind == ".nc" else ZARR_ENCODING
    encodings = {name: _kept(each.encoding, own) for name, each in statistics.items()}
    dataset = xr.Dataset({name: each.copy(deep=False) for name, each in statistics.items()})
    of_coordinates = {
        name: _kept(each.encoding, COORDINATE_ENCODING) for name, each in dataset.coords.items()
    }
    dataset = dataset.drop_encoding()
    for name, encoding in (encodings | of_coordinates).items():
        dataset[name].encoding = encoding
    others = [name for name in statistics if name != "mean"]
    known = str(dataset["mean"].attrs.get(ANCILLARY, "")).split()
    dataset["mean"].attrs[ANCILLARY] = " ".join(dict.fromkeys([*known, *others]))
    dataset.attrs = dict(attributes)
    if kind == ".nc":
        dataset.to_netcdf(path, engine="h5netcdf")
    else:
        version = 3 if any(map(_is_version_3, encodings.values())) else 2
        dataset.to_zarr(path, zarr_format=version, consolidated=version == 2)


def global_attributes(path: str, reading: Reading, done: str) -> dict[str, Any]:
    """The global attributes of a source, with what was `done` at the beginning of its history."""
    found = read_labelled(path, max, reading, opened=True)
    before = str(found.get("history", ""))
    return found | {"history": f"{done}\n{before}" if before else done}


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
