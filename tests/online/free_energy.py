"""The free energy that online EM climbs, written out.

F = sum_n log p(y_n | f_n, tau) + log p(tau)
    + sum_d E log p(G^(d), hyper) - E log q(hyper) + sum_d E log p(lambda, delta) - E log q(delta)
    + 1/2 sum_i log |V_i| - 1/2 sum_i tr(H_i V_i),

with slices of covariance V_i around their estimates and H_i their curvature, which is diagonal and
taken for a constant. Each step of the E-step and the gradient of the M-step belong to this one
function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesring.infer.em import Setting
from bayesring.infer.estimate import RingEstimate
from bayesring.model.types import FloatArray, IntArray


def free_energy(
    estimate: RingEstimate,
    setting: Setting,
    data: tuple[IntArray, FloatArray],
    parameters: Sequence[Any],
    covariances: Sequence[FloatArray],
    curvatures: Sequence[FloatArray],
) -> float:
    """F of an estimate given all observations, columns (D or more, n) and values (n,).

    `parameters` are those of the distribution of every core's hyperparameters, `covariances` its V,
    (I_d, K, K), or (I_d, K) for the diagonals if the prior is diagonal, and `curvatures` its H,
    (I_d, K).
    """
    likelihood, prior, engine = setting
    columns, values = data
    fitted = estimate.fitted(columns, engine)
    total = float(likelihood.log_prob(fitted, values, estimate.nuisance).sum())
    total += likelihood.log_prior(estimate.nuisance)
    for own, core, hyper, each, curvature in zip(
        prior.modes, estimate.core_list, parameters, covariances, curvatures, strict=True
    ):
        if own.diagonal:
            total += own.expected_log_prob(core, each, hyper)
            variances, log_determinants = each, np.log(each)
        else:
            total += own.expected_log_prob(core, each.sum(axis=0), hyper)
            variances = np.diagonal(each, axis1=1, axis2=2)
            log_determinants = np.linalg.slogdet(each)[1]
        total += 0.5 * float(np.sum(log_determinants) - np.sum(curvature * variances))
    for weights, gains in zip(estimate.weights, estimate.gains, strict=True):
        total += prior.weights.expected_log_prob(weights, gains)
    return total
