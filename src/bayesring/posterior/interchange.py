"""Draws in the formats of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesring.posterior import Posterior
from bayesring.wording import shown


def to_tensorly(posterior: Posterior, draw: int) -> Any:
    """One draw as a `tensorly.tr_tensor.TRTensor`, in the units of the data.

    Strands become diagonal blocks of every slice. A ring has no term for the location that was
    subtracted from the values before fitting. The location itself is a ring of rank one, with its
    value in the first core and ones in the others. Added to the draw as one more diagonal block of
    every slice, it raises each rank by one. If the location is zero, as for binary values, ranks
    are unchanged; for binary values the tensor holds the log odds.
    """
    try:
        from tensorly.tr_tensor import TRTensor
    except ImportError:
        raise ImportError("to_tensorly needs tensorly: pip install tensorly.") from None
    if not 0 <= draw < posterior.n_draws:
        raise IndexError(f"draw must be from 0 to {posterior.n_draws - 1}, got {shown(draw)}.")
    factors = []
    for mode, core in enumerate(posterior.cores(draw)):
        size, strands, left, right = core.shape
        extra = int(posterior.location != 0)
        block = np.zeros((size, strands * left + extra, strands * right + extra))
        for strand in range(strands):
            rows = slice(strand * left, (strand + 1) * left)
            columns = slice(strand * right, (strand + 1) * right)
            block[:, rows, columns] = core[:, strand]
        if mode == 0:
            block *= posterior.scale
        if extra:
            block[:, -1, -1] = posterior.location if mode == 0 else 1.0
        factors.append(np.ascontiguousarray(np.swapaxes(block, 0, 1)))
    return TRTensor(factors)
