"""One ring that learns from mini-batches: the two steps of online EM.

**M-step**, for every batch: Adam on the gradient of the free energy over cores and weights.
**E-step**, every few batches: the spread of the slices round their estimates, the hyperparameters
of the cores' prior, the gains of the weights' prior and the likelihood's parameters, each in
closed form given the rest. Equations (18) to (22) of docs/model.md.

A `Learner` changes in place: a batch touches few of its slices, and no other is to cost anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.model import ring
from bayesring.data.batches import Rows, one_pass
from bayesring.infer.streams import Purpose, Streams
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import gradient as kernel
from bayesring.kernels.adam import FIRST, SECOND, TINY
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.priors.protocol import RingPrior
from bayesring.model.types import FloatArray, IntArray, RingSize, SlicePrior

E_STEP, FEWEST, ELEMENTS = 32, 16, 2**18
"""Batches between two E-steps, at least; slices per mode whose covariances each works out, at
least; and more as long as their K^3 sum to less than that."""
ALL = slice(None)
NEWEST = 0.1
"""Weight of the latest such slices in the mean that stands for all."""
START_SIZE, START_PRECISION = 0.7, 1.0
"""Deviation of the first entries in units that give f variance one, and the prior precision of
every entry until the first E-step: the ring must find the data before its prior is learned."""
HORIZON = 2**20
"""Observations over which the likelihood's statistics forget, if a pass has more."""
TOGETHER = 256
"""Slices whose precisions are factored at once."""


class Moments(NamedTuple):
    """What Adam remembers: mean and square of the gradients, and what is missing in them."""

    first: FloatArray
    second: FloatArray
    powers: FloatArray
    """The two decays to the power of the steps taken, per slice (n, 2), or (1, 2) for weights."""

    @classmethod
    def empty(cls, size: int, n: int) -> Moments:
        """Nothing remembered."""
        return cls(np.zeros(size), np.zeros(size), np.ones((n, 2)))

    def copy(self) -> Moments:
        """The same in memory of its own."""
        return Moments(*(each.copy() for each in self))


class Learner:
    """A ring, what is expected of its prior and likelihood, and Adam's moments.

    Parameters
    ----------
    counts : D arrays (I_d,), observations of each slice in one pass over the data
    """

    def __init__(
        self,
        streams: Streams,
        size: RingSize,
        counts: Sequence[IntArray],
        likelihood: Likelihood,
        prior: RingPrior,
    ) -> None:
        self.likelihood, self.prior, self.size = likelihood, prior, size
        self.weights: list[FloatArray] = [np.ones((size.strands, r)) for r in size.bonds]
        self.gains: list[FloatArray] = [np.ones_like(each) for each in self.weights]
        self.nuisance = likelihood.initial_nuisance()
        self.statistics: FloatArray | None = None
        """The likelihood's, as if for all observations; those of the last ones count most."""
        self.width = 1.0
        """Factor of the deviations of slices from their estimates, in draws."""
        self.slice_priors: list[SlicePrior] = []
        self._e_steps = 0
        self.set_counts(counts)
        cores = []
        for mode, n_slices in enumerate(self.shape):
            rng = streams.rng(0, Purpose.START, mode)
            core = rng.standard_normal(size.core_shape(mode, n_slices))
            cores.append(START_SIZE * size.spread(mode) * core)
            precision = np.full((1, core[0].size), START_PRECISION)
            zero = np.zeros_like(precision)
            self.slice_priors.append(SlicePrior(np.zeros((zero.size, zero.size)), precision, zero))
        self.set_cores(cores)

    def set_counts(self, counts: Sequence[IntArray]) -> None:
        """Say how many observations every slice of every mode has."""
        self.counts = list(counts)
        self.shape = tuple(len(each) for each in counts)
        self.n_observations = int(self.counts[0].sum())
        self._totals = np.maximum(np.concatenate(self.counts), 1).astype(float)

    def set_cores(self, cores: Sequence[FloatArray]) -> None:
        """Take other cores and forget what Adam remembers and the curvature at the old ones."""
        laid = ring.flatten(cores)
        self.flat, self._starts = laid.flat, laid.starts
        self._bonds, self._strands = laid.bonds, laid.strands
        self.cores = self._as_cores(self.flat)
        self._weigh()
        n_entries, n_slices = self.flat.size, sum(self.shape)
        self.gradient, self.curvature = np.zeros(n_entries), np.zeros(n_entries)
        self.forget()
        first = np.cumsum([0, *self.shape[:-1]]).astype(np.int64)
        self._rows = (first, np.zeros(n_slices, dtype=np.int64))
        self._all_movable = np.ones(n_slices, dtype=bool)
        self.weight_gradient = np.zeros(sum(each.size for each in self._kernel_weights()))
        self._batches = self._unweighed = 0
        self._spreads: dict[int, FloatArray] = {}
        self.rows_seen = 0
        """Observations learned from or measured so far."""
        self._of_priors: SlicePrior | None = None

    def forget(self) -> None:
        """Make Adam forget all gradients: those to come will have another size."""
        self.moments = Moments.empty(self.flat.size, sum(self.shape))
        self.weight_moments = [Moments.empty(each.size, 1) for each in self.weights]

    def _weigh(self) -> None:
        """Bring the weighted cores up to date; they are the cores if weights stay at one."""
        self.weighted = self.flat
        if self.prior.weights.learned:
            self.weighted = ring.flatten(ring.weighted(self.cores, self.weights)).flat

    def _as_cores(self, flat: FloatArray) -> list[FloatArray]:
        shapes = [self.size.core_shape(mode, n) for mode, n in enumerate(self.shape)]
        ends = np.cumsum([np.prod(each) for each in shapes])
        return [
            part.reshape(own) for part, own in zip(np.split(flat, ends[:-1]), shapes, strict=True)
        ]

    @property
    def state(self) -> list[FloatArray]:
        """Copies of the cores, laid end to end, and of the weights."""
        return [self.flat.copy(), *(each.copy() for each in self.weights)]

    def restore(self, state: Sequence[FloatArray], moments: Moments | None = None) -> None:
        """Go back to cores and weights of before; Adam too, if its moments of then are given."""
        self.flat[:] = state[0]
        if moments is not None:
            self.moments = moments.copy()
        self.weights = [each.copy() for each in state[1:]]
        self._weigh()

    @property
    def ring(self) -> ring.FlatRing:
        """The weighted cores as the kernels read them."""
        return ring.FlatRing(self.weighted, self._starts, self._bonds, self._strands)

    def fitted(self, columns: IntArray) -> FloatArray:
        """F at the cells whose indices are the first D of `columns` (D or more, n)."""
        others = columns[1 : len(self.shape)]
        return np.asarray(entries_kernel.entries(*self.ring, 0, columns[0], others, 0))

    def learn(self, columns: IntArray, values: FloatArray, rate: float, expects: bool) -> None:
        """Learn from one batch, `columns` (2 D - 1, n) and `values` (n,): M-step, E-step if due.

        Columns are as `kernels.gradient` wants them; unless `expects`, E-steps are left out.
        """
        self.move_cores(columns, values, rate)
        self._batches += 1
        self._unweighed += len(values)
        if self._batches % max(E_STEP, sum(self.shape) // len(values)) == 0:
            if self.prior.weights.learned:
                self._move_weights(rate)
            if expects:
                self.expect()

    def move_cores(
        self,
        columns: IntArray,
        values: FloatArray,
        rate: float,
        movable: NDArray[np.bool] | None = None,
    ) -> None:
        """M-step on the slices that a batch touches; what it says of the weights is kept.

        Only slices that are `movable`, all modes end to end, move; all do if it is left out.
        """
        self.weight_gradient += kernel.learn(
            self.flat,
            self.ring,
            columns,
            self._respond(columns, values),
            self._rows,
            self._totals,
            (self.gradient, self.curvature),
            self.moments,
            self._kernel_weights(),
            self._kernel_priors(),
            self._all_movable if movable is None else movable,
            rate,
        )

    def _respond(self, columns: IntArray, values: FloatArray) -> FloatArray:
        """Slope and weight of every observation of a batch, (2, n), at the ring as it stands."""
        fitted = self.fitted(columns)
        self._remember(self.likelihood.statistics(fitted, values), len(values))
        weight, shift = self.likelihood.expect(fitted, values, self.nuisance)
        return np.stack([shift - weight * fitted, weight])

    def _kernel_weights(self) -> tuple[FloatArray, ...]:
        """The weights of every bond, none if they stay at one."""
        n = None if self.prior.weights.learned else 0
        return tuple(each.ravel()[:n] for each in self.weights)

    def _kernel_priors(self) -> tuple[tuple[FloatArray, FloatArray, FloatArray, bool], ...]:
        """The priors of the slices, each with whether its precision is not zero."""
        if self._of_priors is not self.slice_priors[0]:
            self._of_priors = self.slice_priors[0]
            self._priors = tuple((*each, bool(each.precision.any())) for each in self.slice_priors)
        return self._priors

    def _remember(self, statistics: FloatArray, n: int) -> None:
        """Bring the statistics up to date, as if for all observations."""
        whole = statistics * (self.n_observations / n)
        if self.statistics is None:
            self.statistics = whole
        self.rows_seen += n
        share = min(n / min(self.rows_seen, self.n_observations, HORIZON), 1.0)
        self.statistics = (1 - share) * self.statistics + share * whole

    def _move_weights(self, rate: float) -> None:
        """Adam's step on the weights of every bond, by the gradients since the last."""
        share = self._unweighed / self.n_observations
        ends = np.cumsum([each.size for each in self.weights])
        gradients = np.split(self.weight_gradient, ends[:-1])
        for mode, weights in enumerate(self.weights):
            precisions = self.prior.weights.precisions(self.gains[mode])
            up = gradients[mode] - share * (precisions * weights).ravel()
            first, second, powers = self.weight_moments[mode]
            powers *= (FIRST, SECOND)
            bias, square_bias = 1 - powers[0]
            first += (1 - FIRST) * (up - first)
            second += (1 - SECOND) * (up**2 - second)
            root = np.sqrt(second / square_bias) + TINY
            weights += rate * (first / bias / root).reshape(weights.shape)
        self._weigh()
        self.weight_gradient[:] = 0.0
        self._unweighed = 0

    def expect(self) -> None:
        """E-step, equations (20) to (22); slices without observations go to their prior mean."""
        for mode, core in enumerate(self.cores):
            law = self.prior.cores.conditional(core, self.spread(mode))
            hyper = self.prior.cores.estimate_hyper(law)
            self.slice_priors[mode] = self.prior.cores.slice_prior(core.shape, hyper)
        self.gains = [
            self.prior.weights.expect_gains(*each)
            for each in zip(self.weights, self.gains, strict=True)
        ]
        self._e_steps += 1
        if self.statistics is not None:
            self.nuisance = self.likelihood.expect_nuisance(self.statistics)
        for mode, counts in enumerate(self.counts):
            empty = np.flatnonzero(counts == 0)
            if empty.size:
                self.cores[mode][empty] = self.prior_means(mode, empty)
                own = self._as_cores(self.weighted)[mode]
                own[empty] = self.cores[mode][empty] * self.weights[mode][:, None]

    def curvatures(self, mode: int, slices: slice = ALL) -> FloatArray:
        """Data's share of the precision of each entry of a core or some slices, (I_d, K)."""
        n, strands, rows, columns = self.cores[mode].shape
        start = self._starts[mode]
        turned = self.curvature[start : start + self.cores[mode].size]
        squares = np.swapaxes(turned.reshape(n, strands, columns, rows)[slices], 2, 3)
        weighted = squares * self.weights[mode][:, None] ** 2
        return np.asarray(weighted.reshape(len(weighted), -1))

    def spread(self, mode: int) -> FloatArray:
        """How uncertain a core is, as `CorePrior.conditional` wants it: equation (20).

        Of many slices whose entries depend on each other some stand for all, others each time, in
        a mean that forgets.
        """
        prior = self.slice_priors[mode]
        if self.prior.cores.diagonal:
            return 1.0 / (self.curvatures(mode) + prior.diagonal)
        n, size = len(self.cores[mode]), self.cores[mode][0].size
        apart = max(1, n // max(FEWEST, ELEMENTS // size**3))
        some = self.curvatures(mode, slice(self._e_steps % apart, None, apart)) + prior.diagonal
        new = np.linalg.inv(slice_precisions(prior, some)).sum(axis=0) * (n / len(some))
        if apart > 1:
            old = self._spreads.get(mode, new)
            new = self._spreads[mode] = old + NEWEST * (new - old)
        return np.asarray(new)

    def prior_means(self, mode: int, slices: IntArray) -> FloatArray:
        """Prior mean of some slices of a core, shaped like them."""
        precision, diagonal, linear = self.slice_priors[mode]
        own = slices if len(linear) > 1 else np.zeros(1, dtype=np.int64)
        matrices = precision + np.eye(linear.shape[1]) * diagonal[own, None]
        means = np.linalg.solve(matrices, linear[own][..., None])[..., 0]
        return np.broadcast_to(means, (len(slices), linear.shape[1])).reshape(
            -1, *self.cores[mode].shape[1:]
        )

    def grow(self, shape: tuple[int, ...]) -> None:
        """Make room for more slices, which start from their prior means; no mode may shrink."""
        cores, curvature = [], []
        for mode, (core, more) in enumerate(zip(self.cores, shape, strict=True)):
            new = np.zeros(more - len(core), dtype=np.int64)
            cores.append(np.concatenate([core, self.prior_means(mode, new)]))
            start = self._starts[mode]
            curvature += [
                self.curvature[start : start + core.size],
                np.zeros(core[0].size * len(new)),
            ]
            self.counts[mode] = np.concatenate([self.counts[mode], new])
            self.slice_priors[mode] = more_rows(self.slice_priors[mode], len(new))
        self.set_counts(self.counts)
        self.set_cores(cores)
        self.curvature[:] = np.concatenate(curvature)

    def add(self, rows: Rows, streams: Streams, batch_size: int, rates: Sequence[float]) -> None:
        """Learn from new rows alone, a pass for every rate.

        The rows before are there as a prior: slice i is normal round its estimate, with the
        precision of the prior and of the curvature that the rows before left. Slices that had no
        row before find their place first, or they would drag the others along. Weights rest: what
        the rows before said of them is not kept.
        """
        known, counts, nuisance = self.curvature.copy(), self.counts, self.nuisance
        priors = list(self.slice_priors)
        for mode, core in enumerate(self.cores):
            precision, diagonal, _ = priors[mode]
            slices = core.reshape(len(core), -1)
            own = self.curvatures(mode) + diagonal
            self.slice_priors[mode] = SlicePrior(precision, own, slices @ precision + own * slices)
        self.set_counts(rows.counts)
        fresh = np.concatenate(counts) == 0
        met = np.any(np.concatenate(rows.counts)[fresh])
        for movable in (fresh, None) if met else (None,):
            self.set_cores(self.cores)
            for epoch, rate in enumerate(rates):
                for columns, values in one_pass(rows, streams, batch_size, epoch):
                    self.move_cores(columns, values, rate, movable)
        self.measure(rows, streams, batch_size)
        self.curvature += known
        self.slice_priors = priors
        self.set_counts([old + new for old, new in zip(counts, rows.counts, strict=True)])
        self.expect()
        self.nuisance = nuisance

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that `from_arrays` needs."""
        arrays: dict[str, NDArray[Any]] = {
            "flat": self.flat,
            "curvature": self.curvature,
            "nuisance": self.nuisance,
            "width": np.array(self.width),
        }
        for mode in range(len(self.shape)):
            arrays |= {
                f"weights {mode}": self.weights[mode],
                f"gains {mode}": self.gains[mode],
                f"counts {mode}": self.counts[mode],
            }
            arrays |= {
                f"prior {mode} {name}": each
                for name, each in self.slice_priors[mode]._asdict().items()
            }
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], likelihood: Likelihood, prior: RingPrior
    ) -> Learner:
        """The learner as it was; what Adam remembered is forgotten."""
        order = sum(name.startswith("counts ") for name in arrays)
        weights = [arrays[f"weights {mode}"] for mode in range(order)]
        size = RingSize(len(weights[0]), tuple(each.shape[1] for each in weights))
        counts = [arrays[f"counts {mode}"] for mode in range(order)]
        learner = cls(Streams((0, 0)), size, counts, likelihood, prior)
        learner.gains = [arrays[f"gains {mode}"] for mode in range(order)]
        learner.nuisance, learner.width = arrays["nuisance"], float(arrays["width"])
        learner.curvature[:] = arrays["curvature"]
        learner.slice_priors = [
            SlicePrior(*(arrays[f"prior {mode} {name}"] for name in SlicePrior._fields))
            for mode in range(order)
        ]
        learner.restore([arrays["flat"], *weights])
        return learner

    def measure(self, rows: Rows, streams: Streams, batch_size: int) -> None:
        """Curvature at the ring as it stands, by one pass over the rows."""
        self.curvature[:] = 0.0
        sums, touched = (self.gradient, self.curvature), np.empty(batch_size, dtype=np.int64)
        endless = np.full_like(self._totals, np.inf)
        for columns, values in one_pass(rows, streams, batch_size):
            response = self._respond(columns, values)
            for mode in range(len(self.shape)):
                kernel.add_gradient(
                    self.ring, mode, columns, response, self._rows, endless, sums, touched
                )
        self.gradient[:] = 0.0
        self._rows[1][:] = 0

    def deviations(self, mode: int, rng: Generator, n: int) -> FloatArray:
        """Draw n times how far the slices of a core are from their estimates: equation (23).

        Slice i is normal with precision Omega_i plus the curvature of its data. Returns n arrays
        shaped like the core.
        """
        core, prior = self.cores[mode], self.slice_priors[mode]
        size = core[0].size
        entries = self.curvatures(mode) + prior.diagonal
        if not prior.precision.any():
            noise = rng.standard_normal((n, len(core), size))
            return (noise / np.sqrt(entries)).reshape(n, *core.shape)
        gaps = np.empty((n, len(core), size))
        for begin in range(0, len(core), TOGETHER):
            some = slice(begin, begin + TOGETHER)
            lower = np.linalg.cholesky(slice_precisions(prior, entries[some]))
            roots = np.linalg.inv(lower)  # R with R' R = the covariance
            noise = rng.standard_normal((len(roots), n, size))
            gaps[:, some] = np.swapaxes(noise @ roots, 0, 1)
        return gaps.reshape(n, *core.shape)


def slice_precisions(prior: SlicePrior, entries: FloatArray) -> FloatArray:
    """Precision of slices with `entries` (n, K) of their own on the diagonal, (n, K, K)."""
    return np.asarray(prior.precision + np.eye(entries.shape[1]) * entries[:, None])


def more_rows(prior: SlicePrior, n: int) -> SlicePrior:
    """The prior of `n` more slices: the mean of the others, if each has its own."""
    if len(prior.diagonal) == 1:
        return prior
    longer = (
        np.concatenate([each, np.tile(each.mean(axis=0), (n, 1))])
        for each in (prior.diagonal, prior.linear)
    )
    return SlicePrior(prior.precision, *longer)
