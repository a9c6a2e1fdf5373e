"""Rank adaption and truncation, per bond, during warm-up only.

A policy sets the initial size of the ring and how it changes, as a function of state and scan.
Changing the rank changes the target of the chain, so it stops before the first kept draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.model.bonds import (
    bond_basis,
    opened_moments,
    parameters_of_factor,
    turn_bond,
)
from bayesring.model.ring import expand_rank
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState
from bayesring.priors import RingPrior

NEEDED = 3.0
"""Minimum energy per parameter for a factor to be kept.

A factor fitted to noise alone has about two: one from the fit, and one from the spread of a draw
around it. Three leaves only what the data require.
"""


class Look(NamedTuple):
    """What a policy sees of a chain after a scan."""

    rng: Callable[[], Generator]
    """Creates the generator for rank changes after this scan."""
    scan: int
    left: int
    """Number of remaining scans after which the rank may still change."""
    energy: float
    """sum w f^2 over all observations."""
    counts: Sequence[IntArray]
    """Number of observations in each slice of each mode."""
    information: float
    """Number of observations times the information of each."""
    prior: RingPrior
    losses: Sequence[float] = ()
    """Held-out loss after every scan so far; empty if nothing is held out."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of slices of each mode."""
        return tuple(len(own) for own in self.counts)


@runtime_checkable
class RankPolicy(Protocol):
    """How the rank starts and changes during warm-up."""

    @property
    def judges(self) -> bool:
        """Whether `adapt` needs losses of held-out observations."""

    def start(self, order: int) -> RingSize:
        """Size of the first state."""

    def adapt(self, state: RingState, look: Look) -> RingState:
        """State with factors dropped or added after a scan."""

    def sizes(self, shape: tuple[int, ...], information: float) -> list[RingSize]:
        """Sizes for online EM to choose from, from small to large.

        `information` is the number of observations times the information of each.
        """


@dataclass(frozen=True)
class FixedRank:
    """A fixed, given rank.

    Parameters
    ----------
    rank : one number for all bonds, or one per bond
    strands : number of strands, each of that rank
    """

    rank: int | tuple[int, ...]
    strands: int = 1

    judges = False

    def start(self, order: int) -> RingSize:
        """Size as given."""
        return RingSize(self.strands, expand_rank(self.rank, order))

    def adapt(self, state: RingState, look: Look) -> RingState:
        """Leave the state alone."""
        return state

    def sizes(self, shape: tuple[int, ...], information: float) -> list[RingSize]:
        """Size as given."""
        return [self.start(len(shape))]


@dataclass(frozen=True)
class Truncation:
    """Start large and, every `every` scans, drop what is not needed.

    A drop is never undone, so checks are further apart than in `Adaption`: the ring must have found
    the data first.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : energy per parameter below which a direction of a bond is dropped
    every : scans between two looks
    """

    initial: int | tuple[int, ...] = 10
    threshold: float = NEEDED
    every: int = 50

    judges = False

    def start(self, order: int) -> RingSize:
        """One strand of the rank given."""
        return RingSize(1, expand_rank(self.initial, order))

    def adapt(self, state: RingState, look: Look) -> RingState:
        """Drop what contributes too little."""
        if look.scan % self.every:
            return state
        return drop_small(look.rng(), state, look, self.threshold)

    def sizes(self, shape: tuple[int, ...], information: float) -> list[RingSize]:
        """Raise an error: truncation applies to chains only."""
        raise for_chains_only(self)


@dataclass(frozen=True)
class Adaption:
    """The paper's strategy: drop small directions; if there are none, grow occasionally.

    Every `every` scans, each bond loses the directions whose energy per parameter is below the
    threshold. A bond that loses none gains one factor with probability
    p(t) = exp(kappa0 + kappa1 t) at scan t, if a later check can still judge it.

    Parameters
    ----------
    initial : rank to start from, one number or one per bond
    threshold : energy per parameter below which a direction of a bond is dropped
    kappa0, kappa1 : growth; kappa1 must be negative, otherwise growth would never fade
    every : scans between two looks
    maximum : maximum rank of a bond
    """

    initial: int | tuple[int, ...] = 2
    threshold: float = NEEDED
    kappa0: float = 0.0
    kappa1: float = -0.005
    every: int = 10
    maximum: int = 10

    judges = False

    def __post_init__(self) -> None:
        if self.kappa1 >= 0:
            raise ValueError(f"kappa1 of Adaption must be negative, got {self.kappa1!r}.")

    def start(self, order: int) -> RingSize:
        """One strand of the rank given."""
        return RingSize(1, expand_rank(self.initial, order))

    def adapt(self, state: RingState, look: Look) -> RingState:
        """Drop what contributes too little, or add a factor."""
        if look.scan % self.every:
            return state
        rng = look.rng()
        growth = exp(min(self.kappa0 + self.kappa1 * look.scan, 0.0))
        grows = rng.random(len(state.cores)) < (growth if look.left >= self.every else 0.0)
        before = state.rank
        state = drop_small(rng, state, look, self.threshold)
        for bond, (was, now) in enumerate(zip(before, state.rank, strict=True)):
            if now == was and grows[bond] and now < self.maximum:
                state = add_factor(rng, state, bond, look.prior)
        return state

    def sizes(self, shape: tuple[int, ...], information: float) -> list[RingSize]:
        """Raise an error: adaption applies to chains only."""
        raise for_chains_only(self)


@dataclass(frozen=True)
class StrandGrowth:
    """A ring of many thin strands, doubled until held-out predictions get worse.

    Every `every` scans the held-out loss is compared with the previous check. If it rose by more
    than the share `tolerance`, the strands added last are dropped and growth ends. Otherwise the
    number of strands doubles, up to the limit. Without held-out observations the ring grows to its
    limit.

    Parameters
    ----------
    width : rank of every strand
    initial : number of strands to start from
    every : scans between two looks
    tolerance : share by which the loss may rise
    density : maximum number of parameters per observation, times its information
    fewest, most : entries per slice that the ring may always reach, and never exceed
    """

    width: int = 2
    initial: int = 2
    every: int = 25
    tolerance: float = 0.05
    density: float = 3.0
    fewest: int = 20
    most: int = 100

    judges = True

    def limit(self, shape: tuple[int, ...], information: float) -> int:
        """Maximum number of strands."""
        allowed = self.density * information / sum(shape)
        return max(1, int(min(max(allowed, self.fewest), self.most)) // self.width**2)

    def sizes(self, shape: tuple[int, ...], information: float) -> list[RingSize]:
        """Strands doubled up to the limit."""
        limit = max(self.initial, self.limit(shape, information))
        doubled = [self.initial << n for n in range(limit.bit_length())]
        strands = sorted({min(each, limit) for each in doubled})
        return [RingSize(each, (self.width,) * len(shape)) for each in strands]

    def start(self, order: int) -> RingSize:
        """Few strands."""
        return RingSize(self.initial, (self.width,) * order)

    def adapt(self, state: RingState, look: Look) -> RingState:
        """Double the strands, or drop the last ones."""
        number, between = divmod(look.scan, self.every)
        strands, prior = state.size.strands, look.prior
        if between or strands != self._grown(number - 1, look):
            return state  # between two checks, or growth has ended
        if look.losses and number > 1 and strands * self.width**2 > self.fewest:
            change = look.losses[look.scan - 1] / look.losses[look.scan - 1 - self.every] - 1.0
            if change > self.tolerance:
                return keep_strands(look.rng(), state, self._grown(number - 2, look), prior)
        more = self._grown(number, look) - strands
        return add_strands(look.rng(), state, more, prior) if more else state

    def _grown(self, number: int, look: Look) -> int:
        """Number of strands after the given number of checks if growth never stopped."""
        limit = self.limit(look.shape, look.information)
        return min(self.initial << number, max(self.initial, limit))


def for_chains_only(policy: object) -> ValueError:
    """The error for a policy that does not support online EM."""
    return ValueError(
        f"{type(policy).__name__} changes the rank of a chain in warm-up, and online EM has no "
        "chain; give rank='auto', a number, or FixedRank."
    )


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


def drop_small(rng: Generator, state: RingState, look: Look, threshold: float) -> RingState:
    """Drop, bond by bond, the directions with less energy than noise would give them.

    Each bond is transformed to its own basis first and keeps at least its strongest direction.
    """
    counts = look.counts
    shares = [own / max(int(counts[0].sum()), 1) for own in counts]
    for bond in range(len(counts)):
        basis = bond_basis(opened_moments(state, bond, shares), state.weights[bond][0])
        needed = parameters_of_factor(counts, state.size.bonds, bond)
        per_parameter = look.energy * basis.shares / needed
        keep = per_parameter >= threshold
        keep[np.argmax(per_parameter)] = True
        if not keep.all():
            turned = turn_bond(state, bond, basis)
            state = drop_factors(rng, turned, bond, keep, look.prior)
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
