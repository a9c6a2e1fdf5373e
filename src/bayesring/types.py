"""Array aliases, and the small tuples that cross module borders.

Symbols and shapes are those of `docs/notation.md`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


class RingState(NamedTuple):
    """One point of the chain: all that the next scan needs, and nothing it does not."""

    cores: tuple[FloatArray, ...]
    """G, D arrays (I_d, R_{d-1}, R_d)."""
    weights: tuple[FloatArray, ...]
    """lambda, D arrays (R_d,): the diagonals of Lambda^(d)."""
    gains: tuple[FloatArray, ...]
    """delta, D arrays (R_d,)."""
    hyper: tuple[Any, ...]
    """D tuples of arrays, owned by the core prior; empty for a fixed prior."""
    nuisance: FloatArray
    """(p,), owned by the likelihood: the noise precision, or nothing."""

    @property
    def rank(self) -> tuple[int, ...]:
        """R_1, ..., R_D."""
        return tuple(weights.size for weights in self.weights)


class WorkingResponse(NamedTuple):
    """Gaussian surrogate of a likelihood: log p(y_n | f_n) = s_n f_n - w_n f_n^2 / 2 + const."""

    weight: FloatArray
    """w, (n,)."""
    shift: FloatArray
    """s, (n,)."""


class SlicePrior(NamedTuple):
    """Gaussian prior of the slices of one core, in the form that the kernels read.

    Slice i has precision ``precision + diag(diagonal[i])`` and linear term ``linear[i]``
    (precision times mean). One row in `diagonal` and `linear` serves all slices alike.
    """

    precision: FloatArray
    """(K, K), K = R_{d-1} R_d."""
    diagonal: FloatArray
    """(1, K) or (I_d, K)."""
    linear: FloatArray
    """(1, K) or (I_d, K)."""
