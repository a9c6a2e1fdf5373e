"""Cholesky factors of padded matrices, and draws from the Gaussians they describe.

The rows of a padded matrix are as long as `padded` says, of which the first `size` entries count,
and there are as many of them.
"""

import numpy as np

from bayesring.kernels.chosen import SET, SUBTRACT, kernel, matrix_products

_set, _subtract = (matrix_products([(8, 64)], effect) for effect in (SET, SUBTRACT))


@kernel
def cholesky(matrix, size, panel):
    """Overwrite the lower triangle of `matrix` with its Cholesky factor, eight columns at a time.

    `matrix` (wide, wide) is padded beyond its `size` to a multiple of eight. For each panel of
    columns, the contribution of the earlier columns is subtracted, then its diagonal block is
    factored and the rows below are multiplied by the inverse of that factor. Returns False if a
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
                at = a * wide
                _subtract(8, 64, matrix, at, wide, 1, panel, 0, 8, k, matrix, at + k, wide)
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
            _set(8, 64, matrix, at, wide, 1, inverse, 0, 8, 8, matrix, at, wide)
    return True


@kernel
def factors(room, wide, n_lower, n_other):
    """Padded matrices for Cholesky factors and what is beside them, in the scratch `room`.

    What is in their padding is never added to what counts, so it may be anything. `room` is taken
    again for every draw: pages of memory that a process sees for the first time are slow.
    """
    size = wide * wide
    lower = room[: n_lower * size].reshape(n_lower, wide, wide)
    return lower, room[n_lower * size : (n_lower + n_other) * size].reshape(n_other, wide, wide)


@kernel
def solve_lower(lower, size, right):
    """Overwrite `right` (K,) with L^-1 right."""
    for j in range(size):
        row = lower[j]
        total = right[j]
        for k in range(j):
            total -= row[k] * right[k]
        right[j] = total / row[j]


@kernel
def solve_lower_matrix(lower, size, matrix):
    """Overwrite the padded `matrix` with L^-1 matrix, eight rows at a time."""
    wide = matrix.shape[1]
    for k in range(0, size, 8):
        if k > 0:
            for b in range(0, size, 8):
                at = k * wide + b
                _subtract(8, 64, lower, k * wide, wide, 1, matrix, b, wide, k, matrix, at, wide)
        for j in range(k, min(k + 8, size)):
            own, row = matrix[j], lower[j]
            for m in range(k, j):
                above, weight = matrix[m], row[m]
                for b in range(size):
                    own[b] -= weight * above[b]
            scale = 1.0 / row[j]
            for b in range(size):
                own[b] *= scale


@kernel
def subtract_product(matrix, size, left, right, symmetric):
    """Subtract left' right from `matrix`, all padded; only the lower triangle if `symmetric`."""
    wide = matrix.shape[1]
    for a in range(0, size, 8):
        for b in range(0, a + 8 if symmetric else size, 8):
            at = a * wide + b
            _subtract(8, 64, left, a, 1, wide, right, b, wide, size, matrix, at, wide)


@kernel
def solve_and_draw(matrix, panel, linear, noise, out):
    """Draw from N(P^-1 h, P^-1): with P = L L', out = L^-T (L^-1 h + noise).

    Overwrites the lower triangle of the padded `matrix` P with L. Zero noise gives the mean.
    Returns False, leaving `out` unusable, if P is not positive definite or anything is not finite.
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
