"""Quantiles of mixtures of negative binomials."""

import math

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
SMALL = 256
"""Counts up to which probabilities are summed one by one."""
FRACTIONS = 400
"""Terms of a continued fraction at most."""


@njit(**OPTIONS)
def _continued_fraction(a, b, x):
    """Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, FRACTIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d, c = 1.0 + even * d, 1.0 + even / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d, c = 1.0 + odd * d, 1.0 + odd / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        step = d * c
        total *= step
        if abs(step - 1.0) < 1e-12:
            break
    return total


@njit(**OPTIONS)
def distribution(value, r, mean):
    """P(y <= value) of a negative binomial: I_p(r, value + 1) with p = r / (r + mean)."""
    if value < 0.0:
        return 0.0
    a, b = r, value + 1.0
    p, q = r / (r + mean), mean / (r + mean)
    if q <= 0.0:
        return 1.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(p) + b * math.log(q)
    if p < (a + 1.0) / (a + b + 2.0):
        return min(math.exp(front) * _continued_fraction(a, b, p) / a, 1.0)
    return max(1.0 - math.exp(front) * _continued_fraction(b, a, q) / b, 0.0)


@njit(**OPTIONS)
def _mixture(value, means, r):
    total = 0.0
    for s in range(means.size):
        total += distribution(value, r[s], means[s])
    return total / means.size


@njit(**OPTIONS)
def quantiles(level, means, r):
    """Smallest count at which the mixture's distribution function reaches `level`, (n,).

    Small counts by adding up probabilities, P(y + 1) = P(y) (y + r) / (y + 1) q; larger ones by
    a bracket that grows, then shrinks.

    Parameters
    ----------
    means : (n, draws), expected counts
    r : (draws,), sizes
    """
    n, draws = means.shape
    found = np.empty(n)
    terms, odds = np.empty(draws), np.empty(draws)
    for i in range(n):
        total = 0.0
        for s in range(draws):
            terms[s] = math.exp(-r[s] * math.log1p(means[i, s] / r[s])) / draws
            odds[s] = means[i, s] / (r[s] + means[i, s])
            total += terms[s]
        y = 0
        while total < level and y < SMALL:
            for s in range(draws):
                terms[s] *= odds[s] * (y + r[s]) / (y + 1.0)
                total += terms[s]
            y += 1
        if total >= level:
            found[i] = y
            continue
        low, high = float(y), 2.0 * y
        while _mixture(high, means[i], r) < level and high < 1e18:
            low, high = high, 4.0 * high
        while high - low > 1.0:
            middle = math.floor(0.5 * (low + high))
            if middle <= low or middle >= high:
                break
            if _mixture(middle, means[i], r) < level:
                low = middle
            else:
                high = middle
        found[i] = high
    return found
