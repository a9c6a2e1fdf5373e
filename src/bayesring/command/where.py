"""Where a command runs: here, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster at this address."),
]
LocalCluster = Annotated[
    int | None,
    typer.Option("--local-cluster", metavar="N", help="Run on N worker processes of this machine."),
]


class Where(NamedTuple):
    """The cluster that a command was asked to run on, if any."""

    scheduler: Scheduler = None
    local_cluster: LocalCluster = None

    def __bool__(self) -> bool:
        return self.scheduler is not None or self.local_cluster is not None

    def open(self) -> Any:
        """A client, as a context."""
        if self.scheduler is not None and self.local_cluster is not None:
            raise ValueError("--scheduler and --local-cluster exclude each other; give one.")
        if self.local_cluster is not None and self.local_cluster < 1:
            raise ValueError(f"--local-cluster must be at least 1, got {self.local_cluster}.")
        try:
            from bayesring.engine.dask import connected
        except ImportError:
            raise ImportError("clusters need Dask: pip install 'bayesring[dask]'.") from None
        return connected(self.scheduler, self.local_cluster)

    def instead_of(self, work: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """The work of a command, or what does the same on the cluster."""
        if not self:
            return work
        from bayesring.command import clusters

        return partial(getattr(clusters, work.__name__), self)
