"""What is fitted, in one tuple."""

from __future__ import annotations

from typing import NamedTuple

from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.priors import RingPrior


class Model(NamedTuple):
    """Likelihood, prior of the ring, and rank policy."""

    likelihood: Likelihood
    prior: RingPrior
    policy: RankPolicy
