"""Slices with one observation or none, drawn by the factor of the prior they share.

No matrix is factored for them, equation (6'') of docs/model.md. Slices are transposed, as in
`slices`.
"""

import numpy as np

from bayesring.kernels.cholesky import cholesky, solve_lower
from bayesring.kernels.chosen import SET, kernel, matrix_products
from bayesring.kernels.tiles import TILE, padded

MANY = 256
"""Such slices of a block from which on they are drawn in this way; the draws of smaller blocks are
those of all other slices, bit for bit."""

_product = matrix_products([(8, 64)], SET)


@kernel
def count_singles(bounds):
    """Number of slices with at most one observation."""
    found = 0
    for j in range(bounds.size - 1):
        if bounds[j + 1] - bounds[j] <= 1:
            found += 1
    return found


@kernel
def end_of_singles(bounds, j):
    """End of the slices with at most one observation each from slice j on, a tile of them."""
    end = j
    while end + 1 < bounds.size and end < j + TILE:
        if bounds[end + 1] - bounds[end] > 1:
            break
        end += 1
    return end


@kernel
def whiten(precision, diagonal, linear, panel):
    """Whether the precision L L' of a prior can be factored; L^-1, padded, and L^-1 h.

    `linear` is h, the linear term of the prior; `panel` is scratch.
    """
    size = linear.size
    lower = np.zeros((padded(size), padded(size)))
    for a in range(size):
        for b in range(a + 1):
            lower[a, b] = precision[a, b]
        lower[a, a] += diagonal[a]
    found = cholesky(lower, size, panel)
    inverse, column, whitened = np.zeros_like(lower), np.empty(size), linear.copy()
    if found:
        solve_lower(lower, size, whitened)
        for k in range(size):
            column[:] = 0.0
            column[k] = 1.0
            solve_lower(lower, size, column)
            inverse[:size, k] = column
    return found, inverse, whitened


@kernel
def draw_singles(bounds, complements, weight, shift, weights, inverse, whitened, noise, slices):
    """Draw up to a tile of slices with at most one observation each, equation (6'').

    `bounds` are those of the slices, within `complements` (n, K) and the working response. The
    precision of a slice is L (I + w q q') L' with q = L^-1 c, of which L (I + b q q') is a root.
    Slices lie side by side, (K, TILE), so that the same is done to all of them at once; w is zero
    where there is no observation. A failed draw is filled with NaN.
    """
    count, size = slices.shape
    rows, wide = size // weights.size, len(inverse)
    features, along = np.zeros((wide, TILE)), np.empty((wide, TILE))
    w, s, length, along_mean, along_noise = np.zeros((5, TILE))
    for t in range(count):
        if bounds[t + 1] > bounds[t]:
            n = bounds[t] - bounds[0]
            w[t], s[t] = weight[n], shift[n]
            for k in range(size):
                features[k, t] = weights[k // rows] * complements[n, k]
    for a in range(0, size, 8):
        for b in range(0, TILE, 8):
            at = a * TILE + b
            _product(8, 64, inverse, a * wide, wide, 1, features, b, TILE, a + 8, along, at, TILE)
    scores = features  # no longer needed
    for k in range(size):
        z, q, mean = scores[k], along[k], whitened[k]
        for t in range(count):
            z[t] = noise[t, k]
        for t in range(TILE):
            length[t] += q[t] * q[t]
            along_mean[t] += q[t] * mean
            along_noise[t] += q[t] * z[t]
    for t in range(TILE):
        v = 1.0 + w[t] * length[t]
        if not v < np.inf:  # divided by infinity, the observation would not count
            v = np.nan
        along_mean[t] = (s[t] - w[t] * along_mean[t]) / v
        along_mean[t] -= w[t] * along_noise[t] / (v + np.sqrt(v))
    for k in range(size):
        z, q, mean = scores[k], along[k], whitened[k]
        for t in range(TILE):
            z[t] += mean + along_mean[t] * q[t]
    drawn = along  # no longer needed
    for a in range(0, size, 8):
        for b in range(0, TILE, 8):
            at, left = a * TILE + b, a * wide + a
            _product(8, 64, inverse, left, 1, wide, scores, at, TILE, size - a, drawn, at, TILE)
    for t in range(count):
        finite = True
        for k in range(size):
            slices[t, k] = drawn[k, t]
            finite = finite and np.isfinite(drawn[k, t])
        if not finite:
            slices[t] = np.nan


@kernel
def add_single_terms(bounds, complements, weight, shift, slices, totals):
    """Add slices with at most one observation each to the statistics of the bond's weights (7).

    Those that could not be drawn are left out.
    """
    weight_precision, weight_linear = totals
    rows = slices.shape[1] // weight_linear.size
    a = np.empty(weight_linear.size)
    for t in range(len(slices)):
        if bounds[t + 1] == bounds[t] or np.isnan(slices[t, 0]):
            continue
        n = bounds[t] - bounds[0]
        for r in range(a.size):
            total = 0.0
            for k in range(r * rows, (r + 1) * rows):
                total += slices[t, k] * complements[n, k]
            a[r] = total
            weight_linear[r] += shift[n] * total
            for q in range(r):
                weight_precision[r, q] += weight[n] * total * a[q]
                weight_precision[q, r] += weight[n] * total * a[q]
            weight_precision[r, r] += weight[n] * total * total
