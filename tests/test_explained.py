"""What features are said to explain: against plain algebra, exact draws and the clock."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from scipy import sparse

from bayesring import TensorRing
from bayesring.data.features import Features
from bayesring.model.types import Axis
from bayesring.posterior import explained
from bayesring.priors import Featured, NormalWishart, quick_slopes

N, SHARE = 2000, 2 / 3


def fingerprints(rng, n, count, ones=20):
    """Sparse rows of mean square one."""
    places = np.stack([rng.choice(count, ones, replace=False) for _ in range(n)])
    rows = np.repeat(np.arange(n), ones)
    values = np.full(n * ones, ones**-0.5)
    return sparse.csr_array((values, (rows, places.ravel())), shape=(n, count))


def of_columns(matrix):
    count = matrix.shape[1]
    names = tuple(f"column {place}" for place in range(count))
    return Features(matrix, names, np.arange(count), np.zeros(count), np.ones(count))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_shares_are_those_of_plain_algebra(kind, rng):
    """With the covariance of all entries spelled out, feature by feature."""
    x = rng.standard_normal((30, 6)) + rng.standard_normal(6)
    groups = np.array([0, 1, 1, 1, 2, 3]) if kind is np.asarray else np.arange(6)
    names = tuple("abcdef"[: groups.max() + 1])
    features = Features(kind(x), names, groups, np.zeros(6), np.ones(6))
    slices, slopes = rng.standard_normal((30, 4)), rng.standard_normal((6, 4))
    others = rng.standard_normal((50, 4))
    parts = explained._parts(
        explained._Columns.of(features), slices, slopes, others.T @ others / 50
    )

    def variance(part):
        return np.mean([np.var(part @ cell) for cell in others])

    fitted = variance(x @ slopes)
    alone = [
        variance(x[:, groups == place] @ slopes[groups == place]) for place in range(len(names))
    ]
    expected = np.array([fitted, *alone]) / (fitted + variance(slices - x @ slopes))
    np.testing.assert_allclose(parts, expected, rtol=1e-10)


def test_slices_are_turned_without_changing_entries(rng):
    """Entries f = c'g vary as before, and the turned ones are uncorrelated."""
    slices, others = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 5)), rng.random((9, 5))
    moments = others.T @ others / 9
    turned, variances = explained._turned(slices, moments)
    np.testing.assert_allclose(turned.T @ turned / 40, np.eye(5), atol=1e-8)
    assert variances.sum() == pytest.approx(np.mean(np.var(slices @ others.T, axis=0)))
    assert np.all(np.diff(variances) <= 0)


@pytest.fixture(scope="module")
def regression():
    """Slices of three entries, of whose variance features explain `SHARE`, so that s is two."""
    rng = np.random.default_rng(4)
    design = fingerprints(rng, N, 300)
    slopes = rng.standard_normal((300, 3))
    fitted = design @ slopes
    fitted *= np.sqrt(SHARE) / fitted.std(axis=0)
    return design, fitted + np.sqrt(1 - SHARE) * rng.standard_normal((N, 3)) + 2.0


def test_rough_slopes_are_distributed_as_exact_ones(regression):
    """Shares of all and of the largest features: means and spreads of draws."""
    design, slices = regression
    columns, rng = explained._Columns.of(of_columns(design)), np.random.default_rng(1)
    prior = NormalWishart()
    exact = Featured(prior).bind(Axis(N, features=design.toarray()))
    assert not exact.is_large
    core, moments = slices.reshape(N, 3, 1), np.eye(3)
    expected = np.array(
        [
            explained._parts(columns, slices, exact.draw_shared(rng, core).slopes, moments)
            for _ in range(25)
        ]
    )
    rough = quick_slopes.rough_design(rng, design, prior.k0)
    turned, variances = explained._turned(slices, moments)
    strength = quick_slopes.expect_strength(rough, turned)
    drawn = [quick_slopes.draw_roughly(rng, rough, turned, strength) for _ in range(25)]
    found = np.array([explained._parts(columns, turned, own, np.diag(variances)) for own in drawn])
    assert abs(found[:, 0].mean() - expected[:, 0].mean()) < 0.02
    assert abs(expected[:, 0].mean() - SHARE) < 0.05
    gaps = (found - expected).mean(axis=0) / expected.std(axis=0)
    assert np.sqrt(np.mean(gaps[1:] ** 2)) < 0.6  # 0.28 by chance
    ratios = found.std(axis=0) / expected.std(axis=0)
    assert 0.85 < np.median(ratios[1:]) < 1.18


def test_rough_slopes_have_the_covariance_of_exact_ones(rng, monkeypatch):
    """That of equation (44), with more features than labels, and the right mean."""
    monkeypatch.setattr(quick_slopes, "ROUGH", 1e-5)
    n, count, strength = 30, 40, 2.0
    design = fingerprints(rng, n, count, ones=5)
    rough = quick_slopes.rough_design(rng, design, 0.5)
    inner = np.eye(n) - 1 / (n + 0.5)
    x = design.toarray()
    assert rough.first == pytest.approx(np.trace(x.T @ inner @ x), rel=1e-4)
    inverse = np.linalg.inv(x.T @ inner @ x + np.eye(count) / strength)
    own = rng.standard_normal(n)
    drawn = quick_slopes.draw_roughly(rng, rough, np.tile(own[:, None], 20_000), strength)
    expected = inverse * n / (n - 1 + strength * rough.first)
    np.testing.assert_allclose(np.cov(drawn), expected, atol=0.04 * expected.max())
    np.testing.assert_allclose(drawn.mean(axis=1), inverse @ x.T @ inner @ own, atol=0.05)


@pytest.mark.parametrize("n", [5, 10, 40])
def test_intervals_of_few_draws_cover_what_they_should(n, rng):
    """Of chi-squared parts, nine in ten further draws, whatever their number."""
    draws = 0.01 * rng.chisquare(6, (n + 1, 20_000))
    found = explained._summaries(draws[:-1])
    lower, upper = (np.array([getattr(each, end) for each in found]) for end in ("lower", "upper"))
    assert np.mean((lower <= draws[-1]) & (draws[-1] <= upper)) == pytest.approx(0.9, abs=0.015)
    np.testing.assert_allclose([each.mean for each in found], draws[:-1].mean(axis=0))


@pytest.fixture(scope="module")
def ring():
    """A ring of 2,000 labels that knows of no features."""
    rng = np.random.default_rng(2)
    cells = np.stack([rng.integers(0, size, 20_000) for size in (N, 6, 6)], axis=1)
    cores = [rng.standard_normal((size, 2)) for size in (N, 6, 6)]
    values = np.prod([core[cells[:, mode]] for mode, core in enumerate(cores)], axis=0).sum(axis=1)
    settings = {"rank": 2, "chains": 1, "warmup": 10, "draws": 30, "progress": False}
    return TensorRing(random_state=1, **settings).fit(
        cells, values + 0.1 * rng.standard_normal(20_000)
    )


def explain(ring, count):
    """What features that say nothing explain, and how long it takes to tell."""
    features = of_columns(fingerprints(np.random.default_rng(count), N, count))
    prior = Featured(NormalWishart()).bind(Axis(N, features=features.matrix))
    modes = (prior, *ring.prior_.modes[1:] * (3 - len(ring.prior_.modes[1:])))[:3]
    begin = perf_counter()
    (found,) = explained.explain(
        ring.posterior_, replace(ring.prior_, modes=modes), (features, None, None), "abc", 0
    )
    return prior, found, perf_counter() - begin


def test_time_does_not_grow_with_the_square_of_columns(ring):
    """Eight times the columns take less than 64 times as long, by far."""
    times = []
    for count in (2000, 16_000):
        measured = [explain(ring, count) for _ in range(2)]
        assert measured[0][0].is_large
        assert len(measured[0][1].features) == count
        times.append(min(took for _, _, took in measured))
    assert times[1] < 20 * times[0]
    assert times[1] < 10.0


def test_many_features_that_say_nothing_explain_little(ring):
    """As drawn exactly, for a number of them that is not large."""
    found = explain(ring, 2000)[1]
    assert 0.0 <= found.share.lower < found.share.mean < found.share.upper < 0.5
    means = [share.mean for share in found.features.values()]
    assert means == sorted(means, reverse=True)
    assert max(means) < 0.02
