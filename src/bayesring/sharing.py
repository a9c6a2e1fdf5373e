"""Modes that share their labels: a sender is also a receiver, a pair of drugs has no order.

Both modes have the labels of either. Slices of the second are regressed on those of the first, by
a matrix that is learned and whose strength may be zero; see `RingPrior`. Where the table is
symmetric, a cell and its mirror image are one: every cell is turned so that half of a label's
partners are in either mode, data and queries alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.cellnumbers import cell_numbers
from bayesring.data.givenfeatures import places_in
from bayesring.data.labels import Labels, NewLabels, encode, numbers_of
from bayesring.data.observations import Observations
from bayesring.data.positions import mode_of
from bayesring.data.traps import DataWarning
from bayesring.model.types import FloatArray, IntArray
from bayesring.priors import Featured, NormalWishart
from bayesring.priors.ring_prior import Pairs
from bayesring.settings import Settings
from bayesring.wording import as_text, shown

SYMMETRIC = "symmetric"
"""What may be said of a pair, if the data themselves do not show it."""
COMMON = 0.1
"""Part of the smaller mode's labels that both should have."""
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
        places = places_in(two, one, f"share names {labels.names[second]!r}, which")
        _check_common((labels.names[first], one), (labels.names[second], two), places)
        absent = places == len(one)
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
    if symmetric:
        data = _once(data, symmetric)
    return data, labels._replace(levels=tuple(levels)), symmetric


def _check_common(
    one: tuple[str, NDArray[Any]], two: tuple[str, NDArray[Any]], places: IntArray
) -> None:
    """Refuse modes, names and labels, without a common label, and warn of hardly any.

    `places` says where labels of the second are among those of the first.
    """
    (first, ours), (second, theirs) = one, two
    absent = places == len(ours)
    common, smaller = int(np.sum(~absent)), min(len(ours), len(theirs))
    if common >= smaller * COMMON > 0:
        return
    alone = ours[~np.isin(np.arange(len(ours)), places)]
    sizes = f"{len(ours):,} of {first!r} and {len(theirs):,} of {second!r}"
    examples = f"such as {as_text(alone[0])} and {as_text(theirs[absent][0])}"
    if not common:
        raise ValueError(
            f"share names {first!r} and {second!r}, which have no label in common ({sizes}, "
            f"{examples}); labels must be written alike, or leave the pair out of share."
        )
    plural = f"{common:,} label" + "s" * (common > 1)
    warnings.warn(
        f"share names {first!r} and {second!r}, which have only {plural} in common "
        f"({sizes}, {examples}): are labels written alike?",
        DataWarning,
        stacklevel=6,
    )


def is_symmetric(data: Observations, pair: tuple[int, int]) -> bool:
    """Whether all mirror images have equal values, or all rows are on one side of the diagonal."""
    first, second = (data.coords[:, mode].astype(np.int64) for mode in pair)
    if np.all(first <= second) or np.all(first >= second):
        return bool(np.sum(first != second) >= FEWEST)
    numbers = cell_numbers(data.coords, data.shape)
    contents = np.unique(data.values, return_inverse=True)[1]
    _, rows = np.unique(np.stack([numbers, contents]), axis=1, return_index=True)
    images = _images(turned(data.coords[rows], (pair,)), numbers[rows], contents[rows], data.shape)
    return bool(images.met.sum() >= FEWEST and images.same[images.met].all())


class _Images(NamedTuple):
    """Rows of cells that may have been given in several orders, (n,) each."""

    met: NDArray[np.bool_]
    """Whether the cell of a row was given in another order, too."""
    same: NDArray[np.bool_]
    """Whether the rows of this order hold the same as those of the first order of that cell."""
    later: NDArray[np.bool_]
    """Whether this is not that first order."""


def _images(cells: IntArray, orders: IntArray, contents: IntArray, shape: Sequence[int]) -> _Images:
    """Compare orders of cells: `cells` are turned, and what `orders` and `contents` number is not.

    Rows of one order are one run after sorting, as those of one cell, in the order of contents.
    """
    numbers = cell_numbers(cells, shape)
    line = np.lexsort([contents, orders, numbers])
    numbers, orders, contents = numbers[line], orders[line], contents[line]
    new_cell = np.append(True, numbers[1:] != numbers[:-1])
    new_run = new_cell | np.append(True, orders[1:] != orders[:-1])
    starts = np.flatnonzero(new_run)
    sizes = np.diff(np.append(starts, len(line)))
    run, cell = np.cumsum(new_run) - 1, np.cumsum(new_cell) - 1
    of_first = (np.cumsum(new_run) - 1)[new_cell][cell]  # first run of the same cell
    partner = np.minimum(starts[of_first] + np.arange(len(line)) - starts[run], len(line) - 1)
    alike = (contents[partner] == contents) & (sizes[of_first] == sizes[run])
    whole = np.logical_and.reduceat(alike, starts)[run]
    runs = np.bincount(cell[new_run])[cell]
    back = np.empty_like(line)
    back[line] = np.arange(len(line))
    return _Images((runs > 1)[back], whole[back], (run != of_first)[back])


def turned(
    coords: IntArray, pairs: Pairs, ranks: Mapping[tuple[int, int], IntArray] | None = None
) -> IntArray:
    """Cells and their mirror images as one: the smaller label first if their sum is even.

    `ranks` holds for every pair numbers of labels to compare, if these are not the coordinates.
    """
    if not pairs:
        return coords
    found = coords.copy()
    for pair in pairs:
        one, two = (coords[:, mode].astype(np.int64) for mode in pair)
        a, b = (one, two) if ranks is None else (ranks[pair][one], ranks[pair][two])
        stays = (a <= b) == ((a + b) % 2 == 0)
        found[:, pair[0]], found[:, pair[1]] = np.where(stays, one, two), np.where(stays, two, one)
    return found


def turned_with_new(
    coords: IntArray, added: NewLabels, pairs: Pairs, shape: Sequence[int]
) -> tuple[IntArray, NewLabels]:
    """Cells turned, some of which have labels unknown to a model of `shape`, and these labels.

    A label is one in both modes of a pair, and how a cell is turned depends on its labels alone.
    """
    if not pairs or not any(len(new) for new in added):
        return turned(coords, pairs), added
    found, labels, ranks = coords.copy(), list(added), {}
    for pair in pairs:
        size = shape[pair[0]]
        parts = [added[mode] for mode in pair if len(added[mode])]
        both = np.unique(np.concatenate(parts)) if parts else added[pair[0]]
        for mode in pair:
            new = coords[:, mode] >= size
            if new.any():
                places = encode(added[mode], both)
                found[new, mode] = size + places[coords[new, mode] - size]
            labels[mode] = both
        hashed = [size + (number >> 3) for number in numbers_of(both)]
        ranks[pair] = np.array([*range(size), *hashed], dtype=np.int64)
    return turned(found, pairs, ranks), tuple(labels)


def _once(data: Observations, pairs: Pairs) -> Observations:
    """All cells turned; what was given in two orders alike, with all that it carries, only once.

    Rows that repeat a cell in one order are repeated measurements, as are those of another order
    that hold something else.
    """
    carried = [data.values, *(each for each in data.given if each is not None)]
    codes = np.stack([np.unique(each, return_inverse=True)[1] for each in carried], axis=1)
    contents = cell_numbers(codes, codes.max(axis=0, initial=0) + 1)
    cells = turned(data.coords, pairs)
    images = _images(cells, cell_numbers(data.coords, data.shape), contents, data.shape)
    kept = np.flatnonzero(~(images.later & images.same))
    return data._replace(coords=cells[kept], values=data.values[kept], given=data.given.at(kept))


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
        if mode in settings.order.named:
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
