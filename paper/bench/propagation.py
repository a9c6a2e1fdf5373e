"""Posterior propagation, simulated: blocks of the tensor in three stages instead of one sampler.

    python -m paper.bench.propagation

Users and items are halved, which gives 2 x 2 blocks of observations. Stage one samples the first
block. Stage two samples the two blocks that share its users or its items, whose slices have the
posterior of stage one, a Gaussian per slice, as their prior. Stage three samples the last block
with the posteriors of stage two. The blocks of stage two could run at the same time, so the time
of a run is that of three samplers on a quarter of the data each. Printed beside the full sampler
and, as the trivial answer, the mean of the training values: error and coverage on held-out cells.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from bayesring.model.types import FloatArray, IntArray, RingSize, RingState, SlicePrior
from bayesring.priors import NormalWishart, RingPrior, UnitWeights

SHAPE, RANK, NOISE = (120, 100, 20), 2, 0.5
WARMUP, DRAWS = 120, 120


@dataclass(frozen=True)
class Handed(NormalWishart):
    """Slices with a Gaussian of their own where one was handed on, hierarchical elsewhere."""

    mean: Any = field(default=None)
    """(I_d, K), NaN for slices without one."""
    precision: Any = field(default=None)
    """(I_d, K), of each entry."""

    def slice_prior(self, core: FloatArray, hyper: Any) -> SlicePrior:
        """Diagonal rows for all slices; the common precision enters only by its diagonal."""
        common = super().slice_prior(core, hyper)
        known = ~np.isnan(self.mean[:, :1])
        diagonal = np.where(known, self.precision, np.diag(common.precision))
        spread = np.linalg.solve(common.precision, common.linear[0])
        linear = np.where(known, self.precision * self.mean, np.diag(common.precision) * spread)
        return SlicePrior(np.zeros_like(common.precision), diagonal, linear)


class Sampled(NamedTuple):
    """Draws of one sampler."""

    cores: list[tuple[FloatArray, ...]]
    noise: list[float]
    state: RingState
    seconds: float


def sample(
    coords: IntArray, values: FloatArray, priors: Sequence[Any], seed: int, start: Any = None
) -> Sampled:
    """Run one chain; `start` replaces the slices that were handed on."""
    likelihood = Gaussian(max_precision=100.0)
    prior = RingPrior(tuple(priors), UnitWeights())
    problem = make_problem(Observations(coords, values, SHAPE), likelihood, prior)
    streams = Streams.of_chain(seed, 0)
    state = gibbs.init(streams, problem, RingSize(1, (RANK,) * len(SHAPE)))
    if start is not None:
        state = state._replace(
            cores=tuple(
                np.where(np.isnan(own), other, own)
                for own, other in zip(start, state.cores, strict=True)
            )
        )
    cores, noise = [], []
    begin = time.process_time()
    for scan in range(1, WARMUP + DRAWS + 1):
        state, _ = gibbs.step(streams, scan, state, problem)
        if scan > WARMUP:
            cores.append(tuple(ring.weighted(state.cores, state.weights)))
            noise.append(float(state.nuisance[0]) ** -0.5)
    return Sampled(cores, noise, state, time.process_time() - begin)


def handed(found: Sampled, where: Sequence[IntArray]) -> list[tuple[FloatArray, FloatArray]]:
    """Mean and precision of the slices of each mode over the draws, NaN where not asked for."""
    result = []
    for mode, own in enumerate(where):
        draws = np.stack([each[mode].reshape(SHAPE[mode], -1) for each in found.cores])
        mean = np.full(draws.shape[1:], np.nan)
        precision = np.full(draws.shape[1:], np.nan)
        mean[own], precision[own] = draws.mean(axis=0)[own], 1 / draws.var(axis=0)[own]
        result.append((mean, precision))
    return result


def judged(found: Sampled, coords: IntArray, values: FloatArray) -> tuple[float, float]:
    """RMSE, and coverage of 90 % intervals, on held-out cells."""
    entries = np.stack([ring.entries(each, coords) for each in found.cores])
    spread = np.sqrt(entries.var(axis=0) + np.mean(np.square(found.noise)))
    error = values - entries.mean(axis=0)
    return float(np.sqrt(np.mean(error**2))), float(np.mean(np.abs(error) < 1.645 * spread))


def simulate(seed: int, n: int) -> dict[str, tuple[float, float, float]]:
    """RMSE, coverage and CPU seconds of the longest path, of the mean, in full and in stages."""
    rng = np.random.default_rng(seed)
    truth = [rng.normal(0.5, 0.6, (size, 1, RANK, RANK)) for size in SHAPE]
    places = np.stack([rng.integers(size, size=2 * n) for size in SHAPE], axis=1)
    values = ring.entries(truth, places)
    scale = values.std()
    values = values / scale + NOISE * rng.standard_normal(2 * n)
    coords, test, y, actual = places[:n], places[n:], values[:n], values[n:]
    plain = [NormalWishart()] * len(SHAPE)
    whole = sample(coords, y, plain, seed)
    half = [np.arange(size // 2) for size in SHAPE[:2]]
    rest = [np.arange(size // 2, size) for size in SHAPE[:2]]
    nothing, every = np.empty(0, dtype=int), np.arange(SHAPE[2])

    def block(users: int, items: int) -> IntArray:
        side = [coords[:, mode] >= SHAPE[mode] // 2 for mode in (0, 1)]
        return np.flatnonzero((side[0] == bool(users)) & (side[1] == bool(items)))

    def stage(rows: IntArray, given: list[tuple[FloatArray, FloatArray]], offset: int) -> Sampled:
        priors = [
            Handed(mean=mean, precision=precision) if not np.isnan(mean).all() else NormalWishart()
            for mean, precision in given
        ]
        start = [
            mean.reshape(size, 1, RANK, RANK) for (mean, _), size in zip(given, SHAPE, strict=True)
        ]
        return sample(coords[rows], y[rows], priors, seed + offset, start)

    first = sample(coords[block(0, 0)], y[block(0, 0)], plain, seed + 1)
    same_items = stage(block(1, 0), handed(first, [nothing, half[1], every]), 2)
    same_users = stage(block(0, 1), handed(first, [half[0], nothing, every]), 3)
    users = handed(same_items, [rest[0], nothing, every])
    items = handed(same_users, [nothing, rest[1], every])
    last = stage(block(1, 1), [users[0], items[1], users[2]], 4)
    parts = {(0, 0): first, (1, 0): same_items, (0, 1): same_users, (1, 1): last}
    errors, covered = np.empty(len(test)), np.empty(len(test))
    for (user, item), found in parts.items():
        side = [test[:, mode] >= SHAPE[mode] // 2 for mode in (0, 1)]
        own = (side[0] == bool(user)) & (side[1] == bool(item))
        rmse, coverage = judged(found, test[own], actual[own])
        errors[own], covered[own] = rmse**2, coverage
    longest = first.seconds + max(same_items.seconds, same_users.seconds) + last.seconds
    trivial = actual - y.mean()
    return {
        "mean of all values": (
            float(np.sqrt(np.mean(trivial**2))),
            float(np.mean(np.abs(trivial) < 1.645 * y.std())),
            0.0,
        ),
        "one sampler": (*judged(whole, test, actual), whole.seconds),
        "three stages": (float(np.sqrt(errors.mean())), float(covered.mean()), longest),
    }


def main() -> None:
    """Print means over a few simulated tensors."""
    for n in (3_000, 12_000):
        found = [simulate(seed, n) for seed in range(4)]
        for name in found[0]:
            rmse, coverage, seconds = np.mean([each[name] for each in found], axis=0)
            print(  # noqa: T201
                f"{n:7,} {name:20} RMSE {rmse:.3f}  coverage {coverage:.3f}  CPU {seconds:.2f} s"
            )


if __name__ == "__main__":
    main()
