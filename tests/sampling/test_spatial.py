"""The prior of modes on a map: densities, conditionals, patches, length scales, new places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from bayesring.arranging import arrangement, put_back
from bayesring.data.observations import Observations, renumbered
from bayesring.engine import operations
from bayesring.engine.operations import JOINT
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.infer.state import Draws, Outcome
from bayesring.likelihoods import Bernoulli
from bayesring.model import ring
from bayesring.model.joint import draw_prior
from bayesring.model.types import Axis, RingSize
from bayesring.priors import Featured, RingPrior, Spatial, UnitWeights
from bayesring.priors import spatial as module
from bayesring.priors.normal_wishart import log_normal_wishart
from tests.sampling.directed import check_the_proposal, starts_that_agree, state_and_data
from tests.sampling.ladder import geweke
from tests.sampling.test_extensions import middle_task
from tests.sampling.test_smooth import GAUSSIAN, LIMIT, OTHER

POSITIONS = np.array([[0.0, 0.0], [1.0, 0.3], [1.2, 0.5], [0.4, 2.0]])


def ring_prior(positions=POSITIONS, **settings) -> RingPrior:
    middle = Spatial(**{"extra_degrees": 6.0, "scale": 2.0, "learned": True, **settings})
    axes = [Axis(2), Axis(len(positions), positions), Axis(2)]
    return RingPrior((OTHER, middle, OTHER), UnitWeights()).bind(axes)


def covariance(positions, length):
    x = np.asarray(positions)
    gaps = np.linalg.norm(x[:, None] - x[None], axis=2)
    return np.exp(-gaps / length) if length else np.eye(len(x))


def dense_precision(prior, step):
    """Q of all slices."""
    factors, _, graph = prior._chain(step).precision
    return np.diag(factors) - graph.pull(np.eye(len(factors)))


@pytest.fixture
def coarse(monkeypatch):
    """Few length scales, so that short chains meet all of them."""
    monkeypatch.setattr(module, "STEPS", 1)
    monkeypatch.setattr(module, "STRIDES", 1)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("likelihood", "patch"),
    [
        (GAUSSIAN, 2),
        (Bernoulli(), 1),
        pytest.param(GAUSSIAN, 1, marks=pytest.mark.slow),
        pytest.param(Bernoulli(), 2, marks=pytest.mark.slow),
    ],
    ids=["gaussian", "bernoulli", "gaussian, other patches", "bernoulli, other patches"],
)
def test_geweke(coarse, monkeypatch, likelihood, patch, seed):
    monkeypatch.setattr(module, "PATCHES", (patch,))
    with threadpool_limits(1, "blas"):
        prior = ring_prior(neighbours=2)
        result = geweke(likelihood, prior, JOINT, seed, 12_000, RingSize(1, (2, 2, 1)))
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.parametrize("step", [0, 9, -1])
def test_density_is_that_of_the_dense_covariance(step, rng):
    """With as many neighbours as there are places, it is exact."""
    spatial = ring_prior().modes[1]
    step = range(len(spatial.lengths))[step]
    hyper = spatial.draw_hyper(rng, (4, 1, 2, 2))._replace(step=np.array([step]))
    dense = np.kron(covariance(POSITIONS, spatial.lengths[step]), np.linalg.inv(hyper.precision))
    normal = multivariate_normal(np.tile(hyper.mean, 4), dense)
    cores = rng.standard_normal((2, 4, 1, 2, 2))
    found = [spatial.log_prob(core, hyper) - normal.logpdf(core.ravel()) for core in cores]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)
    zero = hyper._replace(step=np.array([0]))
    alone = multivariate_normal(np.tile(hyper.mean, 4), np.kron(np.eye(4), dense[:4, :4]))
    weights = spatial._log_weights
    np.testing.assert_allclose(  # the determinant, too
        found[0] - weights[step],
        spatial.log_prob(cores[0], zero) - alone.logpdf(cores[0].ravel()) - weights[0],
        rtol=1e-7,
    )


@pytest.mark.parametrize("neighbours", [1, 3, 8])
@pytest.mark.parametrize("step", [0, 12, 30])
def test_slice_prior_is_the_precision_of_the_process(neighbours, step, rng):
    """Q is that of g_i = mu + sum_j w_ij (g_j - mu) + innovation, nearest places before each."""
    x = rng.random((14, 2))
    spatial = ring_prior(x, neighbours=neighbours).modes[1]
    length, order = spatial.lengths[step], spatial.arrangement()
    root, whole = np.zeros((14, 14)), covariance(x, length)
    for place, i in enumerate(order):
        before = order[:place]
        near = before[np.argsort(np.linalg.norm(x[before] - x[i], axis=1))[:neighbours]]
        weights = np.linalg.solve(whole[np.ix_(near, near)], whole[near, i])
        v = 1 - weights @ whole[near, i]
        root[i, i], root[i, near] = 1 / np.sqrt(v), -weights / np.sqrt(v)
    expected = root.T @ root
    hyper = spatial.draw_hyper(rng, (14, 1, 2, 1))._replace(step=np.array([step]))
    found = spatial.slice_prior(np.zeros((14, 1, 2, 1)), hyper)
    own = np.diag(found.factors) - found.graph.pull(np.eye(14))
    np.testing.assert_allclose(own, expected, rtol=1e-8, atol=1e-9)
    linear = np.outer(expected.sum(axis=0), hyper.precision @ hyper.mean)
    np.testing.assert_allclose(found.linear, linear, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        -np.sum(np.log(spatial._chain(step).v)), np.linalg.slogdet(expected)[1], atol=1e-8
    )


def test_draws_have_the_covariance_of_the_process(rng):
    spatial = ring_prior(neighbours=3).modes[1]
    noise = rng.standard_normal((4, 200_000))
    drawn = spatial._chain(20).follow(noise)
    np.testing.assert_allclose(
        drawn @ drawn.T / 200_000, np.linalg.inv(dense_precision(spatial, 20)), atol=0.02
    )


def test_hyperparameters_given_the_slices_by_ratios(rng):
    """Densities of two (mu, Omega), and of two length scales without them, as the joint's."""
    spatial = ring_prior(neighbours=2).modes[1]
    core = rng.standard_normal((4, 1, 2, 1))
    for step in (0, 8, 20):
        scales = np.array([0.7, 2.0])
        parameters, mass = spatial._marginal(core, step, scales)
        own_step = {"step": np.array([step]), "scales": scales}
        pair = [spatial.draw_hyper(rng, core.shape)._replace(**own_step) for _ in "ab"]
        joint = [spatial.log_prob(core, each) for each in pair]
        own = [log_normal_wishart(each, parameters) for each in pair]
        np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-8)
        total = joint[0] - own[0]
        if step == 0:
            first = total - mass
        np.testing.assert_allclose(total - mass, first, rtol=1e-8)


def test_length_scales_given_slices_are_looked_for_where_they_are(rng):
    """Those left out have next to no probability."""
    x = rng.random((60, 2))
    spatial = ring_prior(x).modes[1]
    for true in (0, 15, 40):
        hyper = spatial.draw_hyper(rng, (60, 1, 2, 1))._replace(step=np.array([true]))
        core, scales = spatial.draw_core(rng, (60, 1, 2, 1), hyper), np.ones(2)
        steps, masses = spatial._masses(core, scales)
        whole = [spatial._marginal(core, step, scales)[1] for step in range(len(spatial.lengths))]
        np.testing.assert_allclose(masses, np.array(whole)[steps])
        assert np.logaddexp.reduce(masses) > np.logaddexp.reduce(whole) - 1e-3
    many = module.conditional(x[:, None] - x[None, :5], np.repeat(x[None, :5], 60, axis=0), 0.4)
    module.AT_ONCE, before = 7, module.AT_ONCE
    parts = module.conditional(x[:, None] - x[None, :5], np.repeat(x[None, :5], 60, axis=0), 0.4)
    module.AT_ONCE = before
    for one, other in zip(many, parts, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("patch", [1, 2, 4])
def test_the_proposal_is_judged_by_the_marginal_likelihood(patch, monkeypatch, rng):
    monkeypatch.setattr(module, "PATCHES", (patch,))
    state, data, prior = state_and_data(rng, ring_prior())
    check_the_proposal(monkeypatch, state, data, prior, covariance)


@pytest.mark.parametrize("n", [3, 50, 300])
def test_patches_of_a_pass_do_not_depend_on_each_other(n, rng):
    x = rng.random((n, 2))
    spatial = Spatial().bind(Axis(n, x))
    spatial = Spatial().bind(Axis(n, x[spatial.arrangement()]))
    precision, edges = dense_precision(spatial, 20), []
    for scan in (1, 2):
        passes = spatial.patches(n, scan)
        assert len(passes) <= module.PASSES
        met = np.concatenate([np.arange(*run) for runs in passes for run in runs])
        np.testing.assert_array_equal(np.sort(met), np.arange(n))
        for runs in passes:
            owner = np.full(n, -1)
            for number, (first, last) in enumerate(runs):
                owner[first:last] = number
            apart = (owner[:, None] >= 0) & (owner[None] >= 0) & (owner[:, None] != owner[None])
            assert not precision[apart].any()
        edges.append({int(first) for runs in passes for first, _ in runs} - {0})
    assert not edges[0] & edges[1]  # they move


@pytest.mark.parametrize("block_size", [200, 37])
def test_patches_across_blocks_are_drawn_as_in_one(block_size, rng, monkeypatch):
    """The noise of a block is its own, so with all noise zero the blocks must not matter."""
    monkeypatch.setattr(
        operations,
        "_noise",
        lambda task, block: np.zeros((block.bounds.size - 1, task.core[0].size)),
    )
    positions = rng.random((150, 2))
    positions = positions[Spatial().bind(Axis(150, positions)).arrangement()]
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


def test_new_places_are_drawn_from_the_conditional(rng):
    """Given their nearest known ones, by dense algebra; without a place, from the population."""
    x, new = rng.random((12, 2)), rng.random((3, 2))
    spatial = ring_prior(x, neighbours=5).modes[1]
    core, noise = rng.standard_normal((12, 1, 2, 1)), rng.standard_normal((4, 1, 2, 1))
    own = spatial.draw_hyper(rng, core.shape)._replace(step=np.array([25]))
    places = np.vstack([new, [[np.nan, np.nan]]])
    found = spatial.new_given(own, core, noise, Axis(4, places)).reshape(4, 2)
    still = spatial.new_given(own, core, 0.0 * noise, Axis(4, places)).reshape(4, 2)
    beside = spatial.beside_given(own, core, Axis(4, places))
    np.testing.assert_allclose(still[3], own.mean)
    for row, place in enumerate(new):
        near = np.argsort(np.linalg.norm(x - place, axis=1))[:5]
        whole = covariance(np.vstack([x[near], place]), spatial.lengths[25])
        weights = np.linalg.solve(whole[:5, :5], whole[:5, 5])
        v = 1 - weights @ whole[:5, 5]
        mean = own.mean + weights @ (core.reshape(12, 2)[near] - own.mean)
        np.testing.assert_allclose(still[row], mean, rtol=1e-9)
        spread = np.linalg.solve(np.linalg.cholesky(own.precision).T, noise[row].ravel())
        np.testing.assert_allclose(found[row] - still[row], np.sqrt(v) * spread, rtol=1e-8)
        np.testing.assert_allclose(beside.factors[row], 1 / v, rtol=1e-8)
        np.testing.assert_allclose(beside.linear[row], own.precision @ mean / v, rtol=1e-7)


def test_features_over_a_map(rng):
    """What features say is added to slices that follow the map."""
    x = rng.standard_normal((4, 2))
    prior = Featured(Spatial()).bind(Axis(4, POSITIONS, features=x))
    hyper = prior.draw_hyper(rng, (4, 1, 2, 1))._replace(step=np.array([5]))
    core = prior.draw_core(rng, (4, 1, 2, 1), hyper)
    found = prior.slice_prior(core, hyper)
    means = hyper.mean + x @ hyper.slopes
    inverse = np.linalg.inv(covariance(POSITIONS, prior.base.lengths[5]))
    np.testing.assert_allclose(found.linear, inverse @ means @ hyper.precision, rtol=1e-6)
    assert np.isfinite(prior.update_hyper(rng, core, hyper).slopes).all()


def test_what_is_arranged_is_put_back(rng):
    """Draws of arranged cores, put back, give the same entries at the same cells."""
    x = rng.random((9, 2))
    prior, shape, size = ring_prior(x), (2, 9, 2), RingSize(2, (1, 2, 1))
    lines = arrangement(prior, shape, None)
    assert arrangement(prior, shape, 1) is None
    coords = np.argwhere(np.ones(shape))
    cores = [rng.standard_normal(size.core_shape(d, n)) for d, n in enumerate(shape)]
    expected = ring.entries(cores, coords)
    flat = ring.flatten([core[line] for core, line in zip(cores, lines, strict=True)])
    moved = renumbered(Observations(coords, expected, shape), lines)
    np.testing.assert_allclose(
        ring.entries([core[line] for core, line in zip(cores, lines, strict=True)], moved.coords),
        expected,
    )
    bonds, one = np.array(size.bonds), np.ones((1, 1))
    draws = Draws(flat.flat[None], flat.starts, bonds, 2, one, np.ones(1, dtype=int), one)
    back = put_back(Outcome(GAUSSIAN, [(draws, None)], None), lines).chains[0][0]
    np.testing.assert_array_equal(back.flat[0], ring.flatten(cores).flat)


@pytest.mark.ci
def test_the_length_scale_is_found_from_any_start(seed):
    """On thin data: one observation per slice."""
    x = np.random.default_rng(seed).random((60, 2))
    x = x[Spatial().bind(Axis(60, x)).arrangement()]
    starts_that_agree(Spatial(learned=True).bind(Axis(60, x)), Axis(60, x), seed)


def test_labels_without_a_map_are_refused():
    with pytest.raises(ValueError, match="positions with several coordinates"):
        Spatial().bind(Axis(4, np.arange(4.0)[:, None]))
    with pytest.raises(ValueError, match="two labels have the same"):
        Spatial().bind(Axis(3, np.zeros((3, 2))))
    with pytest.raises(ValueError, match="neighbours of Spatial must be at least 1"):
        Spatial(neighbours=0)
