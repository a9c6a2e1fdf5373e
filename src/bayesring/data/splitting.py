"""Hold observations out of the training data, and put them back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from bayesring.data.gaps import (
    SCATTERED,
    GapPattern,
    find_pattern,
    hold_out_alike,
    known_cells,
    pattern_of,
    too_large,
)
from bayesring.data.observations import Observations, in_order
from bayesring.engine.streams import hash_key
from bayesring.kernels.hashing import choose_cells
from bayesring.model.types import Given, IntArray

SHARE = 0.1
FEWEST, MOST = 50, 4_000
"""About the minimum and maximum size of the held-out set; below the minimum nothing is held out."""


class Held(NamedTuple):
    """Held-out observations and their original positions."""

    data: Observations
    places: IntArray
    """(n,), positions among all observations in order."""
    pattern: GapPattern = SCATTERED
    """How they are missing."""


class HoldOutRule(NamedTuple):
    """Which cells are held out. Every part of the data can apply it on its own."""

    key: int
    """Of the hash of a cell."""
    share: float
    """Cells with the lowest hashes that are held out."""
    pattern: GapPattern = SCATTERED
    units: NDArray[np.bool] | None = None
    """Cells or fibres that are held out, see `hold_out_alike`; None to go by the hash."""

    def chooses(self, coords: IntArray) -> NDArray[np.bool]:
        """Whether the observations at `coords` (n, D) are held out, (n,)."""
        if self.units is not None:
            ends = (size - 1 for size in self.units.shape)  # fibres are one long in their own mode
            return np.asarray(self.units[tuple(map(np.minimum, coords.T, ends))])
        held = np.empty(len(coords), dtype=bool)
        choose_cells(np.asarray(coords, dtype=np.int32).T, np.uint64(self.key), self.share, held)
        return held


def rule_for(n: int, known: NDArray[np.bool] | None, seed: int) -> HoldOutRule:
    """What to hold out of `n` observations, given which cells are known; None if too many are."""
    key = hash_key(seed)
    pattern = SCATTERED if known is None else pattern_of(known)
    share = min(SHARE, MOST / n)
    if known is None or pattern.mode is None:
        return HoldOutRule(key, share)
    rng = Generator(Philox(SeedSequence([seed, n])))
    return HoldOutRule(key, share, pattern, hold_out_alike(known, pattern, rng, share))


def hold_out(data: Observations, seed: int) -> tuple[Observations, Held | None]:
    """Split data into a part to fit and a held-out part, or None if there are too few.

    What is held out is missing as the cells are that have no value; see `bayesring.data.gaps`. The
    choice depends on the seed and on which cells are known, not on how the data are cut up or
    ordered; all observations of a cell are held out, or none.
    """
    n = len(data.values)
    if int(SHARE * n) < FEWEST:
        return data, None
    data = in_order(data)
    known = None if too_large(data.shape) else known_cells(data)
    rule = rule_for(n, known, seed)
    held, pattern = rule.chooses(data.coords), rule.pattern
    if data.given.censored is not None:  # what was not observed cannot judge
        held &= ~data.given.censored
        if np.count_nonzero(held) < FEWEST:
            return data, None
    return _some(data, ~held), Held(_some(data, held), np.flatnonzero(held), pattern)


def folds_of(data: Observations, folds: int, seed: int) -> IntArray:
    """Which of the folds each of the sorted observations is in, (n,).

    Folds are equal in size up to one; or, if whole fibres are missing, made of whole fibres.
    """
    n, pattern = len(data.values), find_pattern(data)
    rng = Generator(Philox(SeedSequence([seed, n, folds])))
    if not pattern.whole:
        return np.asarray(rng.permutation(np.arange(n) % folds))
    rest = [mode for mode in range(len(data.shape)) if mode != pattern.mode]
    _, fibres = np.unique(data.coords[:, rest], axis=0, return_inverse=True)
    return np.asarray(rng.permutation(np.arange(int(fibres.max()) + 1) % folds)[fibres])


def left_out(data: Observations, chosen: NDArray[np.bool]) -> tuple[Observations, Observations]:
    """Those of sorted observations that are not `chosen`, and those that are."""
    return _some(data, ~chosen), _some(data, chosen)


def rejoin(explored: Observations, held: Held) -> Observations:
    """The sorted observations before `hold_out` removed some."""
    n = len(explored.values) + len(held.places)
    stayed = np.ones(n, dtype=bool)
    stayed[held.places] = False

    def joined(stayed_part: NDArray[Any], held_part: NDArray[Any]) -> NDArray[Any]:
        whole = np.empty(n, dtype=held_part.dtype)
        whole[stayed], whole[held.places] = stayed_part, held_part
        return whole

    columns = np.empty((len(explored.shape), n), dtype=np.int32)
    for mode, column in enumerate(columns):
        column[:] = joined(explored.coords[:, mode], held.data.coords[:, mode])
    given = Given(
        *(
            None if one is None or other is None else joined(one, other)
            for one, other in zip(explored.given, held.data.given, strict=True)
        )
    )
    values = joined(explored.values, held.data.values)
    return Observations(columns.T, values, explored.shape, given=given)


def _some(data: Observations, chosen: NDArray[np.bool]) -> Observations:
    """Select observations from a sorted set, keeping them sorted."""
    columns = np.empty((len(data.shape), np.count_nonzero(chosen)), dtype=np.int32)
    for column, whole in zip(columns, data.coords.T, strict=True):
        column[:] = whole[chosen]
    return Observations(columns.T, data.values[chosen], data.shape, given=data.given.at(chosen))
