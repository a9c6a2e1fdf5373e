"""Tensors with a known truth: a ring or CP model with given noise and hidden cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import expit

from bayesring.datasets.splits import draw_cells
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, Observations

Entries = Callable[[IntArray], FloatArray]
LISTED = 10**7
"""Up to this many cells, hidden ones can be listed and observed ones use a permutation."""


class Simulation(NamedTuple):
    """Observations and the underlying truth.

    Examples
    --------
    >>> from bayesring.datasets import make_ring
    >>> len(make_ring((4, 5, 6), rank=2, missing=0.5).hidden().values)    # noise-free
    60
    """

    observations: Observations
    signal: Entries
    rank: tuple[int, ...]

    def entries(self, coords: ArrayLike) -> FloatArray:
        """Noise-free values at coordinates (n, D); for binary data the log odds."""
        return self.signal(np.asarray(coords))

    def hidden(self) -> Observations:
        """Noise-free values of all unobserved cells; for binary data, P(y = 1)."""
        shape = self.observations.shape
        if prod(shape) > LISTED:
            raise ValueError(f"A tensor of {prod(shape):,} cells is too large to list.")
        seen = np.ravel_multi_index(tuple(self.observations.coords.T), shape)
        others = np.setdiff1d(np.arange(prod(shape)), seen, assume_unique=True)
        coords = np.stack(np.unravel_index(others, shape), axis=1)
        values = self.entries(coords)
        is_binary = np.isin(self.observations.values, (0, 1)).all()
        return Observations(coords, expit(values) if is_binary else values, shape)


def make_ring(
    shape: Sequence[int],
    rank: int | Sequence[int],
    *,
    snr: float = np.inf,
    missing: float = 0.0,
    binary: bool = False,
    seed: int | Sequence[int] = 0,
) -> Simulation:
    """Draw a tensor ring with standard normal cores and observe some of its cells.

    Its entries are standardised to mean zero and variance one over the whole tensor, as in the
    paper's studies. The dense tensor is never built, so it may be larger than memory.

    Parameters
    ----------
    rank : one number, or one per bond
    snr : ratio of signal variance to noise variance, in decibels; for binary data the strength of
        the log odds, whose variance is 10^(snr / 10), 1 by default
    missing : share of the cells that are hidden
    binary : observe zeros and ones with log odds given by the ring, instead of real values

    Returns
    -------
    Simulation
        `observations`, and the truth at any cell.

    Examples
    --------
    >>> from bayesring.datasets import make_ring
    >>> made = make_ring((8, 9, 10), rank=3, snr=20, missing=0.75, seed=0)
    >>> made.observations.coords.shape, made.entries([[0, 1, 2]]).shape
    ((180, 3), (1,))
    """
    rng = np.random.default_rng(seed)
    ranks = (rank,) * len(shape) if isinstance(rank, int) else tuple(rank)
    cores = [
        rng.standard_normal((size, 1, ranks[mode - 1], ranks[mode]))
        for mode, size in enumerate(shape)
    ]
    mean = np.trace(reduce(np.matmul, [core[:, 0].mean(axis=0) for core in cores]))
    square = np.trace(reduce(np.matmul, [_second_moment(core[:, 0]) for core in cores]))
    deviation = np.sqrt(square - mean**2)
    return _observe(
        rng,
        tuple(shape),
        lambda coords: (ring.entries(cores, coords) - mean) / deviation,
        ranks,
        (snr, missing, binary),
    )


def make_cp(
    shape: Sequence[int],
    rank: int,
    *,
    snr: float = np.inf,
    missing: float = 0.0,
    binary: bool = False,
    seed: int | Sequence[int] = 0,
) -> Simulation:
    """Draw a sum of `rank` outer products of standard normal vectors; else like `make_ring`.

    Returns
    -------
    Simulation
        `observations`, and the truth at any cell.

    Examples
    --------
    >>> from bayesring.datasets import make_cp
    >>> make_cp((8, 9, 10), rank=3, missing=0.75).observations.coords.shape
    (180, 3)
    """
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((size, rank)) for size in shape]
    mean = reduce(np.multiply, [factor.mean(axis=0) for factor in factors]).sum()
    square = reduce(np.multiply, [factor.T @ factor / len(factor) for factor in factors]).sum()
    deviation = np.sqrt(square - mean**2)

    def entries(coords: IntArray) -> FloatArray:
        product = reduce(
            np.multiply, [factor[coords[:, mode]] for mode, factor in enumerate(factors)]
        )
        return np.asarray((product.sum(axis=1) - mean) / deviation)

    return _observe(rng, tuple(shape), entries, (rank,), (snr, missing, binary))


def _second_moment(slices: FloatArray) -> FloatArray:
    """Mean of G[i] x G[i] (Kronecker) over the slices of a core."""
    size, rows, columns = slices.shape
    product = np.einsum("iab,icd->acbd", slices, slices) / size
    return np.asarray(product.reshape(rows * rows, columns * columns))


def _observe(
    rng: Generator,
    shape: tuple[int, ...],
    signal: Entries,
    rank: tuple[int, ...],
    how: tuple[float, float, bool],
) -> Simulation:
    """Draw the observed cells and their values."""
    snr, missing, binary = how
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be at least 0 and below 1, got {missing!r}.")
    n_seen = round((1 - missing) * prod(shape))
    if n_seen == 0:
        raise ValueError(f"With {missing:.5g} missing, no cell of {shape} is left to observe.")
    coords = np.stack(
        np.unravel_index(np.sort(draw_cells(rng, prod(shape), n_seen)), shape), axis=1
    )
    if binary:
        strength = 10 ** (snr / 20) if np.isfinite(snr) else 1.0

        def log_odds(cells: IntArray) -> FloatArray:
            return np.asarray(strength * signal(cells))

        values = (rng.random(n_seen) < expit(log_odds(coords))).astype(float)
        return Simulation(Observations(coords, values, shape), log_odds, rank)
    noise = 10 ** (-snr / 20) * rng.standard_normal(n_seen)
    return Simulation(Observations(coords, signal(coords) + noise, shape), signal, rank)
