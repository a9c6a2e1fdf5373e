"""The building blocks from which kernels are compiled: vectors or plain loops.

The choice is made when this module is imported, because Numba looks up globals once, when it
compiles a kernel. Numba identifies its cached files only by the name of the function and the file
that defines it; it ignores code from other files that went into a kernel. The names of kernels
therefore encode the choice and a digest of all sources in this folder.
"""

from numba import njit

from bayesring.kernels import verdict
from bayesring.kernels.loops import ADD, SET, SUBTRACT

PLAIN = not verdict.use_vectors()
OPTIONS = {"nogil": True, "cache": True, "fastmath": {"contract", "reassoc"}}
_MARK = f"-{verdict.sources()}" + ("-plain" if PLAIN else "")

if PLAIN:
    from bayesring.kernels.loops import (
        adam_step,
        matrix_products,
        scale,
        square_products,
        thin_product,
    )
else:
    from bayesring.kernels.masked import adam_step
    from bayesring.kernels.vectors import matrix_products, scale, square_products, thin_product

__all__ = [
    "ADD",
    "PLAIN",
    "SET",
    "SUBTRACT",
    "adam_step",
    "kernel",
    "matrix_products",
    "scale",
    "square_products",
    "thin_product",
]


def kernel(function):
    """Decorator that compiles a function made of these building blocks."""
    function.__qualname__ += _MARK
    return njit(**OPTIONS)(function)
