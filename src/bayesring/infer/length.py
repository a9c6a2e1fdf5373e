"""How long chains run: so many scans, or until the answer stands.

A run has four stages, each of which ends after a given scan or by a rule of its own:

1. **growing**: the rank adapts, without the held-out observations;
2. **bounding**: at the rank found, still without them, for as long as it takes to learn by them;
3. **settling**: with all observations, until the chains stand still;
4. **drawing**: until the Monte Carlo error of what users ask for is small.

Rules look at what all chains have recorded, at fixed scans and never at the clock, so that one seed
gives one result; only `max_time` ends a stage early.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

ADAPT, EXPLORE = 1 / 2, 3 / 4
"""Fractions of a given warm-up after which the rank is fixed, and after which all data are used."""
OPEN = 2**62
"""A scan that is never reached: the end of a stage that is still to be found."""
GROW = 150
"""Scans for policies that adapt the rank of every chain on its own."""
WINDOW = 20
"""Scans between looks, over which the log likelihood is averaged to see whether it stands still."""
BOUNDING = 2 * WINDOW
"""Scans of bounding. Whether chains stand still is seen later, with all observations."""
FEWEST, MOST = 2 * WINDOW, 10 * WINDOW
"""Scans of settling, which ends when chains stand still."""
STILL, NEGLIGIBLE = 1.0, 0.01
"""Change of the mean log likelihood from one window to the next up to which chains stand still: in
standard deviations within windows, or per observation, times its information. The former alone
would ask for more the larger the data are: a sum over n observations varies by far less than n."""
FIRST_DRAWS, LOOK, FASTER = 50, 25, 1.25
"""Draws before the first look at their error; the next look comes after this many times as many
draws, rounded up to a multiple of LOOK."""
MOST_DRAWS, FEWEST_MOST, WORK = 1000, 200, 10**8
"""Draws at which a chain ends at the latest: WORK over the number of observations, within ends."""
STALLED = 0.85
"""Error of the draws, over that of their first half, above which more draws would not help: it is
about 0.71 while chains explore the same distribution, and one if they disagree for good."""
HURRIED = {"growing": 0, "bounding": WINDOW, "settling": 0, "drawing": 10}
"""Scans that a stage has at least when time is up."""


class Stage(Enum):
    """Part of a run."""

    GROW = "growing"
    BOUND = "bounding"
    SETTLE = "settling"
    DRAW = "drawing"


class Length(NamedTuple):
    """How long a chain runs, and the memory for its draws."""

    warmup: int | None
    """Scans before the first draw; None to end when the chains stand still."""
    draws: int | None
    """Scans after that; None to end when Monte Carlo error is small."""
    max_bytes: int
    """Memory for the kept draws of one chain."""
    max_time: float | None = None
    """Seconds after which every stage ends as soon as it can."""

    @property
    def adapt(self) -> int:
        """Last scan after which the rank may change, if given."""
        return OPEN if self.warmup is None else int(ADAPT * self.warmup)

    @property
    def explore(self) -> int:
        """Last scan without the held-out observations, if given."""
        return OPEN if self.warmup is None else int(EXPLORE * self.warmup)

    def end(self, stage: Stage, begin: int) -> int:
        """Last scan of a stage that begins after scan `begin`; OPEN if a rule finds it."""
        if stage is Stage.DRAW:
            return OPEN if self.draws is None else begin + self.draws
        if self.warmup is None:
            return OPEN
        return {Stage.GROW: self.adapt, Stage.BOUND: self.explore}.get(stage, self.warmup)

    @property
    def long_enough(self) -> bool:
        """Whether held-out observations can be watched for as long as it takes to learn by them."""
        return self.warmup is None or self.explore - self.adapt >= WINDOW

    def thinning(self, draw_bytes: int) -> int:
        """Scans per kept draw such that a given number of draws fits in memory."""
        return 1 if self.draws is None else max(1, -(-self.draws * draw_bytes // self.max_bytes))


class Deadline:
    """The moment after which a run hurries."""

    def __init__(self, seconds: float | None) -> None:
        self._end = np.inf if seconds is None else time.monotonic() + seconds

    def hurries(self, stage: Stage, scans: int) -> bool:
        """Whether a stage that had so many scans ends at once."""
        return time.monotonic() > self._end and scans >= HURRIED[stage.value]


def stands_still(log_likelihoods: Sequence[Sequence[float]], information: float = 0.0) -> bool:
    """Whether chains have stopped drifting, by the log likelihood of the scans of a stage.

    The mean over the last window, of all chains, is compared with that over the window before.
    `information` is the number of observations times the information of each.
    """
    traces = np.array([each[-2 * WINDOW :] for each in log_likelihoods])
    if traces.shape[1] < 2 * WINDOW:
        return False
    windows = traces.reshape(len(traces), 2, WINDOW)
    before, after = windows.mean(axis=(0, 2))
    within = float(np.sqrt(np.mean(windows.var(axis=2, ddof=1))))
    return bool(abs(after - before) <= max(STILL * within, NEGLIGIBLE * information))


def settled(
    stage_scans: int, log_likelihoods: Sequence[Sequence[float]], information: float = 0.0
) -> bool:
    """Whether settling ends, by the log likelihoods of its scans."""
    if stage_scans < FEWEST:
        return False
    return stage_scans >= MOST or stands_still(log_likelihoods, information)


def most_draws(n_observations: int) -> int:
    """Draws of a chain at the latest."""
    return min(max(WORK // max(n_observations, 1), FEWEST_MOST), MOST_DRAWS)


def next_draws(draws: int) -> int:
    """Number of draws at the next look."""
    if draws < FIRST_DRAWS:
        return FIRST_DRAWS
    return max(draws + LOOK, LOOK * int(np.ceil(FASTER * draws / LOOK)))
