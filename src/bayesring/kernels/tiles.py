"""Tiles of observations: gathering slices and multiplying them round the ring.

A tile holds up to `TILE` observations, worked on `LANES` at a time. Its matrices are stored entry
by entry, ``[entry, t]`` with t the observation, so that every inner loop runs over observations
and vectorises whatever the rank is. Nothing larger than a tile is ever stored. Columns beyond
the last observation hold numbers that nobody reads.
"""

import numpy as np
from numba import njit

from bayesring.kernels.lanes import LANES, dot_lanes

TILE = 128  # a multiple of LANES
OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@njit(**OPTIONS)
def gather(flat, start, step, size, index, first, count, bases, out):
    """out[e, t] = entry e of the strand's slice that observation ``first + t`` uses, t < count.

    `step` entries lie between the strand's slices, `size` of them its own.
    """
    for t in range(count):
        bases[t] = start + index[first + t] * step
    for e in range(size):
        for t in range(count):
            out[e, t] = flat[bases[t] + e]


@njit(**OPTIONS)
def multiply(left, right, rows, inner, columns, transposed, out, at):
    """Products of lanes of matrices, (rows, inner) by (inner, columns).

    Equivalent to ``out[:, at + t] = vec(left[t] @ right[t])``, or of the transposed product.
    """
    width = out.shape[1]
    for r in range(rows):
        for s in range(columns):
            place = s * rows + r if transposed else r * columns + s
            dot_lanes(
                left,
                r * inner * LANES,
                right,
                s * LANES,
                columns * LANES,
                inner,
                out,
                place * width + at,
            )


@njit(**OPTIONS)
def workspace(bonds):
    """Buffers for `complements`: three of lanes of matrices, one of places in the flat cores."""
    largest = bonds.max()
    size = largest * largest
    return (
        np.zeros((size, LANES)),
        np.zeros((size, LANES)),
        np.zeros((size, LANES)),
        np.empty(TILE, np.int64),
    )


@njit(**OPTIONS)
def complements(flat, starts, bonds, strands, mode, others, first, count, buffers, out, column):
    """Complement of each observation of a tile, transposed, one strand after the other.

    ``out[(j R_{d-1} + s) R_d + r, column + t] = T_t[r, s]`` of strand j, where
    T_n = A^(d+1)[.] A^(d+2)[.] ... A^(d-1)[.], the product of all the other weighted slices in
    ring order, of shape (R_d, R_{d-1}); `others` (n, D - 1) holds their indices in that order.
    Transposed and read row by row it pairs entry by entry with a slice of core d:
    tr(G^(d)[i] Lambda^(d) T_n) = sum over (s, r) of G[s, r] lambda[r] T_n[r, s].
    """
    order = bonds.size
    left, right, product, bases = buffers
    rows = bonds[mode]
    following = (mode + 1) % order
    width = out.shape[1]
    for strand in range(strands):
        place = strand * rows * bonds[mode - 1]
        for at in range(0, count, LANES):
            lanes = min(LANES, count - at)
            inner = bonds[following]
            size = rows * inner
            start = starts[following] + strand * size
            index = others[:, 0]
            gather(flat, start, strands * size, size, index, first + at, lanes, bases, left)
            if order == 2:
                for r in range(rows):
                    for s in range(inner):
                        for t in range(lanes):
                            out[place + s * rows + r, column + at + t] = left[r * inner + s, t]
            for step in range(1, order - 1):
                core = (mode + 1 + step) % order
                columns = bonds[core]
                size = inner * columns
                start = starts[core] + strand * size
                index = others[:, step]
                gather(flat, start, strands * size, size, index, first + at, lanes, bases, right)
                if step == order - 2:
                    begin = place * width + column + at
                    multiply(left, right, rows, inner, columns, True, out, begin)
                else:
                    multiply(left, right, rows, inner, columns, False, product, 0)
                    left, product = product, left
                inner = columns
