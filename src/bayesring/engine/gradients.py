"""Sums over a large batch of online EM: block by block, added along a fixed binary tree.

Numbers that are added in another order have other last bits. Here the order is that of a tree over
the blocks of a batch, whoever has worked on which of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bayesring.data.batches import Chunk
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import gradient as gradient_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray, IntArray

Node = tuple[int, int]
"""First block of a part of the tree, and the first after it."""


class GradientTask(NamedTuple):
    """Everything that rows need to say which way a ring should move."""

    flat: FlatRing
    """The ring with its weights folded in."""
    shape: tuple[int, ...]
    likelihood: Likelihood
    nuisance: FloatArray


class BatchSums(NamedTuple):
    """What rows say of a ring."""

    statistics: FloatArray
    """Of the likelihood."""
    gradient: FloatArray
    curvature: FloatArray
    """Of all slices of all modes, as in `kernels.gradient`."""
    counts: IntArray
    """Rows of every slice of every mode."""

    def plus(self, other: BatchSums) -> BatchSums:
        """Both; reuses the memory of this one."""
        np.add(self.gradient, other.gradient, out=self.gradient)
        np.add(self.curvature, other.curvature, out=self.curvature)
        np.add(self.counts, other.counts, out=self.counts)
        return self._replace(statistics=self.statistics + other.statistics)

    def copy(self) -> BatchSums:
        """The same in memory of its own."""
        return BatchSums(
            self.statistics, self.gradient.copy(), self.curvature.copy(), self.counts.copy()
        )


def rows_sums(task: GradientTask, rows: Chunk) -> BatchSums | None:
    """Sums over rows, one after the other; None without rows.

    With e_n = s_n - w_n f_n, the gradient is sum e_n T_n and the curvature sum w_n T_n^2 (19).
    """
    if not rows.n:
        return None
    (columns, values, given, _), likelihood = rows.doubled(), task.likelihood
    given = likelihood.locate(given, columns.__getitem__)
    order = len(task.shape)
    entries = entries_kernel.entries(*task.flat, 0, columns[0], columns[1:order])
    fitted = entries if given.offset is None else entries + given.offset
    response = likelihood.expect(fitted, values, task.nuisance, given)
    found = likelihood.statistics(fitted, values, task.nuisance, given, response=response)
    weight, shift = response
    slopes = np.stack([shift - weight * fitted, weight])
    sums = np.zeros(task.flat.flat.size), np.zeros(task.flat.flat.size)
    first = np.cumsum([0, *task.shape[:-1]]).astype(np.int64)
    counts = np.zeros(sum(task.shape), dtype=np.int64)
    endless, touched = np.full(counts.size, np.inf), np.empty(len(values), dtype=np.int64)
    for mode in range(order):
        gradient_kernel.add_gradient(
            task.flat, mode, columns, slopes, (first, counts), endless, sums, touched
        )
    return BatchSums(found, *sums, counts)


def tree_sum(node: Node, found: Callable[[Node], BatchSums | None]) -> BatchSums | None:
    """The sum over a part of the tree of what is `found` for its single blocks."""
    if node[1] - node[0] == 1:
        return found(node)
    left, right = (tree_sum(half, found) for half in halves(node))
    if left is None or right is None:
        return right if left is None else left
    return left.plus(right)


def halves(node: Node) -> tuple[Node, Node]:
    """The two parts of a part; the number of blocks is a power of two."""
    middle = sum(node) // 2
    return (node[0], middle), (middle, node[1])


def parts_within(whole: Node, own: Node) -> Iterator[Node]:
    """The largest parts of a tree that lie within some consecutive blocks."""
    if own[0] <= whole[0] and whole[1] <= own[1]:
        yield whole
    elif whole[0] < own[1] and own[0] < whole[1]:
        for half in halves(whole):
            yield from parts_within(half, own)


def put_together(node: Node, parts: dict[Node, BatchSums | None]) -> BatchSums | None:
    """The sum over a tree of which some parts have been summed elsewhere."""
    if node in parts:
        found = parts[node]  # results of other processes cannot be written to
        return None if found is None else found.copy()
    left, right = (put_together(half, parts) for half in halves(node))
    if left is None or right is None:
        return right if left is None else left
    return left.plus(right)
