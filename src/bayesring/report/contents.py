"""The contents of a report as numbers, gathered once and then written as a page."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior.convergence import Diagnostics
from bayesring.report import cells, summary
from bayesring.report.cells import Doubts, Likeness, Part, Surprises
from bayesring.report.curves import Curve, curves
from bayesring.report.fitted import Fitted
from bayesring.report.summary import Calibration, Density, Reliability, Score

PART_CELLS = 350_000
"""Number of cells whose predictions are stored in the page, at six bytes each."""
MAP_BINS = 100
"""Number of bins along each side of the picture of known cells."""
MOST_PAIRS = 6
"""Number of pairs of modes for which that picture is shown."""
MOST_ALIKE = 32
"""Number of levels of a mode in a similarity map."""
N_LISTED = 15
"""Number of rows in the lists of surprises and uncertain cells."""


class Contents(NamedTuple):
    """The numbers of a report."""

    density: Density | None
    """None, like the next field and `surprises`, if the model file has no observations."""
    pairs: dict[tuple[int, int], FloatArray] | None
    diagnostics: Diagnostics
    scores: list[Score]
    """Empty if nothing was held out; the next two fields are then None."""
    calibration: Calibration | None
    reliability: Reliability | None
    part: Part
    surprises: Surprises | None
    doubts: Doubts
    likeness: dict[int, Likeness]
    """By mode."""
    curves: list[Curve]
    """Of ordered modes."""


def n_steps(fitted: Fitted) -> int:
    """Number of steps that `gather` reports."""
    return 5 + len(fitted.shape)


def gather(fitted: Fitted, step: Callable[[str], None]) -> Contents:
    """Compute all numbers; `step` is called with the name of each step."""
    posterior, shape, held = fitted.posterior, fitted.shape, fitted.held_out
    step("data")
    known = None if fitted.observed is None else summary.distinct_cells(fitted.observed)
    counts = fitted.counts()
    step("chains")
    diagnostics = fitted.diagnose()
    step("slices")
    sizes = cells.part_sizes(shape, PART_CELLS)
    levels = [cells.choose_levels(count, n) for count, n in zip(counts, sizes, strict=True)]
    part = cells.part(posterior, fitted.observed, levels, noise=not fitted.is_binary)
    step("surprises")
    surprises = (
        None
        if fitted.observed is None
        else cells.surprises(posterior, fitted.observed, fitted.is_binary, N_LISTED, fitted.seed)
    )
    step("doubts")
    doubts = cells.doubts(posterior, fitted.observed, N_LISTED, fitted.seed)
    likeness = {}
    for mode, count in enumerate(counts):
        step(f"likeness of {fitted.labels.names[mode]}")
        if len(count) > 2:
            chosen = cells.choose_levels(count, MOST_ALIKE)
            likeness[mode] = cells.likeness(posterior, mode, chosen, fitted.seed)
    return Contents(
        None if known is None else summary.density(known, shape),
        None if known is None else _pairs(known, shape),
        diagnostics,
        [] if held is None else summary.held_out_scores(held, fitted.is_binary),
        None
        if held is None or fitted.is_binary
        else summary.calibration(held, posterior.likelihood),
        summary.reliability(held.values, held.mean)
        if held is not None and fitted.is_binary
        else None,
        part,
        surprises,
        doubts,
        likeness,
        curves(fitted),
    )


def _pairs(known: IntArray, shape: tuple[int, ...]) -> dict[tuple[int, int], FloatArray]:
    """Share of known cells over pairs of modes, starting with the rows and columns of slices."""
    axes = cells.default_axes(shape)
    pairs = sorted(combinations(range(len(shape)), 2), key=lambda pair: pair != axes)
    return {pair: summary.pair_density(known, shape, pair, MAP_BINS) for pair in pairs[:MOST_PAIRS]}
