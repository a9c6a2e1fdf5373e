"""The prior of circular modes: densities, conditionals, length scales, new positions."""

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
from bayesring.likelihoods import Bernoulli
from bayesring.model import ring
from bayesring.model.joint import draw_prior
from bayesring.model.types import Axis, RingSize
from bayesring.posterior import folding
from bayesring.priors import Circular, Featured, RingPrior, UnitWeights
from bayesring.priors import circular as module
from bayesring.priors.normal_wishart import log_normal_wishart
from tests.sampling.directed import check_the_proposal, starts_that_agree, state_and_data
from tests.sampling.ladder import geweke
from tests.sampling.test_extensions import middle_task
from tests.sampling.test_smooth import GAUSSIAN, LIMIT, OTHER

PERIOD = 6.0
POSITIONS = np.array([0.5, 1.5, 1.75, 4.0])


def ring_prior(positions=POSITIONS, period=PERIOD, **settings) -> RingPrior:
    middle = Circular(period, **{"extra_degrees": 6.0, "scale": 2.0, "learned": True, **settings})
    axes = [Axis(2), Axis(len(positions), np.asarray(positions)[:, None]), Axis(2)]
    return RingPrior((OTHER, middle, OTHER), UnitWeights()).bind(axes)


def covariance(positions, length, period=PERIOD):
    if not length:
        return np.eye(len(positions))
    d = np.abs(np.subtract.outer(positions, positions))
    d = np.minimum(d, period - d)
    return np.cosh((period / 2 - d) / length) / np.cosh(period / 2 / length)


@pytest.fixture
def coarse(monkeypatch):
    """Few length scales and short arcs, so that short chains meet all of them."""
    monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(module, "RUN", 2)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("likelihood", "run_length"),
    [
        (GAUSSIAN, 64),
        (Bernoulli(), 2),
        pytest.param(GAUSSIAN, 2, marks=pytest.mark.slow),
        pytest.param(Bernoulli(), 64, marks=pytest.mark.slow),
    ],
    ids=["gaussian", "bernoulli", "gaussian, arcs", "bernoulli, whole"],
)
def test_geweke(coarse, monkeypatch, likelihood, run_length, seed):
    monkeypatch.setattr(module, "RUN", run_length)
    with threadpool_limits(1, "blas"):
        size = RingSize(1, (2, 2, 1))
        result = geweke(likelihood, ring_prior(), JOINT, seed, 12_000, size)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.parametrize("step", [0, 3, -1])
def test_density_is_that_of_the_dense_covariance(step, rng):
    circular = ring_prior().modes[1]
    step = range(len(circular.lengths))[step]
    hyper = circular.draw_hyper(rng, (4, 1, 2, 2))._replace(step=np.array([step]))
    between = covariance(POSITIONS, circular.lengths[step])
    dense = np.kron(between, np.linalg.inv(hyper.precision))
    normal = multivariate_normal(np.tile(hyper.mean, 4), dense)
    cores = rng.standard_normal((2, 4, 1, 2, 2))
    found = [circular.log_prob(core, hyper) - normal.logpdf(core.ravel()) for core in cores]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    zero = hyper._replace(step=np.array([0]))
    alone = multivariate_normal(np.tile(hyper.mean, 4), np.kron(np.eye(4), dense[:4, :4]))
    weights = circular._log_weights
    np.testing.assert_allclose(  # the determinant, too
        found[0] - weights[step],
        circular.log_prob(cores[0], zero) - alone.logpdf(cores[0].ravel()) - weights[0],
        rtol=1e-6,
    )


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("step", [0, 2, 9, -1])
def test_slice_prior_is_the_precision_of_the_circle(step, n, rng):
    circular = ring_prior(POSITIONS[:n]).modes[1]
    step = range(len(circular.lengths))[step]
    hyper = circular.draw_hyper(rng, (n, 1, 2, 1))._replace(step=np.array([step]))
    found = circular.slice_prior(np.zeros((n, 1, 2, 1)), hyper)
    inverse = np.linalg.inv(covariance(POSITIONS[:n], circular.lengths[step]))
    off = found.graph.pull(np.eye(n))
    np.testing.assert_allclose(np.diag(found.factors) - off, inverse, rtol=1e-8, atol=1e-10)
    expected = np.outer(inverse.sum(axis=0), hyper.precision @ hyper.mean)
    np.testing.assert_allclose(found.linear, expected, rtol=1e-7, atol=1e-10)


def test_closed_forms_of_the_precision(rng):
    """log|Q| and 1'Q1 of the wrapped process, also where positions nearly meet."""
    gaps = np.array([2e-5, 1.0, 0.3, 2.0, 1e-5])
    for length in (0.2, 1.0, 40.0):
        deltas, whole = gaps / length, gaps.sum() / length
        steps = module.circle_steps(gaps, length)
        kappa = 1 / np.tanh(whole / 2)
        log_det = 5 * np.log(kappa) + np.log(2 * np.cosh(whole) - 2)
        log_det -= np.sum(np.log(2 * np.sinh(deltas)))
        np.testing.assert_allclose(-np.sum(np.log(steps.v)), log_det, rtol=1e-8)
        total = kappa * np.sum(np.tanh(deltas / 2))
        np.testing.assert_allclose(np.sum(steps.a**2), total, rtol=1e-7)


def test_hyperparameters_given_the_slices_by_ratios(rng):
    """Densities of two (mu, Omega), and of two length scales without them, as the joint's."""
    circular = ring_prior().modes[1]
    core = rng.standard_normal((4, 1, 2, 1))
    for step in (0, 4, 8):
        scales = np.array([0.7, 2.0])
        parameters, mass = circular._marginal(core, step, scales)
        own_step = {"step": np.array([step]), "scales": scales}
        pair = [circular.draw_hyper(rng, core.shape)._replace(**own_step) for _ in "ab"]
        joint = [circular.log_prob(core, each) for each in pair]
        own = [log_normal_wishart(each, parameters) for each in pair]
        np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-8)
        total = joint[0] - own[0]
        if step == 0:
            first = total - mass
        np.testing.assert_allclose(total - mass, first, rtol=1e-8)


@pytest.mark.parametrize("run_length", [1, 2, 64])
def test_the_proposal_is_judged_by_the_marginal_likelihood(run_length, monkeypatch, rng):
    monkeypatch.setattr(module, "RUN", run_length)
    state, data, prior = state_and_data(rng, ring_prior())
    check_the_proposal(monkeypatch, state, data, prior, lambda x, ell: covariance(x, ell))


@pytest.mark.parametrize("n_slices", [65, 130, 131, 200])
def test_every_slice_is_in_one_arc_of_one_pass(n_slices):
    circular, borders = Circular(10.0), []
    for scan in (1, 2):
        arcs, single = circular.patches(n_slices, scan)
        met = np.concatenate([np.arange(*run) % n_slices for run in (*arcs, *single)])
        np.testing.assert_array_equal(np.sort(met), np.arange(n_slices))
        assert np.diff(arcs).max() <= module.RUN
        borders.append(set(single[:, 0].tolist()))
    assert not borders[0] & borders[1]  # they move


@pytest.mark.parametrize("block_size", [200, 37])
def test_arcs_across_blocks_are_drawn_as_in_one(block_size, rng, monkeypatch):
    """The noise of a block is its own, so with all noise zero the blocks must not matter."""
    monkeypatch.setattr(
        operations,
        "_noise",
        lambda task, block: np.zeros((block.bounds.size - 1, task.core[0].size)),
    )
    positions = np.cumsum(rng.uniform(0.5, 2.0, 150))
    prior = ring_prior(positions, 200.0)
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


def test_an_arc_across_the_first_slice_by_dense_algebra(rng, monkeypatch):
    """With all noise zero, slices of arcs become their mean given the borders."""
    monkeypatch.setattr(
        operations,
        "_noise",
        lambda task, block: np.zeros((block.bounds.size - 1, task.core[0].size)),
    )
    monkeypatch.setattr(module, "RUN", 8)
    monkeypatch.setattr(Circular, "alternatives", lambda self, rng, hyper: (hyper,))
    n, size = 20, RingSize(1, (2, 1, 2))
    positions = np.cumsum(rng.uniform(0.5, 2.0, n))
    prior, shape = ring_prior(positions, 40.0), (2, n, 2)
    coords = np.stack([rng.integers(0, each, 90) for each in shape], axis=1)
    state = draw_prior(rng, shape, size, GAUSSIAN, prior)
    own = state.hyper[1]._replace(step=np.array([14]))
    state = state._replace(hyper=(state.hyper[0], own, state.hyper[2]))
    data = Observations(coords, rng.standard_normal(90), shape)
    circular = prior.modes[1]
    precision = np.kron(
        np.linalg.inv(covariance(positions, circular.lengths[14], 40.0)), own.precision
    )
    linear = precision @ np.tile(own.mean, n)
    features = ring.features(
        list(ring.weighted(state.cores, state.weights)), state.weights[1], 1, data.coords
    )
    for row, value, i in zip(features, data.values, data.coords[:, 1], strict=True):
        at = slice(2 * i, 2 * i + 2)
        precision[at, at] += state.nuisance[0] * np.outer(row, row)
        linear[at] += state.nuisance[0] * value * row
    arcs, borders = circular.patches(n, 1)
    assert arcs.max() > n  # one goes on at the first slice
    held = np.repeat(np.isin(np.arange(n), borders[:, 0]), 2)
    right = linear[~held] - precision[np.ix_(~held, held)] @ state.cores[1].reshape(-1)[held]
    expected = np.linalg.solve(precision[np.ix_(~held, ~held)], right)
    for block_size in (10**6, 20):
        problem = make_problem(data, GAUSSIAN, prior, Method(block_size=block_size))
        _, task, blocks = middle_task(state, problem)
        found = gibbs.draw_coupled(task, blocks, circular, own)[0].reshape(-1)[~held]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_new_positions_are_drawn_from_the_conditional(rng):
    """Mean and variance between known positions, beyond the last too, by dense algebra."""
    circular = ring_prior().modes[1]
    for known in (4, 1):
        gaps, x = rng.standard_normal((known, 1)), circular._x[:known]
        for step in (2, 8, 12):
            length = float(circular.lengths[step])
            for new in (0.4, 1.1, 2.9, 5.9):
                circle = module.GrowingCircle(x, PERIOD, length, gaps)
                mean, variance = circle._conditional(new, int(np.searchsorted(x, new)))
                whole = covariance(np.append(x, new), length)
                weights = np.linalg.solve(whole[:-1, :-1], whole[:-1, -1])
                np.testing.assert_allclose(mean, weights @ gaps, rtol=1e-9)
                np.testing.assert_allclose(variance, 1 - weights @ whole[:-1, -1], rtol=1e-9)


def test_a_label_one_period_later_is_the_same(rng):
    circular = Circular(24.0).bind(Axis(4, np.array([[0.0], [5.0], [9.0], [20.0]])))
    core, noise = rng.standard_normal((4, 1, 2, 1)), rng.standard_normal((3, 1, 2, 1))
    axis = Axis(3, np.array([[24.0], [-4.0], [33.0]]))
    found = circular.new_slices(np.random.default_rng(1), core, noise, axis)
    np.testing.assert_allclose(found, core[[0, 3, 2]], rtol=1e-9)


def test_new_positions_along_a_decreasing_axis(rng):
    """The same as along the axis turned round."""
    core, noise = rng.standard_normal((5, 1, 2, 1)), rng.standard_normal((3, 1, 2, 1))
    x, new = np.array([0.0, 1.0, 3.0, 3.5, 6.0])[:, None], np.array([[0.4], [3.2], [8.0]])
    found = [
        Circular(9.0)
        .bind(Axis(5, sign * x))
        .new_slices(np.random.default_rng(1), core, noise, Axis(3, sign * new))
        for sign in (1.0, -1.0)
    ]
    np.testing.assert_allclose(found[0], found[1])


def test_new_slices_beside_known_ones_by_dense_algebra(rng):
    circular = ring_prior().modes[1]
    core, new = rng.standard_normal((4, 1, 2, 1)), np.array([0.1, 2.5, 3.0, 5.5])
    for step in (0, 6, 11):
        own = circular.draw_hyper(rng, core.shape)._replace(step=np.array([step]))
        found = circular.beside_given(own, core, Axis(4, new[:, None]))
        x = np.concatenate([POSITIONS, new])
        precision = np.linalg.inv(covariance(x, circular.lengths[step]))
        among = np.diag(found.factors) - found.graph.pull(np.eye(4))
        np.testing.assert_allclose(among, precision[4:, 4:], rtol=1e-7, atol=1e-9)
        pull = precision.sum(axis=1)[4:, None] * own.mean - precision[4:, :4] @ core.reshape(4, 2)
        np.testing.assert_allclose(found.linear, pull @ own.precision, rtol=1e-7, atol=1e-9)
        blocks = found.factors[:, None, None] * own.precision
        drawn = folding.draw_patch(
            np.zeros((4, 2)), blocks, found.linear, found.graph, own.precision
        )
        expected = np.linalg.solve(precision[4:, 4:], pull)
        np.testing.assert_allclose(drawn, expected, rtol=1e-6, atol=1e-8)


def test_features_around_a_circle(rng):
    """What features say is added to slices that follow the circle."""
    base = ring_prior().modes[1]
    x = rng.standard_normal((4, 2))
    prior = Featured(Circular(PERIOD)).bind(Axis(4, POSITIONS[:, None], features=x))
    hyper = prior.draw_hyper(rng, (4, 1, 2, 1))._replace(step=np.array([5]))
    core = prior.draw_core(rng, (4, 1, 2, 1), hyper)
    found = prior.slice_prior(core, hyper)
    inverse = np.linalg.inv(covariance(POSITIONS, base.lengths[5]))
    means = hyper.mean + x @ hyper.slopes
    np.testing.assert_allclose(found.linear, inverse @ means @ hyper.precision, rtol=1e-6)
    assert np.isfinite(prior.update_hyper(rng, core, hyper).slopes).all()


@pytest.mark.ci
@pytest.mark.parametrize("n", [40, 80])
def test_the_length_scale_is_found_from_any_start(n, seed):
    """On thin data: one observation per slice."""
    axis = Axis(n, np.sort(np.random.default_rng(seed).random(n))[:, None])
    starts_that_agree(Circular(1.0, learned=True).bind(axis), axis, seed)


def test_labels_that_are_no_circle_are_refused():
    with pytest.raises(ValueError, match="labels are numbers or times"):
        Circular(24).bind(Axis(4))
    with pytest.raises(ValueError, match="must increase"):
        Circular(24, positions=(0.0, 2.0, 1.0))
    with pytest.raises(ValueError, match="within one period of 24, but they are from 0 to 24"):
        Circular(24, positions=(0.0, 2.0, 24.0))
    with pytest.raises(ValueError, match="period of Circular must be a positive number"):
        Circular(0.0)
