"""Building blocks that Numba cannot generate itself: small matrix products in registers.

As plain loops these products are slow: the compiler cannot know that the output does not overlap an
input, and stores every partial sum. Here the sums stay in vector registers until they are complete.
The vectors are generic LLVM vectors, which LLVM splits to the width of the machine. Sums that do
not fit into its registers are taken a few rows at a time, which changes no bit of them.

The code uses parts of Numba and llvmlite that may change between versions. The same functions as
plain loops are in `loops`, and `chosen` picks between the two.
"""

import platform

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from bayesring.kernels.loops import ADD, SUBTRACT


def matrix_products(shapes, effect):
    """Make a compiled product of rows x inner by inner x columns, with inner known at run time.

    Code is generated for each (rows, width) in `shapes`; the number of columns is what `width`
    bytes hold: 64 bytes are 8 of float64 or 16 of float32.

    ``tile(rows, width, left, left_at, left_row, left_step, right, right_at, right_step, inner,
    out, out_at, out_row)`` computes, for i < rows and j < columns,

        sum over q < inner of left[left_at + left_row i + left_step q]
                            * right[right_at + right_step q + j]

    and sets ``out[out_at + out_row i + j]`` to it, adds it there or subtracts it. Indices count
    elements of contiguous arrays; nothing is checked. `left` and `right` have the same type,
    float32 or float64, in which the sum is taken; `out` may be wider. `out` may be `left`.
    """

    @intrinsic
    def tile(
        _,
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
        n = types.intp
        return types.void(n, n, left, n, n, n, right, n, n, n, out, n, n), generate

    def generate(context, builder, signature, arguments):
        rows, width, *rest = arguments
        cases = {
            rows << 16 | width: (rows, width, context, builder, signature, rest)
            for rows, width in shapes
        }
        key = builder.or_(builder.shl(rows, ir.Constant(rows.type, 16)), width)
        _switch(builder, key, cases, generate_shape)
        return context.get_dummy_value()

    def generate_shape(rows, width, context, builder, signature, arguments):
        """Write the loop over q in LLVM IR."""
        left, left_at, left_row, left_step, right, right_at, right_step, inner, *rest = arguments
        out, out_at, out_row = rest
        places = ((2, left), (6, right), (10, out))
        left_data, right_data, out_data = (
            context.make_array(signature.args[place])(context, builder, array).data
            for place, array in places
        )
        columns = width // _size(left_data)
        vector, align = ir.VectorType(left_data.type.pointee, columns), _size(left_data)
        out_vector, out_align = ir.VectorType(out_data.type.pointee, columns), _size(out_data)

        def vector_at(data, place, kind):
            return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())

        row_starts = [left_at]
        for _ in range(1, rows):
            row_starts.append(builder.add(row_starts[-1], left_row))
        zero = ir.Constant(vector, [0.0] * columns)
        place = out_at
        at_once = rows_at_once(rows, width, *registers())
        for first in range(0, rows, at_once):
            starts = row_starts[first : first + at_once]
            sums = [cgutils.alloca_once(builder, vector) for _ in starts]
            for each in sums:
                builder.store(zero, each)
            with cgutils.for_range(builder, inner) as loop:
                step = builder.mul(loop.index, left_step)
                source = builder.add(right_at, builder.mul(loop.index, right_step))
                y = builder.load(vector_at(right_data, source, vector), align=align)
                for start, each in zip(starts, sums, strict=True):
                    x = builder.load(builder.gep(left_data, [builder.add(start, step)]))
                    product = builder.fmul(spread(builder, x, vector), y, flags=("contract",))
                    total = builder.fadd(builder.load(each), product, flags=("contract",))
                    builder.store(total, each)
            for each in sums:
                total = builder.load(each)
                if vector != out_vector:
                    total = builder.fpext(total, out_vector)
                pointer = vector_at(out_data, place, out_vector)
                if effect == ADD:
                    total = builder.fadd(builder.load(pointer, align=out_align), total)
                elif effect == SUBTRACT:
                    total = builder.fsub(builder.load(pointer, align=out_align), total)
                builder.store(total, pointer, align=out_align)
                place = builder.add(place, out_row)

    return tile


def registers():
    """Number of vector registers of the machine that kernels are compiled for, and their bytes."""
    features = config.CPU_FEATURES or binding.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 32, 64
    if platform.machine().lower() in ("x86_64", "amd64"):
        return 16, 32 if "+avx" in features else 16
    return 32, 16


def rows_at_once(rows, width, count, size):
    """Rows of a product, a power of two, whose sums fit into `count` registers of `size` bytes.

    Besides the sums, which take `width` bytes a row, two registers are needed for the factors.
    """
    while rows > 1 and rows * -(-width // size) + 2 > count:
        rows = (rows + 1) // 2
    return rows


def square_products(ranks):
    """Make a compiled product of two rank x rank matrices, with `right` in registers.

    `ranks`, from 3 to 12, lists the ranks for which code is generated.
    ``product(rank, left, left_at, right, right_at, out, out_at)``. Nothing beyond `right` is read;
    up to seven elements beyond `out` are overwritten. `out` must not overlap an input.
    """

    @intrinsic
    def product(_, rank, left, left_at, right, right_at, out, out_at):
        n = types.intp
        return types.void(n, left, n, right, n, out, n), generate

    def generate(context, builder, signature, arguments):
        key, *rest = arguments
        cases = {rank: (rank, context, builder, signature, rest) for rank in ranks}
        _switch(builder, key, cases, generate_rank)
        return context.get_dummy_value()

    def generate_rank(rank, context, builder, signature, arguments):
        left, left_at, right, right_at, out, out_at = arguments
        places = ((1, left, left_at), (3, right, right_at), (5, out, out_at))
        left_data, right_data, out_data = (
            builder.gep(
                context.make_array(signature.args[argument])(context, builder, array).data, [at]
            )
            for argument, array, at in places
        )
        number, align = left_data.type.pointee, _size(left_data)

        def element(data, place):
            return builder.gep(data, [ir.Constant(ir.IntType(64), place)])

        def load(data, place, lanes):
            pointer = element(data, place)
            kind = ir.VectorType(number, lanes).as_pointer()
            return builder.load(builder.bitcast(pointer, kind), align=align)

        # a row is one vector or two, each (first column, lanes)
        if rank <= 8:
            pieces = [(0, 4 if rank <= 4 else 8)]
        else:
            pieces = [(0, 16)] if align == 4 else [(0, 8), (8, 4)]
        right_rows = []
        for q in range(rank):
            vectors = []
            for column, lanes in pieces:
                beyond = column + lanes - rank if q == rank - 1 else 0
                y = load(right_data, rank * q + column - max(beyond, 0), lanes)
                if beyond > 0:  # read to the end of the matrix, and rotate
                    y = _pick(builder, y, [(lane + beyond) % lanes for lane in range(lanes)])
                vectors.append(y)
            right_rows.append(vectors)
        with cgutils.for_range(builder, ir.Constant(ir.IntType(64), rank)) as loop:
            at = builder.mul(loop.index, ir.Constant(ir.IntType(64), rank))
            left_row, out_row = builder.gep(left_data, [at]), builder.gep(out_data, [at])
            xs = [builder.load(element(left_row, q)) for q in range(rank)]
            for piece, (column, lanes) in enumerate(pieces):
                vector = ir.VectorType(number, lanes)
                total = ir.Constant(vector, [0.0] * lanes)
                for x, y in zip(xs, right_rows, strict=True):
                    left_entries = spread(builder, x, vector)
                    term = builder.fmul(left_entries, y[piece], flags=("contract",))
                    total = builder.fadd(total, term, flags=("contract",))
                pointer = builder.bitcast(element(out_row, column), vector.as_pointer())
                builder.store(total, pointer, align=align)

    return product


def thin_product(rank, width):
    """Make a compiled product of 1 x 1 or 2 x 2 matrices, as many at once as fit in `width` bytes.

    ``product(left, left_at, right, right_at, out, out_at)``, with a width of zero for one matrix.
    `out` may be `right`, starting at the same index.
    """

    @intrinsic
    def product(_, left, left_at, right, right_at, out, out_at):
        n = types.intp
        return types.void(left, n, right, n, out, n), generate

    def generate(context, builder, signature, arguments):
        left, left_at, right, right_at, out, out_at = arguments
        places = ((0, left, left_at), (2, right, right_at), (4, out, out_at))
        pointers = []
        for argument, array, at in places:
            data = context.make_array(signature.args[argument])(context, builder, array).data
            vector = ir.VectorType(data.type.pointee, width // _size(data) or rank * rank)
            pointers.append(builder.bitcast(builder.gep(data, [at]), vector.as_pointer()))
        align = _size(data)
        x, y = (builder.load(pointer, align=align) for pointer in pointers[:2])
        if rank == 1:
            total = builder.fmul(x, y)
        else:
            flags = ("contract",)
            first = builder.fmul(
                _pick(builder, x, (0, 0, 2, 2)), _pick(builder, y, (0, 1, 0, 1)), flags=flags
            )
            other = builder.fmul(
                _pick(builder, x, (1, 1, 3, 3)), _pick(builder, y, (2, 3, 2, 3)), flags=flags
            )
            total = builder.fadd(first, other, flags=flags)
        builder.store(total, pointers[2], align=align)
        return context.get_dummy_value()

    return product


@intrinsic
def scale(_, x, source, at, out, out_at):
    """Set ``out[out_at + j]`` to ``x * source[at + j]`` for as many j as fit in 64 bytes.

    `source` and `out` have the same type, float32 or float64, to which `x` is rounded.
    """

    def generate(context, builder, signature, arguments):
        x, source, at, out, out_at = arguments
        pointers = []
        for place, array, start in ((1, source, at), (3, out, out_at)):
            data = context.make_array(signature.args[place])(context, builder, array).data
            vector = ir.VectorType(data.type.pointee, 64 // _size(data))
            pointers.append(builder.bitcast(builder.gep(data, [start]), vector.as_pointer()))
        align = _size(data)
        if x.type != vector.element:
            x = builder.fptrunc(x, vector.element)
        y = builder.load(pointers[0], align=align)
        builder.store(builder.fmul(spread(builder, x, vector), y), pointers[1], align=align)
        return context.get_dummy_value()

    n = types.intp
    return types.void(types.float64, source, n, out, n), generate


def _switch(builder, key, cases, generate):
    """Run the code that `generate` writes for the case with this key; by default the last case.

    `cases` maps integers to the arguments of `generate`. They become one LLVM switch.
    """
    blocks = [builder.append_basic_block("case") for _ in cases]
    end = builder.append_basic_block("end")
    switch = builder.switch(key, blocks[-1])
    for (value, arguments), block in zip(cases.items(), blocks, strict=True):
        if block is not blocks[-1]:
            switch.add_case(ir.Constant(key.type, value), block)
        builder.position_at_end(block)
        generate(*arguments)
        builder.branch(end)
    builder.position_at_end(end)


def _pick(builder, x, places):
    """A vector with the given lanes of each group of equally many lanes of `x`."""
    groups = range(0, x.type.count, len(places))
    lanes = [group + place for group in groups for place in places]
    chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
    return builder.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), chosen)


def _size(data):
    """Size in bytes of the elements, float32 or float64, of a pointer."""
    return 4 if isinstance(data.type.pointee, ir.FloatType) else 8


def spread(builder, x, vector):
    """A vector with `x` in every lane."""
    index = ir.IntType(32)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(index, 0))
    lanes = ir.Constant(ir.VectorType(index, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)
