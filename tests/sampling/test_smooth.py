"""The prior of ordered modes: densities, conditionals, length scales, new positions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from bayesring.data.observations import Observations
from bayesring.engine import operations
from bayesring.engine.operations import JOINT
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import Axis, RingSize
from bayesring.priors import NormalWishart, RingPrior, Smooth, UnitWeights, first_order
from bayesring.priors import smooth as module
from bayesring.priors.normal_wishart import log_normal_wishart
from tests.models import name_of
from tests.sampling.ladder import COORDS, SHAPE, geweke
from tests.sampling.test_extensions import middle_task

POSITIONS = np.array([0.0, 1.0, 1.25, 3.0])
GAUSSIAN = Gaussian(alpha0=4.0, beta0=3.0, max_precision=20.0)
OTHER = NormalWishart(extra_degrees=6.0, scale=2.0, learned=True)
LIMIT = 4.5


def test_lengths_may_wake_when_they_are_proposed():
    assert gibbs.WAKE % gibbs.PROPOSE == 0


def ring_prior(positions=POSITIONS, **settings) -> RingPrior:
    middle = Smooth(**{"extra_degrees": 6.0, "scale": 2.0, "learned": True, **settings})
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


def state_and_data(rng, prior=None, likelihood=GAUSSIAN):
    prior = prior or ring_prior()
    state = draw_prior(rng, SHAPE, RingSize(2, (2, 1, 2)), likelihood, prior)
    return state, simulate(rng, state, COORDS, SHAPE, likelihood), prior


def covariance(positions, length):
    gaps = np.abs(np.subtract.outer(positions, positions))
    return np.exp(-gaps / length) if length else np.eye(len(positions))


@pytest.mark.parametrize("step", [0, 3, -1])
def test_density_is_that_of_the_dense_covariance(step, rng):
    smooth = ring_prior().modes[1]
    step = range(len(smooth.lengths))[step]
    hyper = smooth.draw_hyper(rng, (4, 1, 2, 2))._replace(step=np.array([step]))
    core = rng.standard_normal((4, 1, 2, 2))
    between = covariance(POSITIONS, smooth.lengths[step])
    dense = np.kron(between, np.linalg.inv(hyper.precision))
    expected = multivariate_normal(np.tile(hyper.mean, 4), dense).logpdf(core.ravel())
    nothing = smooth.log_prob(core, hyper) - expected
    other = rng.standard_normal(core.shape)
    expected = multivariate_normal(np.tile(hyper.mean, 4), dense).logpdf(other.ravel())
    np.testing.assert_allclose(smooth.log_prob(other, hyper) - expected, nothing, rtol=1e-9)


@pytest.mark.parametrize("step", [0, 2, 9, -1])
def test_slice_prior_is_the_precision_of_the_chain(step, rng):
    smooth = ring_prior().modes[1]
    step = range(len(smooth.lengths))[step]
    hyper = smooth.draw_hyper(rng, (4, 1, 2, 1))._replace(step=np.array([step]))
    found = smooth.slice_prior(np.zeros((4, 1, 2, 1)), hyper)
    inverse = np.linalg.inv(covariance(POSITIONS, smooth.lengths[step]))
    np.testing.assert_allclose(found.factors, np.diag(inverse), rtol=1e-8)
    np.testing.assert_allclose(found.links, -np.diag(inverse, 1), rtol=1e-8, atol=1e-12)
    expected = np.outer(inverse.sum(axis=0), hyper.precision @ hyper.mean)
    np.testing.assert_allclose(found.linear, expected, rtol=1e-7, atol=1e-10)


def test_hyperparameters_given_the_slices_by_ratios(rng):
    """Densities of two (mu, Omega), and of two length scales without them, as the joint's."""
    smooth = ring_prior().modes[1]
    core = rng.standard_normal((4, 1, 2, 1))
    for step in (0, 4, 8):
        scales = np.array([0.7, 2.0])
        parameters, mass = smooth._marginal(core, step, scales)
        own_step = {"step": np.array([step]), "scales": scales}
        pair = [smooth.draw_hyper(rng, core.shape)._replace(**own_step) for _ in "ab"]
        joint = [smooth.log_prob(core, each) for each in pair]
        own = [log_normal_wishart(each, parameters) for each in pair]
        np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-8)
        # log p(core, step) = log p(core, mu, Omega, step) - log p(mu, Omega | core, step)
        total = joint[0] - own[0]
        if step == 0:
            first = total - mass
        np.testing.assert_allclose(total - mass, first, rtol=1e-8)


@pytest.mark.parametrize("run_length", [1, 2, 64])
def test_the_proposal_is_judged_by_the_marginal_likelihood(run_length, monkeypatch, rng):
    """masses[1] - masses[0] is the log ratio of p(y, held slices | ell), by dense algebra."""
    monkeypatch.setattr(gibbs, "RUN", run_length)
    state, data, prior = state_and_data(rng)
    problem, smooth = make_problem(data, GAUSSIAN, prior), prior.modes[1]
    seen = []
    right = gibbs._held_mass
    monkeypatch.setattr(gibbs, "_held_mass", lambda *given: seen.append(right(*given)) or seen[-1])
    masses = []
    constant = Smooth.log_constant

    def noted(self, shape, hyper):
        masses.append((int(hyper.step[0]), constant(self, shape, hyper)))
        return masses[-1][1]

    monkeypatch.setattr(Smooth, "log_constant", noted)
    shared = state.hyper[1]
    pairs = [
        tuple(shared._replace(step=np.array([step])) for step in steps)
        for steps in ((0, 1), (3, 4), (6, 5))
    ]
    for pair in pairs:
        monkeypatch.setattr(Smooth, "alternatives", lambda self, rng, hyper, pair=pair: pair)
        masses.clear()
        seen.clear()
        runs = []
        all_runs = gibbs._all_runs
        monkeypatch.setattr(
            gibbs, "_all_runs", lambda *given: runs.append(all_runs(*given)) or runs[-1]
        )
        hypers = list(state.hyper)
        hypers[1] = pair[0]
        now = state._replace(hyper=tuple(hypers))
        _, task, blocks = middle_task(now, problem)
        task = task._replace(scan=gibbs.WAKE)  # when zero may be proposed
        gibbs.draw_coupled(task, blocks, smooth, pair[0])
        monkeypatch.setattr(gibbs, "_all_runs", all_runs)
        found = [
            mass + held + run.log_mass
            for (_, mass), held, run in zip(masses, seen, runs[0], strict=True)
        ]
        free = np.zeros(4, dtype=bool)
        for first, last in gibbs.passes(smooth, 4, task.scan)[0]:
            free[first:last] = True
        expected = [log_evidence(now, data, smooth, each, free) for each in pair]
        np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8, atol=1e-9)


def log_evidence(state, data, smooth, hyper, free, covariance=covariance):
    """log p(y, slices that are not free | hyper), with the free ones integrated out."""
    size = hyper.mean.size
    between = covariance(np.array(smooth.positions), smooth.length(hyper))
    prior = np.kron(np.linalg.inv(between), hyper.precision)
    features = ring.features(
        list(ring.weighted(state.cores, state.weights)), state.weights[1], 1, data.coords
    )
    wide = np.zeros((len(features), 4 * size))
    for row, (feature, i) in enumerate(zip(features, data.coords[:, 1], strict=True)):
        wide[row, i * size : (i + 1) * size] = feature
    tau, mean = state.nuisance[0], np.tile(hyper.mean, 4)
    precision = prior + tau * wide.T @ wide
    linear = prior @ mean + tau * wide.T @ data.values
    inside = np.repeat(free, size)
    held = state.cores[1].reshape(-1)[~inside]
    block = precision[np.ix_(inside, inside)]
    right = linear[inside] - precision[np.ix_(inside, ~inside)] @ held
    total = 0.5 * np.linalg.slogdet(prior)[1] - 0.5 * mean @ prior @ mean
    total += linear[~inside] @ held - 0.5 * held @ precision[np.ix_(~inside, ~inside)] @ held
    total += 0.5 * right @ np.linalg.solve(block, right) - 0.5 * np.linalg.slogdet(block)[1]
    return total + smooth._log_weights[int(hyper.step[0])]


@pytest.mark.parametrize("block_size", [200, 37])
def test_runs_across_blocks_are_drawn_as_in_one(block_size, rng, monkeypatch):
    """The noise of a block is its own, so with all noise zero the blocks must not matter."""
    monkeypatch.setattr(
        operations,
        "_noise",
        lambda task, block: np.zeros((block.bounds.size - 1, task.core[0].size)),
    )
    positions = np.cumsum(rng.uniform(0.5, 2.0, 150))
    prior = ring_prior(positions)
    shape, coords = (2, 150, 2), np.stack([rng.integers(0, n, 900) for n in (2, 150, 2)], axis=1)
    state = draw_prior(rng, shape, RingSize(1, (2, 2, 2)), GAUSSIAN, prior)
    data = Observations(coords, rng.standard_normal(900), shape)
    found = []
    for size in (10**6, block_size):
        problem = make_problem(data, GAUSSIAN, prior, Method(block_size=size))
        _, task, blocks = middle_task(state, problem)
        asked = [task._replace(scan=scan) for scan in (1, 2)]
        found.append(
            [gibbs.draw_coupled(own, blocks, prior.modes[1], state.hyper[1])[0] for own in asked]
        )
    assert len(problem.views[1]) > 3
    for one, several in zip(*found, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-6, atol=1e-8)


def test_new_positions_are_drawn_from_the_conditional(rng):
    """Mean and variance between, before and after known positions, by dense algebra."""
    smooth = ring_prior().modes[1]
    gaps = rng.standard_normal((4, 1))
    length = float(smooth.lengths[8])
    for x in (-1.0, 0.4, 1.1, 2.9, 5.0):
        chain = first_order.GrowingChain(POSITIONS, gaps, length)
        mean, variance = chain._conditional(x, int(np.searchsorted(POSITIONS, x)))
        whole = covariance(np.append(POSITIONS, x), length)
        weights = np.linalg.solve(whole[:4, :4], whole[:4, 4])
        np.testing.assert_allclose(mean, weights @ gaps, rtol=1e-9)
        np.testing.assert_allclose(variance, 1 - weights @ whole[:4, 4], rtol=1e-9)
    chain = first_order.GrowingChain(POSITIONS, gaps, length)
    np.testing.assert_array_equal(chain.draw(1.25, np.ones(1)), gaps[2])
    once = chain.draw(2.0, np.ones(1))
    np.testing.assert_array_equal(chain.draw(2.0, np.zeros(1)), once)


def test_zero_is_neither_left_nor_entered_between_wakes(rng):
    """Otherwise scans would lead to zero from which they lead nowhere, and favour it."""
    state, data, prior = state_and_data(rng)
    problem, smooth = make_problem(data, GAUSSIAN, prior), prior.modes[1]
    for step in (0, 1):
        hypers = list(state.hyper)
        hypers[1] = hypers[1]._replace(step=np.array([step]))
        _, task, blocks = middle_task(state._replace(hyper=tuple(hypers)), problem)
        found = {
            scan: int(
                gibbs.draw_coupled(task._replace(scan=scan), blocks, smooth, hypers[1])[1].step[0]
            )
            for scan in range(1, 600)
        }
        between = {found[scan] for scan in found if scan % gibbs.WAKE}
        assert between == {0} if step == 0 else 0 not in between
        assert 1 - step in {found[scan] for scan in found if scan % gibbs.WAKE == 0}


def test_new_positions_along_a_decreasing_axis(rng):
    """The same as along the axis turned round."""
    core, noise = rng.standard_normal((5, 1, 2, 1)), rng.standard_normal((3, 1, 2, 1))
    x, new = np.array([0.0, 1.0, 3.0, 3.5, 6.0])[:, None], np.array([[0.4], [3.2], [8.0]])
    found = [
        Smooth()
        .bind(Axis(5, sign * x))
        .new_slices(np.random.default_rng(1), core, noise, Axis(3, sign * new))
        for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(found[0], found[1])


def test_labels_without_positions_are_refused():
    with pytest.raises(ValueError, match="labels are numbers or times"):
        Smooth().bind(Axis(4))
    with pytest.raises(ValueError, match="must increase"):
        Smooth(positions=(0.0, 2.0, 1.0))
