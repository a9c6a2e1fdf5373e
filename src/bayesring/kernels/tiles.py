"""Products of slices around the ring, for tiles of observations.

A tile holds up to `TILE` observations, one per row: ``tile[t, (j R_d + r) R_{d-1} + s]`` is
T_t[r, s] of strand j, the complement of observation t strand by strand and row by row. Slices are
read in place, one matrix row per vector, and nothing larger than a tile is ever stored.

Vectors are 64 or 32 bytes wide. If a matrix row is shorter than its vector, the remaining lanes
hold neighbouring numbers. Their results are overwritten by the next row, or end up after the last
row, where they are never read.
"""

import numpy as np

from bayesring.kernels.chosen import SET, kernel, matrix_products, square_products, thin_product

TILE = 32
SPARE = 16
"""Elements beyond the end of an array that a vector may touch: 64 bytes of float32."""
TALL = (8, 4, 2, 1)
"""Rows of a matrix that `multiply` handles at once."""
SQUARES = range(3, 13)
"""Ranks for which `multiply_squares` has code."""
LARGEST_SQUARE = max(SQUARES)

_product = matrix_products([(rows, width) for width in (64, 32) for rows in TALL], SET)
_square = square_products(SQUARES)
_number, _numbers, _pair, _pairs = (
    thin_product(rank, width) for rank in (1, 2) for width in (0, 64)
)


@kernel
def padded(size):
    """A multiple of the longest vector that is no less than `size`.

    Rows of a multiple of 64 numbers would compete for the same lines of a cache.
    """
    wide = (size + SPARE - 1) // SPARE * SPARE
    return wide + SPARE if wide % 64 == 0 else wide


@kernel
def multiply(left, left_at, right, right_at, rows, inner, columns, count, out, out_at, out_step):
    """Product of two matrices for each observation of a tile, all row-major in flat arrays.

    Equivalent to ``out = left.reshape(rows, inner) @ right.reshape(inner, columns)``, with `left`
    starting at index ``left_at[t]``, `right` at ``right_at[t]`` and `out` at
    ``out_at + t * out_step``, for t < count, except that up to `SPARE` elements beyond `right` are
    read and as many beyond `out` are written. For some rows the last columns come first: the
    overwritten start of a row is always written later.
    """
    lanes = 64 // right.itemsize
    row = 0
    while row < rows:
        left_rows = rows - row
        tall = 1
        for many in TALL:
            if many <= left_rows:
                tall = many
                break
        for column in range((columns - 1) // lanes * lanes, -1, -lanes):
            width = 64 if columns - column > lanes // 2 else 32
            for t in range(count):
                a, b = left_at[t] + row * inner, right_at[t] + column
                c = out_at + t * out_step + row * columns + column
                _product(tall, width, left, a, inner, 1, right, b, columns, inner, out, c, columns)
        row += tall


@kernel
def workspace(flat, bonds, size):
    """Buffers for `complements`: numbers, including the tile, and offsets of slices (2, TILE).

    The numbers begin with the tile (TILE, width) of features of length `size`, followed by two
    tiles for intermediate products. All have the precision of the cores.
    """
    lanes = 64 // flat.itemsize
    width, largest = ((size + SPARE - 1) // lanes + 1 | 1) * lanes, 0  # an odd number of lines
    for bond in bonds:
        largest = max(largest, padded(bond * bond + SPARE))
    work = np.zeros(TILE * (width + 2 * largest), flat.dtype)
    return work, work[: TILE * width].reshape(TILE, width), np.empty((2, TILE), np.int64)


@kernel
def complements(flat, starts, bonds, strands, mode, others, first, count, workspace):
    """Complement of each observation of a tile, t < count, one strand after another.

    T_n = A^(d+1)[.] A^(d+2)[.] ... A^(d-1)[.], the product of all the other weighted slices in
    ring order, of shape (R_d, R_{d-1}), multiplied from the last factor to the first. `others`
    (D - 1, M) holds their indices in that order; the tile starts at column `first`.
    """
    rank, equal = bonds[0], bonds.size > 2
    for bond in bonds:
        equal = equal and bond == rank
    if equal and rank <= 2:
        thin_complements(flat, starts, rank, strands, mode, others, first, count, workspace)
    elif equal and rank <= LARGEST_SQUARE:
        square_complements(flat, starts, rank, strands, mode, others, first, count, workspace)
    else:
        for strand in range(strands):
            strand_complements(
                flat, starts, bonds, strands, strand, mode, others, first, count, workspace
            )


@kernel
def multiply_thin(rank, left, left_at, right, right_at, size, out, out_at):
    """Products of all strands of two slices of `size` entries, with every bond `rank`, 1 or 2."""
    lanes = 64 // left.itemsize
    whole = size // lanes * lanes
    if rank == 1:
        for k in range(0, whole, lanes):
            _numbers(left, left_at + k, right, right_at + k, out, out_at + k)
        for k in range(whole, size):
            _number(left, left_at + k, right, right_at + k, out, out_at + k)
    else:
        for k in range(0, whole, lanes):
            _pairs(left, left_at + k, right, right_at + k, out, out_at + k)
        for k in range(whole, size, 4):
            _pair(left, left_at + k, right, right_at + k, out, out_at + k)


@kernel
def thin_complements(flat, starts, rank, strands, mode, others, first, count, workspace):
    """`complements` of strands whose bonds are all 1 or all 2: several strands in one vector."""
    work, tile, _ = workspace
    order, size = starts.size, strands * rank * rank
    last = (mode - 1) % order
    for t in range(count):
        right, out = starts[last] + others[order - 2, first + t] * size, t * tile.shape[1]
        for place in range(order - 3, -1, -1):
            left = starts[(mode + 1 + place) % order] + others[place, first + t] * size
            if place == order - 3:
                multiply_thin(rank, flat, left, flat, right, size, work, out)
            else:
                multiply_thin(rank, flat, left, work, out, size, work, out)


@kernel
def multiply_squares(
    rank,
    flat,
    left_at,
    left_indices,
    step,
    right,
    right_at,
    right_indices,
    right_steps,
    out,
    out_at,
    out_step,
):
    """Product of two matrices for each observation of a tile; every bond has rank `rank`.

    `rank` is one of `SQUARES`. For observation t, the left matrix starts at
    ``left_at + left_indices[t] * step`` of `flat`, the right one at
    ``right_at + right_indices[t] * right_steps[0] + t * right_steps[1]``.
    """
    for t in range(left_indices.size):
        a = left_at + left_indices[t] * step
        b = right_at + right_indices[t] * right_steps[0] + t * right_steps[1]
        c = out_at + t * out_step
        _square(rank, flat, a, right, b, out, c)


@kernel
def square_complements(flat, starts, rank, strands, mode, others, first, count, workspace):
    """`complements` of strands whose bonds are all one of `SQUARES`: one matrix in registers."""
    work, tile, _ = workspace
    order, width, size = starts.size, tile.shape[1], rank * rank
    step, between = strands * size, (work.size // TILE - width) // 2
    last = (mode - 1) % order
    right_indices = others[order - 2, first : first + count]
    for strand in range(0, step, size):
        right, right_at, right_steps = flat, starts[last] + strand, (step, 0)
        buffer, other_buffer = TILE * width, TILE * (width + between)
        for place in range(order - 3, -1, -1):
            core = (mode + 1 + place) % order
            out_at, out_step = (strand, width) if place == 0 else (buffer, between)
            multiply_squares(
                rank,
                flat,
                starts[core] + strand,
                others[place, first : first + count],
                step,
                right,
                right_at,
                right_indices,
                right_steps,
                work,
                out_at,
                out_step,
            )
            right, right_at, right_steps = work, out_at, (0, out_step)
            buffer, other_buffer = other_buffer, buffer


@kernel
def strand_complements(flat, starts, bonds, strands, strand, mode, others, first, count, workspace):
    """`complements` of one strand; what it overwrites beyond its end, the next strand rewrites."""
    work, tile, places = workspace
    order, width = bonds.size, tile.shape[1]
    step = (work.size // TILE - width) // 2
    buffer, other_buffer = TILE * width, TILE * (width + step)
    last = (mode - 1) % order
    columns = bonds[last]
    size = bonds[last - 1] * columns
    begin = strand * bonds[mode] * columns
    left_at, right_at = places
    in_place = order > 2
    for t in range(count):
        right_at[t] = starts[last] + (others[order - 2, first + t] * strands + strand) * size
        if right_at[t] + size + SPARE > flat.size:  # a vector would extend beyond the end
            in_place = False
    if not in_place:
        out, out_step = (begin, width) if order == 2 else (buffer, step)
        for t in range(count):
            for k in range(size):
                work[out + t * out_step + k] = flat[right_at[t] + k]
            right_at[t] = out + t * out_step
    for place in range(order - 3, -1, -1):
        core = (mode + 1 + place) % order
        rows, inner = bonds[core - 1], bonds[core]
        for t in range(count):
            slice_at = others[place, first + t] * strands + strand
            left_at[t] = starts[core] + slice_at * rows * inner
        buffer, other_buffer = other_buffer, buffer
        out, out_step = (begin, width) if place == 0 else (buffer, step)
        if in_place:
            multiply(
                flat, left_at, flat, right_at, rows, inner, columns, count, work, out, out_step
            )
            in_place = False
        else:
            multiply(
                flat, left_at, work, right_at, rows, inner, columns, count, work, out, out_step
            )
        for t in range(count):
            right_at[t] = out + t * out_step
