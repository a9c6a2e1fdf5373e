"""Progress bars: one per chain with scan, rank, noise and error; one for work in steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
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
from bayesring.infer.state import LookReport, ScanReport

PATIENCE = 1.0
"""Seconds before anything is shown, so that quick fits stay quiet."""
STEP_PATIENCE = 2.0
"""The same for work in steps, such as a report."""
REFRESH = 0.1
"""Seconds between two updates of a bar."""


class ChainProgress:
    """Receives and shows reports from chains in any thread."""

    def __init__(self, chains: int, warmup: int | None, draws: int | None) -> None:
        scans = None if warmup is None or draws is None else warmup + draws
        self._bars = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            refresh_per_second=8,
        )
        self._tasks = [
            self._bars.add_task(f"chain {chain + 1}", total=scans, shown="")
            for chain in range(chains)
        ]
        self._scans = scans
        self._begin = time.monotonic()
        self._last = [0.0] * chains
        self._lock = threading.Lock()
        self._started = False

    def __call__(self, report: ScanReport) -> None:
        """Show one report unless the bar was updated a moment ago."""
        now = time.monotonic()
        last_scan = report.scan == self._scans
        if now - self._begin < PATIENCE or (
            now - self._last[report.chain] < REFRESH and not last_scan
        ):
            return
        self._last[report.chain] = now
        with self._lock:
            if not self._started:
                self._bars.start()
                self._started = True
        rank = "x".join(map(str, report.rank))
        numbers = "  ".join(f"{name} {number:.3g}" for name, number in report.described.items())
        self._bars.update(
            self._tasks[report.chain],
            completed=report.scan,
            shown=f"{report.stage:8}  rank {rank}  {numbers}",
        )

    def stop(self) -> None:
        """Leave the last state on the screen."""
        if self._started:
            self._bars.stop()


@contextmanager
def chain_progress(
    show: bool, chains: int, warmup: int | None, draws: int | None
) -> Iterator[ChainProgress | None]:
    """Progress bars during a fit, or None; prints a note if kernels must be compiled first."""
    if not show:
        yield None
        return
    if not compiled():
        Console(stderr=True).print("Compiling kernels, once on this machine: about 15 seconds.")
    bars = ChainProgress(chains, warmup, draws)
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
        rank = "x".join(str(progress.size.strands * bond) for bond in progress.size.bonds)
        bars.update(
            tasks[key],
            shown=f"rank {rank}  {progress.rows:,} rows, {progress.rows / n_rows:.1f} passes, "
            f"{progress.rows / seconds:,.0f} rows/s  held-out loss {progress.loss:.4g}",
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


def say(notes: Iterable[str]) -> None:
    """Print messages where progress is shown."""
    console = Console(stderr=True)
    for note in notes:
        console.print(note, markup=False, highlight=False)
