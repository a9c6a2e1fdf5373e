"""Whether a cluster can be worked with: its scheduler, its workers, and waiting for both.

Nothing here waits without looking: whoever waits finds out if the last worker is gone for good, or
if the work was cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import pydoc
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from bayesring.engine.protocol import Result

VERSION = "bayesring.__version__"
PATIENCE = 60.0
"""Seconds to wait for a worker if none is left."""
NO_WORKER = (
    "The Dask cluster has no worker, and none came within {:.0f} seconds; start some and call "
    "again, with checkpoint= from the last saved state."
)
GLANCE = 2.0
"""Seconds between two looks at whether waiting is still of use."""


class ClusterLost(ConnectionError):
    """The scheduler or all workers are gone."""


def check_scheduler(client: Any, reason: BaseException | None = None) -> None:
    """Raise an error if the scheduler is gone."""
    lost = getattr(reason, "reason", "") == "scheduler-connection-lost"
    if client.status == "running" and not lost:
        try:
            client.nthreads()
        except (OSError, asyncio.CancelledError):
            lost = True
    if client.status == "running" and not lost:
        return
    raise ClusterLost(
        "The connection to the Dask scheduler is lost. With checkpoint= the same call goes on "
        "from the last saved state with a client of another cluster."
    ) from reason


def bring_back(client: Any) -> None:
    """Let a cluster of this machine bring back the workers that it should have.

    15 seconds after a worker was lost, Dask looks whether there is one of its name; if that was
    killed anew just then, Dask takes it for gone and never starts it again. Nor does it start
    those anew that failed or were closed. Elsewhere, whoever runs the workers decides.
    """
    local: Any = pydoc.locate("distributed.LocalCluster")
    cluster = client.cluster
    if isinstance(cluster, local):
        for name, worker in list(cluster.workers.items()):
            if worker.status.name in ("closed", "failed"):
                cluster.workers.pop(name, None)
        cluster.scale(len(cluster.worker_spec))


def check_workers(client: Any) -> None:
    """Refuse workers without bayesring, or with another version of it."""
    here = pydoc.locate(VERSION)
    found = client.run(pydoc.locate, VERSION, on_error="return")
    for worker, version in found.items():
        if version != here:
            has = f"bayesring {version}" if isinstance(version, str) else "no bayesring"
            raise RuntimeError(
                f"Worker {worker} has {has}, but bayesring {here} is needed there as here: "
                "install the same version on all workers."
            )


class Patience:
    """Looks whether waiting is still of use; Dask would wait for ever for a worker.

    `go_on` raises an error if the work was cancelled.
    """

    def __init__(self, client: Any, go_on: Callable[[], None]) -> None:
        self._client, self._go_on, self._last = client, go_on, time.monotonic()

    def look(self) -> None:
        """Raise an error if the work was cancelled, or nobody is left to do it."""
        self._go_on()
        check_scheduler(self._client)
        if self._client.nthreads():
            self._last = time.monotonic()
        elif time.monotonic() - self._last > PATIENCE:
            raise ClusterLost(NO_WORKER.format(PATIENCE))
        else:
            bring_back(self._client)

    def result(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of work that the client does."""
        future = asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return future.result(timeout=GLANCE)
                except NotYet:
                    if future.done():
                        raise
                self.look()
        finally:
            future.cancel()

    def repeat(self, wait: Callable[[float], Any]) -> None:
        """Wait for so many seconds at a time, until no TimeoutError is raised."""
        while True:
            try:
                wait(GLANCE)
                return
            except TimeoutError:
                self.look()

    def await_worker(self) -> None:
        """Wait for a worker if there is none.

        One that was asked for may fail: Dask refuses it while another of its name says goodbye.
        Hence every look asks anew.
        """
        if not self._client.nthreads():  # else it is for the user to say how many there are
            bring_back(self._client)
        self.repeat(lambda seconds: self._client.wait_for_workers(1, timeout=seconds))


@contextmanager
def silent() -> Iterator[None]:
    """Without Dask's own lines about what goes wrong: whoever asked is told by an error, once."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Start processes and threads that interrupts leave alone; they reach this one afterwards.

    Ctrl-C goes to all processes of a terminal. Those started here must not die of it, since this
    one ends them in good order. Only the main thread of a process can do this.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "pthread_sigmask"
    ):
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts in again
    noted: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: noted.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if noted:
            signal.raise_signal(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
