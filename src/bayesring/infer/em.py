"""The two steps of online EM, as pure functions of an estimate.

**M-step**, for every batch: Adam on the gradient of the free energy over cores and weights.
**E-step**, every few batches: the spread of the slices around their estimates, the hyperparameters
of the cores' priors, the gains of the weights' prior and the likelihood's parameters, each in
closed form given the rest. Equations (18) to (22) of docs/model.md.

A batch touches few slices, and the others should cost nothing. A function therefore copies the
arrays of its estimate once, updates the copies in place for all its batches, and returns them as a
new estimate; see `Workspace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.batches import Batch, Chunk, Position, Rows, one_pass
from bayesring.engine.gradients import BatchSums, GradientTask
from bayesring.engine.protocol import FIRST, SECOND, TINY, Engine
from bayesring.engine.streams import Purpose, Streams
from bayesring.infer import estimate as reading
from bayesring.infer.estimate import RingEstimate
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize, SlicePrior
from bayesring.priors import Coupling, RingPrior

E_STEP = 32
"""Minimum number of batches between two E-steps."""
LARGE_E_STEP = 4
"""The same, if batches are large."""
START_SIZE, START_PRECISION = 0.7, 1.0
"""Initial standard deviation of the entries, in units that give f variance one, and the prior
precision of every entry until the first E-step: the ring must find the data before its prior is
learned."""
HORIZON = 2**20
"""Memory of the likelihood's statistics in observations, if a pass has more."""


class Setting(NamedTuple):
    """Context of an estimate: likelihood, prior and engine."""

    likelihood: Likelihood
    prior: RingPrior
    engine: Engine


def start(
    streams: Streams, size: RingSize, counts: Sequence[IntArray], setting: Setting
) -> RingEstimate:
    """A random ring to start from."""
    cores, priors = [], []
    for mode, own in enumerate(counts):
        if setting.prior.modes[mode].coupling is not Coupling.NONE:
            raise ValueError(
                f"{type(setting.prior.modes[mode]).__name__} lets slices depend on each other, "
                "which online EM cannot do; use inference='gibbs'."
            )
        rng = streams.rng(0, Purpose.START, mode)
        core = rng.standard_normal(size.core_shape(mode, len(own)))
        cores.append(START_SIZE * size.spread(mode) * core)
        precision = np.full((1, core[0].size), START_PRECISION)
        zero = np.zeros_like(precision)
        priors.append(SlicePrior(np.zeros((zero.size, zero.size)), precision, zero))
    ones = tuple(np.ones((size.strands, r)) for r in size.bonds)
    n_weights = sum(each.size for each in ones) if setting.prior.weights.learned else 0
    nothing = np.empty(0)
    estimate = RingEstimate(
        size=size,
        counts=tuple(counts),
        cores=nothing,
        weights=ones,
        gains=ones,
        nuisance=setting.likelihood.initial_nuisance(),
        slice_priors=tuple(priors),
        curvature=nothing,
        adam=reading.AdamMoments.empty(0, 0),
        weight_adam=(),
        weight_gradient=np.zeros(n_weights),
    )
    return reading.restarted(estimate, cores)  # which fills in the empty fields


def learn(
    estimate: RingEstimate,
    batches: Iterable[tuple[Batch, Position]],
    rate: float,
    expects: bool,
    setting: Setting,
) -> RingEstimate:
    """M-steps on all batches, with E-steps when due if `expects`.

    Columns of a batch are (2 D - 1, n), as `kernels.gradient` expects them.
    """
    work = Workspace(estimate, setting)
    position = estimate.position
    for chunk, after in batches:
        work.learn(chunk, rate, expects)
        position = after
    return work.frozen()._replace(position=position)


def expect(estimate: RingEstimate, setting: Setting) -> RingEstimate:
    """E-step."""
    work = Workspace(estimate, setting)
    work.expect()
    return work.frozen()


def measure(
    estimate: RingEstimate, rows: Rows, streams: Streams, batch_size: int, setting: Setting
) -> RingEstimate:
    """Curvature at the current ring, from one pass over the rows."""
    work = Workspace(estimate, setting)
    with closing(one_pass(rows, streams, batch_size)) as batches:
        work.measure(batches, batch_size)
    return work.frozen()


def add(
    estimate: RingEstimate,
    rows: Rows,
    streams: Streams,
    batch_size: int,
    rates: Sequence[float],
    setting: Setting,
) -> RingEstimate:
    """Learn from new rows only, with one pass per rate.

    Earlier rows enter as a prior: slice i is normal around its estimate, with the precision of the
    prior plus the curvature from the earlier rows. Slices without earlier rows are learned first,
    otherwise they would drag the others along. Weights are fixed, because what earlier rows said
    about them is not kept.
    """
    held = []
    for mode, core in enumerate(estimate.core_list):
        precision, diagonal, *_ = estimate.slice_priors[mode]
        slices = core.reshape(len(core), -1)
        own = reading.curvatures(estimate, mode) + diagonal
        held.append(SlicePrior(precision, own, slices @ precision + own * slices))
    new = estimate._replace(slice_priors=tuple(held), counts=tuple(rows.counts))
    fresh = np.concatenate(estimate.counts) == 0
    met = np.any(np.concatenate(rows.counts)[fresh])
    for movable in (fresh, None) if met else (None,):
        work = Workspace(reading.restarted(new, new.core_list), setting)
        for epoch, rate in enumerate(rates):
            for chunk in one_pass(rows, streams, batch_size, epoch):
                work.move_cores(chunk, rate, movable)
        new = work.frozen()
    new = measure(new, rows, streams, batch_size, setting)
    new = new._replace(
        curvature=new.curvature + estimate.curvature,
        slice_priors=estimate.slice_priors,
        counts=tuple(a + b for a, b in zip(estimate.counts, rows.counts, strict=True)),
    )
    return expect(new, setting)._replace(nuisance=estimate.nuisance)


class Workspace:
    """Copies of the arrays of an estimate, which batches change in place.

    Arrays that are only ever replaced, such as gains and priors, are shared with the estimate.
    """

    def __init__(self, estimate: RingEstimate, setting: Setting) -> None:
        self._before, self._setting = estimate, setting
        self._learned = setting.prior.weights.learned
        self.flat = estimate.cores.copy()
        self.cores = reading.as_cores(self.flat, estimate.size, estimate.shape)
        self.weights = [each.copy() for each in estimate.weights]
        self.gains, self.nuisance = estimate.gains, estimate.nuisance
        self.slice_priors = list(estimate.slice_priors)
        self.curvature, self.adam = estimate.curvature.copy(), estimate.adam.copy()
        self.weight_adam = [each.copy() for each in estimate.weight_adam]
        self.weight_gradient = estimate.weight_gradient.copy()
        self.statistics, self.spreads = estimate.statistics, list(estimate.spreads)
        self.batches, self.unweighed = estimate.batches, estimate.unweighed
        self.rows_seen, self.e_steps = estimate.rows_seen, estimate.e_steps
        self.rows_remembered = estimate.rows_remembered
        self._n, self._shape = estimate.n_observations, estimate.shape
        self._totals = np.maximum(np.concatenate(estimate.counts), 1).astype(float)
        self.gradient = np.zeros(self.flat.size)
        first = np.cumsum([0, *self._shape[:-1]]).astype(np.int64)
        self._rows = (first, np.zeros(sum(self._shape), dtype=np.int64))
        self._all_movable = np.ones(sum(self._shape), dtype=bool)
        self._of_priors: SlicePrior | None = None
        self._weigh()

    def frozen(self) -> RingEstimate:
        """The current estimate, in the memory of the workspace.

        The workspace must not be used after its estimate is returned.
        """
        return self._before._replace(
            cores=self.flat,
            weights=tuple(self.weights),
            gains=tuple(self.gains),
            nuisance=self.nuisance,
            slice_priors=tuple(self.slice_priors),
            curvature=self.curvature,
            adam=self.adam,
            weight_adam=tuple(self.weight_adam),
            weight_gradient=self.weight_gradient,
            statistics=self.statistics,
            spreads=tuple(self.spreads),
            batches=self.batches,
            unweighed=self.unweighed,
            rows_seen=self.rows_seen,
            rows_remembered=self.rows_remembered,
            e_steps=self.e_steps,
        )

    def _weigh(self) -> None:
        """Update the weighted cores; they are the cores themselves if weights stay at one."""
        if self._learned:
            self.ring = ring.flatten(ring.weighted(self.cores, self.weights))
        else:
            self.ring = ring.flatten(self.cores)._replace(flat=self.flat)

    def learn(self, chunk: Batch, rate: float, expects: bool) -> None:
        """M-step on one batch; E-step if due."""
        self.move_cores(chunk, rate)
        self.batches += 1
        self.unweighed += chunk.n
        large = not isinstance(chunk, Chunk) or chunk.cuts
        every = LARGE_E_STEP if large else E_STEP
        if self.batches % max(every, sum(self._shape) // chunk.n) == 0:
            if self._learned:
                self._move_weights(rate)
            if expects:
                self.expect()

    def move_cores(
        self, chunk: Batch, rate: float, movable: NDArray[np.bool] | None = None
    ) -> None:
        """M-step on the slices that a batch touches; gradients of the weights are accumulated.

        Only `movable` slices (all modes end to end) are updated; by default all are.
        """
        movable = self._all_movable if movable is None else movable
        weights = [each.ravel()[: None if self._learned else 0] for each in self.weights]
        if not isinstance(chunk, Chunk) or chunk.cuts:
            self.weight_gradient += self._move_by(self._sums(chunk), weights, movable, rate)
            return
        self.weight_gradient += self._setting.engine.learn(
            self.flat,
            self.ring,
            chunk.columns,
            self._respond(chunk),
            self._rows,
            self._totals,
            (self.gradient, self.curvature),
            tuple(self.adam),
            tuple(weights),
            self._kernel_priors(),
            movable,
            rate,
        )

    def _sums(self, batch: Batch) -> BatchSums:
        """What a large batch says of the current ring."""
        likelihood, engine = self._setting.likelihood, self._setting.engine
        task = GradientTask(self.ring, self._shape, likelihood, self.nuisance)
        sums = engine.batch_sums(task, batch)
        self._remember(sums.statistics, batch.n)
        return sums

    def _move_by(
        self,
        sums: BatchSums,
        weights: Sequence[FloatArray],
        movable: NDArray[np.bool],
        rate: float,
    ) -> FloatArray:
        """Step on all slices that a large batch touches; returns the gradients of the weights."""
        first, counts = self._rows[0], sums.counts
        lasting = np.maximum(0.0, 1.0 - counts / self._totals)
        found = []
        for mode, core in enumerate(self.cores):
            own = slice(int(first[mode]), int(first[mode]) + len(core))
            begin = int(self.ring.starts[mode])
            flat = slice(begin, begin + core.size)
            size = core[0].size
            self.curvature[flat] *= np.repeat(lasting[own], size)
            self.curvature[flat] += sums.curvature[flat]
            found.append(
                self._setting.engine.step(
                    self.flat,
                    self.ring,
                    mode,
                    (first, counts),
                    self._totals,
                    sums.gradient,
                    tuple(self.adam),
                    weights[mode],
                    self._kernel_priors()[mode],
                    np.flatnonzero(counts[own]),
                    movable,
                    rate,
                )
            )
        return np.concatenate(found)

    def _respond(self, chunk: Chunk) -> FloatArray:
        """Slope and weight of every observation of a batch, (2, n), at the current ring."""
        likelihood, (columns, values, given, _) = self._setting.likelihood, chunk
        given = likelihood.locate(given, columns.__getitem__)
        entries = self._setting.engine.entries(self.ring, columns)
        fitted = entries if given.offset is None else entries + given.offset
        response = likelihood.expect(fitted, values, self.nuisance, given)
        found = likelihood.statistics(fitted, values, self.nuisance, given, response=response)
        self._remember(found, len(values))
        weight, shift = response
        return np.stack([shift - weight * fitted, weight])

    def _kernel_priors(self) -> tuple[tuple[FloatArray, FloatArray, FloatArray, bool], ...]:
        """The priors of the slices, each with a flag for a nonzero precision."""
        if self._of_priors is not self.slice_priors[0]:
            self._of_priors = self.slice_priors[0]
            self._priors = tuple(
                (each.precision, each.diagonal, each.linear, bool(each.precision.any()))
                for each in self.slice_priors
            )
        return self._priors

    def _remember(self, statistics: FloatArray, n: int) -> None:
        """Update the statistics, scaled to all observations."""
        whole = statistics * (self._n / n)
        if self.statistics is None or self.statistics.size != whole.size:
            self.statistics = whole  # the first, or more, or less, is known of new observations
        self.rows_seen += n
        self.rows_remembered += n
        share = min(n / min(self.rows_remembered, self._n, HORIZON), 1.0)
        self.statistics = (1 - share) * self.statistics + share * whole

    def _move_weights(self, rate: float) -> None:
        """Adam step on the weights of every bond, with the gradients since the previous one."""
        share = self.unweighed / self._n
        ends = np.cumsum([each.size for each in self.weights])
        gradients = np.split(self.weight_gradient, ends[:-1])
        for mode, weights in enumerate(self.weights):
            precisions = self._setting.prior.weights.precisions(self.gains[mode])
            up = gradients[mode] - share * (precisions * weights).ravel()
            first, second, powers = self.weight_adam[mode]
            powers *= (FIRST, SECOND)
            bias, square_bias = 1 - powers[0]
            first += (1 - FIRST) * (up - first)
            second += (1 - SECOND) * (up**2 - second)
            root = np.sqrt(second / square_bias) + TINY
            weights += rate * (first / bias / root).reshape(weights.shape)
        self._weigh()
        self.weight_gradient[:] = 0.0
        self.unweighed = 0

    def expect(self) -> None:
        """E-step, equations (20) to (22); slices without observations get their prior mean."""
        prior, likelihood, now = self._setting.prior, self._setting.likelihood, self.frozen()
        for mode, (own, core) in enumerate(zip(prior.modes, self.cores, strict=True)):
            spread, self.spreads[mode] = reading.spread(now, mode, own)
            hyper = own.estimate_hyper(own.conditional(core, spread))
            self.slice_priors[mode] = own.slice_prior(core, hyper)
        self.gains = tuple(
            prior.weights.expect_gains(*each) for each in zip(self.weights, self.gains, strict=True)
        )
        self.e_steps += 1
        if self.statistics is not None:
            self.nuisance = likelihood.expect_nuisance(self.statistics, self.nuisance)
            if likelihood.forgets:
                self.rows_remembered = 0
        now = self.frozen()
        for mode, counts in enumerate(self._before.counts):
            empty = np.flatnonzero(counts == 0)
            if empty.size:
                self.cores[mode][empty] = reading.prior_means(now, mode, empty)
        if self._learned:
            self._weigh()

    def measure(self, batches: Iterable[Batch], batch_size: int) -> None:
        """Curvature at the current ring, from one pass over all rows."""
        self.curvature[:] = 0.0
        sums, touched = (self.gradient, self.curvature), np.empty(batch_size, dtype=np.int64)
        endless = np.full_like(self._totals, np.inf)
        for chunk in batches:
            if not isinstance(chunk, Chunk) or chunk.cuts:
                self.curvature += self._sums(chunk).curvature
                continue
            response = self._respond(chunk)
            for mode in range(len(self._shape)):
                self._setting.engine.add_gradient(
                    self.ring, mode, chunk.columns, response, self._rows, endless, sums, touched
                )
        self.gradient[:] = 0.0
        self._rows[1][:] = 0
