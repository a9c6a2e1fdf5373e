"""Polya-Gamma draws PG(1, z) by Devroye's method (Polson, Scott and Windle, 2013, section 4).

PG(1, z) = J*(1, |z| / 2) / 4. The density of J* is an alternating series. A proposal is drawn from
an inverse Gaussian left of `CUT` and an exponential right of it, and accepted by squeezing between
the partial sums. The method works for |z| of 1000 and far beyond.
"""

import math

import numpy as np
from numba import njit
from scipy.special import expit, log_ndtr

CUT = 0.64
SECOND = 3.0 * math.exp(-4.0 / CUT)
"""Ratio of the second term of the series to the first, which is largest just left of the cut."""
MAX_TRIES = 10_000
OPTIONS = {"nogil": True, "cache": True}
PER_UNIT, LONGEST = 256, 12
"""Points per unit of the table of `left_probability`, and its end."""


def left_probability(z):
    """Probability that a proposal for J*(1, z) comes from the left piece, the inverse Gaussian.

    It is the mass of the left piece divided by that of both pieces; z is an array.
    """
    rate = 0.125 * math.pi**2 + 0.5 * z * z
    root = math.sqrt(1.0 / CUT)
    log_right = np.log(0.5 * math.pi / rate) - rate * CUT
    log_left = math.log(2.0) + np.logaddexp(
        log_ndtr(root * (CUT * z - 1.0)) - z, log_ndtr(-root * (CUT * z + 1.0)) + z
    )
    return expit(log_left - log_right)


TABLE = left_probability(np.abs(np.arange(-1, PER_UNIT * LONGEST + 2)) / PER_UNIT)
"""`left_probability`, an even function, at -1 / PER_UNIT, 0, 1 / PER_UNIT, ..."""


@njit(**OPTIONS)
def look_up_left_probability(z):
    """`left_probability` to 1e-11, by a cubic through four points of its table; 1 beyond it."""
    place = z * PER_UNIT
    if place >= PER_UNIT * LONGEST - 1:
        return 1.0
    i = int(place)
    x = place - i
    a, b, c, d = TABLE[i], TABLE[i + 1], TABLE[i + 2], TABLE[i + 3]
    slope = c - a / 3.0 - 0.5 * b - d / 6.0
    square = 0.5 * (a + c) - b
    cube = (d - a) / 6.0 + 0.5 * (b - c)
    return b + x * (slope + x * (square + x * cube))


@njit(**OPTIONS)
def _inverse_gaussian_below_cut(rng, z):
    """Draw from the inverse Gaussian with mean 1 / z and shape 1, conditioned below `CUT`."""
    if z * CUT < 1.0:  # the mean is above the cut: propose from z = 0, accept exp(-z^2 x / 2)
        for _ in range(MAX_TRIES):
            first = rng.standard_exponential()
            second = rng.standard_exponential()
            if first * first > 2.0 * second / CUT:
                continue
            x = CUT / ((1.0 + CUT * first) * (1.0 + CUT * first))
            if rng.standard_exponential() >= 0.5 * z * z * x:
                return x
        return math.nan
    mean = 1.0 / z
    for _ in range(MAX_TRIES):
        normal = rng.standard_normal()
        half = 0.5 * mean * normal * normal
        x = mean * (1.0 + half - math.sqrt(half * (2.0 + half)))
        if rng.random() * (mean + x) > mean:
            x = mean * mean / x
        if x < CUT:
            return x
    return math.nan


@njit(**OPTIONS)
def _term(n, x):
    """Term n of the alternating series for J*(1, 0)."""
    odd = n + 0.5
    if x > CUT:
        return math.pi * odd * math.exp(-0.5 * odd * odd * math.pi * math.pi * x)
    # divided by (2 / (pi x))^{3/2} exp(-1 / (2 x)) / ..., which is common to all terms
    return math.pi * odd * math.exp(-2.0 * (odd * odd - 0.25) / x)


@njit(**OPTIONS)
def draw_one(rng, z):
    """One draw from PG(1, z); NaN when z is not finite."""
    if not math.isfinite(z):
        return math.nan
    z = 0.5 * abs(z)
    left = look_up_left_probability(z)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    for _ in range(MAX_TRIES):
        if rng.random() < left:
            x = _inverse_gaussian_below_cut(rng, z)
            if not x > 0.0:
                return x
        else:
            x = CUT + rng.standard_exponential() / rate
        level = rng.random()
        if level <= 1.0 - SECOND:  # below the first two terms for every x
            return 0.25 * x
        total = _term(0, x)
        level *= total
        n = 0
        while True:
            n += 1
            term = _term(n, x)
            if n % 2 == 1:
                total -= term
                if level <= total:
                    return 0.25 * x
            else:
                total += term
                if level > total:
                    break
            if not term > 0.0:  # the series has ended in exact zeros
                return 0.25 * x
    return math.nan


@njit(**OPTIONS)
def draw(rng, z):
    """omega_n ~ PG(1, z_n) for each element of `z` (n,)."""
    omega = np.empty(z.size)
    for n in range(z.size):
        omega[n] = draw_one(rng, z[n])
    return omega
