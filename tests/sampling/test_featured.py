"""The prior of modes with features: densities, conditionals, strengths, new labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import gamma, kstest, multivariate_normal
from threadpoolctl import threadpool_limits

from bayesring.engine.operations import JOINT
from bayesring.infer import gibbs
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.types import Axis, RingSize
from bayesring.priors import Featured, NormalWishart, RingPrior, Smooth, UnitWeights
from bayesring.priors import featured as module
from bayesring.priors import smooth as smooth_module
from bayesring.priors.many_slopes import (
    STRONGEST,
    WEAKEST,
    draw_many_slopes,
    draw_strength,
    given_slopes,
    update_many,
)
from bayesring.priors.normal_wishart import log_normal_wishart
from bayesring.priors.regression import Centring, FeaturedHyper
from tests.models import name_of
from tests.sampling.ladder import geweke

POSITIONS = np.array([0.0, 1.0, 1.25, 3.0])
FEATURES = np.array([[1.0, 0.5, -1.0], [-1.2, 0.1, 0.3], [0.4, -1.0, 0.2], [0.7, 0.9, 0.8]])
GAUSSIAN = Gaussian(alpha0=4.0, beta0=3.0, max_precision=20.0)
OTHER = NormalWishart(extra_degrees=6.0, scale=2.0, learned=True)
WISHART, SMOOTH = OTHER, Smooth.along(OTHER)
BASES = [WISHART, SMOOTH]
SHAPE = (4, 1, 2, 1)
LIMIT = 4.5


def bound(base=WISHART, features=FEATURES, positions=POSITIONS) -> Featured:
    return Featured(base).bind(Axis(len(features), positions[:, None], features=features))


def ring_prior(base, features=FEATURES) -> RingPrior:
    axes = [Axis(2), Axis(4, POSITIONS[:, None], features=features), Axis(2)]
    return RingPrior((OTHER, Featured(base), OTHER), UnitWeights()).bind(axes)


def run(base, likelihood, seed, n):
    return geweke(likelihood, ring_prior(base), JOINT, seed, n, RingSize(1, (2, 2, 1)))


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture
def coarse(monkeypatch):
    """Few strengths, none of them so large that chains hardly move, and few length scales."""
    strengths = np.array([0.0, 0.25, 1.0, 4.0])
    monkeypatch.setattr(module, "STRENGTHS", strengths)
    monkeypatch.setattr(module, "_LOG_WEIGHTS", np.log([0.4, 0.2, 0.2, 0.2]))
    monkeypatch.setattr(smooth_module, "STEPS", 1)
    monkeypatch.setattr(gibbs, "RUN", 2)


@pytest.fixture
def large(monkeypatch):
    """Features that count as many, with a range of strengths in which short chains get about."""
    monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.setattr("bayesring.priors.many_slopes.WEAKEST", 0.25)
    monkeypatch.setattr("bayesring.priors.many_slopes.STRONGEST", 4.0)


@pytest.mark.ci
@pytest.mark.parametrize("base", BASES, ids=name_of)
@pytest.mark.parametrize("likelihood", [GAUSSIAN, Bernoulli()], ids=name_of)
def test_geweke(coarse, base, likelihood, seed):
    result = run(base, likelihood, seed, 12_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


@pytest.mark.ci
def test_geweke_with_many_features(large, seed):
    result = run(WISHART, GAUSSIAN, seed, 12_000)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


def between(base, step):
    if isinstance(base, NormalWishart):
        return np.eye(4)
    length = bound(base).base.lengths[step]
    return (
        np.exp(-np.abs(np.subtract.outer(POSITIONS, POSITIONS)) / length) if length else np.eye(4)
    )


@pytest.mark.parametrize("base", BASES, ids=name_of)
def test_density_is_that_of_the_dense_covariance(base, rng):
    prior = bound(base)
    for _ in range(5):
        hyper = prior.draw_hyper(rng, SHAPE)
        dense = np.kron(between(base, int(hyper.step[0])), np.linalg.inv(hyper.precision))
        mean = (hyper.mean + FEATURES @ hyper.slopes).ravel()
        expected = multivariate_normal(mean, dense)
        cores = rng.standard_normal((2, *SHAPE))
        found = [prior.log_prob(core, hyper) - expected.logpdf(core.ravel()) for core in cores]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_slopes_have_the_density_that_they_are_drawn_from(rng):
    """log p(core, hyper) differs between slopes by that of the core and their N(0, s / Omega)."""
    prior, core = bound(), rng.standard_normal(SHAPE)
    one = prior.draw_hyper(rng, SHAPE)._replace(strength=np.array([4.0]))
    other = one._replace(slopes=rng.standard_normal(one.slopes.shape))
    own = multivariate_normal(np.zeros(2), 4.0 * np.linalg.inv(one.precision))
    plain = [
        own.logpdf(each.slopes).sum()
        + WISHART.log_prob(
            core - (FEATURES @ each.slopes).reshape(SHAPE),
            NormalWishart.of(each),
        )
        for each in (one, other)
    ]
    found = [prior.log_prob(core, each) for each in (one, other)]
    np.testing.assert_allclose(np.diff(found), np.diff(plain), rtol=1e-9)


@pytest.mark.parametrize("base", BASES, ids=name_of)
def test_slice_prior_is_the_precision_of_all_slices(base, rng):
    prior = bound(base)
    for _ in range(5):
        hyper = prior.draw_hyper(rng, SHAPE)
        found = prior.slice_prior(np.zeros(SHAPE), hyper)
        inverse = np.linalg.inv(between(base, int(hyper.step[0])))
        means = hyper.mean + FEATURES @ hyper.slopes
        np.testing.assert_allclose(
            found.linear, inverse @ means @ hyper.precision, rtol=1e-7, atol=1e-9
        )


def log_of_rest(prior, core, hyper):
    """log p(mu, Omega, B | core, s, ell), by the parameters from which they are drawn."""
    step, strength = int(hyper.step[0]), float(hyper.strength[0])
    found = prior._regressed(core, step, hyper.scales)
    parameters = module.NormalWishartParameters(
        found.mean(hyper.slopes), found.centring.k, found.nu, found.scale_at(strength)
    )
    total = log_normal_wishart(hyper, parameters)
    if strength > 0:
        vectors, squares = found.spectrum
        rest = np.eye(len(vectors)) - vectors @ vectors.T
        rows = (vectors * (strength / (1 + strength * squares))) @ vectors.T + strength * rest
        dense = np.kron(rows, np.linalg.inv(hyper.precision))
        gap = (hyper.slopes - found.slopes(strength)).ravel()
        total += multivariate_normal(np.zeros(gap.size), dense).logpdf(gap)
    return total


@pytest.mark.parametrize("base", BASES, ids=name_of)
@pytest.mark.parametrize("count", [3, 6])  # six features of four labels: the other algebra
def test_hyperparameters_given_the_slices_by_ratios(base, count, rng):
    features = np.column_stack([FEATURES, rng.standard_normal((4, count - 3))])
    prior, core = bound(base, features), rng.standard_normal(SHAPE)
    steps = [0] if isinstance(base, NormalWishart) else [0, 4, 8]
    scales = np.array([0.7, 2.0])
    masses = {
        step: prior._masses(prior._regressed(core, step, scales), step, module.STRENGTHS)
        for step in steps
    }
    first = None
    for step in steps:
        for place in (0, 5, 12):
            strength = module.STRENGTHS[place]
            pair = []
            for _ in "ab":
                drawn = prior.draw_hyper(rng, SHAPE)
                noise = rng.standard_normal(drawn.slopes.shape)
                pair.append(
                    drawn._replace(
                        strength=np.array([strength]),
                        slopes=noise * (strength > 0),
                        step=np.array([step]),
                        scales=scales,
                    )
                )
            joint = [prior.log_prob(core, each) for each in pair]
            own = [log_of_rest(prior, core, each) for each in pair]
            np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-8, atol=1e-8)
            # log p(core, s, ell) = log p(core, all) - log p(all else | core, s, ell)
            total = joint[0] - own[0] - masses[step][place]
            first = total if first is None else first
            np.testing.assert_allclose(total, first, rtol=1e-8, atol=1e-8)


def test_draws_have_the_moments_of_their_conditional(rng):
    """Of slopes, mean and covariance, at one strength."""
    prior, core = bound(), rng.standard_normal(SHAPE)
    found = prior._regressed(core, 0, None)
    draws = [found.draw(rng, 2.0) for _ in range(4_000)]
    slopes = np.array([slopes for _, slopes in draws])
    error = slopes.std(axis=0) / np.sqrt(len(slopes))
    assert np.all(np.abs(slopes.mean(axis=0) - found.slopes(2.0)) < 5 * error)
    vectors, squares = found.spectrum
    rows = (vectors * (2.0 / (1 + 2.0 * squares))) @ vectors.T
    # E[(B - M) Omega (B - M)'] = K times the covariance of the rows
    gaps = np.array(
        [(own - found.slopes(2.0)) @ np.linalg.cholesky(hyper.precision) for hyper, own in draws]
    )
    np.testing.assert_allclose(np.einsum("nik,njk->ij", gaps, gaps) / len(gaps) / 2, rows, atol=0.1)
    means = np.array([hyper.mean - found.mean(own) for hyper, own in draws])
    error = means.std(axis=0) / np.sqrt(len(means))
    assert np.all(np.abs(means.mean(axis=0)) < 5 * error)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_conjugate_gradients_draw_what_a_factorisation_draws(kind, rng):
    """Mean and covariance of (X' T T X + I / s)^-1 ..., by many draws and dense algebra."""
    design, slices = rng.standard_normal((7, 4)), rng.standard_normal((7, 2))
    precision, centring = np.array([[2.0, 0.5], [0.5, 1.0]]), Centring(np.ones(7), 2.0)
    dense = design.T @ centring.twice(design) + np.eye(4) / 0.5
    expected = np.linalg.solve(dense, design.T @ centring.twice(slices))
    draws = np.array(
        [
            draw_many_slopes(rng, slices, kind(design), centring, precision, 0.5)
            for _ in range(1_000)
        ]
    )
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 5 * error)
    covariance = np.kron(np.linalg.inv(dense), np.linalg.inv(precision))
    found = np.cov(draws.reshape(len(draws), -1).T)
    np.testing.assert_allclose(found, covariance, atol=6 * covariance.max() / np.sqrt(500))


@pytest.mark.parametrize("base", BASES, ids=name_of)
def test_new_labels_are_drawn_as_if_they_had_been_there(base, rng, monkeypatch):
    """Given all that is shared: the conditional of the fifth slice of a prior of five."""
    prior, core = bound(base), rng.standard_normal(SHAPE)
    x, place = np.array([[0.3, -0.4, 1.1]]), np.array([2.0])
    hyper = prior.draw_hyper(rng, SHAPE)._replace(slopes=rng.standard_normal((3, 2)))
    if isinstance(base, Smooth):
        hyper = hyper._replace(step=np.array([6]))
    monkeypatch.setattr(Featured, "draw_shared", lambda self, rng, core: hyper)
    axis = Axis(1, place[:, None], features=x)
    mean = prior.new_slices(rng, core, np.zeros((1, 1, 2, 1)), axis).ravel()
    positions = np.append(POSITIONS, place)
    rows = np.eye(5)
    if isinstance(base, Smooth):
        length = prior.base.length(hyper)
        rows = np.exp(-np.abs(np.subtract.outer(positions, positions)) / length)
    weights = np.linalg.solve(rows[:4, :4], rows[:4, 4])
    gaps = core.reshape(4, 2) - hyper.mean - FEATURES @ hyper.slopes
    expected = hyper.mean + x[0] @ hyper.slopes + weights @ gaps
    np.testing.assert_allclose(mean, expected, rtol=1e-9)
    beside = prior.beside(rng, core, axis)
    factor = beside.factors[0]
    np.testing.assert_allclose(1 / factor, 1 - weights @ rows[:4, 4], rtol=1e-9)
    solved = np.linalg.solve(factor * beside.precision, beside.linear[0])
    np.testing.assert_allclose(solved, expected, rtol=1e-8)


def test_features_that_are_not_known_widen_new_slices(rng, monkeypatch):
    prior, core = bound(), rng.standard_normal(SHAPE)
    hyper = prior.draw_hyper(rng, SHAPE)._replace(slopes=3 * rng.standard_normal((3, 2)))
    monkeypatch.setattr(Featured, "draw_shared", lambda self, rng, core: hyper)
    noise = rng.standard_normal((50_000, 1, 2, 1))
    new = prior.new_slices(rng, core, noise, Axis(len(noise))).reshape(-1, 2)
    fitted = FEATURES @ hyper.slopes
    expected = np.linalg.inv(hyper.precision) + np.cov(fitted.T, bias=True)
    np.testing.assert_allclose(np.cov(new.T), expected, rtol=0.1, atol=0.1)
    np.testing.assert_allclose(new.mean(axis=0), hyper.mean + fitted.mean(axis=0), atol=0.2)


def test_useless_features_are_found_to_be_useless(rng):
    """And useful ones useful, with hyperparameters drawn given the slices alone."""
    features = rng.standard_normal((200, 5)) / np.sqrt(5)
    noise = rng.standard_normal((200, 1, 2, 2))
    prior = Featured().bind(Axis(200, features=features))
    strengths = [float(prior.draw_shared(rng, noise).strength[0]) for _ in range(50)]
    assert np.mean(np.array(strengths) <= 2.0**-5) > 0.9
    useful = noise + (features @ rng.standard_normal((5, 4))).reshape(noise.shape)
    strengths = [float(prior.draw_shared(rng, useful).strength[0]) for _ in range(50)]
    assert 0.2 < np.median(strengths) < 5


def test_a_base_without_a_mean_to_move_is_refused():
    from bayesring.priors import Fixed

    with pytest.raises(ValueError, match="NormalWishart or a prior"):
        Featured(Fixed())


def test_many_slopes_count_as_slices_in_the_conditional_of_what_is_shared(large, rng):
    """(mu, Omega) given B and s, by ratios of the joint."""
    prior, core = bound(), rng.standard_normal(SHAPE)
    assert prior.is_large
    pair = [prior.draw_hyper(rng, SHAPE) for _ in "ab"]
    slopes, strength, scales = pair[0].slopes, pair[0].strength, pair[0].scales
    pair[1] = pair[1]._replace(slopes=slopes, strength=strength, scales=scales)
    residual = (core.reshape(len(core), -1) - prior.features @ slopes).reshape(core.shape)
    parameters = given_slopes(prior.base, residual, slopes, float(strength[0]), scales)
    joint = [prior.log_prob(core, each) for each in pair]
    own = [log_normal_wishart(each, parameters) for each in pair]
    np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-9)


def test_the_strength_of_many_slopes_is_that_of_all_their_entries(rng):
    """1 / s ~ Ga(F K / 2, tr(Omega B' B) / 2), by the ratio of the joint and by its moments."""
    slopes, precision = rng.standard_normal((40, 3)), np.diag([1.0, 2.0, 0.5])
    draws = np.array([1 / draw_strength(rng, slopes, precision) for _ in range(4_000)])
    expected = gamma(60.0, scale=2 / np.sum((slopes @ precision) * slopes))
    assert kstest(draws, expected.cdf).pvalue > 1e-4
    far = [draw_strength(rng, 1e-9 * slopes, precision) for _ in range(5)]
    np.testing.assert_allclose(far, WEAKEST, rtol=0.5)
    assert max(draw_strength(rng, 1e9 * slopes, precision) for _ in range(5)) <= STRONGEST


def test_many_slopes_leave_only_residuals_to_the_precision(rng):
    """Slices that follow their features closely, from a strength that is far too small."""
    design, slopes = rng.standard_normal((200, 3)), 5.0 * rng.standard_normal((3, 2))
    slices = design @ slopes + 0.1 * rng.standard_normal((200, 2))
    start = FeaturedHyper(
        np.zeros(2), 100.0 * np.eye(2), slopes, np.array([1e-3]), np.zeros(1, int), np.ones(2)
    )
    drawn = update_many(rng, NormalWishart(), slices.reshape(200, 1, 2, 1), design, start, True)
    assert np.diag(drawn.precision).min() > 10.0  # 0.01 if slices were taken for residuals
    assert drawn.strength[0] > 1.0
    np.testing.assert_allclose(drawn.slopes, slopes, atol=0.1)


def test_estimates_know_how_uncertain_the_slices_are(rng):
    """What is uncertain adds to the scatter, and features explain nothing of it."""
    features = rng.standard_normal((50, 2))
    core = (features @ rng.standard_normal((2, 4))).reshape(50, 1, 2, 2)
    prior, spread = Featured().bind(Axis(50, features=features)), 1e6 * np.eye(4)
    sure, unsure = prior.conditional(core), prior.conditional(core, spread)
    assert sure.strength > 1.0
    assert unsure.strength == 0.0
    scatter = prior._regressed(core, 0, None).scale_at(0.0)
    np.testing.assert_allclose(unsure.shared.scale_inverse, scatter + spread)


def test_alternatives_are_weighed_by_the_density_of_their_length_scale(rng):
    """What slice priors leave out of the density: all of it, where slices are zero."""
    prior = bound(SMOOTH)
    start = prior.draw_hyper(rng, SHAPE)
    start = start._replace(step=np.array([3]), slopes=rng.standard_normal((3, 2)))
    pair = prior.alternatives(rng, start)
    assert [abs(int(each.step[0]) - 3) for each in pair] == [0, 1]
    densities = [prior.log_prob(np.zeros(SHAPE), each) for each in pair]
    constants = [prior.log_constant(SHAPE, each) for each in pair]
    np.testing.assert_allclose(np.diff(constants), np.diff(densities), rtol=1e-9)


def test_length_scales_stay_where_the_mass_is(rng, monkeypatch):
    """Nearly all of it at the second one, so that a chain that got there remains there."""
    monkeypatch.setattr(Featured, "_regressed", lambda *_: None)
    monkeypatch.setattr(Featured, "_masses", lambda self, found, step, _: [9.0 * (step == 1)])
    monkeypatch.setattr(module, "MOVES", 40)
    prior, core = bound(SMOOTH), np.zeros(SHAPE)
    ends = [prior._move_length(rng, prior.base, core, 0, 1.0, np.ones(2)) for _ in range(50)]
    assert ends.count(1) > 40
