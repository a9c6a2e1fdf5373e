"""Random streams keyed by the piece of work, not by the thread that does it.

Philox is counter-based: a key and a counter identify a stream, and creating one takes microseconds.
The low word of the counter is reserved for the stream itself, so streams cannot overlap.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.random.bit_generator import ISeedSequence


class Purpose(IntEnum):
    """What a stream is used for. Numbers are part of what a seed means: never renumber."""

    START = 0
    HYPER = 1
    SLICES = 2
    AUGMENT = 3
    WEIGHTS = 4
    GAINS = 5
    NUISANCE = 6
    RANK = 7
    SHUFFLE = 8
    SPREAD = 9
    POPULATION = 10
    UNSEEN = 11
    STATISTICS = 12
    SAMPLE = 13
    SUGGEST = 14
    FILES = 15


PURPOSES = 16


class _Key(ISeedSequence):
    """A key of Philox where NumPy expects a seed: given as such, each would cost a real seed."""

    def __init__(self, key: tuple[int, int]) -> None:
        self._words = np.array(key, dtype=np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The two words of the key, which are all that Philox asks for."""
        return self._words


class Streams(NamedTuple):
    """All the random streams of one chain."""

    key: tuple[int, int]

    @classmethod
    def of_chain(cls, seed: int, chain: int) -> Streams:
        """Streams of one chain for one seed."""
        first, second = SeedSequence([seed, chain]).generate_state(2, np.uint64)
        return cls((int(first), int(second)))

    @classmethod
    def of_fold(cls, seed: int, chain: int, fold: int) -> Streams:
        """Streams of one chain while it leaves out one fold of the observations."""
        first, second = SeedSequence([seed, chain, fold]).generate_state(2, np.uint64)
        return cls((int(first), int(second)))

    @classmethod
    def of_refit(cls, seed: int, number: int) -> Streams:
        """Streams of a fit to values that the model itself simulated."""
        first, second = SeedSequence([seed, number, 0, 1]).generate_state(2, np.uint64)
        return cls((int(first), int(second)))

    @classmethod
    def of_folding(cls, seed: int, chain: int, scan: int) -> Streams:
        """Streams of the slices of new labels in one kept draw."""
        first, second = SeedSequence([seed, chain, scan, 1, 1]).generate_state(2, np.uint64)
        return cls((int(first), int(second)))

    def rng(self, scan: int, purpose: Purpose, mode: int = 0, block: int = 0) -> Generator:
        """Create the generator for one purpose in one block of one mode of one scan."""
        counter = np.array([0, block, mode * PURPOSES + purpose, scan], dtype=np.uint64)
        return Generator(Philox(_Key(self.key), counter=counter))  # type: ignore[arg-type]


def aside(seed: int, purpose: Purpose, *place: int) -> list[int]:
    """Seed for draws outside the chains, such as predictive samples."""
    return [seed, *place, ASIDE[purpose]]


ASIDE = {Purpose.SAMPLE: 1, Purpose.SUGGEST: 3, Purpose.FILES: 1}
"""Older than `Purpose`, and part of what a seed means; files also use the number of the pass."""
