"""Polya-Gamma draws PG(b, z) for real b > 0 (Polson, Scott and Windle, 2013).

PG(1, z) = J*(1, |z| / 2) / 4 is drawn by Devroye's method (section 4 there). The density of J* is
an alternating series. A proposal is drawn from an inverse Gaussian left of `CUT` and an exponential
right of it, and accepted by squeezing between the partial sums.

For other b the transform, E exp(-t omega) = (cosh(z / 2) / cosh(s))^b with s^2 = z^2 / 4 + t / 2,
is that of an inverse Gaussian with mean b / (2 |z|) and shape b^2 / 4, exp(b (|z| / 2 - s)), times
((1 + e^-|z|) / (1 + e^-2s))^b. An inverse Gaussian draw is accepted with probability
(1 + e^-|z|)^-b, and the accepted ones are exact. Where most would be rejected, omega is a sum of
gammas, of which `TERMS` are drawn and the others replaced by an inverse Gaussian.

All methods work for |z| of 1000 and far beyond.
"""

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import binom, expit, log_ndtr, zeta

CUT = 0.64
SECOND = 3.0 * math.exp(-4.0 / CUT)
"""Ratio of the second term of the series to the first, which is largest just left of the cut."""
MAX_TRIES = 10_000
OPTIONS = {"nogil": True, "cache": True}
PER_UNIT, LONGEST = 256, 12
"""Points per unit of the table of `left_probability`, and its end."""
QUIET = {"error_model": "numpy", **OPTIONS}
"""Division by zero gives infinity."""
UNIT = 0.5 / math.pi**2
"""Scale of the gammas, before division by (k - 1/2)^2 + z^2 / (4 pi^2)."""
TERMS = 2
"""Gammas of the series that are drawn one by one; the error is in `_draw_by_series`."""
NEAR, POWERS = 2.0, 8
"""|z| below which the cumulants of the other gammas are power series, and the length of these."""


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


@njit(**QUIET)
def _inverse_gaussian(rng, b, z):
    """Draw from the inverse Gaussian with mean b / (2 z) and shape b^2 / 4; z may be zero.

    The method of Michael, Schucany and Haas (1976), with the smaller root written without
    cancellation.
    """
    normal = rng.standard_normal()
    half = 0.5 * normal * normal / b
    root = 0.5 * z + half + math.sqrt(half * (half + z))
    if rng.random() * (root + 0.5 * z) <= root:
        return 0.25 * b / root
    return (b / z) * (root / z)


@njit(**QUIET)
def is_below_ratio(level, b, x):
    """Whether level <= S(x), the density of PG(b, z) divided by its bound, for every z.

    The bound is the density of the inverse Gaussian times (1 + e^-|z|)^b, and

        S(x) = sum_n (-1)^n Gamma(n + b) / (n! Gamma(b)) (2 n + b) / b exp(-n (n + b) / (2 x)).

    S <= 1, since the Levy density of PG(b, z) lies below that of the inverse Gaussian, which is
    therefore a PG(b, z) plus jumps, and there are none with probability (1 + e^-|z|)^-b.

    The ratio of successive terms falls with n: terms may grow at first, but fall from then on.
    Hence every partial sum bounds S; while terms grow, the sums are below zero and above one by
    turns. Terms beyond 1e9 occur only where S is practically zero.
    """
    factor = math.exp(-0.5 * (b + 1.0) / x)
    term = (b + 2.0) * factor
    total = 1.0 - term
    if level <= total:
        return True
    step = math.exp(-1.0 / x)
    n, sign = 1.0, -1.0
    while term < 1e9:
        factor *= step
        term *= factor * ((n + b) / (n + 1.0)) * ((2.0 * n + 2.0 + b) / (2.0 * n + b))
        n += 1.0
        sign = -sign
        total += sign * term
        if sign > 0.0 and level > total:
            return False
        if sign < 0.0 and level <= total:
            return True
    return False


@njit(**QUIET)
def _draw_by_rejection(rng, b, z):
    """Draw from PG(b, z), z >= 0, in (1 + e^-z)^b tries on average.

    P(omega > b + 8) < 1e-13 for all b and z, by the Chernoff bound.
    """
    for _ in range(MAX_TRIES):
        x = _inverse_gaussian(rng, b, z)
        if x <= b + 8.0 and is_below_ratio(rng.random(), b, x):
            return x
    return math.nan


@njit(**QUIET)
def _scale(k, z):
    """c_k = 1 / (2 pi^2 ((k - 1/2)^2 + z^2 / (4 pi^2))), k = 1, 2, ..."""
    return UNIT / ((k - 0.5) * (k - 0.5) + 0.5 * UNIT * z * z)


def power_series_of_rest():
    """Coefficients of (z^2 / (4 pi^2))^j in sum_{k > TERMS} c_k^n, n = 1, 2, 3, one row each."""
    n, j = np.arange(1, 4)[:, None], np.arange(POWERS)
    return UNIT**n * (-1.0) ** j * binom(n + j - 1, j) * zeta(2 * (n + j), TERMS + 0.5)


REST = power_series_of_rest()


@njit(**QUIET)
def sums_over_rest(z, decay):
    """sum_{k > TERMS} c_k^n for n = 1, 2, 3, with decay = e^-z, z >= 0.

    From `NEAR` on, the sums over all k, by derivatives of log cosh(s), less the first terms.
    """
    one = two = three = 0.0
    if z < NEAR:
        square = 0.5 * UNIT * z * z
        for j in range(POWERS - 1, -1, -1):
            one = REST[0, j] + square * one
            two = REST[1, j] + square * two
            three = REST[2, j] + square * three
        return one, two, three
    tanh = (1.0 - decay) / (1.0 + decay)
    slope = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))  # 1 - tanh^2
    one = tanh / (2.0 * z)
    two = (2.0 * tanh - z * slope) / (4.0 * z**3)
    three = (6.0 * tanh - 3.0 * z * slope - z * z * slope * tanh) / (8.0 * z**5)
    for k in range(1, TERMS + 1):
        c = _scale(k, z)
        one -= c
        two -= c * c
        three -= c * c * c
    return one, two, three


@njit(**QUIET)
def rest(z, decay):
    """Shift, mean and tilt of what replaces the gammas after `TERMS`, per unit of b.

    They are b * shift plus an inverse Gaussian with mean b * mean and shape b^2 mean^2 tilt^2,
    which has their first three cumulants: b sum c_k, b sum c_k^2 and 2 b sum c_k^3.
    """
    one, two, three = sums_over_rest(z, decay)
    mean = 1.5 * two * two / three
    return max(one - mean, 0.0), mean, math.sqrt(mean / two)


@njit(**QUIET)
def _draw_by_series(rng, b, z, decay):
    """Draw from PG(b, z) = sum_k c_k g_k, g_k ~ Ga(b, 1), with `rest` for the later terms.

    The distribution function errs by less than 7e-7 for b > 2 and less than 4e-8 for b > 5.
    """
    shift, mean, tilt = rest(z, decay)
    total = b * shift + _inverse_gaussian(rng, b * (2.0 * mean * tilt), tilt)
    for k in range(1, TERMS + 1):
        total += _scale(k, z) * rng.standard_gamma(b)
    return total


@njit(**QUIET)
def draw_one_sum(rng, b, z):
    """One draw from PG(b, z), the quickest way; NaN unless z is finite and 0 < b < infinity.

    Exact for b <= 2 and wherever rejection accepts more than half of its proposals.
    """
    if not (math.isfinite(z) and 0.0 < b < math.inf):
        return math.nan
    if b == 1.0:
        return draw_one(rng, z)
    z = abs(z)
    decay = math.exp(-z)
    if b < 1.0 or b * decay <= 0.5:
        return _draw_by_rejection(rng, b, z)
    if b == 2.0:
        return draw_one(rng, z) + draw_one(rng, z)
    if b < 2.0:
        return draw_one(rng, z) + _draw_by_rejection(rng, b - 1.0, z)
    return _draw_by_series(rng, b, z, decay)


@njit(**QUIET)
def draw_sums(rng, b, z):
    """omega_n ~ PG(b_n, z_n) for each element of `b` and `z`, both (n,)."""
    omega = np.empty(z.size)
    for n in range(z.size):
        omega[n] = draw_one_sum(rng, b[n], z[n])
    return omega


def mean(b: ArrayLike, z: ArrayLike) -> NDArray[np.float64]:
    """E[omega] = b tanh(z / 2) / (2 z) of PG(b, z), b / 4 at zero; to 1e-9."""
    small = np.abs(z) < 1e-4
    safe = np.where(small, 1.0, z)
    return np.asarray(b) * np.where(small, 0.25, np.tanh(0.5 * safe) / (2 * safe))
