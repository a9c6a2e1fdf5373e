"""`likelihood="auto"`: what the values are, by looking at them and, in doubt, by two short fits.

Zeros and ones are binary. A few consecutive integers from one on, such as 1 to 5, are ratings.
Other non-negative integers are counts, unless normal noise predicts held-out ones better. All else
is real, with normal noise, unless heavy tails predict held-out values better. The short fits see
`MOST` observations at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesring.data.kinds import Choice, choose_by_moments, choose_by_values
from bayesring.data.moments import moments_of
from bayesring.data.observations import Observations, in_order, merged
from bayesring.fitting import fit_memory
from bayesring.likelihoods import Gaussian, Likelihood
from bayesring.posterior import Posterior
from bayesring.settings import resolve

if TYPE_CHECKING:
    from bayesring.data.parquet.rows import Survey
    from bayesring.engine.spread import Spread

FEWEST, MOST = 400, 4_000
"""Observations from which on short fits can tell, and observations that they see."""
HELD = 0.2
SHORT: dict[str, Any] = {
    "rank": 3,
    "inference": "gibbs",
    "prior": "hierarchical",
    "update": "slice",
    "order": None,
    "warmup": 60,
    "draws": 40,
    "chains": 1,
    "max_time": None,
    "max_memory": 2**30,
    "dtype": "float64",
    "batch_size": "auto",
    "epochs": 200,
    "n_jobs": None,
    "random_state": 0,
    "progress": False,
}
"""Settings of short fits."""
FARTHEST = 3.0
"""Gain in log score at one value beyond which it counts no more, so that none decides alone."""
ERRORS, LEAST_GAIN = 3.0, 0.02
"""Standard errors, and log score per value, by which the unusual likelihood must be better."""


def is_auto(likelihood: str | Likelihood) -> bool:
    """Whether the likelihood is left to the values."""
    return isinstance(likelihood, str) and likelihood == "auto"


def chosen_and_told(
    likelihood: str | Likelihood, data: Observations | Spread | Survey, progress: bool
) -> str | Likelihood:
    """The likelihood for some observations; a line on what was taken is shown with `progress`."""
    chosen, notes = choose_likelihood(likelihood, data)
    if notes and progress:
        from bayesring.progress import say

        say(notes)
    return chosen


def choose_likelihood(likelihood: str | Likelihood, data: Observations | Spread | Survey) -> Choice:
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
    gain, error = contest(data, kind, rival)
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


def contest(data: Observations, kind: str, rival: str) -> tuple[float, float]:
    """Gain in mean log score of `rival` over `kind` on values held out, and its standard error.

    Only labels of the observations that are seen count, so that empty ones cost nothing.
    """
    rng = np.random.default_rng(len(data.values))
    rows = np.sort(rng.permutation(len(data.values))[:MOST])
    held = np.zeros(rows.size, dtype=bool)
    held[rng.permutation(rows.size)[: int(HELD * rows.size)]] = True
    found = [np.unique(column[rows], return_inverse=True) for column in data.coords.T]
    coords = np.stack([places for _, places in found], axis=1)
    values = np.asarray(data.values[rows], dtype=float)
    shown = Observations(coords[~held], values[~held], tuple(len(labels) for labels, _ in found))
    kinds = [short_fit(merged(in_order(shown)), each) for each in (kind, rival)]
    scores = [each.log_score(coords[held], values[held]) for each in kinds]
    gains = np.clip(scores[1] - scores[0], -FARTHEST, FARTHEST)
    return float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(gains.size))


def short_fit(data: Observations, likelihood: str) -> Posterior:
    """A posterior that is good enough to compare likelihoods by, without a word to the user."""
    settings = resolve(SHORT | {"likelihood": likelihood})
    names = [str(mode) for mode in range(len(data.shape))]
    outcome, _, units = fit_memory(data, settings.bound(moments_of(data.values), names, data.shape))
    draws = tuple(kept for kept, _ in outcome.chains)
    return Posterior(units.shape, outcome.likelihood, units.location, units.scale, draws)
