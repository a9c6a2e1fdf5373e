"""Rings that gain or lose strands or factors; what decides on it is in `bayesring.model.rank`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.model.bonds import (
    bond_basis,
    opened_moments,
    parameters_of_factor,
    turn_bond,
)
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState
from bayesring.priors import RingPrior

START_SHARE = 0.3
"""Initial standard deviation of f from new strands, relative to that of the values."""


def add_strands(rng: Generator, state: RingState, number: int, prior: RingPrior) -> RingState:
    """Append strands with small random entries and unit weights."""
    own = RingSize(number, state.size.bonds)
    cores: list[FloatArray] = []
    hyper: list[Any] = []
    for mode, core in enumerate(state.cores):
        spread = own.spread(mode) * START_SHARE ** (1 / len(state.cores))
        new = spread * rng.standard_normal(own.core_shape(mode, len(core)))
        each, before = prior.of_mode(mode, cores), state.hyper[mode]
        cores.append(np.concatenate([core, each.start(new, before)], axis=1))
        hyper.append(each.resized_hyper(rng, cores[-1], before))
    ones = [np.ones((number, r)) for r in own.bonds]
    return RingState(
        tuple(cores),
        tuple(np.concatenate(pair) for pair in zip(state.weights, ones, strict=True)),
        tuple(np.concatenate(pair) for pair in zip(state.gains, ones, strict=True)),
        tuple(hyper),
        state.nuisance,
    )


def keep_strands(rng: Generator, state: RingState, number: int, prior: RingPrior) -> RingState:
    """Keep the first strands and drop the others."""
    cores = tuple(core[:, :number] for core in state.cores)
    return RingState(
        cores,
        tuple(weights[:number] for weights in state.weights),
        tuple(gains[:number] for gains in state.gains),
        tuple(
            prior.of_mode(mode, cores).resized_hyper(rng, core, before)
            for mode, (core, before) in enumerate(zip(cores, state.hyper, strict=True))
        ),
        state.nuisance,
    )


def drop_small(
    rng: Generator,
    state: RingState,
    counts: Sequence[IntArray],
    energy: float,
    prior: RingPrior,
    threshold: float,
) -> RingState:
    """Drop, bond by bond, the directions with less energy than noise would give them.

    Each bond is transformed to its own basis first and keeps at least its strongest direction.
    `counts` and `energy` are those of `bayesring.model.rank.Look`.
    """
    shares = [own / max(int(counts[0].sum()), 1) for own in counts]
    for bond in range(len(counts)):
        basis = bond_basis(opened_moments(state, bond, shares), state.weights[bond][0])
        needed = parameters_of_factor(counts, state.size.bonds, bond)
        per_parameter = energy * basis.shares / needed
        keep = per_parameter >= threshold
        keep[np.argmax(per_parameter)] = True
        if not keep.all():
            turned = turn_bond(state, bond, basis)
            state = drop_factors(rng, turned, bond, keep, prior)
    return state


def drop_factors(
    rng: Generator, state: RingState, bond: int, keep: NDArray[np.bool_], prior: RingPrior
) -> RingState:
    """Remove factors: columns of G^(d), rows of G^(d+1), entries of lambda and delta."""
    after = (bond + 1) % len(state.cores)
    cores = list(state.cores)
    cores[bond] = cores[bond][..., keep]
    cores[after] = cores[after][:, :, keep]
    weights, gains = state.weights[bond][:, keep], state.gains[bond][:, keep]
    return _with_bond(rng, state, bond, cores, weights, gains, prior)


def add_factor(rng: Generator, state: RingState, bond: int, prior: RingPrior) -> RingState:
    """Append one factor of random direction and ordinary size: column of G^(d), row of G^(d+1).

    Their entries are normal with the root mean squares of their cores. The weight of the factor is
    the smallest in absolute value on the bond, and its gain is one.
    """
    after = (bond + 1) % len(state.cores)
    cores = list(state.cores)
    n_slices, strands, rows, _ = cores[bond].shape
    size = np.sqrt(np.mean(cores[bond] ** 2))
    column = rng.standard_normal((n_slices, strands, rows, 1)) * size
    cores[bond] = np.concatenate([cores[bond], column], axis=3)
    n_slices, _, _, columns = cores[after].shape
    size = np.sqrt(np.mean(cores[after] ** 2))
    row = rng.standard_normal((n_slices, strands, 1, columns)) * size
    cores[after] = np.concatenate([cores[after], row], axis=2)
    least = np.min(np.abs(state.weights[bond]), axis=1, keepdims=True)
    gains = np.append(state.gains[bond], np.ones_like(least), axis=1)
    weights = np.append(state.weights[bond], least, axis=1)
    return _with_bond(rng, state, bond, cores, weights, gains, prior)


def _with_bond(
    rng: Generator,
    state: RingState,
    bond: int,
    cores: list[FloatArray],
    weights: FloatArray,
    gains: FloatArray,
    prior: RingPrior,
) -> RingState:
    """State with one bond changed; the hyperparameters of both its cores are redrawn."""
    all_weights, all_gains, hyper = list(state.weights), list(state.gains), list(state.hyper)
    all_weights[bond], all_gains[bond] = weights, gains
    for mode in prior.affected({bond, (bond + 1) % len(cores)}):
        own = prior.of_mode(mode, cores)
        hyper[mode] = own.resized_hyper(rng, cores[mode], state.hyper[mode])
    return RingState(
        tuple(cores), tuple(all_weights), tuple(all_gains), tuple(hyper), state.nuisance
    )
