"""What features explain: how much of a mode's variance, and each feature's part of it.

The variance is that of the entries f over the labels of the mode, averaged over cells of the other
modes, so it does not depend on how cores are turned. With slices g_i = mu + B' x_i + e_i and C the
mean of c c' over cells, equation (3), features explain

    tr(C Cov(B' x)) / ( tr(C Cov(B' x)) + tr(C Cov(e)) )

and feature j by itself tr(C Cov(B_j' x_j)) over the same sum, with the rows of B for its columns.
Parts of features that go together overlap or cancel, so they need not add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.features import Features
from bayesring.engine.streams import Purpose, Streams
from bayesring.model import ring
from bayesring.model.types import FloatArray
from bayesring.posterior.posterior import Posterior
from bayesring.priors import Featured, RingPrior

LEVEL = 0.9
"""Probability of the intervals."""
MOST_DRAWS, CELLS, MOST_LISTED = 200, 1000, 20
"""Draws looked at, cells of the other modes, and features listed in print."""


class Share(NamedTuple):
    """A share of the variance: its mean and interval over the draws."""

    mean: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.mean:.1%} ({self.lower:.1%} to {self.upper:.1%})"


class Explained(NamedTuple):
    """What the features of a mode explain."""

    mode: str
    share: Share
    features: dict[str, Share]
    """The part of every feature, the largest first."""

    def lines(self) -> list[str]:
        """Sentences."""
        listed = [f"  {name}: {share}" for name, share in list(self.features.items())[:MOST_LISTED]]
        more = len(self.features) - len(listed)
        listed += [f"  and {more} more"] if more else []
        return [f"Features explain {self.share} of what differs between {self.mode}s:", *listed]


def explain(
    posterior: Posterior,
    prior: RingPrior,
    features: Sequence[Features | None],
    names: Sequence[str],
    seed: int,
) -> tuple[Explained, ...]:
    """For every mode with features, what they explain."""
    found = []
    for mode, (own, described) in enumerate(zip(prior.modes, features, strict=True)):
        if described is None or not isinstance(own, Featured):
            continue
        shares = _shares(posterior, own, described, mode, seed)
        by_feature = {
            name: _share(shares[:, 1 + place]) for place, name in enumerate(described.names)
        }
        largest = sorted(by_feature.items(), key=lambda item: -item[1].mean)
        found.append(Explained(names[mode], _share(shares[:, 0]), dict(largest)))
    return tuple(found)


def _share(draws: FloatArray) -> Share:
    lower, upper = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Share(float(draws.mean()), float(lower), float(upper))


def _shares(
    posterior: Posterior, prior: Featured, features: Features, mode: int, seed: int
) -> FloatArray:
    """Shares of all features together, and of each, (draws, 1 + J)."""
    chance = np.random.default_rng(seed)
    cells = np.stack([chance.integers(0, size, CELLS) for size in posterior.shape], axis=1)
    rows = []
    for chain, draws in enumerate(posterior.chains):
        streams = Streams.of_chain(seed, chain)
        every = max(1, len(posterior.chains) * len(draws.flat) // MOST_DRAWS)
        first = sum(len(own.flat) for own in posterior.chains[:chain])
        for row in range(0, len(draws.flat), every):
            cores = posterior.cores(first + row)
            weights = draws.bond_weights(row, mode)
            core = ring.unweighted(cores[mode], weights)
            rng = streams.rng(int(draws.scans[row]), Purpose.POPULATION, mode)
            hyper = prior.draw_shared(rng, core)
            others = ring.features([own.astype(float) for own in cores], weights, mode, cells)
            moments = others.T @ others / len(cells)
            residual = core.reshape(len(core), -1) - features.matrix @ hyper.slopes
            fitted = [_variance(features.matrix, hyper.slopes, moments)]
            for place in range(len(features.names)):
                columns = np.flatnonzero(features.groups == place)
                fitted.append(
                    _variance(features.matrix[:, columns], hyper.slopes[columns], moments)
                )
            total = fitted[0] + _variance(residual, np.eye(residual.shape[1]), moments)
            rows.append(np.array(fitted) / max(total, np.finfo(float).tiny))
    return np.array(rows)


def _variance(design: Any, slopes: FloatArray, moments: FloatArray) -> float:
    """tr(C Cov(B' x))."""
    fitted = np.asarray(design @ slopes)
    gaps = fitted - fitted.mean(axis=0)
    return float(np.sum((gaps @ moments) * gaps) / len(gaps))
