"""Draws of many slopes for one core after another, each at the cost of one rough solution.

What slices share is found from moments instead of by scans that start from nothing: with T T, X and
G as in equation (45), P = G' T T G and Q = G' T T X X' T T G,

    E[P] = (n - 1 + s t_1) Omega^-1,      t_1 = tr(X' T T X)
    E[Q] = (t_1 + s t_2) Omega^-1,        t_2 = tr((X' T T X)^2)

so the mean of the eigenvalues of P^-1 Q gives s, and P then Omega. Slices are those of thousands of
labels, so that priors and the errors of s and Omega hardly matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring.model.types import FloatArray
from bayesring.priors.many_slopes import STRONGEST, WEAKEST, solve
from bayesring.priors.regression import Centring, Design

PROBES = 8
"""Random vectors of signs that estimate t_2."""
ROUGH = 1e-2
"""Relative error of the solution; that of variances is its square."""


class Rough(NamedTuple):
    """A design in single precision, and what draws of its slopes need."""

    design: Design
    """X, (n, F)."""
    centring: Centring
    squares: FloatArray
    """Sums of squares of the columns of X, (F,)."""
    first: float
    """t_1."""
    second: float
    """t_2."""


def rough_design(rng: Generator, design: Design, k0: float) -> Rough:
    """Prepare a design."""
    single = design.astype(np.float32)
    centring = Centring(np.ones(design.shape[0], dtype=np.float32), k0)
    signs = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (design.shape[1], PROBES))
    images = single.T @ centring.twice(single @ signs)
    squared = single.multiply(single) if hasattr(single, "multiply") else single**2
    squares = np.asarray(squared.sum(axis=0)).ravel()
    sums = np.asarray(single.sum(axis=0), dtype=float).ravel()
    first = float(squares.sum(dtype=float) - np.sum(sums**2) / centring.k)
    second = float(np.sum(images.astype(float) ** 2)) / PROBES
    return Rough(single, centring, squares, first, second)


def expect_strength(rough: Rough, slices: FloatArray) -> float:
    """s by moments, for slices with P = n I."""
    n, size = slices.shape
    images = rough.design.T @ rough.centring.twice(slices.astype(np.float32))
    ratio = float(np.sum(images.astype(float) ** 2)) / (n * size)
    rest = rough.second - ratio * rough.first
    found = (ratio * (n - 1) - rough.first) / rest if rest > 0 else STRONGEST
    return float(np.clip(found, WEAKEST, STRONGEST))


def draw_roughly(rng: Generator, rough: Rough, slices: FloatArray, strength: float) -> FloatArray:
    """B given slices with P = n I and s, (F, K), by equation (45)."""
    (n, size), design, centring = slices.shape, rough.design, rough.centring
    spread = float(np.sqrt(n / (n - 1 + strength * rough.first)))  # Omega = I / spread^2
    noise = spread * rng.standard_normal((n, size), dtype=np.float32)
    own = spread * rng.standard_normal((design.shape[1], size), dtype=np.float32)
    seen = centring.apply(slices.astype(np.float32)) + noise
    wanted = design.T @ centring.apply(seen).astype(np.float32) + own / float(np.sqrt(strength))
    found = solve(
        lambda slopes: design.T @ centring.twice(design @ slopes) + slopes / strength,
        wanted.astype(np.float32),
        rough.squares + 1.0 / strength,
        ROUGH,
    )
    return found
