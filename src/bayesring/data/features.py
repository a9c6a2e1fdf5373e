"""Features of labels: tables or matrices as given by users, coded as numbers.

Every label has one row x_i. Numbers are standardised, dates are numbers of days, and text becomes
one column per category. A value that is missing becomes the mean of its column, and a column of its
own says that it was missing. Given matrices keep the relative sizes of their columns: dense ones
are centred, sparse ones are not, so that they stay sparse. All rows have mean square one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesring.checks import check_fits
from bayesring.data.givenfeatures import LARGEST, Source, is_sparse, rows_of
from bayesring.data.labels import KINDS, as_keys
from bayesring.data.positions import positions_of
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import as_text, shown

MOST_COLUMNS = 100_000
"""Columns that features may have once they are coded."""
DOUBLE = 2.0
"""Factor of columns that say what was missing: half of the labels missing give variance one."""
ROUNDING = 1e-12
"""Standard deviation, over the largest size, up to which numbers are the same but for rounding."""


class Column(NamedTuple):
    """How a column of a table is coded."""

    name: str
    mean: float
    """Mean of a number, for labels without one."""
    levels: tuple[str, ...] | None
    """Categories; None for numbers."""
    missing: bool
    """Whether a column says that it was missing."""
    kind: str = ""
    """What it holds, as in `KINDS`; empty in old files, where it is unknown."""


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

    def unknown(self, source: Source | None, keys: NDArray[Any]) -> NDArray[np.bool_]:
        """Of which further labels nothing is known; none if the fit had such labels, too.

        A column says that they were missing then, and their rows of X are as good as others.
        """
        rows = np.full(len(keys), -1) if source is None else rows_of(source, keys)
        absent = rows < 0
        if source is not None and self.columns:
            empty = [_is_absent(_values_as(source, column)) for column in self.columns]
            absent |= np.all(empty, axis=0)[rows]
        if absent.any() and any(column.missing for column in self.columns):
            nothing = self.more(None, keys[:1]).matrix[-1]
            if np.any(np.all(np.isclose(self.matrix, nothing), axis=1)):
                return np.full(len(keys), False)
        return absent

    def at(self, line: IntArray) -> Features:
        """Rows in another order."""
        return self._replace(matrix=self.matrix[line])


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
        unit = _unit(float(np.mean(plain.multiply(plain).sum(axis=1))), 0.0, source)
        return Features(plain * unit, names, groups, np.zeros(count), np.full(count, unit))
    centre = plain.mean(axis=0)
    largest = float(np.abs(plain).max())
    unit = _unit(float(np.mean(np.sum((plain - centre) ** 2, axis=1))), largest, source)
    return Features((plain - centre) * unit, names, groups, centre, np.full(count, unit))


def _unit(square: float, largest: float, source: Source) -> float:
    """Factor that gives rows of this mean square the mean square one."""
    if not square > (ROUNDING * largest) ** 2:
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
        _check_size(source, len(rows), len(groups) + len(column.levels or " ") + column.missing)
        own = _plain(column, values, rows)
        if column.missing and any(np.array_equal(own[:, -1], each[:, -1]) for each in plain):
            column, own = column._replace(missing=False), own[:, :-1]  # another one says so
        n_values = own.shape[1] - column.missing
        spread = float(own[:, :n_values].var(axis=0).sum())
        if spread <= (ROUNDING * np.abs(own[:, :n_values]).max(initial=0.0)) ** 2:
            continue  # the same for every label
        factors.append(np.append(np.full(n_values, spread**-0.5), [DOUBLE] * column.missing))
        groups += [len(names)] * own.shape[1]
        columns.append(column)
        plain.append(own)
        names.append(name)
    if not plain:
        _unit(0.0, 0.0, source)
    together, factor = np.concatenate(plain, axis=1), np.concatenate(factors)
    centre = together.mean(axis=0)
    scaled = (together - centre) * factor
    unit = _unit(float(np.mean(np.sum(scaled**2, axis=1))), 0.0, source)
    return Features(
        scaled * unit, tuple(names), np.array(groups), centre, factor * unit, tuple(columns)
    )


def _check_size(source: Source, n: int, count: int) -> None:
    """Refuse so many columns, before there are any."""
    if count > MOST_COLUMNS:
        raise ValueError(
            f"features of {source.name!r} have more than {MOST_COLUMNS:,} columns when coded; "
            "leave columns of many categories out, or give a sparse matrix."
        )
    check_fits(
        4 * 8 * n * count,
        f"the work on {count:,} columns of features of {source.name!r}",
        "leave columns of many categories out, or give a sparse matrix.",
    )


def _learn(source: Source, name: str, rows: IntArray) -> tuple[Column, NDArray[Any]]:
    """How a column is coded, and its values: numbers with NaN, or text with None."""
    assert source.frame is not None
    values, kind = _values(source, name)
    known = rows[rows >= 0]
    if values.dtype == object:
        texts = [each for each in values[known] if each is not None]
        levels = tuple(sorted(set(texts)))
        if len(levels) == len(texts) > 2:
            raise ValueError(
                f"column {name!r} in features of {source.name!r} has another text for every label, "
                f"such as {shown(texts[0])}, which says nothing of others; leave it out."
            )
        absent = len(texts) < len(rows)
        return Column(name, 0.0, levels, absent, kind), values
    own = values[known]
    absent = len(known) < len(rows) or bool(np.isnan(own).any())
    own = own[~np.isnan(own)]
    return Column(name, float(own.mean()) if own.size else 0.0, None, absent, kind), values


def _values(source: Source, name: str) -> tuple[NDArray[Any], str]:
    """A column as numbers with NaN, or as objects, texts or None, and what it holds."""
    assert source.frame is not None
    column, kind = source.frame[name], source.frame.schema[name]
    where = f"column {name!r} in features of {source.name!r}"
    if kind.is_numeric() or kind == nw.Boolean:
        numbers = np.array(column.cast(nw.Float64).to_numpy(), dtype=float)
        if np.isinf(numbers).any():
            row = int(np.argmax(np.isinf(numbers)))
            raise ValueError(f"{where} holds an infinite number in row {row}.")
        return _not_too_large(numbers, where), "numbers"
    known = ~column.is_null().to_numpy().astype(bool)
    cells = np.empty(len(column), dtype=object)
    for place, each in zip(np.flatnonzero(known), column.drop_nulls().to_list(), strict=True):
        cells[place] = str(each) if kind in (nw.Categorical, nw.Enum) else each
    if all(isinstance(each, str) for each in cells[known]):
        return cells, "text"
    try:
        keys = as_keys(column.drop_nulls().to_numpy(), where)
    except ValueError:
        keys = np.empty(0)
    if keys.shape != (int(known.sum()),):  # a structure has several per row
        types = " and ".join(sorted({type(each).__name__ for each in cells[known]}))
        raise ValueError(
            f"{where} holds values of type {types} such as {shown(cells[known][0])}, but numbers, "
            "dates or text are required, all of one kind."
        )
    numbers, found = np.full(len(cells), np.nan), positions_of(keys)
    numbers[known] = keys.astype(float) if found is None else found
    held = KINDS[keys.dtype.kind]
    return _not_too_large(numbers, where), held if held in ("dates", "durations") else "numbers"


def _not_too_large(numbers: FloatArray, where: str) -> FloatArray:
    """The numbers, checked."""
    large = np.abs(numbers) > LARGEST  # not if missing
    if large.any():
        row = int(np.argmax(large))
        raise ValueError(
            f"{where} holds {numbers[row]:g} in row {row}, but numbers up to {LARGEST:g} are "
            "required."
        )
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
                values = _values_as(source, column)
            parts.append(_plain(column, values, rows))
        return np.concatenate(parts, axis=1)
    if source is None:
        if is_sparse(features.matrix):
            return sparse.csr_array((len(keys), count))
        return np.tile(features.centre, (len(keys), 1))
    if source.frame is not None or source.matrix.shape[1] != count:
        raise ValueError(
            f"features of {source.name!r} must be a matrix of {count} columns, as in the fit."
        )
    plain = source.matrix[np.maximum(rows, 0)]
    if is_sparse(features.matrix):  # never filled in; what is not known is zero, as its centre
        known = sparse.diags_array((rows >= 0).astype(float), format="csr")
        return known @ sparse.csr_array(plain)
    plain = plain.toarray() if is_sparse(plain) else plain.copy()
    plain[rows < 0] = features.centre
    return plain


def _is_absent(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which numbers are NaN, or which texts None."""
    return np.array([each is None or each != each for each in values], dtype=bool)


def _values_as(source: Source, column: Column) -> NDArray[Any]:
    """A column of further labels that holds what it held in the fit, or nothing at all."""
    assert source.frame is not None
    values, kind = _values(source, column.name)
    if _is_absent(values).all():
        return np.full(len(values), np.nan if column.levels is None else None, dtype=object)
    expected = column.kind or ("text" if column.levels is not None else kind)
    if kind != expected or (values.dtype == object) != (column.levels is not None):
        raise ValueError(
            f"column {column.name!r} in features of {source.name!r} holds {kind} such as "
            f"{as_text(source.frame[column.name].drop_nulls()[0])}, but held {expected} in the fit."
        )
    return values
