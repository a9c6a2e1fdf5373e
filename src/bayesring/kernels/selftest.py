"""Check that the building blocks of `vectors` and `masked` work here: small cases against NumPy.

Run as a program, it exits with `WORKS`, or with `FAILS` and the reason as the last line of stderr.
A badly broken block may crash the process instead.
"""

import sys

import numpy as np
from numba import njit

WORKS, FAILS = 0, 3
SPARE = 16
SHAPES = ((8, 64), (8, 32), (4, 64), (4, 32), (2, 256), (2, 128), (2, 64), (1, 64), (1, 32))
RANKS = (3, 4, 5, 8, 9, 12)
"""At least one case of every way to split a row into vectors."""
DECAYS = (0.9, 0.999, 1e-8)


def failure() -> str:
    """What is wrong with the building blocks; empty if they work."""
    try:
        from bayesring.kernels import masked, vectors

        rng = np.random.default_rng(0)
        for dtype in (np.float64, np.float32):
            check_products(vectors, rng, dtype)
        check_adam(masked, rng)
    except Exception as error:  # anything a new version may raise
        first_line = (str(error).strip() or "no message").splitlines()[0]
        return f"{type(error).__name__}: {first_line}"
    return ""


def check_products(vectors, rng, dtype):
    """Compare every kind of product with NumPy."""
    product = vectors.matrix_products(SHAPES, vectors.ADD)
    square, scale = vectors.square_products(RANKS), vectors.scale
    number, numbers, pair, pairs = (vectors.thin_product(r, w) for r in (1, 2) for w in (0, 64))

    @njit
    def run_product(rows, width, left, right, inner, columns, out):
        product(rows, width, left, 0, inner, 1, right, 0, columns, inner, out, 0, columns)

    @njit
    def run_square(rank, left, right, out):
        square(rank, left, 0, right, 0, out, 0)

    @njit
    def run_thin(left, right, out):
        lanes = 64 // left.itemsize
        numbers(left, 0, right, 0, out, 0)
        number(left, lanes, right, lanes, out, lanes)
        pairs(left, 2 * lanes, right, 2 * lanes, out, 2 * lanes)
        pair(left, 3 * lanes, right, 3 * lanes, out, 3 * lanes)
        scale(0.3, left, 0, out, 4 * lanes)

    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    inner = 5
    for rows, width in SHAPES:
        columns = width // dtype().itemsize
        left = rng.standard_normal((rows, inner)).astype(dtype)
        right = rng.standard_normal((inner, columns)).astype(dtype)
        out = np.ones(rows * columns + SPARE)
        run_product(rows, width, left, right, inner, columns, out)
        compare(out[: rows * columns], 1 + (left @ right).ravel(), tolerance)
        compare(out[rows * columns :], np.ones(SPARE), 0)
    for rank in RANKS:
        left, right = rng.standard_normal((2, rank, rank)).astype(dtype)
        out = np.zeros(rank * rank + SPARE, dtype)
        run_square(rank, left.ravel(), right.ravel(), out)
        compare(out[: rank * rank], (left @ right).ravel(), tolerance)
    lanes = 64 // dtype().itemsize
    left, right = rng.standard_normal((2, 4 * lanes)).astype(dtype)
    out = np.zeros(5 * lanes + SPARE, dtype)
    run_thin(left, right, out)
    compare(out[: lanes + 1], (left * right)[: lanes + 1], tolerance)
    for at, end in ((2 * lanes, 3 * lanes), (3 * lanes, 3 * lanes + 4)):
        expected = left[at:end].reshape(-1, 2, 2) @ right[at:end].reshape(-1, 2, 2)
        compare(out[at:end], expected.ravel(), tolerance)
    compare(out[4 * lanes : 5 * lanes], 0.3 * left[:lanes], tolerance)


def check_adam(masked, rng):
    """Compare a step with its formulas, for full vectors and a partial one."""
    adam = masked.adam_step(*DECAYS)
    first_decay, second_decay, tiny = DECAYS

    @njit
    def run(slope, scale, pull, first, second, cores, weighted, at, size):
        adam(slope, scale, pull, 0, first, second, cores, weighted, at, size, 0.3, 0.02, 1.5)

    for size in (3, 8, 17):
        slope, scale, pull = rng.standard_normal((3, size))
        before = rng.gamma(1.0, size=(4, size + 12))
        after = before.copy()
        run(slope, scale, pull, *after, 5, size)
        own = slice(5, 5 + size)
        up = slope * scale - 0.3 * pull
        mean = first_decay * before[0, own] + (1 - first_decay) * up
        square = second_decay * before[1, own] + (1 - second_decay) * up**2
        core = before[2, own] + 0.02 * mean / (np.sqrt(1.5 * square) + tiny)
        expected = before.copy()
        expected[:, own] = mean, square, core, core * scale
        compare(after, expected, 1e-12)


def compare(found, expected, tolerance):
    """Raise if numbers differ by more than `tolerance`, or are not finite."""
    difference = np.max(np.abs(found - expected))
    if not difference <= tolerance:
        raise ArithmeticError(f"a result differs from NumPy's by {difference:.1e}")


if __name__ == "__main__":
    reason = failure()
    if reason:
        sys.stderr.write(reason + "\n")
    sys.exit(FAILS if reason else WORKS)
