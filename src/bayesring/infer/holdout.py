"""Observations held out of the training data while a chain explores.

They tell the likelihood how well unseen values are predicted, so that it can bound its own noise
before the first kept draw: see `Likelihood.calibrate`. Afterwards the chain goes on with all of
the training data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from bayesring.kernels import entries as entries_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import HeldOut, Observations, in_order
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray

SHARE = 0.1
FEWEST, MOST = 50, 1_000
"""Observations held out; with fewer than the first number none are."""
MEMORY, RECENT = 100, 10
"""Scans over which moments average once the rank rests, and while it changes."""


def hold_out(data: Observations, seed: int) -> tuple[Observations, Observations | None]:
    """Part data into those to fit and those to hold out, or None if there are too few.

    The choice depends on the seed and on the observations, not on the order they came in.
    """
    n = len(data.values)
    n_held = min(int(SHARE * n), MOST)
    if n_held < FEWEST:
        return data, None
    data = in_order(data)
    rng = Generator(Philox(SeedSequence([seed, n])))
    held = np.zeros(n, dtype=bool)
    held[rng.permutation(n)[:n_held]] = True
    return _some(data, ~held), _some(data, held)


def _some(data: Observations, chosen: NDArray[np.bool]) -> Observations:
    """Observations of a sorted set, still sorted."""
    columns = np.empty((len(data.shape), np.count_nonzero(chosen)), dtype=np.int32)
    for column, whole in zip(columns, data.coords.T, strict=True):
        column[:] = whole[chosen]
    return Observations(columns.T, data.values[chosen], data.shape)


class RunningMoments(NamedTuple):
    """Averages over the last scans at held-out cells: of E[y | f], its square, and Var[y | f]."""

    n_scans: int
    mean: FloatArray
    square: FloatArray
    noise: FloatArray

    @classmethod
    def empty(cls, n: int) -> RunningMoments:
        """Return moments before the first scan."""
        return cls(0, *np.zeros((3, n)))

    def add(self, expected: FloatArray, noise: FloatArray, memory: int = MEMORY) -> RunningMoments:
        """Moments with one more scan; scans older than `memory` fade."""
        share = max(1.0 / (self.n_scans + 1), 1.0 / memory)
        return RunningMoments(
            self.n_scans + 1,
            (1 - share) * self.mean + share * expected,
            (1 - share) * self.square + share * expected**2,
            (1 - share) * self.noise + share * noise,
        )

    @property
    def variance(self) -> FloatArray:
        """Variance over the scans."""
        return np.maximum(self.square - self.mean**2, 0.0)


class Watch:
    """Held-out observations while a chain explores, and what it expects of them."""

    def __init__(self, data: Observations) -> None:
        self.data = data
        self.recent = self.settled = RunningMoments.empty(len(data.values))

    def see(self, flat: FlatRing, likelihood: Likelihood, nuisance: FloatArray) -> float:
        """Add the ring of one more scan; returns the loss of the last scans taken together."""
        fitted = entries_at(flat, self.data)
        scan = likelihood.mean(fitted), likelihood.variance(fitted, nuisance)
        self.recent, self.settled = self.recent.add(*scan, RECENT), self.settled.add(*scan)
        return likelihood.loss(self.data.values, self.recent.mean)

    def settle(self) -> None:
        """Begin the settled moments anew: what was seen at another rank says little."""
        self.settled = RunningMoments.empty(len(self.data.values))


class Predicted(NamedTuple):
    """What all chains together expect of held-out observations."""

    data: Observations
    mean: FloatArray
    """Mean of E[y | f]."""
    variance: FloatArray
    """Variance of E[y | f], within chains and between them."""
    noise: FloatArray
    """Mean of Var[y | f]."""

    def in_units(self, location: float, scale: float) -> HeldOut:
        """The same in the units of the data."""
        return HeldOut(
            np.asarray(self.data.coords),
            location + scale * np.asarray(self.data.values),
            location + scale * self.mean,
            scale * np.sqrt(self.variance + self.noise),
        )


def pooled(data: Observations, moments: list[RunningMoments]) -> Predicted:
    """The chains taken together."""
    means = np.stack([each.mean for each in moments])
    within = np.mean([each.variance for each in moments], axis=0)
    noise = np.mean([each.noise for each in moments], axis=0)
    return Predicted(data, means.mean(axis=0), within + means.var(axis=0), noise)


def entries_at(flat: FlatRing, data: Observations) -> FloatArray:
    """F at the coordinates of some observations."""
    columns = np.ascontiguousarray(data.coords.T, dtype=np.int32)
    return np.asarray(entries_kernel.entries(*flat, 0, columns[0], columns[1:], 0))
