"""Slices that each follow from a few before them: innovations, precision, and patches to draw."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array, diags_array

from bayesring.model.triangular import in_columns
from bayesring.model.types import FloatArray, Graph, IntArray, SlicePrior
from bayesring.priors.gradual import Gradual, SmoothHyper
from bayesring.priors.mode_prior import CoreShape, Coupling

MOST_KNOWN = 2**23
"""Numbers of processes at different length scales that are kept at a time."""


class Parents(NamedTuple):
    """Of which slices each is a weighted sum, but for its innovation."""

    order: IntArray
    """(I,), slices in an order in which parents come first."""
    of: IntArray
    """(I, m), the parents of each slice; any slice, with weight zero, where there are fewer."""


@dataclass(frozen=True, eq=False)
class DirectedSteps:
    """The process at one length scale: g_i = mu + sum_j w_ij (g_j - mu) + sqrt(v_i) e_i."""

    parents: Parents
    weights: FloatArray
    """w, (I, m), of the parents."""
    v: FloatArray
    """(I,), variance given the parents, in units of Omega^-1."""
    rest: FloatArray
    """(I,), 1 - sum_j w_ij."""

    @cached_property
    def a(self) -> FloatArray:
        """(I,), what multiplies mu in the innovations."""
        return np.asarray(self.rest / np.sqrt(self.v))

    def innovations(self, slices: FloatArray) -> FloatArray:
        """z_i = (g_i - sum_j w_ij g_j) / sqrt(v_i), independent N(a_i mu, Omega^-1)."""
        gaps = slices - self._matrix @ slices
        return np.asarray(gaps / np.sqrt(self.v)[:, None])

    def follow(self, noise: FloatArray) -> FloatArray:
        """Deviations from mu with innovations `noise` (I, K)."""
        drawn = np.sqrt(self.v)[:, None] * noise
        for i in self.parents.order:
            drawn[i] += self.weights[i] @ drawn[self.parents.of[i]]
        return drawn

    @cached_property
    def precision(self) -> tuple[FloatArray, FloatArray, Graph]:
        """Diagonal of Q = C^-1, its row sums, and -Q beside the diagonal."""
        n = len(self.v)
        root = diags_array(1 / np.sqrt(self.v)) @ (diags_array(np.ones(n)) - self._matrix)
        whole = csr_array(root.T @ root)
        whole.sort_indices()
        diagonal = whole.diagonal()
        off = whole - diags_array(diagonal)
        off.eliminate_zeros()
        off = csr_array(off)
        off.sort_indices()
        graph = Graph(off.indptr.astype(np.int64), off.indices.astype(np.int64), -off.data)
        return diagonal, np.asarray(root.T @ self.a), graph

    @cached_property
    def _matrix(self) -> csr_array:
        n, m = self.weights.shape
        rows = np.repeat(np.arange(n), m)
        return csr_array((self.weights.ravel(), (rows, self.parents.of.ravel())), shape=(n, n))


class Directed(Gradual):
    """Prior of slices of which each depends on a few before it."""

    coupling: ClassVar[Coupling] = Coupling.PATCHES

    @abstractmethod
    def _steps(self, length: float) -> DirectedSteps:
        """The process at a length scale."""

    def _chain(self, step: int) -> DirectedSteps:
        if step not in self._known:
            while len(self._known) * self._known_size > MOST_KNOWN:
                self._known.pop(next(iter(self._known)), None)
            self._known[step] = self._steps(float(self.lengths[step]))
        return self._known[step]

    @cached_property
    def _known(self) -> dict[int, DirectedSteps]:
        return {}

    @property
    @abstractmethod
    def _known_size(self) -> int:
        """Numbers of one process that is kept."""

    def start(self, core: FloatArray, hyper: Any = None) -> FloatArray:
        """Independent slices made to follow the process, at the first length scale if it is new."""
        steps = self._chain(self._first_step() if hyper is None else int(hyper.step[0]))
        return steps.follow(core.reshape(len(core), -1)).reshape(core.shape)

    def draw_core(self, rng: Generator, shape: CoreShape, hyper: SmoothHyper) -> FloatArray:
        """Draw the slices one after the other."""
        noise = rng.standard_normal((shape[0], prod(shape[1:])))
        spread = in_columns(noise, hyper.precision)
        gaps = self._chain(int(hyper.step[0])).follow(spread)
        return np.asarray((hyper.mean + gaps).reshape(shape))

    def slice_prior(self, core: FloatArray, hyper: SmoothHyper) -> SlicePrior:
        """Precision Q x Omega and linear terms (Q1)_i Omega mu."""
        factors, sums, graph = self._chain(int(hyper.step[0])).precision
        linear = sums[:, None] * (hyper.precision @ hyper.mean)
        nothing = np.zeros((1, hyper.mean.size))
        return SlicePrior(hyper.precision, nothing, linear, factors, graph=graph)


def given_known(
    steps: DirectedSteps, order: IntArray, slices: FloatArray, shared: SmoothHyper
) -> SlicePrior:
    """Gaussian prior of new slices given known ones and the hyperparameters.

    `order` says which slice each of `steps` is: those known (I, K), and then the new ones.
    """
    factors, sums, graph = steps.precision
    places = np.argsort(order)
    known, new = places[: len(slices)], places[len(slices) :]
    n = len(order)
    rows = csr_array((graph.weights, graph.others, graph.starts), shape=(n, n))[new]
    pull = sums[new][:, None] * shared.mean + rows[:, known] @ slices
    among = csr_array(rows[:, new])
    among.sort_indices()
    between = Graph(among.indptr.astype(np.int64), among.indices.astype(np.int64), among.data)
    nothing = np.zeros((1, shared.mean.size))
    return SlicePrior(
        shared.precision, nothing, pull @ shared.precision, factors[new], graph=between
    )
