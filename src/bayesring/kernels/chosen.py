"""The building blocks that kernels are compiled from: in vectors, or as plain loops.

The choice is made when this module is imported, since Numba looks up globals once, when it compiles
a kernel. What Numba keeps on disk is told apart by the name of the function alone, and by the file
in which it stands: code of other files that went into a kernel is not looked at. So the names of
kernels are made to tell the choice, and the state of all sources in this folder.
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
    """Compile a function that is made of these building blocks; a decorator."""
    function.__qualname__ += _MARK
    return njit(**OPTIONS)(function)
