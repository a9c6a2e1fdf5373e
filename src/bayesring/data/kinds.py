"""What kind of values there are, as far as looking at them tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesring.data.moments import moments_of
from bayesring.likelihoods import Likelihood
from bayesring.model.types import FloatArray, Moments

MOST_RATING = 10
"""Highest rating; higher integers are counts."""
MOST_COUNT = 1e9
"""Larger integers are rather codes, or measured in small units."""
FEWEST, SMALL = 100, 20
"""Values from which on a kind is plain to see; mean below which counts are plainly counts."""


class Choice(NamedTuple):
    """A likelihood, and why."""

    likelihood: str | Likelihood
    notes: list[str]


def choose_by_values(values: FloatArray) -> Choice:
    """The likelihood as far as the values alone say; without any, the fit says what is wrong."""
    if not len(values):
        return Choice("gaussian", [])
    whole = bool(np.all(values % 1 == 0))
    levels = np.unique(values) if whole else values[:0]
    binary = np.array_equal(levels, [0.0, 1.0])
    moments = moments_of(values)._replace(binary=binary)
    return choose_by_moments(moments, len(values), len(levels))


def choose_by_moments(moments: Moments, count: int, levels: int | None = None) -> Choice:
    """The same for values that are too numerous to hold; `levels` are distinct integers."""
    low, high = moments.smallest, moments.largest
    if moments.binary and low < high:
        return Choice(
            "bernoulli",
            [
                f"All {count:,} values are 0 or 1: treated as binary, so filled cells are "
                "probabilities (likelihood='gaussian' treats them as real numbers)."
            ],
        )
    if not moments.whole or low < 0 or high - low < 2 or high > MOST_COUNT:
        what = "whole numbers, but no counts" if moments.whole else "real numbers"
        return Choice(
            "gaussian",
            [
                f"The values are {what}: treated with normal noise (likelihood='student-t' "
                "withstands outliers)."
            ],
        )
    if low >= 1 and high <= MOST_RATING and (levels is None or levels >= high - low):
        return Choice(
            "ordinal",
            [
                f"The values are whole numbers from {low:g} to {high:g}: treated as ratings "
                "(likelihood='negative-binomial' treats them as counts, 'gaussian' as real)."
            ],
        )
    kind = "negative-binomial" if moments.variance > moments.mean else "poisson"
    return Choice(
        kind,
        [
            f"The values are counts, from {low:g} to {high:g}: treated by a "
            f"{'negative binomial' if kind != 'poisson' else 'Poisson'} model "
            "(likelihood='gaussian' treats them as real numbers)."
        ],
    )


def looks_otherwise(values: FloatArray) -> list[str]:
    """A warning for those who fit normal noise to what is clearly binary or counts."""
    if values.size < FEWEST:
        return []
    kind = choose_by_values(values).likelihood
    if kind == "bernoulli":
        return [
            "All values are 0 or 1, and normal noise is fitted to them; likelihood='bernoulli' "
            "gives probabilities (likelihood=Gaussian() takes them as they are, and is silent)."
        ]
    if kind in ("negative-binomial", "poisson") and (values.min() == 0 or values.mean() < SMALL):
        return [
            f"The values are counts, and normal noise is fitted to them, so intervals may end "
            f"below zero; likelihood='{kind}' models counts (likelihood=Gaussian() takes them as "
            "they are, and is silent)."
        ]
    return []
