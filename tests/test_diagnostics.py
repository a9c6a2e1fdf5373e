"""Diagnostics against ArviZ, against closed forms, and at their edges."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from bayesring.infer import diagnostics

FUNCTIONS = {
    "rhat": diagnostics.split_rhat,
    "ess_bulk": diagnostics.ess_bulk,
    "ess_tail": diagnostics.ess_tail,
    "ess_mean": diagnostics.ess_mean,
    "mcse": diagnostics.mcse_mean,
}


def autoregressive(rng, rho, shape):
    """Stationary AR(1) along the second axis: mean 0, variance 1, correlation rho^t at lag t."""
    noise = rng.standard_normal(shape)
    draws = np.empty(shape)
    draws[:, 0] = noise[:, 0]
    for t in range(1, shape[1]):
        draws[:, t] = rho * draws[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return draws


SAMPLERS = {
    "independent": lambda rng, shape: rng.standard_normal(shape),
    "positive": lambda rng, shape: autoregressive(rng, 0.8, shape),
    "sticky": lambda rng, shape: autoregressive(rng, 0.999, shape),
    "negative": lambda rng, shape: autoregressive(rng, -0.6, shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "ties": lambda rng, shape: rng.integers(0, 6, shape).astype(float),
    "apart": lambda rng, shape: rng.standard_normal(shape) + np.arange(shape[0])[:, None],
}


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("arviz", minversion="0.23")
    if not module.__version__.startswith("0."):
        pytest.skip("ArviZ 1 has other functions")
    return module


def by_arviz(arviz, name, draws):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "rhat":
            value = arviz.rhat(draws)
        elif name == "mcse":
            value = arviz.mcse(draws)
        else:
            value = arviz.ess(draws, method=name.removeprefix("ess_"))
    return np.asarray(value).item()


@pytest.mark.parametrize("length", [4, 5, 8, 13, 50, 123, 1000])
@pytest.mark.parametrize("chains", [1, 2, 4])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_equals_arviz(monkeypatch, arviz, rng, sampler, chains, length):
    for _ in range(3):
        draws = SAMPLERS[sampler](rng, (chains, length))
        for name, function in FUNCTIONS.items():
            if name == "rhat" and chains == 1:
                continue  # ArviZ wants two chains; see the test of the definition.
            expected = pytest.approx(by_arviz(arviz, name, draws), rel=1e-8, abs=0)
            if name == "ess_tail" and function(draws) != expected:
                # Sums of exactly zero stop Geyer's sequence; ArviZ may around them up and go on.
                with monkeypatch.context() as patch:
                    patch.setattr(diagnostics, "ROUNDING", -diagnostics.ROUNDING)
                    assert function(draws) == expected, name
            else:
                assert function(draws) == expected, name


def scores(chains):
    """Normal scores by the definition, ranks from SciPy."""
    return norm.ppf((rankdata(chains).reshape(chains.shape) - 3 / 8) / (chains.size + 1 / 4))


def rhat_by_definition(draws):
    n = draws.shape[1] // 2
    halves = np.array([half for chain in draws for half in (chain[:n], chain[-n:])])
    values = []
    for x in (scores(halves), scores(np.abs(halves - np.median(halves)))):
        within = np.mean([np.var(chain, ddof=1) for chain in x])
        between = n * np.var([np.mean(chain) for chain in x], ddof=1)
        values.append(np.sqrt(((n - 1) / n * within + between / n) / within))
    return max(values)


@pytest.mark.parametrize("length", [20, 21, 123, 1000])
@pytest.mark.parametrize("chains", [1, 2, 4])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_rhat_equals_its_definition(rng, sampler, chains, length):
    draws = SAMPLERS[sampler](rng, (chains, length))
    assert diagnostics.split_rhat(draws) == pytest.approx(rhat_by_definition(draws), rel=1e-10)


def ess_by_fractions(chains):
    """Effective sample size of zeros and ones without any rounding, sum by sum."""
    n = len(chains[0]) // 2
    halves = [half for chain in chains for half in (chain[:n], chain[-n:])]
    m = len(halves)
    means = [Fraction(sum(half), n) for half in halves]

    def covariance(t):
        products = [
            (half[s] - mean) * (half[s + t] - mean)
            for half, mean in zip(halves, means, strict=True)
            for s in range(n - t)
        ]
        return sum(products) / (m * n)

    between = sum((mean - sum(means) / m) ** 2 for mean in means) / (m - 1)
    total = covariance(0) + between
    if total == 0:
        return m * n

    def rho(t):
        return 1 - (covariance(0) * n / (n - 1) - covariance(t)) / total if t > 0 else Fraction(1)

    tau, lowest, t = Fraction(-1), Fraction(2), 0
    while t + 3 < n - 1 and rho(t) + rho(t + 1) > 0:
        lowest = min(lowest, rho(t) + rho(t + 1))
        tau += 2 * lowest
        t += 2
    tau += rho(t) if rho(t) + rho(t + 1) >= 0 else max(rho(t), 0)
    return m * n / max(float(tau), 1 / np.log10(m * n))


@pytest.mark.parametrize("length", [4, 7, 12, 30, 41])
@pytest.mark.parametrize("chains", [1, 2, 3])
@pytest.mark.parametrize("sampler", ["independent", "positive", "negative", "ties"])
def test_tail_equals_its_definition(rng, sampler, chains, length):
    for _ in range(3):
        draws = SAMPLERS[sampler](rng, (chains, length))
        ordered = np.sort(draws.ravel())
        expected = []
        for percent in (5, 95):
            below = draws <= ordered[(draws.size - 1) * percent // 100]
            expected.append(ess_by_fractions(below.astype(int).tolist()))
        assert diagnostics.ess_tail(draws) == pytest.approx(min(expected), rel=1e-10)


@pytest.mark.parametrize("ones", [(6, 55, 57, 58, 59, 60, 122), (2, 3, 4, 5, 6, 7, 98)])
def test_sums_of_zero_do_not_depend_on_rounding(ones):
    # Here rho_30 + rho_31 = 0, which comes out of the Fourier transform as 1e-16 or so.
    draws = np.zeros((1, 123))
    draws[0, list(ones)] = 1.0
    expected = ess_by_fractions(draws.astype(int).tolist())
    assert diagnostics.ess_mean(draws) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.5, 0.9])
def test_ess_of_an_autoregression(rng, rho):
    draws = autoregressive(rng, rho, (4, 2500, 60))
    expected = 10_000 * (1 - rho) / (1 + rho)
    for ess in (diagnostics.ess_mean(draws), diagnostics.ess_bulk(draws)):
        assert ess.shape == (60,)
        error = ess.std() / np.sqrt(60)
        assert ess.mean() == pytest.approx(expected, abs=4 * error + 0.03 * expected)
    mcse = diagnostics.mcse_mean(draws)
    assert mcse.mean() == pytest.approx(1 / np.sqrt(expected), rel=0.05)
    # The error it speaks of is the one that the means have; 60 of them have a deviation good to
    # 1 / sqrt(120), or nine per cent.
    z_scores = draws.mean(axis=(0, 1)) / mcse
    assert np.sqrt(np.mean(z_scores**2)) == pytest.approx(1.0, abs=4 / np.sqrt(120))


def test_ess_of_independent_draws_is_their_number(rng):
    draws = rng.standard_normal((4, 1000, 60))
    for ess in (diagnostics.ess_bulk(draws), diagnostics.ess_tail(draws)):
        assert ess.mean() == pytest.approx(4000, rel=0.08)


def test_ess_is_bounded_where_chains_alternate():
    draws = np.tile([1.0, -1.0], (2, 50)) * np.linspace(1, 2, 100)
    assert diagnostics.ess_mean(draws) == pytest.approx(200 * np.log10(200))


def test_rhat_of_chains_that_agree(rng):
    rhat = diagnostics.split_rhat(rng.standard_normal((4, 1000, 60)))
    assert rhat.max() < 1.01


def test_rhat_sees_different_means(rng):
    draws = rng.standard_normal((4, 500)) + np.array([0, 0, 0, 2])[:, None]
    assert diagnostics.split_rhat(draws) > 1.1


def test_rhat_sees_a_drift_of_one_chain(rng):
    draws = rng.standard_normal((1, 500)) + np.linspace(0, 3, 500)
    assert diagnostics.split_rhat(draws) > 1.1


def test_rhat_sees_different_spreads_by_folding(rng):
    # Balanced: every draw of a chain has its mirror image in the same half.
    half = rng.standard_normal((4, 250)) * np.array([1, 1, 1, 5])[:, None]
    draws = np.stack([half, -half], axis=2).reshape(4, 500)
    bulk = diagnostics._rhat(diagnostics._normal_scores(diagnostics._halves(draws[None])))
    assert bulk == pytest.approx(1.0, abs=0.01)
    assert diagnostics.split_rhat(draws) > 1.1


def test_rank_based_functions_ignore_monotone_maps(rng):
    draws = autoregressive(rng, 0.5, (2, 201))
    assert diagnostics.ess_bulk(np.exp(draws)) == diagnostics.ess_bulk(draws)
    assert diagnostics.ess_tail(np.exp(draws)) == diagnostics.ess_tail(draws)


@pytest.mark.parametrize("size", [101, 2001])
def test_tail_counts_the_draw_at_the_quantile(rng, size):
    # (size - 1) / 20 is whole: the quantiles are draws, and rounding must not lose them.
    draws = rng.permutation(size).astype(float)[None]
    expected = []
    for place in ((size - 1) // 20, 19 * (size - 1) // 20):
        expected.append(diagnostics.ess_mean((draws <= place).astype(float)))
    assert diagnostics.ess_tail(draws) == min(expected)


@pytest.mark.parametrize("length", [4, 7, 50, 101])
@pytest.mark.parametrize("chains", [1, 3])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-310])
def test_constant_draws(value, chains, length):
    draws = np.full((chains, length), value)
    assert diagnostics.split_rhat(draws) == 1.0
    for name in ("ess_bulk", "ess_tail", "ess_mean"):
        assert FUNCTIONS[name](draws) == draws.size
    assert diagnostics.mcse_mean(draws) == 0.0
    summary = diagnostics.summarise(draws)
    assert summary == (value, 0.0, 0.0, draws.size, draws.size, 1.0)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (0.1, 0.1, 0.3), (0.1, 0.2, 0.3, 0.7)])
@pytest.mark.parametrize("length", [4, 50, 101])
def test_chains_stuck_at_different_values(values, length):
    draws = np.repeat(np.array(values)[:, None], length, axis=1)
    assert diagnostics.split_rhat(draws) == np.inf
    # Not constant as a whole: a mean of as many numbers as there are chains.
    if length > 4:
        for name in ("ess_bulk", "ess_mean"):
            assert FUNCTIONS[name](draws) == pytest.approx(len(values), rel=0.15)
        expected = np.std(draws, ddof=1) / np.sqrt(diagnostics.ess_mean(draws))
        assert diagnostics.mcse_mean(draws) == pytest.approx(expected)


def test_one_stuck_chain_is_seen(rng):
    draws = rng.standard_normal((3, 100))
    draws[0] = 2.0
    rhat = diagnostics.split_rhat(draws)
    assert np.isfinite(rhat)
    assert rhat > 1.1


@pytest.mark.parametrize("shape", [(2, 0), (1, 3), (4, 3), (4, 3, 2), (0, 10, 2)])
def test_too_few_draws(shape):
    for function in FUNCTIONS.values():
        values = function(np.ones(shape))
        assert values.shape == shape[2:]
        assert np.isnan(values).all()
    for values in diagnostics.summarise(np.ones(shape)):
        assert values.shape == shape[2:]
        assert np.isnan(values).all()


def test_draws_that_are_not_finite_spoil_only_their_quantity(rng):
    draws = rng.standard_normal((2, 20, 4))
    broken = draws.copy()
    broken[0, 3, 1], broken[1, 7, 2] = np.nan, -np.inf
    for before, after in zip(
        diagnostics.summarise(draws), diagnostics.summarise(broken), strict=True
    ):
        assert np.isnan(after[[1, 2]]).all()
        assert (after[[0, 3]] == before[[0, 3]]).all()


@pytest.mark.parametrize("shift", [-1060, -500, 500, 1015])
def test_units_do_not_matter(rng, shift):
    # Whole multiples of 2^-10, so that powers of two take nothing away even below 1e-308.
    draws = rng.integers(-4096, 4096, (2, 101)) / 1024
    usual, scaled = diagnostics.summarise(draws), diagnostics.summarise(np.ldexp(draws, shift))
    for name in ("ess_bulk", "ess_tail", "rhat"):
        assert getattr(scaled, name) == getattr(usual, name)
    if shift > -1000:
        for name in ("mean", "sd", "mcse"):
            assert getattr(scaled, name) == np.ldexp(getattr(usual, name), shift)


def test_draws_next_to_a_large_number(rng):
    steps = rng.integers(0, 5, (2, 100)).astype(float)
    near = 1.0 + np.finfo(float).eps * steps
    assert diagnostics.ess_mean(near) == pytest.approx(diagnostics.ess_mean(steps), rel=1e-6)


@pytest.mark.parametrize("shape", [(1, 40, 7), (3, 41, 2, 5), (2, 12, 1, 1), (2, 10, 0)])
@pytest.mark.parametrize("bytes_", [1, 2**12, diagnostics.CHUNK_BYTES])
def test_all_at_once_equals_one_by_one(monkeypatch, rng, shape, bytes_):
    draws = autoregressive(rng, 0.4, shape)
    draws[..., :1] = np.round(draws[..., :1])
    draws[..., 1:2] = 3.0
    monkeypatch.setattr(diagnostics, "CHUNK_BYTES", bytes_)
    for function in FUNCTIONS.values():
        values = function(draws)
        assert values.shape == shape[2:]
        for place in np.ndindex(*shape[2:]):
            one = function(draws[(..., *place)])
            assert one.shape == ()
            assert values[place] == pytest.approx(one, rel=1e-10)


def test_summary_gathers_the_functions(rng):
    draws = autoregressive(rng, 0.4, (3, 51, 2, 3))
    summary = diagnostics.summarise(draws)
    assert summary.mean == pytest.approx(draws.mean(axis=(0, 1)))
    assert summary.sd == pytest.approx(draws.reshape(153, 2, 3).std(axis=0, ddof=1))
    for name, function in FUNCTIONS.items():
        if name != "ess_mean":
            assert (getattr(summary, name) == function(draws)).all()
    with pytest.raises(AttributeError):
        summary.mean = 0


def test_whole_numbers_and_truth_values_are_draws(rng):
    draws = rng.random((2, 50)) < 0.3
    assert diagnostics.summarise(draws) == diagnostics.summarise(draws.astype(float))
    assert diagnostics.ess_mean(draws.astype(int)) == diagnostics.ess_mean(draws)


def test_draws_are_left_alone(rng):
    draws = rng.standard_normal((2, 50, 3))
    copy = draws.copy()
    diagnostics.summarise(draws)
    assert (draws == copy).all()


def test_draws_of_one_axis_are_refused():
    with pytest.raises(ValueError, match=r"\(chains, draws, \.\.\.\)"):
        diagnostics.ess_bulk(np.zeros(10))
