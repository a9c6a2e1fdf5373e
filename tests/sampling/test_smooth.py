"""The prior of ordered modes: densities, conditionals, length scales, new positions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from bayesring.data.observations import Observations
from bayesring.engine.operations import JOINT
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.joint import draw_prior, log_joint, simulate
from bayesring.model.types import Axis, RingSize
from bayesring.priors import NormalWishart, RingPrior, Smooth, UnitWeights
from bayesring.priors import smooth as module
from bayesring.priors.smooth import SmoothHyper
from tests.models import name_of
from tests.sampling.ladder import COORDS, SHAPE, geweke

POSITIONS = np.array([0.0, 1.0, 1.25, 3.0])
GAUSSIAN = Gaussian(alpha0=4.0, beta0=3.0, max_precision=20.0)
OTHER = NormalWishart(extra_degrees=6.0, scale=2.0)
LIMIT = 4.5


def ring_prior(positions=POSITIONS, **settings) -> RingPrior:
    middle = Smooth(**{"extra_degrees": 6.0, "scale": 2.0, **settings})
    axes = [Axis(2), Axis(len(positions), np.asarray(positions)[:, None]), Axis(2)]
    return RingPrior((OTHER, middle, OTHER), UnitWeights()).bind(axes)


def run(likelihood, seed, n, size=None):
    with threadpool_limits(1, "blas"):
        return geweke(likelihood, ring_prior(), JOINT, seed, n, size or RingSize(1, (2, 2, 1)))


@pytest.fixture
def coarse(monkeypatch):
    """Few length scales and short runs, so that short chains meet all of them."""
    monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(gibbs, "RUN", 2)


@pytest.mark.ci
@pytest.mark.parametrize("likelihood", [GAUSSIAN, Bernoulli()], ids=name_of)
def test_geweke(coarse, likelihood, seed):
    result = run(likelihood, seed, 12_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"
