"""Tails of continuous noise, set by held-out values so that every interval covers what it says.

`tails` are values t(|z|) at the normal scores of `LEVELS`: the quantile of the mixture over draws
at normal score z becomes the one at t(z). Empty tails change nothing.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from bayesring.model.types import FloatArray

LEVELS = np.arange(1, 100) / 100
NORMAL_TAILS = ndtri(0.5 + 0.5 * LEVELS)
PSEUDO = 100
"""Held-out values that weigh as much as the belief that nothing needs calibrating."""
PSEUDO_SIZES = 10
"""The same for the size of all normal scores together."""
SIZES = np.append(0.0, NORMAL_TAILS)
"""|z| at which `tails` give t(|z|), after t(0) = 0."""
KNOTS = 8.0 * np.sinh(np.linspace(-2.0, 2.0, 97)) / np.sinh(2.0)
"""Normal scores at which the quantiles of a mixture are tabulated, close around zero."""
SMALLEST = 1e-290
"""Smallest tail probability that is asked for."""


def shrunk(sizes: FloatArray) -> tuple[float, ...]:
    """Quantiles of the sizes at `LEVELS`, for t.

    Few values say how wide intervals are to be, but not how each level is: quantiles are drawn
    towards those of a normal of their own size as if by `PSEUDO` values more, and that size towards
    one as if by `PSEUDO_SIZES`.
    """
    half, most = np.quantile(sizes, (0.5, 0.9)) / ndtri((0.75, 0.95))
    own = (sizes.size * 0.5 * (half + most) + PSEUDO_SIZES) / (sizes.size + PSEUDO_SIZES)
    share = sizes.size / (sizes.size + PSEUDO)
    tails = share * np.quantile(sizes, LEVELS) + (1 - share) * own * NORMAL_TAILS
    return tuple(tails.tolist())


def level_of(tails: tuple[float, ...], level: float) -> float:
    """Level of the mixture at whose quantile a new observation has probability `level`."""
    if not tails:
        return level
    normal = ndtri(level)
    if abs(normal) >= NORMAL_TAILS[-1]:
        return float(ndtr(normal * tails[-1] / NORMAL_TAILS[-1]))
    size = np.interp(abs(normal), SIZES, np.append(0.0, tails))
    return float(ndtr(np.copysign(size, normal)))


def stretch_of(tails: tuple[float, ...]) -> float:
    """kappa = sqrt(E t(z)^2), z ~ N(0, 1): exact where the mixture is normal.

    t is linear between the levels, t = a + b z, so with m_k the integral of z^k over the normal
    density between two of them, E t^2 is a sum of a^2 m_0 + 2 a b m_1 + b^2 m_2.
    """
    if not tails:
        return 1.0
    sizes, new = SIZES, np.append(0.0, tails)
    slopes = np.append(np.diff(new) / np.diff(sizes), new[-1] / sizes[-1])
    starts = new - slopes * sizes
    density = np.append(np.exp(-0.5 * sizes**2) / sqrt(2 * np.pi), 0.0)
    mass = -np.diff(np.append(ndtr(-sizes), 0.0))
    first = -np.diff(density)
    second = mass - np.diff(np.append(sizes, 0.0) * density)
    halves = starts**2 * mass + 2 * starts * slopes * first + slopes**2 * second
    return sqrt(2 * float(halves.sum()))
