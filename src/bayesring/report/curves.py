"""Ordered modes: the mean of the table along each, with its band, and over what it changes."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from bayesring.engine.streams import Purpose, Streams
from bayesring.model import ring
from bayesring.model.types import FloatArray
from bayesring.priors import Circular, Smooth
from bayesring.report.fitted import Fitted

MOST_DRAWS = 200
"""Number of kept draws behind a curve."""
FIBRES, LONGEST = 50, 2_000
"""Number of fibres, and of labels of the mode, by which it is judged how fast they change."""
LEVEL, FADED = 0.9, np.exp(-1.0)
HOUR, MONTH, YEAR = 1 / 24, 365.25 / 12, 365.25
"""In days."""


class Curve(NamedTuple):
    """The mean over all other modes along an ordered mode."""

    mode: int
    positions: FloatArray
    middle: FloatArray
    lower: FloatArray
    upper: FloatArray
    """(I_d,) each: median and ends of the central 90 % interval, in the units of the data."""
    reach: float
    """Distance at which predictions are correlated by less than 1/e; infinite if they are not
    within the table, and zero if not even neighbours are alike."""
    is_time: bool

    @property
    def words(self) -> str:
        """Over what the slices change."""
        if self.reach == 0:
            return "differs from one to the next"
        if self.reach == np.inf:
            return "hardly changes"
        return f"changes over about {duration(self.reach) if self.is_time else _about(self.reach)}"


def duration(days: float) -> str:
    """Days in words, in the unit that suits them."""
    units = (("years", YEAR), ("months", MONTH), ("days", 1.0), ("hours", HOUR))
    for name, size in units:
        if days >= 2 * size:
            return f"{_about(days / size)} {name}"
    return f"{_about(days / HOUR * 60)} minutes"


def _about(value: float) -> str:
    """Two digits."""
    return f"{float(f'{value:.2g}'):g}"


def curves(fitted: Fitted) -> list[Curve]:
    """One for every ordered mode."""
    return [
        _curve(fitted, mode, prior)
        for mode, own in enumerate(fitted.prior.modes)
        if isinstance(prior := getattr(own, "base", own), Smooth | Circular)
        and len(prior.positions) > 1
    ]


def _curve(fitted: Fitted, mode: int, prior: Smooth | Circular) -> Curve:
    posterior = fitted.posterior
    chosen = np.linspace(0, posterior.n_draws - 1, min(posterior.n_draws, MOST_DRAWS)).astype(int)
    paths = np.empty((len(chosen), fitted.shape[mode]))
    for row, draw in enumerate(chosen):
        cores = [own.astype(float) for own in posterior.cores(int(draw))]
        means = [cores[other].mean(axis=0) for other in ring.ring_order(mode, len(cores))]
        paths[row] = np.einsum("isab,sba->i", cores[mode], reduce(np.matmul, means))
    values = posterior.likelihood.mean(paths, posterior.nuisance[chosen])
    ends = posterior.location + posterior.scale * np.quantile(
        values, [0.5, 0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0
    )
    x, levels = np.array(prior.positions), fitted.labels.levels[mode]
    is_time = levels is not None and levels.dtype.kind in "mM"
    return Curve(mode, x, ends[0], ends[1], ends[2], _reach(fitted, mode, x), is_time)


def _reach(fitted: Fitted, mode: int, positions: FloatArray) -> float:
    """Distance over which predictions along some fibres stay alike."""
    rng = Streams.of_chain(fitted.seed, 0).rng(0, Purpose.SUGGEST, mode)
    n = min(len(positions), LONGEST)
    fibres = np.stack([rng.integers(0, size, FIBRES) for size in fitted.shape], axis=1)
    coords = np.repeat(fibres, n, axis=0)
    coords[:, mode] = np.tile(np.arange(n), FIBRES)
    paths = fitted.posterior.moments(coords, noise=False)[0].reshape(FIBRES, n)
    paths = paths - paths.mean(axis=1, keepdims=True)
    total = float(np.mean(paths**2))
    before, nearer = 1.0, 0.0
    for lag in range(1, n):
        alike = float(np.mean(paths[:, lag:] * paths[:, :-lag])) / total if total > 0 else 1.0
        distance = float(np.mean(np.abs(positions[lag:n] - positions[: n - lag])))
        if alike < FADED:
            share = (before - FADED) / (before - alike)
            return 0.0 if lag == 1 else nearer + share * (distance - nearer)
        before, nearer = alike, distance
    return np.inf
