"""Predictions of chains for observations held out while they explore.

These show the likelihood how well unseen values are predicted, so that it can bound its own noise
before the first kept draw: see `Likelihood.calibrate`. Afterwards the chain continues with all of
the training data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesring.data.observations import HeldOut, Observations
from bayesring.engine.protocol import Engine
from bayesring.likelihoods import Likelihood
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray

MEMORY, RECENT = 100, 10
"""Number of scans over which moments average once the rank is fixed, and while it changes."""


class RunningMoments(NamedTuple):
    """Averages over recent scans at held-out cells: E[y | f], its square, and Var[y | f]."""

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
    """Held-out observations while a chain explores, and its predictions for them."""

    def __init__(
        self,
        data: Observations,
        recent: RunningMoments | None = None,
        settled: RunningMoments | None = None,
    ) -> None:
        self.data = data
        self._columns = np.ascontiguousarray(data.coords.T, dtype=np.int32)
        self.recent = recent or RunningMoments.empty(len(data.values))
        self.settled = settled or self.recent

    def see(
        self, flat: FlatRing, likelihood: Likelihood, nuisance: FloatArray, engine: Engine
    ) -> float:
        """Add the ring of one more scan; returns the loss of the recent scans together."""
        given = likelihood.locate(self.data.given, self.data.along)
        fitted = engine.entries(flat, self._columns)
        fitted = fitted if given.offset is None else fitted + given.offset
        scan = (
            likelihood.mean(fitted, nuisance, given),
            likelihood.variance(fitted, nuisance, given),
        )
        self.recent, self.settled = self.recent.add(*scan, RECENT), self.settled.add(*scan)
        return likelihood.loss(self.data.values, self.recent.mean, given)

    def settle(self) -> None:
        """Reset the settled moments: scans at another rank say little."""
        self.settled = RunningMoments.empty(len(self.data.values))


class Predicted(NamedTuple):
    """Predictions of all chains together for held-out observations."""

    data: Observations
    mean: FloatArray
    """Mean of E[y | f]."""
    variance: FloatArray
    """Variance of E[y | f], within and between chains."""
    noise: FloatArray
    """Mean of Var[y | f]."""

    def calibrated(self, likelihood: Likelihood, draws: FloatArray | None = None) -> Likelihood:
        """The likelihood calibrated by these, and by the kept `draws` of its parameters."""
        given = likelihood.locate(self.data.given, self.data.along)
        return likelihood.calibrate(self.data.values, self.mean, self.variance, draws, given)

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
