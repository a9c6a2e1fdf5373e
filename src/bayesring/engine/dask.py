"""Workers of a Dask cluster: blocks live there, the chains here. The only module that knows Dask.

The blocks of a mode are laid out on the workers in *groups* of consecutive blocks, about one per
thread of the cluster, and stay there. To draw a core, one task per group and chain goes out, with
what changed in the ring since the last one: every worker receives a changed core once. Slices and
sums come back block by block, and are put together in block order.

A task is a pure function of its blocks, the ring and the streams. Whatever a lost worker held is
made again, by Dask from its source or from the memory of this process, and lost tasks run again,
with the same bits.
"""

from __future__ import annotations

import logging
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Self

import dask
import distributed
from dask.delayed import delayed
from distributed.comm.core import CommClosedError
from distributed.protocol.pickle import dumps

from bayesring.data.batches import Batch
from bayesring.data.blocks import Block, shares
from bayesring.data.parquet.footers import find_files, is_pattern
from bayesring.data.splitting import Held
from bayesring.engine.connection import (
    ClusterLost,
    Patience,
    check_scheduler,
    check_workers,
    silent,
    undisturbed,
)
from bayesring.engine.gradients import BatchSums, GradientTask, put_together
from bayesring.engine.operations import CoreTask, Drawn, Update
from bayesring.engine.placing import (
    HeldGroup,
    Placed,
    Sent,
    itself,
    stripped,
    without_rows,
    work,
    work_on_batch,
)
from bayesring.engine.protocol import Blocks, Result, Task
from bayesring.engine.remoterows import jobs_of
from bayesring.engine.spread import Read, Spread, Workers
from bayesring.engine.threads import Threads, count_threads
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import reason_of

CHAINS = 32
"""Chains that run at the same time; their threads only wait."""
INLINE = 2**22
"""Bytes of a ring, times the tasks that need it, up to which it travels inside the tasks."""
ATTEMPTS = 20
"""Times that work is sent out again after workers were lost, before the cluster is given up."""
LOSSES = (
    distributed.KilledWorker,
    distributed.CancelledError,
    distributed.TimeoutError,
    CommClosedError,
    OSError,
)
"""Errors of work whose worker, or whose data, were lost."""
GONE = ("lost", "cancelled")
"""States of a future whose data only this process can send again."""
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.deploy.lost-worker-timeout": "1h",
}
"""Settings of a cluster of our own: Dask watches itself less, leaves the cores to the work, and
does not give up a worker that starts anew."""


class Cluster(Threads, Workers):
    """The workers of a Dask cluster. Chains run in threads of this process.

    `client` is a `distributed.Client`; None for the default client.
    """

    def __init__(self, client: Any = None) -> None:
        super().__init__(CHAINS)
        self.client = checked(client)
        self._name, self._numbers = uuid.uuid4().hex[:8], count()
        self._sent: dict[Any, Sent] = {}
        self._placing, self._direct = threading.Lock(), True

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an engine on a cluster cannot be pickled.")

    def __enter__(self) -> Self:
        self._patience().await_worker()
        check_workers(self.client)
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._sent.clear()  # workers forget what nobody here holds
        super().__exit__(*exception)

    def key(self, name: str) -> str:
        """A new key, whose beginning is what the dashboard shows."""
        return f"{name}-{self._name}{next(self._numbers):08x}"

    def hold_out(self, data: Any, seed: int) -> tuple[Any, Held | None]:
        """Data to fit and data held out, wherever they are."""
        return data.hold_out(seed) if isinstance(data, Spread) else super().hold_out(data, seed)

    def take_back(self, views: list[Blocks], shape: tuple[int, ...]) -> Any:
        """The data of the blocks of the first mode, or where they came from."""
        first = views.pop()
        if not isinstance(first, Placed):
            return super().take_back([first], shape)
        if first.source is not None:
            return first.source
        return super().take_back([first.kept], shape)

    def rejoin(self, explored: Any, held: Held) -> Any:
        """The data before some were held out."""
        return (
            explored.whole(held) if isinstance(explored, Spread) else super().rejoin(explored, held)
        )

    def lay_out(
        self, data: Any, block_size: int | None, cut: Sequence[bool]
    ) -> tuple[tuple[Blocks, ...], tuple[IntArray, ...]]:
        """The blocks of every mode on the workers."""
        if not isinstance(data, Spread):
            return super().lay_out(data, block_size, cut)
        laid = data.lay_out(block_size, cut)
        views = tuple(Placed([HeldGroup(*each) for each in groups], data) for groups in laid)
        return views, data.counts

    def place(self, blocks: tuple[Block, ...]) -> Blocks:
        """Send blocks that are in memory here to the workers."""
        workers, sizes = self.threads(), [block.values.size for block in blocks]
        groups = []
        for own, worker in zip(shares(sizes, len(workers)), workers, strict=False):
            heads = tuple(without_rows(each) for each in blocks[own])
            groups.append(HeldGroup(heads, self._scatter(blocks[own], worker), blocks[own]))
        return Placed(groups)

    def _scatter(self, part: tuple[Block, ...], worker: str | None = None) -> Any:
        """Send blocks to a worker."""
        name = self.key(f"blocks-of-mode-{part[0].mode}")

        def send() -> Any:
            alive = [worker] if worker in self.threads() else None
            return self.client.scatter({name: part}, workers=alive, hash=False)[name]

        return self._persistently(send)

    def map_blocks(
        self, operation: Callable[[Task, Block], Result], task: Task, blocks: Blocks
    ) -> Iterable[Result]:
        """One task per group of blocks, with results in block order."""
        if not isinstance(blocks, Placed):
            return super().map_blocks(operation, task, blocks)
        self.go_on()
        name = f"{operation.__name__.replace('_', '-')}-of-mode-{blocks[0].mode}"

        def send() -> list[Any]:
            self._mend(blocks)
            bare, parts = self._stripped(task, len(blocks.groups))
            packed = dumps((operation, bare))  # type: ignore[no-untyped-call]
            futures = [
                self.submit(name, work, group.blocks, packed, parts) for group in blocks.groups
            ]
            return self._gather(futures, direct=self._direct)

        return chain.from_iterable(map(pickle.loads, self._persistently(send)))

    def _mend(self, placed: Placed) -> None:
        """Make sure that all blocks exist, or will."""
        with self._placing:
            for place, group in enumerate(placed.groups):
                if group.kept is not None and group.blocks.status in GONE:
                    placed.groups[place] = group._replace(blocks=self._scatter(group.kept))
                elif group.blocks.status == "error":
                    group.blocks.retry()

    def draw(self, update: Update, task: CoreTask, blocks: Blocks) -> Iterable[Drawn]:
        """Slices of every block; most updates do not need to see the old ones."""
        seen = task if update.reads_core else task._replace(core=task.core[:0])
        return super().draw(update, seen, blocks)

    @property
    def n_local(self) -> int:
        """Threads of this process."""
        return count_threads(None)

    def batch_sums(self, task: GradientTask, batch: Batch) -> BatchSums:
        """One task per worker with its blocks, put together along the tree of all."""
        self.go_on()
        task = task._replace(flat=task.flat._replace(flat=task.flat.flat.copy()))  # it will move

        def send() -> Any:
            whole, jobs = jobs_of(batch, len(self.threads()))
            bare, parts = self._stripped(task, len(jobs))
            found = [self.submit("gradient", work_on_batch, *job, bare, parts) for job in jobs]
            sums = chain.from_iterable(self._gather(found))
            nodes = chain.from_iterable(job.nodes for job in jobs)
            return put_together(whole, dict(zip(nodes, sums, strict=True)))

        return self._persistently(send)  # type: ignore[no-any-return]

    def _stripped(self, task: Any, n_tasks: int) -> tuple[Any, list[Any]]:
        """A task without its ring, and the cores of the ring: futures if they are large."""
        bare, parts = stripped(task)
        if sum(part.nbytes for part in parts) * n_tasks <= INLINE:
            return bare, parts
        whose = getattr(task, "streams", threading.get_ident())
        before = self._sent.get(whose, Sent([], []))
        futures: list[Any] = []
        for place, part in enumerate(parts):
            known = before.future_of(place, part)
            if part.nbytes == 0 or known is not None:
                futures.append(part if known is None else known)
            else:
                futures.append(self._send(self.key(f"core-{place}"), part))
        self._sent[whose] = Sent(parts, futures)
        return bare, futures

    def _send(self, name: str, part: FloatArray) -> Any:
        """Send an array to all workers, by the scheduler if they cannot be reached from here."""
        way = {"broadcast": True, "hash": False}
        if self._direct:
            try:
                return self.client.scatter({name: part}, direct=True, **way)[name]
            except LOSSES:
                self._direct = False
        return self.client.scatter({name: part}, direct=False, **way)[name]

    def read_frames(self, function: Callable[..., Any], frame: Any, *rest: Any) -> Read:
        """A function of every partition of a Dask DataFrame, and of its number.

        The graph of the frame makes the partitions whenever they are needed.
        """

        def read() -> list[Any]:
            part = delayed(function, pure=False)
            found = enumerate(frame.to_delayed())
            return list(self.client.compute([part(each, n, *rest) for n, each in found]))

        return read

    def files_frame(self, path: Path) -> Any:
        """Parquet data as a Dask DataFrame."""
        return read_frame(path)

    def threads(self) -> list[str]:
        """Addresses of the workers, each as often as it has threads, the workers in turn."""
        while not (threads := self.client.nthreads()):
            self._patience().await_worker()
        rounds = range(max(threads.values(), default=0))
        return [each for turn in rounds for each, n in sorted(threads.items()) if turn < n]

    def submit(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        worker: str | None = None,
        urgency: int = 0,
    ) -> Any:
        """The future of a function of arguments and futures, if possible at this worker."""
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        named = {"key": self.key(name), "pure": False, "priority": urgency}
        return self.client.submit(function, *arguments, **named, **where)

    def keep(self, name: str, value: Any) -> Any:
        """The future of a value that the scheduler keeps, so that it cannot be lost."""
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.submit(name, itself, value)

    def results(self, futures: Sequence[Any]) -> list[Any]:
        """The results, in order."""
        self.wait(futures)
        return self._persistently(lambda: self._gather(list(futures)))

    def _gather(self, futures: list[Any], **way: bool) -> list[Any]:
        """The results of some work, or an error if no worker is left to do it."""
        work = self.client.gather(futures, asynchronous=True, **way)
        return self._patience().result(work)

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until all are done; raise the first error."""

        def settled() -> None:
            for future in futures:
                if future.status == "error":
                    future.retry()
            self._patience().repeat(partial(distributed.wait, list(futures)))
            for future in futures:
                if future.status != "finished":
                    future.result()

        self._persistently(settled)

    def _patience(self) -> Patience:
        """To wait with for a while from now."""
        return Patience(self.client, self.go_on)

    def _persistently(self, send: Callable[[], Result]) -> Result:
        """Do what needs the workers, again and again if some of them are lost."""
        for _ in range(ATTEMPTS):
            self.go_on()
            try:
                return send()
            except ClusterLost:
                raise
            except LOSSES as error:
                reason = error
            check_scheduler(self.client, reason)
            self._patience().await_worker()
        raise ClusterLost(
            f"Workers were lost {ATTEMPTS} times in a row during one piece of work; see the logs "
            "of the workers, which may be out of memory."
        ) from reason


def checked(client: Any) -> Any:
    """A client that is connected."""
    if client is None:
        try:
            client = distributed.default_client()  # type: ignore[no-untyped-call]
        except ValueError:
            raise ValueError("There is no Dask client; give client=.") from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}.")
    if client.asynchronous:
        raise ValueError("client must be synchronous: make it with asynchronous=False.")
    check_scheduler(client)
    return client


def map_frames(function: Callable[[Any, Any], Any], frame: Any, shared: Any, meta: Any) -> Any:
    """A Dask DataFrame of a function of every partition and of what all `shared`.

    What they share is in the graph once, so it goes to every worker once.
    """
    from dask import dataframe

    kept, part = delayed(shared, pure=False), delayed(function, pure=False)
    parts = [part(each, kept) for each in frame.to_delayed()]
    return dataframe.from_delayed(parts, meta=meta, verify_meta=False)


def read_frame(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Parquet data as a Dask DataFrame; a pattern stands for the files that match it."""
    from dask import dataframe

    found = list(map(str, find_files(path))) if is_pattern(str(path)) else path
    return dataframe.read_parquet(found, columns=columns)


@contextmanager
def connected(scheduler: str | None, n_workers: int | None) -> Iterator[Any]:
    """A client of the cluster at an address, or of a new one of processes on this machine."""
    with silent():
        if scheduler is not None:
            try:
                client = distributed.Client(scheduler)  # type: ignore[no-untyped-call]
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"there is no Dask scheduler at {scheduler}: {reason_of(error)}."
                ) from None
            with client:
                yield client
            return
        with dask.config.set(QUIET):
            with undisturbed():
                cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=n_workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
            with cluster, distributed.Client(cluster) as client:  # type: ignore[no-untyped-call]
                yield client
