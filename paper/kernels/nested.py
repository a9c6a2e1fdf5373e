"""Sums over observations of products over modes, with shared factors taken out of the sums.

If observations are sorted by the coordinates of the other modes, a sum of products is nested:

    sum_n w_n A[a_n] B[b_n] C[c_n] = sum_a A[a] sum_b B[b] sum_c w C[c].

The tables of all modes are passed as one flat array. ``starts[k]`` is the start of the table of
level k; a level is an index into ``others`` (L, M), the coordinates by which observations are
sorted.
"""

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@njit(**OPTIONS)
def shared_levels(others, n, end):
    """Number of leading coordinates that observations n and n + 1 of a slice have in common."""
    if n + 1 == end:
        return 0
    for level in range(len(others)):
        if others[level, n] != others[level, n + 1]:
            return level
    return len(others) - 1


@njit(**OPTIONS)
def nested_hadamard(flat, starts, others, bounds, weights, out):
    """Equivalent to ``out[i] = sum(w[n] * prod_k table_k[others[k, n]])`` over slice i's n.

    Tables have rows as long as those of `out` (J, width); slice i has ``bounds[i]:bounds[i + 1]``.
    """
    levels, width = len(others), out.shape[1]
    sums = np.zeros((levels, width))
    for i in range(bounds.size - 1):
        end = bounds[i + 1]
        for n in range(bounds[i], end):
            row = starts[levels - 1] + others[levels - 1, n] * width
            for k in range(width):
                sums[levels - 1, k] += weights[n] * flat[row + k]
            for level in range(levels - 2, shared_levels(others, n, end) - 1, -1):
                row = starts[level] + others[level, n] * width
                for k in range(width):
                    sums[level, k] += flat[row + k] * sums[level + 1, k]
                    sums[level + 1, k] = 0.0
        out[i] = sums[0]
        sums[0] = 0.0


@njit(**OPTIONS)
def add_product(left, at, right, rows, inner, columns, out):
    """Equivalent to ``out += left @ right``; `left` (rows, inner) starts at index `at`."""
    for i in range(rows):
        for q in range(inner):
            x = left[at + i * inner + q]
            for j in range(columns):
                out[i * columns + j] += x * right[q * columns + j]


@njit(**OPTIONS)
def nested_matrices(flat, starts, sizes, others, bounds, weights, out):
    """Equivalent to ``out[i] = sum(w[n] * table_0[..] @ table_1[..] @ ...)`` over slice i's n.

    A matrix of level k is (sizes[k], sizes[k + 1]); a row of `out` is (sizes[0], sizes[-1]).
    """
    levels, columns = len(others), sizes[-1]
    sums = np.zeros((levels, np.max(sizes) * columns))
    last = sizes[levels - 1] * columns
    for i in range(bounds.size - 1):
        end = bounds[i + 1]
        for n in range(bounds[i], end):
            at = starts[levels - 1] + others[levels - 1, n] * last
            for k in range(last):
                sums[levels - 1, k] += weights[n] * flat[at + k]
            for level in range(levels - 2, shared_levels(others, n, end) - 1, -1):
                rows, inner = sizes[level], sizes[level + 1]
                at = starts[level] + others[level, n] * rows * inner
                add_product(flat, at, sums[level + 1], rows, inner, columns, sums[level])
                sums[level + 1, : inner * columns] = 0.0
        out[i] = sums[0, : out.shape[1]]
        sums[0] = 0.0


@njit(**OPTIONS)
def count_products(others, bounds):
    """Number of products of two tables that `nested_hadamard` or `nested_matrices` take."""
    total = 0
    for i in range(bounds.size - 1):
        for n in range(bounds[i], bounds[i + 1]):
            total += max(0, len(others) - 1 - shared_levels(others, n, bounds[i + 1]))
    return total
