"""Running chains: warm-up with rank adaption, kept draws within a memory budget, threads.

Chains run side by side first; threads that no chain needs share the blocks of the others. Who
does what never changes a result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bayesring import ring
from bayesring.infer import gibbs
from bayesring.infer.base import BlockMap, BrokenChain, Problem, StepInfo
from bayesring.infer.rank import RankPolicy
from bayesring.infer.streams import Streams
from bayesring.observations import Block
from bayesring.types import FloatArray, IntArray, RingState

SETTLE = 0.25
"""Share of the warm-up, at its end, in which the rank no longer changes."""


class Schedule(NamedTuple):
    """How long a chain runs and how much of it is kept."""

    warmup: int
    draws: int
    max_bytes: int
    """Budget of the kept draws of one chain."""

    def thinning(self, draw_bytes: int) -> int:
        """Scans per kept draw, so that the draws fit in the budget."""
        return max(1, -(-self.draws * draw_bytes // self.max_bytes))


class Draws(NamedTuple):
    """Kept draws of one chain, all of one rank, weights folded into the cores."""

    flat: FloatArray
    """(S, N), one row per draw, laid out as in `ring.FlatRing`."""
    starts: IntArray
    bonds: IntArray
    nuisance: FloatArray
    """(S, p)."""


class Trace(NamedTuple):
    """What was seen at every scan of one chain, warm-up included."""

    rank: IntArray
    """(scans, D)."""
    log_likelihood: FloatArray
    """(scans,)."""
    described: dict[str, FloatArray]
    """The likelihood's own numbers, (scans,) each."""


class Report(NamedTuple):
    """Progress of one chain after one scan."""

    chain: int
    scan: int
    rank: tuple[int, ...]
    described: dict[str, float]


def iterate(
    streams: Streams,
    problem: Problem,
    policy: RankPolicy,
    warmup: int,
    map_blocks: BlockMap = map,
) -> Iterator[tuple[int, RingState, StepInfo]]:
    """Yield (scan, state, info) for ever, from scan 1; the caller decides how much to take."""
    state = gibbs.init(streams, problem, policy.start(len(problem.shape)))
    scan = 0
    while True:
        scan += 1
        state, info = gibbs.step(streams, scan, state, problem, map_blocks)
        yield scan, state, info
        if scan <= (1 - SETTLE) * warmup:
            state = policy.adapt(streams, scan, state, info, problem)


def run_chain(
    chain: int,
    seed: int,
    problem: Problem,
    policy: RankPolicy,
    schedule: Schedule,
    scale: float = 1.0,
    map_blocks: BlockMap = map,
    report: Callable[[Report], None] | None = None,
    stop: threading.Event | None = None,
) -> tuple[Draws, Trace]:
    """Run one chain to its end and collect its draws and trace."""
    kept: list[ring.FlatRing] = []
    nuisance: list[FloatArray] = []
    ranks: list[tuple[int, ...]] = []
    log_likelihood: list[float] = []
    described: dict[str, list[float]] = {}
    states = iterate(Streams.of_chain(seed, chain), problem, policy, schedule.warmup, map_blocks)
    try:
        for scan, state, info in states:
            numbers = problem.likelihood.describe(info.statistics, state.nuisance, scale)
            ranks.append(state.rank)
            log_likelihood.append(info.log_likelihood)
            for name, number in numbers.items():
                described.setdefault(name, []).append(float(number))
            if scan > schedule.warmup:
                draw_bytes = sum(core.nbytes for core in state.cores)
                if (scan - schedule.warmup) % schedule.thinning(draw_bytes) == 0:
                    kept.append(ring.flatten(ring.weighted(state.cores, state.weights)))
                    nuisance.append(state.nuisance)
            if report is not None:
                report(Report(chain, scan, state.rank, numbers))
            if scan == schedule.warmup + schedule.draws or (stop is not None and stop.is_set()):
                break
    except BrokenChain as error:
        raise BrokenChain(
            f"Sampling broke down in chain {chain}, {error}: numbers became too large or are not "
            "finite. Try a smaller rank, or check the values for extreme outliers."
        ) from None
    if not kept:  # the budget is smaller than one draw, or the run was stopped: keep the last
        kept.append(ring.flatten(ring.weighted(state.cores, state.weights)))
        nuisance.append(state.nuisance)
    draws = Draws(
        np.stack([one.flat for one in kept]), kept[0].starts, kept[0].bonds, np.stack(nuisance)
    )
    trace = Trace(
        np.array(ranks),
        np.array(log_likelihood),
        {name: np.array(numbers) for name, numbers in described.items()},
    )
    return draws, trace


def run_chains(
    problem: Problem,
    policy: RankPolicy,
    schedule: Schedule,
    seed: int,
    chains: int,
    n_jobs: int,
    scale: float = 1.0,
    report: Callable[[Report], None] | None = None,
) -> list[tuple[Draws, Trace]]:
    """Run several chains on `n_jobs` threads. BLAS is held to one thread, or its
    sums would depend on how many it has.
    """
    stop = threading.Event()
    n_drivers = min(chains, n_jobs)
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(n_jobs) as workers,
        ThreadPoolExecutor(n_drivers) as drivers,
    ):
        shared = SharedWorkers(workers, n_jobs)

        def one_chain(chain: int) -> tuple[Draws, Trace]:
            with shared:
                return run_chain(
                    chain, seed, problem, policy, schedule, scale, shared.map, report, stop
                )

        futures = [drivers.submit(one_chain, chain) for chain in range(chains)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


class SharedWorkers:
    """Threads that chains share: used for blocks only while fewer chains run than threads."""

    def __init__(self, executor: Executor, n_jobs: int) -> None:
        self._executor = executor
        self._n_jobs = n_jobs
        self._running = 0
        self._lock = threading.Lock()

    def __enter__(self) -> SharedWorkers:
        with self._lock:
            self._running += 1
        return self

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._running -= 1

    def map(self, function: Callable[[Block], Any], blocks: Iterable[Block]) -> Iterable[Any]:
        """Work on blocks in threads, or here when every thread is busy with a chain."""
        blocks = tuple(blocks)
        if len(blocks) == 1 or self._running >= self._n_jobs:
            return map(function, blocks)
        return self._executor.map(function, blocks)


def count_threads(n_jobs: int | None) -> int:
    """Threads to use: all the cores this process may run on for None, -1 as in scikit-learn."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = available or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive number, -1 for all cores, or None; got 0.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
