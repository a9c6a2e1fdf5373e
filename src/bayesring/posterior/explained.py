"""What features explain: how much of a mode's variance, and each feature's part of it.

The variance is that of the entries f over the labels of the mode, averaged over cells of the other
modes, so it does not depend on how cores are turned. With slices g_i = mu + B' x_i + e_i and C the
mean of c c' over cells, equation (3), features explain

    tr(C Cov(B' x)) / ( tr(C Cov(B' x)) + tr(C Cov(e)) )

and feature j by itself tr(C Cov(B_j' x_j)) over the same sum, with the rows of B for its columns.
Parts of features that go together overlap or cancel, so they need not add up. That of a column is
its variance times B_j' C B_j.

Where B is too large to be integrated out, slices are turned and scaled so that their entries are
uncorrelated and C is diagonal, and B is drawn roughly for some of the draws; see
`bayesring.priors.quick_slopes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from bayesring.data.features import Features
from bayesring.engine.streams import Purpose, Streams
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior.posterior import Posterior
from bayesring.priors import Featured, RingPrior
from bayesring.priors.quick_slopes import Rough, draw_roughly, expect_strength, rough_design

LEVEL = 0.9
"""Probability of the intervals."""
MOST_DRAWS, CELLS, MOST_LISTED = 200, 1000, 20
"""Draws looked at, cells of the other modes, and features listed in print."""
FEWEST_DRAWS, MOST_WORK = 20, 2.5e9
"""Draws looked at where features are many, and products of entries of X with entries of a slice in
all of them, beyond which there are no more."""
FEWEST_ROUGH, MOST_ROUGH = 5, 2.5e8
"""The same where B is drawn roughly, and X is sparse or large."""
NEGLIGIBLE = 0.01
"""Part of the variance whose directions count as explained like the rest, if B is drawn roughly."""
ENOUGH = 19
"""Draws from which on intervals are quantiles of them."""


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
        share, *parts = _summaries(_shares(posterior, own, described, mode, seed))
        largest = sorted(zip(described.names, parts, strict=True), key=lambda item: -item[1].mean)
        found.append(Explained(names[mode], share, dict(largest)))
    return tuple(found)


def _summaries(shares: FloatArray) -> list[Share]:
    """Of every column, (draws, 1 + J)."""
    tail, n = (1 - LEVEL) / 2, len(shares)
    if n >= ENOUGH:
        ends = np.quantile(shares, [tail, 1 - tail], axis=0, method="weibull")
    else:  # of a further draw, if roots, which are lengths of vectors, are normal
        roots = np.sqrt(shares)
        reach = stdtrit(n - 1, 1 - tail) * np.sqrt(1 + 1 / n) if n > 1 else 0.0
        reach = reach * roots.std(axis=0, ddof=min(1, n - 1))
        ends = np.stack([np.maximum(roots.mean(axis=0) - reach, 0), roots.mean(axis=0) + reach])
        ends = np.minimum(ends**2, 1.0)
    return list(map(Share, shares.mean(axis=0).tolist(), *ends.tolist()))


def _shares(
    posterior: Posterior, prior: Featured, features: Features, mode: int, seed: int
) -> FloatArray:
    """Shares of all features together, and of each, (draws, 1 + J)."""
    chance = np.random.default_rng(seed)
    cells = np.stack([chance.integers(0, size, CELLS) for size in posterior.shape], axis=1)
    columns = _Columns.of(features)
    rough = (
        rough_design(chance, features.matrix, prior.base.exchangeable.k0)
        if prior.is_large
        else None
    )
    count, rows = _count(posterior, rough, features, mode), []
    for chain, draws in enumerate(posterior.chains):
        streams = Streams.of_chain(seed, chain)
        every = max(1, len(posterior.chains) * len(draws.flat) // count)
        first = sum(len(own.flat) for own in posterior.chains[:chain])
        for row in range(0, len(draws.flat), every):
            cores = posterior.cores(first + row)
            weights = draws.bond_weights(row, mode)
            core = ring.unweighted(cores[mode], weights)
            rng = streams.rng(int(draws.scans[row]), Purpose.POPULATION, mode)
            others = ring.features([own.astype(float) for own in cores], weights, mode, cells)
            moments = others.T @ others / len(cells)
            slices = core.reshape(len(core), -1)
            if rough is None:
                slopes = prior.draw_shared(rng, core).slopes
                rows.append(_parts(columns, slices, slopes, moments))
                continue
            turned, variances = _turned(slices, moments)
            strength = expect_strength(rough, turned)
            rest = variances.sum() - np.cumsum(variances)
            size = 1 + int(np.sum(rest > NEGLIGIBLE * variances.sum()))
            drawn = draw_roughly(rng, rough, turned[:, :size], strength)
            rows.append(_parts(columns, turned[:, :size], drawn, np.diag(variances[:size])))
    return np.array(rows)


def _count(posterior: Posterior, rough: Rough | None, features: Features, mode: int) -> int:
    """How many draws are looked at."""
    size = posterior.cores(0)[mode][0].size
    if rough is None:
        work = MOST_WORK / (prod(features.matrix.shape) * size)
        return int(np.clip(work, min(FEWEST_DRAWS, MOST_DRAWS), MOST_DRAWS))
    entries = getattr(rough.design, "nnz", rough.design.size)
    return int(np.clip(MOST_ROUGH / (entries * size), FEWEST_ROUGH, MOST_DRAWS))


class _Columns(NamedTuple):
    """Columns of features, by the features that they belong to."""

    matrix: Any
    """X, (I_d, F)."""
    groups: IntArray
    variances: FloatArray
    """Of every column."""
    several: tuple[tuple[int, slice], ...]
    """Features of several columns."""

    @classmethod
    def of(cls, features: Features) -> _Columns:
        """Those of one feature are neighbours."""
        matrix, groups = features.matrix, features.groups
        squares = matrix.multiply(matrix) if hasattr(matrix, "multiply") else matrix**2
        means, mean_squares = (np.asarray(each.mean(axis=0)).ravel() for each in (matrix, squares))
        starts = np.searchsorted(groups, np.arange(len(features.names) + 1))
        several = tuple(
            (place, slice(starts[place], starts[place + 1]))
            for place in np.flatnonzero(np.diff(starts) > 1).tolist()
        )
        return cls(matrix, groups, np.maximum(mean_squares - means**2, 0.0), several)


def _parts(
    columns: _Columns, slices: FloatArray, slopes: FloatArray, moments: FloatArray
) -> FloatArray:
    """Shares in one draw, (1 + J,)."""
    fitted = np.asarray(columns.matrix @ slopes)
    alone = columns.variances * np.sum((slopes @ moments) * slopes, axis=1)
    parts = np.bincount(columns.groups, alone)
    for place, own in columns.several:
        parts[place] = _variance(columns.matrix[:, own] @ slopes[own], moments)
    explained = _variance(fitted, moments)
    total = explained + _variance(slices - fitted, moments)
    return np.append(explained, parts) / max(total, np.finfo(float).tiny)


def _variance(rows: FloatArray, moments: FloatArray) -> float:
    """tr(C Cov(rows))."""
    gaps = rows - rows.mean(axis=0)
    return float(np.sum(moments * (gaps.T @ gaps)) / len(gaps))


def _turned(slices: FloatArray, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slices with uncorrelated entries of unit variance, and the variances of f along them, (K,).

    The largest come first.
    """
    gaps = slices - slices.mean(axis=0)
    values, vectors = np.linalg.eigh(moments)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    variances, turn = np.linalg.eigh(root.T @ (gaps.T @ gaps / len(gaps)) @ root)
    variances, turn = np.maximum(variances[::-1], 0.0), turn[:, ::-1]
    scale = np.sqrt(np.maximum(variances, np.finfo(float).tiny))
    return gaps @ (root @ turn / scale), variances
