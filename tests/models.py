"""Small models for tests: every likelihood and core prior that the package offers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from bayesring import likelihoods, priors
from bayesring.data.observations import Observations
from bayesring.engine.operations import UPDATES
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import Given, RingSize
from bayesring.priors import GammaProcess, RingPrior

# Settings with light tails, so that moments exist and chains mix; a class that is not named here
# is tested with its defaults.
LIGHT_TAILED = {
    "Gaussian": {"alpha0": 2.0, "beta0": 2.0, "max_precision": 3.0},
    "NormalWishart": {"extra_degrees": 3.0},
    "StudentT": {"alpha0": 3.0, "beta0": 2.0, "max_precision": 3.0, "spread": 0.7},
    "NegativeBinomial": {"centre": 0.3, "spread": 0.5, "size_spread": 0.7, "max_size": 50.0},
    "Poisson": {"centre": 0.3, "spread": 0.5},
    "Ordinal": {"levels": 4},
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
    priors,
    {
        "BondPrior",
        "Coupling",
        "ModePrior",
        "RingPrior",
        "GammaProcess",
        "UnitWeights",
        "Smooth",
        "Circular",
        "Spatial",
        "Featured",
    },
)
"""Priors whose slices are independent and that need no labels; those of modes with an order or with
features are in sampling/test_smooth.py and test_featured.py."""


SAMPLERS = [
    (likelihood, core_prior, update)
    for likelihood in LIKELIHOODS
    for core_prior in CORE_PRIORS
    for update in UPDATES
    if core_prior.diagonal or not UPDATES[update].diagonal_only
]
"""Every likelihood x core prior x update that exists."""


def pairwise():
    """Samplers in which every two of likelihood, prior and update meet: updates take turns."""
    chosen = []
    for i, likelihood in enumerate(LIKELIHOODS):
        for j, core_prior in enumerate(CORE_PRIORS):
            updates = [own[2] for own in SAMPLERS if own[:2] == (likelihood, core_prior)]
            chosen.append((likelihood, core_prior, updates[(i + j) % len(updates)]))
    return chosen


PAIRS = pairwise()


def name_of(value) -> str:
    if callable(value):
        return value.__name__
    return str(value) if isinstance(value, (str, tuple)) else type(value).__name__


def random_coords(rng, shape, n):
    return np.stack([rng.integers(0, size, n) for size in shape], axis=1)


def draw_model(rng, likelihood, core_prior, shape=(3, 4, 2), rank=(2, 3, 1), n=12, strands=1):
    """State and data drawn from the prior: (state, data, prior), one prior per mode."""
    prior = RingPrior((core_prior,), GammaProcess(3.0)).for_shape(shape)
    state = draw_prior(rng, shape, RingSize(strands, rank), likelihood, prior)
    return state, simulate(rng, state, random_coords(rng, shape, n), shape, likelihood), prior


@st.composite
def observations(draw):
    """Observations of any order and shape, some cells more than once."""
    order = draw(st.integers(2, 5))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=order, max_size=order)))
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    coords = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    return Observations(coords, rng.integers(0, 5, n).astype(float), shape)


def tagged(rng, shape, n, carried):
    """Observations that carry the named things; exposure is each one's own number.

    Values are few, so that some observations differ in what they carry alone.
    """
    values = rng.integers(0, 4, n) / 4
    made = {
        "weight": rng.integers(1, 4, n).astype(float),
        "offset": rng.standard_normal(n),
        "exposure": rng.permutation(n).astype(float),
    }
    order = np.argsort(made["exposure"])  # observation number i is in row i
    given = Given(**{name: made[name][order] for name in carried})
    return Observations(random_coords(rng, shape, n), values, shape, given=given)


def same_observations(one, two):
    """Check that observations are the same to the bit, and in the same order."""
    assert one.shape == two.shape
    assert (one.location, one.scale) == (two.location, two.scale)
    pairs = [(one.coords, two.coords), (one.values, two.values)]
    for own, other in zip(one.given, two.given, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            pairs.append((own, other))
    for a, b in pairs:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
