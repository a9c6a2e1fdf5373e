"""Threads for chains and blocks. The assignment of work to threads never affects a result.

Chains run side by side first; threads that no chain needs help the chains with their blocks. A
chain processes blocks itself and collects results in order: a thread that only waited for results
would wake up for each of them and take the GIL away from the workers. BLAS is limited to one thread
meanwhile, because its sums would otherwise depend on its number of threads.
"""

from __future__ import annotations

import numbers
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_EXCEPTION,
    Future,
    ThreadPoolExecutor,
    wait,
)
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from bayesring.data.blocks import Block
from bayesring.engine.compiling import cancelled_by
from bayesring.engine.protocol import Blocks, Engine, Item, Result, Task
from bayesring.interrupts import told_as_such
from bayesring.wording import shown

AWAKE = 0.2
"""Seconds after which a thread that waits for others looks whether it was interrupted."""


class Stopped(Exception):
    """Another chain failed or the user interrupted, so this one ends too."""


class _OneBlasThread:
    """Limits BLAS to one thread while any code in the process needs it, then restores it.

    The limit applies to the whole process, so overlapping fits must share it. Other pools, such as
    OpenMP's, are left alone. From threadpoolctl 3.8 on, the thread that last set a limit prevents
    all others from setting one. A shared limit is set by one thread and lifted by another, so this
    reservation is released each time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                _release()
                self._limit = _blas().limit(limits=1)
            self._users += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _release()
                self._limit.restore_original_limits()
                _release()


@cache
def _blas() -> ThreadpoolController:
    """Controller of the BLAS libraries of NumPy and SciPy, which are loaded by now."""
    return ThreadpoolController().select(user_api="blas")


def _release() -> None:
    """Let any thread set limits if threadpoolctl reserves that for one."""
    for library in _blas().lib_controllers:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)


one_blas_thread = _OneBlasThread()


class Threads(Engine):
    """Threads of this process.

    While open it has two pools: one thread per running chain, and helpers for their blocks. When
    closed it still maps pieces, with threads created on demand, so it can be kept, copied and
    pickled.

    Parameters
    ----------
    n_jobs : number of threads
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs
        self._drivers: ThreadPoolExecutor | None = None
        self._helpers: ThreadPoolExecutor | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._running = 0

    def __getstate__(self) -> dict[str, Any]:
        """Pickle only the number of threads: pools and locks belong to a process."""
        return {"n_jobs": self.n_jobs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Threads) and other.n_jobs == self.n_jobs

    def __hash__(self) -> int:
        return hash(self.n_jobs)

    def __enter__(self) -> Threads:
        one_blas_thread.__enter__()
        self._stop.clear()
        self._drivers = ThreadPoolExecutor(self.n_jobs)
        self._helpers = ThreadPoolExecutor(max(1, self.n_jobs - 1))
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._drivers is not None
        assert self._helpers is not None
        try:
            self._drivers.shutdown()
            self._helpers.shutdown()
        finally:
            self._drivers = self._helpers = None
            one_blas_thread.__exit__()

    def map_chains(self, work: Callable[[Item], Result], chains: Sequence[Item]) -> list[Result]:
        """Run `work` on every chain; the first failure, or an interrupt, stops them all."""

        def one(chain: Item) -> Result:
            with self._lock:
                self._running += 1
            try:
                with cancelled_by(self.go_on):
                    return work(chain)
            except BaseException:
                self._stop.set()
                raise
            finally:
                with self._lock:
                    self._running -= 1

        assert self._drivers is not None, "map_chains needs an open engine"
        futures: list[Future[Result]] = []
        try:
            futures.extend(self._drivers.submit(one, chain) for chain in chains)
            _wait(futures, FIRST_EXCEPTION)
        except BaseException:  # interrupted while waiting: chains stop after their current block
            self._stop.set()
            for future in futures:
                future.cancel()
            _wait_regardless(futures)
            raise
        if self._stop.is_set():
            for future in futures:
                future.cancel()
            wait(futures)
            errors = [each.exception() for each in futures if not each.cancelled()]
            raise next(error for error in errors if error and not isinstance(error, Stopped))
        return [future.result() for future in futures]

    def map_pieces(self, work: Callable[[Item], Result], pieces: Sequence[Item]) -> list[Result]:
        """Run `work` on independent pieces with BLAS limited to one thread."""

        def stoppable(piece: Item) -> Result:
            with cancelled_by(self.go_on):
                return work(piece)

        with one_blas_thread:
            if self.n_jobs == 1 or len(pieces) <= 1:
                with told_as_such():
                    return [work(piece) for piece in pieces]
            if self._drivers is not None:
                futures: list[Future[Result]] = []
                try:
                    futures.extend(self._drivers.submit(stoppable, piece) for piece in pieces)
                    _wait(futures, FIRST_EXCEPTION)
                    failed = [each for each in futures if each.done() and each.exception()]
                    return [future.result() for future in failed or futures]
                except BaseException:
                    self._stop.set()
                    for future in futures:
                        future.cancel()
                    _wait_regardless(futures)
                    raise
            with ThreadPoolExecutor(self.n_jobs) as pool:
                return list(pool.map(work, pieces))

    def go_on(self) -> None:
        """Stop here if the work was cancelled."""
        if self._stop.is_set():
            raise Stopped

    def map_blocks(
        self, operation: Callable[[Task, Block], Result], task: Task, blocks: Blocks
    ) -> Iterable[Result]:
        """Process blocks in this thread, helped by threads that no chain needs."""

        def function(block: Block) -> Result:
            self.go_on()
            return operation(task, block)

        running = max(1, self._running)
        helpers = min(-(-(self.n_jobs - running) // running), len(blocks) - 1)
        if helpers <= 0 or self._helpers is None:
            return map(function, blocks)
        return self._share(function, blocks, self._helpers, helpers)

    def _share(
        self,
        function: Callable[[Block], Result],
        blocks: Blocks,
        pool: ThreadPoolExecutor,
        helpers: int,
    ) -> Iterator[Result]:
        waiting = deque(enumerate(blocks))
        finished: dict[int, Result] = {}

        def work_on_next() -> bool:
            try:
                number, block = waiting.popleft()
            except IndexError:
                return False
            finished[number] = function(block)
            return True

        def work() -> None:
            try:
                with cancelled_by(self.go_on):
                    while work_on_next():
                        pass
            except BaseException:
                waiting.clear()
                raise

        futures = [pool.submit(work) for _ in range(helpers)]
        try:
            for number in range(len(blocks)):
                while number not in finished and work_on_next():
                    pass
                if number not in finished:  # a helper has taken it or failed on it
                    for future in futures:
                        if not future.cancel():
                            future.result()
                yield finished.pop(number)
        finally:
            waiting.clear()
            wait([future for future in futures if not future.cancel()])


def _wait(futures: Sequence[Future[Any]], until: str) -> None:
    """Wait in pieces: a signal that another thread is given would not end an endless one."""
    while wait(futures, AWAKE, until).not_done:
        if until == FIRST_EXCEPTION and any(each.done() and each.exception() for each in futures):
            return


def _wait_regardless(futures: Sequence[Future[Any]]) -> None:
    """Until nobody works any more, which is soon, whoever presses Ctrl-C again meanwhile."""
    while True:
        try:
            return _wait(futures, ALL_COMPLETED)
        except (KeyboardInterrupt, SystemExit):
            continue


ONE_THREAD = Threads(1)
"""Default engine."""


def count_threads(n_jobs: int | None) -> int:
    """Number of threads: all cores available to this process for None, -1 as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    available = cores or 1
    if n_jobs is None:
        return available
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a positive number, -1 for all cores, or None; got {shown(n_jobs)}."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, available + 1 + int(n_jobs))
