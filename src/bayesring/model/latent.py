"""Values that were not observed themselves, drawn or expected given what is known of them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtr, stdtrit

from bayesring.model.types import FloatArray

SMALLEST = 1e-300
FAR, NARROW = 20.0, 1e-3
"""Distance from zero, and width, from which on the moments of a normal between two ends cancel."""
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)
COPIES = 10_000
"""Most draws for one observation, of as many equal ones."""


def log_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """log(Phi(high) - Phi(low)) for low < high, without loss in the tails."""
    low, high, _ = _to_the_left(low, high)
    above, below = log_ndtr(high), log_ndtr(low)
    with np.errstate(divide="ignore"):
        return np.asarray(above + np.log(-np.expm1(np.minimum(below - above, 0.0))))


def draw_normal_between(rng: Generator, low: FloatArray, high: FloatArray) -> FloatArray:
    """Standard normal draws between `low` and `high`, by inversion on the log scale."""
    low, high, flipped = _to_the_left(low, high)
    share = np.maximum(rng.random(low.shape), SMALLEST)
    place = np.logaddexp(log_ndtr(low) + np.log1p(-share), log_ndtr(high) + np.log(share))
    drawn = np.clip(ndtri_exp(np.minimum(place, -1e-300)), low, high)
    return np.where(flipped, -drawn, drawn)


def mean_normal_between(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of a standard normal between `low` and `high`."""
    mass = log_mass(low, high)
    ends = [np.where(np.isfinite(each), each, 0.0) for each in (low, high)]
    left, right = (np.exp(-0.5 * each**2 - mass) / np.sqrt(2 * np.pi) for each in (low, high))
    mean = np.clip(left - right, low, high)
    variance = np.clip(1.0 + ends[0] * left - ends[1] * right - mean**2, 0.0, 1.0)
    hard = (np.minimum(low, high) > FAR) | (np.maximum(low, high) < -FAR) | (high - low < NARROW)
    if np.any(hard):
        mean[hard], variance[hard] = _by_quadrature(low[hard], high[hard])
    return mean, variance


def _by_quadrature(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of a standard normal in an interval that is far out or narrow.

    The density at a distance t from the end a next to zero is exp(-a t - t^2 / 2) there.
    """
    right = low + high > 0
    start, side = np.where(right, low, high), np.where(right, 1.0, -1.0)
    slope = side * start
    width = np.minimum(high - low, 40.0 / np.maximum(slope, 1.0))
    t = 0.5 * width[:, None] * (1.0 + NODES)
    mass = NODE_WEIGHTS * np.exp(-slope[:, None] * t - 0.5 * t**2)
    mass /= mass.sum(axis=1, keepdims=True)
    first = np.sum(mass * t, axis=1)
    variance = np.sum(mass * (t - first[:, None]) ** 2, axis=1)
    return np.clip(start + side * first, low, high), variance


def draw_copies_between(
    rng: Generator, low: FloatArray, high: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and mean square of as many standard normal draws between two ends as the weight says.

    Weights are rounded to whole numbers of draws, one at least.
    """
    copies = np.maximum(np.rint(weight), 1.0)
    total, squares = np.zeros((2, *low.shape))
    for copy in range(int(copies.max(initial=0.0))):
        more = copies > copy
        drawn = draw_normal_between(rng, low[more], high[more])
        total[more] += drawn
        squares[more] += drawn**2
    return total / copies, squares / copies


def draw_t_between(rng: Generator, degrees: float, low: FloatArray, high: FloatArray) -> FloatArray:
    """Draws of the t distribution between `low` and `high`."""
    low, high, flipped = _to_the_left(low, high)
    below, above = stdtr(degrees, low), stdtr(degrees, high)
    place = np.maximum(below + rng.random(low.shape) * (above - below), SMALLEST)
    drawn = np.clip(stdtrit(degrees, place), low, high)
    return np.where(flipped, -drawn, drawn)


def _to_the_left(
    low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool]]:
    """Intervals mirrored so that they lie rather to the left, and which ones were."""
    flipped = np.where(np.isinf(low), high, np.where(np.isinf(high), low, low + high)) > 0
    flipped &= ~np.isneginf(low)
    return np.where(flipped, -high, low), np.where(flipped, -low, high), flipped


def check_copies(weight: FloatArray, what: str) -> None:
    """Refuse weights that stand for too many draws."""
    if np.any(weight > COPIES):
        row = int(np.argmax(weight > COPIES))
        raise ValueError(
            f"sample_weight {what} must be at most {COPIES:,}, since each counts as so many rows, "
            f"got {weight[row]:g} in row {row}; divide all weights by a number."
        )
