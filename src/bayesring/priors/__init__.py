"""Priors: one file each. `mode_prior.py` defines what the prior of a mode must provide."""

from bayesring.priors.bond_prior import BondPrior
from bayesring.priors.circular import Circular
from bayesring.priors.entry_gamma import EntryGamma
from bayesring.priors.featured import Featured
from bayesring.priors.fixed import Fixed
from bayesring.priors.gamma_process import GammaProcess
from bayesring.priors.mode_prior import Coupling, ModePrior
from bayesring.priors.normal_gamma import NormalGamma
from bayesring.priors.normal_wishart import NormalWishart
from bayesring.priors.ring_prior import RingPrior
from bayesring.priors.smooth import Smooth
from bayesring.priors.spatial import Spatial
from bayesring.priors.unit_weights import UnitWeights

__all__ = [
    "BondPrior",
    "Circular",
    "Coupling",
    "EntryGamma",
    "Featured",
    "Fixed",
    "GammaProcess",
    "ModePrior",
    "NormalGamma",
    "NormalWishart",
    "RingPrior",
    "Smooth",
    "Spatial",
    "UnitWeights",
]
