"""When online EM does what: one schedule turns held-out losses into actions.

1. **Find** the data at the first rate, with the prior of the start, until losses stand still.
2. **Learn** the prior too; at every standstill go back to the best and halve the rate.
3. **Fade**: when the looks allowed are nearly used up, the rate falls to its end in a few of them.
4. **Settle** at the last rate; the rings seen there are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import NamedTuple

RATE = 0.1
"""Adam's first rate. The paper's, 0.01, comes after some halvings; as the first it ends in worse
places."""
FINDING, PATIENCE, GAIN = 10, 3, 1e-3
"""Looks without a gain of that share after which the prior is learned, and the rate halved."""
HALVINGS = 5
LEAST = RATE * 0.5 ** (HALVINGS + 1)
"""Rate at which learning ends."""
LATE = 5
"""Looks whose rings are averaged at the end, and which settling takes."""
SETTLING = RATE / 32
"""Rate at which held-out observations are learned from in the end."""


class Phase(Enum):
    """What learning is about."""

    FIND = 1
    LEARN = 2
    FADE = 3
    SETTLE = 4
    DONE = 5


class Advice(NamedTuple):
    """What to do after a look, in this order."""

    keep: bool = False
    """Remember the ring: it is the best so far."""
    go_back: bool = False
    """Return to the ring that was kept."""
    wake: bool = False
    """First E-step: from now on the prior is learned."""
    late: bool = False
    """Remember the ring for the average at the end."""


@dataclass(frozen=True)
class Schedule:
    """Where learning stands. `rate` and `expects` are for the next look."""

    most: int
    """Looks allowed."""
    phase: Phase = Phase.FIND
    rate: float = RATE
    looks: int = 0
    best: float = inf
    """Least loss so far; begins anew when the prior comes in."""
    waited: int = 0
    """Looks since the last gain or standstill, while finding or learning."""
    left: int = 0
    """Looks that fading or settling still takes."""
    faded_from: float = RATE
    """Rate at which fading began."""

    @classmethod
    def begin(cls, most: int) -> Schedule:
        """Of a new ring, in `most` looks."""
        new = cls(most)
        return new if new._free > 0 else new._fade()

    @classmethod
    def settling(cls, most: int) -> Schedule:
        """Of a ring that only has to settle."""
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
        """After a look while finding or learning: whether it gained, or losses stand still."""
        keep = loss < self.best * (1 - GAIN)
        new = replace(
            self,
            looks=self.looks + 1,
            best=loss if keep else self.best,
            waited=0 if keep else self.waited + 1,
        )
        stands = new.waited >= (PATIENCE if self.expects else self._finding)
        wake = stands and not self.expects
        if wake:  # what counts as the best begins anew
            new = replace(new, phase=Phase.LEARN, best=inf, waited=0)
        elif stands:
            new = replace(new, rate=self.rate / 2, waited=0)
        if not (new.rate > LEAST and new.looks < self._free):
            wake = wake or new.phase is Phase.FIND
            new = new._fade()
        return new, Advice(keep, stands, wake)

    def _fade(self) -> Schedule:
        """Begin to fade, or settle if the rate is at its end."""
        if not self.rate > LEAST:
            return replace(self, phase=Phase.SETTLE, left=self._late)
        faded = replace(self, phase=Phase.FADE, left=self._fading, faded_from=self.rate)
        return replace(faded, rate=self.rate * faded._fall)

    @property
    def _fall(self) -> float:
        """Factor of the rate from one look of fading to the next."""
        return float((LEAST / self.faded_from) ** (1 / self._fading))

    @property
    def _finding(self) -> int:
        """Looks without a gain after which the prior is learned."""
        return min(FINDING, max(1, self.most // 16))

    @property
    def _fading(self) -> int:
        """Looks that fading takes."""
        return min(HALVINGS + 1, max(1, self.most // 4))

    @property
    def _late(self) -> int:
        """Looks that settling takes."""
        return min(LATE, max(1, self.most // 8))

    @property
    def _free(self) -> int:
        """Looks before fading begins at the latest; none if not positive."""
        return self.most - self._fading - self._late
