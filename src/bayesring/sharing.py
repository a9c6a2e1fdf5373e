"""Modes that share their labels: a sender is also a receiver, a pair of drugs has no order.

Both modes have the labels of either. Slices of the second are regressed on those of the first, by
a matrix that is learned and whose strength may be zero; see `RingPrior`. Where the table is
symmetric, a cell and its mirror image are one: every cell is turned so that half of a label's
partners are in either mode, data and queries alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesring.data.givenfeatures import places_in
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.data.positions import mode_of
from bayesring.model.types import FloatArray, IntArray
from bayesring.priors import Featured, NormalWishart
from bayesring.priors.ring_prior import Pairs
from bayesring.settings import Settings
from bayesring.wording import shown

SYMMETRIC = "symmetric"
"""What may be said of a pair, if the data themselves do not show it."""
FEWEST = 20
"""Mirror images, or rows all on one side, from which on a table counts as symmetric."""


def pairs_of(share: Any, names: Sequence[str]) -> Pairs:
    """Pairs of different modes, the first before the second."""
    if share is None:
        return ()
    listed = isinstance(share, list | tuple) and all(
        isinstance(pair, list | tuple) and (len(pair) == 2 or tuple(pair[2:]) == (SYMMETRIC,))
        for pair in share
    )
    if not listed:
        raise ValueError(
            "share must be a list of pairs of modes, or of pairs with the word 'symmetric', got "
            f"{shown(share)}."
        )
    found = [sorted(mode_of(name, names, "share") for name in pair[:2]) for pair in share]
    used = [mode for pair in found for mode in pair]
    if len(set(used)) < len(used):
        raise ValueError(f"share names a mode twice: {shown(share)}.")
    return tuple((first, second) for first, second in found)


def together(data: Observations, labels: Labels, share: Any) -> tuple[Observations, Labels, Pairs]:
    """Data and labels with the same labels in both modes of a pair, and the symmetric pairs."""
    pairs = pairs_of(share, labels.names)
    if not pairs:
        return data, labels, ()
    levels, shape, coords = list(labels.levels), list(data.shape), data.coords.copy()
    for first, second in pairs:
        one, two = levels[first], levels[second]
        if one is None or two is None:
            if one is not two:
                raise ValueError(
                    f"share names {labels.names[first]!r} and {labels.names[second]!r}, of which "
                    "only one has labels."
                )
            shape[first] = shape[second] = max(shape[first], shape[second])
            continue
        absent = places_in(two, one, labels.names[second]) == len(one)
        both = np.sort(np.concatenate([one, two[absent]]))
        for mode, own in ((first, one), (second, two)):
            coords[:, mode] = places_in(own, both, labels.names[mode])[coords[:, mode]]
            levels[mode], shape[mode] = both, len(both)
    data = data._replace(coords=coords, shape=tuple(shape))
    symmetric = tuple(
        pair
        for pair, given in zip(pairs, share or (), strict=True)
        if len(given) == 3 or is_symmetric(data, pair)
    )
    data = data._replace(coords=turned(data.coords, symmetric))
    if symmetric:
        data = _once(data)
    return data, labels._replace(levels=tuple(levels)), symmetric


def is_symmetric(data: Observations, pair: tuple[int, int]) -> bool:
    """Whether all mirror images have equal values, or all rows are on one side of the diagonal."""
    first, second = (data.coords[:, mode].astype(np.int64) for mode in pair)
    if np.all(first <= second) or np.all(first >= second):
        return bool(np.sum(first != second) >= FEWEST)
    mirrored = data.coords.copy()
    mirrored[:, list(pair)] = data.coords[:, list(reversed(pair))]
    numbers, mirrors = (_numbers(each, data.shape) for each in (data.coords, mirrored))
    order = np.argsort(numbers, kind="stable")
    places = np.minimum(np.searchsorted(numbers[order], mirrors), len(order) - 1)
    met = (numbers[order][places] == mirrors) & (first != second)
    same = data.values[order][places][met] == data.values[met]
    return bool(met.sum() >= FEWEST and same.all())


def _numbers(coords: IntArray, shape: Sequence[int]) -> IntArray:
    return np.asarray(np.ravel_multi_index(tuple(coords.T), tuple(shape)))


def turned(coords: IntArray, pairs: Pairs) -> IntArray:
    """Cells and their mirror images as one: the smaller label first if their sum is even."""
    if not pairs:
        return coords
    found = coords.copy()
    for first, second in pairs:
        low = np.minimum(coords[:, first], coords[:, second])
        high = np.maximum(coords[:, first], coords[:, second])
        even = (low + high) % 2 == 0
        found[:, first], found[:, second] = np.where(even, low, high), np.where(even, high, low)
    return found


def _once(data: Observations) -> Observations:
    """Equal rows once: one may have been the mirror image of the other."""
    rows = np.column_stack([data.coords.astype(float), data.values])
    _, first = np.unique(rows, axis=0, return_index=True)
    first = np.sort(first)
    return data._replace(
        coords=data.coords[first], values=data.values[first], given=data.given.at(first)
    )


def symmetrised(tensor: FloatArray, pairs: Pairs) -> FloatArray:
    """A whole tensor in which mirror images have the value of the cell that stands for both."""
    for first, second in pairs:
        n = tensor.shape[first]
        low, high = np.minimum(*np.indices((n, n))), np.maximum(*np.indices((n, n)))
        even = (low + high) % 2 == 0
        moved = np.moveaxis(tensor, (first, second), (0, 1))
        found = moved[np.where(even, low, high), np.where(even, high, low)]
        tensor = np.moveaxis(found, (0, 1), (first, second))
    return tensor


def sharing(settings: Settings, pairs: Pairs, names: Sequence[str]) -> Settings:
    """The settings with a prior that links the modes of every pair."""
    if not pairs:
        return settings
    if settings.inference == "online-em":
        raise ValueError("share needs chains: use inference='gibbs'.")
    model = settings.model
    modes = list(model.prior.modes * (len(names) if len(model.prior.modes) == 1 else 1))
    for mode in (mode for pair in pairs for mode in pair):
        prior = modes[mode].exchangeable
        if settings.order.asked and mode in settings.order.asked:
            raise ValueError(
                f"{names[mode]!r} is named by share and by order, but may only have one of both."
            )
        if not isinstance(prior, NormalWishart):
            raise ValueError(
                f"share names {names[mode]!r}, whose prior, {type(prior).__name__}, cannot be "
                "linked; use prior='hierarchical', and no features of that mode."
            )
        modes[mode] = prior
    for _, second in pairs:
        modes[second] = Featured(modes[second])  # type: ignore[arg-type]
    linked = replace(model.prior, modes=tuple(modes), share=pairs)
    return settings._replace(model=model._replace(prior=linked))
