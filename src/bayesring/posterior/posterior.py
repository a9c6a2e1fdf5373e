"""The posterior: kept draws, and the predictive distribution of any cell.

Every summary describes entries or observations at coordinates, averaged over the draws of all
chains. Cores are never averaged: they are defined only up to an invertible matrix on each bond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from bayesring.engine.protocol import Engine
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer.state import Draws
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray

CHUNK_BYTES = 2**26
"""Number of draws times cells processed at a time."""
COLUMNS = 1024
"""Number of cells whose quantiles one thread computes at a time."""
DENSE_CELLS = 2**20
"""Number of cells of a whole tensor processed at a time."""
DENSE_BOX = 8
"""Compute all cells of a box if it has at most this many cells per requested cell."""


class Prediction(NamedTuple):
    """Moments and intervals of new observations, or of their means, at some cells, (n,) each."""

    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray


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
    """

    shape: tuple[int, ...]
    likelihood: Likelihood
    location: float
    scale: float
    chains: tuple[Draws, ...]
    engine: Engine = ONE_THREAD

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
        order = np.argsort(coords[:, 0], kind="stable")  # fastest for the kernel
        columns = np.ascontiguousarray(coords[order].T, dtype=np.int32)
        rows = [(draws, s) for draws in self.chains for s in range(len(draws.flat))]
        fitted = np.empty((len(rows), len(coords)))

        def fill(place: int) -> None:
            draws, s = rows[place]
            flat = ring.FlatRing(draws.flat[s], draws.starts, draws.bonds, draws.strands)
            fitted[place, order] = self.engine.entries(flat, columns)

        self.engine.map_pieces(fill, range(len(rows)))
        return fitted

    def moments(
        self, coords: IntArray, noise: bool = True, boxes: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of a new observation, or of its mean if not `noise`.

        The deviation of an observation is that of `sample`, calibrated if the likelihood was.
        With `boxes`, cells that fill a box well are worked out by matrix products.
        """
        mean, variance = np.empty(len(coords)), np.empty(len(coords))
        for rows, fitted, given in self._moved_chunks(coords, boxes):
            mean[rows], variance[rows] = self._moments_of(fitted, noise, given)
        return self._restore(mean), self.scale * np.sqrt(variance)

    def interval(
        self, coords: IntArray, level: float, noise: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Central interval of a new observation, or of its mean or probability if not `noise`."""
        ends = np.empty((2, len(coords)))
        for rows, fitted, given in self._moved_chunks(coords):
            self._fill_ends(ends[:, rows], level, fitted, noise, given)
        return self._restore(ends[0]), self._restore(ends[1])

    def summarise(self, coords: IntArray, level: float, noise: bool | None = None) -> Prediction:
        """Moments and interval at once, computing each cell once in an internal order.

        If `noise` is None, they describe a new observation or, for binary likelihoods, its
        probability: an interval from 0 to 1 would be uninformative. Where the cells fill a box
        densely, whole boxes are computed by matrix products, which is much faster and equal up to
        rounding. The order of `coords` does not change a single bit.
        """
        if noise is None:
            noise = not self.likelihood.binary
        cells, places = np.unique(np.ravel_multi_index(coords.T, self.shape), return_inverse=True)
        mean, variance = np.empty(len(cells)), np.empty(len(cells))
        ends = np.empty((2, len(cells)))
        ordered = np.stack(np.unravel_index(cells, self.shape), axis=1)
        for rows, fitted, given in self._moved_chunks(ordered, boxes=True):
            mean[rows], variance[rows] = self._moments_of(fitted, noise, given)
            self._fill_ends(ends[:, rows], level, fitted, noise, given)
        return Prediction(
            self._restore(mean)[places],
            (self.scale * np.sqrt(variance))[places],
            self._restore(ends[0])[places],
            self._restore(ends[1])[places],
        )

    def _given(self, coords: IntArray) -> Given:
        """What the likelihood needs to know about cells."""
        return self.likelihood.locate(NOTHING, coords.T.__getitem__)

    def _moments_of(
        self, fitted: FloatArray, noise: bool, given: Given
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance over draws, standardised."""
        means = self.likelihood.mean(fitted, self.nuisance, given)
        variance = means.var(axis=0)
        if noise:
            within = self.likelihood.variance(fitted, self.nuisance, given)
            variance = variance + within.mean(axis=0)
            variance = variance * self.likelihood.stretch**2
        return means.mean(axis=0), variance

    def _fill_ends(
        self, ends: FloatArray, level: float, fitted: FloatArray, noise: bool, given: Given
    ) -> None:
        """Both ends of the central interval, computed for chunks of columns in threads."""
        tails = (0.5 * (1 - level), 0.5 * (1 + level))
        nuisance = self.nuisance

        def fill(start: int) -> None:
            columns = slice(start, start + COLUMNS)
            own, known = fitted[:, columns], given.at(columns)
            if noise:
                for end, tail in zip(ends, tails, strict=True):
                    end[columns] = self.likelihood.quantile(tail, own, nuisance, known)
            else:
                means = self.likelihood.mean(own, nuisance, known)
                ends[:, columns] = np.quantile(means, tails, axis=0)

        self.engine.map_pieces(fill, range(0, fitted.shape[1], COLUMNS))

    def medians(self, coords: IntArray, noise: bool = True) -> FloatArray:
        """Medians of new observations, or of their means."""
        return self.interval(coords, 0.0, noise)[0]

    def sample(self, rng: Generator, coords: IntArray, n_draws: int) -> FloatArray:
        """Joint predictive draws (n_draws, n): cells of one row share their ring and noise level.

        Uses distinct draws of the posterior as long as there are enough. If the likelihood was
        calibrated, so are they, cell by cell and without changing ranks: their quantiles are the
        ends of `interval` at every level.
        """
        order = rng.permutation(self.n_draws)
        chosen = order[np.arange(n_draws) % self.n_draws]
        samples = np.empty((n_draws, len(coords)))
        nuisance = self.nuisance[chosen]
        for rows, fitted, given in self._moved_chunks(coords):
            samples[:, rows] = self.likelihood.simulate(rng, fitted[chosen], nuisance, given)
            self._calibrate(samples[:, rows], fitted, given)
        return self._restore(samples)

    def _calibrate(self, samples: FloatArray, fitted: FloatArray, given: Given) -> None:
        """Move samples to where the likelihood has them, some columns at a time in threads."""
        nuisance = self.nuisance

        def move(start: int) -> None:
            columns = slice(start, start + COLUMNS)
            samples[:, columns] = self.likelihood.calibrated(
                samples[:, columns], fitted[:, columns], nuisance, given.at(columns)
            )

        self.engine.map_pieces(move, range(0, fitted.shape[1], COLUMNS))

    def log_score(self, coords: IntArray, values: FloatArray) -> FloatArray:
        """Log predictive density or probability of each of `values` (n,) at `coords`.

        That of the model itself, 1/S sum_s p(y | f_s, .), whatever held-out values made of
        intervals and samples: it judges the model, and a density cannot be had from 99 quantiles.
        """
        scores = np.empty(len(coords))
        for rows, each in self._log_probs(coords, values, NOTHING):
            scores[rows] = logsumexp(each, axis=0) - np.log(self.n_draws)
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
        for rows, each in self._log_probs(coords, values, given):
            found[:, rows] = each
        units = np.full(len(coords), np.log(self.scale))
        if given.weight is not None:
            units *= given.weight
        if given.censored is not None:
            units[given.censored] = 0.0
        found -= units
        return found

    def _log_probs(
        self, coords: IntArray, values: FloatArray, given: Given
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Some rows at a time, log p(z_n | f_s, .) for every draw, in standardised units."""
        standard = (np.asarray(values, dtype=float) - self.location) / self.scale
        nuisance = self.nuisance
        for rows, fitted, known in self._chunks_given(coords, given):
            yield rows, self.likelihood.log_prob(fitted, standard[rows], nuisance, known)

    def replicate(self, rng: Generator, coords: IntArray, given: Given = NOTHING) -> FloatArray:
        """One new value per draw at `coords`, (S, n), from the model itself, not calibrated."""
        samples = np.empty((self.n_draws, len(coords)))
        nuisance = self.nuisance
        for rows, fitted, known in self._chunks_given(coords, given):
            samples[:, rows] = self.likelihood.simulate(rng, fitted, nuisance, known)
        return self._restore(samples)

    def _moved_chunks(
        self, coords: IntArray, boxes: bool = False
    ) -> Iterator[tuple[slice, FloatArray, Given]]:
        """Entries of some rows at a time as calibrated, with what the likelihood needs to know."""
        for rows, fitted in self._chunks(coords, boxes):
            given = self._given(coords[rows])
            yield rows, self.likelihood.moved(fitted, self.nuisance, given), given

    def _chunks_given(
        self, coords: IntArray, given: Given
    ) -> Iterator[tuple[slice, FloatArray, Given]]:
        """Entries of some rows at a time, with what the likelihood needs to know about them."""
        known = given.in_units(self.location, self.scale)
        for rows, fitted in self._chunks(coords):
            own = self.likelihood.locate(known.at(rows), coords[rows].T.__getitem__)
            yield rows, fitted if own.offset is None else fitted + own.offset, own

    def tensor(self, noise: bool = True) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every cell, by matrix products in bounded pieces."""
        longest = int(np.argmax(self.shape))
        step = max(1, DENSE_CELLS * self.shape[longest] // prod(self.shape))
        mean, deviation = np.empty(self.shape), np.empty(self.shape)
        if self.likelihood.moves:  # by all draws of a cell
            for place in range(self.shape[longest]):
                where = (*[slice(None)] * longest, slice(place, place + 1))
                cells = np.indices(mean[where].shape).reshape(len(self.shape), -1).T
                cells[:, longest] += place
                found = self.moments(cells, noise, boxes=True)
                mean[where], deviation[where] = (e.reshape(mean[where].shape) for e in found)
            return mean, deviation

        def fill(start: int) -> None:
            slices = slice(start, start + step)
            where = (*[slice(None)] * longest, slices)
            mean[where], deviation[where] = self._dense_moments(longest, slices, noise)

        self.engine.map_pieces(fill, range(0, self.shape[longest], step))
        return self._restore(mean), self.scale * deviation

    def _dense_moments(
        self, mode: int, slices: slice, noise: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the cells of some slices of `mode`, over all draws."""
        first: FloatArray = np.zeros(1)
        total = squares = within = first
        nuisance = self.nuisance
        lengths = list(self.shape)
        lengths[mode] = len(range(*slices.indices(lengths[mode])))
        cells = np.indices(lengths, sparse=True)
        cells[mode][...] += slices.start
        given = self.likelihood.locate(NOTHING, lambda own: np.broadcast_to(cells[own], lengths))
        for draw in range(self.n_draws):
            cores = self.cores(draw)
            cores[mode] = cores[mode][slices]
            fitted = ring.dense(cores)
            means = self.likelihood.mean(fitted, nuisance[draw], given)
            if draw == 0:
                first = means
            gap = means - first
            total = total + gap
            squares = squares + gap * gap
            if noise:
                within = within + self.likelihood.variance(fitted, nuisance[draw], given)
        average = total / self.n_draws
        variance = np.maximum(squares / self.n_draws - average**2, 0.0) + within / self.n_draws
        deviation = np.sqrt(variance)
        return first + average, deviation * self.likelihood.stretch if noise else deviation

    def _restore(self, values: FloatArray) -> FloatArray:
        return self.location + self.scale * values

    def _chunks(self, coords: IntArray, boxes: bool = False) -> Iterator[tuple[slice, FloatArray]]:
        size = max(1, CHUNK_BYTES // (8 * self.n_draws))
        for start in range(0, len(coords), size):
            rows = slice(start, min(start + size, len(coords)))
            first, last = coords[rows].min(axis=0), coords[rows].max(axis=0) + 1
            if boxes and prod((last - first).tolist()) <= DENSE_BOX * (rows.stop - start):
                yield rows, self._entries_in_box(coords[rows], first, last)
            else:
                yield rows, self.entries(coords[rows])

    def _entries_in_box(self, coords: IntArray, first: IntArray, last: IntArray) -> FloatArray:
        """f at `coords` between `first` and `last`, like `entries`, from all cells of that box."""
        cells = np.ravel_multi_index((coords - first).T, tuple(last - first))
        fitted = np.empty((self.n_draws, len(coords)))

        def fill(draw: int) -> None:
            cores = self.cores(draw)
            cut = [core[a:b] for core, a, b in zip(cores, first, last, strict=True)]
            fitted[draw] = ring.dense(cut).ravel()[cells]

        self.engine.map_pieces(fill, range(self.n_draws))
        return fitted


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
