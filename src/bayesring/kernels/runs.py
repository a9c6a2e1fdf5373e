"""Joint draws of consecutive slices whose prior is a chain, equation (25) of docs/model.md.

Slices are transposed inside these kernels, as in `slices`.
"""

import numpy as np

from bayesring.kernels.cholesky import (
    cholesky,
    factors,
    solve_lower,
    solve_lower_matrix,
    subtract_product,
)
from bayesring.kernels.chosen import kernel
from bayesring.kernels.slices import add_weight_terms, own_row, posterior_terms, turn
from bayesring.kernels.statistics import accumulate, tiles
from bayesring.kernels.tiles import padded


@kernel
def run_statistics(flat, starts, bonds, strands, mode, others, bounds, weight, shift):
    """Padded statistics of consecutive slices, (m, wide, wide).

    Slice j has the observations ``bounds[j]:bounds[j + 1]``; the working response of observation n
    is at index n.
    """
    size = strands * bonds[mode - 1] * bonds[mode]
    wide = padded(size + 1)
    statistics = np.zeros((bounds.size - 1, wide, wide))
    buffers = tiles(flat, bonds, size)
    for j in range(bounds.size - 1):
        accumulate(
            flat,
            starts,
            bonds,
            strands,
            mode,
            others,
            weight,
            shift,
            bounds[j],
            bounds[j + 1],
            0,
            buffers,
            statistics[j],
        )
    return statistics


@kernel
def draw_run(
    statistics,
    columns,
    weights,
    prior_precision,
    prior_factors,
    prior_diagonal,
    prior_linear,
    prior_links,
    noise,
    room,
):
    """Draw consecutive slices jointly, given the ones before and after them.

    Their precision is block tridiagonal, M = L L'. With L_i on the diagonal of L and B_i' below it,
    L_i L_i' = M_ii - B_{i-1}' B_{i-1} and B_i = L_i^-1 M_{i,i+1}; the draw is
    L^-T (L^-1 h + noise), forward and then backward.

    Parameters
    ----------
    statistics : (m, wide, wide), padded, of every slice
    columns : R_d
    prior_linear : (m, K), including the pull of the slices before and after the run
    prior_links : (m - 1,), see `SlicePrior`
    noise : (m, K) float64, standard normal
    room : scratch for `factors`, with one L_i and one B_i for each slice

    Returns
    -------
    slices (m, K), NaN if the draw failed; weight_precision and weight_linear, as in `draw_slices`;
    h' M^-1 h / 2 - log|M| / 2.
    """
    n_slices, size = noise.shape
    rows = size // weights.size
    wide = padded(size)
    precision = turn(turn(prior_precision, rows, columns).T.copy(), rows, columns)
    diagonal = turn(prior_diagonal, rows, columns)
    linear = turn(prior_linear, rows, columns)
    lowers, bands = factors(room, wide, n_slices, n_slices)
    solved = np.empty((n_slices, size))
    slices = np.full((n_slices, size), np.nan)
    totals = np.zeros((weights.size, weights.size)), np.zeros(weights.size)
    panel = np.empty((wide, 8))
    log_mass = 0.0
    for i in range(n_slices):
        lower, right = lowers[i], solved[i]
        posterior_terms(
            statistics[i],
            weights,
            rows,
            prior_factors[own_row(prior_factors, i)] * precision,
            diagonal[own_row(diagonal, i)],
            linear[i],
            lower,
            right,
        )
        if i > 0 and prior_links[i - 1] != 0.0:
            band = bands[i - 1]
            subtract_product(lower, size, band, band, True)
            for k in range(size):
                row, weight = band[k], solved[i - 1, k]
                for b in range(size):
                    right[b] -= row[b] * weight
        if not cholesky(lower, size, panel):
            return slices, totals[0], totals[1], np.nan
        solve_lower(lower, size, right)
        for k in range(size):
            log_mass += 0.5 * right[k] * right[k] - np.log(lower[k, k])
        if i + 1 < n_slices and prior_links[i] != 0.0:
            band, factor = bands[i], -prior_links[i]
            for a in range(size):
                for b in range(size):
                    band[a, b] = factor * precision[a, b]
            solve_lower_matrix(lower, size, band)
    for i in range(n_slices - 1, -1, -1):
        lower, drawn = lowers[i], slices[i]
        for k in range(size):
            drawn[k] = solved[i, k] + noise[i, k]
        if i + 1 < n_slices and prior_links[i] != 0.0:
            following, band = slices[i + 1], bands[i]
            for k in range(size):
                total = 0.0
                for b in range(size):
                    total += band[k, b] * following[b]
                drawn[k] -= total
        for j in range(size - 1, -1, -1):
            row = lower[j]
            drawn[j] /= row[j]
            for k in range(j):
                drawn[k] -= row[k] * drawn[j]
        add_weight_terms(statistics[i], drawn, rows, totals[0], totals[1])
    return turn(slices, columns, rows), totals[0], totals[1], log_mass
