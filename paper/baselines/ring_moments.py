"""Second moments of matrices, packed so that moments of products are products of small matrices.

For independent random matrices, E[AB ⊗ AB] = E[A ⊗ A] E[B ⊗ B], and E[A ⊗ A] has R^2 rows and R^2
columns, (r, r') and (s, s'). It does not change if both pairs are swapped at once, so it maps
symmetric to symmetric and antisymmetric to antisymmetric tensors and splits into two blocks, with
R (R + 1) / 2 and R (R - 1) / 2 rows. In the orthonormal bases

    (e_r e_r' + e_r' e_r) / sqrt(2) for r < r' and e_r e_r,
    (e_r e_r' - e_r' e_r) / sqrt(2) for r < r'

they are, with n_r = 1 / sqrt(2) for a pair r = r' and 1 for the others,

    S = n_r n_s (E[A_rs A_r's'] + E[A_rs' A_r's]),      N = E[A_rs A_r's'] - E[A_rs' A_r's].

Together they have as many entries as the lower triangle of E[vec A vec A'], and products of both
take a quarter of the R^6 multiplications needed for E[A ⊗ A].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesring.model.types import FloatArray, IntArray


class Blocks(NamedTuple):
    """E[A ⊗ A] of some matrices A (a, b)."""

    symmetric: FloatArray
    """S, (J, a (a + 1) / 2, b (b + 1) / 2)."""
    antisymmetric: FloatArray
    """N, (J, a (a - 1) / 2, b (b - 1) / 2)."""


class Pairs(NamedTuple):
    """Pairs of indices below R, and the index of each of the R^2 pairs in the two bases."""

    symmetric: tuple[IntArray, IntArray]
    """r <= r'."""
    antisymmetric: tuple[IntArray, IntArray]
    """r < r'."""
    scale: FloatArray
    """n_r of the symmetric pairs."""
    place: IntArray
    """(R, R), index of (r, r') in the symmetric basis."""
    strict_place: IntArray
    """(R, R), index of (r, r') in the antisymmetric basis; arbitrary for r = r'."""
    sign: FloatArray
    """(R, R), sign of r' - r."""


def n_pairs(rank: int) -> tuple[int, int]:
    """Sizes of the two bases."""
    return rank * (rank + 1) // 2, rank * (rank - 1) // 2


def pairs_of(rank: int) -> Pairs:
    """Number the pairs of indices below `rank`."""
    both, strict = np.triu_indices(rank), np.triu_indices(rank, 1)
    place = np.zeros((rank, rank), dtype=np.int64)
    strict_place = np.zeros_like(place)
    place[both] = place.T[both] = np.arange(both[0].size)
    strict_place[strict] = strict_place.T[strict] = np.arange(strict[0].size)
    scale = np.where(both[0] == both[1], np.sqrt(0.5), 1.0)
    index = np.arange(rank)
    return Pairs(both, strict, scale, place, strict_place, np.sign(index - index[:, None]) * 1.0)


def pack(moments: FloatArray, rows: int, columns: int) -> Blocks:
    """Blocks of E[A ⊗ A] from E[vec A vec A'] (J, a b, a b), vec reading row by row."""
    flat = moments.reshape(len(moments), -1)

    def pick(left: tuple[IntArray, IntArray], right: tuple[IntArray, IntArray]) -> FloatArray:
        """E[A_rs A_r's'] for all pairs (r, r') and (s, s')."""
        r, r_other = (each[:, None] for each in left)
        s, s_other = right
        return flat[:, (r * columns + s) * rows * columns + r_other * columns + s_other]

    left, right = pairs_of(rows), pairs_of(columns)
    symmetric = pick(left.symmetric, right.symmetric)
    symmetric += pick(left.symmetric, right.symmetric[::-1])
    symmetric *= left.scale[:, None] * right.scale
    antisymmetric = pick(left.antisymmetric, right.antisymmetric)
    antisymmetric -= pick(left.antisymmetric, right.antisymmetric[::-1])
    return Blocks(symmetric, antisymmetric)


def unpack_transposed(blocks: Blocks, rows: int, columns: int) -> FloatArray:
    """E[vec A' vec A''], (J, a b, a b), of matrices A (a, b) from their blocks."""
    symmetric, antisymmetric = blocks
    left, right = pairs_of(rows), pairs_of(columns)
    scaled = symmetric * (0.5 / (left.scale[:, None] * right.scale))
    # axes s, r, s', r': the order of vec A' vec A''
    p, q = left.place[None, :, None, :], right.place[:, None, :, None]
    moments = scaled[:, p, q]
    if antisymmetric.size:
        p, q = left.strict_place[None, :, None, :], right.strict_place[:, None, :, None]
        sign = left.sign[None, :, None, :] * right.sign[:, None, :, None]
        moments += 0.5 * sign * antisymmetric[:, p, q]
    return moments.reshape(len(symmetric), rows * columns, rows * columns)


def keep(blocks: Blocks, rows: FloatArray, columns: FloatArray) -> Blocks:
    """Blocks of the matrices restricted to the rows and columns given by masks."""
    kept = []
    for block, kind in zip(blocks, ("symmetric", "antisymmetric"), strict=True):
        masks = []
        for mask in (rows, columns):
            r, r_other = getattr(pairs_of(mask.size), kind)
            masks.append(mask[r] & mask[r_other])
        kept.append(np.ascontiguousarray(block[:, masks[0]][:, :, masks[1]]))
    return Blocks(*kept)


def mean_square(cores: Blocks, complements: Blocks) -> FloatArray:
    """E[tr(A B)^2] for independent A (a, b) and B (b, a), from their blocks: (J,)."""
    symmetric, antisymmetric = (
        np.einsum("jpq,jqp->j", a, b) for a, b in zip(cores, complements, strict=True)
    )
    return np.asarray(symmetric + antisymmetric)
