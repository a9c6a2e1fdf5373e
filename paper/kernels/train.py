"""Squared error of a tensor train at observations, and its gradient."""

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}


@njit(**OPTIONS)
def chain(flat, starts, bonds, columns, n, left):
    """Fill ``left[d + 1]`` with the row vector G^(1)[i_1] ... G^(d+1)[i_(d+1)]; `left[0]` is one.

    The entry of the train at observation n is ``left[D, 0]``.
    """
    left[0, 0] = 1.0
    for d in range(len(columns)):
        rows, width = bonds[d], bonds[d + 1]
        at = starts[d] + columns[d, n] * rows * width
        for r in range(width):
            left[d + 1, r] = 0.0
        for s in range(rows):
            x = left[d, s]
            for r in range(width):
                left[d + 1, r] += x * flat[at + s * width + r]


@njit(**OPTIONS)
def train_entries(flat, starts, bonds, columns):
    """Entries of a tensor train at the coordinates `columns` (D, n).

    Core d begins at ``starts[d]`` of `flat`; its slices are (bonds[d], bonds[d + 1]), row by row.
    """
    order, n_entries = columns.shape
    left = np.empty((order + 1, np.max(bonds)))
    entries = np.empty(n_entries)
    for n in range(n_entries):
        chain(flat, starts, bonds, columns, n, left)
        entries[n] = left[order, 0]
    return entries


@njit(**OPTIONS)
def train_loss(flat, starts, bonds, columns, values, gradient):
    """Half the sum of squared errors; its gradient is added to `gradient`, laid out like `flat`.

    With l the product of the slices before mode d and r the product of those after it, the gradient
    in slice i of core d is sum_n (f_n - y_n) l_n r_n' over the observations of the slice.
    """
    order, n_entries = columns.shape
    left = np.empty((order + 1, np.max(bonds)))
    right, before = np.empty((2, np.max(bonds)))
    loss = 0.0
    for n in range(n_entries):
        chain(flat, starts, bonds, columns, n, left)
        residual = left[order, 0] - values[n]
        loss += 0.5 * residual * residual
        right[0] = residual
        for d in range(order - 1, -1, -1):
            rows, width = bonds[d], bonds[d + 1]
            at = starts[d] + columns[d, n] * rows * width
            for s in range(rows):
                x, total = left[d, s], 0.0
                for r in range(width):
                    gradient[at + s * width + r] += x * right[r]
                    total += flat[at + s * width + r] * right[r]
                before[s] = total
            right, before = before, right
    return loss
