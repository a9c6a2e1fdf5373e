"""Features of labels: tables or matrices as given by users, coded as numbers.

Every label has one row x_i. Numbers are standardised, dates are numbers of days, and text becomes
one column per category. A value that is missing becomes the mean of its column, and a column of its
own says that it was missing. Given matrices keep the relative sizes of their columns: dense ones
are centred, sparse ones are not, so that they stay sparse. All rows have mean square one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesring.data.labels import KINDS, Labels, as_keys, encode, extend
from bayesring.data.opentables import is_table, open_table
from bayesring.data.positions import mode_of, positions_of
from bayesring.data.tables import keys_of
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import as_text, shown

MOST_COLUMNS = 100_000
"""Columns that features may have once they are coded."""
DOUBLE = 2.0
"""Factor of columns that say what was missing: half of the labels missing give variance one."""


class Column(NamedTuple):
    """How a column of a table is coded."""

    name: str
    mean: float
    """Mean of a number, for labels without one."""
    levels: tuple[str, ...] | None
    """Categories; None for numbers."""
    missing: bool
    """Whether a column says that it was missing."""


class Features(NamedTuple):
    """Features of the labels of a mode, coded."""

    matrix: Any
    """X, (I_d, F): an array or a sparse matrix."""
    names: tuple[str, ...]
    """What the features are called."""
    groups: IntArray
    """(F,), which feature each column of X belongs to."""
    centre: FloatArray
    """(F,)."""
    factor: FloatArray
    """(F,): columns of X are (plain - centre) times this."""
    columns: tuple[Column, ...] = ()
    """How plain columns are made of those of a table; empty for a given matrix."""

    def more(self, source: Source | None, keys: NDArray[Any]) -> Features:
        """With rows for further labels, unknown where the source has none."""
        plain = _plain_more(self, source, keys)
        if is_sparse(self.matrix):
            new = sparse.csr_array(plain) * self.factor[0]
            return self._replace(matrix=sparse.vstack([self.matrix, new]).tocsr())
        new = (plain - self.centre) * self.factor
        return self._replace(matrix=np.concatenate([self.matrix, new]))

    def at(self, line: IntArray) -> Features:
        """Rows in another order."""
        return self._replace(matrix=self.matrix[line])


class Source(NamedTuple):
    """Features as given: keys of labels, and a table or a matrix with one row for each."""

    mode: int
    name: str
    keys: NDArray[Any] | None
    """(n,); None if rows are those of coordinates or labels 0, 1, ..."""
    frame: nw.DataFrame[Any] | None
    matrix: Any
    """(n, F), if there is no table."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.frame) if self.frame is not None else int(self.matrix.shape[0])


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is one of SciPy's sparse ones."""
    return bool(sparse.issparse(matrix))


def open_features(features: Any, names: Sequence[str]) -> list[Source]:
    """What the user gave for every mode named, checked."""
    if not isinstance(features, Mapping):
        raise TypeError(
            f"features must map modes to tables, as {{'station': stations}}, got {shown(features)}."
        )
    sources = [
        _open(mode_of(name, names, "features"), names, own) for name, own in features.items()
    ]
    twice = {each.mode for each in sources}
    if len(twice) < len(sources):
        raise ValueError(f"features names a mode twice: {shown(list(features))}.")
    return sources


def _open(mode: int, names: Sequence[str], given: Any) -> Source:
    name = names[mode]
    where = f"features of {name!r}"
    if is_table(given):
        frame = open_table(given, where)
        key = name if name in frame.columns else frame.columns[0]
        if len(frame.columns) < 2:
            raise ValueError(f"{where} has no column besides the labels {key!r}.")
        distinct, places, _ = keys_of(frame, key)
        _check_distinct(distinct, places, where)
        return Source(mode, name, distinct[places], frame.drop(key), None)
    keys = None
    if isinstance(given, tuple) and len(given) == 2:
        keys, given = as_keys(given[0], where), given[1]
        _check_distinct(*np.unique(keys, return_inverse=True), where)
    matrix = _matrix(given, where)
    if keys is not None and len(keys) != matrix.shape[0]:
        raise ValueError(f"{where} has {len(keys)} labels, but {matrix.shape[0]} rows.")
    return Source(mode, name, keys, None, matrix)


def _check_distinct(distinct: NDArray[Any], places: IntArray, where: str) -> None:
    counts = np.bincount(places, minlength=len(distinct))
    if counts.max(initial=0) > 1:
        first = int(np.argmax(counts > 1))
        row = int(np.flatnonzero(places == first)[1])
        raise ValueError(
            f"{where} has the label {as_text(distinct[first])} twice, again in row {row}; give "
            "every label one row."
        )


def _matrix(given: Any, where: str) -> Any:
    """A matrix of finite numbers, sparse or not."""
    if is_sparse(given):
        matrix: Any = sparse.csr_array(given).astype(float)
        matrix.sum_duplicates()
        entries = matrix.data
    else:
        try:
            matrix = entries = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            matrix = entries = np.empty(0)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{where} must be a table, a matrix with one row per label, or a pair of labels and "
            f"such a matrix, got {shown(given)}."
        )
    if not np.isfinite(entries).all():
        raise ValueError(
            f"{where} has entries that are not finite; in a table, they may be missing."
        )
    return matrix


def places_in(keys: NDArray[Any], levels: NDArray[Any], name: str) -> IntArray:
    """Index of every key among `levels`, their number for keys not among them."""
    found, expected = KINDS[keys.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"{name!r} holds {found} such as {as_text(keys[0])}, but {expected} such as "
            f"{as_text(levels[0])} elsewhere."
        )
    return encode(keys, levels)


def known_from(
    labels: Labels, shape: tuple[int, ...], sources: Sequence[Source]
) -> tuple[Labels, tuple[int, ...]]:
    """Labels and shape with those that only the features have, which come last."""
    levels, sizes = list(labels.levels), list(shape)
    for source in sources:
        own, mode = levels[source.mode], source.mode
        keys = np.arange(source.n) if source.keys is None else source.keys
        if own is None:
            _check_coordinates(keys, source)
            sizes[mode] = max(sizes[mode], int(keys.max()) + 1)
            continue
        if source.keys is None and not np.array_equal(own, np.arange(len(own))):
            raise ValueError(
                f"features of {source.name!r} must say which row is which label: give a table, or "
                "the pair (labels, matrix)."
            )
        new = np.unique(keys[places_in(keys, own, source.name) == len(own)])
        if len(new):
            levels[mode] = extend(own, new, source.name)
            sizes[mode] = len(own) + len(new)
    return labels._replace(levels=tuple(levels)), tuple(sizes)


def _check_coordinates(keys: NDArray[Any], source: Source) -> None:
    if keys.dtype.kind not in "iu" or keys.min() < 0:
        raise ValueError(
            f"features of {source.name!r} must have coordinates from 0 on as labels, got "
            f"{as_text(keys[0])}."
        )


def rows_of(source: Source, levels: NDArray[Any]) -> IntArray:
    """For every label its row in the source, or -1."""
    keys = np.arange(source.n) if source.keys is None else source.keys
    places = places_in(keys, levels, source.name)
    rows = np.full(len(levels) + 1, -1)
    rows[places] = np.arange(len(keys))
    return rows[:-1]


def code(source: Source, levels: NDArray[Any]) -> Features:
    """Features of all labels of a mode, coded."""
    rows = rows_of(source, levels)
    if source.frame is not None:
        return _code_table(source, rows)
    if np.any(rows < 0):
        lacking = levels[int(np.argmax(rows < 0))]
        raise ValueError(
            f"features of {source.name!r} have no row for the label {as_text(lacking)}; a matrix "
            "needs one for every label."
        )
    plain = source.matrix[rows]
    count = plain.shape[1]
    names, groups = tuple(f"column {column}" for column in range(count)), np.arange(count)
    if is_sparse(plain):
        unit = _unit(float(np.mean(plain.multiply(plain).sum(axis=1))), source)
        return Features(plain * unit, names, groups, np.zeros(count), np.full(count, unit))
    centre = plain.mean(axis=0)
    unit = _unit(float(np.mean(np.sum((plain - centre) ** 2, axis=1))), source)
    return Features((plain - centre) * unit, names, groups, centre, np.full(count, unit))


def _unit(square: float, source: Source) -> float:
    """Factor that gives rows of this mean square the mean square one."""
    if not square > 0:
        raise ValueError(f"features of {source.name!r} are the same for every label.")
    return float(1.0 / np.sqrt(square))


def _code_table(source: Source, rows: IntArray) -> Features:
    assert source.frame is not None
    columns: list[Column] = []
    names: list[str] = []
    groups: list[int] = []
    plain: list[FloatArray] = []
    factors: list[FloatArray] = []
    for name in source.frame.columns:
        column, values = _learn(source, name, rows)
        own = _plain(column, values, rows)
        if column.missing and any(np.array_equal(own[:, -1], each[:, -1]) for each in plain):
            column, own = column._replace(missing=False), own[:, :-1]  # another one says so
        n_values = own.shape[1] - column.missing
        spread = float(own[:, :n_values].var(axis=0).sum())
        if spread == 0.0:
            continue  # the same for every label
        factors.append(np.append(np.full(n_values, spread**-0.5), [DOUBLE] * column.missing))
        groups += [len(names)] * own.shape[1]
        columns.append(column)
        plain.append(own)
        names.append(name)
    if sum(each.shape[1] for each in plain) > MOST_COLUMNS:
        raise ValueError(
            f"features of {source.name!r} have more than {MOST_COLUMNS:,} columns when coded; "
            "leave columns of many categories out, or give a sparse matrix."
        )
    if not plain:
        _unit(0.0, source)
    together, factor = np.concatenate(plain, axis=1), np.concatenate(factors)
    centre = together.mean(axis=0)
    scaled = (together - centre) * factor
    unit = _unit(float(np.mean(np.sum(scaled**2, axis=1))), source)
    return Features(
        scaled * unit, tuple(names), np.array(groups), centre, factor * unit, tuple(columns)
    )


def _learn(source: Source, name: str, rows: IntArray) -> tuple[Column, NDArray[Any]]:
    """How a column is coded, and its values: numbers with NaN, or text with None."""
    assert source.frame is not None
    values = _values(source, name)
    known = rows[rows >= 0]
    if values.dtype == object:
        levels = tuple(sorted({each for each in values[known] if each is not None}))
        if len(levels) == len(known) > 2:
            raise ValueError(
                f"column {name!r} in features of {source.name!r} has another text for every label, "
                "which says nothing of others; leave it out."
            )
        absent = len(known) < len(rows) or any(each is None for each in values[known])
        return Column(name, 0.0, levels, absent), values
    own = values[known]
    absent = len(known) < len(rows) or bool(np.isnan(own).any())
    own = own[~np.isnan(own)]
    return Column(name, float(own.mean()) if own.size else 0.0, None, absent), values


def _values(source: Source, name: str) -> NDArray[Any]:
    """A column as numbers with NaN, or as objects, texts or None."""
    assert source.frame is not None
    column, kind = source.frame[name], source.frame.schema[name]
    where = f"column {name!r} in features of {source.name!r}"
    if kind.is_numeric() or kind == nw.Boolean:
        numbers = np.array(column.cast(nw.Float64).to_numpy(), dtype=float)
        if np.isinf(numbers).any():
            row = int(np.argmax(np.isinf(numbers)))
            raise ValueError(f"{where} holds an infinite number in row {row}.")
        return numbers
    known = ~column.is_null().to_numpy().astype(bool)
    cells = np.empty(len(column), dtype=object)
    for place, each in zip(np.flatnonzero(known), column.drop_nulls().to_list(), strict=True):
        cells[place] = each
    if all(isinstance(each, str) for each in cells[known]):
        return cells
    try:
        keys = as_keys(column.drop_nulls().to_numpy(), where)
    except ValueError:
        raise ValueError(
            f"{where} holds {kind}, but numbers, dates or text are required."
        ) from None
    numbers, found = np.full(len(cells), np.nan), positions_of(keys)
    numbers[known] = keys.astype(float) if found is None else found
    return numbers


def _plain(column: Column, values: NDArray[Any], rows: IntArray) -> FloatArray:
    """Plain columns of every label, (I_d, ...); `rows` are -1 for labels that have none."""
    absent = rows < 0
    own = values[np.maximum(rows, 0)]
    if column.levels is None:
        numbers = np.where(absent, np.nan, own.astype(float))
        absent = np.isnan(numbers)
        parts = [np.where(absent, column.mean, numbers)[:, None]]
    else:
        places = {level: place for place, level in enumerate(column.levels)}
        parts = [np.zeros((len(rows), len(column.levels)))]
        for i, each in enumerate(own):
            absent[i] |= each is None
            if not absent[i] and each in places:
                parts[0][i, places[each]] = 1.0
    if column.missing:
        parts.append(absent[:, None].astype(float))
    return np.concatenate(parts, axis=1)


def _plain_more(features: Features, source: Source | None, keys: NDArray[Any]) -> Any:
    """Plain rows of further labels, of which perhaps nothing is known."""
    count = len(features.centre)
    rows = np.full(len(keys), -1) if source is None else rows_of(source, keys)
    if features.columns:
        if source is not None and source.frame is None:
            raise ValueError(f"features of {source.name!r} must be a table, as in the fit.")
        parts = []
        for column in features.columns:
            values: NDArray[Any] = np.array([None if column.levels else np.nan], dtype=object)
            if source is not None and source.frame is not None:
                if column.name not in source.frame.columns:
                    raise ValueError(
                        f"features of {source.name!r} lack the column {column.name!r} of the fit."
                    )
                values = _values(source, column.name)
                if (values.dtype == object) != (column.levels is not None) and len(values):
                    expected = "numbers" if column.levels is None else "text"
                    raise ValueError(
                        f"column {column.name!r} in features of {source.name!r} must hold "
                        f"{expected}, as in the fit."
                    )
            parts.append(_plain(column, values, rows))
        return np.concatenate(parts, axis=1)
    if source is None:
        plain = np.tile(features.centre, (len(keys), 1))
        return sparse.csr_array(plain) if is_sparse(features.matrix) else plain
    if source.frame is not None or source.matrix.shape[1] != count:
        raise ValueError(
            f"features of {source.name!r} must be a matrix of {count} columns, as in the fit."
        )
    plain = source.matrix[np.maximum(rows, 0)]
    plain = plain.toarray() if is_sparse(plain) else plain.copy()
    plain[rows < 0] = features.centre
    return plain
