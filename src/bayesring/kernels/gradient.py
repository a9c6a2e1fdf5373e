"""Gradient of the free energy for a batch, and the Adam step on the slices that it touches.

A slice without observations in the batch costs nothing: its gradient is neither computed nor read,
and its moments are unchanged. All arrays with one number per core entry are stored end to end as in
`ring.FlatRing`, slice after slice. In gradient and curvature, the entries of a slice have the order
of the complements they come from; see `tiles`.
"""

import numpy as np

from bayesring.kernels.adam import FIRST, SECOND, adam
from bayesring.kernels.chosen import kernel
from bayesring.kernels.tiles import TILE, complements, workspace


@kernel
def add_gradient(ring, mode, columns, response, rows, totals, sums, touched):
    """Add the observations of a batch to the gradient and curvature of the slices of one core.

    With e_n = s_n - w_n f_n, slice i of A^(d) = G^(d) Lambda^(d) gains the gradient sum e_n T_n and
    the curvature sum w_n T_n^2, entry by entry, equation (19) of docs/model.md. If the batch holds
    c of the n_i observations of a slice, its curvature first decays by that fraction, so it
    reflects roughly the last n_i observations.

    Parameters
    ----------
    ring : flat, starts, bonds, strands of the weighted cores
    columns : (2 D - 1, n) int32, indices of all modes, then of the first D - 1 again, so that the
        other modes follow every mode in ring order
    response : (2, n) e_n and w_n
    rows : first (D,), the first slice of each mode among all slices, and `counts`, which is
        incremented by the number of observations of each slice
    totals : n_i of every slice of every mode, infinite for plain sums
    sums : gradient and curvature
    touched : filled with the touched slices, each once; their number is returned
    """
    flat, starts, bonds, strands = ring
    first_row, counts = rows
    gradient, curvature = sums
    size = strands * bonds[mode - 1] * bonds[mode]
    buffers = workspace(flat, bonds, size)
    tile = buffers[1]
    own, others = columns[mode], columns[mode + 1 : mode + bonds.size]
    n_touched = 0
    for i in own:
        row = first_row[mode] + i
        if counts[row] == 0:
            touched[n_touched] = i
            n_touched += 1
        counts[row] += 1
    for i in touched[:n_touched]:
        row, at = first_row[mode] + i, starts[mode] + i * size
        curvature[at : at + size] *= max(0.0, 1.0 - counts[row] / totals[row])
    for begin in range(0, own.size, TILE):
        count = min(TILE, own.size - begin)
        complements(flat, starts, bonds, strands, mode, others, begin, count, buffers)
        for t in range(count):
            i = own[begin + t]
            slope, weight = response[0, begin + t], response[1, begin + t]
            at = starts[mode] + i * size
            slopes, squares = gradient[at : at + size], curvature[at : at + size]
            features = tile[t]
            for k in range(size):
                slopes[k] += slope * features[k]
                squares[k] += weight * features[k] * features[k]
    return n_touched


@kernel
def natural(turned, at, rows, columns, size, out):
    """Entries of a slice from `turned`, which has the order of complements."""
    for strand in range(0, size, rows * columns):
        for s in range(rows):
            for r in range(columns):
                out[strand + s * columns + r] = turned[at + strand + r * rows + s]


@kernel
def add_weight_gradient(slope, core, rows, columns, out):
    """Add sum_s dF/dA[s, r] G[s, r] for every factor r of a slice: the gradient of lambda_r."""
    for strand in range(out.size // columns):
        for s in range(rows):
            k = (strand * rows + s) * columns
            for r in range(columns):
                out[strand * columns + r] += slope[k + r] * core[k + r]


@kernel
def pull_of_prior(cores, at, size, touched, prior):
    """Omega_i g_i - h_i for each touched slice: the gradient of minus the log prior."""
    precision, diagonal, linear, dense = prior
    gathered = np.empty((touched.size, size))
    for a in range(touched.size):
        own = at + touched[a] * size
        for k in range(size):
            gathered[a, k] = cores[own + k]
    pull = np.dot(gathered, precision) if dense else np.zeros_like(gathered)
    shared = len(linear) == 1
    for a in range(touched.size):
        row = 0 if shared else touched[a]
        for k in range(size):
            pull[a, k] += diagonal[row, k] * gathered[a, k] - linear[row, k]
    return pull


@kernel
def step(
    cores, ring, mode, rows, totals, gradient, moments, weights, prior, touched, movable, rate
):
    """Adam step on the touched slices, increasing the free energy; returns the weights' gradient.

    The prior of slice i is divided equally among its n_i observations, so a batch with c of them
    sees c / n_i of it. Gradients and counts of the slices are reset to zero.

    Parameters
    ----------
    cores : G, flat; A, in `ring`, follows
    totals : n_i of every slice of every mode
    moments : mean and square of the gradients, and Adam's two decay rates to the power of the steps
        taken, per slice
    weights : (S R_d,), lambda^(d), or empty if they stay at one
    prior : precision, diagonal, linear of `SlicePrior`, and whether precision is not zero
    movable : whether a slice moves, for every slice of every mode
    """
    weighted, starts, bonds, strands = ring
    first_row, counts = rows
    first, second, powers = moments
    n_rows, n_columns = bonds[mode - 1], bonds[mode]
    size = strands * n_rows * n_columns
    pull = pull_of_prior(cores, starts[mode], size, touched, prior)
    weight_gradient = np.zeros(weights.size)
    slope, scale = np.empty(size), np.ones(size)
    for strand in range(weights.size // n_columns):
        for s in range(n_rows):
            for r in range(n_columns):
                scale[(strand * n_rows + s) * n_columns + r] = weights[strand * n_columns + r]
    for a in range(touched.size):
        row = first_row[mode] + touched[a]
        at = starts[mode] + touched[a] * size
        share = counts[row] / totals[row]
        counts[row] = 0
        powers[row, 0] *= FIRST
        powers[row, 1] *= SECOND
        natural(gradient, at, n_rows, n_columns, size, slope)
        gradient[at : at + size] = 0.0
        add_weight_gradient(slope, cores[at : at + size], n_rows, n_columns, weight_gradient)
        lift = (rate if movable[row] else 0.0) / (1.0 - powers[row, 0])
        square_lift = 1.0 / (1.0 - powers[row, 1])
        adam(
            slope,
            scale,
            pull,
            a * size,
            first,
            second,
            cores,
            weighted,
            at,
            size,
            share,
            lift,
            square_lift,
        )
    return weight_gradient


@kernel
def learn(
    cores, ring, columns, response, rows, totals, sums, moments, weights, priors, movable, rate
):
    """One batch: the gradients of all cores at their current values, then a step on each.

    `weights` and `priors` have one item per mode, as `step` expects. Returns the gradients of the
    weights of all bonds, end to end.
    """
    order, n = ring[2].size, columns.shape[1]
    touched = np.empty((order, n), np.int64)
    counts = np.empty(order, np.int64)
    n_weights = 0
    for mode in range(order):
        counts[mode] = add_gradient(
            ring, mode, columns, response, rows, totals, sums, touched[mode]
        )
        n_weights += weights[mode].size
    gradients = np.empty(n_weights)
    at = 0
    for mode in range(order):
        own = touched[mode, : counts[mode]]
        gradient = step(
            cores,
            ring,
            mode,
            rows,
            totals,
            sums[0],
            moments,
            weights[mode],
            priors[mode],
            own,
            movable,
            rate,
        )
        gradients[at : at + gradient.size] = gradient
        at += gradient.size
    return gradients
