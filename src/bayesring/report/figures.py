"""Matplotlib pictures: the numbers of the report in, axes or figures out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesring.data.writing import replacing
from bayesring.model.types import FloatArray
from bayesring.report import summary
from bayesring.report.cells import Likeness, Part
from bayesring.report.colours import CORRELATIONS, ERRORS, LINES, SHARES, VALUES
from bayesring.report.fitted import Fitted
from bayesring.report.summary import Calibration, Reliability

STYLES = ("-", "--", ":", "-.")
"""Line styles that distinguish chains without colour."""
DPI = 110
N_TICKS = 8
MOST_TICKS = 40


def plot_slice(fitted: Fitted, part: Part, rows: int, columns: int) -> Figure:
    """Observed values, completed values and error bars over two modes; others have one level."""
    others = tuple(mode for mode in range(len(fitted.shape)) if mode not in (rows, columns))
    panels = [
        np.moveaxis(numbers, (rows, columns), (0, 1)).reshape(
            numbers.shape[rows], numbers.shape[columns]
        )
        for numbers in (part.observed, part.mean, part.deviation)
    ]
    shown = np.concatenate([panel[np.isfinite(panel)] for panel in panels[:2]])
    low, high = (0.0, 1.0) if fitted.is_binary else np.quantile(shown, [0.01, 0.99]).tolist()
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
    titles = ("observed", "probability of 1" if fitted.is_binary else "completed", "error bar")
    image: Any = None
    for place, (axis, panel, title) in enumerate(zip(axes, panels, titles, strict=True)):
        limits = {"vmin": low, "vmax": high} if place < 2 else {}
        axis.set_facecolor("0.9")
        image = axis.imshow(
            panel,
            aspect="auto",
            interpolation="nearest",
            cmap=(VALUES, VALUES, ERRORS)[place],
            **limits,
        )
        axis.set_title(title)
        axis.set_xlabel(fitted.labels.names[columns])
        label_ticks(axis.xaxis, fitted, columns, part.levels[columns], 3)
        if place > 0:
            figure.colorbar(image, ax=axis, extend=extend(panel, low, high) if place < 2 else None)
    axes[0].set_ylabel(fitted.labels.names[rows])
    label_ticks(axes[0].yaxis, fitted, rows, part.levels[rows], N_TICKS)
    where = [
        f"{fitted.labels.names[mode]} {fitted.level_texts(mode, part.levels[mode])[0]}"
        for mode in others
    ]
    figure.suptitle(f"{fitted.value_name}{' at ' if where else ''}{', '.join(where)}")
    return figure


def plot_trace(fitted: Fitted) -> Figure:
    """Noise, training error and log likelihood over all scans, one line per chain."""
    named = summary.paths(fitted.traces)
    figure, axes = plt.subplots(
        len(named), 1, figsize=(7.5, 2.1 * len(named)), sharex=True, layout="constrained"
    )
    for axis, (name, each) in zip(np.atleast_1d(axes), named.items(), strict=True):
        for chain, path in enumerate(each):
            scans = np.arange(1, len(path) + 1)
            axis.plot(
                scans,
                path,
                STYLES[chain % len(STYLES)],
                color=LINES[chain % len(LINES)],
                lw=1,
                label=f"chain {chain + 1}",
            )
        shade_warmup(axis, fitted.warmup)
        axis.set_ylabel(name)
        later = np.concatenate([path[len(path) // 10 :] for path in each])
        axis.set_ylim(*_with_margin(later))
    figure.axes[0].legend()
    figure.axes[-1].set_xlabel("scan")
    return figure


def plot_rank(fitted: Fitted, axis: Axes | None = None) -> Axes:
    """Rank of every bond over the scans; colours distinguish bonds, dashes chains."""
    axis = axis or new_axes()
    for chain, paths in enumerate(summary.rank_paths(fitted.traces)):
        for bond, path in enumerate(paths.T):
            axis.step(
                np.arange(1, len(path) + 1),
                path,
                STYLES[chain % len(STYLES)],
                color=LINES[bond % len(LINES)],
                label=f"bond {bond + 1}" if chain == 0 else None,
            )
    shade_warmup(axis, fitted.warmup)
    axis.set(xlabel="scan", ylabel="rank", title="rank found during warm-up (grey), then kept")
    axis.set_ylim(bottom=0)
    axis.legend(loc="lower right")
    return axis


def plot_calibration(found: Calibration, axis: Axes | None = None) -> Axes:
    """Observed against nominal coverage of held-out values."""
    axis = axis or new_axes((4.5, 4.5))
    nominal = np.linspace(0, 1, 101)
    chance = summary.chance_range(nominal, found.n)
    axis.fill_between(nominal, *chance, color="0.9", label="chance")
    axis.plot([0, 1], [0, 1], ":", color="0.5")
    axis.plot(found.nominal, found.plain, "--", color=LINES[1], label="without correction")
    axis.plot(found.nominal, found.observed, "o-", color=LINES[0], ms=4, label="as reported")
    axis.set(xlabel="nominal level", ylabel="share of values inside", xlim=(0, 1), ylim=(0, 1))
    axis.set_title(f"{found.n:,} held-out values")
    axis.legend()
    return axis


def plot_reliability(found: Reliability, axis: Axes | None = None) -> Axes:
    """Share of ones among held-out values against predicted probability."""
    axis = axis or new_axes((4.5, 4.5))
    bars = np.abs(np.stack([found.observed - found.lower, found.upper - found.observed]))
    axis.plot([0, 1], [0, 1], ":", color="0.5")
    axis.errorbar(found.predicted, found.observed, bars, fmt="o-", color=LINES[0], ms=4)
    axis.set(xlabel="predicted probability of 1", ylabel="share of ones", xlim=(0, 1), ylim=(0, 1))
    axis.set_title(f"{found.n.sum():,} held-out values")
    return axis


def plot_density(
    fitted: Fitted, modes: tuple[int, int], shares: FloatArray, axis: Axes | None = None
) -> Axes:
    """Share of known cells over two modes."""
    axis = axis or new_axes()
    rows, columns = modes
    extent = (-0.5, fitted.shape[columns] - 0.5, fitted.shape[rows] - 0.5, -0.5)
    image = axis.imshow(
        shares, aspect="auto", interpolation="nearest", cmap=SHARES, vmin=0, extent=extent
    )
    axis.figure.colorbar(image, ax=axis, label="share of known cells")
    for side, mode in ((axis.yaxis, rows), (axis.xaxis, columns)):
        label_ticks(side, fitted, mode, np.arange(fitted.shape[mode]), N_TICKS // 2)
    axis.set(xlabel=fitted.labels.names[columns], ylabel=fitted.labels.names[rows])
    return axis


def plot_similarity(fitted: Fitted, mode: int, found: Likeness, axis: Axes | None = None) -> Axes:
    """Correlation of the predictions for the levels of a mode, similar levels adjacent."""
    axis = axis or new_axes((6.5, 5.5))
    image = axis.imshow(
        found.correlation, interpolation="nearest", cmap=CORRELATIONS, vmin=-1, vmax=1
    )
    axis.figure.colorbar(image, ax=axis, label="correlation of predictions")
    for side in (axis.xaxis, axis.yaxis):
        label_ticks(side, fitted, mode, found.levels, MOST_TICKS)
    axis.tick_params(axis="x", rotation=90)
    axis.set_title(fitted.labels.names[mode])
    return axis


def plot_bands(
    bands: Sequence[int],
    observed: FloatArray,
    completed: FloatArray,
    truth: FloatArray,
    deviation: FloatArray,
) -> Figure:
    """Observed image, completed image, truth and error bar for some bands of an image (rows,
    columns, bands); missing cells of `observed` are NaN.
    """
    figure, axes = plt.subplots(
        len(bands), 4, figsize=(11, 2.95 * len(bands)), squeeze=False, layout="constrained"
    )
    share = np.mean(np.isfinite(observed))
    for row, band in zip(axes, bands, strict=True):
        low, high = np.percentile(truth[:, :, band], [1, 99])
        panels = [
            (observed, f"observed, {share:.0%} of all cells"),
            (completed, "completed"),
            (truth, "truth"),
        ]
        image: Any = None
        for axis, (cube, title) in zip(row, panels, strict=False):
            axis.set_facecolor("black")
            image = axis.imshow(cube[:, :, band], cmap=VALUES, vmin=low, vmax=high)
            axis.set_title(title)
        cut = extend(truth[:, :, band], low, high)
        figure.colorbar(image, ax=row[2], shrink=0.85, extend=cut)
        error = row[3].imshow(deviation[:, :, band], cmap=ERRORS, vmin=0)
        row[3].set_title("error bar (1 standard deviation)")
        figure.colorbar(error, ax=row[3], shrink=0.85)
        row[0].set_ylabel(f"band {band}")
        for axis in row:
            axis.set_xticks([])
            axis.set_yticks([])
    return figure


def extend(shown: FloatArray, low: float, high: float) -> str:
    """At which ends a colour scale is cut, which its bar shows as a triangle."""
    known = shown[np.isfinite(shown)]
    below, above = bool(np.any(known < low)), bool(np.any(known > high))
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (below, above), "neither"
    )


def save(figure: Any, path: Path) -> None:
    """Write to a temporary name and rename, so that no half-written picture is left behind."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."), dpi=DPI)
    plt.close(figure)


def new_axes(size: tuple[float, float] = (6.5, 4)) -> Axes:
    """Axes of a new figure."""
    return plt.subplots(figsize=size, layout="constrained")[1]


def shade_warmup(axis: Axes, warmup: int) -> None:
    """Grey background for the warm-up, and a grid."""
    if warmup > 1:
        axis.axvspan(1, warmup, color="0.93", zorder=0)
    axis.grid(alpha=0.3)


def label_ticks(side: Any, fitted: Fitted, mode: int, levels: Any, most: int) -> None:
    """Labels of some levels along an axis."""
    places = np.unique(np.linspace(0, len(levels) - 1, min(most, len(levels))).round().astype(int))
    side.set_ticks(places, fitted.level_texts(mode, levels[places]))


def _with_margin(numbers: FloatArray) -> tuple[float, float]:
    low, high = float(np.min(numbers)), float(np.max(numbers))
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin
