"""Progress bars: one per chain with scan, rank, noise and error; one for work in steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from bayesring.engine.operations import compiled
from bayesring.infer.length import Stage
from bayesring.infer.state import LookReport, ScanReport

DRAWING = Stage.DRAW.value
PATIENCE = 1.0
"""Seconds before anything is shown, so that quick fits stay quiet."""
STEP_PATIENCE = 2.0
"""The same for work in steps, such as a report."""
REFRESH = 0.1
"""Seconds between two updates of a bar."""
BAR, SHOWN = 16, 26
"""Columns of a bar, and of what is told beside it; the whole line then fits into 80."""
WARMUP, DRAWS = "warm-up", "draws  "


class ChainProgress:
    """Receives and shows reports from chains in any thread, on lines of at most 80 columns."""

    def __init__(
        self,
        chains: int,
        scans: int | None,
        warmup: int | None,
        console: Console | None = None,
    ) -> None:
        """`scans` and `warmup` are None if only the chains will tell how many they are."""
        self._bars = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=BAR),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(compact=True),
            console=console or Console(stderr=True),
            refresh_per_second=8,
        )
        self._tasks = [
            self._bars.add_task(f"chain {chain + 1} {WARMUP}", total=warmup, shown="")
            for chain in range(chains)
        ]
        self._scans, self._warmup = scans, warmup
        self._begin = time.monotonic()
        self._last = [0.0] * chains
        self._drawing, self._begins = [False] * chains, [0] * chains
        self._lock = threading.Lock()
        self._started = False

    def __call__(self, report: ScanReport) -> None:
        """Show one report unless the bar was updated a moment ago."""
        now = time.monotonic()
        chain, warmup = report.chain, self._warmup
        if now - self._begin < PATIENCE or (
            now - self._last[chain] < REFRESH and report.scan not in (warmup, self._scans)
        ):
            return
        self._last[chain] = now
        with self._lock:
            if not self._started:
                self._bars.start()
                self._started = True
        drawing = report.stage == DRAWING or (warmup is not None and report.scan > warmup)
        if drawing and not self._drawing[chain]:
            self._drawing[chain] = True
            self._begins[chain] = report.scan - 1 if warmup is None else warmup
            total = None if self._scans is None or warmup is None else self._scans - warmup
            self._bars.reset(self._tasks[chain])
            self._bars.tasks[chain].total = total  # which may be None, and `reset` ignores that
        self._bars.update(
            self._tasks[chain],
            completed=report.scan - self._begins[chain],
            description=f"chain {chain + 1} {DRAWS if drawing else WARMUP}",
            shown=shortened([_rank(report.rank), *_numbers(report.described)], SHOWN),
        )

    def stop(self) -> None:
        """Leave the last state on the screen."""
        if self._started:
            self._bars.stop()


def shortened(parts: Iterable[str], width: int) -> str:
    """As many of the parts, from the first on, as fit into a width."""
    found = ""
    for part in parts:
        longer = f"{found}  {part}" if found else part
        if len(longer) > width:
            break
        found = longer
    return found


def _rank(rank: tuple[int, ...]) -> str:
    low, high = min(rank), max(rank)
    return f"rank {low}" if low == high else f"rank {low}-{high}"


def _numbers(described: Mapping[str, float]) -> list[str]:
    return [f"{name} {number:.3g}" for name, number in described.items()]


@contextmanager
def chain_progress(
    show: bool, chains: int, scans: int | None, warmup: int | None
) -> Iterator[ChainProgress | None]:
    """Progress bars during a fit, or None; prints a note if kernels must be compiled first."""
    if not show:
        yield None
        return
    if not compiled():
        Console(stderr=True).print("Compiling kernels, once on this machine: about 15 seconds.")
    bars = ChainProgress(chains, scans, warmup)
    try:
        yield bars
    finally:
        bars.stop()


@contextmanager
def learning_progress(show: bool, n_rows: int) -> Iterator[Callable[[LookReport], None] | None]:
    """Status line while rings learn (rows, rows per second, held-out error), or None."""
    if not show:
        yield None
        return
    bars = RichProgress(
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[shown]}"),
        console=Console(stderr=True),
        refresh_per_second=4,
    )
    tasks: dict[tuple[int, int], TaskID] = {}
    begin, lock = time.monotonic(), threading.Lock()

    def report(progress: LookReport) -> None:
        if time.monotonic() - begin < PATIENCE:
            return
        key = (progress.ring, progress.size.strands)
        with lock:
            if not tasks:
                bars.start()
            if key not in tasks:
                tasks[key] = bars.add_task(f"ring {progress.ring + 1}", total=None, shown="")
        seconds = max(time.monotonic() - begin, 1e-9)
        rank = _rank(tuple(progress.size.strands * bond for bond in progress.size.bonds))
        bars.update(
            tasks[key],
            shown=f"{rank}  {progress.rows / n_rows:.1f} passes  "
            f"{progress.rows / seconds:,.0f} rows/s  loss {progress.loss:.4g}",
        )

    try:
        yield report
    finally:
        if tasks:
            bars.stop()


@contextmanager
def survey_progress(show: bool, n_rows: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for the first pass over `n_rows` rows, or None."""
    if not show:
        yield None
        return
    bar = RichProgress(
        TextColumn("reading labels"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    task = bar.add_task("", total=n_rows)
    begin = time.monotonic()

    def report(done: int, _: int) -> None:
        bar.update(task, completed=done)
        if time.monotonic() - begin > STEP_PATIENCE:
            bar.start()

    try:
        yield report
    finally:
        bar.stop()


@contextmanager
def step_progress(show: bool, steps: int) -> Iterator[Callable[[str], None]]:
    """A bar for work in steps; call the yielded function with the name of each step."""
    bar = RichProgress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=steps)
    begin = time.monotonic()
    started = False

    def step(name: str) -> None:
        nonlocal started
        if show and not started and time.monotonic() - begin > STEP_PATIENCE:
            bar.start()
            started = True
        bar.update(task, description=name, advance=1)

    try:
        yield step
    finally:
        if started:
            bar.stop()


@contextmanager
def cell_progress(show: bool, cells: int) -> Iterator[Callable[[int], None] | None]:
    """A bar for predictions of so many cells, told how many more are done, or None.

    It appears when two seconds have passed, with an estimate of those that remain.
    """
    if not show:
        yield None
        return
    bar: RichProgress | None = None
    begin, done, lock = time.monotonic(), 0, threading.Lock()

    def report(more: int) -> None:
        nonlocal bar, done
        with lock:
            done += more
            if bar is None and time.monotonic() - begin > STEP_PATIENCE:
                bar = RichProgress(
                    TextColumn("predicting"),
                    BarColumn(bar_width=24),
                    TextColumn("{task.completed:,} of {task.total:,} cells"),
                    TimeRemainingColumn(compact=True),
                    console=Console(stderr=True),
                    transient=True,
                )
                bar.add_task("", total=cells)
                bar.start()
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def say(notes: Iterable[str]) -> None:
    """Print messages where progress is shown."""
    console = Console(stderr=True)
    for note in notes:
        console.print(note, markup=False, highlight=False)
