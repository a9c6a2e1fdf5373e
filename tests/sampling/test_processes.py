"""Blocks that were sent to other processes give the same bits as threads."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.data.observations import Observations
from bayesring.engine.operations import UPDATES
from bayesring.engine.threads import Threads
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.length import Length
from bayesring.infer.problem import Method
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.rank import FixedRank, StrandGrowth
from bayesring.model.spec import Model
from bayesring.priors import NormalGamma, NormalWishart, RingPrior
from tests.models import name_of, random_coords
from tests.sampling.heavy_tailed import StudentT
from tests.sampling.processes import Processes


@pytest.fixture(scope="module")
def processes():
    with Processes() as engine:
        yield engine


@pytest.mark.ci
@pytest.mark.parametrize(
    ("likelihood", "prior", "update", "policy"),
    [
        (Gaussian(), NormalWishart(), "slice", StrandGrowth()),
        (Bernoulli(), NormalWishart(), "slice", FixedRank(2)),
        (StudentT(), NormalWishart(), "slice", FixedRank(2)),
        (Gaussian(), NormalGamma(), "entry", FixedRank((2, 3, 1))),
    ],
    ids=name_of,
)
def test_same_bits_in_other_processes(processes, likelihood, prior, update, policy, rng):
    shape = (3, 20, 8)  # slices of the first mode are cut
    coords = random_coords(rng, shape, 900)
    values = likelihood.simulate(rng, np.sin(coords).sum(axis=1), np.array([4.0]))
    data = Observations(coords, values, shape)
    model = Model(likelihood, RingPrior.of(prior), policy)
    sampling = Sampling(Length(80, 5, 2**30), 7, 2, Method(UPDATES[update], block_size=100))
    elsewhere = run_chains(data, model, sampling, processes)
    with Threads(2) as threads:
        here = run_chains(data, model, sampling, threads)
    for (own, trace), (other, other_trace) in zip(here.chains, elsewhere.chains, strict=True):
        np.testing.assert_array_equal(own.flat, other.flat)
        np.testing.assert_array_equal(own.nuisance, other.nuisance)
        np.testing.assert_array_equal(trace.log_likelihood, other_trace.log_likelihood)
