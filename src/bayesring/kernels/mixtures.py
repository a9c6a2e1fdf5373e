"""Quantiles of mixtures of normals."""

import math

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
INVERSE_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


@njit(**OPTIONS)
def _cdf_and_density(x, centres, roots):
    """Distribution function and density at x of an equal mixture of N(centre, 1 / root^2)."""
    total = density = 0.0
    for s in range(centres.size):
        z = (x - centres[s]) * roots[s]
        total += 0.5 * math.erfc(-z * math.sqrt(0.5))
        density += roots[s] * INVERSE_ROOT_2PI * math.exp(-0.5 * z * z)
    return total / centres.size, density / centres.size


@njit(**OPTIONS)
def normal_mixture_quantiles(level, centres, roots):
    """Quantile of each row's mixture: mean_s Phi((x_n - centres[n, s]) roots[s]) = level.

    Newton's method inside a bracket, with bisection where a step would leave it.

    Parameters
    ----------
    level : between 0 and 1
    centres : (n, draws); roots : (draws,), square roots of the precisions
    """
    n, draws = centres.shape
    quantiles = np.empty(n)
    for i in range(n):
        row = centres[i]
        mean = square = noise = 0.0
        for s in range(draws):
            mean += row[s]
            noise += 1.0 / (roots[s] * roots[s])
        mean /= draws
        for s in range(draws):
            square += (row[s] - mean) ** 2
        spread = math.sqrt(square / draws + noise / draws)
        low, high = mean - spread, mean + spread
        width = spread
        while _cdf_and_density(low, row, roots)[0] > level:
            width *= 2.0
            low -= width
        width = spread
        while _cdf_and_density(high, row, roots)[0] < level:
            width *= 2.0
            high += width
        x = 0.5 * (low + high)
        for _ in range(100):
            value, density = _cdf_and_density(x, row, roots)
            if value < level:
                low = x
            else:
                high = x
            step = (value - level) / density if density > 0.0 else math.inf
            following = x - step
            if not (low < following < high):
                following = 0.5 * (low + high)
            if abs(following - x) <= 1e-12 * spread:
                x = following
                break
            x = following
        quantiles[i] = x
    return quantiles
