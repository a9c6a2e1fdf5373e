"""Statistics of a slice, equation (4) of docs/model.md: sums over its observations, tile by tile.

They are one padded array (K + 1, K), with the lower triangle of P in the first K rows and q in the
last. It is float64 whatever the precision of the cores; within a tile, sums are taken in the
precision of the cores. The K entries are ordered like those of T_n.
"""

import numpy as np

from bayesring.kernels.chosen import ADD, kernel, matrix_products, scale
from bayesring.kernels.tiles import TILE, complements, padded, workspace

TALL = (8, 4)
"""Rows of the statistics that `add_products` handles at once, unless two or fewer are left."""
PAIR_WIDTHS = (256, 128, 64)
"""Bytes of a row of the statistics that it handles at once if two or fewer are left."""

_add = matrix_products([(rows, width) for width in (64, 32) for rows in TALL], ADD)
_add_pair = matrix_products([(2, width) for width in PAIR_WIDTHS], ADD)


@kernel
def add_products(weighted, features, size, count, statistics):
    """Statistics += weighted.T @ features over the first `count` rows, lower triangle.

    Both are tiles (TILE, width); the first `size` columns of `weighted` are used. A few entries
    above the diagonal are also filled, but never read.
    """
    width, wide, lanes = features.shape[1], statistics.shape[1], 64 // features.itemsize
    for a in range(0, size, 8):
        b, at, end = 0, a * wide, a + 8
        if size - a <= 2:
            while b < end:
                step = 4 * lanes if end - b > 3 * lanes else 2 * lanes if end - b > lanes else lanes
                _add_pair(
                    2,
                    step * features.itemsize,
                    weighted,
                    a,
                    1,
                    width,
                    features,
                    b,
                    width,
                    count,
                    statistics,
                    at + b,
                    wide,
                )
                b += step
        else:
            tall = 8 if size - a > 4 else 4
            while b + lanes <= end:
                _add(
                    tall,
                    64,
                    weighted,
                    a,
                    1,
                    width,
                    features,
                    b,
                    width,
                    count,
                    statistics,
                    at + b,
                    wide,
                )
                b += lanes
            if b < end:
                _add(
                    tall,
                    32,
                    weighted,
                    a,
                    1,
                    width,
                    features,
                    b,
                    width,
                    count,
                    statistics,
                    at + b,
                    wide,
                )


@kernel
def clear(statistics, size):
    """Zero the entries that `add_products` adds to."""
    for a in range(0, size, 8):
        statistics[a : a + 8, : padded(a + 8)] = 0.0


@kernel
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
    of observation n is at index ``n - first`` of `weight` and `shift`.
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
            while at < t * width + size:  # a range with a non-constant step costs a division
                scale(w, features, at, weighted, at)
                at += lanes
            weighted[t, size] = shift[tile + t - first]
        add_products(weighted, features, size + 1, count, statistics)


@kernel
def tiles(flat, bonds, size):
    """Buffers for `accumulate`: the buffers of `complements`, and a tile of weighted features."""
    buffers = workspace(flat, bonds, size)
    return buffers, np.zeros_like(buffers[1])
