"""Predictions for labels that were not in the data, from the prior.

The prior describes how the slices of a mode are distributed, and the known slices determine what
can be learned about that distribution. In every posterior draw, the slice of a new label is one
more draw from it: equation (24) of docs/model.md. The result is the same as if the label had been
present from the start without a value.

The draws depend only on the seed, the draw and the label, not on the rest of the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayesring.data.labels import NewLabels, numbers_of
from bayesring.data.positions import positions_of
from bayesring.engine.streams import Purpose, Streams
from bayesring.model import ring
from bayesring.model.types import Axis, FloatArray, IntArray, RingSize
from bayesring.posterior import Posterior
from bayesring.priors import RingPrior

PART_BYTES = 2**27
"""Budget for the slices of all draws, known and new, that are held at a time."""


def widen(
    posterior: Posterior,
    prior: RingPrior,
    added: NewLabels,
    seed: int,
    features: Sequence[Any] | None = None,
    positions: Sequence[FloatArray | None] | None = None,
) -> Posterior:
    """The posterior extended by new labels, whose coordinates follow the known ones.

    `features` holds for each mode those of its new labels, or None, and `positions` (n, P) where
    they lie; by default, numbers and times lie on a line.
    """
    if not any(len(new) for new in added):
        return posterior
    return Widened(
        tuple(size + len(new) for size, new in zip(posterior.shape, added, strict=True)),
        posterior.likelihood,
        posterior.location,
        posterior.scale,
        posterior.chains,
        posterior.engine,
        report=posterior.report,
        known=posterior,
        prior=prior,
        numbers=tuple(numbers_of(new) for new in added),
        positions=tuple(map(_on_a_line, added) if positions is None else positions),
        features=tuple(features or (None,) * len(added)),
        seed=seed,
    )


def _on_a_line(new: Any) -> FloatArray | None:
    """Positions (n, 1) of numbers and times."""
    found = positions_of(new)
    return None if found is None else found[:, None]


@dataclass(frozen=True)
class Widened(Posterior):
    """A posterior that creates slices for new labels when their cells are requested.

    Its `shape` includes the new labels but its `chains` do not, so only cells and parts work.

    Parameters
    ----------
    known : the posterior of the known labels
    prior : prior of the ring
    numbers : for each mode, one number per new label, the key of its random stream
    positions : for each mode, where its new labels lie, (n, P), or None
    features : for each mode, the features of its new labels, or None
    seed : seed of the fit
    """

    known: Posterior = field(kw_only=True)
    prior: RingPrior = field(kw_only=True)
    numbers: tuple[Sequence[int], ...] = field(kw_only=True)
    positions: tuple[FloatArray | None, ...] = field(kw_only=True)
    features: tuple[Any, ...] = field(kw_only=True)
    seed: int = field(kw_only=True)

    def at_levels(self, levels: Sequence[IntArray]) -> Posterior:
        """Posterior of the given levels of each mode, with slices for the new ones."""
        part = self.with_room(levels)
        for mode, (own, size) in enumerate(zip(levels, self.known.shape, strict=True)):
            places = np.flatnonzero(own >= size)
            if len(places):
                self._draw(part, mode, places, own[places] - size)
        return part

    def with_room(self, levels: Sequence[IntArray]) -> Posterior:
        """The same, with the first known slice of a mode in the place of its new ones."""
        sizes = self.known.shape
        return self.known.at_levels(
            [np.where(own < size, own, 0) for own, size in zip(levels, sizes, strict=True)]
        )

    def _draw(self, part: Posterior, mode: int, places: IntArray, new: IntArray) -> None:
        """Fill the slices at `places` of a core with draws for new labels, in every draw."""
        rows = [
            (chain, row) for chain, own in enumerate(self.chains) for row in range(len(own.flat))
        ]
        streams = [Streams.of_chain(self.seed, chain) for chain in range(len(self.chains))]
        noise = []
        for own, draws in zip(streams, self.chains, strict=True):
            size = (len(draws.flat), draws.strands, draws.bonds[mode - 1], draws.bonds[mode])
            keyed = [own.rng(0, Purpose.UNSEEN, mode, self.numbers[mode][label]) for label in new]
            noise.append(np.stack([rng.standard_normal(size) for rng in keyed], axis=1))

        places_of_new = self.positions[mode]
        known_of_new = self.features[mode]
        axis = Axis(
            len(new),
            None if places_of_new is None else places_of_new[new],
            features=None if known_of_new is None else known_of_new[new],
        )

        def fill(draw: int) -> None:
            chain, row = rows[draw]
            draws = self.chains[chain]
            weights = draws.bond_weights(row, mode)
            known = self.known.cores(draw)
            core = ring.unweighted(known[mode], weights)
            before = [
                ring.unweighted(own, draws.bond_weights(row, each))
                for each, own in enumerate(known[:mode] if self.prior.share else ())
            ]
            rng = streams[chain].rng(int(draws.scans[row]), Purpose.POPULATION, mode)
            prior = self.prior.of_mode(mode, before)
            slices = prior.new_slices(rng, core, noise[chain][row], axis)
            part.cores(draw)[mode][places] = slices * weights[:, None]

        self.engine.map_pieces(fill, range(len(rows)))

    def _portions(self, coords: IntArray) -> Iterator[tuple[slice, Posterior, IntArray]]:
        for begin, end in self._cuts(coords, 0, len(coords)):
            part, places = self._part(coords[begin:end])
            for rows, _, own in part._portions(places):
                yield slice(begin + rows.start, begin + rows.stop), part, own

    def _cuts(self, coords: IntArray, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Split the rows in half until the slices that each piece needs fit the budget."""
        own = coords[begin:end]
        if len(own) > 1 and np.any(own >= self.known.shape):
            needed = [len(np.unique(column)) for column in own.T]
            if self._bytes(needed) > PART_BYTES:
                middle = (begin + end) // 2
                yield from self._cuts(coords, begin, middle)
                yield from self._cuts(coords, middle, end)
                return
        yield begin, end

    def _bytes(self, n_slices: Sequence[int]) -> int:
        """Bytes of the given numbers of slices per mode, in all draws."""
        return sum(
            draws.flat.itemsize
            * len(draws.flat)
            * RingSize(draws.strands, tuple(draws.bonds.tolist())).parameters(tuple(n_slices))
            for draws in self.chains
        )

    def _part(self, coords: IntArray) -> tuple[Posterior, IntArray]:
        """Posterior of only the slices that some cells need, and those cells' coordinates in it."""
        if np.all(coords < self.known.shape):
            return self.known, coords
        levels, places = zip(
            *(np.unique(own, return_inverse=True) for own in coords.T), strict=True
        )
        return self.at_levels(levels), np.stack(places, axis=1)
