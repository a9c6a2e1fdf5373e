"""Pictures of the rank study, the scale study and the curves of errors, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from bayesring.data.writing import replacing
from bayesring.model.types import FloatArray
from bayesring.report.colours import LINES
from bayesring.report.figures import save


def plot_heat_maps(
    maps: Mapping[str, FloatArray],
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    quantity: str,
    wide: int = 4,
) -> Figure:
    """Several maps with a common scale from zero, each cell with its number.

    Parameters
    ----------
    maps : title of each map, and its values (rows, columns); NaN cells stay empty
    rows, columns : name of the axis and labels of its cells
    quantity : what the colours show
    wide : maximum number of maps side by side
    """
    across = min(wide, len(maps))
    down = -(-len(maps) // across)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(2.7 * across + 0.8, 3.1 * down),
        squeeze=False,
        layout="constrained",
    )
    top = max(float(np.nanmax(np.stack(list(maps.values())))), 1e-9)
    image: Any = None
    for place, (title, values) in enumerate(maps.items()):
        axis = axes.flat[place]
        image = axis.imshow(values, cmap="cividis_r", vmin=0, vmax=top)
        axis.set_title(title, fontsize=10)
        axis.set_yticks(range(len(rows[1])), rows[1])
        axis.set_xticks(range(len(columns[1])), columns[1])
        if place + across >= len(maps):
            axis.set_xlabel(columns[0])
        if place % across == 0:
            axis.set_ylabel(rows[0])
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if value > top / 2 else "black"
                text = f"{value:.2f}" if value else "0"
                axis.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    for axis in axes.flat[len(maps) :]:
        axis.set_visible(False)
    figure.colorbar(image, ax=axes, label=quantity, shrink=0.85)
    return figure


def plot_scale(
    lines: Mapping[str, Sequence[tuple[float, float, float]]], last_printed: float
) -> Figure:
    """Seconds against the size of a tensor on log scales, with the number of observations.

    Parameters
    ----------
    lines : label of each method, and its size, observations and seconds
    last_printed : the largest size of the paper's figure
    """
    figure, axis = plt.subplots(figsize=(8, 4.8), layout="constrained")
    counts = axis.twinx()
    known = sorted({size: number for line in lines.values() for size, number, _ in line}.items())
    ticks = [size for size, _ in known]
    counts.plot(ticks, [number for _, number in known], "--", color="0.55", lw=1.2)
    counts.set(yscale="log", ylabel="observations (dashed)")
    last = [seconds for line in lines.values() for size, _, seconds in line if size == ticks[-1]]
    for place, (label, line) in enumerate(lines.items()):
        across, _, seconds = zip(*sorted(line), strict=True)
        colour = LINES[place % len(LINES)]
        axis.plot(across, seconds, f"{'os^Dv'[place % 5]}-", color=colour, ms=5, lw=1.6)
        ends_early = across[-1] < ticks[-1]
        axis.annotate(
            label,
            (across[-1], seconds[-1]),
            xytext=(-16, 12) if ends_early else (6, 9 * _crowding(seconds[-1], last)),
            textcoords="offset points",
            color=colour,
            ha="right" if ends_early else "left",
            va="center",
            bbox={"boxstyle": "square,pad=0.1", "color": "white"},
        )
    axis.set(xscale="log", yscale="log", xlabel="size I of each of four modes")
    axis.set_xticks(ticks, [f"{size:g}" for size in ticks])
    axis.minorticks_off()
    axis.set_xlim(min(ticks) * 0.85, max(ticks) * 5.5)
    axis.margins(y=0.12)
    axis.set_ylabel("seconds per iteration, scan or epoch")
    if max(ticks) > last_printed:
        edge = last_printed * 1.25
        axis.axvline(edge, color="0.8", lw=1)
        place_at = axis.get_xaxis_transform()
        axis.text(
            edge * 1.03, 0.02, "beyond the paper", color="0.45", fontsize=9, transform=place_at
        )
    axis.grid(alpha=0.25)
    axis.set_zorder(1)
    axis.patch.set_visible(False)
    return figure


def plot_curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    quantities: Mapping[str, str],
    clock: str,
    wide: int = 4,
) -> Figure:
    """Errors against seconds on a log scale, a panel for each set.

    Parameters
    ----------
    panels : title of each panel; label of each line in it, its seconds and errors
    quantities : what the errors of a panel are
    clock : what the seconds are
    wide : maximum number of panels side by side
    """
    across = min(wide, len(panels))
    down = -(-len(panels) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(3.1 * across, 2.7 * down), squeeze=False, layout="constrained"
    )
    for place, (title, lines) in enumerate(panels.items()):
        axis = axes.flat[place]
        for number, (label, (seconds, errors)) in enumerate(lines.items()):
            axis.plot(
                seconds, errors, f"{'os^'[number % 3]}-", color=LINES[number], ms=3, lw=1.3,
                label=label,
            )  # fmt: skip
        least = min(min(errors) for _, errors in lines.values())
        ends = [errors[-1] for _, errors in lines.values()]
        axis.set_ylim(least - 0.1 * (max(ends) - least), least + 2.5 * (max(ends) - least))
        axis.set(xscale="log", title=title, ylabel=quantities[title])
        axis.grid(alpha=0.25)
        if place + across >= len(panels):
            axis.set_xlabel(clock)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    axes.flat[0].legend(fontsize=8)
    return figure


def _crowding(value: float, values: Sequence[float], near: float = 1.8) -> int:
    """Neighbours just below minus those just above, on a log scale: where to move a label."""
    below = sum(value / near < other < value for other in values)
    above = sum(value < other < value * near for other in values)
    return below - above


def save_both(figure: Figure, stem: Path) -> None:
    """Write a figure as PNG and SVG, creating the folder if necessary."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context({"svg.hashsalt": "bayesring"}), replacing(stem.with_suffix(".svg")) as path:
        figure.savefig(path, format="svg", metadata={"Date": None})
    save(figure, stem.with_suffix(".png"))
