"""Methods without a model, or nearly: each learns from known cells and guesses at coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
from scipy.sparse import coo_array, hstack
from scipy.sparse.linalg import lsqr
from scipy.spatial import QhullError

from bayesring.datasets import Dataset
from bayesring.model.types import FloatArray, IntArray, Observations
from paper.arena.contests import Recoding

N_NEIGHBOURS = 10
"""Number of slices that are averaged."""
FEW = 10
"""Number of cells in common at which a similarity counts half."""

JITTER = 1e-3
"""Known points of a lattice are moved by up to so much, since its own triangles are slow to find.

Twice that, towards the middle, for the points that are wanted, so that the rim stays inside.
"""


class Guess(NamedTuple):
    """Predictions for squared errors and for absolute ones, which may be the same."""

    mean: FloatArray
    median: FloatArray


class Known(NamedTuple):
    """What a method may look at."""

    train: Observations
    data: Dataset
    """For labels and positions of the modes only."""

    def mode(self, name: str) -> int:
        """Number of a mode."""
        return list(self.data.labels).index(name)


def overall(known: Known, coords: IntArray) -> Guess:
    """Mean, or median, of all known values."""
    values = known.train.values
    ones = np.ones(len(coords))
    return Guess(values.mean() * ones, np.median(values) * ones)


def additive(known: Known, coords: IntArray) -> Guess:
    """Main effects of all modes by least squares, each shrunk like one further value of zero."""
    train = known.train
    mean = train.values.mean()
    effects = lsqr(_levels(train.coords, train.shape), train.values - mean, damp=1.0)[0]
    return _same(mean + _levels(coords, train.shape) @ effects)


def _levels(coords: IntArray, shape: tuple[int, ...]) -> Any:
    """Indicators of the level of each mode, side by side."""
    rows, ones = np.arange(len(coords)), np.ones(len(coords))
    return hstack(
        [
            coo_array((ones, (rows, coords[:, mode])), (len(coords), size))
            for mode, size in enumerate(shape)
        ],
        format="csr",
    )


def grouped(known: Known, coords: IntArray, recodings: Sequence[Recoding]) -> Guess:
    """Mean and median of the cells of the same group.

    Where none is known, those of the next recoding, and main effects in the end.
    """
    if not recodings:
        return additive(known, coords)
    recoding, *coarser = recodings
    codes = [
        recoding[name](labels) if name in recoding else np.arange(len(labels))
        for name, labels in known.data.labels.items()
    ]
    shape = tuple(int(each.max()) + 1 for each in codes)

    def group(cells: IntArray) -> IntArray:
        new = tuple(code[column] for code, column in zip(codes, cells.T, strict=True))
        return np.asarray(np.ravel_multi_index(new, shape))

    groups, inverse = np.unique(group(known.train.coords), return_inverse=True)
    index = np.arange(len(groups))
    found = Guess(
        np.asarray(ndimage.mean(known.train.values, inverse, index)),
        np.asarray(ndimage.median(known.train.values, inverse, index)),
    )
    wanted = group(coords)
    at = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
    absent = groups[at] != wanted
    backup = grouped(known, coords, coarser)
    return Guess(
        *(np.where(absent, other, ours[at]) for ours, other in zip(found, backup, strict=True))
    )


def along(known: Known, coords: IntArray, name: str) -> Guess:
    """Straight lines between the neighbours of the series along a mode, constant beyond its ends.

    Main effects where nothing of the series is known.
    """
    mode, shape = known.mode(name), known.train.shape
    place = as_numbers(known.data.positions[name])
    span = 2 * np.ptp(place) + 1

    def on_one_line(cells: IntArray) -> tuple[IntArray, FloatArray]:
        """Number of the series, and a position that puts the series one after the other."""
        series = np.ravel_multi_index(
            tuple(np.delete(cells, mode, axis=1).T), tuple(np.delete(shape, mode))
        )
        return series, series * span + place[cells[:, mode]]

    cells, values = averaged(known.train)
    series, positions = on_one_line(cells)
    order = np.argsort(positions)
    series, positions, values = series[order], positions[order], values[order]
    wanted, at = on_one_line(coords)
    right = np.minimum(np.searchsorted(positions, at), len(series) - 1)
    left = np.maximum(np.searchsorted(positions, at, side="right") - 1, 0)
    has_left, has_right = series[left] == wanted, series[right] == wanted
    has_left &= positions[left] <= at
    has_right &= positions[right] >= at
    gap = np.where(right > left, positions[right] - positions[left], 1.0)
    share = (at - positions[left]) / gap
    between = values[left] + np.clip(share, 0, 1) * (values[right] - values[left])
    one_sided = np.where(has_left, values[left], values[right])
    found = np.where(has_left & has_right, between, one_sided)
    return _same(np.where(has_left | has_right, found, additive(known, coords).mean))


def plane(known: Known, coords: IntArray, names: tuple[str, str]) -> Guess:
    """Linear on triangles of known cells of a plane, nearest cell outside of them.

    One step along either mode counts as much. Main effects where nothing of the plane is known.
    """
    modes = [known.mode(name) for name in names]
    rest = tuple(mode for mode in range(len(known.train.shape)) if mode not in modes)
    sizes = tuple(known.train.shape[mode] for mode in rest)
    cells, values = averaged(known.train)
    planes, wanted = (
        np.ravel_multi_index(tuple(each[:, rest].T), sizes) for each in (cells, coords)
    )
    found, rng = additive(known, coords).mean, np.random.default_rng(0)
    middle = (np.array(known.train.shape)[modes] - 1) / 2
    for number in range(prod(sizes)):
        ours, asked = np.flatnonzero(planes == number), np.flatnonzero(wanted == number)
        if len(ours) and len(asked):
            points = cells[ours][:, modes] + JITTER * rng.random((len(ours), 2))
            targets = coords[asked][:, modes].astype(float)
            targets += 2 * JITTER * np.sign(middle - targets)
            found[asked] = _on_triangles(points, values[ours], targets)
    return _same(found)


def _on_triangles(points: FloatArray, values: FloatArray, targets: FloatArray) -> FloatArray:
    nearest = np.asarray(NearestNDInterpolator(points, values)(targets))
    try:
        linear = np.asarray(LinearNDInterpolator(points, values)(targets))
    except QhullError:  # fewer than three points, or all on a line
        return nearest
    return np.where(np.isnan(linear), nearest, linear)


def neighbours(known: Known, coords: IntArray, name: str) -> Guess:
    """Main effects plus what is left over in the most similar slices of a mode.

    Slices are compared by the correlation of what the main effects leave, over common cells; the
    ten most similar ones that have a positive correlation are averaged, weighted by it.
    """
    mode, shape = known.mode(name), known.train.shape
    cells, values = averaged(known.train)
    residuals, seen = np.zeros(shape), np.zeros(shape)
    residuals[tuple(cells.T)] = values - additive(known, cells).mean
    seen[tuple(cells.T)] = 1.0
    left, here = (np.moveaxis(each, mode, 0).reshape(shape[mode], -1) for each in (residuals, seen))
    common, squares = here @ here.T, left**2 @ here.T
    scale = np.sqrt(squares * squares.T)
    alike = np.divide(left @ left.T, scale, out=np.zeros_like(scale), where=scale > 0)
    alike *= common / (common + FEW)
    np.fill_diagonal(alike, 0.0)
    if shape[mode] > N_NEIGHBOURS:
        bound = np.partition(alike, -N_NEIGHBOURS, axis=1)[:, -N_NEIGHBOURS]
        alike[alike < bound[:, None]] = 0.0
    weights = np.maximum(alike, 0.0)
    total = weights @ here
    corrections = np.divide(weights @ left, total, out=np.zeros_like(total), where=total > 0)
    others = np.delete(coords, mode, axis=1)
    at = np.ravel_multi_index(tuple(others.T), tuple(np.delete(shape, mode)))
    return _same(additive(known, coords).mean + corrections[coords[:, mode], at])


def averaged(train: Observations) -> tuple[IntArray, FloatArray]:
    """Every known cell once, with the mean of its values."""
    cells, inverse = np.unique(train.coords, axis=0, return_inverse=True)
    return cells, np.bincount(inverse.ravel(), train.values) / np.bincount(inverse.ravel())


def as_numbers(positions: NDArray[Any]) -> FloatArray:
    """Positions as numbers; times in their own unit."""
    return positions.astype(np.int64 if positions.dtype.kind == "M" else float).astype(float)


def _same(values: FloatArray) -> Guess:
    return Guess(values, values)
