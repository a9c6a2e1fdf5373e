"""Features as given by users: opened, checked, and matched with the labels of a mode."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesring.checks import check_fits
from bayesring.data.labels import KINDS, Labels, Zone, encode, extend, learn_column, zone_of_objects
from bayesring.data.opentables import is_table, open_table
from bayesring.data.positions import mode_of
from bayesring.data.tables import keys_of
from bayesring.data.traps import DataWarning
from bayesring.data.unpadded import unpadded
from bayesring.model.types import IntArray
from bayesring.wording import as_text, shown

LARGEST = 1e100
"""Largest number that a feature may be: squares and their sums must be numbers, too."""


class Source(NamedTuple):
    """Features as given: keys of labels, and a table or a matrix with one row for each."""

    mode: int
    name: str
    keys: NDArray[Any] | None
    """(n,); None if rows are those of coordinates or labels 0, 1, ..."""
    frame: nw.DataFrame[Any] | None
    matrix: Any
    """(n, F), if there is no table."""
    zone: Zone | None = None
    """Time zone of the keys."""

    @property
    def where(self) -> str:
        """What to call it in a message."""
        return f"features of {self.name!r}"

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
            "features must map modes to tables, as {'station': stations}, got an object of type "
            f"{type(features).__name__}."
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
        frame = _open_table(given, name, where)
        key = name if name in frame.columns else frame.columns[0]
        if len(frame.columns) < 2:
            raise ValueError(f"{where} has no column besides the labels {key!r}.")
        missing = frame[key].is_null().to_numpy().astype(bool)
        if missing.any():
            raise ValueError(
                f"{where} has no label in row {int(np.argmax(missing))}, in the column {key!r}; "
                "every row must have one."
            )
        distinct, places, zone = keys_of(frame, key)
        _check_distinct(distinct, places, where)
        return Source(mode, name, distinct[places], frame.drop(key), None, zone)
    keys, zone = None, None
    if isinstance(given, tuple) and len(given) == 2:
        keys, given = unpadded(given[0]), given[1]
        if keys.ndim != 1:
            raise ValueError(f"{where} must have one label per row, got {shown(keys)} as labels.")
        zone = zone_of_objects(keys)
        distinct, places = learn_column(keys, where)
        _check_distinct(distinct, places, where)
        keys = distinct[places]
    matrix = _matrix(given, where)
    if keys is not None and len(keys) != matrix.shape[0]:
        raise ValueError(f"{where} has {len(keys)} labels, but {matrix.shape[0]} rows.")
    return Source(mode, name, keys, None, matrix, zone)


def _open_table(given: Any, name: str, where: str) -> nw.DataFrame[Any]:
    """A table of features; an index that is named as the mode becomes a column."""
    frame = open_table(given, where)
    index = nw.maybe_get_index(frame)
    if index is not None and name in index.names and name not in frame.columns:
        frame = open_table(frame.to_native().reset_index(), where)
    for column in frame.columns:
        if not isinstance(column, str):
            raise ValueError(
                f"{where} has a column named {shown(column)}, but names must be text; rename the "
                "columns, or give the pair (labels, matrix)."
            )
    return frame


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
    if np.abs(entries).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"{where} holds {np.abs(entries).max():g}, but numbers up to {LARGEST:g} are required."
        )
    return matrix


def places_in(keys: NDArray[Any], levels: NDArray[Any], where: str) -> IntArray:
    """Index of every key among `levels`, their number for keys not among them."""
    found, expected = KINDS[keys.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"{where} has {found} such as {_quoted(keys[0])} as labels, but {expected} such as "
            f"{_quoted(levels[0])} are required."
        )
    return encode(keys, levels)


def _quoted(key: Any) -> str:
    """A key in which text and numbers can be told apart."""
    return f"'{as_text(key)}'" if isinstance(key, str) else as_text(key)


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
            check_fits(
                64 * sizes[mode],
                f"the work on {sizes[mode]:,} coordinates, of which {source.where} name the last,",
                "give new labels numbers next to the old ones.",
            )
            continue
        if source.keys is None and not np.array_equal(own, np.arange(len(own))):
            raise ValueError(
                f"features of {source.name!r} must say which row is which label: give a table, or "
                "the pair (labels, matrix)."
            )
        _check_zone(source, own, labels)
        new = np.unique(keys[places_in(keys, own, source.where) == len(own)])
        if len(new):
            levels[mode] = extend(own, new, source.name)
            sizes[mode] = len(own) + len(new)
    return labels._replace(levels=tuple(levels)), tuple(sizes)


def _check_coordinates(keys: NDArray[Any], source: Source) -> None:
    whole = keys.dtype.kind in "iu"
    if not whole or keys.min() < 0:
        raise ValueError(
            f"features of {source.name!r} must have coordinates from 0 on as labels, got "
            f"{_quoted(keys.min() if whole else keys[0])}."
        )


def rows_of(source: Source, levels: NDArray[Any]) -> IntArray:
    """For every label its row in the source, or -1."""
    keys = np.arange(source.n) if source.keys is None else source.keys
    places = places_in(keys, levels, source.where)
    rows = np.full(len(levels) + 1, -1)
    rows[places] = np.arange(len(keys))
    return rows[:-1]


def _check_zone(source: Source, levels: NDArray[Any], labels: Labels) -> None:
    """Reject times without a zone for labels with one, and vice versa."""
    if source.keys is None or not labels.zones:
        return
    zone = labels.zones[source.mode]
    both = source.keys.dtype.kind == levels.dtype.kind == "M"
    if both and (zone is None) != (source.zone is None):
        found, expected = (
            "without a time zone" if each is None else f"in the time zone {each.name}"
            for each in (source.zone, zone)
        )
        raise ValueError(
            f"features of {source.name!r} have times {found} as labels, but the data have times "
            f"{expected}; give both with a zone or both without."
        )


def check_overlap(source: Source, levels: NDArray[Any] | None) -> None:
    """Refuse features of none of the data's labels, and warn of those of fewer than half."""
    if levels is None or source.keys is None:
        return
    places = places_in(source.keys, levels, source.where)
    described = np.zeros(len(levels) + 1, dtype=bool)
    described[places] = True
    count = int(described[:-1].sum())
    if 2 * count >= len(levels):
        return
    lacking = _quoted(levels[int(np.argmin(described[:-1]))])
    strange = source.keys[places == len(levels)]
    others = f", but of others such as {_quoted(strange[0])}" if len(strange) else ""
    if not count:
        raise ValueError(
            f"features of {source.name!r} describe none of the {len(levels):,} labels in the data, "
            f"such as {lacking}{others}; labels must be written alike."
        )
    warnings.warn(
        f"Features of {source.name!r} describe {count:,} of the {len(levels):,} labels in the "
        f"data, not {lacking}{others}: are labels written alike?",
        DataWarning,
        stacklevel=6,
    )
