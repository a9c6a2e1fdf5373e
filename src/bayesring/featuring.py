"""Features of labels in a fit: which labels they add, and the prior that they make.

A mode with features has the prior `Featured` around its own. How much features say is learned and
may be nothing, so useless ones cost time and hardly any accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesring.data.featurecolumns import from_columns
from bayesring.data.features import Features, code
from bayesring.data.givenfeatures import Source, check_overlap, is_sparse, known_from, open_features
from bayesring.data.labels import Labels, encode
from bayesring.data.observations import Observations, renumbered
from bayesring.data.opentables import open_table
from bayesring.data.positions import positions_of
from bayesring.data.sitecolumns import placed_by_features
from bayesring.model.types import Axis, IntArray
from bayesring.priors import Featured, NormalWishart
from bayesring.priors.gradual import Gradual
from bayesring.settings import Settings
from bayesring.wording import shown

OfModes = tuple[Features | None, ...]
"""Features of every mode."""


def attach(
    data: Observations, labels: Labels, features: Any
) -> tuple[Observations, Labels, OfModes]:
    """Data and labels with those labels that only the features know, and the features coded."""
    if features is None:
        return data, labels, (None,) * len(data.shape)
    sources = open_features(features, labels.names)
    wider, shape = known_from(labels, data.shape, sources)
    for source in sources:
        check_overlap(source, labels.levels[source.mode])
    lines = [
        np.arange(size) if wider.levels[mode] is None else _line(wider, mode, before)
        for mode, (size, before) in enumerate(zip(shape, data.shape, strict=True))
    ]
    wider, data = wider.at(lines), renumbered(data._replace(shape=shape), lines)
    wider = placed_by_features(wider, shape, sources)
    return data, wider, coded(sources, wider, shape)


def features_of_columns(X: Any, features: Any, modes: Any) -> tuple[Any, Any]:
    """The data, and the features with tables in place of lists of columns of the data.

    If modes are not named, those columns are left out of the data, lest they be keys.
    """
    if not isinstance(features, Mapping):
        return X, features
    found = from_columns(X, features)
    names = [
        name
        for mode, own in features.items()
        if found[mode] is not own
        for name in ([own] if isinstance(own, str) else own)
    ]
    if modes is None and names:
        X = open_table(X, "X").drop(names).to_native()
    return X, found


def coded(sources: Sequence[Source], labels: Labels, shape: Sequence[int]) -> OfModes:
    """Features of every mode that has some."""
    found: list[Features | None] = [None] * len(shape)
    for source in sources:
        found[source.mode] = code(source, keys_of_mode(labels, shape, source.mode))
    return tuple(found)


def keys_of_mode(labels: Labels, shape: Sequence[int], mode: int) -> Any:
    """Labels of a mode, or its coordinates."""
    levels = labels.levels[mode]
    return np.arange(shape[mode]) if levels is None else levels


def _line(labels: Labels, mode: int, known: int) -> IntArray:
    """Labels of which the last are new, in the order of the known ones if these have one."""
    levels = labels.levels[mode]
    assert levels is not None
    before = levels[:known]
    backwards = positions_of(levels) is not None and known > 1 and before[1] < before[0]
    order = np.argsort(levels, kind="stable")
    if np.array_equal(before, np.sort(before)):
        return order
    if backwards and np.array_equal(before, np.sort(before)[::-1]):
        return order[::-1]
    return np.arange(len(levels))


def renumbered_in(labels: Labels, wider: Labels, coords: IntArray) -> IntArray:
    """Coordinates of cells where labels that only features have moved the others."""
    places = coords.copy()
    for mode, (own, more) in enumerate(zip(labels.levels, wider.levels, strict=True)):
        if own is not None and more is not None and len(more) > len(own):
            places[:, mode] = encode(own, more)[coords[:, mode]]
    return places


def with_features(axes: Sequence[Axis], features: OfModes) -> list[Axis]:
    """What is known of the labels, features included."""
    return [
        axis if own is None else axis._replace(features=own.matrix)
        for axis, own in zip(axes, features or (None,) * len(axes), strict=True)
    ]


def featured(settings: Settings, features: OfModes, names: Sequence[str]) -> Settings:
    """The settings with the prior `Featured` for every mode with features."""
    if not any(own is not None for own in features):
        return settings
    model = settings.model
    modes = list(model.prior.modes * (len(names) if len(model.prior.modes) == 1 else 1))
    if len(modes) != len(names):
        return settings  # refused when it is bound
    for mode, (own, prior) in enumerate(zip(features, modes, strict=True)):
        if own is None or isinstance(prior, Featured):
            continue
        if not isinstance(prior, NormalWishart | Gradual):
            raise ValueError(
                f"features are given for the mode {shown(names[mode])}, but its prior, "
                f"{type(prior).__name__}, cannot use them; use prior='hierarchical'."
            )
        modes[mode] = Featured(prior)
    return settings._replace(model=model._replace(prior=replace(model.prior, modes=tuple(modes))))


def grown(
    data: Observations, labels: Labels, features: Any, known: OfModes, shape: Sequence[int]
) -> tuple[Observations, Labels, OfModes, tuple[Any, ...]]:
    """Data, labels and features of a model of `shape` that has met new labels, which come last.

    `data` and `labels` have those of the observations already; the new features may add more.
    Features of known labels remain as they are. The last part are the rows of X of the new labels
    of every mode, not a number where nothing is known of them, or None.
    """
    sources = [] if features is None else open_features(features, labels.names)
    for source in sources:
        if known[source.mode] is None:
            raise ValueError(
                f"features are given for the mode {shown(source.name)}, which had none in the fit."
            )
    labels, sizes = known_from(labels, data.shape, sources)
    labels = placed_by_features(labels, sizes, sources)
    by_mode = {source.mode: source for source in sources}
    found, rows = [], []
    for mode, own in enumerate(known):
        new = keys_of_mode(labels, sizes, mode)[shape[mode] :]
        given = by_mode.get(mode)
        if own is not None and given is not None and given.keys is None:
            _check_whole(given, own, shape[mode], sizes[mode])
        more = own if own is None or not len(new) else own.more(given, new)
        found.append(more)
        rows.append(None if more is None else _rows(more, shape[mode], given, new))
    return data._replace(shape=sizes), labels, tuple(found), tuple(rows)


def _rows(features: Features, known: int, source: Source | None, new: Any) -> Any:
    """Rows of X of new labels, whose first number is none where nothing is known of them."""
    rows = features.matrix[known:]
    unknown = features.at(np.arange(known)).unknown(source, new) if len(new) else np.zeros(0)
    if not unknown.any():
        return rows
    rows = rows.tolil() if is_sparse(rows) else rows.copy()
    rows[np.flatnonzero(unknown), 0] = np.nan
    return rows.tocsr() if is_sparse(rows) else rows


def _check_whole(source: Source, known: Features, size: int, grown: int) -> None:
    """Refuse a matrix without labels that has no row for every label, known ones first."""
    where = f"features of {source.name!r}"
    if source.n < grown or source.n <= size:
        raise ValueError(
            f"{where} is a matrix of {source.n:,} rows without labels, but one row for every label "
            f"is required, those of the {size:,} known ones first; or give the pair (labels, "
            "matrix) for the new ones."
        )
    if not known.columns and source.matrix.shape[1] == len(known.centre):
        again = known.at(np.arange(0)).more(source, np.arange(size)).matrix
        gap = abs(again - known.matrix[:size]).max()
        if gap > 1e-6:
            raise ValueError(
                f"{where} is a matrix without labels, whose first {size:,} rows must be those of "
                "the fit, but they differ; give the pair (labels, matrix) for the new ones."
            )
