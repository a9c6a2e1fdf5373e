"""Modes that share their labels: the conditional of either core, and the whole sampler."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bayesring.engine.operations import JOINT
from bayesring.likelihoods import Gaussian
from bayesring.model.joint import draw_prior, log_joint, simulate
from bayesring.model.types import Axis, RingSize
from bayesring.priors import Featured, NormalWishart, RingPrior, UnitWeights
from bayesring.priors import featured as module
from tests.sampling import ladder

GAUSSIAN = Gaussian(alpha0=4.0, beta0=3.0, max_precision=20.0)
OTHER = NormalWishart(extra_degrees=6.0, scale=2.0, learned=True)
SHAPE = (4, 4, 2)
COORDS = np.array(
    [[0, 0, 0], [1, 1, 0], [0, 2, 1], [1, 0, 1], [2, 2, 0], [0, 1, 1], [2, 0, 1], [0, 0, 0]]
)
LIMIT = 4.5


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(module, "STRENGTHS", np.array([0.0, 0.25, 1.0]))
    monkeypatch.setattr(module, "_LOG_WEIGHTS", np.log([0.4, 0.3, 0.3]))


def ring_prior() -> RingPrior:
    axes = [Axis(size) for size in SHAPE]
    return RingPrior((OTHER, Featured(OTHER), OTHER), UnitWeights(), ((0, 1),)).bind(axes)


@pytest.mark.ci
def test_geweke(coarse, seed, monkeypatch):
    monkeypatch.setattr(ladder, "SHAPE", SHAPE)
    monkeypatch.setattr(ladder, "COORDS", COORDS)
    found = ladder.geweke(GAUSSIAN, ring_prior(), JOINT, seed, 12_000, RingSize(1, (2, 1, 2)))
    assert abs(found.z).max() <= LIMIT, f"seed {seed}: {found.worst()}"


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_slice_prior_is_proportional_to_the_joint(mode, rng):
    """Of either shared mode, and of one that shares nothing, by ratios."""
    prior = ring_prior()
    state = draw_prior(rng, SHAPE, RingSize(2, (2, 1, 1)), GAUSSIAN, prior)
    hyper = list(state.hyper)
    slopes = rng.standard_normal(hyper[1].slopes.shape)
    hyper[1] = hyper[1]._replace(strength=np.array([2.0]), slopes=slopes)
    state = state._replace(hyper=tuple(hyper))
    data = simulate(rng, state, COORDS[:0], SHAPE, GAUSSIAN)
    found = prior.slice_prior(mode, state.cores, state.hyper)
    joint, own = [], []
    for _ in "ab":
        core = rng.standard_normal(state.cores[mode].shape)
        cores = (*state.cores[:mode], core, *state.cores[mode + 1 :])
        joint.append(log_joint(state._replace(cores=cores), data, GAUSSIAN, prior))
        flat = core.reshape(len(core), -1)
        linear = np.broadcast_to(found.linear, flat.shape)
        own.append(np.sum(linear * flat) - 0.5 * np.sum((flat @ found.precision) * flat))
    np.testing.assert_allclose(np.diff(own), np.diff(joint), rtol=1e-9)


def test_resized_cores_take_their_partners_along(rng):
    from bayesring.model.resizing import drop_factors

    prior = ring_prior()
    state = draw_prior(rng, SHAPE, RingSize(1, (2, 2, 2)), GAUSSIAN, prior)
    found = drop_factors(rng, state, 2, np.array([True, False]), prior)  # cores 2 and 0
    assert found.cores[0].shape[2:] == (1, 2)
    assert found.hyper[1].slopes.shape == (2, 4)
