"""Statistics and joint draws of the slices of one core, equations (4) to (6) of docs/model.md."""

import numpy as np
from numba import njit

from bayesring.kernels.tiles import OPTIONS, TILE, complements, workspace

PANEL = 8


@njit(**OPTIONS)
def padded(size):
    """The next multiple of four: `add_products` works on four rows at a time."""
    return (size + 3) // 4 * 4


@njit(**OPTIONS)
def add_products(weighted, features, size, count, precision):
    """Precision += weighted @ features.T over the first `count` columns, lower triangle.

    Sixteen sums at a time, so that each loaded value is used four times. `size` is a multiple
    of four; a few entries above the diagonal are filled too, and never read.
    """
    for a in range(0, size, 4):
        w0, w1, w2, w3 = weighted[a], weighted[a + 1], weighted[a + 2], weighted[a + 3]
        for b in range(0, a + 1, 4):
            c0, c1, c2, c3 = features[b], features[b + 1], features[b + 2], features[b + 3]
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
            for t in range(count):
                x0, x1, x2, x3 = w0[t], w1[t], w2[t], w3[t]
                y0, y1, y2, y3 = c0[t], c1[t], c2[t], c3[t]
                s00 += x0 * y0
                s01 += x0 * y1
                s02 += x0 * y2
                s03 += x0 * y3
                s10 += x1 * y0
                s11 += x1 * y1
                s12 += x1 * y2
                s13 += x1 * y3
                s20 += x2 * y0
                s21 += x2 * y1
                s22 += x2 * y2
                s23 += x2 * y3
                s30 += x3 * y0
                s31 += x3 * y1
                s32 += x3 * y2
                s33 += x3 * y3
            p0, p1 = precision[a], precision[a + 1]
            p2, p3 = precision[a + 2], precision[a + 3]
            p0[b] += s00
            p0[b + 1] += s01
            p0[b + 2] += s02
            p0[b + 3] += s03
            p1[b] += s10
            p1[b + 1] += s11
            p1[b + 2] += s12
            p1[b + 3] += s13
            p2[b] += s20
            p2[b + 1] += s21
            p2[b + 2] += s22
            p2[b + 3] += s23
            p3[b] += s30
            p3[b + 1] += s31
            p3[b + 2] += s32
            p3[b + 3] += s33


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
    buffers,
    features,
    weighted,
    precision,
    linear,
):
    """Add the observations ``begin:end`` to the statistics of one slice.

    With t_n = vec(T_n'), equation (4): precision += sum w_n t_n t_n', linear += sum s_n t_n.
    """
    size = linear.size
    for first in range(begin, end, TILE):
        count = min(TILE, end - first)
        complements(flat, starts, bonds, strands, mode, others, first, count, buffers, features, 0)
        w = weight[first : first + count]
        s = shift[first : first + count]
        for a in range(size):
            row, scaled = features[a], weighted[a]
            total = 0.0
            for t in range(count):
                scaled[t] = w[t] * row[t]
                total += s[t] * row[t]
            linear[a] += total
        add_products(weighted, features, precision.shape[0], count, precision)


@njit(**OPTIONS)
def cholesky(matrix, panel):
    """Overwrite the lower triangle of `matrix` (K, K) by its Cholesky factor.

    Right-looking, `PANEL` columns at a time: once a panel is factored, its share is taken off all
    that lies to the right, row by row. Returns False when a pivot is not positive and finite.
    `panel` (PANEL, K) is scratch.
    """
    size = matrix.shape[0]
    for begin in range(0, size, PANEL):
        end = min(begin + PANEL, size)
        for k in range(begin, end):
            upper = matrix[k]
            pivot = upper[k]
            for m in range(begin, k):
                pivot -= upper[m] * upper[m]
            if not (pivot > 0.0 and pivot < np.inf):
                return False
            upper[k] = np.sqrt(pivot)
            scale = 1.0 / upper[k]
            for j in range(k + 1, size):
                row = matrix[j]
                total = row[k]
                for m in range(begin, k):
                    total -= row[m] * upper[m]
                row[k] = total * scale
                panel[k - begin, j] = row[k]
        if end == size:
            break
        p0, p1, p2, p3 = panel[0], panel[1], panel[2], panel[3]
        p4, p5, p6, p7 = panel[4], panel[5], panel[6], panel[7]
        for j in range(end, size):
            row = matrix[j]
            c0, c1, c2, c3 = row[begin], row[begin + 1], row[begin + 2], row[begin + 3]
            c4, c5, c6, c7 = row[begin + 4], row[begin + 5], row[begin + 6], row[begin + 7]
            for i in range(end, j + 1):
                row[i] -= (c0 * p0[i] + c1 * p1[i] + c2 * p2[i] + c3 * p3[i]) + (
                    c4 * p4[i] + c5 * p5[i] + c6 * p6[i] + c7 * p7[i]
                )
    return True


@njit(**OPTIONS)
def draw_gaussian(precision, linear, noise, out):
    """Draw from N(P^-1 h, P^-1): with P = L L', out = L^-T (L^-1 h + noise).

    Overwrites the lower triangle of `precision` by L. Zero noise gives the mean. Returns False,
    leaving `out` unusable, when P is not positive definite or anything is not finite.
    """
    size = linear.size
    if not cholesky(precision, np.empty((PANEL, size))):
        return False
    for j in range(size):
        lower = precision[j]
        total = 0.0
        for k in range(j):
            total += lower[k] * out[k]
        out[j] = (linear[j] - total) / lower[j]
    for j in range(size):
        out[j] += noise[j]
    for j in range(size - 1, -1, -1):
        lower = precision[j]
        out[j] /= lower[j]
        if not np.isfinite(out[j]):
            return False
        for k in range(j):
            out[k] -= lower[k] * out[j]
    return True


@njit(**OPTIONS)
def weight_places(size, rank, n_weights):
    """Which of the bond's weights each of the K entries of a slice meets: j R_d + r, (K,)."""
    strand = size // n_weights * rank
    places = np.empty(size, np.int64)
    for k in range(size):
        places[k] = k // strand * rank + k % rank
    return places


@njit(**OPTIONS)
def posterior_terms(
    precision,
    linear,
    places,
    weights,
    prior_precision,
    prior_diagonal,
    prior_linear,
    out,
    out_linear,
):
    """Precision and linear term of a slice, equation (5), lower triangle.

    The features of the slice are c = scale * t with scale = lambda[places], so the statistics
    of t are scaled and the prior added.
    """
    size = linear.size
    scale = weights[places]
    for a in range(size):
        row, prior_row, statistics_row = out[a], prior_precision[a], precision[a]
        own = scale[a]
        for b in range(a + 1):
            row[b] = prior_row[b] + own * scale[b] * statistics_row[b]
        row[a] += prior_diagonal[a]
        out_linear[a] = prior_linear[a] + own * linear[a]


@njit(**OPTIONS)
def add_weight_terms(precision, linear, drawn, places, weight_precision, weight_linear):
    """Add one slice to the statistics of the bond's weights, equation (7).

    With a_n[r] = sum_s G[s, r] T_n[r, s], the sums over the slice's observations follow from
    the statistics of t_n: sum w a_r a_q = sum over s, u of G[s, r] G[u, q] P[(s, r), (u, q)].
    No second pass over the data is needed. P is read below its diagonal only; what lies above
    is added as the transpose.
    """
    n_weights = weight_linear.size
    below = np.zeros((n_weights, n_weights))
    sums = np.empty(n_weights)
    for a in range(linear.size):
        row = precision[a]
        sums[:] = 0.0
        for b in range(a):
            sums[places[b]] += drawn[b] * row[b]
        sums[places[a]] += 0.5 * drawn[a] * row[a]
        own = below[places[a]]
        for q in range(n_weights):
            own[q] += drawn[a] * sums[q]
        weight_linear[places[a]] += drawn[a] * linear[a]
    for r in range(n_weights):
        for q in range(n_weights):
            weight_precision[r, q] += below[r, q] + below[q, r]


@njit(**OPTIONS)
def slice_statistics(flat, starts, bonds, strands, mode, others, weight, shift):
    """Statistics (precision (K, K), lower triangle; linear (K,)) of the observations of one slice.

    For a slice too large for one block: each block returns its part, the driver adds them up.
    """
    size = strands * bonds[mode - 1] * bonds[mode]
    wide = padded(size)
    features = np.zeros((wide, TILE))
    weighted = np.zeros((wide, TILE))
    precision = np.zeros((wide, wide))
    linear = np.zeros(size)
    accumulate(
        flat,
        starts,
        bonds,
        strands,
        mode,
        others,
        weight,
        shift,
        0,
        weight.size,
        workspace(bonds),
        features,
        weighted,
        precision,
        linear,
    )
    return precision[:size, :size].copy(), linear


@njit(**OPTIONS)
def draw_slice(
    precision,
    linear,
    rank,
    weights,
    prior_precision,
    prior_diagonal,
    prior_linear,
    noise,
    weight_precision,
    weight_linear,
):
    """Draw one slice from its statistics and add it to those of the bond's weights.

    `rank` is R_d, `weights` (S R_d,) lambda^(d). Returns (K,) the slice, filled with NaN when the draw failed.
    """
    size = linear.size
    out = np.empty((size, size))
    out_linear = np.empty(size)
    drawn = np.empty(size)
    places = weight_places(size, rank, weights.size)
    posterior_terms(
        precision,
        linear,
        places,
        weights,
        prior_precision,
        prior_diagonal,
        prior_linear,
        out,
        out_linear,
    )
    if draw_gaussian(out, out_linear, noise, drawn):
        add_weight_terms(precision, linear, drawn, places, weight_precision, weight_linear)
    else:
        drawn[:] = np.nan
    return drawn


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
    noise,
):
    """Draw the slices of one block from their joint conditionals, equations (4) to (6).

    Parameters
    ----------
    others : (n, D - 1) int32, indices of the other modes in ring order, sorted by slice
    bounds : (J + 1,) int64, observations of slice j are ``bounds[j]:bounds[j + 1]``
    weight, shift : (n,) float64, the working response w_n, s_n
    weights : (S R_d,) float64, lambda^(d)
    prior_precision : (K, K); prior_diagonal, prior_linear : (1 or J, K), see `SlicePrior`
    noise : (J, K) float64, standard normal

    Returns
    -------
    slices (J, K), NaN where a draw failed; weight_precision (S R_d, S R_d) and weight_linear (S R_d,),
    the block's share of the statistics of the bond's weights.
    """
    n_slices, size = noise.shape
    wide = padded(size)
    buffers = workspace(bonds)
    features = np.zeros((wide, TILE))
    weighted = np.zeros((wide, TILE))
    precision = np.empty((wide, wide))
    linear = np.empty(size)
    slices = np.empty((n_slices, size))
    weight_precision = np.zeros((weights.size, weights.size))
    weight_linear = np.zeros(weights.size)
    shared = prior_linear.shape[0] == 1
    for j in range(n_slices):
        precision[:] = 0.0
        linear[:] = 0.0
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
            buffers,
            features,
            weighted,
            precision,
            linear,
        )
        row = 0 if shared else j
        slices[j] = draw_slice(
            precision[:size, :size],
            linear,
            bonds[mode],
            weights,
            prior_precision,
            prior_diagonal[row],
            prior_linear[row],
            noise[j],
            weight_precision,
            weight_linear,
        )
    return slices, weight_precision, weight_linear
