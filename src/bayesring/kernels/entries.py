"""Entries of the tensor at given coordinates."""

import numpy as np
from numba import njit

from bayesring.kernels.tiles import OPTIONS, TILE, complements, gather, workspace


@njit(**OPTIONS)
def entries(flat, starts, bonds, strands, mode, own, others):
    """f_n, the sum over strands of tr(A^(d)[own_n] T_n), equation (2) of docs/model.md.

    `own` (n,) are the indices of mode d, `others` (n, D - 1) those of the modes after it in ring
    order. Twin: `bayesring.ring.entries`.
    """
    n = own.size
    size = strands * bonds[mode - 1] * bonds[mode]
    buffers = workspace(bonds)
    complement = np.empty((size, TILE))
    slices = np.empty((size, TILE))
    fitted = np.empty(n)
    for first in range(0, n, TILE):
        count = min(TILE, n - first)
        complements(
            flat, starts, bonds, strands, mode, others, first, count, buffers, complement, 0
        )
        gather(flat, starts[mode], size, size, own, first, count, buffers[3], slices)
        out = fitted[first : first + count]
        out[:] = 0.0
        for e in range(size):
            a = slices[e]
            b = complement[e]
            for t in range(count):
                out[t] += a[t] * b[t]
    return fitted
