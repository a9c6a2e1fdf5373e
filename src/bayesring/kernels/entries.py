"""Entries of the tensor at given coordinates."""

import numpy as np

from bayesring.kernels.chosen import kernel
from bayesring.kernels.tiles import TILE, complements, workspace


@kernel
def entries(flat, starts, bonds, strands, mode, own, others):
    """f_n, the sum over strands of tr(A^(d)[own_n] T_n), equation (2) of docs/model.md.

    `own` (n,) holds the indices of mode d, `others` (D - 1, n) the indices of the modes after it in
    ring order. Fastest if equal indices of mode d are adjacent. Twin:
    `bayesring.model.ring.entries`.
    """
    rows, columns = bonds[mode - 1], bonds[mode]
    size = strands * rows * columns
    buffers = workspace(flat, bonds, size)
    tile = buffers[1]
    turned = np.empty(size, flat.dtype)
    held = -1
    fitted = np.empty(own.size)
    for first in range(0, own.size, TILE):
        count = min(TILE, own.size - first)
        complements(flat, starts, bonds, strands, mode, others, first, count, buffers)
        for t in range(count):
            if own[first + t] != held:
                held = own[first + t]
                at = starts[mode] + held * size
                for strand in range(0, size, rows * columns):
                    for r in range(columns):
                        for s in range(rows):
                            turned[strand + r * rows + s] = flat[at + strand + s * columns + r]
            total = turned[0] * tile[t, 0]
            for k in range(1, size):
                total += turned[k] * tile[t, k]
            fitted[first + t] = total
    return fitted
