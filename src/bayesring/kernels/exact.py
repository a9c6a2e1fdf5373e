"""Sums without rounding: what is added up, and in which order, cannot change a bit.

A float64 is an integer of 53 bits times 2^(e - 1075), e = 1, ..., 2046 (0 counts as 1). Integers
with the same e are added up in two halves, of 26 and 27 bits, which int64 holds exactly for up to
2^36 values.
"""

from numba import njit

OPTIONS = {"nogil": True, "cache": True}
EXPONENTS = 2047
HALF = 26


@njit(**OPTIONS)
def add_integers(bits, low, high):
    """Add floats, given by their bits (n,) int64, to the halves (EXPONENTS,) int64."""
    for n in range(bits.size):
        pattern = bits[n]
        exponent = (pattern >> 52) & 0x7FF
        integer = pattern & 0xFFFFFFFFFFFFF
        if exponent == 0:
            exponent = 1
        else:
            integer |= 1 << 52
        sign = -1 if pattern < 0 else 1
        low[exponent] += sign * (integer & 0x3FFFFFF)
        high[exponent] += sign * (integer >> HALF)
