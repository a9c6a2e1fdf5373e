"""Schedule of online EM: turns held-out losses into actions.

1. **Find** the data at the initial rate, with the initial prior, until losses stop improving.
2. **Learn** the prior too; at every standstill return to the best ring and halve the rate.
3. **Fade**: when the allowed looks are nearly used up, lower the rate to its final value.
4. **Settle** at the last rate; the rings after these looks are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import NamedTuple

RATE = 0.1
"""Adam's initial rate. The paper's rate, 0.01, is reached after some halvings; starting with it
ends in worse optima."""
FINDING, PATIENCE, GAIN = 10, 3, 1e-3
"""Number of looks without a gain of this share after which the prior is learned, and the rate
halved."""
HALVINGS = 5
LEAST = RATE * 0.5 ** (HALVINGS + 1)
"""Final learning rate."""
LATE = 5
"""Number of looks for settling, whose rings are averaged at the end."""
SETTLING = RATE / 32
"""Rate at which held-out observations are learned at the end."""


class Phase(Enum):
    """Phase of learning."""

    FIND = 1
    LEARN = 2
    FADE = 3
    SETTLE = 4
    DONE = 5


class Advice(NamedTuple):
    """Actions after a look, in this order."""

    keep: bool = False
    """Keep the ring as the best so far."""
    go_back: bool = False
    """Return to the kept ring."""
    wake: bool = False
    """First E-step: from now on the prior is learned."""
    late: bool = False
    """Keep the ring for the average at the end."""


@dataclass(frozen=True)
class Schedule:
    """State of the schedule. `rate` and `expects` are for the next look."""

    most: int
    """Number of looks allowed."""
    phase: Phase = Phase.FIND
    rate: float = RATE
    looks: int = 0
    best: float = inf
    """Smallest loss so far; reset when the prior begins to be learned."""
    waited: int = 0
    """Number of looks since the last gain or standstill, while finding or learning."""
    left: int = 0
    """Number of looks left for fading or settling."""
    faded_from: float = RATE
    """Rate at the start of fading."""

    @classmethod
    def begin(cls, most: int) -> Schedule:
        """Schedule for a new ring, with at most `most` looks."""
        new = cls(most)
        return new if new._free > 0 else new._fade()

    @classmethod
    def settling(cls, most: int) -> Schedule:
        """Schedule for a ring that only has to settle."""
        return cls(most, Phase.SETTLE, SETTLING, left=cls(most)._late)

    @property
    def expects(self) -> bool:
        """Whether the prior is learned in the next look."""
        return self.phase is not Phase.FIND

    def after(self, loss: float) -> tuple[Schedule, Advice]:
        """The schedule after a look with this loss, and what to do about it."""
        if self.phase in (Phase.FIND, Phase.LEARN):
            return self._judge(loss)
        seen = replace(self, looks=self.looks + 1, left=self.left - 1)
        if self.phase is Phase.FADE:
            if seen.left:
                return replace(seen, rate=self.rate * self._fall), Advice()
            return replace(seen, phase=Phase.SETTLE, left=self._late), Advice()
        return (seen if seen.left else replace(seen, phase=Phase.DONE)), Advice(late=True)

    def _judge(self, loss: float) -> tuple[Schedule, Advice]:
        """Schedule after a look while finding or learning: a gain, or a standstill."""
        keep = loss < self.best * (1 - GAIN)
        new = replace(
            self,
            looks=self.looks + 1,
            best=loss if keep else self.best,
            waited=0 if keep else self.waited + 1,
        )
        stands = new.waited >= (PATIENCE if self.expects else self._finding)
        wake = stands and not self.expects
        if wake:  # the best loss is reset
            new = replace(new, phase=Phase.LEARN, best=inf, waited=0)
        elif stands:
            new = replace(new, rate=self.rate / 2, waited=0)
        if not (new.rate > LEAST and new.looks < self._free):
            wake = wake or new.phase is Phase.FIND
            new = new._fade()
        return new, Advice(keep, stands, wake)

    def _fade(self) -> Schedule:
        """Begin to fade, or settle if the rate has reached its final value."""
        if not self.rate > LEAST:
            return replace(self, phase=Phase.SETTLE, left=self._late)
        faded = replace(self, phase=Phase.FADE, left=self._fading, faded_from=self.rate)
        return replace(faded, rate=self.rate * faded._fall)

    @property
    def _fall(self) -> float:
        """Factor by which the rate changes between looks while fading."""
        return float((LEAST / self.faded_from) ** (1 / self._fading))

    @property
    def _finding(self) -> int:
        """Number of looks without a gain after which the prior is learned."""
        return min(FINDING, max(1, self.most // 16))

    @property
    def _fading(self) -> int:
        """Number of looks for fading."""
        return min(HALVINGS + 1, max(1, self.most // 4))

    @property
    def _late(self) -> int:
        """Number of looks for settling."""
        return min(LATE, max(1, self.most // 8))

    @property
    def _free(self) -> int:
        """Latest look before fading begins; none if not positive."""
        return self.most - self._fading - self._late
