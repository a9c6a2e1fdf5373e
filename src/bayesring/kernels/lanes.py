"""One vector instruction that Numba cannot write by itself: products of matrices in lanes.

Sixteen observations stand side by side in the lanes of a vector. Written as a loop, the product
of their matrices is slow, because the compiler cannot know that the output overlaps no input
and stores every partial sum. Here the sum stays in a register. The vector is a generic one of
LLVM, which cuts it to the width that the machine has.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@intrinsic
def dot_lanes(_, left, left_at, right, right_at, right_step, inner, out, out_at):
    """out[out_at + t] = sum_q left[left_at + 16 q + t] * right[right_at + right_step q + t].

    For t = 0..15 and q = 0..inner - 1. Offsets count elements of contiguous arrays of float64;
    nothing is checked.
    """
    integer = types.intp
    signature = types.void(left, integer, right, integer, integer, integer, out, integer)
    return signature, _generate


def _generate(context, builder, signature, arguments):
    """Write the loop over q in LLVM's language."""
    left, left_at, right, right_at, right_step, inner, out, out_at = arguments
    left_data, right_data, out_data = (
        context.make_array(signature.args[place])(context, builder, array).data
        for place, array in ((0, left), (2, right), (6, out))
    )

    def vector_at(data, offset):
        return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())

    zero = ir.Constant(_VECTOR, [0.0] * LANES)
    total = cgutils.alloca_once_value(builder, zero)
    builder.store(zero, total)
    left_step = ir.Constant(inner.type, LANES)
    with cgutils.for_range(builder, inner) as loop:
        left_offset = builder.add(left_at, builder.mul(loop.index, left_step))
        right_offset = builder.add(right_at, builder.mul(loop.index, right_step))
        x = builder.load(vector_at(left_data, left_offset), align=8)
        y = builder.load(vector_at(right_data, right_offset), align=8)
        product = builder.fmul(x, y, flags=("contract",))
        builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
    builder.store(builder.load(total), vector_at(out_data, out_at), align=8)
    return context.get_dummy_value()
