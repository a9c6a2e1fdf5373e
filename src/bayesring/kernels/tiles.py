"""Tiles of observations: gathering slices and multiplying them round the ring.

A tile holds up to `TILE` observations. Its matrices are stored entry by entry, ``[entry, t]``
with t the observation, so that every inner loop runs over observations and vectorises whatever
the rank is. Nothing larger than a tile is ever stored.
"""

import numpy as np
from numba import njit

TILE = 128
OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@njit(**OPTIONS)
def gather(flat, start, size, index, first, count, out):
    """out[e, t] = entry e of the slice that observation ``first + t`` uses."""
    for t in range(count):
        base = start + index[first + t] * size
        for e in range(size):
            out[e, t] = flat[base + e]


@njit(**OPTIONS)
def multiply(left, right, rows, inner, columns, count, transposed, out):
    """Product of two tiles of matrices, (rows, inner) by (inner, columns).

    Equivalent to ``out[t] = left[t] @ right[t]``, or its transpose when `transposed`.
    """
    for r in range(rows):
        for s in range(columns):
            target = out[s * rows + r] if transposed else out[r * columns + s]
            a = left[r * inner]
            b = right[s]
            for t in range(count):
                target[t] = a[t] * b[t]
            q = 1
            while q + 2 <= inner:
                a0 = left[r * inner + q]
                b0 = right[q * columns + s]
                a1 = left[r * inner + q + 1]
                b1 = right[(q + 1) * columns + s]
                for t in range(count):
                    target[t] += a0[t] * b0[t] + a1[t] * b1[t]
                q += 2
            if q < inner:
                a0 = left[r * inner + q]
                b0 = right[q * columns + s]
                for t in range(count):
                    target[t] += a0[t] * b0[t]


@njit(**OPTIONS)
def workspace(bonds):
    """Three buffers for `complements`, each wide enough for any pair of bonds."""
    largest = bonds.max()
    size = largest * largest
    return np.empty((size, TILE)), np.empty((size, TILE)), np.empty((size, TILE))


@njit(**OPTIONS)
def complements(flat, starts, bonds, mode, others, first, count, buffers, out):
    """Complement of each observation of a tile, transposed: out[s * R_d + r, t] = T_t[r, s].

    T_n = A^(d+1)[.] A^(d+2)[.] ... A^(d-1)[.], the product of all the other weighted slices in
    ring order, of shape (R_d, R_{d-1}); `others` (n, D - 1) holds their indices in that order.
    Transposed and read row by row it pairs entry by entry with a slice of core d:
    tr(G^(d)[i] Lambda^(d) T_n) = sum over (s, r) of G[s, r] lambda[r] T_n[r, s].
    """
    order = bonds.size
    left, right, product = buffers
    rows = bonds[mode]
    core = (mode + 1) % order
    inner = bonds[core]
    gather(flat, starts[core], rows * inner, others[:, 0], first, count, left)
    if order == 2:
        for r in range(rows):
            for s in range(inner):
                for t in range(count):
                    out[s * rows + r, t] = left[r * inner + s, t]
        return
    for step in range(1, order - 1):
        core = (mode + 1 + step) % order
        columns = bonds[core]
        gather(flat, starts[core], inner * columns, others[:, step], first, count, right)
        if step == order - 2:
            multiply(left, right, rows, inner, columns, count, True, out)
        else:
            multiply(left, right, rows, inner, columns, count, False, product)
            left, product = product, left
        inner = columns
