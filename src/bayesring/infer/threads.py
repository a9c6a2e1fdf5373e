"""Threads for chains and blocks. Who does what never changes a result.

Chains run side by side first; threads that no chain needs share the blocks of the others. BLAS is
held to one thread meanwhile, or its sums would depend on how many it has.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from bayesring.observations import Block

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):
    """Another chain failed or the user interrupted: this one ends too."""


class ChainThreads:
    """Two pools: one thread per running chain, and workers for their blocks."""

    def __init__(self, n_chains: int, n_jobs: int) -> None:
        self._n_jobs = n_jobs
        self._drivers = ThreadPoolExecutor(min(n_chains, n_jobs))
        self._workers = ThreadPoolExecutor(n_jobs)
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> ChainThreads:
        self._stack.enter_context(threadpool_limits(1))
        self._stack.enter_context(self._workers)
        self._stack.enter_context(self._drivers)
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def map_chains(self, work: Callable[[Item], Result], chains: Sequence[Item]) -> list[Result]:
        """Run `work` on every chain; the first failure, or an interrupt, stops them all."""

        def one(chain: Item) -> Result:
            with self._lock:
                self._running += 1
            try:
                return work(chain)
            finally:
                with self._lock:
                    self._running -= 1

        futures = [self._drivers.submit(one, chain) for chain in chains]
        try:
            return [future.result() for future in futures]
        except BaseException:
            self._stop.set()
            for future in futures:
                future.cancel()
            raise

    def map_blocks(
        self, function: Callable[[Block], Any], blocks: Iterable[Block]
    ) -> Iterable[Any]:
        """Work on blocks in threads, or here when every thread is busy with a chain."""
        if self._stop.is_set():
            raise Stopped
        blocks = tuple(blocks)
        if len(blocks) == 1 or self._running >= self._n_jobs:
            return map(function, blocks)
        return self._workers.map(function, blocks)


def count_threads(n_jobs: int | None) -> int:
    """Threads to use: all the cores this process may run on for None, -1 as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    available = cores or 1
    if n_jobs is None:
        return available
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive number, -1 for all cores, or None; got 0.")
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)
