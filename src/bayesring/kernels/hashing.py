"""Hash tables from keys to codes, with open addressing; hashes of cells.

A table is an array of slots (2^b,) int32, at most half of them in use. A slot holds the code of a
key, or -1. The keys themselves are stored in the order of their codes: integers (L,) int64, or
texts in Arrow's layout, where text l is ``data[offsets[l]:offsets[l + 1]]``.
"""

import numpy as np
from numba import njit

OPTIONS = {"nogil": True, "cache": True}
TILE = 64
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio (Knuth, volume 3, section 6.4): spreads neighbours far apart."""
FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Constants of the hash of Fowler, Noll and Vo for 64 bits."""


@njit(**OPTIONS)
def number_place(key, size):
    """First slot to probe for an integer in a table of `size` slots."""
    spread = np.uint64(key) * GOLDEN
    return np.int64((spread >> np.uint64(32)) & np.uint64(size - 1))


@njit(**OPTIONS)
def text_place(data, begin, end, size):
    """First slot to probe for a text."""
    spread = FNV_BASIS
    for at in range(begin, end):
        spread = (spread ^ np.uint64(data[at])) * FNV_PRIME
    return np.int64((spread ^ (spread >> np.uint64(32))) & np.uint64(size - 1))


@njit(**OPTIONS)
def same_text(data, begin, end, others, other_begin, other_end):
    """Whether two texts are equal."""
    if end - begin != other_end - other_begin:
        return False
    at = 0
    while at < end - begin and data[begin + at] == others[other_begin + at]:
        at += 1
    return at == end - begin


@njit(**OPTIONS)
def put_numbers(levels, first, slots):
    """Insert the new keys from index `first` on into a table."""
    for code in range(first, levels.size):
        place = number_place(levels[code], slots.size)
        while slots[place] >= 0:
            place = (place + 1) & (slots.size - 1)
        slots[place] = code


@njit(**OPTIONS)
def find_numbers(keys, levels, slots, out):
    """Codes of keys (n,), -1 for unknown keys; the first unknown key, or -1."""
    unknown = -1
    for n in range(keys.size):
        key = np.int64(keys[n])
        place = number_place(key, slots.size)
        while slots[place] >= 0 and levels[slots[place]] != key:
            place = (place + 1) & (slots.size - 1)
        out[n] = slots[place]
        if slots[place] < 0 and unknown < 0:
            unknown = n
    return unknown


@njit(**OPTIONS)
def put_texts(offsets, data, first, slots):
    """Insert the new texts from index `first` on into a table."""
    for code in range(first, offsets.size - 1):
        place = text_place(data, offsets[code], offsets[code + 1], slots.size)
        while slots[place] >= 0:
            place = (place + 1) & (slots.size - 1)
        slots[place] = code


@njit(**OPTIONS)
def find_texts(offsets, data, level_offsets, level_data, slots, out):
    """Codes of texts (n,), -1 for unknown texts; the first unknown text, or -1.

    Slots, and the offsets of their texts, are fetched for a tile of texts at a time, so that the
    processor waits for many of them at once.
    """
    unknown = -1
    places, begins = np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    for first in range(0, offsets.size - 1, TILE):
        count = min(TILE, offsets.size - 1 - first)
        for t in range(count):
            places[t] = text_place(data, offsets[first + t], offsets[first + t + 1], slots.size)
        for t in range(count):
            begins[t] = level_offsets[max(slots[places[t]], 0)]
        for t in range(count):
            begin, end, place = offsets[first + t], offsets[first + t + 1], places[t]
            code, level_begin = slots[place], begins[t]
            while code >= 0 and not same_text(
                data, begin, end, level_data, level_begin, level_offsets[code + 1]
            ):
                place = (place + 1) & (slots.size - 1)
                code = slots[place]
                level_begin = level_offsets[max(code, 0)]
            out[first + t] = code
            if code < 0 and unknown < 0:
                unknown = first + t
    return unknown


@njit(**OPTIONS)
def choose_cells(columns, key, share, out):
    """Whether the hash of a cell, columns[:, n], is among the lowest `share` of all, (n,) bool.

    Depends on the coordinates and on `key` alone; the steps are those of SplitMix64.
    """
    limit = np.uint64(share * 2.0**53)
    for n in range(columns.shape[1]):
        state = np.uint64(key)
        for mode in range(columns.shape[0]):
            state = state ^ np.uint64(columns[mode, n])
            state = state + GOLDEN
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
        out[n] = (state >> np.uint64(11)) < limit
