"""Random splits of a fully known tensor."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from bayesring.types import IntArray


class Split(NamedTuple):
    """Coordinates of training and test cells, (n, D) each."""

    train: IntArray
    test: IntArray


def random_split(shape: tuple[int, ...], share: float, seed: int) -> Split:
    """Draw a share of the cells for training, without replacement; all others are test."""
    cells = prod(shape)
    order = np.random.default_rng(seed).permutation(cells)
    n_train = round(share * cells)
    parts = (np.sort(order[:n_train]), np.sort(order[n_train:]))
    return Split(*(np.stack(np.unravel_index(part, shape), axis=1) for part in parts))
