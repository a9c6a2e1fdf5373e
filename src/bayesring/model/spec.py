"""What is fitted, in one tuple."""

from __future__ import annotations

from typing import NamedTuple

from bayesring.likelihoods import Likelihood
from bayesring.model.rank import RankPolicy
from bayesring.priors import RingPrior


class Model(NamedTuple):
    """How values arise, what is believed of the ring beforehand, and how large it may be."""

    likelihood: Likelihood
    prior: RingPrior
    policy: RankPolicy
