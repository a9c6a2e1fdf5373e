"""Tables with a known truth on which intervals are counted, one for each way of going wrong.

The signal is a ring of rank 2 whose slices scatter around the identity, so that there are main
effects and interactions; it has mean zero and variance one over the tensor. Noise has a standard
deviation of a third of the signal's, or, where it has none, that scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray

SHAPES = {
    50: (8, 7, 6),
    150: (10, 9, 8),
    600: (15, 12, 10),
    2_500: (25, 20, 20),
    50_000: (60, 60, 50),
}
"""Observations of a table and its shape; 15 to 33 % of the cells are known."""
RANK, CENTRE, SPREAD = 2, 0.6, 0.7
"""Of the planted ring: entries of its slices are `SPREAD` normal around `CENTRE` the identity."""
NOISE = 1 / 3
RARE, STEEP = -3.0, 1.5
"""Log odds of binary values are `RARE` + `STEEP` times the signal: about 8 % are ones."""
MOST_CELLS = 2_000
"""Hidden cells that are looked up."""


class Table(NamedTuple):
    """What is known, and what is hidden."""

    shape: tuple[int, ...]
    coords: IntArray
    values: FloatArray
    hidden: IntArray
    truth: FloatArray
    """New values at the hidden cells; of binary data, the probabilities of a one."""
    tosses: FloatArray | None = None
    """New values of binary data."""


def signal(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    """The noise-free tensor, flat."""
    cores = [
        SPREAD * rng.standard_normal((size, 1, RANK, RANK)) + CENTRE * np.eye(RANK)
        for size in shape
    ]
    entries = ring.dense(cores).ravel()
    return np.asarray((entries - entries.mean()) / entries.std())


def equal_odds(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    """Every cell is as likely to be known as any other."""
    return np.ones(int(np.prod(shape)))


def skewed_odds(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    """Each slice of the first two modes is seen far more often than the next: by e^3 in all."""
    first, second = (np.exp(-3.0 * np.arange(size) / (size - 1)) for size in shape[:2])
    return np.asarray((first[:, None, None] * second[:, None] * np.ones(shape[2])).ravel())


def normal_noise(rng: Generator, cells: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """The same everywhere."""
    return NOISE * rng.standard_normal(len(cells))


def heavy_noise(rng: Generator, cells: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """t with two degrees of freedom: no finite variance."""
    return NOISE * rng.standard_t(2, len(cells))


def unequal_noise(rng: Generator, cells: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Slices of the first mode differ in their noise, by a factor of nine from least to most."""
    sizes = NOISE * np.geomspace(1 / 3, 3, shape[0])
    first = np.unravel_index(cells, shape)[0]
    return np.asarray(sizes[first] * rng.standard_normal(len(cells)))


class TableKind(NamedTuple):
    """A kind of table."""

    noise: Callable[[Generator, IntArray, tuple[int, ...]], FloatArray] | None = normal_noise
    """None for binary values."""
    odds: Callable[[Generator, tuple[int, ...]], FloatArray] = equal_odds


CASES = {
    "normal noise": TableKind(),
    "t_2 noise": TableKind(heavy_noise),
    "unequal noise": TableKind(unequal_noise),
    "skewed missingness": TableKind(odds=skewed_odds),
    "rare positives": TableKind(None),
}


def draw_table(case: str, n: int, seed: int) -> Table:
    """One table: `n` known cells drawn without repetition, and some of the others."""
    shape, (noise, odds) = SHAPES[n], CASES[case]
    rng = np.random.default_rng([seed, n, list(CASES).index(case)])
    entries, weights = signal(rng, shape), odds(rng, shape)
    keys = rng.standard_exponential(len(entries)) / weights  # smallest: without replacement
    order = np.argsort(keys)
    known = np.sort(order[:n])
    hidden = rng.permutation(np.sort(order[n:]))[:MOST_CELLS]
    places = [np.stack(np.unravel_index(each, shape), axis=1) for each in (known, hidden)]
    if noise is None:
        chances = expit(RARE + STEEP * entries)
        tosses = [(rng.random(len(each)) < chances[each]) * 1.0 for each in (known, hidden)]
        return Table(shape, places[0], tosses[0], places[1], chances[hidden], tosses[1])
    values = [entries[each] + noise(rng, each, shape) for each in (known, hidden)]
    return Table(shape, places[0], values[0], places[1], values[1])
