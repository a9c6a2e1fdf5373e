"""Known parts of the predictor: a scan sees them as if they were taken out of the values."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.engine import operations
from bayesring.engine.operations import UPDATES, CoreTask
from bayesring.engine.streams import Purpose, Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.joint import log_joint
from bayesring.model.types import Given
from tests.models import CORE_PRIORS, SAMPLERS, draw_model, name_of

GAUSSIANS = [
    (core_prior, update)
    for likelihood, core_prior, update in SAMPLERS
    if isinstance(likelihood, Gaussian)
]


def with_offsets(rng, likelihood, core_prior, strands=2):
    """State, data whose observations carry offsets, and prior; some cells come several times."""
    state, data, prior = draw_model(rng, likelihood, core_prior, n=150, strands=strands)
    return state, data._replace(given=Given(offset=3 * rng.standard_normal(150))), prior


def without_offsets(data):
    """The values that are left for the ring to explain, and nothing carried."""
    return data._replace(values=data.values - data.given.offset, given=Given())


@pytest.mark.parametrize(("core_prior", "update"), GAUSSIANS, ids=name_of)
@pytest.mark.parametrize("block_size", [10, 10_000])
def test_scans_are_those_of_values_without_their_offsets(rng, core_prior, update, block_size):
    likelihood = Gaussian(2.0, 2.0, 3.0)
    state, data, prior = with_offsets(rng, likelihood, core_prior)
    method, streams = Method(UPDATES[update], block_size), Streams.of_chain(7, 0)
    one, two = (
        make_problem(each, likelihood, prior, method) for each in (data, without_offsets(data))
    )
    states = [state, state]
    for scan in (1, 2, 3):
        (first, seen), (second, expected) = (
            gibbs.step(streams, scan, own, problem)
            for own, problem in zip(states, (one, two), strict=True)
        )
        np.testing.assert_allclose(seen.statistics, expected.statistics, rtol=1e-10)
        np.testing.assert_allclose(seen.log_likelihood, expected.log_likelihood, rtol=1e-10)
        np.testing.assert_allclose(seen.energy, expected.energy, rtol=1e-10)
        np.testing.assert_allclose(first.nuisance, second.nuisance, rtol=1e-10)
        for name in ("cores", "weights", "gains"):
            for a, b in zip(getattr(first, name), getattr(second, name), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        states = [first, second]
    plain = make_problem(data._replace(given=Given()), likelihood, prior, method)
    ignored, _ = gibbs.step(streams, 1, state, plain)
    right, _ = gibbs.step(streams, 1, state, one)
    assert not np.allclose(ignored.cores[0], right.cores[0], rtol=1e-3), "offsets matter here"


def test_the_joint_density_is_that_of_values_without_their_offsets(rng):
    likelihood = Gaussian(2.0, 2.0, 3.0)
    state, data, prior = with_offsets(rng, likelihood, CORE_PRIORS[0])
    np.testing.assert_allclose(
        log_joint(state, data, likelihood, prior),
        log_joint(state, without_offsets(data), likelihood, prior),
        rtol=1e-12,
    )


def test_augmentation_is_drawn_at_the_entry_with_its_offset(rng):
    """The response of f + o, as one of f: s (f + o) - w (f + o)^2 / 2 = (s - w o) f - w f^2 / 2."""
    likelihood = Bernoulli()
    state, data, prior = with_offsets(rng, likelihood, CORE_PRIORS[0])
    problem = make_problem(data, likelihood, prior, Method(block_size=20))
    streams = Streams.of_chain(7, 0)
    cores = ring.weighted(state.cores, state.weights)
    for mode, blocks in enumerate(problem.views):
        core = state.cores[mode]
        slice_prior = problem.prior.modes[mode].slice_prior(core, state.hyper[mode])
        task = CoreTask(
            ring.flatten(cores),
            state.weights[mode].ravel(),
            core,
            slice_prior,
            likelihood,
            state.nuisance,
            streams,
            1,
        )
        for block in blocks:
            coords = np.empty((len(block.values), 3), dtype=int)
            coords[:, mode] = block.own
            coords[:, ring.ring_order(mode, 3)] = block.others.T
            offset = block.given.offset
            weight, shift = likelihood.augment(
                streams.rng(1, Purpose.AUGMENT, mode, block.number),
                ring.entries(cores, coords) + offset,
                block.values,
                state.nuisance,
            )
            found = operations.working_response(task, block)
            np.testing.assert_allclose(found.weight, weight, rtol=1e-9)
            np.testing.assert_allclose(found.shift, shift - weight * offset, rtol=1e-9, atol=1e-12)
