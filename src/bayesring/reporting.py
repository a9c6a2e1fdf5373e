"""Pictures, report and notebook view as methods for classes that hold a fitted model.

The drawing code is loaded on first use: nothing below the estimator imports `report`.
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
        """The parts of the model, keyed by the fields of `bayesring.report.fitted.Fitted`."""
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
        """Write a single offline HTML page: data, findings, checks, slices, settings.

        Returns
        -------
        pathlib.Path
            The file that was written.

        Examples
        --------
        >>> import os, tempfile
        >>> page = ring.report(os.path.join(tempfile.mkdtemp(), "report.html"), progress=False)
        >>> page.suffix
        '.html'
        """
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
        at : label of each other mode, by mode name or number; defaults to the best observed level
        rows, columns : modes by name or number; default to the two longest

        Returns
        -------
        matplotlib.figure.Figure
            Three pictures side by side.

        Examples
        --------
        >>> figure = ring.plot_slice({2: 0})    # the slice at the first label of the third mode
        >>> len(figure.axes) >= 3
        True
        """
        return self._view("plot_slice", at, rows, columns)

    def plot_trace(self) -> Any:
        """Noise, training error and log likelihood over the scans, as a Figure.

        Returns
        -------
        matplotlib.figure.Figure
            One picture per quantity.

        Examples
        --------
        >>> len(ring.plot_trace().axes) >= 2
        True
        """
        return self._view("plot_trace")

    def plot_rank(self, ax: Any = None) -> Any:
        """Rank of every bond over the scans; returns the Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Examples
        --------
        >>> axes = ring.plot_rank()
        >>> type(axes).__name__
        'Axes'
        """
        return self._view("plot_rank", ax)

    def plot_calibration(self, ax: Any = None) -> Any:
        """Calibration of intervals or probabilities on held-out values; returns the Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Examples
        --------
        >>> many = np.argwhere(np.ones((9, 9, 8)))    # 500 observations, so that some are held out
        >>> longer = settings | {"warmup": 80}
        >>> held = TensorRing(1, **longer).fit(many, np.sin(many.sum(axis=1)) + 0.1 * many[:, 0])
        >>> type(held.plot_calibration()).__name__
        'Axes'
        """
        return self._view("plot_calibration", ax)

    def plot_density(
        self, rows: str | int | None = None, columns: str | int | None = None, ax: Any = None
    ) -> Any:
        """Share of known cells over two modes, by default the two longest; returns the Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Examples
        --------
        >>> axes = ring.plot_density(0, 1)
        >>> type(axes).__name__
        'Axes'
        """
        return self._view("plot_density", rows, columns, ax)

    def plot_similarity(self, mode: str | int, ax: Any = None) -> Any:
        """Similarity of the levels of a mode, from their predictions; returns the Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Examples
        --------
        >>> axes = ring.plot_similarity(0)
        >>> type(axes).__name__
        'Axes'
        """
        return self._view("plot_similarity", mode, ax)
