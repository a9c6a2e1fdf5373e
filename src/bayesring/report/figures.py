"""Figures: arrays in, a picture file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from bayesring.types import FloatArray, IntArray

plt.rcParams.update({"figure.dpi": 110, "font.size": 10, "axes.titlesize": 10})
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""A palette that colour-blind readers can tell apart (Okabe and Ito)."""


def plot_bands(
    path: Path,
    bands: Sequence[int],
    observed: FloatArray,
    completed: FloatArray,
    truth: FloatArray,
    deviation: FloatArray,
) -> None:
    """Observed, completed, true picture and error bar of some bands of an image (rows, columns,
    bands); missing cells of `observed` are NaN.
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
            image = axis.imshow(cube[:, :, band], cmap="viridis", vmin=low, vmax=high)
            axis.set_title(title)
        figure.colorbar(image, ax=row[2], shrink=0.85)
        error = row[3].imshow(deviation[:, :, band], cmap="magma", vmin=0)
        row[3].set_title("error bar (1 standard deviation)")
        figure.colorbar(error, ax=row[3], shrink=0.85)
        row[0].set_ylabel(f"band {band}")
        for axis in row:
            axis.set_xticks([])
            axis.set_yticks([])
    _save(figure, path)


def plot_rank_path(
    path: Path,
    ranks: Sequence[IntArray],
    errors: Sequence[FloatArray],
    error_name: str,
    warmup: int,
) -> None:
    """Rank of every bond and training error over the scans, all chains."""
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(7.5, 5), sharex=True, layout="constrained")
    n_bonds = ranks[0].shape[1]
    styles = ("-", "--", ":", "-.")
    for chain, (rank, error) in enumerate(zip(ranks, errors, strict=True)):
        style = styles[chain % len(styles)]
        scans = np.arange(1, len(rank) + 1)
        for bond in range(n_bonds):
            offset = 0.06 * (bond - (n_bonds - 1) / 2)
            label = f"bond {bond + 1}" if chain == 0 else None
            colour = COLOURS[bond % len(COLOURS)]
            upper.step(scans, rank[:, bond] + offset, style, color=colour, label=label)
        lower.plot(scans, error, style, color="black", lw=1, label=f"chain {chain + 1}")
    for axis in (upper, lower):
        axis.axvspan(1, warmup, color="0.93", zorder=0)
        axis.grid(alpha=0.3)
        axis.legend(loc="lower right" if axis is upper else "upper right")
    upper.set_ylabel("rank")
    upper.set_title("rank found during warm-up (grey), then kept")
    lower.set_ylabel(f"training {error_name}")
    lower.set_yscale("log")
    lower.set_xlabel("scan")
    _save(figure, path)


def plot_heat_maps(
    path: Path,
    maps: Mapping[str, FloatArray],
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    quantity: str,
) -> None:
    """Several maps side by side on one scale from zero, each cell with its number.

    Parameters
    ----------
    maps : title of each map, and its values (rows, columns); NaN cells stay empty
    rows, columns : name of the axis and labels of its cells
    quantity : what the colours show
    """
    figure, axes = plt.subplots(
        1, len(maps), figsize=(2.7 * len(maps) + 0.8, 3.1), squeeze=False, layout="constrained"
    )
    top = max(float(np.nanmax(np.stack(list(maps.values())))), 1e-9)
    image: Any = None
    for axis, (title, values) in zip(axes[0], maps.items(), strict=True):
        image = axis.imshow(values, cmap="cividis_r", vmin=0, vmax=top)
        axis.set_title(title)
        axis.set_yticks(range(len(rows[1])), rows[1])
        axis.set_xticks(range(len(columns[1])), columns[1])
        axis.set_xlabel(columns[0])
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if value > top / 2 else "black"
                text = f"{value:.2f}" if value else "0"
                axis.text(column, row, text, ha="center", va="center", color=colour, fontsize=8)
    axes[0][0].set_ylabel(rows[0])
    figure.colorbar(image, ax=axes, label=quantity, shrink=0.85)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Write to a temporary name and rename, so that no half-written picture is left."""
    temporary = path.with_name(f".{path.name}")
    figure.savefig(temporary, format=path.suffix.removeprefix("."))
    plt.close(figure)
    temporary.replace(path)
