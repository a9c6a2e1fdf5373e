"""The posterior: kept draws, and the predictive distribution of any cell.

Every summary describes entries or observations at coordinates, averaged over the draws of all
chains. Cores are never averaged: they are defined only up to an invertible matrix on each bond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from bayesring.engine.protocol import Engine
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer.state import Draws
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray
from bayesring.posterior import pieces

CHUNK_BYTES = 2**26
"""Draws of cells that are sampled at a time."""
PORTION = 2**20
"""Cells that are put in order at a time."""

Work = Callable[[IntArray, FloatArray], None]
"""What is done with some rows and their entries, (draws, n)."""


class Prediction(NamedTuple):
    """Moments and intervals of new observations, or of their means, at some cells, (n,) each."""

    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray

    def columns(self, point: str = "mean") -> dict[str, FloatArray]:
        """By name; the first may hold medians, and is called so."""
        return dict(zip(self.names(point), self, strict=True))

    @classmethod
    def names(cls, point: str = "mean") -> tuple[str, ...]:
        """Of the columns."""
        return (point, *cls._fields[1:])


@dataclass(frozen=True)
class Posterior:
    """Draws of all chains in standardised units, with the location and scale to map them back.

    Parameters
    ----------
    shape : sizes of the modes
    likelihood : distribution of values given entries
    location, scale : used to standardise the values before fitting
    chains : the kept draws of each chain
    engine : runs the predictions; has no effect on results
    report : called with the number of cells that are done, from any thread
    """

    shape: tuple[int, ...]
    likelihood: Likelihood
    location: float
    scale: float
    chains: tuple[Draws, ...]
    engine: Engine = ONE_THREAD
    report: Callable[[int], None] | None = field(default=None, compare=False, kw_only=True)
    memo: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What was computed from these draws, for the next time; never copied."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"memo": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"memo": {}} | state)

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return sum(len(draws.flat) for draws in self.chains)

    @property
    def nuisance(self) -> FloatArray:
        """(S, p), the likelihood's parameters of every draw, in standardised units."""
        return np.concatenate([draws.nuisance for draws in self.chains])

    def cores(self, draw: int) -> list[FloatArray]:
        """Weighted cores A^(d) of one draw, (I_d, S, R_{d-1}, R_d) each, in standardised units."""
        for draws in self.chains:
            if draw < len(draws.flat):
                return _unflatten(draws, draw, self.shape)
            draw -= len(draws.flat)
        raise IndexError(f"draw is beyond the {self.n_draws} kept ones.")

    def check_values(self, values: FloatArray) -> None:
        """Raise a ValueError for values that observations of this model cannot have."""
        self.likelihood.check(values)
        self.likelihood.check_standard((values - self.location) / self.scale)

    def at_levels(self, levels: Sequence[IntArray]) -> Posterior:
        """Posterior of the sub-tensor with only the given levels of each mode."""
        shape = tuple(len(chosen) for chosen in levels)
        return replace(self, shape=shape, chains=tuple(self._parts(levels)))

    def _parts(self, levels: Sequence[IntArray]) -> Iterator[Draws]:
        """Draws of every chain with only the given slices of the cores."""
        for draws in self.chains:
            cores = []
            for mode, (size, chosen) in enumerate(zip(self.shape, levels, strict=True)):
                entries = draws.strands * int(draws.bonds[mode - 1] * draws.bonds[mode])
                start = int(draws.starts[mode])
                core = draws.flat[:, start : start + size * entries].reshape(-1, size, entries)
                cores.append(core[:, chosen].reshape(len(core), -1))
            starts = np.cumsum([0, *(core.shape[1] for core in cores[:-1])])
            yield draws._replace(flat=np.concatenate(cores, axis=1), starts=starts)

    def entries(self, coords: IntArray) -> FloatArray:
        """f at `coords` (n, D) for every draw, (S, n), in standardised units."""
        found = np.empty((len(coords), self.n_draws))

        def fill(rows: IntArray, fitted: FloatArray) -> None:
            found[rows] = fitted.T

        self._map_cells(coords, fill)
        return found.T

    def _map_cells(self, coords: IntArray, work: Work) -> None:
        """Do `work` on all rows, some in each thread; where rows are cut depends on them alone."""
        for rows, part, places in self._portions(coords):
            order, cuts = pieces.cut(places, self.shape, self.n_draws)
            first = (int(np.argmax(self.shape)) + 1) % len(self.shape)

            def one(
                bounds: tuple[int, int],
                rows: slice = rows,
                part: Posterior = part,
                places: IntArray = places,
                order: IntArray = order,
                first: int = first,
            ) -> None:
                own = order[slice(*bounds)]
                fitted, begin = np.empty((len(own), self.n_draws)), 0
                for draws in part.chains:
                    end = begin + len(draws.flat)
                    rings = ring.FlatRing(draws.flat, draws.starts, draws.bonds, draws.strands)
                    self.engine.entries_of_draws(rings, places[own], first, fitted[:, begin:end])
                    begin = end
                work(rows.start + own, fitted.T)
                if self.report is not None:
                    self.report(len(own))

            self.engine.map_pieces(one, cuts)

    def _portions(self, coords: IntArray) -> Iterator[tuple[slice, Posterior, IntArray]]:
        """Some rows at a time: a posterior that has their slices, and where they are in it."""
        for begin in range(0, len(coords), PORTION):
            rows = slice(begin, min(begin + PORTION, len(coords)))
            yield rows, self, coords[rows]

    def moments(self, coords: IntArray, noise: bool = True) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a new observation, or of its mean if not `noise`.

        The deviation of an observation is that of `sample`, calibrated if the likelihood was.
        """
        mean, deviation = self.described(coords, (), noise)
        return mean, deviation

    def interval(
        self, coords: IntArray, level: float, noise: bool = True, given: Given = NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """Central interval of a new observation, or of its mean or probability if not `noise`."""
        *_, lower, upper = self.described(coords, _ends(level), noise, given)
        return lower, upper

    def summarise(
        self,
        coords: IntArray,
        level: float,
        noise: bool | None = None,
        point: str = "mean",
        given: Given = NOTHING,
    ) -> Prediction:
        """Moments and interval at once; with ``point="median"``, medians in place of means.

        If `noise` is None, they describe a new observation or, for binary likelihoods, its
        probability: an interval from 0 to 1 would be uninformative. The order of `coords` does not
        change a single bit.
        """
        if noise is None:
            noise = not self.likelihood.binary
        levels = _ends(level) if point == "mean" else (*_ends(level), 0.5)
        mean, deviation, lower, upper, *median = self.described(coords, levels, noise, given)
        return Prediction(median[0] if median else mean, deviation, lower, upper)

    def described(
        self, coords: IntArray, levels: Sequence[float], noise: bool = True, given: Given = NOTHING
    ) -> FloatArray:
        """Mean, standard deviation, and quantiles at `levels`, (2 + k, n), of each cell once.

        Where cells are close together, many are computed by one matrix product, which is much
        faster and equal up to rounding. Of what may be `given`, predictions use exposures.
        """
        if given.exposure is None:
            cells, places = self._distinct(coords)
        else:
            order = np.lexsort((given.exposure, *coords.T[::-1]))
            cells, given, places = coords[order], given.at(order), np.argsort(order)
        found = np.empty((2 + len(levels), len(cells)))
        nuisance = self.nuisance

        def fill(rows: IntArray, fitted: FloatArray) -> None:
            own = self._given(cells[rows], given.at(rows))
            fitted = self.likelihood.moved(fitted, nuisance, own)
            found[:2, rows] = self._moments_of(fitted, noise, own)
            if noise and levels:
                found[2:, rows] = self.likelihood.quantiles(levels, fitted, nuisance, own)
            elif levels:
                means = self.likelihood.mean(fitted, nuisance, own)
                found[2:, rows] = np.quantile(means, levels, axis=0)

        self._map_cells(cells, fill)
        found[1] = self.scale * np.sqrt(found[1])
        found[0], found[2:] = self._restore(found[0]), self._restore(found[2:])
        return found if places is None else found[:, places]

    def _distinct(self, coords: IntArray) -> tuple[IntArray, IntArray | None]:
        """Distinct cells in order, and where each of `coords` is; None if they stay as they are."""
        if prod(self.shape) > pieces.MOST_NUMBERED:
            return coords, None
        numbers = np.asarray(np.ravel_multi_index(tuple(coords.T), self.shape))
        if np.all(numbers[1:] > numbers[:-1]):
            return coords, None
        numbers, places = np.unique(numbers, return_inverse=True)
        return np.stack(np.unravel_index(numbers, self.shape), axis=1), places

    def _given(self, coords: IntArray, given: Given = NOTHING) -> Given:
        """What the likelihood needs to know about cells."""
        return self.likelihood.locate(given, coords.T.__getitem__)

    def _moments_of(
        self, fitted: FloatArray, noise: bool, given: Given
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance over draws, standardised."""
        means = self.likelihood.mean(fitted, self.nuisance, given)
        mean, variance = self.engine.moments(means.T)
        if noise:
            within = self.likelihood.variance(fitted, self.nuisance, given)
            if within.strides[1] == 0:  # the same for all cells
                within = within[:, :1]
            variance = variance + within.mean(axis=0)
            variance = variance * self.likelihood.stretch**2
        return mean, variance

    def medians(self, coords: IntArray, noise: bool = True) -> FloatArray:
        """Medians of new observations, or of their means."""
        return np.asarray(self.described(coords, (0.5,), noise)[2])

    def sample(
        self, rng: Generator, coords: IntArray, n_draws: int, given: Given = NOTHING
    ) -> FloatArray:
        """Joint predictive draws (n_draws, n): cells of one row share their ring and noise level.

        Uses distinct draws of the posterior as long as there are enough. If the likelihood was
        calibrated, so are they, cell by cell and without changing ranks: their quantiles are the
        ends of `interval` at every level, as nearly as a table of 97 places allows.
        """
        order = rng.permutation(self.n_draws)
        chosen = order[np.arange(n_draws) % self.n_draws]
        samples = np.empty((n_draws, len(coords)))
        nuisance = self.nuisance[chosen]
        for rows, fitted, own in self._moved_chunks(coords, given):
            samples[:, rows] = self.likelihood.simulate(rng, fitted[chosen], nuisance, own)
            self._calibrate(samples[:, rows], fitted, own)
        return self._restore(samples)

    def _calibrate(self, samples: FloatArray, fitted: FloatArray, given: Given) -> None:
        """Move samples to where the likelihood has them, some columns at a time in threads."""
        nuisance, step = self.nuisance, 1024

        def move(start: int) -> None:
            columns = slice(start, start + step)
            samples[:, columns] = self.likelihood.calibrated(
                samples[:, columns], fitted[:, columns], nuisance, given.at(columns)
            )

        self.engine.map_pieces(move, range(0, fitted.shape[1], step))

    def log_score(self, coords: IntArray, values: FloatArray) -> FloatArray:
        """Log predictive density or probability of each of `values` (n,) at `coords`.

        That of the model itself, 1/S sum_s p(y | f_s, .), whatever held-out values made of
        intervals and samples: it judges the model, and a density cannot be had from 99 quantiles.
        """
        scores = np.empty(len(coords))

        def fill(rows: IntArray, each: FloatArray) -> None:
            scores[rows] = logsumexp(each, axis=0) - np.log(self.n_draws)

        self._map_log_probs(coords, values, NOTHING, fill)
        return np.asarray(scores - np.log(self.scale))

    def log_likelihood(
        self, coords: IntArray, values: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """log p(y_n | f_s, .) of each of `values` (n,) at `coords` for every draw, (S, n).

        In the units of the data, y = location + scale z: a density is log p(z_n | f_s, .) minus
        log scale, a probability (of a discrete value, or of an interval) is the same in both. A
        row of weight w counts w times. `given` is in the units of the data.
        """
        found = np.empty((self.n_draws, len(coords)))

        def fill(rows: IntArray, each: FloatArray) -> None:
            found[:, rows] = each

        self._map_log_probs(coords, values, given, fill)
        units = np.full(len(coords), np.log(self.scale))
        if given.weight is not None:
            units *= given.weight
        if given.censored is not None:
            units[given.censored] = 0.0
        found -= units
        return found

    def _map_log_probs(
        self, coords: IntArray, values: FloatArray, given: Given, work: Work
    ) -> None:
        """Do `work` on log p(z_n | f_s, .) of some rows for every draw, in standardised units."""
        standard = (np.asarray(values, dtype=float) - self.location) / self.scale
        nuisance, known = self.nuisance, given.in_units(self.location, self.scale)

        def one(rows: IntArray, fitted: FloatArray) -> None:
            own = self.likelihood.locate(known.at(rows), coords[rows].T.__getitem__)
            fitted = fitted if own.offset is None else fitted + own.offset
            work(rows, self.likelihood.log_prob(fitted, standard[rows], nuisance, own))

        self._map_cells(coords, one)

    def replicate(self, rng: Generator, coords: IntArray, given: Given = NOTHING) -> FloatArray:
        """One new value per draw at `coords`, (S, n), from the model itself, not calibrated."""
        samples = np.empty((self.n_draws, len(coords)))
        nuisance = self.nuisance
        known = given.in_units(self.location, self.scale)
        for rows, fitted in self._chunks(coords):
            own = self.likelihood.locate(known.at(rows), coords[rows].T.__getitem__)
            fitted = fitted if own.offset is None else fitted + own.offset
            samples[:, rows] = self.likelihood.simulate(rng, fitted, nuisance, own)
        return self._restore(samples)

    def _moved_chunks(
        self, coords: IntArray, given: Given = NOTHING
    ) -> Iterator[tuple[slice, FloatArray, Given]]:
        """Entries of some rows at a time as calibrated, with what the likelihood needs to know."""
        for rows, fitted in self._chunks(coords):
            own = self._given(coords[rows], given.at(rows))
            yield rows, self.likelihood.moved(fitted, self.nuisance, own), own

    def tensor(self, noise: bool = True) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every cell."""
        total = prod(self.shape)
        found = np.empty((2, total))
        for begin in range(0, total, PORTION):
            numbers = np.arange(begin, min(begin + PORTION, total))
            cells = np.stack(np.unravel_index(numbers, self.shape), axis=1)
            found[:, numbers] = self.moments(cells, noise)
        mean, deviation = found.reshape(2, *self.shape)
        return mean, deviation

    def _restore(self, values: FloatArray) -> FloatArray:
        return self.location + self.scale * values

    def _chunks(self, coords: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        size = max(1, CHUNK_BYTES // (8 * self.n_draws))
        for start in range(0, len(coords), size):
            rows = slice(start, min(start + size, len(coords)))
            yield rows, self.entries(coords[rows])


def _ends(level: float) -> tuple[float, float]:
    """Levels of the two ends of a central interval."""
    return 0.5 * (1 - level), 0.5 * (1 + level)


def _unflatten(draws: Draws, row: int, shape: tuple[int, ...]) -> list[FloatArray]:
    """Views of one draw as cores."""
    cores = []
    for mode, size in enumerate(shape):
        left, right = int(draws.bonds[mode - 1]), int(draws.bonds[mode])
        start = int(draws.starts[mode])
        core_shape = (size, draws.strands, left, right)
        part = draws.flat[row, start : start + prod(core_shape)]
        cores.append(part.reshape(core_shape))
    return cores
