"""A progress bar for one download."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class DownloadProgress:
    """A bar for one download, shown once it begins, with the interface that pooch expects."""

    def __init__(self, name: str) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(name, total=None)
        self.total = 0

    def __enter__(self) -> Self:
        """Show nothing yet: the file may already be there."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last state on the screen."""
        self._bar.stop()

    def update(self, n_bytes: int) -> None:
        """Record that more bytes have arrived."""
        self._bar.start()
        self._bar.update(self._task, total=self.total or None, advance=n_bytes)

    def reset(self) -> None:
        """Restart the count."""
        self._bar.reset(self._task, total=self.total or None)

    def close(self) -> None:
        """Finish the bar."""
        self._bar.stop()
