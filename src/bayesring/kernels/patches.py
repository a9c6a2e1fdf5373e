"""Joint draws of slices of which some depend on each other, equation (50) of docs/model.md.

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
from bayesring.kernels.tiles import padded


@kernel
def around_patch(starts, others, graph_weights, first, n_members, slices):
    """Couplings (m, m) between the members of a patch, and sums (m, K) of what pulls them.

    See `Graph` for the first arguments. Members are the slices from `first` on, of all slices
    (I, K), the last of which comes before the first; they do not pull.
    """
    n = len(slices)
    between = np.zeros((n_members, n_members))
    pull = np.zeros((n_members, slices.shape[1]))
    for i in range(n_members):
        own = (first + i) % n
        for at in range(starts[own], starts[own + 1]):
            j = (others[at] - first) % n
            if j < n_members:
                between[i, j] = graph_weights[at]
            else:
                other = slices[others[at]]
                for k in range(other.size):
                    pull[i, k] += graph_weights[at] * other[k]
    return between, pull


@kernel
def slots(between):
    """Numbers of the blocks above the diagonal that factors have, -1 for zeros, and their count."""
    n = len(between)
    found = np.full((n, n), -1)
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            filled = between[i, j] != 0.0
            for k in range(i):
                filled = filled or (found[k, i] >= 0 and found[k, j] >= 0)
            if filled:
                found[i, j] = count
                count += 1
    return found, count


@kernel
def draw_patch(
    statistics,
    columns,
    weights,
    prior_precision,
    prior_factors,
    prior_diagonal,
    prior_linear,
    between,
    place,
    noise,
    room,
):
    """Draw some slices jointly, given all others.

    Their precision has blocks M_ij = -between_ij Omega beside the diagonal, M = L L'. With L_i on
    the diagonal of L and B_ij' below it, L_i L_i' = M_ii - sum_k B_ki' B_ki and
    B_ij = L_i^-1 (M_ij - sum_k B_ki' B_kj), k < i, for those i and j only where that is not zero.

    Parameters
    ----------
    statistics : (m, wide, wide), padded, of every slice
    columns : R_d
    prior_linear : (m, K), including the pull of the slices outside
    between : (m, m), symmetric
    place : (m, m), numbers of the B_ij, see `slots`
    noise : (m, K) float64, standard normal
    room : scratch for `factors`: L_i of every slice, and B_ij wherever `place` has a number

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
    lowers, bands = factors(room, wide, n_slices, place.max() + 1)
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
            prior_factors[i] * precision,
            diagonal[own_row(diagonal, i)],
            linear[i],
            lower,
            right,
        )
        for k in range(i):
            if place[k, i] >= 0:
                band = bands[place[k, i]]
                subtract_product(lower, size, band, band, True)
                for a in range(size):
                    row, weight = band[a], solved[k, a]
                    for b in range(size):
                        right[b] -= row[b] * weight
        if not cholesky(lower, size, panel):
            return slices, totals[0], totals[1], np.nan
        solve_lower(lower, size, right)
        for k in range(size):
            log_mass += 0.5 * right[k] * right[k] - np.log(lower[k, k])
        for j in range(i + 1, n_slices):
            if place[i, j] < 0:
                continue
            band, factor = bands[place[i, j]], -between[i, j]
            for a in range(size):
                for b in range(size):
                    band[a, b] = factor * precision[a, b]
            for k in range(i):
                if place[k, i] >= 0 and place[k, j] >= 0:
                    left, other = bands[place[k, i]], bands[place[k, j]]
                    subtract_product(band, size, left, other, False)
            solve_lower_matrix(lower, size, band)
    for i in range(n_slices - 1, -1, -1):
        lower, drawn = lowers[i], slices[i]
        for k in range(size):
            drawn[k] = solved[i, k] + noise[i, k]
        for j in range(i + 1, n_slices):
            if place[i, j] >= 0:
                following, band = slices[j], bands[place[i, j]]
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
