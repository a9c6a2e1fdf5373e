"""Which cells to measure next: the ones with the largest posterior uncertainty."""

from __future__ import annotations

import warnings
from math import prod

import numpy as np
from numpy.typing import NDArray

from bayesring.data.observations import Observations
from bayesring.engine.streams import Purpose, aside
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior import Posterior

TOO_MANY = 2**63
"""Number of cells from which they cannot be numbered."""
MOST_CANDIDATES = 200_000
"""Maximum number of cells to compare; larger tensors are sampled at random."""


def candidate_cells(
    shape: tuple[int, ...],
    observed: Observations | None,
    seed: int,
    most: int | None = None,
) -> IntArray:
    """All unobserved cells, (n, D), or a random sample if there are very many.

    All cells, if the observations were not kept.
    """
    n_cells = prod(shape)
    most = MOST_CANDIDATES if most is None else most
    if n_cells <= most:
        cells = np.arange(n_cells)
    else:
        rng = np.random.default_rng(aside(seed, Purpose.SUGGEST))
        if n_cells >= TOO_MANY:
            drawn = np.stack([rng.integers(0, size, most) for size in shape], axis=1)
            _, rows = np.unique(_numbers(shape, drawn)[0], return_index=True)
            return np.asarray(drawn[rows][~is_observed(drawn[rows], observed)])
        cells = np.unique(rng.integers(0, n_cells, most))
    coords = np.stack(np.unravel_index(cells, shape), axis=1)
    return np.asarray(coords[~is_observed(coords, observed)])


def cells_to_suggest(shape: tuple[int, ...], observed: Observations | None, seed: int) -> IntArray:
    """The candidates, with a warning if it is not known which of them were observed."""
    if observed is None:
        warnings.warn(
            "The model did not keep the observations, which were too many or not in memory, so "
            "cells that were observed may be among those suggested; give those that may be "
            "measured as candidates=.",
            UserWarning,
            stacklevel=3,
        )
    return candidate_cells(shape, observed, seed)


def is_observed(coords: IntArray, observed: Observations | None) -> NDArray[np.bool_]:
    """Which cells were observed; none if the observations were not kept."""
    if observed is None:
        return np.zeros(len(coords), dtype=bool)
    shape = observed.shape
    found: NDArray[np.bool_] = np.all(coords < shape, axis=1)  # new labels lie outside
    asked, known = _numbers(shape, coords[found], observed.coords)
    found[found] = np.isin(asked, known)
    return found


def _numbers(shape: tuple[int, ...], *tables: IntArray) -> list[IntArray]:
    """For each table of cells one number per row, ordered and equal as the cells are."""
    cells = np.concatenate(tables)
    numbers, bound = np.zeros(len(cells), dtype=np.int64), 1
    for column, size in zip(cells.T, shape, strict=True):
        if bound * size >= TOO_MANY:  # go on with ranks, which are as many as there are rows
            known, numbers = np.unique(numbers, return_inverse=True)
            bound = len(known)
        numbers, bound = numbers * size + column, bound * size
    return np.split(numbers, np.cumsum([len(each) for each in tables])[:-1])


def most_uncertain(posterior: Posterior, coords: IntArray, n: int) -> tuple[IntArray, FloatArray]:
    """Rows of `coords` with the largest standard deviation of the mean, and those deviations.

    Noise is excluded. Repeated cells count once; ties go to the first cell in the tensor.
    """
    _, rows = np.unique(_numbers(posterior.shape, coords)[0], return_index=True)
    _, deviation = posterior.moments(coords[rows], noise=False)
    order = np.argsort(-deviation, kind="stable")[:n]
    return rows[order], deviation[order]
