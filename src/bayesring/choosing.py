"""`likelihood="auto"`: what the values are, by looking at them and, in doubt, by two short fits.

Zeros and ones are binary. A few consecutive integers from one on, such as 1 to 5, are ratings.
Other non-negative integers are counts, unless normal noise predicts held-out ones better. All else
is real, with normal noise, unless heavy tails predict held-out values better. The short fits see
`MOST` observations at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesring.data.kinds import Choice, choose_by_moments, choose_by_values
from bayesring.data.observations import Observations
from bayesring.likelihoods import Gaussian, Likelihood

if TYPE_CHECKING:
    from bayesring.data.parquet.rows import Survey
    from bayesring.engine.spread import Spread

FEWEST, MOST = 400, 4_000
"""Observations from which on short fits can tell, and observations that they see."""
HELD = 0.2
SHORT: dict[str, Any] = {"rank": 3, "chains": 1, "warmup": 60, "draws": 40, "order": None}
FARTHEST = 3.0
"""Gain in log score at one value beyond which it counts no more, so that none decides alone."""
ERRORS, LEAST_GAIN = 3.0, 0.02
"""Standard errors, and log score per value, by which the unusual likelihood must be better."""


Estimator = Callable[..., Any]
"""`TensorRing`, for short fits."""


def is_auto(likelihood: str | Likelihood) -> bool:
    """Whether the likelihood is left to the values."""
    return isinstance(likelihood, str) and likelihood == "auto"


def chosen_and_told(
    likelihood: str | Likelihood,
    data: Observations | Spread | Survey,
    estimator: Estimator,
    progress: bool,
) -> str | Likelihood:
    """The likelihood for some observations; a line on what was taken is shown with `progress`."""
    chosen, notes = choose_likelihood(likelihood, data, estimator)
    if notes and progress:
        from bayesring.progress import say

        say(notes)
    return chosen


def choose_likelihood(
    likelihood: str | Likelihood, data: Observations | Spread | Survey, estimator: Estimator
) -> Choice:
    """The likelihood for some observations, with a note on what was taken and how to differ.

    Of data on a cluster or in files, only sums are looked at.
    """
    if not is_auto(likelihood):
        return Choice(likelihood, [])
    if not isinstance(data, Observations):
        return choose_by_moments(data.moments, int(data.counts[0].sum()))
    kind, notes = choose_by_values(data.values)
    if data.given.lower is not None or data.given.error is not None:
        return Choice(
            "gaussian",
            [
                "Ends or errors of values are given: treated as real numbers with normal noise "
                "(likelihood='student-t' takes ends, and withstands outliers)."
            ],
        )
    if data.given.exposure is not None:
        return Choice("negative-binomial", ["Exposures are given: the values are taken as counts."])
    if kind not in ("gaussian", "negative-binomial") or len(data.values) < FEWEST:
        return Choice(kind, notes)
    rival = "student-t" if kind == "gaussian" else "gaussian"
    gain, error = contest(data, kind, rival, estimator)
    if not gain > max(ERRORS * error, LEAST_GAIN):
        if rival == "student-t":
            notes = [
                "The values are real numbers, and held-out ones show no heavy tails: treated with "
                "normal noise (likelihood='student-t' withstands outliers)."
            ]
        return Choice(kind, notes)
    better = f"better by {gain:.2g} +- {error:.1g} in log score per held-out value"
    if rival == "student-t":
        return Choice(
            rival,
            [
                f"The values have heavy tails: Student-t noise predicts {better} than normal noise "
                "(likelihood='gaussian' takes normal noise)."
            ],
        )
    return Choice(
        Gaussian(),
        [
            f"The values are non-negative integers, but normal noise predicts {better} than a "
            "negative binomial: treated as real (likelihood='negative-binomial' as counts)."
        ],
    )


def contest(data: Observations, kind: str, rival: str, estimator: Estimator) -> tuple[float, float]:
    """Gain in mean log score of `rival` over `kind` on values held out, and its standard error."""
    rng = np.random.default_rng(len(data.values))
    rows = np.sort(rng.permutation(len(data.values))[:MOST])
    held = np.zeros(rows.size, dtype=bool)
    held[rng.permutation(rows.size)[: int(HELD * rows.size)]] = True
    coords, values = data.coords[rows], np.asarray(data.values[rows], dtype=float)
    scores = []
    for likelihood in (kind, rival):
        ring = estimator(
            likelihood=likelihood, shape=data.shape, random_state=0, progress=False, **SHORT
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short, and meant to be
            ring.fit(coords[~held], values[~held])
        scores.append(ring.posterior_.log_score(coords[held], values[held]))
    gains = np.clip(scores[1] - scores[0], -FARTHEST, FARTHEST)
    return float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(gains.size))
