"""Skeleton of an engine: a plain loop that works on the last block first.

Copy it to `src/bayesring/engine/`, rename the class, and replace the loops by whatever does the
work: processes, a cluster, a queue. Blocks and tasks can be pickled, and every random number comes
from a stream that the task and the block name together. So all that an engine has to promise is
to return results in the order of its input; who works on what, and when, is up to it.
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
        """Hold BLAS to one thread: sums must not depend on how many it has."""
        one_blas_thread.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put BLAS back."""
        one_blas_thread.__exit__()

    def map_blocks(
        self, operation: Callable[[Task, Block], Result], task: Task, blocks: Blocks
    ) -> Iterable[Result]:
        """`operation` on every block."""
        return self.map_pieces(lambda block: operation(task, block), blocks)

    def map_chains(self, work: Callable[[Item], Result], chains: Sequence[Item]) -> list[Result]:
        """Run `work` on every chain; the first failure ends the loop and so stops the rest."""
        return self.map_pieces(work, chains)

    def map_pieces(self, work: Callable[[Item], Result], pieces: Sequence[Item]) -> list[Result]:
        """Run `work` on every piece, the last one first."""
        results = [work(piece) for piece in reversed(pieces)]
        return results[::-1]
