"""How cells are missing: one by one, whole fibres, or in runs; and holding out values alike.

Intervals are calibrated and sizes are chosen by values that are held out. If a sensor fails for a
day, cells next to known ones say little about the cells of that day: what is held out has to be
missing as the user's own missing cells are.

A *fibre* along a mode is the line of cells with the same labels in all other modes. Missing cells
are *scattered* if the number of known cells of every fibre is about what the labels' own shares of
known cells let expect, and they do not come in runs. Otherwise the pattern of a fibre is imposed
on another: what is missing in the one is held out in the other. If mostly whole fibres are missing,
the same is done with fibres in place of cells, in case whole fibres are missing in runs.

If it is always the same labels that are missing (stations without passengers at night), what is
held out there says little of the others: patterns are then moved along the fibre.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray

MOST_CELLS, LOWEST_SHARE = 2**27, 0.02
"""Tensors with more cells, or a smaller share of known ones, are taken to miss cells one by one."""
UNEVEN = 3.0
"""Variance of the number of known cells of a fibre, over what chance gives, from which the fibres
are said to matter."""
WHOLE = 0.5
"""Share of the missing cells that lie in empty fibres, from which fibres are said to be missing."""
RUNS = 0.6
"""Number of runs, over what chance gives, below which what is missing is said to be in runs."""
OFTEN, MOSTLY = 0.5, 0.5
"""A label with a larger share of missing cells is said to be missing often; if those have a larger
share of all missing cells, patterns are moved along the fibre."""
TRIES = 20_000


class GapPattern(NamedTuple):
    """How cells are missing."""

    mode: int | None = None
    """Mode along which fibres are missing, or parts of them; None if cells are scattered."""
    whole: bool = False
    """Whether mostly whole fibres are missing."""
    runs: int | None = None
    """Mode along which whole fibres are missing in runs."""

    def describe(self, names: tuple[str, ...]) -> str:
        """In words."""
        if self.mode is None:
            return "single cells"
        if not self.whole:
            return f"parts of fibres along {names[self.mode]!r}"
        along = "" if self.runs is None else f", in runs along {names[self.runs]!r}"
        return f"whole fibres along {names[self.mode]!r}{along}"


SCATTERED = GapPattern()


def find_pattern(data: Observations) -> GapPattern:
    """How the cells that are not among the observations are missing."""
    return SCATTERED if too_large(data.shape) else pattern_of(known_cells(data))


def too_large(shape: tuple[int, ...]) -> bool:
    """Whether cells are taken to be missing one by one, without a look."""
    return prod(shape) > MOST_CELLS or min(shape) < 2


def pattern_of(known: NDArray[np.bool]) -> GapPattern:
    """How cells are missing in a tensor that says which ones are known."""
    shape, cells = known.shape, known.size
    share = float(known.mean())
    if not LOWEST_SHARE <= share < 1:
        return SCATTERED
    uneven = [_unevenness(known, mode) for mode in range(len(shape))]
    mode = int(np.argmax(uneven))
    empty = np.asarray(~known.any(axis=mode))
    in_fibres = int(empty.sum()) * shape[mode]
    if uneven[mode] < UNEVEN or in_fibres < WHOLE * (cells - int(known.sum())):
        parts = [_share_of_runs(~known, each) for each in range(len(shape))]
        mode = int(np.argmin(parts))
        return GapPattern(mode) if parts[mode] < RUNS else SCATTERED
    others = [each for each in range(len(shape)) if each != mode]
    runs = [_share_of_runs(empty, axis) for axis in range(empty.ndim)]
    best = int(np.argmin(runs))
    return GapPattern(mode, True, others[best] if runs[best] < RUNS else None)


def hold_out_alike(
    known: NDArray[np.bool], pattern: GapPattern, rng: Generator, share: float
) -> NDArray[np.bool]:
    """Which cells to hold out, about a `share` of the known ones, so that they are missing alike.

    The result has the shape of the tensor; if whole fibres are missing, one along their mode.
    """
    assert pattern.mode is not None
    mode = along = pattern.mode
    if pattern.whole:  # fibres in place of cells
        known = np.asarray(known.any(axis=mode))
        along = 0 if pattern.runs is None else pattern.runs - (pattern.runs > mode)
    lines = np.moveaxis(known, along, -1).reshape(-1, known.shape[along])
    held = np.zeros(lines.shape, dtype=bool)
    weights = np.cumsum(np.count_nonzero(~lines, axis=1))
    filled = np.flatnonzero(lines.any(axis=1))
    scattered = pattern.whole and pattern.runs is None
    moved = not pattern.whole and at_the_same_labels(lines)
    wanted = max(1, round(share * int(known.sum())))
    if scattered:
        held.reshape(-1)[rng.permutation(np.flatnonzero(lines))[:wanted]] = True
    found = int(held.sum())
    for _ in range(0 if scattered else TRIES):
        if found >= wanted:
            break
        donor = int(np.searchsorted(weights, rng.integers(weights[-1]), side="right"))
        line = int(rng.choice(filled))
        gaps = ~lines[donor]
        gaps = np.roll(gaps, rng.integers(gaps.size)) if moved else gaps
        new = lines[line] & gaps & ~held[line]
        left = lines[line] & ~held[line] & ~new
        if donor != line and left.any():  # a line is never emptied
            held[line] |= new
            found += int(new.sum())
    sizes = [known.shape[axis] for axis in range(known.ndim) if axis != along]
    units = np.moveaxis(held.reshape(*sizes, known.shape[along]), -1, along)
    return np.expand_dims(units, mode) if pattern.whole else units


def at_the_same_labels(lines: NDArray[np.bool]) -> bool:
    """Whether most cells that are missing in lines of known ones are at labels that often are."""
    missing: IntArray = np.count_nonzero(~lines, axis=0)
    often = missing > OFTEN * len(lines)
    return bool(missing[often].sum() > MOSTLY * missing.sum())


def known_cells(data: Observations) -> NDArray[np.bool]:
    """The tensor that says which cells are known; of several parts, any of them."""
    known = np.zeros(data.shape, dtype=bool)
    known[tuple(data.coords.T)] = True
    return known


def _unevenness(known: NDArray[np.bool], mode: int) -> float:
    """Mean squared deviation of the counts of fibres along a mode, over what chance gives.

    By chance, a cell is known with a probability that is a product over the modes.
    """
    size, share = known.shape[mode], known.mean()
    counts = known.sum(axis=mode, dtype=float)
    expected = np.full(counts.shape, share)
    for axis in range(counts.ndim):
        rest = tuple(each for each in range(counts.ndim) if each != axis)
        own: FloatArray = counts.mean(axis=rest) / (size * share)
        expected *= own.reshape([-1 if each == axis else 1 for each in range(counts.ndim)])
    expected = np.minimum(expected, 1.0)
    chance = size * float(np.mean(expected * (1 - expected)))
    return float(np.mean((counts - size * expected) ** 2)) / chance if chance > 0 else 0.0


def _share_of_runs(empty: NDArray[np.bool], axis: int) -> float:
    """Runs of empty fibres along an axis, over what chance gives; one if nothing can be told."""
    lines = np.moveaxis(empty, axis, -1).reshape(-1, empty.shape[axis]).astype(np.int8)
    n_empty: IntArray = lines.sum(axis=1)
    size = lines.shape[1]
    mixed = (n_empty > 0) & (n_empty < size)
    expected = float(np.sum((n_empty * (size - n_empty + 1) / size)[mixed]))
    starts = np.diff(lines[mixed], axis=1, prepend=0) == 1
    return float(starts.sum()) / expected if expected > 0 else 1.0
