"""Entries of many draws of a ring at many cells, and their moments over draws.

Cells that share all indices but the last share the product of those slices, a row; cells that share
the last index share a column. Where cells fill a table of rows and columns, it is worked out as one
matrix product. Sums are float64 whatever the precision of the draws.
"""

import numpy as np
from numba import njit

from bayesring.kernels.chosen import kernel
from bayesring.kernels.entries import entries
from bayesring.kernels.tiles import SPARE, multiply

SUMS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@kernel
def _copy(draw, start, size, indices, width, out):
    """Slices of a core that begins at `start`, one behind the other with room between them."""
    for i in range(indices.size):
        at, to = start + indices[i] * size, i * width
        for k in range(size):
            out[to + k] = draw[at + k]


@kernel
def _rows(draw, starts, bonds, strands, first, rows, buffers, begins):
    """Products of all slices of every row: which of the first two `buffers` (3, .) they end in.

    Each is (S, R_last, R), one as wide as the other, with room for `multiply` to overwrite.
    """
    m, around = len(rows), bonds[first - 1]
    width, now = (buffers.shape[1] - SPARE) // m, 0
    for depth in range(bonds.size - 1):
        mode = (first + depth) % bonds.size
        inner, columns = bonds[mode - 1], bonds[mode]
        size = strands * inner * columns
        if depth == 0:
            _copy(draw, starts[mode], size, rows[:, 0], width, buffers[0])
            continue
        before, slices, after = buffers[now], buffers[2], buffers[1 - now]
        _copy(draw, starts[mode], size, rows[:, depth], width, slices)
        if size == strands and around == 1:
            for k in range(m * width):
                after[k] = before[k] * slices[k]
        else:
            for strand in range(strands):
                for i in range(m):
                    begins[0, i] = i * width + strand * around * inner
                    begins[1, i] = i * width + strand * inner * columns
                to = strand * around * columns
                multiply(
                    before, begins[0], slices, begins[1], around, inner, columns, m,
                    after, to, width,
                )  # fmt: skip
        now = 1 - now
    return now


@kernel
def _columns(draw, at, size, strands, around, indices, out):
    """Slices of the last core, one per column of `out` (K, n) end to end, in the order of a row."""
    inner, n = size // (strands * around), indices.size
    for u in range(n):
        begin, k = at + indices[u] * size, 0
        for strand in range(0, size, around * inner):
            for r in range(around):
                for c in range(inner):
                    out[k * n + u] = draw[begin + strand + c * around + r]
                    k += 1


@kernel
def entries_of_table(flat, starts, bonds, strands, first, rows, columns, places, out):
    """f at cells that fill a table of rows and columns, for every draw, to `out` (n, draws).

    Parameters
    ----------
    flat : (draws, N), and starts, bonds, strands, as in `bayesring.model.ring.FlatRing`
    first : mode with which products begin; they go around the ring from there
    rows : (m, D - 1), indices of that mode and of those that follow it
    columns : (u,), indices of the mode before it, the last in turn
    places : (2, n), row and column of every cell
    """
    m, u, n = len(rows), columns.size, places.shape[1]
    around, last = bonds[first - 1], (first + bonds.size - 1) % bonds.size
    size, widest = strands * bonds[last - 1] * around, bonds.max()
    width = strands * widest * widest + SPARE
    buffers, begins = np.zeros((3, m * width + SPARE)), np.zeros((2, m), np.int64)
    products, slices, zero = np.zeros(m * size), np.zeros(size * u + SPARE), np.zeros(1, np.int64)
    table = np.zeros(m * u + SPARE)
    for s in range(len(flat)):
        draw = flat[s]
        found = buffers[_rows(draw, starts, bonds, strands, first, rows, buffers, begins)]
        for i in range(m):
            for k in range(size):
                products[i * size + k] = found[i * width + k]
        _columns(draw, starts[last], size, strands, around, columns, slices)
        multiply(products, zero, slices, zero, m, size, u, 1, table, 0, 0)
        for i in range(n):
            out[i, s] = table[places[0, i] * u + places[1, i]]


@kernel
def entries_apart(flat, starts, bonds, strands, first, levels, ends, columns, out):
    """f at cells that are scattered, for every draw, to `out` (n, draws).

    Parameters
    ----------
    flat, starts, bonds, strands, first : as for `entries_of_table`
    levels, ends : the slices that are needed, mode after mode, and where those of each mode end
    columns : (D, n), places of the cells among the `levels` of each mode, from mode `first` on
        around the ring; fastest if sorted
    """
    order, n = columns.shape
    new_starts, total, before = np.empty(order, np.int64), 0, 0
    for mode in range(order):
        new_starts[mode] = total
        total += (ends[mode] - before) * strands * bonds[mode - 1] * bonds[mode]
        before = ends[mode]
    needed = np.empty(total)
    for s in range(len(flat)):
        draw, to, level = flat[s], 0, 0
        for mode in range(order):
            size = strands * bonds[mode - 1] * bonds[mode]
            while level < ends[mode]:
                at = starts[mode] + levels[level] * size
                for k in range(size):
                    needed[to + k] = draw[at + k]
                to += size
                level += 1
        found = entries(needed, new_starts, bonds, strands, first, columns[0], columns[1:])
        for i in range(n):
            out[i, s] = found[i]


@njit(**SUMS)
def moments(rows):
    """Mean and variance of every row, (n,) each."""
    n, count = rows.shape
    means, variances = np.empty(n), np.empty(n)
    for i in range(n):
        mean = square = 0.0
        for s in range(count):
            mean += rows[i, s]
        mean /= count
        for s in range(count):
            square += (rows[i, s] - mean) ** 2
        means[i], variances[i] = mean, square / count
    return means, variances
