"""Pictures, report and notebook view as methods, for every class that holds a fitted model.

What draws them is loaded on first use: nothing below the estimator imports `report`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


class Reporting:
    """Methods of a class that has `_parts`; pictures need matplotlib."""

    def _parts(self) -> Mapping[str, Any]:
        """The model taken apart, by the fields of `bayesring.report.fitted.Fitted`."""
        raise NotImplementedError

    def _fitted(self) -> Any:
        return import_module("bayesring.report.fitted").Fitted(**self._parts())

    def _view(self, name: str, *arguments: Any) -> Any:
        return getattr(import_module("bayesring.report.views"), name)(self._fitted(), *arguments)

    def _brief(self) -> str:
        return str(import_module("bayesring.report.brief").brief(self._fitted()))

    def report(
        self, path: str | os.PathLike[str] = "report.html", *, progress: bool = True
    ) -> Path:
        """Write one HTML page that needs no network: data, findings, checks, slices, settings."""
        return Path(self._view("report", path, progress))

    def plot_slice(
        self,
        at: Mapping[str | int, Any] | None = None,
        *,
        rows: str | int | None = None,
        columns: str | int | None = None,
    ) -> Any:
        """Observed values, completed values and error bars over two modes, as a Figure.

        Parameters
        ----------
        at : label of each other mode, by name or number; the best observed level if not given
        rows, columns : modes by name or number; the two longest if not given
        """
        return self._view("plot_slice", at, rows, columns)

    def plot_trace(self) -> Any:
        """Noise, training error and log likelihood over the scans, as a Figure."""
        return self._view("plot_trace")

    def plot_rank(self, ax: Any = None) -> Any:
        """Rank of every bond over the scans; returns the Axes."""
        return self._view("plot_rank", ax)

    def plot_calibration(self, ax: Any = None) -> Any:
        """Whether intervals, or probabilities, hold on held-out values; returns the Axes."""
        return self._view("plot_calibration", ax)

    def plot_density(
        self, rows: str | int | None = None, columns: str | int | None = None, ax: Any = None
    ) -> Any:
        """Share of known cells over two modes, the two longest if not given; returns the Axes."""
        return self._view("plot_density", rows, columns, ax)

    def plot_similarity(self, mode: str | int, ax: Any = None) -> Any:
        """Which levels of a mode are alike, by their predictions; returns the Axes."""
        return self._view("plot_similarity", mode, ax)
