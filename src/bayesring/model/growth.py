"""Growth of all chains of a run together, on their pooled predictions for held-out observations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator

from bayesring.model.rank import Look, StrandGrowth
from bayesring.model.resizing import add_strands, keep_strands
from bayesring.model.types import FloatArray, RingState
from bayesring.priors import RingPrior

CUT = 0.99
"""Quantile of held-out losses beyond which larger ones count as equal: a few values that nothing
predicts would otherwise choose the size by chance."""
STANDS = 0.005
"""Share by which a loss may still fall from one look to the next when sizes are compared again."""
NEVER = np.array([np.inf])
"""Losses before the first look."""


class Growth(NamedTuple):
    """How far the search for a number of strands has come, for all chains together."""

    sizes: tuple[int, ...]
    """Numbers of strands to try."""
    place: int = 0
    """Which of them the chains have now."""
    looks: int = 0
    """Looks at this size."""
    losses: FloatArray = NEVER
    """Of every held-out observation at the last of them."""
    best: int = 0
    """Place of the smallest size that no other beats."""
    least: FloatArray = NEVER
    """Its losses."""
    failed: int = 0
    """Larger sizes in a row that did not beat it."""
    trimming: bool = False
    """Whether the second size is the best so far, and the first is tried once more."""
    ended: bool = False

    @property
    def strands(self) -> int:
        """Strands that the chains have now."""
        return self.sizes[self.place]

    @property
    def taken(self) -> int:
        """Strands that they keep if the search is cut short."""
        return self.sizes[self.best if self.failed or self.trimming else self.place]

    def moves(self, losses: FloatArray, share: float) -> bool:
        """Whether these losses are still falling, or the first at this size."""
        return beats(losses, self.losses, share)


@dataclass(frozen=True)
class JointGrowth(StrandGrowth):
    """A ring of many thin strands, doubled for as long as held-out predictions get better.

    Every `every` scans all chains together predict the held-out observations. A size is taken if it
    beats the best smaller one by the share `gain`, or by less if the limit makes it less than twice
    as large: of sizes that predict alike, the smallest is best. It is taken once its mean loss
    stands still, and given up after `patience` looks. After `tries` larger sizes that are, or at
    the limit, the ring returns to the best. Without held-out observations the ring grows to its
    limit.

    Where two looks are compared, the largest losses are cut to the quantile `CUT`.

    Parameters
    ----------
    width, initial, sparse, density, fewest, most : as in `StrandGrowth`
    every : scans between two looks
    gain : share by which a ring twice as large has to be better
    widening : whether larger rings have wider intervals though they predict no better; if so, and
        data are ample, the search begins with a single strand, and twice the gain is asked for
    still : share by which a loss may still fall from one look to the next when a size is taken
    patience : looks after which a size is taken or given up in any case
    tries : larger sizes that may fail in a row
    trims : whether, if the second size is the best, the first is tried once more: it began at
        random and may have been stuck where the first strands of the second size are not
    """

    every: int = 10
    gain: float = 0.01
    widening: bool = False
    still: float = 0.02
    patience: int = 4
    tries: int = 2
    trims: bool = False

    def for_data(self, shape: tuple[int, ...], information: float) -> Self:
        """The policy with a start and a gain that are right for so much data."""
        if self.widening and self.is_ample(shape, information):
            return replace(self, initial=1, gain=2 * JointGrowth.gain, trims=True)
        return super().for_data(shape, information)

    def adapt(self, state: RingState, look: Look) -> RingState:
        """Leave the state alone: size is for all chains to decide together, by `judge`."""
        return state

    def begin(self, shape: tuple[int, ...], information: float) -> Growth:
        """The search before the first look."""
        return Growth(tuple(size.strands for size in self.sizes(shape, information)))

    def judge(self, growth: Growth, losses: FloatArray | None) -> Growth:
        """The search after one more look, at which all chains together had these losses.

        (n,), one for each held-out observation; None if nothing is held out.
        """
        if growth.ended:
            return growth
        last = growth.place == len(growth.sizes) - 1
        if losses is None:
            return growth._replace(place=growth.place + (not last), ended=last)
        if growth.trimming:
            return self._trim(growth, losses)
        looks = growth.looks + 1
        moves = growth.moves(losses, self.still)
        doublings = np.log2(growth.strands / growth.sizes[growth.best])
        better = beats(losses, growth.least, self.gain * min(1.0, doublings))
        if looks < self.patience and (moves or not better):
            return growth._replace(looks=looks, losses=losses)
        if better:
            growth = growth._replace(best=growth.place, least=losses, failed=0)
        else:
            growth = growth._replace(failed=growth.failed + 1)
        if last or growth.failed == self.tries:
            trims = self.trims and growth.best == 1
            again = growth._replace(place=growth.best, looks=0, losses=NEVER)
            return again._replace(trimming=trims, ended=not trims)
        return growth._replace(place=growth.place + 1, looks=0, losses=NEVER)

    def _trim(self, growth: Growth, losses: FloatArray) -> Growth:
        """The search after one more look at the second size, or then at the first.

        Both are compared when their losses stand still: those of the search were still falling.
        """
        looks = growth.looks + 1
        if looks < self.patience and growth.moves(losses, STANDS):
            return growth._replace(looks=looks, losses=losses)
        if growth.place > 0:
            return growth._replace(place=0, looks=0, losses=NEVER, least=losses)
        best = int(beats(growth.least, losses, self.gain))
        return growth._replace(place=best, best=best, ended=True)

    def resized(
        self, rng: Callable[[], Generator], state: RingState, strands: int, prior: RingPrior
    ) -> RingState:
        """State with so many strands, the first of those that there are."""
        more = strands - state.size.strands
        if more == 0:
            return state
        if more < 0:
            return keep_strands(rng(), state, strands, prior)
        return add_strands(rng(), state, more, prior)


def beats(losses: FloatArray, others: FloatArray, share: float) -> bool:
    """Whether the mean loss is smaller by a share; losses beyond `CUT` of either count as that."""
    most = np.quantile(np.maximum(losses, others), CUT, method="higher")
    return bool(np.minimum(losses, most).mean() < (1 - share) * np.minimum(others, most).mean())
