"""Standard normal draws inside a kernel, several times as fast as those of NumPy's generators.

Random bits come from xoshiro256++ (Blackman and Vigna, 2021), whose 256 bits of state are drawn
from the generator of the stream, so that one seed gives one result. Normals are drawn by the
ziggurat of Marsaglia and Tsang (2000): a layer and a place within it, which lies below the density
nearly always.
"""

import math

import numpy as np
from numba import njit
from numpy.random import Generator
from numpy.typing import NDArray

OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy"}
LAYERS = 256
START = 3.6541528853610088
"""Where the tail begins, such that all layers have the same area, which is `AREA`."""
AREA = 0.00492867323399
UNIT = 2.0**-53


def layers():
    """Right ends x_i of the layers, and the density exp(-x_i^2 / 2) there, from the tail inwards.

    x_0 is the width of a rectangle that has the area of the lowest layer with its tail.
    """
    ends = np.empty(LAYERS + 1)
    ends[0], ends[1] = AREA / math.exp(-0.5 * START**2), START
    for i in range(2, LAYERS):
        ends[i] = math.sqrt(-2.0 * math.log(AREA / ends[i - 1] + math.exp(-0.5 * ends[i - 1] ** 2)))
    ends[LAYERS] = 0.0
    return ends, np.exp(-0.5 * ends**2)


ENDS, HEIGHTS = layers()
INSIDE = ENDS[1:] / ENDS[:-1]
"""Share of each layer that lies below the density wherever in its height."""


def seeded(rng: Generator) -> NDArray[np.uint64]:
    """State of a new source of bits, (4,), drawn from `rng`."""
    return rng.integers(1, 2**64, 4, dtype=np.uint64)


@njit(**OPTIONS)
def advance(a, b, c, d):
    """64 random bits, and the next state, xoshiro256++."""
    total = a + d
    drawn = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << np.uint64(45)) | (d >> np.uint64(19))
    return drawn, a, b, c, d


@njit(**OPTIONS)
def bits(state):
    """The next 64 random bits."""
    drawn, state[0], state[1], state[2], state[3] = advance(*_four(state))
    return drawn


@njit(**OPTIONS)
def _four(state):
    return state[0], state[1], state[2], state[3]


@njit(**OPTIONS)
def uniform(state):
    """A draw from (0, 1): an odd multiple of 2^-54."""
    return (np.float64(np.int64(bits(state) >> np.uint64(11))) + 0.5) * UNIT


@njit(**OPTIONS)
def layer_and_place(drawn):
    """A layer, by the lowest bits, and a place from -1 to 1 within it, by the highest."""
    return drawn & np.uint64(LAYERS - 1), np.float64(np.int64(drawn) >> 11) * (2.0 * UNIT)


@njit(**OPTIONS)
def finish(state, layer, place):
    """The normal draw at this place, or at another if it lies above the density."""
    while True:
        x = place * ENDS[layer]
        if abs(place) < INSIDE[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -math.log(uniform(state)) / START
                if -2.0 * math.log(uniform(state)) > beyond * beyond:
                    return math.copysign(START + beyond, place)
        low, high = HEIGHTS[layer], HEIGHTS[layer + np.uint64(1)]
        if low + uniform(state) * (high - low) < math.exp(-0.5 * x * x):
            return x
        layer, place = layer_and_place(bits(state))


@njit(**OPTIONS)
def normal(state):
    """A draw from N(0, 1)."""
    layer, place = layer_and_place(bits(state))
    return finish(state, layer, place)


@njit(**OPTIONS)
def fill(state, out):
    """Fill `out` with draws from N(0, 1), with the state in registers."""
    a, b, c, d = _four(state)
    for n in range(out.size):
        drawn, a, b, c, d = advance(a, b, c, d)
        layer, place = layer_and_place(drawn)
        out[n] = place * ENDS[layer]
        if abs(place) >= INSIDE[layer]:
            state[0], state[1], state[2], state[3] = a, b, c, d
            out[n] = finish(state, layer, place)
            a, b, c, d = _four(state)
    state[0], state[1], state[2], state[3] = a, b, c, d
