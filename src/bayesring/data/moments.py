"""Mean and standard deviation of values, the same to the bit however they are cut up.

Sums are integers, in units of 2^-1074, of which every float64 is a multiple. Parts of the data can
be summed anywhere and their sums added in any order; only the final division rounds.
"""

from __future__ import annotations

from math import frexp, inf, ldexp, sqrt
from typing import NamedTuple, Self

import numpy as np

from bayesring.kernels.exact import EXPONENTS, HALF, add_integers
from bayesring.model.types import FloatArray, Moments

UNIT = 1074
"""Sums count in 2^-UNIT."""
CHUNK = 2**20
ENDS, MOST = 16, 15_000
"""Values kept at either end; and number of values of which fewer than that may be far off."""


class Tally(NamedTuple):
    """What a first pass over values finds; tallies of parts add up."""

    n: int = 0
    total: int = 0
    """Their sum, in units of 2^-1074."""
    smallest: float = inf
    largest: float = -inf
    binary: bool = True
    """Whether all values are 0 or 1."""
    whole: bool = True
    """Whether all values are integers."""
    exposure: int = 0
    """The sum of their exposures, in the same units."""

    @classmethod
    def of(cls, values: FloatArray, exposure: FloatArray | None = None) -> Self:
        """Count the finite `values` (n,), and their exposures, which are one by default."""
        n = len(values)
        if n == 0:
            return cls()
        return cls(
            n,
            exact_sum(values),
            float(values.min()),
            float(values.max()),
            bool(np.all((values == 0) | (values == 1))),
            bool(np.all(values % 1 == 0)),
            n << UNIT if exposure is None else exact_sum(exposure),
        )

    def plus(self, other: Tally) -> Tally:
        """Both parts together."""
        return Tally(
            self.n + other.n,
            self.total + other.total,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            self.binary and other.binary,
            self.whole and other.whole,
            self.exposure + other.exposure,
        )

    @property
    def mean(self) -> float:
        """The mean, rounded once."""
        return self.total / (self.n << UNIT)

    @property
    def _exponent(self) -> int:
        """Values times 2^-exponent are at most one."""
        return frexp(max(abs(self.smallest), abs(self.largest)))[1]

    def squares(self, values: FloatArray) -> int:
        """Sum of the squared distances of some values from the mean; sums of parts add up.

        In units of 2^-1074 of the squares of values scaled to at most one, so that nothing
        overflows.
        """
        scaled_mean = ldexp(self.mean, -self._exponent)
        return sum(
            exact_sum(np.square(np.ldexp(part.astype(float), -self._exponent) - scaled_mean))
            for part in _chunks(values)
        )

    def moments(self, squares: int) -> Moments:
        """The moments, given the `squares` of all parts."""
        deviation = sqrt(squares / (self.n << UNIT))
        return Moments(
            self.mean,
            ldexp(deviation, self._exponent),
            self.smallest,
            self.largest,
            self.binary,
            0.0,
            self.whole,
            self.exposure / (self.n << UNIT),
        )


def moments_of(values: FloatArray, exposure: FloatArray | None = None) -> Moments:
    """What a likelihood needs to know about values in memory."""
    tally = Tally.of(values, exposure)
    return tally.moments(tally.squares(values))


def ends_of(values: FloatArray) -> FloatArray:
    """The `ENDS` smallest and the `ENDS` largest values, in order; all if there are no more.

    Those of parts put together, and again those of them, are the ones of the whole.
    """
    if len(values) > 2 * ENDS:
        parted = np.partition(values, (ENDS - 1, len(values) - ENDS))
        values = np.concatenate([parted[:ENDS], parted[-ENDS:]])
    return np.sort(values).astype(float)


def between_ends(ends: FloatArray, n: int) -> FloatArray:
    """Values with the same ends as `n` values, at most `MOST`: all others are in the middle.

    The median of the values is between the ends, too.
    """
    others = min(n, MOST) - len(ends)
    if others <= 0:
        return ends
    return np.insert(ends, ENDS, np.full(others, 0.5 * ends[ENDS - 1] + 0.5 * ends[ENDS]))


def exact_sum(values: FloatArray) -> int:
    """The sum of finite values, in units of 2^-1074."""
    low, high = np.zeros((2, EXPONENTS), dtype=np.int64)
    for part in _chunks(values):
        add_integers(np.ascontiguousarray(part, dtype=np.float64).view(np.int64), low, high)
    used = np.flatnonzero(low | high)
    return sum((int(high[e]) << HALF) + int(low[e]) << int(e) - 1 for e in used)


def _chunks(values: FloatArray) -> list[FloatArray]:
    return [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
