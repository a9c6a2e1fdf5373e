"""Weights of normal observations whose noise is a scale mixture: Student-t."""

import math

import numpy as np
from numba import njit

from bayesring.kernels import normals

OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}
SQUEEZE = 0.1986
"""A normal x is accepted at least with probability 1 - SQUEEZE c^2 x^4: 0.0331 x^4 is known for a
shape of one, where c^2 = 1/6, and (1 - probability) / (c^2 x^4) at the same c x grows with c."""


@njit(**OPTIONS)
def draw_gammas(state, shape, out):
    """Fill `out` with draws from Ga(shape, 1), shape >= 1 (Marsaglia and Tsang, 2000).

    With d = shape - 1/3, c = (9 d)^(-1/2) and v = (1 + c x)^3, the density of x at a draw d v is at
    most that of a normal, so x is drawn from one, and accepted with probability
    exp(x^2 / 2 + d (1 - v + log v)). One uniform `level` decides about several draws: as long as
    it lies below the probability that all so far were accepted, it is uniform there.
    """
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    least = SQUEEZE * c * c
    level, below = normals.uniform(state), 1.0
    normals.fill(state, out)
    for n in range(out.size):
        x = out[n]
        while True:
            root = 1.0 + c * x
            v = root * root * root
            square = x * x
            next_below = below * (1.0 - least * square * square)
            if level < next_below and v > 0.0:
                below = next_below
                break
            if v > 0.0:
                exponent = 0.5 * square + d * (1.0 - v + math.log(v))
                accepted = math.log(level / below) < exponent
                level, below = normals.uniform(state), 1.0
                if accepted:
                    break
            x = normals.normal(state)
        out[n] = d * v


@njit(**OPTIONS)
def student_t_weights(state, fitted, values, mass, tau, nu):
    """w = tau u and s = w y, (n,) each, and the sum of u (y - f)^2.

    u ~ Ga(m (nu + 1) / 2, (nu + tau (y - f)^2) / 2), where m is the mass of an observation; one
    mass stands for all. `state` is that of `normals`.
    """
    weight, shift, total = np.empty(fitted.size), np.empty(fitted.size), 0.0
    shape = 0.5 * (nu + 1.0)
    if mass.size == 1 and shape * mass[0] >= 1.0:
        draw_gammas(state, shape * mass[0], weight)
    else:
        for n in range(fitted.size):
            own = shape * mass[n if mass.size > 1 else 0]
            draw_gammas(state, own if own >= 1.0 else own + 1.0, weight[n : n + 1])
            if own < 1.0:  # Ga(a) = Ga(a + 1) U^(1 / a)
                weight[n] *= math.exp(math.log(normals.uniform(state)) / own)
    for n in range(fitted.size):
        square = (values[n] - fitted[n]) ** 2
        u = weight[n] / (0.5 * (nu + tau * square))
        weight[n] = tau * u
        shift[n] = tau * u * values[n]
        total += u * square
    return weight, shift, total
