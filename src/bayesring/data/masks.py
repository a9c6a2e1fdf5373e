"""Gaps that stay gaps: land in a table of the sea, hours in which nobody measures."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from bayesring.checks import as_array
from bayesring.data.cellnumbers import numbers_in_both
from bayesring.data.containers import Container
from bayesring.data.labels import Labels, as_keys
from bayesring.data.longtables import Long
from bayesring.data.positions import mode_of
from bayesring.model.types import IntArray
from bayesring.wording import shown

CHANCE = 0.01
"""Probability of as many empty fibres below which they are not left to chance."""


def masked(container: Container, mask: Any) -> Container:
    """The container of which the gaps that `mask` says stay gaps; see `bayesring.complete`."""
    if mask is None or not len(container.missing):
        return container
    if is_modes(mask):
        left = _without_any(container, _modes(mask, container.labels))
    elif isinstance(container, Long):
        raise ValueError(
            f"mask of a table must name a mode, or several, along which nothing is known, got "
            f"{shown(mask)}; rows that are not to be filled can be left out of the table."
        )
    elif isinstance(mask, bool | np.bool_):
        raise ValueError(f"mask must be an array of booleans, or name a mode, got {mask}.")
    else:
        left = _array(mask, container)[tuple(container.missing.T)]
    return container.leaving(left)


def is_modes(mask: Any) -> bool:
    """Whether a mask names modes."""
    if isinstance(mask, str | int | np.integer) and not isinstance(mask, bool):
        return True
    return (
        isinstance(mask, list | tuple) and len(mask) > 0 and all(isinstance(m, str) for m in mask)
    )


def tell_empty_fibres(container: Container) -> list[str]:
    """A sentence if whole fibres are to be filled, and more of them than chance would leave."""
    found = container.observations
    shape, names = found.shape, container.labels.names
    best: tuple[int, str] | None = None
    for mode, size in enumerate(shape):
        cells = container.missing[_without_any(container, [mode])]
        others = [own for own in range(len(shape)) if own != mode]
        sizes = [shape[own] for own in others]
        empty = len(np.unique(cells[:, others], axis=0))
        share = min(1.0, len(found.values) / float(prod(shape)))
        expected = float(prod(sizes)) * (1 - share) ** size
        if size < 2 or not empty or pdtrc(empty - 1, expected) > CHANCE:
            continue
        sentence = (
            f"{empty:,} of {prod(sizes):,} fibres along {names[mode]!r} have no value at all; "
            f"their {len(cells):,} cells are filled from the others (mask={names[mode]!r} leaves "
            "them missing)."
        )
        best = max(best or (0, ""), (len(cells), sentence))
    return [] if best is None else [best[1]]


def _without_any(container: Container, modes: list[int]) -> NDArray[np.bool_]:
    """Which of the cells to fill are in a fibre along these modes without any value."""
    found = container.observations
    others = [mode for mode in range(len(found.shape)) if mode not in modes]
    sizes = [found.shape[mode] for mode in others]
    asked, known = numbers_in_both(container.missing[:, others], found.coords[:, others], sizes)
    return ~np.isin(asked, known)


def _modes(mask: Any, labels: Labels) -> list[int]:
    named = [mask] if isinstance(mask, str | int | np.integer) else list(mask)
    modes = sorted({mode_of(name, labels.names, "mask") for name in named})
    if len(modes) == len(labels.names):
        raise ValueError(f"mask names all modes: {shown(mask)}; at least one must be left.")
    return modes


def _array(mask: Any, container: Container) -> NDArray[np.bool_]:
    """A mask of the shape of the tensor."""
    shape, labels = container.observations.shape, container.labels
    dims = getattr(mask, "dims", None)
    array = as_array(getattr(mask, "values", mask) if dims is not None else mask, "mask")
    if array.dtype != bool:
        raise ValueError(
            f"mask must be an array of booleans, True where a gap stays a gap, or name a mode; got "
            f"{array.dtype if array.ndim else shown(mask)}."
        )
    if dims is not None:
        array = along(mask, array, labels, shape, "mask")
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"mask has the shape {array.shape}, but data has {shape}.") from None


def along(
    mask: Any, array: NDArray[Any], labels: Labels, shape: tuple[int, ...], called: str
) -> NDArray[Any]:
    """A labelled array such as a mask, with its dimensions in the order of the data's."""
    places = []
    for name in map(str, mask.dims):
        if name not in labels.names:
            raise ValueError(
                f"{called} has a dimension {shown(name)}, but those of data are "
                f"{list(labels.names)}."
            )
        places.append(labels.names.index(name))
        own = labels.levels[places[-1]]
        if name in mask.coords and own is not None:
            keys = as_keys(mask.coords[name].values, name)
            if not np.array_equal(keys, own):
                raise ValueError(
                    f"{called} and data have different coordinates along {shown(name)}."
                )
    order: IntArray = np.argsort(places)
    wide = [shape[mode] if mode in places else 1 for mode in range(len(shape))]
    found = np.transpose(array, order)
    if list(found.shape) != [shape[mode] for mode in sorted(places)]:
        raise ValueError(f"{called} has the shape {array.shape}, but data has {shape}.")
    return np.asarray(found.reshape(wide))
