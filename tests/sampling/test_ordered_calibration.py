"""Simulation-based calibration of lines, circles and maps, for both kinds of likelihood."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bayesring.engine.operations import JOINT
from bayesring.infer import gibbs
from bayesring.likelihoods import Bernoulli
from bayesring.model.types import RingSize
from bayesring.priors import circular, smooth, spatial
from tests.models import name_of
from tests.sampling import ladder, test_circular, test_smooth, test_spatial
from tests.sampling.test_calibration import LIMIT

SIMULATIONS = 100
PRIORS = {
    "line": test_smooth.ring_prior,
    "circle": test_circular.ring_prior,
    "map": test_spatial.ring_prior,
}


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few length scales, short runs and small patches: short chains meet all of them."""
    for module in (smooth, circular, spatial):
        monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(gibbs, "RUN", 2)
    monkeypatch.setattr(circular, "RUN", 2)
    monkeypatch.setattr(spatial, "PATCHES", (2,))


def p_values(prior, likelihood, seed):
    with threadpool_limits(1, "blas"):
        return ladder.calibration(
            likelihood, prior, JOINT, seed, SIMULATIONS, size=RingSize(1, (2, 2, 1))
        )


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [test_smooth.GAUSSIAN, Bernoulli()], ids=name_of)
@pytest.mark.parametrize("name", PRIORS)
def test_ranks_are_uniform(name, likelihood, seed):
    found = p_values(PRIORS[name](), likelihood, seed)
    assert min(found.values()) > LIMIT, f"seed {seed}: {found}"


@pytest.mark.slow
def test_wrong_positions_are_seen(monkeypatch, seed):
    """The truth lies along other positions than the sampler is told."""
    told, true = (test_smooth.ring_prior(np.array(x)) for x in ([0, 6, 6.1, 6.2], [0, 0.1, 6, 12]))
    draw, is_truth = ladder.draw_prior, cycle([True, False])  # then a state to begin from

    def drawn(rng, shape, size, likelihood, prior):
        return draw(rng, shape, size, likelihood, true if next(is_truth) else prior)

    monkeypatch.setattr(ladder, "draw_prior", drawn)
    found = p_values(told, test_smooth.GAUSSIAN, seed)
    assert min(found.values()) < LIMIT, f"seed {seed}: went unseen, {found}"
