"""Threads for chains and blocks. Who does what never changes a result.

Chains run side by side first; threads that no chain needs help the others with their blocks. A
chain works on blocks itself and takes results in their order: a thread that only waited for results
would wake for each of them, and take Python's lock from those who work. BLAS is held to one thread
meanwhile, or its sums would depend on how many it has.
"""

from __future__ import annotations

import numbers
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from bayesring.data.observations import Block

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):
    """Another chain failed or the user interrupted: this one ends too."""


class _OneBlasThread:
    """Holds BLAS to one thread while anyone in the process needs it, and puts it back after.

    The limit is one of the whole process, so fits that overlap must share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = threadpool_limits(1)
            self._users += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


class ChainThreads:
    """Two pools: one thread per running chain, and helpers for their blocks."""

    def __init__(self, n_chains: int, n_jobs: int) -> None:
        self._n_jobs = n_jobs
        self._drivers = ThreadPoolExecutor(min(n_chains, n_jobs))
        self._helpers = ThreadPoolExecutor(max(1, n_jobs - 1))
        self._stack = ExitStack()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> ChainThreads:
        self._stack.enter_context(one_blas_thread)
        self._stack.enter_context(self._helpers)
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
            except BaseException:
                self._stop.set()
                raise
            finally:
                with self._lock:
                    self._running -= 1

        futures = [self._drivers.submit(one, chain) for chain in chains]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:  # an interrupt while waiting
            self._stop.set()
            raise
        if self._stop.is_set():
            for future in futures:
                future.cancel()
            wait(futures)
            errors = [each.exception() for each in futures if not each.cancelled()]
            raise next(error for error in errors if error and not isinstance(error, Stopped))
        return [future.result() for future in futures]

    def map_blocks(
        self, function: Callable[[Block], Any], blocks: Iterable[Block]
    ) -> Iterable[Any]:
        """Work on blocks here, with the help of threads that no chain needs."""
        if self._stop.is_set():
            raise Stopped
        blocks = tuple(blocks)
        running = max(1, self._running)
        helpers = min(-(-(self._n_jobs - running) // running), len(blocks) - 1)
        return self._share(function, blocks, helpers) if helpers > 0 else map(function, blocks)

    def _share(
        self, function: Callable[[Block], Any], blocks: tuple[Block, ...], helpers: int
    ) -> Iterator[Any]:
        waiting = deque(enumerate(blocks))
        finished: dict[int, Any] = {}

        def work_on_next() -> bool:
            try:
                number, block = waiting.popleft()
            except IndexError:
                return False
            finished[number] = function(block)
            return True

        def work() -> None:
            try:
                while work_on_next():
                    pass
            except BaseException:
                waiting.clear()
                raise

        futures = [self._helpers.submit(work) for _ in range(helpers)]
        try:
            for number in range(len(blocks)):
                while number not in finished and work_on_next():
                    pass
                if number not in finished:  # a helper has it, or failed on it
                    for future in futures:
                        if not future.cancel():
                            future.result()
                yield finished.pop(number)
        finally:
            waiting.clear()
            wait([future for future in futures if not future.cancel()])


def count_threads(n_jobs: int | None) -> int:
    """Threads to use: all the cores this process may run on for None, -1 as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    available = cores or 1
    if n_jobs is None:
        return available
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a positive number, -1 for all cores, or None; got {n_jobs!r}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))
