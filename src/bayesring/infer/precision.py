"""Monte Carlo error of what users ask for: predictions, and the ends of their intervals."""

from __future__ import annotations

import numpy as np

from bayesring.infer.diagnostics import mcse_mean
from bayesring.likelihoods import Likelihood
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray

N_CELLS = 50
"""Cells that are watched, drawn at random."""
MOST_CELLS = 0.95
"""Share of the cells whose error is at most the one reported."""
ENOUGH, ENOUGH_PROBABILITY = 0.1, 0.01
"""Errors at which a run ends: relative to the predictive standard deviation; of probabilities."""
ENDS = (0.05, 0.95)
STEP = 0.05
"""Step, in predictive standard deviations, over which the density at an end is measured."""


def random_cells(shape: tuple[int, ...], seed: int) -> IntArray:
    """Cells of the tensor, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, N_CELLS) for size in shape], axis=1)


def answer_error(
    likelihood: Likelihood, entries: FloatArray, nuisance: FloatArray, given: Given = NOTHING
) -> float:
    """Error of means and of ends of 90 % intervals at most cells, in predictive deviations.

    The larger of the two, disagreement between chains included; of binary values, the error of
    probabilities. An end q of the mixture over draws has the error of the mean of F_t(q) over
    draws, divided by the density at q. Discrete values have no such ends.

    Parameters
    ----------
    entries : (chains, draws, n), f in standard units
    nuisance : (chains, draws, p)
    """
    rows = entries.reshape(-1, entries.shape[-1])
    flat = nuisance.reshape(len(rows), nuisance.shape[-1])
    means = likelihood.mean(rows, flat, given)
    errors = mcse_mean(means.reshape(entries.shape))
    if likelihood.binary:
        return float(np.quantile(errors, MOST_CELLS))
    noise = likelihood.variance(rows, flat, given).mean(axis=0)
    deviation = np.sqrt(means.var(axis=0) + noise)
    found = float(np.quantile(errors / deviation, MOST_CELLS))
    if likelihood.discrete:
        return found
    for level in ENDS:
        end = likelihood.quantile(level, rows, flat, given)
        below = likelihood.cdf(end, rows, flat, given)
        beside = (
            likelihood.cdf(end + side * STEP * deviation, rows, flat, given).mean(axis=0)
            for side in (1, -1)
        )
        slope = next(beside) - next(beside)  # per 2 STEP deviations
        with np.errstate(divide="ignore"):
            each = 2 * STEP * mcse_mean(below.reshape(entries.shape)) / slope
        found = max(found, float(np.quantile(each, MOST_CELLS)))
    return found


def enough(likelihood: Likelihood, error: float) -> bool:
    """Whether a run may end with this error."""
    return error <= (ENOUGH_PROBABILITY if likelihood.binary else ENOUGH)
