"""Draws from a gamma distribution that is cut off."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.random import Generator
from scipy.special import gammainc, gammaincinv


def draw_truncated_gamma(rng: Generator, shape: float, rate: float, upper: float) -> float:
    """Draw from Ga(shape, rate) cut off above `upper`, exactly, by rejection.

    The log density g is concave for shape > 1. If its mode lies well above `upper`, proposals are
    exponential below `upper` with the slope of g there, its tangent. Otherwise they come from the
    gamma itself or, if few of those would be accepted, from inverting its distribution function.
    """
    slope = (shape - 1) / upper - rate
    if slope * upper <= sqrt(max(shape, 1.0)):
        mass = float(gammainc(shape, rate * upper))
        while mass > 0.1:
            draw = float(rng.gamma(shape) / rate)
            if 0.0 < draw <= upper:
                return draw
        return min(float(gammaincinv(shape, mass * rng.uniform(1e-300, 1.0))) / rate, upper)
    while True:
        gap = float(rng.exponential(1.0 / slope))
        if gap < upper:
            log_ratio = (shape - 1) * np.log1p(-gap / upper) + rate * gap + slope * gap
            if rng.random() < exp(log_ratio):
                return upper - gap
