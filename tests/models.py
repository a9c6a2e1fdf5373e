"""Small models for tests: every likelihood and core prior that the package offers."""

from __future__ import annotations

import numpy as np

from bayesring import likelihoods, priors
from bayesring.engine.operations import UPDATES
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import RingSize
from bayesring.priors import GammaProcess, RingPrior

# Settings with light tails, so that moments exist and chains mix; a class that is not named here
# is tested with its defaults.
LIGHT_TAILED = {
    "Gaussian": {"alpha0": 2.0, "beta0": 2.0, "max_precision": 3.0},
    "NormalWishart": {"extra_degrees": 3.0},
}


def found_in(package, protocols):
    """All classes that a package lists, but for the protocols and the bond prior."""
    return [
        getattr(package, name)(**LIGHT_TAILED.get(name, {}))
        for name in package.__all__
        if name not in protocols
    ]


LIKELIHOODS = found_in(likelihoods, {"Likelihood"})
CORE_PRIORS = found_in(
    priors, {"BondPrior", "Coupling", "ModePrior", "RingPrior", "GammaProcess", "UnitWeights"}
)


SAMPLERS = [
    (likelihood, core_prior, update)
    for likelihood in LIKELIHOODS
    for core_prior in CORE_PRIORS
    for update in UPDATES
    if core_prior.diagonal or not UPDATES[update].diagonal_only
]
"""Every likelihood x core prior x update that exists."""


def name_of(value) -> str:
    if callable(value):
        return value.__name__
    return str(value) if isinstance(value, (str, tuple)) else type(value).__name__


def random_coords(rng, shape, n):
    return np.stack([rng.integers(0, size, n) for size in shape], axis=1)


def draw_model(rng, likelihood, core_prior, shape=(3, 4, 2), rank=(2, 3, 1), n=12, strands=1):
    """State and data drawn from the prior: (state, data, prior)."""
    prior = RingPrior((core_prior,), GammaProcess(3.0))
    state = draw_prior(rng, shape, RingSize(strands, rank), likelihood, prior)
    return state, simulate(rng, state, random_coords(rng, shape, n), shape, likelihood), prior
