"""Ratio test (Grosse and Duvenaud, 2014) of every conditional against the joint density.

log p(a | rest) - log p(b | rest) must equal log p(a, rest) - log p(b, rest), to 1e-9. Given the
working response, the likelihood enters the joint as sum s f - w f^2 / 2; that this augmentation
leaves the likelihood of a 0 or 1 right is the subject of the Polya-Gamma tests.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest, norm
from scipy.stats import t as student_t

from bayesring.engine.operations import CoreTask
from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import Method, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model import ring
from bayesring.model.joint import log_joint
from bayesring.model.types import NOTHING, WorkingResponse
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart
from bayesring.priors.normal_wishart import log_normal_wishart
from tests.models import CORE_PRIORS, LIKELIHOODS, draw_model, name_of

SHAPES = [
    ((4, 3), (3, 2), 1),
    ((3, 4, 2), (2, 3, 1), 1),
    ((3, 4, 2), (2, 1, 2), 3),
    ((2, 3, 2, 2), (2, 1, 3, 2), 1),
]


def replaced(values, place, value):
    return (*values[:place], value, *values[place + 1 :])


def working_log_joint(state, data, prior, weight, shift):
    """Log joint with the likelihood replaced by its working response."""
    f = ring.entries(ring.weighted(state.cores, state.weights), data.coords)
    total = np.sum(shift * f - 0.5 * weight * f**2)
    modes = prior.for_shape(data.shape).modes
    for own, core, hyper in zip(modes, state.cores, state.hyper, strict=True):
        total += own.log_prob(core, hyper)
    for weights, gains in zip(state.weights, state.gains, strict=True):
        total += prior.weights.log_prob(weights, gains)
    return total


def log_normal_ratio(a, b, precision, linear):
    return (linear @ a - 0.5 * a @ precision @ a) - (linear @ b - 0.5 * b @ precision @ b)


def log_normal(gap, root):
    """Log density, but for its constant, of a normal with covariance root root'."""
    return -0.5 * np.sum(np.linalg.solve(root, gap.ravel()) ** 2)


class GivenNoise(Streams):
    """Streams that hand out one chosen vector of noise again and again."""

    noise: np.ndarray

    def rng(self, scan, purpose, mode=0, block=0):
        given, own = self.noise, Streams.rng(self, scan, purpose, mode, block)

        class Chosen:
            bit_generator = own.bit_generator

            def standard_normal(self, size):
                return np.resize(given, size)

        return Chosen()


def given_noise(noise):
    streams = GivenNoise((1, 2))
    streams.noise = noise
    return streams


@pytest.mark.parametrize(("shape", "rank", "strands"), SHAPES)
@pytest.mark.parametrize("core_prior", CORE_PRIORS, ids=name_of)
@pytest.mark.parametrize("block_size", [3, 10_000])
def test_slices_and_weights(rng, core_prior, shape, rank, strands, block_size):
    """Means by zero noise and covariance roots by unit noise, through the code a scan runs."""
    state, data, prior = draw_model(rng, Gaussian(), core_prior, shape, rank, strands=strands)
    weight, shift = rng.gamma(2.0, size=len(data.values)), rng.standard_normal(len(data.values))

    class Working(Gaussian):
        def augment(self, rng, fitted, values, nuisance, given=NOTHING):
            """Values are row numbers: look up the chosen weight and shift."""
            rows = values.astype(int)
            return WorkingResponse(weight[rows], shift[rows])

    numbered = data._replace(values=np.arange(len(data.values), dtype=float))
    problem = make_problem(numbered, Working(), prior, Method(block_size=block_size))
    folded = ring.flatten(ring.weighted(state.cores, state.weights))
    for mode, core in enumerate(state.cores):
        size = core[0].size

        def draw(noise, mode=mode, core=core):
            task = CoreTask(
                folded,
                state.weights[mode].ravel(),
                core,
                problem.prior.modes[mode].slice_prior(core, state.hyper[mode]),
                problem.likelihood,
                state.nuisance,
                given_noise(noise),
                0,
            )
            return gibbs.draw_core(task, mode, problem)

        mean, statistics = draw(np.zeros(size))
        roots = np.stack(
            [(draw(unit)[0] - mean).reshape(len(core), size) for unit in np.eye(size)], axis=2
        )
        a, b = rng.standard_normal((2, *core.shape))
        by_conditional = sum(
            log_normal(a[i] - mean[i], roots[i]) - log_normal(b[i] - mean[i], roots[i])
            for i in range(len(core))
        )
        by_joint = [
            working_log_joint(
                state._replace(cores=replaced(state.cores, mode, each)),
                data,
                prior,
                weight,
                shift,
            )
            for each in (a, b)
        ]
        np.testing.assert_allclose(by_conditional, by_joint[0] - by_joint[1], rtol=1e-9)

        drawn = state._replace(cores=replaced(state.cores, mode, mean))
        a, b = rng.standard_normal((2, *state.weights[mode].shape))
        phi = prior.weights.precisions(state.gains[mode])
        precision = statistics.precision + np.diag(phi.ravel())
        by_joint = [
            working_log_joint(
                drawn._replace(weights=replaced(state.weights, mode, each)),
                data,
                prior,
                weight,
                shift,
            )
            for each in (a, b)
        ]
        np.testing.assert_allclose(
            log_normal_ratio(a.ravel(), b.ravel(), precision, statistics.linear),
            by_joint[0] - by_joint[1],
            rtol=1e-9,
            atol=1e-9,
        )


def test_gains(rng):
    process = GammaProcess(2.5)
    weights, gains = rng.standard_normal(5), rng.gamma(2.0, size=5)
    for index in range(5):
        shape, rate = process.gain_conditional(index, weights, gains)
        found = gamma(shape, scale=1 / rate)
        a, b = rng.gamma(2.0, size=2)
        joint = [
            process.log_prob(weights, np.array(replaced(tuple(gains), index, each)))
            for each in (a, b)
        ]
        ratio = found.logpdf(a) - found.logpdf(b)
        np.testing.assert_allclose(ratio, joint[0] - joint[1], rtol=1e-9)


def test_noise_precision(rng):
    likelihood = Gaussian(2.0, 0.7, max_precision=5.0)
    state, data, prior = draw_model(rng, likelihood, Fixed())
    f = ring.entries(ring.weighted(state.cores, state.weights), data.coords)
    statistics = likelihood.statistics(f, data.values, state.nuisance)
    shape, rate = likelihood.conditional(statistics)
    found = gamma(shape, scale=1 / rate)
    a, b = 0.8, 3.1
    joint = [
        log_joint(state._replace(nuisance=np.array([each])), data, likelihood, prior)
        for each in (a, b)
    ]
    np.testing.assert_allclose(found.logpdf(a) - found.logpdf(b), joint[0] - joint[1], rtol=1e-9)
    beyond = state._replace(nuisance=np.array([5.1]))
    assert log_joint(beyond, data, likelihood, prior) == -np.inf


def log_entry_gamma(prior, core, hyper):
    shape, rate = prior.conditional(core)
    return gamma.logpdf(hyper.psi, shape, scale=1 / rate).sum()


def log_normal_gamma(prior, core, hyper):
    found = prior.conditional(core)
    log_mean = norm.logpdf(hyper.mean, found.m, 1 / np.sqrt(found.k * hyper.precision)).sum()
    return log_mean + gamma.logpdf(hyper.precision, found.c, scale=1 / found.d).sum()


def log_conditional_normal_wishart(prior, core, hyper):
    return log_normal_wishart(hyper, prior.given_scales(core, hyper.scales))


LOG_CONDITIONAL = {
    Fixed: lambda prior, core, hyper: 0.0,
    EntryGamma: log_entry_gamma,
    NormalGamma: log_normal_gamma,
    NormalWishart: log_conditional_normal_wishart,
}


@pytest.mark.parametrize(
    "core_prior", [*CORE_PRIORS, NormalWishart(0.3, 1.7, 2.0, True)], ids=name_of
)
def test_hyperparameters(rng, core_prior):
    """A prior without an entry in the table above fails here: a new prior needs its own line."""
    core = rng.standard_normal((7, 2, 2, 3))
    a, b = (core_prior.draw_hyper(rng, core.shape) for _ in range(2))
    if hasattr(a, "scales"):  # which have a conditional of their own, see below
        b = b._replace(scales=a.scales)
    log_conditional = LOG_CONDITIONAL[type(core_prior)]
    np.testing.assert_allclose(
        log_conditional(core_prior, core, a) - log_conditional(core_prior, core, b),
        core_prior.log_prob(core, a) - core_prior.log_prob(core, b),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("core_prior", [NormalWishart(0.3, 1.7, 2.0, True), NormalWishart()])
def test_scales_given_the_precision(rng, core_prior):
    """s_k ~ Ga((nu0 + 1) / 2, (Omega_kk + 1 / scale) / 2), by ratios of the joint and by draws."""
    core = rng.standard_normal((7, 2, 2, 3))
    hyper, size = core_prior.draw_hyper(rng, core.shape), 12
    precisions = np.diag(hyper.precision)
    if not core_prior.learned:
        np.testing.assert_array_equal(core_prior.draw_scales(rng, precisions), np.ones(size))
        return
    rates = 0.5 * (precisions + 1 / 1.7)
    expected = gamma(0.5 * (size + 2.0 + 1), scale=1 / rates)
    pair = [expected.rvs(random_state=rng) for _ in "ab"]
    joint = [core_prior.log_prob(core, hyper._replace(scales=each)) for each in pair]
    own = [expected.logpdf(each).sum() for each in pair]
    np.testing.assert_allclose(np.diff(joint), np.diff(own), rtol=1e-9)
    draws = np.array([core_prior.draw_scales(rng, precisions) for _ in range(500)])
    assert kstest(expected.cdf(draws).ravel(), "uniform").pvalue > 1e-4


def test_learned_scales_make_standard_deviations_half_t(rng):
    """With 1 + extra_degrees degrees of freedom and scale (scale / degrees)^1/2, whatever K."""
    prior = NormalWishart(scale=2.0, extra_degrees=2.0, learned=True)
    for shape in ((1, 1, 1, 1), (1, 2, 2, 1)):
        drawn = [np.linalg.inv(prior.draw_hyper(rng, shape).precision)[0, 0] for _ in range(1_500)]
        expected = student_t(3.0, scale=np.sqrt(2.0 / 3.0))
        assert kstest(np.sqrt(drawn), lambda x: 2 * expected.cdf(x) - 1).pvalue > 1e-4


def test_scales_that_start_from_slices_end_where_a_long_chain_does(rng):
    """Hyperparameters drawn from nothing but slices: of small and of large entries."""
    prior = NormalWishart(0.02, learned=True)
    core = (rng.standard_normal((30, 6)) * 10.0 ** np.arange(-3.0, 3.0)).reshape(30, 1, 2, 3)
    alone = np.array([np.log(prior.update_hyper(rng, core).scales) for _ in range(120)])
    hyper, chain = None, []
    for _ in range(1_500):
        hyper = prior.update_hyper(rng, core, hyper)
        chain.append(np.log(hyper.scales))
    late = np.array(chain[100:])
    np.testing.assert_allclose(alone.mean(axis=0), late.mean(axis=0), atol=0.2)
    np.testing.assert_allclose(alone.std(axis=0), late.std(axis=0), rtol=0.25)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name_of)
def test_statistics_give_the_log_likelihood(rng, likelihood):
    state, data, _ = draw_model(rng, likelihood, Fixed())
    f = ring.entries(ring.weighted(state.cores, state.weights), data.coords)
    response = likelihood.augment(rng, f, data.values, state.nuisance)
    statistics = likelihood.statistics(f, data.values, state.nuisance, response=response)
    np.testing.assert_allclose(
        likelihood.total_log_prob(statistics, state.nuisance),
        likelihood.log_prob(f, data.values, state.nuisance).sum(),
        rtol=1e-12,
    )


def test_intercept(rng):
    """b given omega and f, by ratios of the augmented density; omega has the mean of PG(1, f + b).

    log p(y, omega | f, b) = sum (y - 1/2) (f + b) - omega (f + b)^2 / 2 + terms without b.
    """
    likelihood, n = Bernoulli(spread=2.0), 4_000
    f, b = rng.standard_normal(n) - 1.0, np.array([-2.5])
    y = likelihood.simulate(rng, f, b)
    response = likelihood.augment(rng, f, y, b)
    expected = likelihood.expect(f, y, b)
    assert response.weight.sum() == pytest.approx(expected.weight.sum(), rel=0.05)
    np.testing.assert_allclose(response.shift, y - 0.5 + 2.5 * response.weight)
    statistics = likelihood.statistics(f, y, b, response=response)
    mean, precision = likelihood.conditional(statistics)

    def augmented(value):
        odds = f + value
        total = np.sum((y - 0.5) * odds - 0.5 * response.weight * odds**2)
        return total + likelihood.log_prior(np.array([value]))

    for one, two in ((-2.0, -3.0), (0.5, -1.0)):
        ratio = -0.5 * precision * ((one - mean) ** 2 - (two - mean) ** 2)
        assert augmented(one) - augmented(two) == pytest.approx(ratio, rel=1e-9)
    draws = [likelihood.update_nuisance(rng, statistics, b)[0] for _ in range(2_000)]
    assert np.mean(draws) == pytest.approx(mean, abs=4.5 / np.sqrt(2_000 * precision))
    assert np.std(draws) * np.sqrt(precision) == pytest.approx(1.0, abs=0.1)
    assert likelihood.expect_nuisance(statistics, b) == pytest.approx(mean)
