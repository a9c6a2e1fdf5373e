"""Values that were not observed themselves, drawn or expected given what is known of them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp, stdtr, stdtrit

from bayesring.model.types import FloatArray

SMALLEST = 1e-300


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
    variance = 1.0 + ends[0] * left - ends[1] * right - mean**2
    return mean, np.clip(variance, 0.0, 1.0)


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
