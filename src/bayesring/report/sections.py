"""The sections of the page: numbers in, HTML out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from bayesring.data.gaps import find_pattern
from bayesring.model.types import FloatArray
from bayesring.posterior.convergence import ESS_PER_CHAIN, RHAT_LIMIT
from bayesring.posterior.explained import Explained
from bayesring.report import charts, explorer, summary
from bayesring.report.celltables import doubt_table, surprise_table
from bayesring.report.contents import Contents
from bayesring.report.fitted import Fitted
from bayesring.report.markup import (
    Cell,
    facts,
    figure,
    group,
    kept_together,
    listing,
    paragraph,
    section,
    table,
    times,
)
from bayesring.report.regions import regions
from bayesring.report.svg import number, percent

COVERAGE_LEVELS = (0.5, 0.8, 0.9, 0.95)
TOLERANCE = 0.04
"""Deviation of the coverage of 90 % intervals that is worth a warning."""
TITLES = {
    "rmse": "Training error (RMSE)",
    "accuracy": "Training accuracy",
    "log loss": "Training log loss",
}
NOTHING_HELD_OUT = (
    "Nothing was held out: a tenth of the data is set aside during warm-up only with at least 500 "
    "observations and 80 warm-up scans. How well unseen cells are predicted is therefore not "
    "known; to find out, keep some values back, fit the rest and compare."
)
NOT_SAMPLED = (
    "These rings were learned by online EM, so there are no chains whose agreement could be "
    "checked. Draws come from a normal around each ring's estimate, so intervals are rougher than "
    "with Gibbs sampling."
)
NOT_CHECKED = "Nothing was held out, so the calibration of the intervals was not checked."


def headlines(fitted: Fitted, contents: Contents) -> list[str]:
    """The report in a few sentences."""
    cells = prod(fitted.shape)
    known = fitted.n_observations if contents.density is None else contents.density.n_cells
    said = [
        f"{known:,} of {cells:,} cells are known ({percent(known / cells)}); the model completes "
        f"the other {cells - known:,}."
    ]
    if contents.scores:
        best = contents.scores[0]
        said.append(
            f"On values it had not seen, the {best.name} is {number(best.value)}; predicting the "
            f"average everywhere would give {number(best.baseline)}."
        )
    else:
        said.append("How well it predicts unseen values was not measured.")
    if contents.calibration is not None:
        said.append(
            f"Its 90 % intervals covered {percent(contents.calibration.at(0.9))} of those values."
        )
    problems = len(cautions(fitted, contents))
    said.append(
        f"{problems} point{'s' * (problems > 1)} to check before relying on it, listed under "
        "“Can it be trusted?”."
        if problems
        else "The checks of chains and intervals found nothing wrong."
    )
    return said


def cautions(fitted: Fitted, contents: Contents) -> list[str]:
    """What is wrong, in plain words, and what to do about it."""
    said = [fitted.by_labels(each) for each in contents.diagnostics.problems]
    said += [
        f"On held-out values the {score.name} is {number(score.value)}, worse than "
        f"{number(score.baseline)} from predicting the average: the model is too sure of some "
        "values; try a smaller rank=, and look for extreme values."
        for score in contents.scores
        if score.is_worse
    ]
    if contents.calibration is not None:
        inside = contents.calibration.at(0.9)
        if abs(inside - 0.9) > TOLERANCE:
            how, what = ("narrow", "too sure") if inside < 0.9 else ("wide", "too cautious")
            said.append(
                f"90 % intervals covered {percent(inside)} of the held-out values: they are too "
                f"{how}, and the model is {what}; look for outliers, or use another level."
            )
    if contents.density is not None:
        for name, shares in zip(fitted.labels.names, contents.density.by_mode, strict=True):
            empty = int(np.sum(shares == 0))
            if empty:
                said.append(
                    f"{empty:,} of {len(shares):,} levels of {name} have no observations: their "
                    "cells are predicted from the other levels alone, with wide error bars; remove "
                    "them if they are not meaningful."
                )
    return said


def data_section(fitted: Fitted, contents: Contents) -> str:
    """The data."""
    names, shape = fitted.labels.names, fitted.shape
    rows = {
        "modes": ", ".join(f"{name} ({size:,})" for name, size in zip(names, shape, strict=True)),
        "cells": f"{prod(shape):,}",
        "observations": f"{fitted.n_observations:,}",
        "values": fitted.posterior.likelihood.told,
    }
    if fitted.observed is None or contents.density is None or contents.pairs is None:
        missing = "The model file holds no observations: there were too many, or several batches."
        return section("data", "The data", facts(rows), paragraph(missing, "note"))
    values = fitted.observed.values
    rows["what is missing"] = find_pattern(fitted.observed).describe(names)
    rows["known cells"] = f"{contents.density.n_cells:,} ({percent(contents.density.share)})"
    rows[fitted.value_name] = (
        f"{percent(np.mean(values))} are 1"
        if fitted.is_binary
        else f"mean {number(np.mean(values))}, standard deviation {number(np.std(values))}, "
        f"from {number(np.min(values))} to {number(np.max(values))}"
    )
    by_mode = [
        figure(f"Known cells by {names[mode]}", charts.density_chart(fitted, mode, shares))
        for mode, shares in enumerate(contents.density.by_mode)
    ]
    pairs = [
        figure(f"Known cells, {names[a]} by {names[b]}", charts.pair_map(fitted, (a, b), shares))
        for (a, b), shares in contents.pairs.items()
    ]
    return section("data", "The data", facts(rows), group(*by_mode), group(*pairs))


def found_section(fitted: Fitted, contents: Contents) -> str:
    """How the model was fitted, and whether its chains agree."""
    n_scans = len(fitted.traces[0].rank)
    ranks = ", ".join(times(draws.rank) for draws in fitted.posterior.chains)
    pictures = []
    if fitted.sampled:
        rows = {
            "rank": f"{ranks} (one number per bond, chain by chain)",
            "chains": f"{len(fitted.traces)} of {n_scans:,} scans, the first {fitted.warmup:,} "
            "warm-up",
            "kept draws": f"{fitted.posterior.n_draws:,}",
        }
        caption = "Grey: warm-up, when the rank may change."
        pictures.append(figure("Rank", charts.rank_chart(fitted), caption))
    else:
        rows = {
            "rank": f"{ranks} (one number per bond, ring by ring)",
            "rings": f"{len(fitted.traces)}, learned by online EM",
            "draws": f"{fitted.posterior.n_draws:,} around their estimates",
        }
    if placed := regions(fitted):
        rows["map"] = "; ".join(placed)
    if contents.curves:
        names, band = fitted.labels.names, "Mean over all other modes, with its 90 % band."
        rows["order"] = "; ".join(f"{names[own.mode]} {own.words}" for own in contents.curves)
        pictures += [
            figure(f"Along {names[own.mode]}", charts.curve_chart(fitted, own), band)
            for own in contents.curves
        ]
    pictures += [
        figure(_title(name), charts.path_chart(fitted, name, each, 0), _cut_note(each, 0))
        for name, each in summary.paths(fitted.traces).items()
        if name != "log likelihood"
    ]
    checks = _chains_part(fitted, contents) if fitted.sampled else []
    return section(
        "found",
        "How it was fitted",
        facts(rows),
        group(*pictures),
        listing([fitted.by_labels(each) for each in contents.diagnostics.notes], "notes"),
        *checks,
    )


def trust_section(fitted: Fitted, contents: Contents) -> str:
    """Whether it can be trusted."""
    said = cautions(fitted, contents)
    verdict = (
        listing(said, "cautions")
        if said
        else paragraph("The checks of chains, intervals and data found nothing wrong.", "fine")
    )
    return section(
        "trust",
        "Can it be trusted?",
        verdict,
        "" if fitted.sampled else paragraph(NOT_SAMPLED, "note"),
        _scores_part(fitted, contents),
        _calibration_part(fitted, contents),
    )


def _scores_part(fitted: Fitted, contents: Contents) -> str:
    """How far off held-out values were, or a note that none were held out."""
    if not contents.scores or fitted.held_out is None:
        return paragraph(NOTHING_HELD_OUT, "note")
    return table(
        ["measure", "model", "average of the values"],
        [
            [Cell(name), Cell(number(value), value), Cell(number(base), base)]
            for name, value, base, _ in contents.scores
        ],
        f"Error on {len(fitted.held_out.values):,} values held out initially and "
        "predicted before the model saw them",
    )


def _chains_part(fitted: Fitted, contents: Contents) -> list[str]:
    """Whether the chains agree."""
    needed = ESS_PER_CHAIN * len(fitted.traces)
    columns = ["quantity", "mean", "sd", "error of mean", "ESS bulk", "ESS tail", "R-hat"]
    rows = []
    for row in contents.diagnostics.rows():
        name = fitted.by_labels(str(row.pop("quantity")))
        rows.append([Cell(name), *(Cell(f"{value:.4g}", value) for value in row.values())])
    chains = table(
        columns,
        rows,
        f"Chains agree if R-hat is below {RHAT_LIMIT}, and error bars are "
        f"reliable if the effective sample size (ESS) is above {needed}",
    )
    traces = [
        figure(
            f"{_title(name)}, kept draws",
            charts.path_chart(fitted, name, each, fitted.warmup),
            _cut_note(each, fitted.warmup),
        )
        for name, each in summary.paths(fitted.traces).items()
    ]
    return [chains, group(*traces)]


def says_section(fitted: Fitted, contents: Contents) -> str:
    """What the model says about the table."""
    names = fitted.labels.names
    maps = [
        figure(
            f"Which levels of {names[mode]} are similar",
            charts.likeness_map(fitted, mode, found),
            _shown(len(found.levels), fitted.shape[mode]),
        )
        for mode, found in contents.likeness.items()
    ]
    note = (
        "Correlation of the predicted values of two levels over cells of the other modes, with "
        "similar levels next to each other."
    )
    return section(
        "says",
        "What it says",
        explorer.skeleton(fitted, contents.part),
        surprise_table(fitted, contents),
        doubt_table(fitted, contents),
        *(_explained_table(each) for each in fitted.explained),
        kept_together(paragraph(note), group(*maps)) if maps else "",
    )


def _explained_table(found: Explained) -> str:
    """What the features of a mode explain."""
    rows: list[list[Cell]] = []
    for name, own in [("all together", found.share), *list(found.features.items())[:20]]:
        ends = f"{percent(own.lower)} to {percent(own.upper)}"
        rows.append([Cell(name), Cell(percent(own.mean), own.mean), Cell(ends)])
    caption = f"What features explain of the variance between levels of {found.mode}"
    return table(["feature", "share", "90 % interval"], rows, caption)


def _calibration_part(fitted: Fitted, contents: Contents) -> str:
    """Calibration of intervals or probabilities, or a note that it was not checked."""
    if contents.reliability is not None and fitted.held_out is not None:
        return group(
            figure(
                "Are the probabilities calibrated?",
                charts.reliability_chart(contents.reliability),
                f"{len(fitted.held_out.values):,} held-out values, by predicted probability. "
                "If they are calibrated, dots lie on the diagonal; bars are 95 % intervals.",
            )
        )
    found = contents.calibration
    if found is None:
        return paragraph(NOT_CHECKED, "note")
    rows = [
        [Cell(percent(level), level), Cell(percent(found.at(level)), found.at(level))]
        for level in COVERAGE_LEVELS
    ]
    curve = figure(
        "Are the intervals calibrated?",
        charts.calibration_chart(found),
        f"{found.n:,} held-out values. {_corrected(fitted)} Grey: range expected by chance.",
    )
    coverage = table(["interval", "values inside"], rows, "Coverage of held-out values")
    return group(curve, coverage)


def _corrected(fitted: Fitted) -> str:
    """How the intervals that are checked were made."""
    if fitted.posterior.likelihood.discrete:
        return "A value at the end of an interval counts in part, as if drawn within its step."
    return (
        "Intervals are corrected with held-out errors; here each half of the values is corrected "
        "with the other half."
    )


def _cut_note(each: Sequence[FloatArray], first: int) -> str:
    """Whether a picture of traces leaves numbers out."""
    return "Cut: a few scans lie outside the picture." if charts.is_cut(each, first) else ""


def _title(name: str) -> str:
    """Title of a picture of one of the likelihood's numbers."""
    return TITLES.get(name, name.capitalize())


def _shown(n: int, size: int) -> str:
    return f"{n:,} of {size:,} levels." if n < size else ""
