"""Simulation-based calibration: the truth ranks uniformly among the draws of its posterior."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from bayesring.engine.operations import UPDATES
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import (
    Fixed,
    GammaProcess,
    NormalGamma,
    NormalWishart,
    RingPrior,
    UnitWeights,
)
from tests.models import SAMPLERS, name_of
from tests.sampling import bugs
from tests.sampling.ladder import SIZE, calibration

LIMIT = 1e-4
GAUSSIAN = Gaussian(2.0, 2.0, 3.0)
PROCESS = GammaProcess(3.0)


def run(likelihood, core_prior, update, seed, n_simulations=200, size=SIZE, weights=PROCESS):
    with threadpool_limits(1):
        prior = RingPrior((core_prior,), weights)
        return calibration(likelihood, prior, UPDATES[update], seed, n_simulations, size=size)


@pytest.mark.ci
def test_one_sampler(seed):
    p_values = run(GAUSSIAN, NormalGamma(), "slice", seed, 80)
    assert min(p_values.values()) > LIMIT, f"seed {seed}: {p_values}"


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "core_prior", "update"), SAMPLERS, ids=name_of)
def test_every_sampler(likelihood, core_prior, update, seed):
    p_values = run(likelihood, core_prior, update, seed)
    assert min(p_values.values()) > LIMIT, f"seed {seed}: {p_values}"


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [GAUSSIAN, Bernoulli()], ids=name_of)
def test_default_prior(likelihood, seed):
    """Several strands and unit weights, as the estimator grows them."""
    prior, size = NormalWishart(extra_degrees=3.0, learned=True), RingSize(2, (2, 1, 2))
    p_values = run(likelihood, prior, "slice", seed, size=size, weights=UnitWeights())
    assert min(p_values.values()) > LIMIT, f"seed {seed}: {p_values}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "likelihood", "core_prior", "update"),
    [
        (bugs.noise_rate_without_its_prior, GAUSSIAN, Fixed(), "slice"),
        (bugs.empty_slices_around_zero, GAUSSIAN, NormalGamma(k0=0.1, c0=4.0), "slice"),
        (bugs.shifts_of_the_neighbour, GAUSSIAN, Fixed(), "entry"),
        (bugs.shifts_of_the_neighbour, Bernoulli(), Fixed(0.2), "slice"),
    ],
    ids=name_of,
)
def test_the_ladder_catches(monkeypatch, bug, likelihood, core_prior, update, seed):
    bug(monkeypatch)
    p_values = run(likelihood, core_prior, update, seed)
    assert min(p_values.values()) < LIMIT, f"seed {seed}: went unseen, {p_values}"
