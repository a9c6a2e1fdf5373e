"""Skeleton of an engine: a plain loop that processes the last block first.

Copy it to `src/bayesring/engine/`, rename the class, and replace the loops with whatever does the
work: processes, a cluster, a queue. Blocks and tasks can be pickled, and every random number comes
from a stream identified by the task and the block. An engine only has to return results in input
order; it is free to decide where and when each piece is processed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from bayesring.data.blocks import Block
from bayesring.engine.protocol import Blocks, Engine, Item, Result, Task
from bayesring.engine.threads import one_blas_thread


class LastFirst(Engine):
    """One thread, last piece first, results in order."""

    n_jobs = 1

    def __enter__(self) -> Self:
        """Limit BLAS to one thread, so that sums do not depend on its number of threads."""
        one_blas_thread.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the number of BLAS threads."""
        one_blas_thread.__exit__()

    def map_blocks(
        self, operation: Callable[[Task, Block], Result], task: Task, blocks: Blocks
    ) -> Iterable[Result]:
        """Run `operation` on every block."""
        return self.map_pieces(lambda block: operation(task, block), blocks)

    def map_chains(self, work: Callable[[Item], Result], chains: Sequence[Item]) -> list[Result]:
        """Run `work` on every chain; the first failure ends the loop and stops the rest."""
        return self.map_pieces(work, chains)

    def map_pieces(self, work: Callable[[Item], Result], pieces: Sequence[Item]) -> list[Result]:
        """Run `work` on every piece, the last one first."""
        results = [work(piece) for piece in reversed(pieces)]
        return results[::-1]
