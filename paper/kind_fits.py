"""Fits from the defaults to every kind of value, and the log scores of what they predict.

Log scores are of probabilities: under normal noise, a whole number y has what lies between
y - 1/2 and y + 1/2 (of logarithms, between their logarithms), and the lowest and the highest
possible value also what lies beyond. That is kinder to normal noise than its density.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from bayesring import TensorRing, load
from bayesring.model.types import FloatArray, IntArray
from paper.results_store import ROOT

MODELS = ROOT / "build" / "kinds"
"""Long fits are kept here, so that a run that is stopped need not repeat them."""
SCORED = 20_000
"""Test cells that are scored, at most, drawn at random."""
LEVEL = 0.9
FLOOR = 1e-12
Row = dict[str, float]
Rows = dict[str, Row]


def fit(coords: IntArray, values: FloatArray, data: Any, **settings: Any) -> Any:
    """A ring from the defaults, and the CPU seconds it took as `seconds_`.

    `data` is a data set, whose positions are given, or a shape.
    """
    shape = getattr(data, "shape", data)
    asked = {"shape": shape, "random_state": 0, "progress": False, "n_jobs": 1} | settings
    known = {"positions": data.positions, "modes": list(data.labels)} if shape is not data else {}
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counts as real values
        ring = TensorRing(**asked).fit(coords, values, **known)
    ring.seconds_ = time.process_time() - begin
    return ring


def fit_once(name: str, *arguments: Any, **settings: Any) -> Any:
    """The same, or the fit of that name which an earlier run has kept."""
    path, seconds = MODELS / f"{name}.ring", MODELS / f"{name}.seconds"
    if not seconds.exists():
        ring = fit(*arguments, **settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        ring.save(path)
        seconds.write_text(str(ring.seconds_))
    ring = load(path)
    ring.seconds_ = float(seconds.read_text())
    return ring


def mass(ring: Any, cells: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Probability that a new value lies between two ends, by the draws themselves."""
    posterior = ring.posterior_
    total = np.zeros(len(cells))
    for part in np.array_split(np.arange(len(cells)), max(1, len(cells) // 2000)):
        fitted = posterior.entries(cells[part])
        below, above = (
            posterior.likelihood.cdf(
                (ends[part] - posterior.location) / posterior.scale, fitted, posterior.nuisance
            )
            for ends in (low, high)
        )
        total[part] = (above - below).mean(axis=0)
    return np.log(np.maximum(total, FLOOR))


def against(best: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Mean difference of two log scores, and its standard error."""
    gaps = best - other
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(gaps.size))
