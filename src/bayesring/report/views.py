"""Pictures of a fitted model, named after the methods that show them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bayesring.report import cells, page, summary
from bayesring.report.contents import MAP_BINS, MOST_ALIKE
from bayesring.report.fitted import Fitted

MOST_SHOWN = 400
"""Maximum number of levels along a side of a slice; longer modes are thinned."""


def report(fitted: Fitted, path: str | os.PathLike[str], progress: bool) -> Path:
    """Write a single offline HTML page: data, findings, checks, slices, settings."""
    return page.write_page(fitted, path, progress)


def plot_slice(
    fitted: Fitted,
    at: Mapping[str | int, Any] | None,
    rows: str | int | None,
    columns: str | int | None,
) -> Any:
    """Observed values, completed values and error bars over two modes, as a Figure.

    Parameters
    ----------
    at : label of each other mode, by mode name or number; defaults to the best observed level
    rows, columns : modes by name or number; default to the two longest
    """
    axes = _axes(fitted, rows, columns, [fitted.mode(name) for name in at or {}])
    chosen = {fitted.mode(name): label for name, label in (at or {}).items()}
    levels = []
    for mode, counts in enumerate(fitted.counts()):
        if mode in axes:
            levels.append(cells.choose_levels(counts, MOST_SHOWN))
        elif mode in chosen:
            levels.append(np.array([fitted.level(mode, chosen[mode])]))
        else:
            levels.append(np.array([np.argmax(counts)]))
    part = cells.part(fitted.posterior, fitted.observed, levels, noise=not fitted.is_binary)
    return _figures().plot_slice(fitted, part, *axes)


def plot_trace(fitted: Fitted) -> Any:
    """Noise, training error and log likelihood over the scans, as a Figure."""
    return _figures().plot_trace(fitted)


def plot_rank(fitted: Fitted, ax: Any = None) -> Any:
    """Rank of every bond over the scans; returns the Axes."""
    return _figures().plot_rank(fitted, ax)


def plot_calibration(fitted: Fitted, ax: Any = None) -> Any:
    """Calibration of intervals or probabilities on held-out values; returns the Axes."""
    if fitted.held_out is None:
        raise ValueError(
            "nothing was held out to check intervals with: this needs at least 500 observations."
        )
    if fitted.is_binary:
        found = summary.reliability(fitted.held_out.values, fitted.held_out.mean)
        return _figures().plot_reliability(found, ax)
    calibration = summary.calibration(fitted.held_out, fitted.posterior.likelihood)
    return _figures().plot_calibration(calibration, ax)


def plot_density(
    fitted: Fitted, rows: str | int | None = None, columns: str | int | None = None, ax: Any = None
) -> Any:
    """Share of known cells over two modes, by default the two longest; returns the Axes."""
    if fitted.observed is None:
        raise ValueError("the model file holds no observations, because there were too many.")
    modes = _axes(fitted, rows, columns, [])
    known = summary.distinct_cells(fitted.observed)
    shares = summary.pair_density(known, fitted.shape, modes, MAP_BINS)
    return _figures().plot_density(fitted, modes, shares, ax)


def plot_similarity(fitted: Fitted, mode: str | int, ax: Any = None) -> Any:
    """Similarity of the levels of a mode, from their predictions; returns the Axes."""
    number = fitted.mode(mode)
    levels = cells.choose_levels(fitted.counts()[number], MOST_ALIKE)
    found = cells.likeness(fitted.posterior, number, levels, fitted.seed)
    return _figures().plot_similarity(fitted, number, found, ax)


def _axes(
    fitted: Fitted, rows: str | int | None, columns: str | int | None, fixed: list[int]
) -> tuple[int, int]:
    """Indices of the two modes to show: the requested ones, or natural defaults."""
    asked = [None if name is None else fitted.mode(name) for name in (rows, columns)]
    taken = {*fixed, *(mode for mode in asked if mode is not None)}
    order = [*cells.default_axes(fitted.shape), *range(len(fitted.shape))]
    free = iter(dict.fromkeys(mode for mode in order if mode not in taken))
    chosen = [next(free, -1) if mode is None else mode for mode in asked]
    first, second = sorted(chosen) if asked == [None, None] else chosen
    if first == second or -1 in (first, second) or {first, second} & set(fixed):
        raise ValueError("a slice needs two different modes as rows and columns.")
    return first, second


def _figures() -> Any:
    """The drawing module; raises an error that says what it needs."""
    try:
        return import_module("bayesring.report.figures")
    except ImportError:
        raise ImportError("Pictures need matplotlib: pip install 'bayesring[plot]'.") from None
