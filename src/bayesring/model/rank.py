"""Rank adaption and truncation, per bond, during warm-up only.

A policy sets the initial size of the ring and how it changes, as a function of state and scan.
Changing the rank changes the target of the chain, so it stops before the first kept draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, prod
from typing import NamedTuple, Protocol, Self, runtime_checkable

from numpy.random import Generator

from bayesring.model.resizing import add_factor, add_strands, drop_small, keep_strands
from bayesring.model.ring import expand_rank
from bayesring.model.types import IntArray, RingSize, RingState
from bayesring.priors import RingPrior

NEEDED = 3.0
"""Minimum energy per parameter for a factor to be kept.

A factor fitted to noise alone has about two: one from the fit, and one from the spread of a draw
around it. Three leaves only what the data require.
"""

ALWAYS = 5 * 10**6
"""Entries of all slices up to which a ring may have its `fewest` per slice, whatever it is fitted
to: with a million labels of one observation each, more would take hours and learn nothing."""
SHARE_OF_CELLS = 0.5
"""The same, as a share of the cells of the tensor: a ring with more entries would hardly be smaller
than what it describes."""

AMPLE = 60.0
"""Entries per slice: data that allow so many say more about the size of a ring than its prior."""


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

    def drop_small(self, rng: Generator, state: RingState, threshold: float) -> RingState:
        """State without directions that have less energy than noise would give them."""
        return drop_small(rng, state, self.counts, self.energy, self.prior, threshold)


@runtime_checkable
class RankPolicy(Protocol):
    """How the rank starts and changes during warm-up."""

    @property
    def judges(self) -> bool:
        """Whether it needs losses of held-out observations."""

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

    Examples
    --------
    >>> from bayesring.model.rank import FixedRank
    >>> ring = TensorRing(FixedRank(5, strands=2))
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

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.model.rank import Truncation
    >>> ring = TensorRing(Truncation(initial=8), prior="paper")
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
        return look.drop_small(look.rng(), state, self.threshold)

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

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.model.rank import Adaption
    >>> ring = TensorRing(Adaption(initial=2), prior="paper")
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
        state = look.drop_small(rng, state, self.threshold)
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
    sparse : the same for data that allow fewer than `AMPLE` entries per slice, see `for_data`
    every : scans between two looks
    tolerance : share by which the loss may rise
    density : maximum number of parameters per observation, times its information
    fewest, most : entries per slice that the ring may always reach, and never exceed; fewer than
        `fewest` if all slices together would have more than `ALWAYS` entries, or more than
        `SHARE_OF_CELLS` of the cells of the tensor

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.model.rank import StrandGrowth
    >>> ring = TensorRing(StrandGrowth())
    """

    width: int = 2
    initial: int = 2
    sparse: int = 2
    every: int = 25
    tolerance: float = 0.05
    density: float = 3.0
    fewest: int = 20
    most: int = 100

    judges = True

    def for_data(self, shape: tuple[int, ...], information: float) -> Self:
        """The policy with as many strands to start from as are right for so much data."""
        if self.is_ample(shape, information):
            return self
        return replace(self, initial=max(self.initial, self.sparse))

    def is_ample(self, shape: tuple[int, ...], information: float) -> bool:
        """Whether the data say more about the size of a ring than its prior."""
        return self._allowed(shape, information) >= AMPLE

    def _allowed(self, shape: tuple[int, ...], information: float) -> float:
        """Entries per slice for which there are enough data."""
        return self.density * information / sum(shape)

    def limit(self, shape: tuple[int, ...], information: float) -> int:
        """Maximum number of strands."""
        slices, cells = sum(shape), prod(map(float, shape))
        always = min(self.fewest, ALWAYS / slices, SHARE_OF_CELLS * cells / slices)
        allowed = max(self._allowed(shape, information), always)
        return max(1, int(min(allowed, self.most)) // self.width**2)

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
