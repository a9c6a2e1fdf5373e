"""Columns of latitudes and longitudes, in a long table or among features, as places of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np

from bayesring.data.givenfeatures import Source
from bayesring.data.labels import Labels, encode
from bayesring.data.sites import Sites, is_on_globe, key_of_pair, numbers_in, pair_in
from bayesring.data.tables import keys_of

Pair = tuple[str, str]
"""Names of columns of latitudes and longitudes."""


def without_pair(
    frame: nw.DataFrame[Any], modes: Sequence[str] | None, value: str | None
) -> tuple[nw.DataFrame[Any], Pair | None]:
    """The table without latitude and longitude, if they say where the labels of a key lie."""
    pair = pair_in(frame.columns)
    if pair is None or set(pair) & {*(modes or ()), value}:
        return frame, None
    keys = modes or [name for name in frame.columns if name not in (*pair, value)]
    keys = [key for key in keys if key in frame.columns and not frame.schema[key].is_float()]
    if key_of_pair(frame, pair, keys) is None:
        return frame, None
    return frame.drop(pair), pair


def placed_by(frame: nw.DataFrame[Any], labels: Labels, pair: Pair | None) -> Labels:
    """Labels with the places that two columns of their table say they have."""
    key = None if pair is None else key_of_pair(frame, pair, labels.names)
    if pair is None or key is None:
        return labels
    levels, codes, _ = keys_of(frame, key)
    places = np.full((len(levels), 2), np.nan)
    places[codes] = numbers_in(frame, pair)
    sites = Sites(places, pair, on_globe=True)
    return labels.with_sites(labels.names.index(key), sites) if is_on_globe(sites) else labels


class PlacesOfKey(NamedTuple):
    """What the rows of some partitions say about where the labels of a key lie."""

    key: str
    rows: Any
    """The different rows of key, latitude and longitude; None if a label has several places."""

    @classmethod
    def of(cls, frame: nw.DataFrame[Any], key: str, pair: Pair) -> Self:
        """Those in some rows, if latitudes and longitudes are such."""
        rows = frame.select(key, *pair).unique()
        found = numbers_in(rows, pair) if len(rows) == rows[key].n_unique() else None
        if found is None or not is_on_globe(Sites(found, pair, on_globe=True)):
            return cls(key, None)
        return cls(key, rows.to_native())


def places_in_part(frame: Any, number: int, pair: Pair, keys: Sequence[str]) -> list[PlacesOfKey]:
    """For every key, where its labels lie by the rows of a partition; nothing without rows."""
    table = nw.from_native(frame, eager_only=True)
    if not len(table) or not {*keys, *pair} <= set(table.columns):  # `number` is told elsewhere
        return []
    return [PlacesOfKey.of(table, key, pair) for key in keys]


def joint_places(parts: Sequence[Sequence[PlacesOfKey]], pair: Pair) -> list[PlacesOfKey]:
    """Put together what some partitions say."""
    joint = []
    for several in zip(*(part for part in parts if part), strict=True):
        key, tables = several[0].key, [own.rows for own in several]
        if any(own is None for own in tables):
            joint.append(PlacesOfKey(key, None))
        else:
            frames = [nw.from_native(own, eager_only=True) for own in tables]
            joint.append(PlacesOfKey.of(nw.concat(frames), key, pair))
    return joint


def placed_by_parts(
    labels: Labels, pair: Pair, n_rows: int, found: Sequence[PlacesOfKey]
) -> Labels:
    """As `placed_by`, of a table of `n_rows` rows that is never in one place."""
    known = [own for own in found if own.rows is not None and 2 < len(own.rows) < n_rows]
    if not known:
        return labels
    key, rows = min(known, key=lambda own: len(own.rows))
    mode, frame = labels.names.index(key), nw.from_native(rows, eager_only=True)
    keys, codes, _ = keys_of(frame, key)
    levels = labels.levels[mode]
    assert levels is not None
    places, own = np.full((len(levels) + 1, 2), np.nan), encode(keys, levels)
    places[own[codes]] = numbers_in(frame, pair)  # the last for labels of rows without weight
    return labels.with_sites(mode, Sites(places[:-1], pair, on_globe=True))


def placed_by_features(labels: Labels, shape: Sequence[int], sources: Sequence[Source]) -> Labels:
    """Labels with the places that features say they have, where no others are known."""
    for source in sources:
        pair = None if source.frame is None else pair_in(source.frame.columns)
        if source.frame is None or pair is None:
            continue
        rows, mode = numbers_in(source.frame, pair), source.mode
        levels, known = labels.levels[mode], labels.sites_of(mode)
        if rows is None or (known is not None and known.names != pair):
            continue
        size = shape[mode]
        places = np.full((size, 2), np.nan) if known is None else known.at(np.arange(size)).places
        keys = np.arange(size) if levels is None else levels
        own = np.arange(len(rows)) if source.keys is None else encode(source.keys, keys)
        own, rows = own[own < size], rows[own < size]
        unknown = np.isnan(places[own]).any(axis=1)
        places[own[unknown]] = rows[unknown]
        sites = Sites(places, pair, on_globe=True)
        labels = labels.with_sites(mode, sites) if is_on_globe(sites) else labels
    return labels
