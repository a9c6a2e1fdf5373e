"""The static pictures of the page: numbers in, SVG out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesring.model.types import FloatArray, IntArray
from bayesring.report.cells import Likeness
from bayesring.report.colours import CORRELATIONS, LINES, SHARES
from bayesring.report.curves import Curve
from bayesring.report.fitted import Fitted
from bayesring.report.markup import times
from bayesring.report.summary import Calibration, Reliability, chance_range, rank_paths
from bayesring.report.svg import (
    Band,
    Line,
    apart,
    chart,
    colour_bar,
    heatmap,
    label_ticks,
    number,
    percent,
)

N_MAP_LABELS = 12
UNIT = (0.0, 1.0)


def density_chart(fitted: Fitted, mode: int, shares: FloatArray) -> str:
    """Share of known cells of every level of a mode."""
    name = fitted.labels.names[mode]
    places = np.arange(len(shares) + 1) - 0.5
    alt = (
        f"Share of known cells for each of {len(shares):,} levels of {name}: "
        f"from {percent(shares.min())} to {percent(shares.max())}, median "
        f"{percent(np.median(shares))}."
    )
    return chart(
        [Line(places, 100 * np.append(shares, shares[-1]), steps=True)],
        alt,
        name,
        "% known",
        x_range=(-0.5, len(shares) - 0.5),
        y_range=(0.0, 100 * max(1.05 * float(shares.max()), 1e-9)),
        x_ticks=label_ticks(fitted.level_texts(mode, range(len(shares)))),
    )


def curve_chart(fitted: Fitted, curve: Curve) -> str:
    """Mean of the table along an ordered mode, with its 90 % band; dots where values are known."""
    name, x = fitted.labels.names[curve.mode], curve.positions
    known = fitted.counts()[curve.mode] > 0
    texts = fitted.level_texts(curve.mode, range(len(x)))
    alt = (
        f"Mean of {fitted.value_name} along {name}, from {texts[0]} to {texts[-1]}: between "
        f"{number(curve.middle.min())} and {number(curve.middle.max())}; it {curve.words}."
    )
    lowest, highest = float(curve.lower.min()), float(curve.upper.max())
    margin = 0.05 * (highest - lowest) or 1.0
    return chart(
        [
            Line(x, curve.middle),
            *([] if known.all() else [Line(x[known], curve.middle[known], dots=True)]),
        ],
        alt,
        name,
        fitted.value_name,
        band=Band(x, curve.lower, curve.upper),
        x_range=(float(x.min()), float(x.max())),
        y_range=(lowest - margin, highest + margin),
        x_ticks=apart([(float(x[place]), texts[place]) for place in range(len(x))], x[0], x[-1]),
    )


def pair_map(fitted: Fitted, modes: tuple[int, int], shares: FloatArray) -> str:
    """Share of known cells over two modes."""
    top = float(shares.max()) or 1.0
    rows, columns = (
        _binned_labels(fitted, mode, n) for mode, n in zip(modes, shares.shape, strict=True)
    )
    names = [fitted.labels.names[mode] for mode in modes]
    alt = (
        f"Share of known cells over {names[0]} (down) and {names[1]} (across): from "
        f"{percent(shares.min())} to {percent(top)}; {percent(np.mean(shares == 0))} of the places "
        "have none."
    )
    scale = colour_bar(SHARES, "0 %", percent(top))
    picture = heatmap(
        shares / top, alt, SHARES, rows, columns, names[0], names[1], most_labels=N_MAP_LABELS
    )
    return picture + scale


def rank_chart(fitted: Fitted) -> str:
    """Rank of every bond over the scans; colours distinguish bonds, dashes chains."""
    lines = [
        Line(
            np.arange(1, len(path) + 1),
            path,
            bond % len(LINES),
            chain,
            f"bond {bond + 1}" if chain == 0 else "",
            steps=True,
        )
        for chain, paths in enumerate(rank_paths(fitted.traces))
        for bond, path in enumerate(paths.T)
    ]
    top = max(int(trace.rank.max()) for trace in fitted.traces)
    ends = "; ".join(
        f"chain {chain + 1} ends at {times(trace.rank[-1])}"
        for chain, trace in enumerate(fitted.traces)
    )
    return chart(
        lines,
        f"Rank of every bond over the scans: {ends}.",
        "scan",
        "rank",
        shade=(1, max(fitted.warmup, 1)),
        y_range=(0.0, top + 0.7),
    )


def is_cut(each: Sequence[FloatArray], first: int) -> bool:
    """Whether some numbers of `path_chart` lie outside the picture."""
    shown = _robust_range(each, first)
    together = np.concatenate([path[first:] for path in each])
    return shown is not None and (together.min() < shown[0] or together.max() > shown[1])


def path_chart(fitted: Fitted, name: str, each: Sequence[FloatArray], first: int) -> str:
    """A number of the likelihood over the scans after the `first`, one line per chain.

    For online EM, over the looks with one line per ring.
    """
    step, line = ("scan", "chain") if fitted.sampled else ("look", "ring")
    lines = [
        Line(np.arange(first + 1, len(path) + 1), path[first:], chain % len(LINES), chain, label)
        for chain, path in enumerate(each)
        for label in [f"{line} {chain + 1}"]
    ]
    lasting = np.concatenate([path[fitted.warmup if fitted.sampled else -1 :] for path in each])
    alt = (
        f"{name} over the {step}s of {len(each)} {line}s; "
        f"{'kept draws' if fitted.sampled else 'the last looks'} have mean "
        f"{number(float(np.mean(lasting)))} and standard deviation "
        f"{number(float(np.std(lasting)))}."
    )
    shade = (1.0, float(fitted.warmup)) if fitted.sampled and first < 1 < fitted.warmup else None
    return chart(lines, alt, step, name, shade=shade, y_range=_robust_range(each, first))


def calibration_chart(found: Calibration) -> str:
    """Observed against nominal coverage, with the range that chance alone explains."""
    nominal = np.concatenate([[0.0], found.nominal, [1.0]])
    lines = [
        Line(found.nominal, found.plain, 1, 1, "without correction"),
        Line(found.nominal, found.observed, 0, 0, "as reported", dots=True),
    ]
    alt = (
        "Observed against nominal coverage of held-out intervals; at 50 %, 80 % and 90 % "
        + ", ".join(f"{percent(found.at(level))}" for level in (0.5, 0.8, 0.9))
        + " are inside. On the diagonal, intervals have their nominal coverage."
    )
    return chart(
        lines,
        alt,
        "nominal level",
        "share of values inside",
        band=Band(nominal, *chance_range(nominal, found.n)),
        x_range=UNIT,
        y_range=UNIT,
        diagonal=True,
    )


def reliability_chart(found: Reliability) -> str:
    """Share of ones against predicted probability."""
    pairs = zip(found.predicted, found.observed, found.n, strict=True)
    alt = "Share of ones among held-out values by predicted probability: " + ", ".join(
        f"{percent(seen)} of {count:,} where {percent(told)} was predicted"
        for told, seen, count in pairs
    )
    return chart(
        [Line(found.predicted, found.observed, dots=True)],
        f"{alt}.",
        "predicted probability of 1",
        "share of ones",
        bars=list(zip(found.predicted, found.lower, found.upper, strict=True)),
        x_range=UNIT,
        y_range=UNIT,
        diagonal=True,
    )


def likeness_map(fitted: Fitted, mode: int, found: Likeness) -> str:
    """Correlation of the predictions for the levels of a mode, similar levels adjacent."""
    texts = fitted.level_texts(mode, found.levels)
    name = fitted.labels.names[mode]
    closest = ", ".join(
        f"{texts[i]} and {texts[j]} ({alike:.2f})" for i, j, alike in found.closest(3)
    )
    picture = heatmap(
        0.5 + 0.5 * found.correlation,
        f"Correlation between levels of {name}; the most similar are {closest}.",
        CORRELATIONS,
        texts,
        texts,
        name,
        name,
    )
    return picture + colour_bar(CORRELATIONS, "-1: opposite", "1: the same up to scale")


def _binned_labels(fitted: Fitted, mode: int, n_bins: int) -> list[str]:
    """Label of the first level in each bin."""
    firsts: IntArray = -(-np.arange(n_bins) * fitted.shape[mode] // n_bins)
    return fitted.level_texts(mode, firsts)


def _robust_range(each: Sequence[FloatArray], first: int) -> tuple[float, float] | None:
    """Range without the wild beginning of a chain; None for the range of all numbers."""
    together = np.concatenate([path[first:] for path in each])
    low, high = np.quantile(together, [0.02, 0.98]).tolist()
    margin = 0.25 * (high - low)
    if not margin > 0:
        return None
    return max(low - margin, float(together.min())), min(high + margin, float(together.max()))
