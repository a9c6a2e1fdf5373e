"""Solving with Cholesky factors, by LAPACK itself: SciPy's checks take longer than small solves.

Numbers that are not finite pass through; the sampler looks at every slice it has drawn.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtrs

from bayesring.model.types import FloatArray


def solve_transposed(lower: FloatArray, right: FloatArray) -> FloatArray:
    """L^-T times `right` (K,) or (K, n), for a lower triangular L (K, K)."""
    solved, info = dtrtrs(lower.T, right, lower=0, trans=0)
    if info != 0:
        raise np.linalg.LinAlgError(f"pivot {info - 1} of a triangular matrix is zero")
    return np.asarray(solved)


def in_columns(noise: FloatArray, precision: FloatArray) -> FloatArray:
    """Rows N(0, Omega^-1) from standard normal rows: L^-T noise, L L' = Omega."""
    own = noise.reshape(len(noise), len(precision))
    return np.asarray(solve_transposed(np.linalg.cholesky(precision), own.T).T)


@lru_cache(maxsize=64)
def below_diagonal(size: int) -> NDArray[np.bool]:
    """Where a square matrix lies below its diagonal."""
    mask = np.tri(size, k=-1, dtype=bool)
    mask.setflags(write=False)
    return mask
