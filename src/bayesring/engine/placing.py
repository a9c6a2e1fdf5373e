"""Blocks that live on the workers of a cluster, as this process sees them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from bayesring.data.blocks import Block
from bayesring.engine.gradients import BatchSums, GradientTask, Node
from bayesring.engine.protocol import Result
from bayesring.engine.remoterows import CodedLane, LaneWork, SentRows, sum_parts
from bayesring.engine.spread import Spread
from bayesring.engine.threads import one_blas_thread
from bayesring.model.types import NOTHING, FloatArray

NO_CORE: FloatArray = np.empty(0)


class HeldGroup(NamedTuple):
    """Consecutive blocks of a mode that live on one worker."""

    heads: tuple[Block, ...]
    """The blocks without their observations."""
    blocks: Any
    """Future of the blocks."""
    kept: tuple[Block, ...] | None = None
    """The blocks, if they came from this process; otherwise Dask itself can make them again."""


class Placed(Sequence[Block]):
    """The blocks of a mode on a cluster: here are their bounds, there the observations."""

    def __init__(self, groups: Sequence[HeldGroup], source: Spread | None = None) -> None:
        self.groups, self.source = list(groups), source
        self._heads = tuple(head for group in groups for head in group.heads)

    @property
    def kept(self) -> list[Block]:
        """All blocks that came from this process."""
        return [block for group in self.groups for block in group.kept or ()]

    @overload
    def __getitem__(self, place: int) -> Block: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Block, ...]: ...

    def __getitem__(self, place: int | slice) -> Block | tuple[Block, ...]:
        return self._heads[place]

    def __len__(self) -> int:
        return len(self._heads)


class Sent(NamedTuple):
    """The cores that the workers have of a chain."""

    parts: list[FloatArray]
    futures: list[Any]

    def future_of(self, place: int, part: FloatArray) -> Any:
        """The future of a part that the workers have already, or None."""
        known = place < len(self.parts) and getattr(self.futures[place], "status", "") == "finished"
        return self.futures[place] if known and np.array_equal(self.parts[place], part) else None


def stripped(task: Any) -> tuple[Any, list[FloatArray]]:
    """A task without its ring, the cores of the ring, and the core to be drawn, if any."""
    flat, core = task.flat, getattr(task, "core", NO_CORE)
    parts = [*np.split(flat.flat, flat.starts[1:]), core]
    bare = task._replace(flat=flat._replace(flat=flat.flat[:0]))
    return (bare if core is NO_CORE else bare._replace(core=NO_CORE)), parts


def without_rows(block: Block) -> Block:
    """A block without its observations."""
    nothing = np.empty((0, 0), dtype=np.int32)
    return block._replace(others=nothing, values=np.empty(0), given=NOTHING)


def work(blocks: Iterable[Block], packed: bytes, parts: Sequence[FloatArray]) -> bytes:
    """Run an operation on every block of a group; runs on a worker.

    `packed` are the operation and its task, `parts` the weighted cores of the ring, and the core to
    be drawn, if that is needed. Results go back in one piece: Dask would send each array alone.
    """
    operation, task = pickle.loads(packed)
    *cores, core = parts
    whole = task._replace(flat=task.flat._replace(flat=np.concatenate(cores)))
    if hasattr(task, "core"):
        whole = whole._replace(core=core)
    with one_blas_thread:
        return pickle.dumps([operation(whole, block) for block in blocks], protocol=5)


def work_on_batch(
    held: Sequence[CodedLane],
    job: LaneWork | SentRows,
    nodes: Sequence[Node],
    task: GradientTask,
    parts: Sequence[FloatArray],
) -> list[BatchSums | None]:
    """Sums over some blocks of a large batch; runs on a worker."""
    whole = task._replace(flat=task.flat._replace(flat=np.concatenate(parts[:-1])))
    with one_blas_thread:
        return sum_parts(held, job, whole, nodes)


def itself(value: Result) -> Result:
    """Return what was given."""
    return value
