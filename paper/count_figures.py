"""Counts modelled as counts, and as real values: trips between zones of New York."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from bayesring import datasets, metrics
from bayesring.datasets.traffic import shown_cells
from bayesring.model.types import FloatArray, IntArray
from paper.kind_fits import FLOOR, LEVEL, SCORED, Row, Rows, against, fit_once, mass

MASK, WEEK = "RM 40", 168
"""One of the published masks, and hours of NYC's first week, of 1,464 in all."""


def chance_up_to(ring: Any, cells: IntArray, y: FloatArray, logs: bool) -> FloatArray:
    """P(Y <= y) of whole numbers, none of which is below zero."""
    ends = y if ring.posterior_.likelihood.discrete else y + 0.5
    ends = np.log1p(np.maximum(ends, -0.9)) if logs else ends
    return np.where(y < 0, 0.0, np.exp(mass(ring, cells, np.full(y.size, -np.inf), ends)))


def counted(ring: Any, test: tuple[IntArray, FloatArray], logs: bool, positive: bool) -> Any:
    """Log scores, and RMSE and coverage, of a model of counts or of real values at whole numbers.

    If only `positive` counts are ever scored, probabilities are given that a count is positive.
    """
    cells, y = test
    predicted = ring.predict(cells)
    low, high = ring.predict_interval(cells, LEVEL)
    if logs:
        draws = np.expm1(ring.sample(cells, 200, random_state=0))
        predicted, (low, high) = draws.mean(axis=0), (np.expm1(low), np.expm1(high))
    never = chance_up_to(ring, cells, np.zeros(y.size), logs) if positive else np.zeros(y.size)
    ends = [
        (np.maximum(chance_up_to(ring, cells, each, logs), never) - never) / (1.0 - never)
        for each in (y - 1.0, y)
    ]
    scores = np.log(np.maximum(ends[1] - ends[0], FLOOR))
    ranks = ends[0] + np.random.default_rng(0).random(y.size) * (ends[1] - ends[0])
    found = {
        "log score": float(scores.mean()),
        "RMSE": metrics.rmse(y, predicted),
        "90 % intervals hold": metrics.coverage(y, low, high),
        "randomised": float(np.mean(np.abs(ranks - 0.5) <= 0.5 * LEVEL)),
        "lowest end": float(low.min()),
        "seconds": ring.seconds_,
    }
    return scores, found


def trivial_counts(train: FloatArray, y: FloatArray, positive: bool) -> tuple[FloatArray, Row]:
    """One negative binomial for all, by its moments."""
    mean, variance = float(train.mean()), float(train.var())
    r = mean**2 / max(variance - mean, 1e-9)
    scores = gammaln(y + r) - gammaln(r) - gammaln(y + 1)
    scores += r * np.log(r / (r + mean)) + y * np.log(mean / (r + mean))
    if positive:
        scores -= np.log1p(-((r / (r + mean)) ** r))
    low, high = np.quantile(train, [0.05, 0.95])
    found = {
        "log score": float(scores.mean()),
        "RMSE": metrics.rmse(y, np.full(y.size, mean)),
        "90 % intervals hold": float(np.mean((y >= low) & (y <= high))),
    }
    return scores, found


COUNTED = {
    "negative binomial": ("negative-binomial", False),
    "normal noise": ("gaussian", False),
    "normal noise on log(1 + y)": ("gaussian", True),
}
"""Models of counts: likelihood, and whether it is that of log(1 + y)."""


def count_rows(
    name: str,
    train: tuple[IntArray, FloatArray],
    test: tuple[IntArray, FloatArray],
    data: Any,
    positive: bool,
) -> Rows:
    """All models of some counts, and how much better the negative binomial is than each."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(test[1]))[:SCORED]
    cells, y = test[0][rows], test[1][rows]
    scores: dict[str, FloatArray] = {}
    found: Rows = {}
    for model, (likelihood, logs) in COUNTED.items():
        values = np.log1p(train[1]) if logs else train[1]
        kept = f"{name}, {model}"
        ring = fit_once(kept, train[0], values, data, likelihood=likelihood)
        scores[model], found[model] = counted(ring, (cells, y), logs, positive)
    trivial = "one distribution for all"
    scores[trivial], found[trivial] = trivial_counts(train[1], y, positive)
    for model, own in scores.items():
        if model != "negative binomial":
            gain, error = against(scores["negative binomial"], own)
            found[model] |= {"behind by": gain, "error": error}
    return found


def nyc(name: str, zeros: bool, hours: int | None = None) -> Rows:
    """NYC's first hours with 40 % of the cells missing; zeros are values, or cells without one."""
    data, (train, test) = nyc_parts(zeros, hours)
    return count_rows(name, train, test, data, not zeros)


def nyc_parts(zeros: bool, hours: int | None = None) -> Any:
    """The data set up to some hour, and cells and trips that are shown and hidden."""
    data = datasets.load_nyc()
    trips = np.nan_to_num(data.tensor)[:, :, :hours]
    mask = shown_cells(data.shape, MASK)[:, :, :hours]
    used = np.ones(trips.shape, dtype=bool) if zeros else trips > 0
    parts = [np.argwhere(used & mask), np.argwhere(used & ~mask)]
    positions = {"hour": data.positions["hour"][:hours]}
    data = replace(data, shape=trips.shape, positions=positions)
    return data, [(cells, trips[tuple(cells.T)]) for cells in parts]
