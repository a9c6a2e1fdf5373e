"""Parameters without a conditional of their own, drawn by choosing among candidates.

The log likelihood at other parameters takes a pass over the observations, and a scan makes one. So
candidates are put down at the end of a scan, beside the parameters themselves, and the next scan
works out the log likelihood at all of them. Given a centre c ~ N(x, h^2) and candidates
x_k ~ N(c, h^2), the density of the centre and all points is the same whichever of them is the
present one, so one of all may be taken with probability proportional to its posterior density
(Tjelmeland, 2004). The width h is drawn from a ladder, whatever the state: one of its rungs suits
the posterior, few observations or many.

Coordinates are unbounded, such as logarithms, and densities are those of these coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from bayesring.model.types import FloatArray

COUNT = 6
WIDTHS = (0.4, 0.1, 0.025)
COIN = 0.4
"""Share of scans without candidates, for likelihoods that draw something else in these."""


def put_down(rng: Generator, now: FloatArray) -> FloatArray:
    """Candidates (COUNT, p) around the present parameters (p,), in all coordinates or in one."""
    width = np.full(now.size, WIDTHS[rng.integers(len(WIDTHS))])
    alone = rng.random() < 0.5
    if alone:
        width[np.arange(now.size) != rng.integers(now.size)] = 0.0
    centre = now + width * rng.standard_normal(now.size)
    return np.asarray(centre + width * rng.standard_normal((COUNT, now.size)))


def choose(rng: Generator, log_densities: FloatArray) -> int:
    """Index of one of the points, with probabilities proportional to their densities."""
    return int(np.argmax(log_densities + rng.gumbel(size=log_densities.size)))


def best(now: FloatArray, points: FloatArray, log_densities: FloatArray) -> FloatArray:
    """The point of highest density, the present one first."""
    return np.asarray(np.vstack([now, points])[int(np.argmax(log_densities))])


def around(now: FloatArray, turn: int) -> FloatArray:
    """Candidates (COUNT, p) at fixed distances, for a search: each turn another coordinate."""
    steps = np.zeros((COUNT, now.size))
    steps[:, turn % now.size] = (-0.5, -0.1, -0.02, 0.02, 0.1, 0.5)
    return np.asarray(now + steps)
