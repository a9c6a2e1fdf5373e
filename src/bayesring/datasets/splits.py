"""Random splits of a fully known tensor, and of the ones of a binary tensor."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from bayesring.model.types import FloatArray, IntArray, Observations


class Split(NamedTuple):
    """Coordinates of training and test cells, (n, D) each."""

    train: IntArray
    test: IntArray


class Fold(NamedTuple):
    """Training and test observations.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring.datasets import random_fold
    >>> train, test = random_fold(np.ones((4, 5, 6)), share=0.25, seed=0)
    >>> len(train.values), len(test.values)
    (30, 90)
    """

    train: Observations
    test: Observations


def random_split(shape: tuple[int, ...], share: float, seed: int) -> Split:
    """Draw a share of the cells for training, without replacement; all others are for testing.

    Returns
    -------
    Split
        `train` and `test`, coordinates (n, D) each.

    Examples
    --------
    >>> from bayesring.datasets import random_split
    >>> random_split((4, 5, 6), share=0.25, seed=0).train.shape
    (30, 3)
    """
    cells = prod(shape)
    order = np.random.default_rng(seed).permutation(cells)
    n_train = round(share * cells)
    parts = (np.sort(order[:n_train]), np.sort(order[n_train:]))
    return Split(*(np.stack(np.unravel_index(part, shape), axis=1) for part in parts))


def random_fold(tensor: FloatArray, share: float, seed: int) -> Fold:
    """The observations of a random split of a fully known tensor.

    Returns
    -------
    Fold
        `train` and `test` observations.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring.datasets import random_fold
    >>> random_fold(np.ones((4, 5, 6)), share=0.25, seed=0).train.coords.shape
    (30, 3)
    """
    split = random_split(tensor.shape, share, seed)
    return Fold(*(Observations(part, tensor[tuple(part.T)], tensor.shape) for part in split))


def balanced_fold(
    ones: IntArray, shape: tuple[int, ...], fold: int, n_folds: int = 5, seed: int = 0
) -> Fold:
    """Training and test sets of one of `n_folds` folds of all ones and as many zeros.

    The zeros are drawn from the other cells without replacement, and the rows are shuffled. One
    seed gives the same rows for every fold.

    Returns
    -------
    Fold
        `train` and `test` observations.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesring.datasets import balanced_fold
    >>> ones = np.array([[0, 0, 0], [1, 2, 3], [3, 4, 5], [2, 2, 2], [1, 0, 1]])
    >>> fold = balanced_fold(ones, shape=(4, 5, 6), fold=0)
    >>> len(fold.train.values), len(fold.test.values)
    (8, 2)
    """
    if fold not in range(n_folds):
        raise ValueError(f"fold must be 0 to {n_folds - 1}, got {fold!r}.")
    rng = np.random.default_rng(seed)
    cells = np.ravel_multi_index(tuple(ones.T), shape)
    zeros = draw_cells(rng, prod(shape), len(cells), np.unique(cells))
    chosen = np.concatenate([cells, zeros])
    values = np.concatenate([np.ones(len(cells)), np.zeros(len(zeros))])
    order = rng.permutation(len(chosen))
    coords = np.stack(np.unravel_index(chosen[order], shape), axis=1)
    values = values[order]
    is_test = np.arange(len(order)) % n_folds == fold
    return Fold(
        Observations(coords[~is_test], values[~is_test], shape),
        Observations(coords[is_test], values[is_test], shape),
    )


def draw_cells(
    rng: np.random.Generator, cells: int, number: int, taken: IntArray | None = None
) -> IntArray:
    """Draw `number` distinct cells out of `cells`, excluding those in `taken`.

    Uses a permutation if most of the cells are requested, otherwise rejection, which needs memory
    only for the drawn cells.
    """
    taken = np.empty(0, dtype=np.int64) if taken is None else taken
    if number > cells - len(taken):
        raise ValueError(
            f"{number} cells are wanted, but there are only {cells - len(taken)} to draw from."
        )
    if len(taken) == 0 and 10 * number > cells:
        return rng.permutation(cells)[:number]
    found = np.empty(0, dtype=np.int64)
    while len(found) < number:
        drawn = rng.integers(0, cells, 2 * (number - len(found)) + 10)
        if len(taken):
            drawn = drawn[~np.isin(drawn, taken)]
        both = np.concatenate([found, drawn])
        found = both[np.sort(np.unique(both, return_index=True)[1])]
    return found[:number]
