"""Containers of a tensor with gaps: read as observations and cells to fill, returned filled.

There is one class per way of marking gaps: `Dense` for arrays with NaN or masked gaps (NumPy,
masked, xarray), `Sparse` for coordinates and values (`sparse.COO`), `Long` for tables, in
`bayesring.data.longtables`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import check_choice, check_fits, warn_of_rounding
from bayesring.data.cellnumbers import rows_among
from bayesring.data.extras import Extras, check_columns, columns_of
from bayesring.data.labelled import Statistic, labels_of, like
from bayesring.data.labels import Labels, counted_labels, plain_labels
from bayesring.data.longtables import Long
from bayesring.data.observations import Observations
from bayesring.data.opentables import is_table, open_table
from bayesring.data.sitecolumns import placed_by, without_pair
from bayesring.data.tables import code_table, find_columns
from bayesring.model.types import FloatArray, IntArray

FILL = ("missing", "all")
NO_EXTRAS: Extras = MappingProxyType({})
IMPLICIT = ("missing", "observed")
STATISTICS = 4
"""Arrays that a completion holds: mean, std, lower, upper."""
PIECE = 2**22
"""Cells whose indices are worked out at a time."""


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
        """The library of a table, or "xarray"; None for other arrays."""

    @property
    def missing(self) -> IntArray:
        """(m, D), the cells to fill."""

    def filled(self, predicted: FloatArray, statistic: Statistic) -> Any:
        """The data with `predicted` (m,) in the cells to fill.

        Known cells keep their value, or hold zero, as the statistic says; those that are neither
        known nor filled stay NaN.
        """

    def leaving(self, masked: NDArray[np.bool_]) -> Container:
        """The same, of which some of the `missing` cells (m,) stay missing."""


@dataclass(frozen=True)
class Dense:
    """An array; gaps are NaN."""

    values: FloatArray
    labels: Labels
    wrap: Callable[[FloatArray, Statistic], Any]
    """Converts a plain array back to the input type."""
    kind: str | None = None
    masked: NDArray[np.bool_] | None = None
    """Gaps that stay gaps."""

    @property
    def observations(self) -> Observations:
        """The cells that are not NaN."""
        known = ~np.isnan(self.values)
        return Observations(np.argwhere(known), self.values[known], self.values.shape)

    @cached_property
    def missing(self) -> IntArray:
        """The cells that are NaN, and not masked."""
        gaps = np.isnan(self.values)
        return np.argwhere(gaps if self.masked is None else gaps & ~self.masked)

    def filled(self, predicted: FloatArray, statistic: Statistic) -> Any:
        """The array without gaps, but for the masked ones."""
        result = self.values.copy() if statistic.keeps else 0.0 * np.abs(self.values)
        result[tuple(self.missing.T)] = predicted
        return self.wrap(result, statistic)

    def leaving(self, masked: NDArray[np.bool_]) -> Dense:
        """The same, of which some of the `missing` cells (m,) stay missing."""
        where = np.zeros(self.values.shape, dtype=bool)
        where[tuple(self.missing[masked].T)] = True
        return replace(self, masked=where)


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

    def filled(self, predicted: FloatArray, statistic: Statistic) -> Any:
        """The known and the filled entries, all explicit; NaNs that were not filled, too."""
        known = self.observations
        values = known.values if statistic.keeps else np.zeros(len(known.values))
        gaps = self.coords[np.isnan(self.values)]
        left = gaps[~rows_among(gaps, self.missing, self.shape)]
        coords = np.concatenate([known.coords, self.missing, left])
        return self.wrap(coords, np.concatenate([values, predicted, np.full(len(left), np.nan)]))

    def leaving(self, masked: NDArray[np.bool_]) -> Sparse:
        """The same, of which some of the `missing` cells (m,) stay missing."""
        return replace(self, missing=self.missing[~masked])


def open_container(
    data: Any,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    implicit: str = "missing",
    extras: Extras = NO_EXTRAS,
) -> Container:
    """The container for the given data; `extras` may name columns, which are then no keys."""
    check_choice(fill, "fill", FILL)
    check_choice(implicit, "implicit", IMPLICIT)
    is_sparse = _is_a(data, "sparse", "SparseArray")
    if implicit == "observed" and not is_sparse:
        raise ValueError(
            f"implicit='observed' is for sparse arrays, but data is of type {type(data).__name__}."
        )
    if is_table(data):
        return _open_long(data, modes, value, fill, extras)
    if modes is not None or value is not None:
        raise ValueError(
            f"modes and value name the columns of a table, but data is of type "
            f"{type(data).__name__}."
        )
    if fill == "all" and not is_sparse:
        raise ValueError(
            "fill='all' is for tables and sparse arrays, which need not mention every cell; a "
            "dense array does, and its gaps are filled without it."
        )
    if is_sparse:
        if fill == "all" and implicit == "observed":
            raise ValueError("fill='all' and implicit='observed' contradict each other.")
        return _open_sparse(data, fill, implicit)
    if is_labelled_array(data):
        return _open_xarray(data)
    if isinstance(data, np.ma.MaskedArray):
        values = _dense_values(data.data)
        values[np.ma.getmaskarray(data)] = np.nan
        return _dense(values, counted_labels(values.shape), _masked(data.dtype))
    _refuse_other(data)
    array = np.asarray(data)
    values = _dense_values(array)
    return _dense(values, counted_labels(values.shape), _plain(array.dtype))


def _dense(
    values: FloatArray,
    labels: Labels,
    wrap: Callable[[FloatArray, Statistic], Any],
    kind: str | None = None,
) -> Dense:
    check_fits(
        STATISTICS * values.nbytes,
        f"the completion of an array of shape {values.shape}",
        "fit a TensorRing to the known cells and predict the cells that you need.",
    )
    return Dense(values, labels, wrap, kind)


def _open_long(
    data: Any, modes: Sequence[str] | None, value: str | None, fill: str, extras: Extras
) -> Long:
    frame = open_table(data)
    check_columns(extras, frame, modes, value)
    rest = frame.drop(columns_of(extras)) if columns_of(extras) else frame
    rest, pair = without_pair(rest, modes, value)
    coded = code_table(frame, find_columns(rest, modes, value))
    coded = coded._replace(labels=placed_by(frame, coded.labels, pair))
    exposed = "exposure" in extras
    if fill == "missing":
        nothing = np.empty((0, len(coded.shape)), dtype=np.int64)
        return Long(frame, coded, nothing, exposed=exposed)
    if exposed:
        raise ValueError(
            "fill='all' fills cells without a row, whose exposure is not known; list the cells to "
            "fill as rows, and use fill='missing'."
        )
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
    cells = np.flatnonzero(absent)
    found = np.empty((len(cells), len(shape)), dtype=np.int64)
    for begin in range(0, len(cells), PIECE):  # between two pieces, Ctrl-C is heard
        piece = cells[begin : begin + PIECE]
        found[begin : begin + PIECE] = np.stack(np.unravel_index(piece, shape), axis=1)
    return found


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

        def to_sparse(values: FloatArray, _: Statistic) -> Any:
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
    values, dtype = _dense_values(np.asarray(data.values)), _float_dtype(data.dtype)

    def wrap(filled: FloatArray, statistic: Statistic) -> Any:
        return like(data, filled.astype(dtype), statistic)

    return _dense(values, labels_of(data), wrap, "xarray")


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
        nan = ", with NaN where one is missing" if array.dtype == object else ""
        raise ValueError(f"data must hold real numbers{nan}, got values of type {array.dtype}.")


def _check_order(shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise ValueError(f"data must have at least 2 modes, got the shape {shape}.")


def _float_dtype(dtype: Any) -> Any:
    """Floats stay as precise as they were; integers become float64."""
    return dtype if np.dtype(dtype).kind == "f" else np.dtype(np.float64)


def _plain(dtype: Any) -> Callable[[FloatArray, Statistic], Any]:
    return lambda filled, _: filled.astype(_float_dtype(dtype))


def _masked(dtype: Any) -> Callable[[FloatArray, Statistic], Any]:
    return lambda filled, _: np.ma.masked_array(
        filled.astype(_float_dtype(dtype)), mask=np.isnan(filled)
    )


def is_labelled_array(data: Any) -> bool:
    """Whether `data` is an array of xarray."""
    return _is_a(data, "xarray", "DataArray")


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
    if isinstance(data, str | os.PathLike):
        raise TypeError(
            f"data is the name of a file, {str(data)!r}; read it first, or use the command "
            "bayesring complete."
        )
    if data is None or isinstance(data, Mapping):
        raise TypeError(
            f"data is of type {type(data).__name__}, but an array with NaN, a table, or an xarray "
            "or sparse array is required."
        )
