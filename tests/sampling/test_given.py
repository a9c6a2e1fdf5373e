"""What is known besides the values: errors, ends, groups, weights, each against the joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, norm, t, truncnorm
from threadpoolctl import threadpool_limits

from bayesring.engine.operations import JOINT
from bayesring.likelihoods import Bernoulli, Gaussian, NegativeBinomial, Ordinal, StudentT
from bayesring.likelihoods import student_t as student_t_module
from bayesring.model import grouped_noise, latent
from bayesring.model.types import Given, RingSize
from bayesring.priors import NormalWishart, RingPrior, UnitWeights
from tests.models import LIKELIHOODS, name_of
from tests.sampling.ladder import COORDS, geweke

LIMIT = 4.5
PRIOR = RingPrior((NormalWishart(extra_degrees=3.0),), UnitWeights())
STRANDS = RingSize(2, (2, 1, 2))
GAUSSIAN = Gaussian(2.0, 2.0, 3.0)
HEAVY = StudentT(3.0, 2.0, 3.0, spread=0.7)
GROUPED = Gaussian(2.0, 2.0, 3.0, noise_by=1, group_mode=1, caps=(3.0, 2.0, 3.0, 4.0))
ERRORS = Given(error=np.array([0.0, 2.0, 0.5, 1.0, 0.0, 3.0, 0.2, 1.0]))


def rounded(data):
    """Every other value is known to lie in a bin of width one and a half, or beyond two."""
    hidden = np.arange(len(data.values)) % 2 == 0
    lower = 1.5 * np.floor(data.values / 1.5)
    upper = np.where(data.values > 2.0, np.inf, lower + 1.5)
    lower = np.where(data.values > 2.0, 2.0, np.where(data.values < -2.0, -np.inf, lower))
    upper = np.where(data.values < -2.0, -2.0, np.minimum(upper, np.where(upper > 2.0, 2.0, upper)))
    upper = np.where(data.values > 2.0, np.inf, upper)
    lower = np.where((data.values >= -2.0) & (lower < -2.0), -2.0, lower)
    given = Given(lower=np.where(hidden, lower, np.nan), upper=np.where(hidden, upper, np.nan))
    stand_in = np.clip(0.0, np.where(hidden, lower, -np.inf), np.where(hidden, upper, np.inf))
    return data._replace(values=np.where(hidden, stand_in, data.values), given=given)


def run(likelihood, seed, n=4_000, **more):
    with threadpool_limits(1):
        return geweke(likelihood, PRIOR, JOINT, seed, n, STRANDS, **more)


def test_bins_hold_their_values(rng):
    from bayesring.data.observations import Observations

    values = 3 * rng.standard_normal(1_000)
    seen = rounded(Observations(np.zeros((1_000, 3), dtype=int), values, (1, 1, 1)))
    known = ~np.isnan(seen.given.lower)
    assert np.all(seen.given.lower[known] <= values[known])
    assert np.all(values[known] <= seen.given.upper[known])
    assert np.all(seen.given.lower[known] < seen.given.upper[known])


@pytest.mark.ci
@pytest.mark.parametrize(
    ("likelihood", "more"),
    [
        (GAUSSIAN, {"given": ERRORS}),
        (GAUSSIAN, {"see": rounded}),
        (HEAVY, {"see": rounded}),
        (GROUPED, {}),
        (replace(GROUPED, max_precision=1.5), {"given": ERRORS}),
    ],
    ids=["errors", "ends", "ends-of-t", "groups", "groups-and-errors"],
)
def test_geweke(likelihood, more, seed):
    result = run(likelihood, seed, **more)
    assert abs(result.z).max() <= LIMIT, f"seed {seed}: {result.worst()}"


def error_forgotten(monkeypatch):
    """Residuals keep their errors of measurement when tau is drawn."""
    right = Gaussian._residuals

    def wrong(self, fitted, values, nuisance, given, rng):
        return right(self, fitted, values, nuisance, Given(), rng)

    monkeypatch.setattr(Gaussian, "_residuals", wrong)


def ends_swapped(monkeypatch):
    """Draws between the ends come from the mirror image."""
    right = latent.draw_normal_between
    monkeypatch.setattr(latent, "draw_normal_between", lambda r, a, b: -right(r, -b, -a) * 0.5)


def kappa_of_the_shape_only(monkeypatch):
    """The rate of a group's precision forgets kappa."""
    right = grouped_noise.GroupedNoise.conditional

    def wrong(self, counts, squares, nuisance):
        shape, _ = right(self, counts, squares, nuisance)
        return shape, 1.0 / nuisance[0] + 0.5 * squares

    monkeypatch.setattr(grouped_noise.GroupedNoise, "conditional", wrong)


def kappa_never_moves(monkeypatch):
    monkeypatch.setattr(grouped_noise, "draw_by_slice", lambda rng, density, x: 0.5 * x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "likelihood", "more"),
    [
        (error_forgotten, GAUSSIAN, {"given": ERRORS}),
        (ends_swapped, GAUSSIAN, {"see": rounded}),
        (kappa_of_the_shape_only, GROUPED, {}),
        (kappa_never_moves, GROUPED, {}),
    ],
    ids=name_of,
)
def test_the_ladder_catches(monkeypatch, bug, likelihood, more, seed):
    bug(monkeypatch)
    result = run(likelihood, seed, 8_000, **more)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


# ---- Densities.


def test_density_with_errors_is_that_of_the_sum_of_both():
    given, nuisance = Given(error=np.array([0.0, 0.7, 3.0])), np.array([2.0])
    found = GAUSSIAN.log_prob(np.zeros(3), np.array([0.5, -1.0, 4.0]), nuisance, given)
    deviation = np.sqrt(0.5 + given.error**2)
    np.testing.assert_allclose(found, norm.logpdf([0.5, -1.0, 4.0], 0, deviation))
    np.testing.assert_allclose(GAUSSIAN.variance(np.zeros(3), nuisance, given), deviation**2)


@pytest.mark.parametrize("likelihood", [GAUSSIAN, HEAVY], ids=name_of)
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 0.5), (-np.inf, -1.2), (2.0, np.inf), (9.0, 12.0)]
)
def test_an_interval_has_its_integrated_density(likelihood, low, high):
    nuisance = likelihood.draw_nuisance(np.random.default_rng(1))
    given = Given(lower=np.array([low]), upper=np.array([high]))
    found = likelihood.log_prob(np.array([0.3]), np.zeros(1), nuisance, given)[0]

    def density(y):
        return np.exp(likelihood.log_prob(np.array([0.3]), np.array([y]), nuisance)[0])

    assert found == pytest.approx(np.log(quad(density, low, high, epsabs=1e-14)[0]), rel=1e-6)


@pytest.mark.parametrize(("low", "high"), [(-0.5, 1.0), (3.0, np.inf), (-np.inf, -6.0), (9.0, 9.5)])
def test_draws_between_ends(rng, low, high):
    n = 20_000
    ends = np.full(n, low), np.full(n, high)
    drawn = latent.draw_normal_between(rng, *ends)
    exact = truncnorm(low, high)
    assert np.all((drawn >= low) & (drawn <= high))
    assert drawn.mean() == pytest.approx(exact.mean(), abs=5 * exact.std() / np.sqrt(n))
    mean, variance = latent.mean_normal_between(*(each[:1] for each in ends))
    assert mean[0] == pytest.approx(exact.mean(), rel=1e-6)
    assert variance[0] == pytest.approx(exact.var(), rel=1e-3, abs=1e-5)
    heavy = latent.draw_t_between(rng, 5.0, *ends)
    inside = t(5.0).expect(lambda x: x, lb=max(low, -1e4), ub=min(high, 1e4), conditional=True)
    assert np.all((heavy >= low) & (heavy <= high))
    assert heavy.mean() == pytest.approx(inside, abs=6 * heavy.std() / np.sqrt(n))


# ---- Weights.


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_an_observation_of_weight_three_is_three(likelihood, rng):
    """Log likelihood and the sums that are not drawn; augmentation in mean and variance."""
    n, nuisance = 30, likelihood.draw_nuisance(rng)
    f = rng.standard_normal(n)
    y = likelihood.simulate(rng, f, nuisance)
    weight = Given(weight=rng.integers(1, 4, n).astype(float))
    rows = np.repeat(np.arange(n), weight.weight.astype(int))
    once = likelihood.statistics(f, y, nuisance, weight)
    often = likelihood.statistics(f[rows], y[rows], nuisance)
    np.testing.assert_allclose(once, often, rtol=1e-9, atol=1e-9)
    expected = likelihood.expect(f, y, nuisance, weight)
    apart = likelihood.expect(f[rows], y[rows], nuisance)
    for whole, parts in zip(expected, apart, strict=True):
        np.testing.assert_allclose(whole, np.bincount(rows, parts), rtol=1e-9, atol=1e-12)
    many, weights = np.full(20_000, f[0]), Given(weight=np.full(20_000, 3.0))
    drawn = likelihood.augment(rng, many, np.full(20_000, y[0]), nuisance, weights)
    triple = likelihood.augment(rng, np.full(60_000, f[0]), np.full(60_000, y[0]), nuisance)
    for whole, parts in zip(drawn, triple, strict=True):
        sums = parts.reshape(-1, 3).sum(axis=1)
        error = 6 * (sums.std() + 1e-9) / np.sqrt(20_000)
        assert whole.mean() == pytest.approx(sums.mean(), abs=1.5 * error)
        assert whole.std() == pytest.approx(sums.std(), rel=0.06, abs=1e-9)


# ---- Parameters chosen among candidates.


def test_groups_have_the_conditional_of_their_joint():
    counts, squares = np.array([3.0, 0.0, 40.0, 7.0]), np.array([2.0, 0.0, 15.0, 9.0])
    groups = GROUPED._groups
    now = np.array([0.8, 2.5, 0.5, 1.1, 2.0, 0.3])
    shapes, rates = groups.conditional(counts, squares, now)
    for place in range(4):
        a, b = now.copy(), now.copy()
        a[2 + place], b[2 + place] = 0.4, 1.7

        def joint(point, place=place):
            tau = point[2 + place]
            data = 0.5 * (counts[place] * np.log(tau) - tau * squares[place])
            return groups.log_prior(point) + data

        own = gamma(shapes[place], scale=1 / rates[place])
        assert own.logpdf(0.4) - own.logpdf(1.7) == pytest.approx(joint(a) - joint(b), rel=1e-9)


def test_slice_sampling_draws_from_its_density():
    rng, x, drawn = np.random.default_rng(3), 0.0, []
    for _ in range(20_000):
        x = grouped_noise.draw_by_slice(rng, lambda x: -0.5 * ((x - 2.0) / 0.7) ** 2, x)
        drawn.append(x)
    assert np.mean(drawn) == pytest.approx(2.0, abs=0.03)
    assert np.std(drawn) == pytest.approx(0.7, rel=0.04)


def coin_and_both(monkeypatch):
    """b and r are drawn one after the other, given the same omega."""
    right = NegativeBinomial.update_nuisance

    def wrong(self, rng, statistics, nuisance):
        moved = nuisance.copy()
        moved[1] = self.update_intercept(rng, statistics) + 0.3
        return right(self, rng, statistics, moved)

    monkeypatch.setattr(NegativeBinomial, "update_nuisance", wrong)


def prior_forgotten(monkeypatch):
    """Candidates are weighed by their likelihood alone."""
    monkeypatch.setattr(Ordinal, "_log_prior_unbounded", lambda self, x: 0.0)


def volume_forgotten(monkeypatch):
    """Densities of tau and nu in place of those of their logarithms."""
    monkeypatch.setattr(student_t_module, "_unbounded", lambda points: np.log(points) * 0.5)


NB = NegativeBinomial(0.3, 0.5, size_spread=0.7, max_size=50.0)
SMALL = RingPrior((NormalWishart(scale=0.5, extra_degrees=12.0),), UnitWeights())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "likelihood"),
    [
        (coin_and_both, NB),
        (prior_forgotten, Ordinal(4)),
        (volume_forgotten, HEAVY),
    ],
    ids=name_of,
)
def test_the_ladder_catches_bugs_of_parameters(monkeypatch, bug, likelihood, seed):
    bug(monkeypatch)
    with threadpool_limits(1):
        result = geweke(likelihood, SMALL, JOINT, seed, 12_000, STRANDS)
    assert abs(result.z).max() > LIMIT, f"seed {seed}: went unseen, {result.worst()}"


def test_candidates_leave_a_density_as_it_is():
    """A chain that only chooses among candidates has the moments of a known density."""
    from bayesring.model import candidates

    rng, x, drawn = np.random.default_rng(2), np.zeros(2), []
    covariance = np.array([[1.0, 0.6], [0.6, 0.5]])
    inverse = np.linalg.inv(covariance)
    for _ in range(30_000):
        points = np.vstack([x, candidates.put_down(rng, x)])
        logs = np.array([-0.5 * each @ inverse @ each for each in points])
        x = points[candidates.choose(rng, logs)]
        drawn.append(x)
    np.testing.assert_allclose(np.mean(drawn, axis=0), 0.0, atol=0.12)
    np.testing.assert_allclose(np.cov(np.transpose(drawn)), covariance, atol=0.12)


def test_bernoulli_of_weight_has_the_polya_gamma_of_the_sum(rng):
    likelihood = Bernoulli(intercept=False)
    f, nothing = np.full(20_000, 1.3), np.empty(0)
    weight = Given(weight=np.full(20_000, 2.5))
    drawn = likelihood.augment(rng, f, np.ones(20_000), nothing, weight)
    assert drawn.weight.mean() == pytest.approx(2.5 * np.tanh(0.65) / 2.6, rel=0.02)
    np.testing.assert_allclose(drawn.shift, 1.25)


assert len(COORDS) == len(ERRORS.error)
