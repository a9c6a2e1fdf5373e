"""What a new likelihood or a new prior takes: one file, proved like those of the package.

A prior that couples neighbouring slices, as a chain drawn in runs and as a graph drawn slice by
slice; a likelihood with heavy tails, whose parameters need the augmentation; counts with exposure.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from bayesring.engine import operations
from bayesring.engine.operations import JOINT
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.joint import draw_prior, log_joint, simulate
from bayesring.model.types import NOTHING, Axis, Given, RingSize
from bayesring.posterior import Posterior
from bayesring.priors import NormalWishart, RingPrior, UnitWeights
from tests.models import name_of
from tests.sampling import counts, heavy_tailed
from tests.sampling.counts import Counts
from tests.sampling.coupled import Chain, Graph
from tests.sampling.heavy_tailed import StudentT
from tests.sampling.ladder import COORDS, SHAPE, geweke

LIMIT = 4.5
STRANDS = RingSize(2, (2, 1, 2))
DEFAULT = NormalWishart(extra_degrees=3.0)
NARROW = RingPrior((NormalWishart(scale=0.5, extra_degrees=12.0),), UnitWeights())
"""Counts are of the size of exp(f)."""
UNEQUAL = np.array([[0.0], [0.5], [2.0], [6.0]])
GAUSSIAN = Gaussian(2.0, 2.0, 3.0)
EXPOSURE = np.array([1.0, 0.3, 2.5, 1.0, 0.7, 4.0, 1.5, 0.2])
"""Of the observations of the ladder."""


def ring_prior(middle):
    """A ring whose middle mode, of four slices, has a prior of its own."""
    axes = [Axis(2), Axis(4, UNEQUAL), Axis(2)]
    return RingPrior((DEFAULT, middle, DEFAULT), UnitWeights()).bind(axes)


def run(likelihood, prior, seed, n=4_000, given=NOTHING):
    with threadpool_limits(1):
        return geweke(likelihood, prior, JOINT, seed, n, STRANDS, given)


@pytest.mark.ci
@pytest.mark.parametrize("middle", [Chain(), Graph()], ids=name_of)
def test_coupled_slices(monkeypatch, middle, seed):
    monkeypatch.setattr(gibbs, "RUN", 2)  # several runs, borders between them
    result = run(GAUSSIAN, ring_prior(middle), seed)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize("middle", [Chain(), Graph()], ids=name_of)
@pytest.mark.parametrize("likelihood", [GAUSSIAN, Bernoulli()], ids=name_of)
def test_coupled_slices_at_length(monkeypatch, likelihood, middle, seed):
    monkeypatch.setattr(gibbs, "RUN", 2)
    result = run(likelihood, ring_prior(middle), seed, 24_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


def without_neighbours(monkeypatch):
    """A run forgets the slices before and behind it."""
    right = operations.draw_run

    def wrong(task, *rest):
        return right(task._replace(core=np.zeros_like(task.core)), *rest)

    monkeypatch.setattr(operations, "draw_run", wrong)


def wrong_sign(monkeypatch):
    """Neighbours push away instead of pulling."""
    right = Chain.slice_prior

    def wrong(self, core, hyper):
        prior = right(self, core, hyper)
        return prior._replace(links=-prior.links)

    monkeypatch.setattr(Chain, "slice_prior", wrong)


def rho_of_the_wrong_gap(monkeypatch):
    """The gaps between positions are taken in reverse order."""
    right = Chain.slice_prior

    def wrong(self, core, hyper):
        mirrored = tuple(-x for x in reversed(self.positions))
        return right(replace(self, positions=mirrored), core, hyper)

    monkeypatch.setattr(Chain, "slice_prior", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("bug", [without_neighbours, wrong_sign, rho_of_the_wrong_gap])
def test_the_ladder_sees_bugs_of_coupled_slices(monkeypatch, bug, seed):
    monkeypatch.setattr(gibbs, "RUN", 2)
    bug(monkeypatch)
    result = run(GAUSSIAN, ring_prior(Chain()), seed)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


@pytest.mark.parametrize("run_length", [1, 2, 3, 64])
def test_runs_are_drawn_from_their_joint_conditional(monkeypatch, run_length, rng):
    """With all noise at zero a run is at its conditional mean, which dense algebra finds, too."""
    monkeypatch.setattr(gibbs, "RUN", run_length)
    monkeypatch.setattr(operations, "_noise", lambda task, block: np.zeros((4, task.core[0].size)))
    prior = ring_prior(Chain())
    state = draw_prior(rng, SHAPE, STRANDS, GAUSSIAN, prior)
    data = simulate(rng, state, COORDS, SHAPE, GAUSSIAN)
    problem = make_problem(data, GAUSSIAN, prior)
    _, task, blocks = middle_task(state, problem)
    drawn, *_ = gibbs.draw_coupled(task, blocks, prior.modes[1], state.hyper[1])
    mean, _ = dense_conditional(state, data, prior)
    if run_length >= 4:
        np.testing.assert_allclose(drawn.ravel(), mean, rtol=1e-9, atol=1e-12)
    else:  # the last run drawn is at its mean given the others as they stand
        first, last = gibbs.passes(prior.modes[1], 4, task.scan)[-1][-1]
        given = dense_conditional(state, data, prior, drawn.reshape(4, -1), (first, last))[0]
        np.testing.assert_allclose(drawn[first:last].ravel(), given, rtol=1e-9, atol=1e-12)


def middle_task(state, problem):
    """The task that a scan has for the middle mode."""
    flat = ring.flatten(ring.weighted(state.cores, state.weights))
    own = problem.prior.modes[1].slice_prior(state.cores[1], state.hyper[1])
    task = operations.CoreTask(
        flat,
        state.weights[1].ravel(),
        state.cores[1],
        own,
        problem.likelihood,
        state.nuisance,
        Streams.of_chain(0, 0),
        1,
    )
    return 1, task, problem.views[1]


def dense_conditional(state, data, prior, slices=None, free=(0, 4)):
    """Mean and covariance of the free slices of the middle mode given all else."""
    size = state.cores[1][0].size
    features = ring.features(
        list(ring.weighted(state.cores, state.weights)), state.weights[1], 1, data.coords
    )
    precision = np.kron(prior.modes[1].precision, state.hyper[1].psi[0] * np.eye(size))
    linear = np.zeros(4 * size)
    for row, value, i in zip(features, data.values, data.coords[:, 1], strict=True):
        own = slice(i * size, (i + 1) * size)
        precision[own, own] += state.nuisance[0] * np.outer(row, row)
        linear[own] += state.nuisance[0] * value * row
    inside = np.zeros(4 * size, dtype=bool)
    inside[free[0] * size : free[1] * size] = True
    if not inside.all():
        linear = linear - precision[:, ~inside] @ slices.ravel()[~inside]
    covariance = np.linalg.inv(precision[np.ix_(inside, inside)])
    return covariance @ linear[inside], covariance


def test_the_dense_conditional_is_that_of_the_joint(rng):
    """The ratio test for the coupled prior: densities of two cores differ as the joint's do."""
    prior = ring_prior(Chain())
    state = draw_prior(rng, SHAPE, STRANDS, GAUSSIAN, prior)
    data = simulate(rng, state, COORDS, SHAPE, GAUSSIAN)
    mean, covariance = dense_conditional(state, data, prior)
    pair = rng.standard_normal((2, *state.cores[1].shape))
    by_conditional = np.diff(multivariate_normal(mean, covariance).logpdf(pair.reshape(2, -1)))
    joints = []
    for core in pair:
        cores = (state.cores[0], core, state.cores[2])
        joints.append(log_joint(state._replace(cores=cores), data, GAUSSIAN, prior))
    np.testing.assert_allclose(by_conditional, np.diff(joints), rtol=1e-9)


def test_every_slice_is_in_one_run_of_one_pass(rng):
    prior = ring_prior(Chain())
    coords = np.stack([rng.integers(0, n, 900) for n in (2, 300, 2)], axis=1)
    axes = [Axis(2), Axis(300, np.arange(300.0)[:, None]), Axis(2)]
    bound = RingPrior((DEFAULT, Chain(), DEFAULT), UnitWeights()).bind(axes)
    state = draw_prior(rng, (2, 300, 2), STRANDS, GAUSSIAN, bound)
    data = simulate(rng, state, coords, (2, 300, 2), GAUSSIAN)
    problem = make_problem(data, GAUSSIAN, bound, operations_method(block_size=200))
    borders = []
    for scan in (1, 2):
        found = gibbs.passes(prior.modes[1], 300, scan)
        assert len(problem.views[1]) > 2
        met = np.concatenate([np.arange(*run) for runs in found for run in runs])
        np.testing.assert_array_equal(np.sort(met), np.arange(300))
        for runs in found:  # runs of a pass do not touch
            assert np.all(runs[1:, 0] > runs[:-1, 1])
        borders.append({int(first) for first, _ in found[1]})
    assert not borders[0] & borders[1]  # they move
    assert max(np.diff(sorted(borders[0] | borders[1]))) <= gibbs.RUN // 2 + 1


def operations_method(block_size):
    from bayesring.infer.problem import Method

    return Method(block_size=block_size)


@pytest.mark.ci
def test_heavy_tails(seed):
    prior = RingPrior((DEFAULT,), UnitWeights())
    result = run(StudentT(), prior, seed)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
def test_the_ladder_sees_a_forgotten_augmentation(monkeypatch, seed):
    """The noise's conditional without the weights u."""

    def wrong(self, fitted, values, nuisance, given=None, rng=None, response=None):
        return np.array([0.0, values.size, np.sum((values - fitted) ** 2)])

    monkeypatch.setattr(StudentT, "statistics", wrong)
    result = run(StudentT(), RingPrior((DEFAULT,), UnitWeights()), seed)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


@pytest.mark.ci
def test_counts(seed):
    given = Given(offset=np.linspace(-1.0, 1.0, len(COORDS)), exposure=EXPOSURE)
    result = run(Counts(), NARROW, seed, 3_000, given)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exposure", "offset"])
def test_the_ladder_sees_what_is_paired_with_the_wrong_observation(monkeypatch, name, seed):
    """Exposures or offsets that do not follow their observations through the sorting."""
    spread = np.array([30.0, 0.03, 30.0, 0.03, 0.03, 30.0, 30.0, 0.03])
    given = Given(exposure=spread) if name == "exposure" else Given(offset=np.log(spread))
    right = Given.at

    def wrong(self, rows):
        found = right(self, rows)
        return Given(*(each if each is None else each[::-1].copy() for each in found))

    monkeypatch.setattr(Given, "at", wrong)
    result = run(Counts(), NARROW, seed, 3_000, given)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


@pytest.mark.parametrize("module", [heavy_tailed, counts])
def test_a_likelihood_is_one_short_file(module):
    assert len(inspect.getsource(module).splitlines()) < 120


@pytest.mark.parametrize(
    ("likelihood", "nuisance"), [(StudentT(), [[2.0], [0.7]]), (Counts(), np.empty((2, 0)))]
)
def test_quantiles_of_the_mixture_from_the_cdf(likelihood, nuisance, rng):
    """The default quantile: exact for continuous values, the smallest that reaches for counts."""
    fitted, nuisance = rng.standard_normal((2, 7)), np.array(nuisance)
    for level in (0.005, 0.3, 0.5, 0.9, 0.999):
        found = likelihood.quantile(level, fitted, nuisance)
        mass = likelihood.cdf(found, fitted, nuisance).mean(axis=0)
        if likelihood.discrete:
            below = likelihood.cdf(found - 1, fitted, nuisance).mean(axis=0)
            assert np.all((mass >= level) & (below < level))
            assert np.all(found == np.floor(found))
            assert np.all(found >= 0)
        else:
            np.testing.assert_allclose(mass, level, rtol=1e-9)


@pytest.mark.parametrize("likelihood", [StudentT(), Counts()], ids=name_of)
def test_a_new_likelihood_works_from_fit_to_interval(likelihood, rng):
    from bayesring import TensorRing

    coords = np.stack([rng.integers(0, n, 600) for n in (6, 7, 5)], axis=1)
    fitted = np.sin(coords).sum(axis=1) / 2
    values = likelihood.simulate(rng, fitted, np.array([4.0]))
    ring = TensorRing(
        2, likelihood=likelihood, warmup=80, draws=80, chains=2, random_state=0, progress=False
    )
    ring.fit(coords, values)
    assert isinstance(ring.posterior_, Posterior)
    lower, upper = ring.predict_interval(coords, 0.9)
    assert 0.85 < np.mean((lower <= values) & (values <= upper)) <= 0.99
    assert np.corrcoef(ring.predict(coords), likelihood.mean(fitted, np.array([4.0])))[0, 1] > 0.8
