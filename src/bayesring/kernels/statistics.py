"""Statistics of a slice, equation (4) of docs/model.md: sums over its observations, tile by tile.

They are one array (K + 1, K), the lower triangle of P in the first K rows and q in the last, with
padding behind both, and float64, whatever the precision of the cores; within a tile, sums are taken
in that. The K entries are ordered as those of T_n.
"""

import numpy as np
from numba import njit

from bayesring.kernels.tiles import OPTIONS, TILE, complements, padded, workspace
from bayesring.kernels.vectors import ADD, matrix_product, scale

_add_8, _add_4 = (matrix_product(rows, 64, ADD) for rows in (8, 4))
_add_8_half, _add_4_half = (matrix_product(rows, 32, ADD) for rows in (8, 4))
_add_2, _add_2_double, _add_2_fourfold = (matrix_product(2, 64 * n, ADD) for n in (1, 2, 4))


@njit(**OPTIONS)
def add_products(weighted, features, size, count, statistics):
    """Statistics += weighted.T @ features over the first `count` rows, lower triangle.

    Both are tiles (TILE, width); the first `size` columns of `weighted` are used. A few entries
    above the diagonal are filled too, and never read.
    """
    width, wide, lanes = features.shape[1], statistics.shape[1], 64 // features.itemsize
    for a in range(0, size, 8):
        b, at, end = 0, a * wide, a + 8
        if size - a <= 2:
            while b < end:
                if end - b > 3 * lanes:
                    _add_2_fourfold(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                    b += 4 * lanes
                elif end - b > lanes:
                    _add_2_double(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                    b += 2 * lanes
                else:
                    _add_2(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                    b += lanes
        else:
            while b + lanes <= end:
                if size - a > 4:
                    _add_8(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                else:
                    _add_4(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                b += lanes
            if b < end:
                if size - a > 4:
                    _add_8_half(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )
                else:
                    _add_4_half(
                        weighted, a, 1, width, features, b, width, count, statistics, at + b, wide
                    )


@njit(**OPTIONS)
def clear(statistics, size):
    """Set to zero what `add_products` adds to."""
    for a in range(0, size, 8):
        statistics[a : a + 8, : padded(a + 8)] = 0.0


@njit(**OPTIONS)
def accumulate(
    flat,
    starts,
    bonds,
    strands,
    mode,
    others,
    weight,
    shift,
    begin,
    end,
    first,
    buffers,
    statistics,
):
    """Add the observations ``begin:end`` to the statistics of one slice.

    With t_n = vec(T_n), equation (4): P += sum w_n t_n t_n', q += sum s_n t_n. The working response
    of observation n is at place ``n - first`` of `weight` and `shift`.
    """
    workspace, weighted = buffers
    features = workspace[1]
    width, lanes = features.shape[1], 64 // features.itemsize
    size = strands * bonds[mode - 1] * bonds[mode]
    for tile in range(begin, end, TILE):
        count = min(TILE, end - tile)
        complements(flat, starts, bonds, strands, mode, others, tile, count, workspace)
        for t in range(count):
            w = weight[tile + t - first]
            at = t * width
            while at < t * width + size:  # a range with a step that is no constant costs a division
                scale(w, features, at, weighted, at)
                at += lanes
            weighted[t, size] = shift[tile + t - first]
        add_products(weighted, features, size + 1, count, statistics)


@njit(**OPTIONS)
def tiles(flat, bonds, size):
    """Buffers for `accumulate`: those of `complements`, and a tile of weighted features."""
    buffers = workspace(flat, bonds, size)
    return buffers, np.zeros_like(buffers[1])
