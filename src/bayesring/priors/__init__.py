"""Priors: one file each. `base.py` says what a prior of the cores must provide."""

from bayesring.priors.protocol import BondPrior, CorePrior, RingPrior
from bayesring.priors.entry_gamma import EntryGamma
from bayesring.priors.fixed import Fixed
from bayesring.priors.gamma_process import GammaProcess
from bayesring.priors.normal_gamma import NormalGamma
from bayesring.priors.normal_wishart import NormalWishart
from bayesring.priors.unit_weights import UnitWeights

__all__ = [
    "BondPrior",
    "CorePrior",
    "EntryGamma",
    "Fixed",
    "GammaProcess",
    "NormalGamma",
    "NormalWishart",
    "RingPrior",
    "UnitWeights",
]
