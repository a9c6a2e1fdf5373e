"""The files that CONTRIBUTING.md tells people to copy work, and keep the contracts they stand for.

Geweke's test here is short, and long enough: with k0 left out of the conditional of the mean, the
worst |z| was 50, with a working weight half as large again as it should be it was 13, against 3 or
less without a bug, with each of four seeds.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest, norm
from threadpoolctl import threadpool_limits

from bayesring import TensorRing
from bayesring.engine.operations import JOINT, UPDATES
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import gibbs
from bayesring.infer.chains import Sampling, run_chains
from bayesring.infer.length import Length
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Gaussian, Likelihood
from bayesring.model.rank import FixedRank
from bayesring.model.spec import Model
from bayesring.model.types import Axis, Observations
from bayesring.priors import GammaProcess, ModePrior, NormalWishart, RingPrior
from tests.models import draw_model, random_coords
from tests.sampling.ladder import geweke
from tests.sampling.test_geweke import LIMIT

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "skeletons"
NOTHING_LEARNED = np.empty(0)


def skeleton(name):
    """The module in a file of the folder, imported by its path."""
    spec = importlib.util.spec_from_file_location(f"skeleton_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def likelihood():
    return skeleton("likelihood").KnownNoise(sigma=0.7)


@pytest.fixture
def prior():
    return skeleton("mode_prior").UnitAroundMean(k0=2.0)


def test_contributing_names_every_skeleton():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = set(re.findall(r"docs/skeletons/(\w+)\.py", text))
    assert named == {path.stem for path in FOLDER.glob("*.py")}


def test_likelihood_is_a_distribution(likelihood, rng):
    """What `simulate` draws has the density, distribution function and moments that it claims."""
    assert isinstance(likelihood, Likelihood)
    fitted = rng.standard_normal(4_000)
    values = likelihood.simulate(rng, fitted, NOTHING_LEARNED)
    assert kstest(likelihood.cdf(values, fitted, NOTHING_LEARNED), "uniform").pvalue > 1e-3
    step = 1e-5
    slope = np.diff(
        [likelihood.cdf(values + way, fitted, NOTHING_LEARNED) for way in (-step, step)], axis=0
    )
    density = np.exp(likelihood.log_prob(fitted, values, NOTHING_LEARNED))
    np.testing.assert_allclose(slope[0] / (2 * step), density, rtol=1e-5, atol=1e-8)
    errors = values - likelihood.mean(fitted, NOTHING_LEARNED)
    variance = likelihood.variance(fitted, NOTHING_LEARNED)
    assert abs(errors.mean()) < 4 * np.sqrt(variance[0] / errors.size)
    np.testing.assert_allclose(np.mean(errors**2), variance.mean(), rtol=0.1)


def test_likelihood_and_its_working_response_agree(likelihood, rng):
    """Ratio test: log p(y | a) - log p(y | b) is s (a - b) - w (a^2 - b^2) / 2."""
    a, b, values = rng.standard_normal((3, 50))
    weight, shift = likelihood.augment(None, a, values, NOTHING_LEARNED)
    by_density = [likelihood.log_prob(f, values, NOTHING_LEARNED) for f in (a, b)]
    by_response = [shift * f - 0.5 * weight * f**2 for f in (a, b)]
    np.testing.assert_allclose(
        by_density[0] - by_density[1], by_response[0] - by_response[1], rtol=1e-9, atol=1e-9
    )
    halves = [
        likelihood.statistics(a[cut], values[cut], NOTHING_LEARNED)
        for cut in (slice(20), slice(20, None))
    ]
    whole = likelihood.statistics(a, values, NOTHING_LEARNED)
    np.testing.assert_allclose(sum(halves), whole, rtol=1e-12)
    np.testing.assert_allclose(
        likelihood.total_log_prob(whole, NOTHING_LEARNED), by_density[0].sum(), rtol=1e-12
    )


def test_mode_prior_conditionals(prior, rng):
    """Ratio tests of slices and hyperparameters against the joint density."""
    assert isinstance(prior, ModePrior)
    shape = (6, 1, 2, 3)
    hyper, other = (prior.draw_hyper(rng, shape) for _ in range(2))
    core, another = (prior.draw_core(rng, shape, hyper) for _ in range(2))
    m, k = prior.conditional(core)
    by_conditional = [norm.logpdf(each.mean, m, k**-0.5).sum() for each in (hyper, other)]
    by_joint = [prior.log_prob(core, each) for each in (hyper, other)]
    np.testing.assert_allclose(np.diff(by_conditional), np.diff(by_joint), rtol=1e-9)

    found = prior.slice_prior(core, hyper)
    slices = [each.reshape(len(each), -1) for each in (core, another)]
    matrix = found.precision + np.diag(found.diagonal[0])
    by_slices = [
        np.sum(each @ found.linear[0]) - 0.5 * np.sum((each @ matrix) * each) for each in slices
    ]
    by_joint = [prior.log_prob(each, hyper) for each in (core, another)]
    np.testing.assert_allclose(np.diff(by_slices), np.diff(by_joint), rtol=1e-9)

    new = prior.new_slices(rng, core, rng.standard_normal((4, *shape[1:])), Axis(10))
    assert new.shape == (4, *shape[1:])


@pytest.mark.parametrize("update", UPDATES)
def test_a_scan_runs(likelihood, prior, update, rng, seed):
    state, data, ring_prior = draw_model(rng, likelihood, prior)
    problem = make_problem(data, likelihood, ring_prior, UPDATES[update])
    after, info = gibbs.step(Streams.of_chain(seed, 0), 1, state, problem)
    assert np.isfinite(info.log_likelihood)
    assert after.hyper[0].mean.shape == (after.cores[0][0].size,)


def test_geweke(likelihood, prior, seed):
    with threadpool_limits(1):
        ring_prior = RingPrior((prior,), GammaProcess(3.0))
        result = geweke(likelihood, ring_prior, JOINT, seed, 1_500)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


def test_the_estimator_takes_them(likelihood, prior, rng):
    shape = (5, 4, 3)
    X = random_coords(rng, shape, 60)
    ring = TensorRing(
        2, likelihood=likelihood, prior=prior, warmup=20, draws=10, chains=1, random_state=0,
        shape=shape, progress=False,
    ).fit(X, rng.standard_normal(60))  # fmt: skip
    lower, upper = ring.predict_interval(X)
    assert np.all(lower < ring.predict(X))
    assert np.all(ring.predict(X) < upper)


def test_engine_gives_the_same_bits():
    rng = np.random.default_rng(0)
    shape = (9, 5, 4)
    data = Observations(random_coords(rng, shape, 700), rng.standard_normal(700), shape)
    model = Model(Gaussian(), RingPrior.of(NormalWishart()), FixedRank(2))
    sampling = Sampling(Length(100, 5, 2**20), seed=1, chains=2, method=Method(block_size=60))
    found = []
    for engine in (ONE_THREAD, skeleton("engine").LastFirst()):
        with engine:
            found.append(run_chains(data, model, sampling, engine))
    expected, got = found
    assert got.likelihood == expected.likelihood
    for (draws, trace), (same_draws, same_trace) in zip(expected.chains, got.chains, strict=True):
        np.testing.assert_array_equal(draws.flat, same_draws.flat)
        np.testing.assert_array_equal(draws.nuisance, same_draws.nuisance)
        np.testing.assert_array_equal(trace.log_likelihood, same_trace.log_likelihood)


def test_data_set_loads():
    data = skeleton("dataset").load_skeleton()
    for field, text in asdict(data.description).items():
        assert len(text) > 3, field
    assert data.shape == (3, 2, 3)
    assert [len(levels) for levels in data.labels.values()] == list(data.shape)
    assert np.isfinite(data.tensor).sum() == len(data.observations.values) == 12
    tests = []
    for fold in range(5):
        train, test = data.split(fold)
        assert len(train.values) + len(test.values) == 12
        assert len(test.values) > 0
        tests.append(test.coords)
    assert len(np.unique(np.concatenate(tests), axis=0)) == 12
    with pytest.raises(ValueError, match="fold must be 0 to 4, got 5"):
        data.split(5)
