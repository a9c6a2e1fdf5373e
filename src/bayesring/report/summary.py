"""Numbers about the data and the chains for reports and pictures, as plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from bayesring import metrics
from bayesring.data.observations import HeldOut, Observations
from bayesring.infer.state import Trace
from bayesring.likelihoods import Gaussian, Likelihood
from bayesring.model.types import FloatArray, IntArray

LEVELS = np.append(np.arange(1, 20) / 20, 0.99)
"""Nominal levels at which coverage is measured."""
TINY_UNITS = 1e6
"""Values in these units are large compared with any noise that a likelihood may add."""
APART = 0.06
"""Offset between lines of equal rank in a picture."""
N_BINS = 10
"""Number of bins of predicted probability in a reliability diagram."""


class Density(NamedTuple):
    """How much of a tensor was observed."""

    n_cells: int
    """Number of cells with at least one observation."""
    share: float
    """Their share of all cells."""
    by_mode: tuple[FloatArray, ...]
    """For each mode (I_d,), the share of known cells of every level."""


def distinct_cells(observed: Observations) -> IntArray:
    """Distinct coordinates of sorted observations."""
    coords = observed.coords.astype(np.int64)
    is_new = np.any(np.diff(coords, axis=0) != 0, axis=1)
    return np.asarray(coords[np.append(True, is_new)])


def density(cells: IntArray, shape: tuple[int, ...]) -> Density:
    """Share of the cells of a tensor, and of each of its levels, that are in `cells`."""
    total = prod(shape)
    by_mode = tuple(
        np.bincount(cells[:, mode], minlength=size) / (total // size)
        for mode, size in enumerate(shape)
    )
    return Density(len(cells), len(cells) / total, by_mode)


def pair_density(
    cells: IntArray, shape: tuple[int, ...], modes: tuple[int, int], most: int
) -> FloatArray:
    """Share of known cells over two modes, with levels grouped into at most `most` bins each."""
    rows, columns = modes
    bins = [min(shape[mode], most) for mode in modes]
    places = [cells[:, mode] * n // shape[mode] for mode, n in zip(modes, bins, strict=True)]
    counts = np.bincount(places[0] * bins[1] + places[1], minlength=bins[0] * bins[1])
    widths = [
        np.bincount(np.arange(shape[mode]) * n // shape[mode], minlength=n)
        for mode, n in zip(modes, bins, strict=True)
    ]
    depth = np.prod(np.delete(shape, [rows, columns]), dtype=float)  # as an integer too large
    return np.asarray(counts.reshape(bins) / (np.outer(*widths) * depth))


def paths(traces: Sequence[Trace]) -> dict[str, list[FloatArray]]:
    """Traces over all scans, (scans,) per chain: the likelihood's numbers, log likelihood."""
    named = {name: [trace.described[name] for trace in traces] for name in traces[0].described}
    return named | {"log likelihood": [trace.log_likelihood for trace in traces]}


def rank_paths(traces: Sequence[Trace]) -> list[FloatArray]:
    """Rank of every bond at every scan (scans, D), per chain, slightly offset to be visible."""
    n_bonds = traces[0].rank.shape[1]
    offsets = APART * (np.arange(n_bonds) - (n_bonds - 1) / 2)
    return [trace.rank + offsets for trace in traces]


class Score(NamedTuple):
    """Score of predictions of held-out values, and of the best guess that ignores the keys."""

    name: str
    value: float
    baseline: float
    more_is_better: bool = False

    @property
    def is_worse(self) -> bool:
        """Whether the guess beats the model."""
        return self.value < self.baseline if self.more_is_better else self.value > self.baseline


def held_out_scores(held: HeldOut, is_binary: bool) -> list[Score]:
    """Errors on held-out values; the baseline predicts the mean of these values everywhere."""
    guess = np.full_like(held.mean, held.values.mean())
    if not is_binary:
        return [
            Score("root mean squared error", *_both(metrics.rmse, held, guess)),
            Score("mean absolute error", *_both(metrics.mae, held, guess)),
        ]
    scores = [Score("accuracy", *_both(metrics.accuracy, held, guess), True)]
    if 0 < guess[0] < 1:
        area = metrics.auc(held.values, held.mean)
        scores.insert(0, Score("area under the curve", area, 0.5, True))
    model, average = _both(metrics.binary_log_score, held, guess)
    return [*scores, Score("log loss", -model, -average)]


def _both(
    metric: Callable[[FloatArray, FloatArray], float], held: HeldOut, guess: FloatArray
) -> tuple[float, float]:
    return metric(held.values, held.mean), metric(held.values, guess)


class Calibration(NamedTuple):
    """Nominal and observed coverage of central intervals, (levels,) each."""

    nominal: FloatArray
    observed: FloatArray
    """Coverage of intervals with the model's correction."""
    plain: FloatArray
    """Coverage of intervals without that correction."""
    n: int
    """Number of values on which coverage was measured."""

    def at(self, level: float) -> float:
        """Observed coverage at one of `LEVELS`."""
        return float(self.observed[np.argmin(np.abs(self.nominal - level))])


def calibration(held: HeldOut, likelihood: Likelihood) -> Calibration:
    """Coverage of the intervals for held-out values.

    The likelihood corrects its intervals with held-out values. To evaluate the correction, the
    values are split into two halves, and each is corrected with the other.
    """
    if likelihood.discrete:
        return _discrete_calibration(held, likelihood)
    errors = (held.values - held.mean) / held.std
    is_even = np.arange(len(errors)) % 2 == 0
    inside = np.zeros(LEVELS.size)
    for check in (is_even, ~is_even):
        reach = _reach(errors[~check])
        inside += np.sum(np.abs(errors[check]) <= reach[:, None], axis=1)
    normal = ndtri(0.5 + 0.5 * LEVELS)
    plain = np.mean(np.abs(errors) <= normal[:, None], axis=1)
    return Calibration(LEVELS, inside / len(errors), plain, len(errors))


def chance_range(level: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Range that contains 95 % of measured coverages if `n` intervals are calibrated."""
    half = ndtri(0.975) * np.sqrt(level * (1 - level) / n)
    return np.maximum(level - half, 0.0), np.minimum(level + half, 1.0)


def _discrete_calibration(held: HeldOut, likelihood: Likelihood) -> Calibration:
    """The same for counts and ratings, by ranks drawn evenly within the step of each value."""
    below, upto = (
        likelihood.matched_cdf(values, held.mean, held.std)
        for values in (held.values - 1.0, held.values)
    )
    share = np.random.default_rng(len(held.values)).random(len(held.values))
    distance = np.abs(below + share * (upto - below) - 0.5)
    inside = np.mean(distance <= 0.5 * LEVELS[:, None], axis=1)
    return Calibration(LEVELS, inside, inside, len(distance))


def _reach(errors: FloatArray) -> FloatArray:
    """Half-widths of central intervals at `LEVELS`, in error bars, calibrated on some errors.

    The errors, in error bars, are passed in units so small that no noise is found beyond the bars.
    """
    bars = np.full_like(errors, TINY_UNITS**2)
    taught = Gaussian().calibrate(TINY_UNITS * errors, np.zeros_like(errors), bars)
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    return np.array([taught.quantile(0.5 + 0.5 * level, zero, one)[0] for level in LEVELS])


class Reliability(NamedTuple):
    """Predicted probability and observed share of ones, one number per non-empty bin."""

    predicted: FloatArray
    observed: FloatArray
    lower: FloatArray
    """Ends of the central 95 % interval of the observed share (Jeffreys)."""
    upper: FloatArray
    n: IntArray
    """Number of predictions in the bin."""


def reliability(values: FloatArray, probability: FloatArray) -> Reliability:
    """Sort predictions into bins of equal width and compare them with the outcomes in each."""
    bins = np.minimum((probability * N_BINS).astype(int), N_BINS - 1)
    count = np.bincount(bins, minlength=N_BINS)
    used = count > 0
    count = count[used]
    ones = np.bincount(bins, values, N_BINS)[used]
    predicted = np.bincount(bins, probability, N_BINS)[used] / count
    ends = [betaincinv(ones + 0.5, count - ones + 0.5, tail) for tail in (0.025, 0.975)]
    return Reliability(predicted, ones / count, ends[0], ends[1], count)
