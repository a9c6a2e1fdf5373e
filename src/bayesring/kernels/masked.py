"""Adam's step on the entries of a slice, in vectors with the last one masked.

As a plain loop the step is slow: slices are short, and the remainder after the full vectors goes
entry by entry through a square root and a division. Here the last vector is masked instead.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayesring.kernels.vectors import spread

LANES = 8


def adam_step(first_decay, second_decay, tiny):
    """Make a compiled step with these decay rates; `tiny` is added to the root in the denominator.

    ``adam(slope, scale, pull, pull_at, first, second, cores, weighted, at, size, share, lift,
    square_lift)`` updates `size` entries from index `at` on; all arrays are contiguous float64.
    Their gradient is ``slope[k] * scale[k] - share * pull[pull_at + k]``. `first` and `second` are
    the moments. `lift` and `square_lift` are the rate and one, each divided by one minus the decay
    rate to the power of the steps taken. `weighted` becomes `cores` times `scale`; it may be
    `cores` if the scale is one.
    """

    @intrinsic
    def adam(
        _,
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
        n, x = types.intp, types.float64
        arrays = first, second, cores, weighted
        return types.void(slope, scale, pull, n, *arrays, n, n, x, x, x), generate

    def generate(context, builder, signature, arguments):
        """Write the loop over vectors in LLVM IR."""
        slope, scale, pull, pull_at, first, second, cores, weighted, at, size, *factors = arguments
        index, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)
        indices, pointer = ir.VectorType(index, LANES), vector.as_pointer()
        mask, align = ir.VectorType(ir.IntType(1), LANES), ir.Constant(ir.IntType(32), 8)

        def function(name, result, *parameters):
            kind = ir.FunctionType(result, parameters)
            return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}")

        suffix = f"v{LANES}f64"
        place = f"{suffix}.p0{suffix}"
        load = function(f"masked.load.{place}", vector, pointer, align.type, mask, vector)
        store = function(f"masked.store.{place}", ir.VoidType(), vector, pointer, align.type, mask)
        root = function(f"sqrt.{suffix}", vector, vector)

        def begin(argument, array, start):
            data = context.make_array(signature.args[argument])(context, builder, array).data
            return builder.gep(data, [start])

        zero = index(0)
        read = [begin(0, slope, zero), begin(1, scale, zero), begin(2, pull, pull_at)]
        changed = [begin(4, first, at), begin(5, second, at), begin(6, cores, at)]
        weighted = begin(7, weighted, at)
        share, lift, square_lift = (spread(builder, each, vector) for each in factors)

        def decay(old, new, rate):
            kept, gained = (ir.Constant(vector, [x] * LANES) for x in (rate, 1 - rate))
            return builder.fadd(builder.fmul(kept, old), builder.fmul(gained, new))

        n_vectors = builder.sdiv(builder.add(size, index(LANES - 1)), index(LANES))
        with cgutils.for_range(builder, n_vectors) as loop:
            k = builder.mul(loop.index, index(LANES))
            own = builder.add(spread(builder, k, indices), ir.Constant(indices, list(range(LANES))))
            inside = builder.icmp_signed("<", own, spread(builder, size, indices))

            def vector_at(start):
                return builder.bitcast(builder.gep(start, [k]), pointer)

            def write(x, start):
                builder.call(store, [x, vector_at(start), align, inside])

            nothing = ir.Constant(vector, [0.0] * LANES)
            slopes, scales, pulls, mean, square, core = (
                builder.call(load, [vector_at(start), align, inside, nothing])
                for start in (*read, *changed)
            )
            up = builder.fsub(builder.fmul(slopes, scales), builder.fmul(share, pulls))
            mean = decay(mean, up, first_decay)
            square = decay(square, builder.fmul(up, up), second_decay)
            deviation = builder.call(root, [builder.fmul(square_lift, square)])
            below = builder.fadd(deviation, ir.Constant(vector, [tiny] * LANES))
            core = builder.fadd(core, builder.fmul(lift, builder.fdiv(mean, below)))
            for x, start in zip((mean, square, core), changed, strict=True):
                write(x, start)
            write(builder.fmul(core, scales), weighted)
        return context.get_dummy_value()

    return adam
