"""Quantiles of mixtures of normals, and maps of their samples that keep ranks."""

import math

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
INVERSE_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
STEPS, FARTHEST = 64, 37
"""Values per unit of z at which 1 - Phi is tabulated, and the z at which the table ends."""
_GRID = np.arange(STEPS * FARTHEST + 2) / STEPS
UPPER_TAILS = np.array([0.5 * math.erfc(z * math.sqrt(0.5)) for z in _GRID])
SLOPES = -INVERSE_ROOT_2PI * np.exp(-0.5 * _GRID**2) / STEPS


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


@njit(**OPTIONS)
def _upper_tail(z):
    """1 - Phi(z), many times faster than by erfc: cubic between tabulated values and slopes.

    The relative error is some (z / STEPS)^4 / 384: 1e-6 at z = 9, where erfc would be exact.
    """
    size = abs(z)
    if size >= FARTHEST:
        return 0.0 if z > 0.0 else 1.0
    place = size * STEPS
    k = int(place)
    u = place - k
    low, high = UPPER_TAILS[k], UPPER_TAILS[k + 1]
    down_low, down_high = SLOPES[k], SLOPES[k + 1]
    gap = high - low
    cubic = (down_low - gap) * (1.0 - u) - (down_high - gap) * u
    tail = low + u * gap + u * (1.0 - u) * cubic
    return tail if z >= 0.0 else 1.0 - tail


@njit(**OPTIONS)
def normal_mixture_tails(places, centres, roots):
    """What lies beyond `places` (k,) of each row's mixture, in its deviations from its mean.

    Of the lower half of the places, mean_s Phi((x - centres[n, s]) roots[s]); of the others, one
    less that, so that neither is lost to rounding. Returns x and tails, (n, k) each.
    """
    n, draws = centres.shape
    noise = 0.0
    for s in range(draws):
        noise += 1.0 / (roots[s] * roots[s] * draws)
    x, tails = np.empty((n, places.size)), np.empty((n, places.size))
    for i in range(n):
        row = centres[i]
        mean = square = 0.0
        for s in range(draws):
            mean += row[s]
        mean /= draws
        for s in range(draws):
            square += (row[s] - mean) ** 2
        spread = math.sqrt(square / draws + noise)
        for k in range(places.size):
            x[i, k] = mean + places[k] * spread
            side = 1.0 if places[k] >= 0.0 else -1.0
            total = 0.0
            for s in range(draws):
                total += _upper_tail(side * (x[i, k] - row[s]) * roots[s])
            tails[i, k] = total / draws
    return x, tails


@njit(**OPTIONS)
def _between(value, knots, images):
    """Piecewise linear function through (knots, images), its first and last piece prolonged."""
    low, high = 0, knots.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    slope = (images[high] - images[low]) / (knots[high] - knots[low])
    return images[low] + slope * (value - knots[low])


@njit(**OPTIONS)
def remap(samples, x, scores, sizes, new_sizes):
    """Move every sample to where its normal score, z, becomes t(z); ranks stay.

    Parameters
    ----------
    samples : (draws, n)
    x, scores : (n, k), places and their normal scores, both increasing along rows
    sizes, new_sizes : |z| from zero on, and t of it; beyond the last, t is proportional to z
    """
    moved = np.empty_like(samples)
    last = new_sizes[-1] / sizes[-1]
    for i in range(samples.shape[1]):
        for s in range(samples.shape[0]):
            z = _between(samples[s, i], x[i], scores[i])
            size = abs(z)
            new = size * last if size >= sizes[-1] else _between(size, sizes, new_sizes)
            moved[s, i] = _between(math.copysign(new, z), scores[i], x[i])
    return moved


@njit(**OPTIONS)
def _from_table(z, tails, slopes, per_unit):
    """Upper tail and density of symmetric noise at z, by a table over asinh(z) from zero on.

    Cubic between its points; beyond the last, the tail falls as a power of z.
    """
    size = math.asinh(abs(z))
    place = size * per_unit
    last = tails.size - 1
    root = math.sqrt(1.0 + z * z)
    if place >= last:
        rate = -slopes[last] / tails[last]  # of log tail over asinh(z)
        tail = tails[last] * math.exp(-rate * (size - last / per_unit))
        density = rate * tail / root
    else:
        k = int(place)
        u = place - k
        low, high = tails[k], tails[k + 1]
        down_low, down_high = slopes[k] / per_unit, slopes[k + 1] / per_unit
        gap = high - low
        cubic = (down_low - gap) * (1.0 - u) - (down_high - gap) * u
        tail = low + u * gap + u * (1.0 - u) * cubic
        density = -(slopes[k] * (1.0 - u) + slopes[k + 1] * u) / root
    return (tail if z >= 0.0 else 1.0 - tail), density


@njit(**OPTIONS)
def table_mixture_quantiles(level, centres, roots, tails, slopes, per_unit):
    """Quantile of each row's mixture of symmetric noise around `centres` (n, draws).

    Every draw has its own noise: its distribution, over `roots`, is in a row of `tails`, with the
    slopes over asinh(z) beside it. Newton's method within a bracket.
    """
    n, draws = centres.shape
    quantiles = np.empty(n)
    for i in range(n):
        row = centres[i]
        spread = x = 0.0
        for s in range(draws):
            x += row[s] / draws
            spread += 1.0 / (roots[s] * draws)
        low, high = -math.inf, math.inf
        for _ in range(400):
            value = density = 0.0
            for s in range(draws):
                tail, slope = _from_table((row[s] - x) * roots[s], tails[s], slopes[s], per_unit)
                value += tail / draws
                density += slope * roots[s] / draws
            if value < level:
                low = x
            else:
                high = x
            step = (level - value) / density if density > 0.0 else math.inf
            limit = 4.0 * (spread + abs(x - row[0]))
            following = x + min(max(step, -limit), limit)
            if not low < following < high:
                if low == -math.inf:
                    following = x - limit
                elif high == math.inf:
                    following = x + limit
                else:
                    following = 0.5 * (low + high)
            moved = abs(following - x)
            x = following
            if moved <= 1e-9 * spread:
                break
        quantiles[i] = x
    return quantiles
