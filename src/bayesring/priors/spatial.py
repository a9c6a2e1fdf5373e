"""Core prior of a mode whose labels lie on a map: slices of places close together are alike.

A nearest-neighbour Gaussian process: in an order of the places, each slice depends on those of the
nearest ones before it. Its correlations are exponential up to that, and its work is proportional to
the number of places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.spatial import KDTree

from bayesring.model.triangular import in_columns
from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior
from bayesring.priors.directed import Directed, DirectedSteps, Parents, given_known
from bayesring.priors.first_order import CLOSEST
from bayesring.priors.gradual import LONGEST, SHORTEST, START, SmoothHyper
from bayesring.priors.normal_wishart import NormalWishart

STEPS = 8
"""Length scales of the grid per factor of two: given slices of many places, longer steps are hardly
ever taken."""
STRIDES = 4
"""Metropolis steps are this many times doubled at most."""
UNLIKELY = 12.0
"""Nats by which length scales are less likely than others that are not looked at any closer."""
AT_ONCE = 4096
"""Places whose parents' distances are worked out at a time."""
PATCHES = (8, 4, 2, 1)
"""Places that are drawn jointly, unless that takes too many passes."""
PASSES = 12
"""Passes that a scan may have before patches are made smaller."""


@dataclass(frozen=True)
class Spatial(Directed):
    """Normal-Wishart prior whose slices follow a Gaussian process over the places of their labels.

    The covariance of slices i and j is exp(-|x_i - x_j| / ell) Omega^-1, as far as each slice
    depends on others only through its nearest ones before it; all else is as in `Smooth`.
    Equations (50) to (52) of docs/model.md.

    Parameters
    ----------
    neighbours : number of places before it that a slice depends on
    k0, scale, extra_degrees, learned : as in `NormalWishart`
    positions : (I_d, P), no two alike; set when the prior is bound to a mode

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.priors import Spatial
    >>> type(TensorRing(prior={"station": Spatial()}).prior["station"]).__name__
    'Spatial'
    """

    neighbours: int = 8
    k0: float = 2.0
    scale: float = 1.0
    extra_degrees: float = 0.0
    positions: tuple[tuple[float, ...], ...] = ()
    learned: bool = False

    def __post_init__(self) -> None:
        self.exchangeable  # noqa: B018 checks its parameters
        if not self.neighbours >= 1:
            raise ValueError(f"neighbours of Spatial must be at least 1, got {self.neighbours!r}.")
        if len(set(self.positions)) < len(self.positions):
            raise ValueError("positions of Spatial must differ, but two labels have the same.")

    def bind(self, axis: Axis) -> Spatial:
        """Take the positions of the labels."""
        if axis.positions is None or axis.positions.shape[1] < 2:
            raise ValueError(
                "Spatial needs a mode whose labels have positions with several coordinates; give "
                "positions=, or columns of latitudes and longitudes."
            )
        return replace(self, positions=tuple(map(tuple, axis.positions.tolist())))

    @classmethod
    def over(cls, prior: NormalWishart) -> Spatial:
        """The spatial form of an exchangeable prior."""
        own = {"k0": prior.k0, "scale": prior.scale, "extra_degrees": prior.extra_degrees}
        return cls(**own, learned=prior.learned)  # type: ignore[arg-type]

    @cached_property
    def lengths(self) -> FloatArray:
        """The grid of length scales, zero first."""
        if len(self.positions) < 2:
            return np.zeros(1)
        nearest = np.asarray(self._tree.query(self._x, 2)[0])[:, 1]
        high = LONGEST * self._range
        low = max(SHORTEST * float(np.median(nearest)), CLOSEST * high)
        if not (np.finfo(float).tiny < low and high < np.inf):
            return np.zeros(1)  # too close or too far apart for arithmetic
        count = int(np.ceil(STEPS * np.log2(high / low))) + 1
        return np.concatenate([[0.0], low * 2.0 ** (np.arange(count) / STEPS)])

    def arrangement(self) -> IntArray:
        """The places halved repeatedly along their widest extent, so that patches are small."""
        found: list[IntArray] = []
        left = [np.arange(len(self.positions))]
        while left:
            own = left.pop()
            if len(own) <= 1:
                found.append(own)
                continue
            x = self._x[own]
            along = x[:, int(np.argmax(np.ptp(x, axis=0)))]
            order = own[np.argsort(along, kind="stable")]
            middle = 2 ** int(np.ceil(np.log2(len(own))) - 1)  # patches then end where halves do
            left += [order[middle:], order[:middle]]
        return np.concatenate(found)

    def patches(self, n_slices: int, scan: int, room: float = np.inf) -> list[IntArray]:
        """Consecutive places, in passes such that those of one pass do not depend on each other.

        Their borders move by half a patch from scan to scan.
        """
        for size in PATCHES:
            found = self._passes(size)
            if size**2 / 3 <= room and max(map(len, found)) <= PASSES:
                break
        return found[scan % 2]

    def _passes(self, size: int) -> tuple[list[IntArray], list[IntArray]]:
        """Passes of even and of odd scans with patches of some size."""
        if size not in self._coloured:
            ends = len(self.positions) + size
            first, second = (self._colour(np.arange(own, ends, size)) for own in (0, size // 2))
            self._coloured[size] = first, second
        return self._coloured[size]

    @cached_property
    def _coloured(self) -> dict[int, tuple[list[IntArray], list[IntArray]]]:
        return {}

    def _colour(self, starts: IntArray) -> list[IntArray]:
        """Runs of places from each of `starts` on, by colour."""
        n = len(self.positions)
        edges = np.unique(np.clip([0, *starts, n], 0, n))
        runs = np.array(list(pairwise(edges)))
        run_of = np.repeat(np.arange(len(runs)), np.diff(edges))
        pattern = coo_array(self._pattern)
        pairs = coo_array(
            (np.ones(pattern.nnz), (run_of[pattern.row], run_of[pattern.col])),
            shape=(len(runs), len(runs)),
        ).tocsr()
        colours = np.full(len(runs), -1)
        for run in range(len(runs)):
            taken = set(colours[pairs.indices[pairs.indptr[run] : pairs.indptr[run + 1]]].tolist())
            colours[run] = next(each for each in range(len(runs)) if each not in taken)
        return [runs[colours == colour] for colour in range(int(colours.max()) + 1)]

    @cached_property
    def _pattern(self) -> csr_array:
        """Pairs of different places between which Q is not zero: parents, and those who share."""
        n, m = self._parents.of.shape
        rows = np.repeat(np.arange(n), m)
        known = self._has_parent.ravel()
        own = csr_array(
            (np.ones(int(known.sum())), (rows[known], self._parents.of.ravel()[known])),
            shape=(n, n),
        )
        whole = csr_array(own + own.T + own.T @ own)
        whole.setdiag(0.0)
        whole.eliminate_zeros()
        return whole

    def new_given(
        self, shared: SmoothHyper, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """New slices given the hyperparameters: each given its nearest known ones, equation (52).

        Without a position, a new label is far from all others.
        """
        spread = in_columns(noise, shared.precision)
        length, gaps = self.length(shared), core.reshape(len(core), -1) - shared.mean
        if axis.positions is None or length == 0:
            return np.asarray((shared.mean + spread).reshape(noise.shape))
        known = ~np.isnan(axis.positions).any(axis=1)
        x = axis.positions[known]
        near = self._nearest(x)
        weights, v = conditional(x[:, None] - self._x[near], self._x[near], length)[:2]
        mean = np.einsum("nm,nmk->nk", weights, gaps[near])
        spread[known] = mean + np.sqrt(v)[:, None] * spread[known]
        return np.asarray((shared.mean + spread).reshape(noise.shape))

    def beside_given(self, shared: SmoothHyper, core: FloatArray, axis: Axis) -> SlicePrior:
        """New places that each depend on their nearest known ones, given these."""
        n, known = axis.n, len(core)
        m, length = min(self.neighbours, known), self.length(shared)
        of = np.zeros((known + n, m), dtype=np.int64)
        weights, v, rest = np.zeros((known + n, m)), np.ones(known + n), np.ones(known + n)
        if axis.positions is not None and length > 0:
            placed = known + np.flatnonzero(~np.isnan(axis.positions).any(axis=1))
            x = axis.positions[placed - known]
            near = self._nearest(x)
            found = conditional(x[:, None] - self._x[near], self._x[near], length)
            of[placed] = near
            weights[placed], v[placed], rest[placed] = found
        steps = DirectedSteps(Parents(np.arange(known + n), of), weights, v, rest)
        slices = core.reshape(known, -1)
        return given_known(steps, np.arange(known + n), slices, shared)

    @cached_property
    def _x(self) -> FloatArray:
        return np.array(self.positions)

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._x)

    def _nearest(self, x: FloatArray) -> IntArray:
        """(n, m), the known places nearest to each of some others."""
        m = min(self.neighbours, len(self._x))
        return np.asarray(self._tree.query(x, m)[1]).reshape(len(x), m)

    @cached_property
    def _range(self) -> float:
        """Diagonal of the box around all places."""
        return float(np.sqrt(np.sum(np.ptp(self._x, axis=0) ** 2)))

    def _first_step(self) -> int:
        lengths = self.lengths
        if lengths.size == 1:
            return 0
        return 1 + int(np.argmin(np.abs(np.log(lengths[1:] / (START * self._range)))))

    def _neighbour(self, rng: Generator, step: int) -> int:
        """Another length scale, from which this one is proposed as often."""
        stride = 2 ** int(rng.integers(STRIDES))
        return int(step + (stride if rng.random() < 0.5 else -stride))

    def _masses(self, core: FloatArray, scales: FloatArray) -> tuple[IntArray, FloatArray]:
        """Of zero, and of those around all that are likely of one per factor of two."""
        count = len(self.lengths)
        coarse = np.unique([0, *range(1, count, STEPS), count - 1])
        masses = {int(step): self._marginal(core, int(step), scales)[1] for step in coarse}
        least = max(masses.values()) - UNLIKELY
        likely = [step for step, mass in masses.items() if mass > least and step]
        gaps = np.abs(np.subtract.outer(np.arange(count), likely)).min(axis=1, initial=count)
        steps = np.flatnonzero((gaps <= STEPS) | (np.arange(count) == 0))
        for step in steps.tolist():
            masses[step] = masses.get(step) or self._marginal(core, step, scales)[1]
        return steps, np.array([masses[step] for step in steps.tolist()])

    @cached_property
    def _parents(self) -> Parents:
        """The nearest places before each, in the order of `arrangement`."""
        n, m = len(self.positions), min(self.neighbours, max(len(self.positions) - 1, 1))
        order = self.arrangement()
        place, x = np.argsort(order), self._x[order]
        of, tree = np.zeros((n, m), dtype=np.int64), KDTree(x)
        for own in range(1, min(m + 1, n)):
            of[own, :own] = np.arange(own)
        left, asked = np.arange(m + 1, n), 4 * m
        while len(left):
            near = np.asarray(tree.query(x[left], min(asked, n))[1])
            before = near < left[:, None]
            enough = before.sum(axis=1) >= m
            first = np.argsort(~before[enough], axis=1, kind="stable")[:, :m]
            of[left[enough]] = np.take_along_axis(near[enough], first, axis=1)
            left, asked = left[~enough], 2 * asked
        return Parents(order, order[of][place])

    @cached_property
    def _has_parent(self) -> NDArray[np.bool]:
        """(I, m), whether there are as many parents."""
        n, m = self._parents.of.shape
        place = np.empty(n, dtype=np.int64)
        place[self._parents.order] = np.arange(n)
        return np.asarray(np.arange(m) < place[:, None])

    def _steps(self, length: float) -> DirectedSteps:
        n, m = self._parents.of.shape
        if length == 0:
            return DirectedSteps(self._parents, np.zeros((n, m)), np.ones(n), np.ones(n))
        x = self._x[self._parents.of]
        found = conditional(self._x[:, None] - x, x, length, self._has_parent)
        return DirectedSteps(self._parents, *found)

    @property
    def _known_size(self) -> int:
        return 4 * len(self.positions) * self.neighbours


def conditional(
    gaps: FloatArray, near: FloatArray, length: float, known: NDArray[np.bool] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights w = C_NN^-1 c of some near slices, variance 1 - w' c given them, and 1 - sum w (51).

    Parameters
    ----------
    gaps : (n, m, P), from each of the near places to the one in question
    near : (n, m, P), the near places
    known : (n, m), which of them there are; all by default
    """
    if len(near) > AT_ONCE:
        cuts = range(0, len(near), AT_ONCE)
        parts = [
            conditional(gaps[own], near[own], length, None if known is None else known[own])
            for own in (slice(cut, cut + AT_ONCE) for cut in cuts)
        ]
        weights, v, rest = (np.concatenate(each) for each in zip(*parts, strict=True))
        return weights, v, rest
    among = np.exp(-np.linalg.norm(near[:, :, None] - near[:, None], axis=3) / length)
    to = np.exp(-np.linalg.norm(gaps, axis=2) / length)
    if known is not None:
        both = known[:, :, None] & known[:, None]
        among = np.where(both, among, np.eye(among.shape[1]))
        to = np.where(known, to, 0.0)
    weights = np.linalg.solve(among, to[:, :, None])[:, :, 0]
    v = np.maximum(1 - np.sum(weights * to, axis=1), CLOSEST)
    return weights, v, 1 - np.sum(weights, axis=1)
