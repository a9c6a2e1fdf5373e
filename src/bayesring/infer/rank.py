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
from bayesring.infer.streams import Purpose, Streams
from bayesring.priors.base import RingPrior
from bayesring.ring import expand_rank
from bayesring.types import FloatArray, RingState


class RankPolicy(Protocol):
    """How the rank starts and changes in warm-up."""

    def start(self, order: int) -> tuple[int, ...]:
        """Rank of the first state."""

    def adapt(
        self, streams: Streams, scan: int, state: RingState, info: StepInfo, problem: Problem
    ) -> RingState:
        """State with factors dropped or added after `scan`."""


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
        self, streams: Streams, scan: int, state: RingState, info: StepInfo, problem: Problem
    ) -> RingState:
        """Leave the state alone."""
        return state


@dataclass(frozen=True)
class Truncation:
    """Start large and only drop: every `every` scans, factors below the threshold.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : share of a bond's contributions below which a factor is dropped
    every : scans between two looks
    """

    initial: int | tuple[int, ...] = 10
    threshold: float = 0.01
    every: int = 10

    def start(self, order: int) -> tuple[int, ...]:
        """Rank as given."""
        return expand_rank(self.initial, order)

    def adapt(
        self, streams: Streams, scan: int, state: RingState, info: StepInfo, problem: Problem
    ) -> RingState:
        """Drop what contributes too little."""
        if scan % self.every:
            return state
        rng = streams.rng(scan, Purpose.RANK)
        for bond, sizes in enumerate(info.contributions):
            state, _ = drop_small(rng, state, bond, sizes, self.threshold, problem.prior)
        return state


@dataclass(frozen=True)
class Adaption:
    """The paper's strategy: drop what is small; if nothing is, grow now and then.

    Every `every` scans, each bond loses the factors whose share of the contributions is below
    the threshold. A bond that loses none gains one factor, drawn from the prior, with
    probability p(t) = exp(kappa0 + kappa1 t) at scan t.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : share of a bond's contributions below which a factor is dropped
    kappa0, kappa1 : growth; kappa1 must be negative, or growth would never fade
    every : scans between two looks
    maximum : rank that no bond grows beyond
    """

    initial: int | tuple[int, ...] = 2
    threshold: float = 0.01
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
        self, streams: Streams, scan: int, state: RingState, info: StepInfo, problem: Problem
    ) -> RingState:
        """Drop what contributes too little, or add a factor."""
        if scan % self.every:
            return state
        rng = streams.rng(scan, Purpose.RANK)
        grows = rng.random(len(problem.shape)) < exp(min(self.kappa0 + self.kappa1 * scan, 0.0))
        for bond, sizes in enumerate(info.contributions):
            state, dropped = drop_small(rng, state, bond, sizes, self.threshold, problem.prior)
            if not dropped and grows[bond] and sizes.size < self.maximum:
                state = add_factor(rng, state, bond, problem.prior)
        return state


def drop_small(
    rng: Generator,
    state: RingState,
    bond: int,
    sizes: FloatArray,
    threshold: float,
    prior: RingPrior,
) -> tuple[RingState, bool]:
    """Drop the factors of a bond with sizes below the threshold, but never the largest."""
    keep = sizes >= threshold
    keep[np.argmax(sizes)] = True
    if keep.all():
        return state, False
    return drop_factors(rng, state, bond, keep, prior), True


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
    """Append one factor drawn from the prior: column of G^(d), row of G^(d+1), lambda, delta."""
    after = (bond + 1) % len(state.cores)
    cores = list(state.cores)
    n_slices, rows, _ = cores[bond].shape
    column = _draw_prior_core(rng, (n_slices, rows, 1), prior)
    cores[bond] = np.concatenate([cores[bond], column], axis=2)
    n_slices, _, columns = cores[after].shape
    row = _draw_prior_core(rng, (n_slices, 1, columns), prior)
    cores[after] = np.concatenate([cores[after], row], axis=1)
    gains = np.append(state.gains[bond], prior.weights.draw_gains(rng, 1))
    spread = np.sqrt(prior.weights.precisions(gains)[-1])
    weights = np.append(state.weights[bond], rng.standard_normal() / spread)
    return _with_bond(rng, state, bond, cores, weights, gains, prior)


def _draw_prior_core(rng: Generator, shape: tuple[int, int, int], prior: RingPrior) -> FloatArray:
    return prior.cores.draw_core(rng, shape, prior.cores.draw_hyper(rng, shape))


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
