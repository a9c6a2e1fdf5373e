"""Interface of an engine, which maps operations over blocks, chains and other pieces of work.

Everything that runs a kernel on observations goes through an engine. The engine decides where
blocks are kept and processed, which never affects a result: results are returned in block order and
summed in that order. A new engine defines the mapping and inherits the operations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from bayesring.data import splitting
from bayesring.data.batches import Batch, Chunk
from bayesring.data.blocks import Block, blocks_of_modes, observations_of
from bayesring.data.splitting import Held
from bayesring.engine import gradients, operations
from bayesring.engine.gradients import BatchSums, GradientTask
from bayesring.engine.operations import (
    CoreTask,
    Drawn,
    DrawnRuns,
    LooseEnd,
    StatisticsTask,
    Update,
)
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import gradient as gradient_kernel
from bayesring.kernels import manydraws as draws_kernel
from bayesring.kernels import slices as slices_kernel
from bayesring.kernels.adam import FIRST, SECOND, TINY
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray, IntArray

__all__ = ["FIRST", "SECOND", "TINY", "Blocks", "Engine", "Item", "Result", "Task"]

SPARSE = 6
"""Cells of a table of slices per cell asked for, up to which all of it is worked out."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = TypeVar("Task")

Blocks = Sequence[Block]
"""Blocks of one mode as stored by an engine; other code reads only `number`, `first`, `is_part` and
`bounds`."""


class Engine(ABC):
    """Runs the work. A context manager: its resources live as long as it is open."""

    n_jobs: int
    """Number of pieces processed at the same time."""

    @property
    def n_local(self) -> int:
        """Number of pieces that this process itself can work on at the same time."""
        return self.n_jobs

    def __enter__(self) -> Self:
        """Acquire resources."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release resources."""
        return

    def place(self, blocks: tuple[Block, ...]) -> Blocks:
        """Place the blocks of a mode where they will be processed."""
        return blocks

    def lay_out(
        self, data: Any, block_size: int | None, cut: Sequence[bool]
    ) -> tuple[tuple[Blocks, ...], tuple[IntArray, ...]]:
        """Cut data into the blocks of every mode and place them; also counts of every slice.

        Whoever calls has given the data away, so that they can be released.
        """
        shape, handed = data.shape, [data]
        del data
        blocks = blocks_of_modes(handed.pop(), block_size, cut)
        counts = []
        for n_slices, own in zip(shape, blocks, strict=True):
            of_mode = np.zeros(n_slices, dtype=np.int64)
            for block in own:
                of_mode[block.slices] += np.diff(block.bounds)
            counts.append(of_mode)
        return tuple(self.place(each) for each in blocks), tuple(counts)

    def hold_out(self, data: Any, seed: int) -> tuple[Any, Held | None]:
        """Data to fit, and data held out, see `bayesring.data.splitting.hold_out`."""
        return splitting.hold_out(data, seed)

    def take_back(self, views: list[Blocks], shape: tuple[int, ...]) -> Any:
        """The data of the blocks of the first mode, which are taken off `views`."""
        return observations_of(views.pop(), shape)

    def rejoin(self, explored: Any, held: Held) -> Any:
        """The data before some were held out."""
        return splitting.rejoin(explored, held)

    @abstractmethod
    def map_blocks(
        self, operation: Callable[[Task, Block], Result], task: Task, blocks: Blocks
    ) -> Iterable[Result]:
        """Run `operation` on every block, with results in block order."""

    @abstractmethod
    def map_chains(self, work: Callable[[Item], Result], chains: Sequence[Item]) -> list[Result]:
        """Run `work`, which may map blocks, on every chain; the first failure stops them all."""

    @abstractmethod
    def map_pieces(self, work: Callable[[Item], Result], pieces: Sequence[Item]) -> list[Result]:
        """Run `work`, which maps no blocks, on independent pieces."""

    def go_on(self) -> None:
        """Called between short pieces of work: raises if the work was cancelled."""
        return

    # ---- Operations.

    def draw(self, update: Update, task: CoreTask, blocks: Blocks) -> Iterable[Drawn]:
        """Slices of every block, each drawn alone."""
        return self.map_blocks(update.draw, task, blocks)

    def draw_runs(
        self, task: CoreTask, blocks: Blocks
    ) -> Iterable[tuple[list[DrawnRuns], list[LooseEnd]]]:
        """The task's runs, block by block, each drawn jointly; loose ends of those between."""
        return self.map_blocks(operations.draw_runs, task, blocks)

    def draw_run(
        self, task: CoreTask, mode: int, first: int, statistics: FloatArray, noise: FloatArray
    ) -> list[DrawnRuns]:
        """A run that several blocks share, from the statistics of its slices."""
        return operations.draw_run(task, mode, first, statistics, noise)

    def statistics(self, task: StatisticsTask, blocks: Blocks) -> FloatArray:
        """The likelihood's statistics, summed in block order."""
        first, *rest = self.map_blocks(operations.statistics, task, blocks)
        return np.asarray(sum(rest, first))

    def entries(self, flat: FlatRing, columns: IntArray) -> FloatArray:
        """f at the cells whose indices are the first D of `columns` (D or more, n) int32."""
        others = columns[1 : flat.bonds.size]
        return np.asarray(entries_kernel.entries(*flat, 0, columns[0], others))

    def draw_slice(
        self, task: CoreTask, block: Block, statistics: FloatArray, noise: FloatArray, totals: Any
    ) -> FloatArray:
        """Draw a slice that spans several blocks from its summed statistics."""
        prior, own = task.slice_prior, slice(block.first, block.first + 1)
        diagonal, linear, factors = prior.rows(own)
        return np.asarray(
            slices_kernel.draw_slice(
                statistics,
                task.flat.bonds[block.mode],
                task.weights,
                prior.precision if factors[0] == 1.0 else factors[0] * prior.precision,
                diagonal,
                linear,
                noise,
                *totals,
            )
        )

    def draw_gaussian(
        self, precision: FloatArray, linear: FloatArray, noise: FloatArray
    ) -> FloatArray | None:
        """Draw from N(P^-1 h, P^-1); None if P is not positive definite."""
        drawn = np.empty(linear.size)
        return drawn if slices_kernel.draw_gaussian(precision, linear, noise, drawn) else None

    def learn(self, *arguments: Any) -> FloatArray:
        """One step of online EM on a batch, see `kernels.gradient.learn`."""
        self.go_on()
        return np.asarray(gradient_kernel.learn(*arguments))

    def add_gradient(self, *arguments: Any) -> None:
        """Gradient and curvature of a batch, see `kernels.gradient.add_gradient`."""
        self.go_on()
        gradient_kernel.add_gradient(*arguments)

    def batch_sums(self, task: GradientTask, batch: Batch) -> BatchSums:
        """Gradient, curvature and statistics of a large batch, added along its tree of blocks."""
        assert isinstance(batch, Chunk), "rows elsewhere need the engine that has them"

        def of_block(node: gradients.Node) -> BatchSums | None:
            self.go_on()
            return gradients.rows_sums(task, batch.block(node[0]))

        found = gradients.tree_sum((0, len(batch.cuts) - 1), of_block)
        assert found is not None, "a batch has rows"
        return found

    def step(self, *arguments: Any) -> FloatArray:
        """Adam's step on the slices of a mode, see `kernels.gradient.step`."""
        return np.asarray(gradient_kernel.step(*arguments))

    # ---- Predictions.

    def entries_of_draws(
        self, rings: FlatRing, cells: IntArray, first: int, out: FloatArray
    ) -> None:
        """f at cells for every draw of `rings`, whose `flat` is (draws, N), to `out` (n, draws).

        `cells` (n, D) are best sorted by mode `first` and those that follow it around the ring.
        """
        around = [(first + step) % cells.shape[1] for step in range(cells.shape[1])]
        rows, row_of = _distinct(cells[:, around[:-1]])
        columns, column_of = np.unique(cells[:, around[-1]], return_inverse=True)
        if len(rows) * len(columns) <= SPARSE * len(cells):
            places = np.stack([row_of, column_of])
            draws_kernel.entries_of_table(*rings, first, rows, columns, places, out)
            return
        found = [np.unique(own, return_inverse=True) for own in cells.T]
        levels = np.concatenate([own for own, _ in found])
        ends = np.cumsum([len(own) for own, _ in found])
        places = np.stack([found[mode][1] for mode in around]).astype(np.int32)
        draws_kernel.entries_apart(*rings, first, levels, ends, places, out)

    def moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of every row of an array, (n,) each."""
        mean, variance = draws_kernel.moments(np.ascontiguousarray(rows, dtype=np.float64))
        return mean, variance


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Rows that differ from the one before, and the number of its own for every row."""
    new = np.ones(len(rows), dtype=bool)
    new[1:] = np.any(rows[1:] != rows[:-1], axis=1)
    return np.ascontiguousarray(rows[new]), np.cumsum(new) - 1
