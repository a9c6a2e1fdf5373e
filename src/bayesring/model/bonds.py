"""The spectrum of a bond: how much of f passes through it, direction by direction.

Cores are determined only up to an invertible matrix on each bond, so the factors in a chain say
little: a bond of rank six that needs only five can show six factors of equal size. Here a bond is
transformed to a basis of its own in which unneeded directions are isolated. Each direction is
judged by its energy on the observations, the part of the sum of w_n f_n^2 that it alone accounts
for. Only for rings with one strand. See docs/model.md, section Rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesring.model.ring import ring_order
from bayesring.model.types import FloatArray, IntArray, RingState

ROUNDING = 1e-12
"""Eigenvalues below this share of the largest count as zero."""


class BondBasis(NamedTuple):
    """Basis of a bond, strongest direction first: Lambda = left diag(weights) right, up to parts
    of Lambda that no entry of the tensor sees.
    """

    left: FloatArray
    """(R_d, R_d), for the columns of G^(d)."""
    weights: FloatArray
    """(R_d,)."""
    right: FloatArray
    """(R_d, R_d), for the rows of G^(d+1)."""
    shares: FloatArray
    """(R_d,) mean square of each direction's part of f, relative to the mean square of f."""


def opened_moments(state: RingState, bond: int, shares: Sequence[FloatArray]) -> FloatArray:
    """Second moments of the ring cut open at a bond, (R_d, R_d, R_d, R_d).

    With M = A^(d+1)[i_{d+1}] ... A^(d-1)[i_{d-1}] G^(d)[i_d], a tensor entry is
    f = tr(Lambda^(d) M). Entry (b, a, c, e) is E[M_ba M_ce] for indices drawn independently, index
    i of mode m with probability ``shares[m][i]`` (15): a product of the D matrices
    sum_i p_i A[i] x A[i].
    """
    order, rank = len(state.cores), state.size.bonds[bond]
    product = np.eye(rank * rank)
    for mode in [*ring_order(bond, order), bond]:
        core = state.cores[mode][:, 0] * (1.0 if mode == bond else state.weights[mode][0])
        square = np.einsum("i,iab,icd->acbd", shares[mode], core, core, optimize=True)
        rows, columns = core.shape[1], core.shape[2]
        product = product @ square.reshape(rows * rows, columns * columns)
    return np.asarray(product.reshape((rank,) * 4).transpose(0, 2, 1, 3))


def bond_basis(moments: FloatArray, weights: FloatArray) -> BondBasis:
    """Transform a bond so that it is diagonal with non-overlapping directions on both sides (16).

    X = E[M M'] and Y = E[M' M] measure the size of the opened ring at its two ends. With the
    singular value decomposition Y^1/2 Lambda X^1/2 = U diag(s) V', the bond is
    Y^-1/2 U diag(s) V' X^-1/2.
    """
    start, start_inverse = _roots(np.einsum("baca->bc", moments))
    end, end_inverse = _roots(np.einsum("babe->ae", moments))
    vectors, values, others = np.linalg.svd(end @ (weights[:, None] * start))
    left, right = end_inverse @ vectors, others @ start_inverse
    turned = np.einsum("rb,ar,bace->rce", right, left, moments, optimize=True)
    squares = np.einsum("rce,qc,eq->rq", turned, right, left, optimize=True)
    total = float(values @ squares @ values)
    parts = values**2 * np.diag(squares)
    shares = parts / total if total > 0 else np.zeros_like(parts)
    return BondBasis(left, values, right, shares)


def _roots(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Root of a positive semi-definite matrix, and the pseudo-inverse of the root."""
    values, vectors = np.linalg.eigh(gram)
    seen = values > ROUNDING * values[-1]
    roots = np.sqrt(values[seen])
    kept = vectors[:, seen]
    return (kept * roots) @ kept.T, (kept / roots) @ kept.T


def parameters_of_factor(counts: Sequence[IntArray], rank: tuple[int, ...], bond: int) -> int:
    """Number of parameters that one factor of a bond adds, as far as data determine them (17).

    Its column in G^(d)[i] has R_{d-1} entries and its row in G^(d+1)[j] has R_{d+1}, but n
    observations determine at most n of them; 2 R_d - 1 directions are gauge freedom.
    """
    after = (bond + 1) % len(rank)
    columns = np.minimum(counts[bond], rank[bond - 1]).sum()
    rows = np.minimum(counts[after], rank[after]).sum()
    return max(int(columns + rows) - 2 * rank[bond] + 1, 1)


def turn_bond(state: RingState, bond: int, basis: BondBasis) -> RingState:
    """State with a bond in another basis. No entry of the tensor changes.

    Columns of G^(d) and rows of G^(d+1) keep the root mean squares of their cores, so the new
    factors fit the prior as well as the old ones; the weights absorb the rest.
    """
    after = (bond + 1) % len(state.cores)
    cores, weights = list(state.cores), list(state.weights)
    column = cores[bond] @ basis.left
    row = basis.right @ cores[after]
    column_scale = _sizes(column, (0, 1, 2)) / _sizes(cores[bond], None)
    row_scale = _sizes(row, (0, 1, 3)) / _sizes(cores[after], None)
    cores[bond], cores[after] = column / column_scale, row / row_scale[:, None]
    weights[bond] = (basis.weights * column_scale * row_scale)[None]
    return state._replace(cores=tuple(cores), weights=tuple(weights))


def _sizes(core: FloatArray, axes: tuple[int, ...] | None) -> FloatArray:
    """Root mean square over some axes of a core, one where it is zero."""
    sizes = np.sqrt(np.mean(core**2, axis=axes))
    return np.where(sizes > 0, sizes, 1.0)
