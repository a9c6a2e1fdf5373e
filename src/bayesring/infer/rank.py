"""Rank adaption and truncation, per bond, in warm-up only.

A policy says how large the ring starts and how it changes: a function of state and scan.
Changing the rank changes the target of the chain, so it ends before the first kept draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.infer.base import Problem, StepInfo
from bayesring.infer.bonds import (
    bond_basis,
    opened_moments,
    parameters_of_factor,
    slice_counts,
    turn_bond,
)
from bayesring.infer.streams import Purpose, Streams
from bayesring.priors.base import RingPrior
from bayesring.ring import expand_rank
from bayesring.types import FloatArray, IntArray, RingState

USEFUL, NEEDED = 1.0, 3.0
"""Energy per parameter that a factor must have, for good predictions and to tell the true rank.

A factor fitted to noise alone has about two: one from the fit, and one from the spread of a draw
round it. Three leaves only what the data demand. Predictions want more: the prior shrinks a weak
factor rightly, and dropping it loses the little that it says.
"""


class RankPolicy(Protocol):
    """How the rank starts and changes in warm-up."""

    def start(self, order: int) -> tuple[int, ...]:
        """Rank of the first state."""

    def adapt(
        self,
        streams: Streams,
        scan: int,
        left: int,
        state: RingState,
        info: StepInfo,
        problem: Problem,
    ) -> RingState:
        """State with factors dropped or added after `scan`; `left` more scans may change them."""


@dataclass(frozen=True)
class FixedRank:
    """The rank is given and stays.

    Parameters
    ----------
    rank : one number for all bonds, or one per bond
    """

    rank: int | tuple[int, ...]

    def start(self, order: int) -> tuple[int, ...]:
        """Rank as given."""
        return expand_rank(self.rank, order)

    def adapt(
        self,
        streams: Streams,
        scan: int,
        left: int,
        state: RingState,
        info: StepInfo,
        problem: Problem,
    ) -> RingState:
        """Leave the state alone."""
        return state


@dataclass(frozen=True)
class Truncation:
    """Start large and only drop: every `every` scans, what is not needed.

    A drop is never taken back, so looks are further apart than in `Adaption`: the ring must have
    found the data first.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : energy per parameter below which a direction of a bond is dropped
    every : scans between two looks
    """

    initial: int | tuple[int, ...] = 10
    threshold: float = USEFUL
    every: int = 50

    def start(self, order: int) -> tuple[int, ...]:
        """Rank as given."""
        return expand_rank(self.initial, order)

    def adapt(
        self,
        streams: Streams,
        scan: int,
        left: int,
        state: RingState,
        info: StepInfo,
        problem: Problem,
    ) -> RingState:
        """Drop what contributes too little."""
        if scan % self.every:
            return state
        rng = streams.rng(scan, Purpose.RANK)
        counts = slice_counts(problem)
        for bond in range(len(problem.shape)):
            state = drop_small(rng, state, bond, info.energy, counts, self.threshold, problem.prior)
        return state


@dataclass(frozen=True)
class Adaption:
    """The paper's strategy: drop what is small; if nothing is, grow now and then.

    Every `every` scans, each bond loses the directions whose energy per parameter is below the
    threshold. A bond that loses none gains one factor with probability
    p(t) = exp(kappa0 + kappa1 t) at scan t, if a later look can still judge it.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : energy per parameter below which a direction of a bond is dropped
    kappa0, kappa1 : growth; kappa1 must be negative, or growth would never fade
    every : scans between two looks
    maximum : rank that no bond grows beyond
    """

    initial: int | tuple[int, ...] = 2
    threshold: float = USEFUL
    kappa0: float = 0.0
    kappa1: float = -0.005
    every: int = 10
    maximum: int = 10

    def __post_init__(self) -> None:
        if self.kappa1 >= 0:
            raise ValueError(f"kappa1 of Adaption must be negative, got {self.kappa1!r}.")

    def start(self, order: int) -> tuple[int, ...]:
        """Rank as given."""
        return expand_rank(self.initial, order)

    def adapt(
        self,
        streams: Streams,
        scan: int,
        left: int,
        state: RingState,
        info: StepInfo,
        problem: Problem,
    ) -> RingState:
        """Drop what contributes too little, or add a factor."""
        if scan % self.every:
            return state
        rng = streams.rng(scan, Purpose.RANK)
        growth = exp(min(self.kappa0 + self.kappa1 * scan, 0.0)) if left >= self.every else 0.0
        grows = rng.random(len(problem.shape)) < growth
        counts = slice_counts(problem)
        before = state.rank
        for bond in range(len(problem.shape)):
            state = drop_small(rng, state, bond, info.energy, counts, self.threshold, problem.prior)
        for bond, (was, now) in enumerate(zip(before, state.rank, strict=True)):
            if now == was and grows[bond] and now < self.maximum:
                state = add_factor(rng, state, bond, problem.prior)
        return state


def drop_small(
    rng: Generator,
    state: RingState,
    bond: int,
    energy: float,
    counts: list[IntArray],
    threshold: float,
    prior: RingPrior,
) -> RingState:
    """Drop the directions of a bond that carry less energy than noise would give them.

    The bond is turned into its own basis first; it keeps at least its strongest direction.
    """
    observed = max(int(counts[0].sum()), 1)
    basis = bond_basis(
        opened_moments(state, bond, [own / observed for own in counts]), state.weights[bond]
    )
    per_parameter = energy * basis.shares / parameters_of_factor(counts, state.rank, bond)
    keep = per_parameter >= threshold
    keep[np.argmax(per_parameter)] = True
    if keep.all():
        return state
    return drop_factors(rng, turn_bond(state, bond, basis), bond, keep, prior)


def drop_factors(
    rng: Generator, state: RingState, bond: int, keep: NDArray[np.bool_], prior: RingPrior
) -> RingState:
    """Remove factors: columns of G^(d), rows of G^(d+1), entries of lambda and delta."""
    after = (bond + 1) % len(state.cores)
    cores = list(state.cores)
    cores[bond] = cores[bond][:, :, keep]
    cores[after] = cores[after][:, keep, :]
    weights, gains = state.weights[bond][keep], state.gains[bond][keep]
    return _with_bond(rng, state, bond, cores, weights, gains, prior)


def add_factor(rng: Generator, state: RingState, bond: int, prior: RingPrior) -> RingState:
    """Append one factor of random direction and ordinary size: column of G^(d), row of G^(d+1).

    Their entries are normal with the root mean squares of their cores, its weight is the
    smallest in size of the bond, and its gain one.
    """
    after = (bond + 1) % len(state.cores)
    cores = list(state.cores)
    n_slices, rows, _ = cores[bond].shape
    column = rng.standard_normal((n_slices, rows, 1)) * np.sqrt(np.mean(cores[bond] ** 2))
    cores[bond] = np.concatenate([cores[bond], column], axis=2)
    n_slices, _, columns = cores[after].shape
    row = rng.standard_normal((n_slices, 1, columns)) * np.sqrt(np.mean(cores[after] ** 2))
    cores[after] = np.concatenate([cores[after], row], axis=1)
    gains = np.append(state.gains[bond], 1.0)
    weights = np.append(state.weights[bond], np.min(np.abs(state.weights[bond])))
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
    """State with one bond changed; the hyperparameters of both its cores are drawn anew."""
    all_weights, all_gains, hyper = list(state.weights), list(state.gains), list(state.hyper)
    all_weights[bond], all_gains[bond] = weights, gains
    for mode in {bond, (bond + 1) % len(cores)}:
        hyper[mode] = prior.cores.update_hyper(rng, cores[mode])
    return RingState(
        tuple(cores), tuple(all_weights), tuple(all_gains), tuple(hyper), state.nuisance
    )
