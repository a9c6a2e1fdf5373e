"""Polya-Gamma draws PG(1, z) by Devroye's method (Polson, Scott and Windle, 2013, section 4).

PG(1, z) = J*(1, |z| / 2) / 4. The density of J* is an alternating series; a proposal is drawn
from an inverse Gaussian left of `CUT` and an exponential right of it, and accepted by squeezing
between the partial sums. Everything that could underflow is kept as a logarithm, so that the
method holds for |z| of 1000 and far beyond.
"""

import math

import numpy as np
from numba import njit

CUT = 0.64
MAX_TRIES = 10_000
OPTIONS = {"nogil": True, "cache": True}


@njit(**OPTIONS)
def _log_normal_cdf(x):
    """Log Phi(x), by its tail series where the complementary error function underflows."""
    if x > -25.0:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
    y = 1.0 / (x * x)
    return (
        -0.5 * x * x
        - math.log(-x)
        - 0.5 * math.log(2.0 * math.pi)
        + math.log1p(-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y)))
    )


@njit(**OPTIONS)
def _left_probability(z):
    """Probability that a proposal for J*(1, z) comes from the left piece, the inverse Gaussian."""
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    root = math.sqrt(1.0 / CUT)
    log_right = math.log(0.5 * math.pi / rate) - rate * CUT
    first = _log_normal_cdf(root * (CUT * z - 1.0)) - z
    second = _log_normal_cdf(-root * (CUT * z + 1.0)) + z
    larger = max(first, second)
    log_left = math.log(2.0) + larger + math.log1p(math.exp(min(first, second) - larger))
    return 1.0 / (1.0 + math.exp(min(log_right - log_left, 700.0)))


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
            if rng.random() < math.exp(-0.5 * z * z * x):
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
    """Term n of the alternating series, for J*(1, 0) and divided by nothing else."""
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
    left = _left_probability(z)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    for _ in range(MAX_TRIES):
        if rng.random() < left:
            x = _inverse_gaussian_below_cut(rng, z)
            if not x > 0.0:
                return x
        else:
            x = CUT + rng.standard_exponential() / rate
        total = _term(0, x)
        level = rng.random() * total
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
