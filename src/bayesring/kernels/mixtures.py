"""Quantiles of mixtures of normals and of t, and maps of their samples that keep ranks."""

import math

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
SUMS = OPTIONS | {"fastmath": {"contract", "reassoc"}}
"""For sums whose order does not matter. What is called within them is inlined: of two copies of one
function, a process that compiles may call the one, a process that finds compiled code the other,
and their sums may differ in the last bit."""
STEPS, FARTHEST = 128, 37
"""Values per unit of z at which 1 - Phi is tabulated, and the z at which the table ends."""
_GRID = np.arange(STEPS * FARTHEST + 2) / STEPS
UPPER_TAILS = np.empty(2 * _GRID.size)
"""1 - Phi and its slope per step, in turn."""
UPPER_TAILS[::2] = [0.5 * math.erfc(z * math.sqrt(0.5)) for z in _GRID]
UPPER_TAILS[1::2] = -np.exp(-0.5 * _GRID**2) / (math.sqrt(2.0 * math.pi) * STEPS)
EDGE = 1.0 + 1e-12
"""By so much a tail is larger than asked for: between draws far apart, where it would be the same
everywhere, the quantile is then at the nearer ones."""
VANISHED = 1e-295
"""Tail below which nothing is said about the place: tables end there."""
PRECISION = 1e-12
"""Error of a quantile, relative to the narrowest noise."""
CELLS, HALF = 512, 2.0
"""Cells of a table of heavier tails, over |z| / (|z| + HALF)."""
LAST = CELLS - 8
"""Cell after which the tail is worked out as a power of z."""


@njit(**OPTIONS)
def _following(place, bracket, logarithm, sums, spread):
    """Next place at which to look for a quantile, and what is then left to find, about.

    By Halley's method on the log of the tail: what is left is the cube of the step, in units of
    the narrowest noise. `logarithm` is that of the tail looked for, `sums` the tail, the density
    and its slope at `place`, `spread` the deviation of the mixture and the narrowest noise. A step
    beyond the `bracket` is replaced by bisection, after which as much is left as it was long.
    """
    low, high = bracket
    tail, density, slope = sums
    wide, narrow = spread
    step, bend = -math.inf, 0.0
    if tail > VANISHED:
        gap = math.log(tail) - logarithm
        if gap == 0.0:
            return place, 0.0
        step = math.copysign(math.inf, gap)
        if density > 1e-150 * tail:
            bend = 1.0 + 0.5 * gap * ((slope / density) * (tail / density) + 1.0)
            step = gap * (tail / density) / min(max(bend, 0.5), 2.0)
    following = place + min(max(step, -4.0 * wide), 4.0 * wide)
    if low < following < high:
        moved = abs(following - place) / narrow
        return following, (moved**3 if 0.5 < bend < 2.0 else moved)
    if low == -math.inf:
        following = place - wide
    elif high == math.inf:
        following = place + wide
    else:
        following = 0.5 * (low + high)
    return following, abs(following - place) / narrow


@njit(inline="always", **SUMS)
def _normal_sums(place, side, row, roots):
    """Upper tail of a mixture of normals at `place`, density, and slope of the density.

    The tail of each is cubic between tabulated values and slopes, its relative error some
    (z / STEPS)^4 / 384. For side = -1, all of the mixture mirrored at zero.
    """
    tail = density = slope = 0.0
    for s in range(row.size):
        z = (place - side * row[s]) * roots[s]
        at = min(abs(z), float(FARTHEST)) * STEPS
        k = int(at)
        u = at - k
        low, down_low = UPPER_TAILS[2 * k], UPPER_TAILS[2 * k + 1]
        high, down_high = UPPER_TAILS[2 * k + 2], UPPER_TAILS[2 * k + 3]
        gap = high - low
        cubic = (down_low - gap) * (1.0 - u) - (down_high - gap) * u
        beyond = low + u * gap + u * (1.0 - u) * cubic
        tail += beyond if z >= 0.0 else 1.0 - beyond
        fall = (down_low * (1.0 - u) + down_high * u) * roots[s]
        density -= fall
        slope += fall * z * roots[s]
    return tail / row.size, density * STEPS / row.size, slope * STEPS / row.size


@njit(inline="always", **SUMS)
def _centre_and_square(row):
    """Mean and variance of some numbers."""
    mean = square = 0.0
    for s in range(row.size):
        mean += row[s]
    mean /= row.size
    for s in range(row.size):
        square += (row[s] - mean) ** 2
    return mean, square / row.size


@njit(**OPTIONS)
def _noise(roots):
    """Mean of 1 / root^2, and the smallest 1 / root."""
    noise, narrowest = 0.0, math.inf
    for s in range(roots.size):
        noise += 1.0 / (roots[s] * roots[s] * roots.size)
        narrowest = min(narrowest, 1.0 / roots[s])
    return noise, narrowest


@njit(**SUMS)
def normal_mixture_quantiles(tails, scores, sides, centres, roots):
    """Where each row's mixture of N(centres[n, s], 1 / roots[s]^2) leaves `tails` beyond, (k, n).

    Halley's method on the logarithm of the tail, starting from the normal with the mixture's mean
    and variance. Every place tried narrows a bracket.

    Parameters
    ----------
    tails, scores, sides : (k,), probability at most one half, the standard normal's quantile that
        leaves it above, and 1 if it lies above the quantile looked for, -1 if below
    centres : (n, draws); roots : (draws,), square roots of the precisions
    """
    noise, narrowest = _noise(roots)
    found = np.empty((tails.size, len(centres)))
    for i in range(len(centres)):
        row = centres[i]
        mean, square = _centre_and_square(row)
        spread = math.sqrt(square + noise)
        for k in range(tails.size):
            tail, low, high = tails[k] * EDGE, -math.inf, math.inf
            place = sides[k] * mean + scores[k] * spread
            for _ in range(400):
                sums = _normal_sums(place, sides[k], row, roots)
                if sums[0] > tail:
                    low = place
                else:
                    high = place
                place, left = _following(
                    place, (low, high), math.log(tail), sums, (spread, narrowest)
                )
                if left <= PRECISION:
                    break
            found[k, i] = sides[k] * place
    return found


@njit(**OPTIONS)
def _between(value, knots, images):
    """Piecewise linear function through (knots, images), its first and last piece prolonged.

    Where knots are equal, the first of their images.
    """
    low, high = 0, knots.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    gap = knots[high] - knots[low]
    if gap <= 0.0:
        return images[low]
    return images[low] + (images[high] - images[low]) / gap * (value - knots[low])


@njit(**OPTIONS)
def remap(samples, x, scores, sizes, new_sizes):
    """Move every sample to where its normal score, z, becomes t(z); ranks stay.

    Parameters
    ----------
    samples : (draws, n)
    x : (n, k), places with these `scores` (k,), both increasing
    sizes, new_sizes : |z| from zero on, and t of it; beyond the last, t is proportional to z
    """
    moved = np.empty_like(samples)
    last = new_sizes[-1] / sizes[-1]
    for i in range(samples.shape[1]):
        for s in range(samples.shape[0]):
            z = _between(samples[s, i], x[i], scores)
            size = abs(z)
            new = size * last if size >= sizes[-1] else _between(size, sizes, new_sizes)
            moved[s, i] = _between(math.copysign(new, z), scores, x[i])
    return moved


@njit(**OPTIONS)
def _far_tail(size, degrees, own):
    """Tail and density of t beyond the table `own`: z^-nu (a + b / z^2), as at its last value."""
    last = HALF * LAST / (CELLS - LAST)
    tail, slope = own[2 * LAST], own[2 * LAST + 1] * CELLS * HALF / (last + HALF) ** 2
    if tail <= 0.0:  # of many degrees, as of the normal, nothing is left so far out
        return 0.0, 0.0
    rest = 0.5 * (-slope * last / tail - degrees)
    ratio = last / size
    power = tail * ratio**degrees
    beyond = power * (1.0 - rest + rest * ratio * ratio)
    return beyond, (degrees * beyond + 2.0 * rest * power * ratio * ratio) / size


@njit(inline="always", **SUMS)
def _t_sums(place, side, row, roots, degrees, table):
    """The same as `_normal_sums` for noise of t, by one table per draw."""
    tail = density = slope = 0.0
    for s in range(row.size):
        z = (place - side * row[s]) * roots[s]
        size = abs(z)
        at = size / (size + HALF) * CELLS
        if at < LAST:
            k = int(at)
            u = at - k
            low, down_low = table[s, 2 * k], table[s, 2 * k + 1]
            high, down_high = table[s, 2 * k + 2], table[s, 2 * k + 3]
            gap = high - low
            cubic = (down_low - gap) * (1.0 - u) - (down_high - gap) * u
            beyond = low + u * gap + u * (1.0 - u) * cubic
            rate = CELLS * HALF / ((size + HALF) * (size + HALF))
            fall = -(down_low * (1.0 - u) + down_high * u) * rate * roots[s]
        else:
            beyond, fall = _far_tail(size, degrees[s], table[s])
            fall *= roots[s]
        tail += beyond if z >= 0.0 else 1.0 - beyond
        density += fall
        slope -= fall * (degrees[s] + 1.0) * z / (degrees[s] + z * z) * roots[s]
    return tail / row.size, density / row.size, slope / row.size


@njit(**SUMS)
def t_mixture_quantiles(tails, starts, sides, centres, roots, degrees, table):
    """`normal_mixture_quantiles` of noise of t with `degrees` (draws,) of freedom.

    `starts` (2, k) are the standard normal's quantiles and the noise's. `table` (draws, .) holds
    for every draw the upper tail of t and its slope per cell, in turn, where |z| / (|z| + HALF) is
    a multiple of 1 / CELLS, up to cell LAST.
    """
    noise, narrowest = _noise(roots)
    found = np.empty((tails.size, len(centres)))
    for i in range(len(centres)):
        row = centres[i]
        mean, square = _centre_and_square(row)
        spread = math.sqrt(square + noise)
        for k in range(tails.size):
            tail, low, high = tails[k] * EDGE, -math.inf, math.inf
            start = math.sqrt(square * starts[0, k] ** 2 + starts[1, k] ** 2)
            place = sides[k] * mean + start
            step = spread + start
            for _ in range(400):
                sums = _t_sums(place, sides[k], row, roots, degrees, table)
                if sums[0] > tail:
                    low = place
                else:
                    high = place
                place, left = _following(
                    place, (low, high), math.log(tail), sums, (step, narrowest)
                )
                if left <= PRECISION:
                    break
            found[k, i] = sides[k] * place
    return found
