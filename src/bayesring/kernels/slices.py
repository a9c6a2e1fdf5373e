"""Statistics and joint draws of the slices of one core, equations (4) to (6) of docs/model.md.

Inside these kernels a slice is transposed: its K entries are ordered as those of T_n, entry (s, r)
of strand j at place ``(j R_d + r) R_{d-1} + s``. Its statistics are one array (K + 1, K), the lower
triangle of P in the first K rows and q in the last, with padding behind both. They are float64,
whatever the precision of the cores; within a tile, sums are taken in that.
"""

import numpy as np
from numba import njit

from bayesring.kernels.tiles import OPTIONS, TILE, complements, padded, workspace
from bayesring.kernels.vectors import ADD, SET, SUBTRACT, matrix_product, scale

_add_8, _set_8, _subtract_8 = (matrix_product(8, 64, what) for what in (ADD, SET, SUBTRACT))
_add_4 = matrix_product(4, 64, ADD)
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


@njit(**OPTIONS)
def cholesky(matrix, size, panel):
    """Overwrite the lower triangle of `matrix` by its Cholesky factor, eight columns at a time.

    `matrix` (wide, wide) has padding behind its `size`, up to a multiple of eight. Each panel of
    columns first loses the share of the columns before it, then its square on the diagonal is
    factored and the rows below are multiplied by the inverse of that factor. Returns False when a
    pivot is not positive and finite. `panel` (wide, 8) is scratch.
    """
    wide = matrix.shape[1]
    inverse = np.zeros((8, 8))
    for k in range(0, size, 8):
        if k > 0:
            for i in range(8):
                row = matrix[k + i]
                for q in range(k):
                    panel[q, i] = row[q]
            for a in range(k, size, 8):
                _subtract_8(matrix, a * wide, wide, 1, panel, 0, 8, k, matrix, a * wide + k, wide)
        end = min(k + 8, size)
        for j in range(k, end):
            row = matrix[j]
            pivot = row[j]
            for m in range(k, j):
                pivot -= row[m] * row[m]
            if not (pivot > 0.0 and pivot < np.inf):
                return False
            row[j] = np.sqrt(pivot)
            scale = 1.0 / row[j]
            for i in range(j + 1, end):
                below = matrix[i]
                total = below[j]
                for m in range(k, j):
                    total -= below[m] * row[m]
                below[j] = total * scale
        if end == size:
            break
        for j in range(8):  # column j of the inverse, stored as row j: the inverse transposed
            for i in range(j, 8):
                total = 1.0 if i == j else 0.0
                for m in range(j, i):
                    total -= matrix[k + i, k + m] * inverse[j, m]
                inverse[j, i] = total / matrix[k + i, k + i]
        for a in range(end, size, 8):
            at = a * wide + k
            _set_8(matrix, at, wide, 1, inverse, 0, 8, 8, matrix, at, wide)
    return True


@njit(**OPTIONS)
def solve_and_draw(matrix, panel, linear, noise, out):
    """Draw from N(P^-1 h, P^-1): with P = L L', out = L^-T (L^-1 h + noise).

    Overwrites the lower triangle of the padded `matrix` P by L. Zero noise gives the mean. Returns
    False, leaving `out` unusable, when P is not positive definite or anything is not finite.
    """
    size = linear.size
    if not cholesky(matrix, size, panel):
        return False
    for j in range(size):
        lower = matrix[j]
        total = 0.0
        for k in range(j):
            total += lower[k] * out[k]
        out[j] = (linear[j] - total) / lower[j]
    for j in range(size):
        out[j] += noise[j]
    for j in range(size - 1, -1, -1):
        lower = matrix[j]
        out[j] /= lower[j]
        if not np.isfinite(out[j]):
            return False
        for k in range(j):
            out[k] -= lower[k] * out[j]
    return True


@njit(**OPTIONS)
def draw_gaussian(precision, linear, noise, out):
    """`solve_and_draw` for a matrix without padding, which it leaves as it is."""
    size = linear.size
    wide = padded(size)
    matrix = np.zeros((wide, wide))
    for j in range(size):
        for k in range(j + 1):
            matrix[j, k] = precision[j, k]
    return solve_and_draw(matrix, np.empty((wide, 8)), linear, noise, out)


@njit(**OPTIONS)
def posterior_terms(statistics, weights, rows, precision, diagonal, linear, out, out_linear):
    """Precision and linear term of a slice, equation (5), lower triangle.

    The features of the slice are c = scale * t with scale[(j R_d + r) R_{d-1} + s] = lambda of
    factor r of strand j, so the statistics of t are scaled and the prior added; rows is R_{d-1}.
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


@njit(**OPTIONS)
def add_weight_terms(statistics, drawn, rows, weight_precision, weight_linear):
    """Add one slice to the statistics of the bond's weights, equation (7).

    With a_n[r] = sum_s G[s, r] T_n[r, s], the sums over the slice's observations follow from the
    statistics: sum w a_r a_q = g_r' P_rq g_q, where g_r is column r of the slice and P_rq the
    block of P that joins columns r and q. No second pass over the data is needed. P is read below
    its diagonal only.
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


@njit(**OPTIONS)
def turn(matrix, rows, columns):
    """Transpose the S matrices, row by row, that the last axis of (n, S * rows * columns) holds."""
    turned = np.empty_like(matrix)
    for i in range(len(matrix)):
        for at in range(0, matrix.shape[1], rows * columns):
            for s in range(rows):
                for r in range(columns):
                    turned[i, at + r * rows + s] = matrix[i, at + s * columns + r]
    return turned


@njit(**OPTIONS)
def slice_statistics(flat, starts, bonds, strands, mode, others, bounds, weight, shift):
    """Statistics of the observations ``bounds[0]:bounds[-1]``, all of one slice, with padding.

    For a slice too large for one block: each block returns its part, the driver adds them up.
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


@njit(**OPTIONS)
def draw_turned(
    statistics, weights, rows, precision, diagonal, linear, noise, scratch, drawn, totals
):
    """Draw one slice, with prior and result in transposed order, and add it to `totals`.

    `totals` are weight_precision and weight_linear. A draw that fails is filled with NaN.
    """
    matrix, panel, out_linear = scratch
    posterior_terms(statistics, weights, rows, precision, diagonal, linear, matrix, out_linear)
    if solve_and_draw(matrix, panel, out_linear, noise, drawn):
        add_weight_terms(statistics, drawn, rows, totals[0], totals[1])
    else:
        drawn[:] = np.nan


@njit(**OPTIONS)
def solver(size):
    """Scratch for `draw_turned`."""
    wide = padded(size)
    return np.zeros((wide, wide)), np.empty((wide, 8)), np.empty(size)


@njit(**OPTIONS)
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

    `columns` is R_d. The prior is that of `draw_slices` with one row. NaN when the draw failed.
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


@njit(**OPTIONS)
def own_row(table, j):
    """Row of slice j in a table that has one for each, or one for all."""
    return 0 if len(table) == 1 else j


@njit(**OPTIONS)
def slice_terms(statistics, columns, weights, size):
    """Sums over a slice's observations in its own order: sum w c c' (K, K) and sum s c (K,)."""
    rows = size // weights.size
    precision, linear = np.zeros((size, size)), np.zeros((1, size))
    for a in range(size):
        own = weights[a // rows]
        linear[0, a] = own * statistics[size, a]
        for b in range(a + 1):
            precision[a, b] = own * weights[b // rows] * statistics[a, b]
            precision[b, a] = precision[a, b]
    natural = turn(turn(precision, columns, rows).T.copy(), columns, rows)
    return natural, turn(linear, columns, rows)[0]


@njit(**OPTIONS)
def weight_terms(statistics, columns, drawn, weight_precision, weight_linear):
    """Add a slice (K,), in its own order, to the statistics of the bond's weights."""
    rows = drawn.size // weight_linear.size
    turned = turn(drawn.reshape(1, drawn.size), rows, columns)[0]
    add_weight_terms(statistics, turned, rows, weight_precision, weight_linear)


@njit(**OPTIONS)
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
    for j in range(n_slices):
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
