"""Which cells to measure next: the ones with the largest posterior uncertainty."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from bayesring.data.observations import Observations
from bayesring.engine.streams import Purpose, aside
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior import Posterior

MOST_CANDIDATES = 200_000
"""Maximum number of cells to compare; larger tensors are sampled at random."""


def candidate_cells(
    shape: tuple[int, ...],
    observed: Observations | None,
    seed: int,
    most: int | None = None,
) -> IntArray:
    """All unobserved cells, (n, D), or a random sample if there are very many."""
    n_cells = prod(shape)
    most = MOST_CANDIDATES if most is None else most
    if n_cells <= most:
        cells = np.arange(n_cells)
    else:
        rng = np.random.default_rng(aside(seed, Purpose.SUGGEST))
        cells = np.unique(rng.integers(0, n_cells, most))
    coords = np.stack(np.unravel_index(cells, shape), axis=1)
    return np.asarray(coords[~is_observed(coords, observed)])


def is_observed(coords: IntArray, observed: Observations | None) -> NDArray[np.bool_]:
    """Which cells were observed; none if the observations were not kept."""
    if observed is None:
        return np.zeros(len(coords), dtype=bool)
    shape = observed.shape
    found: NDArray[np.bool_] = np.all(coords < shape, axis=1)  # new labels lie outside
    found[found] = np.isin(
        np.ravel_multi_index(coords[found].T, shape), np.ravel_multi_index(observed.coords.T, shape)
    )
    return found


def most_uncertain(posterior: Posterior, coords: IntArray, n: int) -> tuple[IntArray, FloatArray]:
    """Rows of `coords` with the largest standard deviation of the mean, and those deviations.

    Noise is excluded. Repeated cells count once; ties go to the first cell in the tensor.
    """
    cells, rows = np.unique(np.ravel_multi_index(coords.T, posterior.shape), return_index=True)
    ordered = np.stack(np.unravel_index(cells, posterior.shape), axis=1)
    _, deviation = posterior.moments(ordered, noise=False, boxes=True)
    order = np.argsort(-deviation, kind="stable")[:n]
    return rows[order], deviation[order]
