"""Geweke's joint test (2004): two simulators of p(theta, y) must agree in every statistic.

Each run is long enough to catch the planted bugs that `test_the_ladder_catches` plants. The
first of them, the gain product that ends one factor early, is the slip of the paper's public
code: there phi_h = delta_1 ... delta_{h-1} in one conditional and delta_1 ... delta_h in another,
so that the two belong to no common joint. The output of such a sampler looks fine.
"""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.priors import GammaProcess, NormalWishart, RingPrior
from tests.models import CORE_PRIORS, LIKELIHOODS, name_of
from tests.sampling import bugs
from tests.sampling.ladder import geweke

LIMIT = 4.5


def run(likelihood, core_prior, seed, n):
    with threadpool_limits(1):
        return geweke(likelihood, RingPrior(core_prior, GammaProcess(3.0)), seed, n)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_default_prior(likelihood, seed):
    result = run(likelihood, NormalWishart(extra_degrees=3.0), seed, 8_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_every_likelihood_and_prior(likelihood, core_prior, seed):
    result = run(likelihood, core_prior, seed, 40_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.parametrize(
    ("bug", "likelihood", "scale"),
    [
        (bugs.gain_product_ends_early, Gaussian(2.0, 2.0, 3.0), 1.0),
        (bugs.omega_from_the_wrong_f, Bernoulli(), 4.0),  # omega hardly depends on a small f
        (bugs.noise_rate_without_its_prior, Gaussian(2.0, 2.0, 3.0), 1.0),
        (bugs.empty_slices_round_zero, Gaussian(2.0, 2.0, 3.0), 1.0),
    ],
    ids=lambda value: getattr(value, "__name__", name_of(value)),
)
def test_the_ladder_catches(monkeypatch, bug, likelihood, scale, seed):
    bug(monkeypatch)
    result = run(likelihood, NormalWishart(scale=scale, extra_degrees=3.0), seed, 8_000)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"
