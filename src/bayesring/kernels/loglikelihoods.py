"""Log likelihoods at several parameters at once, in one pass over the observations."""

import math

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
TOGETHER, LARGE = 16, 1e18
"""Factors of which one logarithm is taken, and their size, so that products do not overflow."""


@njit(**OPTIONS)
def student_t(fitted, values, weight, ratios, powers):
    """sum_n w_n powers[k] log(1 + ratios[k] (y_n - f_n)^2), (K,); one weight stands for all.

    Of observations that weigh the same, logarithms are taken of products of `TOGETHER` of them.
    """
    sums = np.zeros(ratios.size)
    if weight.size > 1:
        for n in range(fitted.size):
            square = (values[n] - fitted[n]) ** 2
            for k in range(ratios.size):
                sums[k] += weight[n] * math.log1p(ratios[k] * square)
        return powers * sums
    products, farthest = np.ones(ratios.size), LARGE / ratios.max()
    for n in range(fitted.size):
        square = (values[n] - fitted[n]) ** 2
        if square < farthest:
            for k in range(ratios.size):
                products[k] *= 1.0 + ratios[k] * square
        else:
            for k in range(ratios.size):
                sums[k] += math.log1p(ratios[k] * square)
        if n % TOGETHER == TOGETHER - 1 or n == fitted.size - 1:
            for k in range(ratios.size):
                sums[k] += math.log(products[k])
                products[k] = 1.0
    return weight[0] * powers * sums


@njit(**OPTIONS)
def negative_binomial(means, values, weight, sizes, table, first):
    """sum_n w_n (log Gamma(y_n + r_k) - (y_n + r_k) log(1 + mu_n / r_k) - y_n log r_k), (K,).

    `table` (K, J) holds log Gamma(y + r_k) for y from `first` on.
    """
    sums = np.zeros(sizes.size)
    logs = np.log(sizes)
    for n in range(means.size):
        own = weight[n] if weight.size > 1 else weight[0]
        place = int(values[n]) - first
        for k in range(sizes.size):
            r = sizes[k]
            top = table[k, place] - values[n] * logs[k]
            sums[k] += own * (top - (values[n] + r) * math.log1p(means[n] / r))
    return sums
