"""Hold observations out of the training data, and put them back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from bayesring.data.gaps import SCATTERED, GapPattern, find_pattern, hold_out_alike
from bayesring.data.observations import Observations, in_order
from bayesring.model.types import Given, IntArray

SHARE = 0.1
FEWEST, MOST, MOST_ALIKE = 50, 1_000, 4_000
"""Minimum and maximum size of the held-out set; below the minimum nothing is held out. More if
whole fibres are held out, whose cells say the same."""


class Held(NamedTuple):
    """Held-out observations and their original positions."""

    data: Observations
    places: IntArray
    """(n,), positions among all observations in order."""
    pattern: GapPattern = SCATTERED
    """How they are missing."""


def hold_out(data: Observations, seed: int) -> tuple[Observations, Held | None]:
    """Split data into a part to fit and a held-out part, or None if there are too few.

    What is held out is missing as the cells are that have no value; see `bayesring.data.gaps`. The
    choice depends on the seed and the observations, not on their original order.
    """
    n = len(data.values)
    n_held = min(int(SHARE * n), MOST)
    if n_held < FEWEST:
        return data, None
    data = in_order(data)
    rng = Generator(Philox(SeedSequence([seed, n])))
    pattern = find_pattern(data)
    if pattern.mode is None:
        held = np.zeros(n, dtype=bool)
        held[rng.permutation(n)[:n_held]] = True
    else:
        held = hold_out_alike(data, pattern, rng, min(int(SHARE * n), MOST_ALIKE))
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
