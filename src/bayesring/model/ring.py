"""Algebra of the weighted tensor ring in plain NumPy: shapes, entries, complements, gauge moves.

This is also the specification of the kernels: each kernel has a simple twin here. Cores are
(I_d, S, R_{d-1}, R_d), with R_0 = R_D: a ring is a sum of S strands, each a ring in its own right;
see docs/notation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import shown


class FlatRing(NamedTuple):
    """Weighted cores laid end to end, as the kernels read them."""

    flat: FloatArray
    starts: IntArray
    bonds: IntArray
    strands: int


def flatten(cores: Sequence[FloatArray], dtype: str = "float64") -> FlatRing:
    """Lay cores (already weighted) end to end."""
    flat = np.concatenate([core.reshape(-1) for core in cores], dtype=dtype)
    starts = np.array([0, *accumulate(core.size for core in cores[:-1])], dtype=np.int64)
    bonds = np.array([core.shape[3] for core in cores], dtype=np.int64)
    return FlatRing(flat, starts, bonds, cores[0].shape[1])


def with_core(ring: FlatRing, mode: int, core: FloatArray) -> FlatRing:
    """The ring with another core (already weighted) in the place of one."""
    flat, begin = ring.flat.copy(), int(ring.starts[mode])
    flat[begin : begin + core.size] = core.reshape(-1)
    return ring._replace(flat=flat)


def weighted(cores: Sequence[FloatArray], weights: Sequence[FloatArray]) -> list[FloatArray]:
    """A^(d)[i] = G^(d)[i] Lambda^(d): the weights folded into the cores, equation (1).

    A core whose weights are all one is returned itself.
    """
    return [
        core if np.all(weight == 1.0) else core * weight[:, None]
        for core, weight in zip(cores, weights, strict=True)
    ]


def unweighted(core: FloatArray, weights: FloatArray) -> FloatArray:
    """G^(d) from A^(d), the inverse of `weighted` for one core; zero where a weight is zero."""
    own = weights[:, None]
    return np.divide(core, own, out=np.zeros(core.shape), where=own != 0)


def ring_order(mode: int, order: int) -> list[int]:
    """The other modes in ring order after `mode`: mode + 1, ..., mode - 1."""
    return [(mode + step) % order for step in range(1, order)]


def entries(cores: Sequence[FloatArray], coords: IntArray) -> FloatArray:
    """f_n, the sum over strands of tr(A^(1)[i_1] ... A^(D)[i_D]), for weighted cores."""
    product = cores[0][coords[:, 0]]
    for mode in range(1, len(cores)):
        product = product @ cores[mode][coords[:, mode]]
    return np.asarray(np.einsum("njrr->n", product))


def complements(cores: Sequence[FloatArray], mode: int, coords: IntArray) -> FloatArray:
    """T_n (n, S, R_d, R_{d-1}), the product of the other weighted slices in ring order."""
    first, *rest = ring_order(mode, len(cores))
    product = cores[first][coords[:, first]]
    for other in rest:
        product = product @ cores[other][coords[:, other]]
    return product


def features(
    cores: Sequence[FloatArray], weights: FloatArray, mode: int, coords: IntArray
) -> FloatArray:
    """c_n = vec((Lambda^(d) T_n)') (n, K), so that f_n = c_n . vec G^(d)[i_d]: equation (3)."""
    scaled = weights[:, :, None] * complements(cores, mode, coords)
    return np.swapaxes(scaled, 2, 3).reshape(len(coords), cores[mode][0].size)


def weight_features(
    cores: Sequence[FloatArray], core: FloatArray, mode: int, coords: IntArray
) -> FloatArray:
    """a_n = diag(T_n G^(d)[i_d]) (n, S R_d), so that f_n = a_n . lambda^(d); `core` unweighted."""
    others = complements(cores, mode, coords)
    products = np.einsum("njrs,njsr->njr", others, core[coords[:, mode]])
    return np.asarray(products.reshape(len(coords), core.shape[1] * core.shape[3]))


def dense(cores: Sequence[FloatArray]) -> FloatArray:
    """The whole tensor of weighted cores, by one matrix product.

    The modes are split into a left and a right group. With L (left cells, S R_0 R_k) and
    M (right cells, S R_0 R_k), their chains of slices, the tensor in matrix form is L M'.
    """
    shape = tuple(core.shape[0] for core in cores)
    cut = _balanced_cut(shape)
    left, right = _chain(cores[:cut]), _chain(cores[cut:])
    inner = left[0].size
    matrix = left.reshape(-1, inner) @ np.swapaxes(right, 2, 3).reshape(-1, inner).T
    return np.asarray(matrix.reshape(shape))


def _chain(cores: Sequence[FloatArray]) -> FloatArray:
    """Product of neighbouring cores for all pairs of slices: (cells, S, R_first, R_last)."""
    product = cores[0]
    for core in cores[1:]:
        product = np.einsum("ajrs,bjst->abjrt", product, core, optimize=True)
        product = product.reshape(-1, *product.shape[2:])
    return product


def _balanced_cut(sizes: Sequence[int]) -> int:
    """Where to split the modes so that the two groups have cell counts as equal as possible."""
    return min(range(1, len(sizes)), key=lambda cut: prod(sizes[:cut]) + prod(sizes[cut:]))


def turn(cores: Sequence[FloatArray], steps: int) -> list[FloatArray]:
    """Start the ring at another core: the tensor with its modes rotated by `steps`."""
    steps %= len(cores)
    return [*cores[steps:], *cores[:steps]]


def change_gauge(cores: Sequence[FloatArray], bond: int, matrix: FloatArray) -> list[FloatArray]:
    """Insert M M^-1 on a bond: G^(d)[i] M and M^-1 G^(d+1)[i]. No entry of the tensor changes.

    One matrix (R_d, R_d) for all strands, or one per strand, (S, R_d, R_d).
    """
    changed = list(cores)
    after = (bond + 1) % len(cores)
    changed[bond] = changed[bond] @ matrix
    changed[after] = np.linalg.inv(matrix) @ changed[after]
    return changed


def expand_rank(rank: int | Sequence[int], order: int) -> tuple[int, ...]:
    """One number per bond from a number or a sequence; raises an error if `rank` is not valid."""
    given: tuple[Any, ...] = tuple(rank) if isinstance(rank, (tuple, list)) else (rank,) * order
    if len(given) != order:
        raise ValueError(
            f"rank has {len(given)} numbers, but the data have {order} modes and so {order} bonds; "
            f"give one number for all or {order} of them."
        )
    for number in given:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
            raise ValueError(f"rank must be made of integers of at least 1, got {shown(rank)}.")
    return tuple(int(number) for number in given)
