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
def normal_mixture_quantiles(level, normal_quantile, centres, roots):
    """Quantile of each row's mixture: mean_s Phi((x_n - centres[n, s]) roots[s]) = level.

    Newton's method, starting from the quantile of the normal with the mixture's mean and variance.
    Every value tried narrows a bracket; a step that would leave it is replaced by bisection.

    Parameters
    ----------
    level : between 0 and 1; normal_quantile : quantile of the standard normal at that level
    centres : (n, draws); roots : (draws,), square roots of the precisions
    """
    n, draws = centres.shape
    noise = 0.0
    for s in range(draws):
        noise += 1.0 / (roots[s] * roots[s] * draws)
    quantiles = np.empty(n)
    for i in range(n):
        row = centres[i]
        mean = square = 0.0
        for s in range(draws):
            mean += row[s]
        mean /= draws
        for s in range(draws):
            square += (row[s] - mean) ** 2
        spread = math.sqrt(square / draws + noise)
        low, high = -math.inf, math.inf
        x = mean + normal_quantile * spread
        for _ in range(200):
            value, density = _cdf_and_density(x, row, roots)
            if value < level:
                low = x
            else:
                high = x
            step = (level - value) / density if density > 0.0 else math.inf
            following = x + min(max(step, -4.0 * spread), 4.0 * spread)
            if not low < following < high:
                if low == -math.inf:
                    following = x - spread
                elif high == math.inf:
                    following = x + spread
                else:
                    following = 0.5 * (low + high)
            moved = abs(following - x)
            x = following
            if moved <= 1e-10 * spread:
                break
        quantiles[i] = x
    return quantiles
