"""Geweke's joint test (2004): two simulators of p(theta, y) must agree in every statistic.

Each run is long enough to catch the planted bugs that `test_the_ladder_catches` plants. The
first of them, the gain product that ends one factor early, is the slip of the paper's public
code: there phi_h = delta_1 ... delta_{h-1} in one conditional and delta_1 ... delta_h in another,
so that the two belong to no common joint. The output of such a sampler looks fine.
"""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bayesring.data.blocks import blocks_of_modes
from bayesring.data.observations import Observations
from bayesring.engine.operations import UPDATES
from bayesring.infer.problem import Method
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import GammaProcess, NormalGamma, NormalWishart, RingPrior, UnitWeights
from tests.models import LIKELIHOODS, PAIRS, SAMPLERS, name_of
from tests.sampling import bugs
from tests.sampling.ladder import COORDS, SHAPE, SIZE, geweke

LIMIT = 4.5
DEFAULT = NormalWishart(extra_degrees=3.0)
LEARNED = NormalWishart(extra_degrees=3.0, learned=True)
WIDE = NormalWishart(scale=4.0, extra_degrees=3.0)  # omega hardly depends on a small f
GAUSSIAN = Gaussian(2.0, 2.0, 3.0)
PROCESS = GammaProcess(3.0)
STRANDS, SQUARE = RingSize(2, (2, 1, 2)), RingSize(1, (2, 2, 2))
SMALL = 2
"""Observations per block, so few that every mode has several blocks and some slices are cut."""


def run(likelihood, core_prior, update, seed, n, size=SIZE, weights=PROCESS, block_size=None):
    with threadpool_limits(1):
        prior = RingPrior((core_prior,), weights)
        return geweke(likelihood, prior, Method(UPDATES[update], block_size), seed, n, size)


@pytest.mark.ci
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_default_prior(likelihood, seed):
    """Several strands and unit weights, as the estimator grows them."""
    result = run(likelihood, DEFAULT, "slice", seed, 8_000, STRANDS, UnitWeights())
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.ci
@pytest.mark.parametrize("is_wrong", [False, True])
def test_learned_scales(is_wrong, seed, monkeypatch):
    """Logarithms of scales wander slowly: a long run, so that batches are longer than that takes.

    The wrong one draws scales with two degrees of freedom too many.
    """
    if is_wrong:
        monkeypatch.setattr(NormalWishart, "draw_scales", bugs.scales_with_too_many_degrees)
    result = run(GAUSSIAN, LEARNED, "slice", seed, 16_000, SQUARE, UnitWeights())
    assert (abs(result.z).max() > LIMIT) == is_wrong, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_one_strand_with_weights(likelihood, seed):
    result = run(likelihood, DEFAULT, "slice", seed, 8_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.ci
@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(each, marks=[] if place < 2 else pytest.mark.slow)
        for place, each in enumerate(LIKELIHOODS)
    ],
    ids=name_of,
)
def test_several_blocks_per_mode_and_cut_slices(likelihood, seed):
    """With strands and unit weights, as the estimator grows them."""
    blocks = blocks_of_modes(Observations(COORDS, np.zeros(len(COORDS)), SHAPE), SMALL)
    assert all(len(own) > 1 for own in blocks)
    assert any(block.is_part for own in blocks for block in own)
    assert sum(not block.is_part for block in blocks[1]) > 1
    result = run(likelihood, DEFAULT, "slice", seed, 6_000, STRANDS, UnitWeights(), SMALL)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.ci
def test_several_blocks_catch_noise_that_they_share(monkeypatch, seed):
    bugs.blocks_share_their_noise(monkeypatch)
    result = run(GAUSSIAN, DEFAULT, "slice", seed, 6_000, STRANDS, UnitWeights(), SMALL)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


@pytest.mark.ci
def test_entry_wise_updates(seed):
    result = run(GAUSSIAN, NormalGamma(), "entry", seed, 8_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.ci
@pytest.mark.parametrize(("likelihood", "core_prior", "update"), PAIRS, ids=name_of)
def test_every_pair(likelihood, core_prior, update, seed):
    """Every two of likelihood, prior and update together; all three in `make test-slow`."""
    result = run(likelihood, core_prior, update, seed, 4_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "core_prior", "update"), SAMPLERS, ids=name_of)
def test_every_sampler(likelihood, core_prior, update, seed):
    for size in (SIZE, STRANDS):
        result = run(likelihood, core_prior, update, seed, 24_000, size)
        assert abs(result.z).max() <= LIMIT, f"seed {seed}, {size}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_default_prior_at_length(likelihood, seed):
    result = run(likelihood, DEFAULT, "slice", seed, 24_000, STRANDS, UnitWeights())
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "likelihood", "core_prior", "update", "size"),
    [
        (bugs.gain_product_ends_early, GAUSSIAN, DEFAULT, "slice", SIZE),
        (bugs.omega_from_the_wrong_f, Bernoulli(intercept=False), WIDE, "slice", SIZE),
        (bugs.noise_rate_without_its_prior, GAUSSIAN, DEFAULT, "slice", SIZE),
        (bugs.empty_slices_around_zero, GAUSSIAN, DEFAULT, "slice", SIZE),
        (bugs.transposed_complement, GAUSSIAN, DEFAULT, "slice", SQUARE),
        (bugs.transposed_complement, GAUSSIAN, NormalGamma(), "entry", SQUARE),
    ],
    ids=name_of,
)
def test_the_ladder_catches(monkeypatch, bug, likelihood, core_prior, update, size, seed):
    bug(monkeypatch)
    result = run(likelihood, core_prior, update, seed, 8_000, size)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"
