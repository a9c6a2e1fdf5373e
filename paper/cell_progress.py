"""A progress bar over cells of unequal cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class CellProgress:
    """A bar over cells of unequal cost, with the time left and a line for each finished cell."""

    def __init__(self, costs: Sequence[float], jobs: int) -> None:
        self._bar = RichProgress(
            TextColumn("{task.fields[cells]} cells"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._number, self._total = len(costs), sum(costs)
        self._jobs, self._done, self._spent = jobs, 0, 0.0
        self._begin = time.monotonic()
        self._task = self._bar.add_task("", total=self._total, cells="", left="")

    def begin(self, name: str) -> None:
        """Record the start of a cell."""
        self._bar.start()
        self._show(name)

    def done(self, name: str, cost: float, found: str) -> None:
        """Record a finished cell; `found` describes its result."""
        self._done += 1
        self._spent += cost
        self._bar.console.print(f"{name}: {found}", markup=False, highlight=False, soft_wrap=True)
        self._show()

    def stop(self) -> None:
        """Remove the bar; the lines stay."""
        self._bar.stop()

    def seconds_left(self) -> float:
        """Expected cost of the remaining cells, scaled by how long the others took."""
        elapsed = time.monotonic() - self._begin
        pace = elapsed / self._spent if self._spent else 1.0 / self._jobs
        return (self._total - self._spent) * pace

    def _show(self, name: str | None = None) -> None:
        left = f"about {_duration(self.seconds_left())} left"
        self._bar.update(
            self._task,
            completed=self._spent,
            description=name,
            cells=f"{self._done}/{self._number}",
            left=left,
        )


def _duration(seconds: float) -> str:
    """A duration as text: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class NoCellProgress:
    """The same calls, without a bar."""

    def begin(self, name: str) -> None:
        """Say nothing."""

    def done(self, name: str, cost: float, found: str) -> None:
        """Say nothing."""


@contextmanager
def cell_progress(
    show: bool, costs: Sequence[float], jobs: int
) -> Iterator[CellProgress | NoCellProgress]:
    """A bar over cells during a run, if there are any and a bar is requested."""
    if not show or not costs:
        yield NoCellProgress()
        return
    bar = CellProgress(costs, jobs)
    try:
        yield bar
    finally:
        bar.stop()
