"""The building blocks of `vectors` and `masked` as plain loops, which need only `njit`.

Signatures are the same, and results are the same up to rounding. They are slower, and used where
the others do not work or are disabled; see `chosen`.
"""

import numpy as np
from numba import njit

SET, ADD, SUBTRACT = 0, 1, -1
_OPTIONS = {"nogil": True, "fastmath": {"contract", "reassoc"}}


def matrix_products(shapes, effect):
    """`vectors.matrix_products` for every shape, whatever the table `shapes` contains."""

    @njit(**_OPTIONS)
    def tile(
        rows,
        width,
        left,
        left_at,
        left_row,
        left_step,
        right,
        right_at,
        right_step,
        inner,
        out,
        out_at,
        out_row,
    ):
        x, y, z = left.reshape(left.size), right.reshape(right.size), out.reshape(out.size)
        columns = width // left.itemsize
        sums = np.empty(columns, left.dtype)
        for i in range(rows):
            sums[:] = 0
            for q in range(inner):
                factor = x[left_at + left_row * i + left_step * q]
                at = right_at + right_step * q
                for j in range(columns):
                    sums[j] += factor * y[at + j]
            at = out_at + out_row * i
            for j in range(columns):
                if effect == ADD:
                    z[at + j] += sums[j]
                elif effect == SUBTRACT:
                    z[at + j] -= sums[j]
                else:
                    z[at + j] = sums[j]

    return tile


def square_products(ranks):
    """`vectors.square_products` for every rank, whatever the table `ranks` contains."""

    @njit(**_OPTIONS)
    def product(rank, left, left_at, right, right_at, out, out_at):
        for i in range(rank):
            at = out_at + rank * i
            for j in range(rank):
                out[at + j] = 0
            for q in range(rank):
                factor = left[left_at + rank * i + q]
                for j in range(rank):
                    out[at + j] += factor * right[right_at + rank * q + j]

    return product


def thin_product(rank, width):
    """`vectors.thin_product`."""
    size = rank * rank

    @njit(**_OPTIONS)
    def product(left, left_at, right, right_at, out, out_at):
        count = width // left.itemsize // size if width else 1
        for k in range(0, count * size, size):
            a, b, c = left_at + k, right_at + k, out_at + k
            if rank == 1:
                out[c] = left[a] * right[b]
            else:
                first, second = right[b], right[b + 1]  # `out` may be `right`
                third, fourth = right[b + 2], right[b + 3]
                out[c] = left[a] * first + left[a + 1] * third
                out[c + 1] = left[a] * second + left[a + 1] * fourth
                out[c + 2] = left[a + 2] * first + left[a + 3] * third
                out[c + 3] = left[a + 2] * second + left[a + 3] * fourth

    return product


@njit(**_OPTIONS)
def scale(x, source, at, out, out_at):
    """`vectors.scale`."""
    y, z = source.reshape(source.size), out.reshape(out.size)
    factor = source.dtype.type(x)
    for j in range(64 // source.itemsize):
        z[out_at + j] = factor * y[at + j]


def adam_step(first_decay, second_decay, tiny):
    """`masked.adam_step`."""

    @njit(**_OPTIONS)
    def adam(
        slope,
        scale,
        pull,
        pull_at,
        first,
        second,
        cores,
        weighted,
        at,
        size,
        share,
        lift,
        square_lift,
    ):
        pulls = pull.reshape(pull.size)
        for k in range(size):
            own = at + k
            up = slope[k] * scale[k] - share * pulls[pull_at + k]
            mean = first_decay * first[own] + (1 - first_decay) * up
            square = second_decay * second[own] + (1 - second_decay) * (up * up)
            first[own], second[own] = mean, square
            core = cores[own] + lift * (mean / (np.sqrt(square_lift * square) + tiny))
            cores[own] = core
            weighted[own] = core * scale[k]

    return adam
