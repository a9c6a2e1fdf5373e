"""Array aliases and the small tuples shared between modules.

Symbols and shapes follow `docs/notation.md`.
"""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


class RingSize(NamedTuple):
    """Size of a ring: S strands, each of rank R_1, ..., R_D."""

    strands: int
    bonds: tuple[int, ...]

    def core_shape(self, mode: int, n_slices: int) -> tuple[int, int, int, int]:
        """(I_d, S, R_{d-1}, R_d)."""
        return n_slices, self.strands, self.bonds[mode - 1], self.bonds[mode]

    def spread(self, mode: int) -> float:
        """Standard deviation of random core entries at which f has variance one."""
        pair = self.bonds[mode - 1] * self.bonds[mode]
        return float(pair**-0.25 * self.strands ** (-0.5 / len(self.bonds)))

    def parameters(self, shape: tuple[int, ...]) -> int:
        """Number of entries of all cores of a ring for a tensor of `shape`."""
        return sum(prod(self.core_shape(mode, size)) for mode, size in enumerate(shape))


class RingState(NamedTuple):
    """One point of the chain: exactly what the next scan needs."""

    cores: tuple[FloatArray, ...]
    """G, D arrays (I_d, S, R_{d-1}, R_d)."""
    weights: tuple[FloatArray, ...]
    """lambda, D arrays (S, R_d): the diagonals of Lambda^(d)."""
    gains: tuple[FloatArray, ...]
    """delta, D arrays (S, R_d)."""
    hyper: tuple[Any, ...]
    """D tuples of arrays, owned by the core prior; empty for a fixed prior."""
    nuisance: FloatArray
    """(p,), owned by the likelihood: the noise precision, or nothing."""

    @property
    def rank(self) -> tuple[int, ...]:
        """Rank of each bond, S R_1, ..., S R_D."""
        return tuple(weights.size for weights in self.weights)

    @property
    def size(self) -> RingSize:
        """Number of strands and the rank of each."""
        return RingSize(len(self.weights[0]), tuple(each.shape[1] for each in self.weights))


class WorkingResponse(NamedTuple):
    """Gaussian surrogate of a likelihood: log p(y_n | f_n) = s_n f_n - w_n f_n^2 / 2 + const."""

    weight: FloatArray
    """w, (n,)."""
    shift: FloatArray
    """s, (n,)."""


class Moments(NamedTuple):
    """What a likelihood needs to know about all values."""

    mean: float
    deviation: float
    """Standard deviation: the root of the mean squared distance from the mean."""
    smallest: float
    largest: float
    binary: bool
    """Whether all values are 0 or 1."""
    rounding: float
    """Standard deviation relative to the largest value up to which values count as constant."""
    whole: bool = True
    """Whether all values are integers."""
    exposure: float = 1.0
    """Mean exposure."""

    @property
    def variance(self) -> float:
        """Mean squared distance from the mean; may be infinite."""
        return self.deviation * self.deviation


class Given(NamedTuple):
    """What else is known about observations, (n,) each, or None if absent."""

    weight: FloatArray | None = None
    """An observation of weight w counts as w identical observations."""
    offset: FloatArray | None = None
    """Known part of the predictor: the likelihood sees f + offset."""
    exposure: FloatArray | None = None
    """Time, area or population over which an event was counted."""
    error: FloatArray | None = None
    """Known standard deviation of the measurement, on top of the noise that is learned."""
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    """Ends between which a value lies that was not observed itself; NaN where it was."""
    group: IntArray | None = None
    """Index in the mode whose slices have parameters of the likelihood of their own."""

    @property
    def is_empty(self) -> bool:
        """Whether all fields are None."""
        return all(each is None for each in self)

    @property
    def censored(self) -> NDArray[np.bool] | None:
        """(n,), which values are known by their ends only; None if all were observed."""
        return None if self.lower is None else ~np.isnan(self.lower)

    def at(self, rows: Any) -> Given:
        """The same for some rows, given by a slice, indices or a mask."""
        return self if self.is_empty else Given(*(e if e is None else e[rows] for e in self))

    def in_units(self, location: float, scale: float) -> Given:
        """What has the units of the values in standard units."""
        if self.error is None and self.lower is None:
            return self
        return self._replace(
            error=None if self.error is None else self.error / scale,
            lower=None if self.lower is None else (self.lower - location) / scale,
            upper=None if self.upper is None else (self.upper - location) / scale,
        )


NOTHING = Given()


class Places(Enum):
    """What the positions of labels are, by which an order is believed or not."""

    COORDINATES = "coordinates"
    """Numbers of slices without labels: perhaps in an order, perhaps not."""
    WHOLE = "integers"
    """Integers, which may also be mere numbers of things."""
    MEASURED = "times and real numbers"


class Axis(NamedTuple):
    """What is known about the labels of a mode besides their names."""

    n: int
    """Number of labels, I_d."""
    positions: FloatArray | None = None
    """(I_d, P), positions of the labels; on a line if P is one."""
    places: Places = Places.COORDINATES
    features: Any = None
    """(I_d, F), features of the labels, an array or a sparse matrix of SciPy; None if unknown."""

    @classmethod
    def of_coordinates(cls, n: int) -> Axis:
        """Axis of coordinates 0, ..., n - 1 without labels."""
        return cls(n, np.arange(float(n))[:, None])


class Graph(NamedTuple):
    """Which slices of a core depend on each other given all others, as rows of a sparse matrix.

    The precision between slices i and j is ``-weights[n] * precision`` for the n between
    ``starts[i]`` and ``starts[i + 1]`` with ``others[n] == j``; every pair is there twice.
    """

    starts: IntArray
    """(I_d + 1,)."""
    others: IntArray
    weights: FloatArray

    def pull(self, slices: FloatArray) -> FloatArray:
        """For each slice the weighted sum of those that it depends on, (I_d, K)."""
        n = len(self.starts) - 1
        return np.asarray(csr_array((self.weights, self.others, self.starts), (n, n)) @ slices)


class SlicePrior(NamedTuple):
    """Gaussian prior of the slices of one core, in the form used by the kernels.

    Slice i has precision ``factors[i] * precision + diag(diagonal[i])`` and linear term
    ``linear[i]`` (precision times mean). A single row in `factors`, `diagonal` and `linear` applies
    to all slices. If slices form a chain, the precision between slices i and i + 1 is
    ``-links[i] * precision``, and `linear` excludes the neighbours. A graph says more generally
    which slices depend on each other; again, `linear` excludes them.
    """

    precision: FloatArray
    """(K, K), K = S R_{d-1} R_d; of new slices also (n, K, K), if they have no links."""
    diagonal: FloatArray
    """(1, K) or (I_d, K)."""
    linear: FloatArray
    """(1, K) or (I_d, K)."""
    factors: FloatArray = np.ones(1)
    """(1,) or (I_d,)."""
    links: FloatArray | None = None
    """(I_d - 1,), or None if slices are no chain."""
    graph: Graph | None = None

    def rows(self, slices: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Diagonal, linear terms and factors of some slices; one row where all are equal."""
        return (
            self.diagonal if len(self.diagonal) == 1 else self.diagonal[slices],
            self.linear if len(self.linear) == 1 else self.linear[slices],
            self.factors if len(self.factors) == 1 else self.factors[slices],
        )


class Observations(NamedTuple):
    """Observed entries of a tensor, in coordinate form."""

    coords: IntArray
    """(n, D), one row per observation, from 0."""
    values: FloatArray
    """(n,)."""
    shape: tuple[int, ...]
    """I_1, ..., I_D."""
    location: float = 0.0
    scale: float = 1.0
    """Units of the values; `in_order` converts them to (value - location) / scale."""
    given: Given = NOTHING
    """What else is known about the observations."""

    @property
    def n(self) -> int:
        """Number of observations."""
        return len(self.values)

    def along(self, mode: int) -> IntArray:
        """(n,) index of each observation in a mode."""
        return self.coords[:, mode]
