"""Entry-by-entry draws of the slices of one core, the paper's own form.

Residuals are kept up to date, so a mode costs O(M R^2) once the complements are known. Mixes more
slowly than joint draws, and is valid only for priors with independent entries.
"""

import numpy as np

from bayesring.kernels.chosen import kernel
from bayesring.kernels.slices import turn
from bayesring.kernels.statistics import add_products
from bayesring.kernels.tiles import TILE, complements, padded, workspace


@kernel
def draw_entries(
    flat,
    starts,
    bonds,
    strands,
    mode,
    others,
    bounds,
    weight,
    shift,
    weights,
    slices,
    prior_diagonal,
    prior_linear,
    noise,
):
    """Draw each entry of the slices of one block given all the others, equation (6').

    Parameters
    ----------
    others, bounds, weight, shift, weights : as in `kernels.slices.draw_slices`
    slices : (J, K) the current slices
    prior_diagonal, prior_linear : (1 or J, K), see `SlicePrior`
    noise : (J, K) standard normal

    Returns
    -------
    As `kernels.slices.draw_slices`: slices, NaN where a draw failed, and the block's share of the
    statistics of the bond's weights.
    """
    n_slices, size = noise.shape
    rows, columns, rank = bonds[mode - 1], bonds[mode], weights.size
    places = turn(np.arange(size).reshape(1, size), columns, rows)[0]  # positions in a tile
    factors = places // rows  # factors whose weights multiply the entries
    widest = 0
    for j in range(n_slices):
        widest = max(widest, bounds[j + 1] - bounds[j])
    buffers = workspace(flat, bonds, size)
    features = np.empty((size, widest))
    residual = np.empty(widest)
    drawn = slices.copy()
    weight_precision = np.zeros((rank, rank))
    weight_linear = np.zeros(rank)
    for j in range(n_slices):
        begin, count = bounds[j] - bounds[0], bounds[j + 1] - bounds[j]
        for column in range(0, count, TILE):
            some = min(TILE, count - column)
            first = bounds[j] + column
            complements(flat, starts, bonds, strands, mode, others, first, some, buffers)
            for k in range(size):
                for t in range(some):
                    features[k, column + t] = buffers[1][t, places[k]]
        row = 0 if prior_linear.shape[0] == 1 else j
        draw_entries_of_slice(
            features,
            weight[begin : begin + count],
            shift[begin : begin + count],
            weights[factors],
            prior_diagonal[row],
            prior_linear[row],
            noise[j],
            residual[:count],
            drawn[j],
        )
        add_weight_products(
            features,
            weight[begin : begin + count],
            shift[begin : begin + count],
            drawn[j],
            factors,
            weight_precision,
            weight_linear,
        )
    return drawn, weight_precision, weight_linear


@kernel
def draw_entries_of_slice(
    features, weight, shift, scales, prior_diagonal, prior_linear, noise, residual, entries
):
    """Draw the entries of one slice in turn, in place, keeping e_n = s_n - w_n f_n up to date.

    For entry k, let c_n = scale_k t_n[k], its weight times its feature, and g the entry before the
    draw. The precision is p = prior + sum w c^2, the linear term prior + sum c e + g sum w c^2.
    """
    count, size = weight.size, entries.size
    residual[:] = 0.0
    for k in range(size):
        scaled = scales[k] * entries[k]
        feature = features[k]
        for t in range(count):
            residual[t] += scaled * feature[t]
    for t in range(count):
        residual[t] = shift[t] - weight[t] * residual[t]
    for k in range(size):
        feature = features[k]
        scale = scales[k]
        squares = products = 0.0
        for t in range(count):
            squares += weight[t] * feature[t] * feature[t]
            products += feature[t] * residual[t]
        squares *= scale * scale
        precision = prior_diagonal[k] + squares
        old = entries[k]
        linear = prior_linear[k] + scale * products + squares * old
        new = linear / precision + noise[k] / np.sqrt(precision)
        entries[k] = new
        change = scale * (new - old)
        for t in range(count):
            residual[t] -= change * weight[t] * feature[t]


@kernel
def add_weight_products(features, weight, shift, entries, factors, weight_precision, weight_linear):
    """Add one slice's observations to sum w a a' and sum s a, equation (7), from the features."""
    rank = weight_linear.size
    wide = padded(rank)
    a, weighted = np.zeros((TILE, wide)), np.zeros((TILE, wide))
    total = np.zeros((wide, wide))
    for column in range(0, weight.size, TILE):
        count = min(TILE, weight.size - column)
        a[:] = 0.0
        for k in range(entries.size):
            for t in range(count):
                a[t, factors[k]] += entries[k] * features[k, column + t]
        for t in range(count):
            for r in range(rank):
                weighted[t, r] = weight[column + t] * a[t, r]
                weight_linear[r] += shift[column + t] * a[t, r]
        add_products(weighted, a, rank, count, total)
    for r in range(rank):
        for q in range(r + 1):
            weight_precision[r, q] += total[r, q]
            if q < r:
                weight_precision[q, r] += total[r, q]
