"""The free energy that online EM climbs, written out: for tests and for the curious.

F = sum_n log p(y_n | f_n, tau) + log p(tau)
    + sum_d E log p(G^(d), hyper) - E log q(hyper) + sum_d E log p(lambda, delta) - E log q(delta)
    + 1/2 sum log V - 1/2 sum H V,

with entries of variance V round their estimates and H their curvature, which is taken for a
constant. Each step of the E-step and the gradient of the M-step belong to this one function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesring.infer.learner import Learner
from bayesring.types import FloatArray, IntArray


def free_energy(
    learner: Learner,
    columns: IntArray,
    values: FloatArray,
    laws: Sequence[Any],
    spreads: Sequence[FloatArray],
    curvatures: Sequence[FloatArray],
) -> float:
    """F of a learner given all observations, `columns` (D or more, n) and `values` (n,).

    `laws` are those of every core's hyperparameters, `spreads` and `curvatures` its V and H, both
    (I_d, K).
    """
    likelihood, prior = learner.likelihood, learner.prior
    fitted = learner.fitted(columns)
    total = float(likelihood.log_prob(fitted, values, learner.nuisance).sum())
    total += likelihood.log_prior(learner.nuisance)
    for core, law, spread, curvature in zip(learner.cores, laws, spreads, curvatures, strict=True):
        total += prior.cores.expected_log_prob(core, spread, law)
        total += 0.5 * float(np.sum(np.log(spread) - curvature * spread))
    for weights, gains in zip(learner.weights, learner.gains, strict=True):
        total += prior.weights.expected_log_prob(weights, gains)
    return total
