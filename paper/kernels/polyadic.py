"""Sums of products over modes, cell by cell: entries of a CP factorisation."""

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@njit(**OPTIONS)
def polyadic_entries(flat, starts, columns, weights):
    """Equivalent to ``sum(weights[r] * prod_d table_d[columns[d], r])`` for every column, (n,).

    The table of mode d begins at ``starts[d]`` of `flat`; its rows are as long as `weights`.
    """
    order, n_entries = columns.shape
    rank = weights.size
    entries = np.empty(n_entries)
    product = np.empty(rank)
    for n in range(n_entries):
        at = starts[0] + columns[0, n] * rank
        for r in range(rank):
            product[r] = weights[r] * flat[at + r]
        for d in range(1, order - 1):
            at = starts[d] + columns[d, n] * rank
            for r in range(rank):
                product[r] *= flat[at + r]
        at = starts[order - 1] + columns[order - 1, n] * rank
        total = 0.0
        for r in range(rank):
            total += product[r] * flat[at + r]
        entries[n] = total
    return entries
