"""Containers of a tensor with gaps: read as observations and cells to fill, returned filled.

There is one class per way of marking gaps: `Dense` for arrays with NaN or masked gaps (NumPy,
masked, xarray), `Sparse` for coordinates and values (`sparse.COO`), `Long` for tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.checks import check_choice, check_fits, warn_of_rounding
from bayesring.data.labels import Labels, as_keys, counted_labels, plain_labels
from bayesring.data.observations import Observations
from bayesring.data.tables import (
    Coded,
    add_columns,
    append_cells,
    code_table,
    find_columns,
    is_table,
    kind_of,
    open_table,
)
from bayesring.model.types import FloatArray, IntArray

FILL = ("missing", "all")
IMPLICIT = ("missing", "observed")
STORAGE_ENCODING = ("zlib", "complevel", "shuffle", "fletcher32", "grid_mapping")
"""xarray's encoding settings that cannot change the numbers of a variable."""
PACKING_ATTRIBUTES = (
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "valid_min",
    "valid_max",
    "valid_range",
    "_Unsigned",
)
"""Attributes that make readers of a file convert or mask the numbers in it."""
STATISTICS = 4
"""Arrays that a completion holds: mean, std, lower, upper."""


class Container(Protocol):
    """Data with gaps."""

    @property
    def observations(self) -> Observations:
        """The known cells."""

    @property
    def labels(self) -> Labels:
        """Names of modes and slices."""

    @property
    def kind(self) -> str | None:
        """The library of a table; None for arrays."""

    @property
    def missing(self) -> IntArray:
        """(m, D), the cells to fill."""

    def filled(self, predicted: FloatArray, keep: bool) -> Any:
        """The data with `predicted` (m,) in the cells to fill.

        Known cells keep their value, or hold zero if not `keep`.
        """


@dataclass(frozen=True)
class Dense:
    """An array; gaps are NaN."""

    values: FloatArray
    labels: Labels
    wrap: Callable[[FloatArray], Any]
    """Converts a plain array back to the input type."""
    kind: None = None

    @property
    def observations(self) -> Observations:
        """The cells that are not NaN."""
        known = ~np.isnan(self.values)
        return Observations(np.argwhere(known), self.values[known], self.values.shape)

    @cached_property
    def missing(self) -> IntArray:
        """The cells that are NaN."""
        return np.argwhere(np.isnan(self.values))

    def filled(self, predicted: FloatArray, keep: bool) -> Any:
        """The array without gaps."""
        result = self.values.copy() if keep else np.zeros(self.values.shape)
        result[tuple(self.missing.T)] = predicted
        return self.wrap(result)


@dataclass(frozen=True)
class Sparse:
    """Coordinates and values; explicit NaNs, or all cells not listed, are filled."""

    coords: IntArray
    """(n, D)."""
    values: FloatArray
    shape: tuple[int, ...]
    missing: IntArray
    wrap: Callable[[IntArray, FloatArray], Any]
    kind: None = None

    @property
    def observations(self) -> Observations:
        """The explicit entries that are not NaN."""
        known = ~np.isnan(self.values)
        return Observations(self.coords[known], self.values[known], self.shape)

    @property
    def labels(self) -> Labels:
        """Modes are numbered."""
        return plain_labels(len(self.shape))

    def filled(self, predicted: FloatArray, keep: bool) -> Any:
        """The known and the filled entries, all explicit."""
        known = self.observations
        values = known.values if keep else np.zeros(len(known.values))
        coords = np.concatenate([known.coords, self.missing])
        return self.wrap(coords, np.concatenate([values, predicted]))


@dataclass(frozen=True)
class Long:
    """A long table; rows without a value, and rows appended for absent cells, are filled."""

    frame: nw.DataFrame[Any]
    coded: Coded
    appended: IntArray
    """(k, D), cells without a row, which are appended at the end."""

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
        """The rows without a value, then the appended ones."""
        return np.concatenate([self.coded.coords[np.isnan(self.coded.values)], self.appended])

    def filled(self, predicted: FloatArray, keep: bool) -> Any:
        """The table with its value column filled in."""
        column = self._column(predicted, keep)
        return add_columns(self._rows, {str(self.labels.value): column}).to_native()

    def with_statistics(self, predicted: dict[str, FloatArray], keep: dict[str, bool]) -> Any:
        """The table with one column added per statistic."""
        columns = {name: self._column(numbers, keep[name]) for name, numbers in predicted.items()}
        return add_columns(self._rows, columns).to_native()

    @cached_property
    def _rows(self) -> nw.DataFrame[Any]:
        if not len(self.appended):
            return self.frame
        return append_cells(self.frame, self.coded, self.appended)

    def _column(self, predicted: FloatArray, keep: bool) -> FloatArray:
        values = np.append(self.coded.values, np.full(len(self.appended), np.nan))
        missing = np.isnan(values)
        if not keep:
            values[:] = 0.0
        values[missing] = predicted
        return values


def open_container(
    data: Any,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    implicit: str = "missing",
) -> Container:
    """The container for the given data."""
    check_choice(fill, "fill", FILL)
    check_choice(implicit, "implicit", IMPLICIT)
    if is_table(data):
        return _open_long(data, modes, value, fill)
    if modes is not None or value is not None:
        raise ValueError(
            f"modes and value name the columns of a table, but data is of type "
            f"{type(data).__name__}."
        )
    if _is_a(data, "sparse", "SparseArray"):
        return _open_sparse(data, fill, implicit)
    if _is_a(data, "xarray", "DataArray"):
        return _open_xarray(data)
    if isinstance(data, np.ma.MaskedArray):
        values = _dense_values(data.data)
        values[np.ma.getmaskarray(data)] = np.nan
        return _dense(values, counted_labels(values.shape), _masked(data.dtype))
    _refuse_other(data)
    array = np.asarray(data)
    values = _dense_values(array)
    return _dense(values, counted_labels(values.shape), _plain(array.dtype))


def _dense(values: FloatArray, labels: Labels, wrap: Callable[[FloatArray], Any]) -> Dense:
    check_fits(
        STATISTICS * values.nbytes,
        f"the completion of an array of shape {values.shape}",
        "fit a TensorRing to the known cells and predict the cells that you need.",
    )
    return Dense(values, labels, wrap)


def _open_long(data: Any, modes: Sequence[str] | None, value: str | None, fill: str) -> Long:
    frame = open_table(data)
    coded = code_table(frame, find_columns(frame, modes, value))
    if fill == "missing":
        return Long(frame, coded, np.empty((0, len(coded.shape)), dtype=np.int64))
    return Long(frame, coded, _absent(coded.coords, coded.shape, "table"))


def _absent(coords: IntArray, shape: tuple[int, ...], what: str) -> IntArray:
    """The cells of the tensor that are not in `coords`, in order."""
    n_cells = prod(shape)
    check_fits(
        n_cells * 8 * (STATISTICS + len(shape)),
        f"the completed {what} of {' x '.join(map(str, shape))} = {n_cells:,} cells",
        "list the cells that you need with a missing value and use fill='missing'.",
    )
    absent = np.ones(n_cells, dtype=bool)
    absent[np.ravel_multi_index(tuple(coords.T), shape)] = False
    return np.stack(np.unravel_index(np.flatnonzero(absent), shape), axis=1)


def _open_sparse(data: Any, fill: str, implicit: str) -> Container:
    import sparse

    if not isinstance(data, sparse.COO):
        raise TypeError(
            f"data is a sparse array of type {type(data).__name__}, but sparse.COO is required; "
            "convert it with .asformat('coo')."
        )
    _check_numbers(data.data)
    _check_order(data.shape)
    if implicit == "observed":
        check_fits(
            (STATISTICS + 1) * 8 * data.size,
            f"the sparse array of shape {data.shape} with its implicit entries as observations",
            "use implicit='missing'.",
        )

        def to_sparse(values: FloatArray) -> Any:
            return sparse.COO.from_numpy(values, fill_value=data.fill_value)

        return _dense(_dense_values(data.todense()), plain_labels(data.ndim), to_sparse)

    coords, values = data.coords.T, data.data.astype(np.float64)
    missing = coords[np.isnan(values)]
    if fill == "all":
        absent = _absent(coords, data.shape, "sparse array")
        missing = np.concatenate([missing, absent])

    def to_coo(coords: IntArray, values: FloatArray) -> Any:
        return sparse.COO(coords.T, values, shape=data.shape, fill_value=float(data.fill_value))

    return Sparse(coords, values, data.shape, missing, to_coo)


def _open_xarray(data: Any) -> Dense:
    values = _dense_values(np.asarray(data.values))
    levels = tuple(_levels_of(data, dim) for dim in data.dims)
    name = None if data.name is None else str(data.name)
    labels = Labels(tuple(map(str, data.dims)), levels, name, (None,) * data.ndim)
    dtype = _float_dtype(data.dtype)
    return _dense(values, labels, lambda filled: _unpacked(data.copy(data=filled.astype(dtype))))


def _unpacked(result: Any) -> Any:
    """Remove settings that belong to the source file and are wrong for a result.

    For example, a result packed as 16-bit integers would be rounded or read back incorrectly.
    """
    encoding = result.encoding
    kept = {name: encoding[name] for name in STORAGE_ENCODING if name in encoding}
    chunks = encoding.get("chunksizes")
    if chunks is not None and encoding.get("original_shape", result.shape) == result.shape:
        kept |= {"chunksizes": chunks, "original_shape": result.shape}
    result.encoding = kept
    result.attrs = {
        name: value for name, value in result.attrs.items() if name not in PACKING_ATTRIBUTES
    }
    return result


def _levels_of(data: Any, dim: Any) -> NDArray[Any] | None:
    """The coordinates along a dimension, if they can serve as labels; without any, its numbers."""
    if dim not in data.coords:
        return np.arange(data.sizes[dim])
    try:
        levels = as_keys(data.coords[dim].values, str(dim))
    except ValueError:
        return None
    return levels if len(np.unique(levels)) == len(levels) else None


def _dense_values(array: NDArray[Any]) -> FloatArray:
    """A copy in float64, checked."""
    _check_numbers(array)
    _check_order(array.shape)
    warn_of_rounding(array, "data")
    values = np.array(array, dtype=np.float64)
    infinite = np.isinf(values)
    if infinite.any():
        cell = tuple(int(place) for place in np.argwhere(infinite)[0])
        raise ValueError(f"data must be finite or NaN, got infinity in cell {cell}.")
    return values


def _check_numbers(array: NDArray[Any]) -> None:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"data must hold real numbers, got values of type {array.dtype}.")


def _check_order(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise ValueError(f"data must have at least 2 modes, got the shape {shape}.")


def _float_dtype(dtype: Any) -> Any:
    """Floats stay as precise as they were; integers become float64."""
    return dtype if np.dtype(dtype).kind == "f" else np.dtype(np.float64)


def _plain(dtype: Any) -> Callable[[FloatArray], Any]:
    return lambda filled: filled.astype(_float_dtype(dtype))


def _masked(dtype: Any) -> Callable[[FloatArray], Any]:
    return lambda filled: np.ma.masked_array(
        filled.astype(_float_dtype(dtype)), mask=np.zeros(filled.shape, dtype=bool)
    )


def _is_a(data: Any, module: str, name: str) -> bool:
    """Whether `data` is an instance of a class from a library that may not be installed."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(data, cls)


def _refuse_other(data: Any) -> None:
    """Raise an error with a hint for types close to one that can be completed."""
    scipy_hint = "a SciPy sparse array; give sparse.COO.from_scipy_sparse(data)"
    hints = {
        ("xarray", "Dataset"): "an xarray.Dataset; give one of its variables, such as data['name']",
        ("pandas", "Series"): "a pandas.Series; give a table, for example data.reset_index()",
        ("scipy.sparse", "sparray"): scipy_hint,
        ("scipy.sparse", "spmatrix"): scipy_hint,
    }
    for (module, name), hint in hints.items():
        if _is_a(data, module, name):
            raise TypeError(f"data is {hint}.")
