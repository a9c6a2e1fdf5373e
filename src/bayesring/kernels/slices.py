"""Joint draws of the slices of one core, equations (4) to (6) of docs/model.md.

Inside these kernels a slice is transposed: its K entries are ordered like those of T_n, with entry
(s, r) of strand j at index ``(j R_d + r) R_{d-1} + s``. See `statistics` for its statistics.
"""

import numpy as np

from bayesring.kernels.cholesky import solve_and_draw
from bayesring.kernels.chosen import kernel
from bayesring.kernels.singles import (
    MANY,
    add_single_terms,
    count_singles,
    draw_singles,
    end_of_singles,
    whiten,
)
from bayesring.kernels.statistics import accumulate, clear, tiles
from bayesring.kernels.tiles import complements, padded, workspace


@kernel
def draw_gaussian(precision, linear, noise, out):
    """`solve_and_draw` for a matrix without padding, which is left unchanged."""
    size = linear.size
    wide = padded(size)
    matrix = np.zeros((wide, wide))
    for j in range(size):
        for k in range(j + 1):
            matrix[j, k] = precision[j, k]
    return solve_and_draw(matrix, np.empty((wide, 8)), linear, noise, out)


@kernel
def posterior_terms(statistics, weights, rows, precision, diagonal, linear, out, out_linear):
    """Precision and linear term of a slice, equation (5), lower triangle.

    The features of the slice are c = scale * t with scale[(j R_d + r) R_{d-1} + s] = lambda of
    factor r of strand j, so the statistics of t are scaled and the prior is added; rows is R_{d-1}.
    """
    size = linear.size
    scale = np.empty(size)
    for r in range(weights.size):
        for k in range(r * rows, (r + 1) * rows):
            scale[k] = weights[r]
    for a in range(size):
        row, prior_row, statistics_row = out[a], precision[a], statistics[a]
        own = scale[a]
        for b in range(a + 1):
            row[b] = prior_row[b] + own * scale[b] * statistics_row[b]
        row[a] += diagonal[a]
        out_linear[a] = linear[a] + own * statistics[size, a]


@kernel
def add_weight_terms(statistics, drawn, rows, weight_precision, weight_linear):
    """Add one slice to the statistics of the bond's weights, equation (7).

    With a_n[r] = sum_s G[s, r] T_n[r, s], the sums over the slice's observations follow from the
    statistics: sum w a_r a_q = g_r' P_rq g_q, where g_r is column r of the slice and P_rq the
    block of P for columns r and q. No second pass over the data is needed. Only the lower triangle
    of P is read.
    """
    size = drawn.size
    sums = np.empty(size)
    for r in range(weight_linear.size):
        begin, end = r * rows, (r + 1) * rows
        for b in range(end):
            sums[b] = 0.0
        for a in range(begin, end):
            row, own = statistics[a], drawn[a]
            for b in range(a):
                sums[b] += own * row[b]
            sums[a] += 0.5 * own * row[a]
            weight_linear[r] += own * statistics[size, a]
        for q in range(r + 1):
            total = 0.0
            for b in range(q * rows, (q + 1) * rows):
                total += sums[b] * drawn[b]
            weight_precision[r, q] += total
            weight_precision[q, r] += total


@kernel
def turn(matrix, rows, columns):
    """Transpose the S row-major matrices in the last axis of (n, S * rows * columns)."""
    turned = np.empty_like(matrix)
    for i in range(len(matrix)):
        for at in range(0, matrix.shape[1], rows * columns):
            for s in range(rows):
                for r in range(columns):
                    turned[i, at + r * rows + s] = matrix[i, at + s * columns + r]
    return turned


@kernel
def slice_statistics(flat, starts, bonds, strands, mode, others, bounds, weight, shift):
    """Padded statistics of the observations ``bounds[0]:bounds[-1]``, all of one slice.

    For a slice too large for one block: each block returns its part, and the driver sums them.
    """
    size = strands * bonds[mode - 1] * bonds[mode]
    wide = padded(size + 1)
    statistics = np.zeros((wide, wide))
    accumulate(
        flat,
        starts,
        bonds,
        strands,
        mode,
        others,
        weight,
        shift,
        bounds[0],
        bounds[-1],
        bounds[0],
        tiles(flat, bonds, size),
        statistics,
    )
    return statistics


@kernel
def draw_turned(
    statistics, weights, rows, precision, diagonal, linear, noise, scratch, drawn, totals
):
    """Draw one slice, with prior and result in transposed order, and add it to `totals`.

    `totals` are weight_precision and weight_linear. A failed draw is filled with NaN.
    """
    matrix, panel, out_linear = scratch
    posterior_terms(statistics, weights, rows, precision, diagonal, linear, matrix, out_linear)
    if solve_and_draw(matrix, panel, out_linear, noise, drawn):
        add_weight_terms(statistics, drawn, rows, totals[0], totals[1])
    else:
        drawn[:] = np.nan


@kernel
def solver(size):
    """Scratch for `draw_turned`."""
    wide = padded(size)
    return np.zeros((wide, wide)), np.empty((wide, 8)), np.empty(size)


@kernel
def draw_slice(
    statistics,
    columns,
    weights,
    prior_precision,
    prior_diagonal,
    prior_linear,
    noise,
    weight_precision,
    weight_linear,
):
    """Draw one slice (K,) from its statistics and add it to those of the bond's weights.

    `columns` is R_d. The prior is as in `draw_slices`, with one row. NaN if the draw failed.
    """
    rows = noise.size // weights.size
    drawn = np.empty((1, noise.size))
    draw_turned(
        statistics,
        weights,
        rows,
        turn(turn(prior_precision, rows, columns).T.copy(), rows, columns),
        turn(prior_diagonal, rows, columns)[0],
        turn(prior_linear, rows, columns)[0],
        noise,
        solver(noise.size),
        drawn[0],
        (weight_precision, weight_linear),
    )
    return turn(drawn, columns, rows)[0]


@kernel
def own_row(table, j):
    """Row of slice j in a table with one row per slice, or a single row for all."""
    return 0 if len(table) == 1 else j


@kernel
def draw_slices(
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
    prior_precision,
    prior_diagonal,
    prior_linear,
    prior_factors,
    noise,
):
    """Draw the slices of one block from their joint conditionals, equations (4) to (6).

    Parameters
    ----------
    others : (D - 1, n) int32, indices of the other modes in ring order, sorted by slice
    bounds : (J + 1,) int64, observations of slice j are the columns ``bounds[j]:bounds[j + 1]``
    weight, shift : (n,) float64, the working response w_n, s_n of the block's n observations
    weights : (S R_d,) float64, lambda^(d)
    prior_precision : (K, K); prior_diagonal, prior_linear : (1 or J, K); prior_factors : (1 or J,);
        see `SlicePrior`
    noise : (J, K) float64, standard normal

    Returns
    -------
    slices (J, K), NaN where a draw failed; weight_precision (S R_d, S R_d) and weight_linear
    (S R_d,), the block's share of the statistics of the bond's weights.
    """
    n_slices, size = noise.shape
    rows, columns = bonds[mode - 1], bonds[mode]
    wide = padded(size + 1)
    buffers, scratch = tiles(flat, bonds, size), solver(size)
    statistics = np.empty((wide, wide))
    slices = np.empty((n_slices, size))
    totals = np.zeros((weights.size, weights.size)), np.zeros(weights.size)
    precision = turn(turn(prior_precision, rows, columns).T.copy(), rows, columns)
    diagonal = turn(prior_diagonal, rows, columns)
    linear = turn(prior_linear, rows, columns)
    shared = len(diagonal) == 1 and len(linear) == 1 and len(prior_factors) == 1
    quick = shared and count_singles(bounds) >= MANY
    if quick:
        tile, own = workspace(flat, bonds, size), prior_factors[0] * precision
        quick, inverse, whitened = whiten(own, diagonal[0], linear[0], scratch[1])
    end = 0
    for j in range(n_slices):
        if j < end:
            continue
        if quick and bounds[j + 1] - bounds[j] <= 1:
            end, first = end_of_singles(bounds, j), bounds[j]
            n = bounds[end] - first
            complements(flat, starts, bonds, strands, mode, others, first, n, tile)
            found, w, s = tile[1], weight[first - bounds[0] :], shift[first - bounds[0] :]
            these, drawn = bounds[j : end + 1], slices[j:end]
            draw_singles(these, found, w, s, weights, inverse, whitened, noise[j:end], drawn)
            add_single_terms(these, found, w, s, drawn, totals)
            continue
        clear(statistics, size + 1)
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
            bounds[0],
            buffers,
            statistics,
        )
        factor = prior_factors[own_row(prior_factors, j)]
        draw_turned(
            statistics,
            weights,
            rows,
            precision if factor == 1.0 else factor * precision,
            diagonal[own_row(diagonal, j)],
            linear[own_row(linear, j)],
            noise[j],
            scratch,
            slices[j],
            totals,
        )
    return turn(slices, columns, rows), totals[0], totals[1]
