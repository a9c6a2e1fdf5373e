"""Pointwise log likelihoods: the definition, units, exposures, wrong rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.exceptions import NotFittedError

from bayesring import TensorRing, TensorRingClassifier, compare, load
from bayesring.model.tails import NORMAL_TAILS
from tests.simulated_rings import (
    NAMES,
    QUICK,
    SHAPE,
    N,
    entries,
    fitted,
    simulated,
    simulated_table,
)


@pytest.fixture(scope="module")
def rings():
    return {name: fitted(name, *simulated(name)) for name in NAMES}


@pytest.fixture(scope="module")
def table():
    return simulated_table()


def direct(name, posterior, X, y, exposure=1.0):
    """log p(y | f, .) by SciPy, in the units of the data."""
    f, own = entries(posterior, X), posterior.nuisance
    mean, scale = posterior.location + posterior.scale * f, posterior.scale
    if name == "Gaussian":
        return stats.norm.logpdf(y, mean, scale / np.sqrt(own[:, :1]))
    if name == "StudentT":
        return stats.t.logpdf(y, own[:, 1:2], mean, scale / np.sqrt(own[:, :1]))
    if name == "Bernoulli":
        return stats.bernoulli.logpmf(y, expit(f + own[:, :1]))
    if name in ("NegativeBinomial", "Poisson"):
        size, mu = own[:, :1], exposure * np.exp(f + own[:, 1:2])
        return stats.nbinom.logpmf(y, size, size / (size + mu))
    assert name == "Ordinal"
    cuts = own[:, : posterior.likelihood._cuts]
    ends = np.pad(cuts, ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    place = (np.asarray(y) - posterior.location).astype(int)
    return np.log(stats.norm.cdf(ends[:, place + 1] - f) - stats.norm.cdf(ends[:, place] - f))


@pytest.mark.parametrize("name", NAMES)
def test_the_log_likelihood_is_that_of_the_definition(rings, name):
    ring, (X, y) = rings[name], simulated(name, seed=1, n=30)
    y = np.clip(y, *np.quantile(simulated(name)[1], [0, 1]))
    found = ring.log_likelihood(X, y)
    assert found.shape == (2, 20, 30)
    found = found.reshape(40, 30)  # chain after chain
    np.testing.assert_allclose(found, direct(name, ring.posterior_, X, y), rtol=1e-8, atol=1e-8)
    score = logsumexp(found, axis=0) - np.log(40)
    np.testing.assert_allclose(ring.log_score(X, y), score, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_arguments_it_is_that_of_the_training_values(rings, name):
    """Equal values in a cell are one row that counts as many times as they occur."""
    ring, data = rings[name], rings[name].observed_
    weight = 1.0 if data.given.weight is None else data.given.weight
    found = ring.log_likelihood().reshape(40, -1)
    own = direct(name, ring.posterior_, data.coords, data.values)
    np.testing.assert_allclose(found, weight * own, rtol=1e-8, atol=1e-8)
    X, y = simulated(name)
    total = ring.log_likelihood(X, y).sum(axis=2).ravel()
    np.testing.assert_allclose(found.sum(axis=1), total, rtol=1e-10)


def test_densities_have_the_units_of_the_data(rings):
    """A density of y in other units is smaller by the factor: it must integrate to one."""
    ring = rings["Gaussian"]
    y = np.linspace(-150, 250, 2001)
    X = np.tile([[1, 2, 0]], (len(y), 1))
    area = np.exp(ring.log_likelihood(X, y)).sum(axis=2) * (y[1] - y[0])
    np.testing.assert_allclose(area, 1.0, rtol=1e-6)


def test_it_is_the_density_of_the_model_whatever_calibrates_intervals(rings):
    ring, (X, y) = rings["Gaussian"], simulated("Gaussian", seed=1)
    posterior, before = ring.posterior_, ring.log_likelihood(X, y)
    ends, replicates = ring.predict_interval(X), ring.to_datatree()["posterior_predictive"]["y"]
    wider = replace(posterior.likelihood, tails=tuple(2 * NORMAL_TAILS))
    try:
        ring.posterior_ = replace(posterior, likelihood=wider)
        assert np.all(ring.predict_interval(X)[1] > ends[1])
        np.testing.assert_array_equal(ring.log_likelihood(X, y), before)
        xr.testing.assert_equal(ring.to_datatree()["posterior_predictive"]["y"], replicates)
    finally:
        ring.posterior_ = posterior


def test_exposures_of_the_training_values_count():
    X, y = simulated("NegativeBinomial")
    exposure = np.random.default_rng(3).uniform(0.5, 4, N)
    ring = fitted("NegativeBinomial", X, y, exposure=exposure)
    data = ring.observed_
    own = direct("NegativeBinomial", ring.posterior_, data.coords, data.values, data.given.exposure)
    np.testing.assert_allclose(ring.log_likelihood().reshape(own.shape), own, rtol=1e-8)


def test_errors_weights_and_ends_of_the_training_values_count():
    """A value known by its ends has a probability, which has no units."""
    X, y = simulated("Gaussian")
    rng = np.random.default_rng(3)
    error, weight = rng.uniform(1, 20, N), rng.uniform(0.5, 3, N)
    y[:20] = np.nan
    lower, upper = np.full(N, np.nan), np.full(N, np.nan)
    lower[:10], upper[:20] = 30.0, 60.0
    ring = fitted(
        "Gaussian",
        X,
        y,
        sample_weight=weight,
        value_error=error,
        value_lower=lower,
        value_upper=upper,
    )
    posterior, data = ring.posterior_, ring.observed_
    given = data.given
    mean = posterior.location + posterior.scale * entries(posterior, data.coords)
    noise = np.hypot(posterior.scale / np.sqrt(posterior.nuisance[:, :1]), given.error)
    expected = stats.norm.logpdf(data.values, mean, noise)
    for row in np.flatnonzero(given.censored):
        own = stats.norm(mean[:, row], noise[:, row])
        expected[:, row] = np.log(own.cdf(given.upper[row]) - own.cdf(given.lower[row]))
    assert given.censored.sum() == 20
    expected = given.weight * expected
    found = ring.log_likelihood().reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert "censored" in ring.to_datatree()["observed_data"].attrs


def test_labels_of_a_classifier_are_understood(tmp_path):
    X, y = simulated("Bernoulli")
    ring = TensorRingClassifier(shape=SHAPE, **QUICK).fit(X, np.where(y > 0, "yes", "no"))
    found = ring.log_likelihood(X, np.where(y > 0, "yes", "no")).reshape(40, -1)
    np.testing.assert_allclose(found, direct("Bernoulli", ring.posterior_, X, y), rtol=1e-8)
    table = pd.DataFrame(X, columns=list("abc")).assign(t=np.where(y > 0, "yes", "no"))
    ring = TensorRingClassifier(**QUICK).fit(table, modes=list("abc"), value="t")
    ring.save(tmp_path / "model.ring")
    again = load(tmp_path / "model.ring")
    np.testing.assert_array_equal(again.log_score(table), ring.log_score(table, table["t"]))
    with pytest.raises(ValueError, match="y holds maybe in row 0, but the classes are"):
        ring.log_score(table, np.where(y > 0, "maybe", "no")[np.argsort(-y)])


def test_a_model_must_be_fitted(rings):
    ring, (X, y) = TensorRing(), simulated("Gaussian")
    for call in (ring.log_likelihood, lambda: ring.log_score(X, y), ring.to_datatree):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        compare([rings["Gaussian"], ring], X, y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0, 0, 0]] * 2, [1.0], "y has 1 values, but X has 2 rows"),
        ([[0, 0, 0]] * 2, [1.0, np.nan], "y must be finite, got NaN in row 1"),
        ([[0, 0, 0]] * 2, None, "y is required: one value per row of X"),
        (None, [1.0], "log_likelihood got y without X"),
        ([[9, 0, 0]], [1.0], "X has coordinate 9 in row 0, column 0, but mode 0 has size 5"),
        ([[0, 0]], [1.0], "X has 2 features, but TensorRing is expecting 3"),
        ([[0, 0, 0]], [0.5], "y must hold counts"),
        ([[0, 0, 0]], [-1.0], "y must hold counts"),
    ],
)
def test_wrong_rows_are_refused_in_one_sentence(rings, X, y, message):
    with pytest.raises(ValueError, match=message):
        rings["Poisson"].log_likelihood(X, y)


def test_training_values_that_were_not_kept(rings, monkeypatch):
    ring = rings["Poisson"]
    monkeypatch.setattr(ring, "observed_", None)
    with pytest.raises(ValueError, match="log_likelihood needs X and y, because the model has not"):
        ring.log_likelihood()
    assert list(ring.to_datatree().children) == ["posterior", "sample_stats"]


def test_results_beyond_the_memory_are_refused(rings, monkeypatch):
    monkeypatch.setattr("bayesring.checks.free_memory", lambda: 2**14)
    with pytest.raises(ValueError, match="the log likelihood of 80 values in 40 draws takes"):
        rings["Gaussian"].log_likelihood()
    with pytest.raises(ValueError, match="values with its replicates takes"):
        rings["Gaussian"].to_datatree()


def test_labels_unknown_to_the_fit_are_said(table):
    ring = TensorRing(order=None, **QUICK).fit(table, modes=["place", "b"], value="t")
    new = table.head(3).replace({"place": {table["place"][0]: "nowhere"}})
    with pytest.warns(UserWarning, match="Labels that the fit did not know: 1 of 'place'") as seen:
        found = ring.log_likelihood(new)
    assert seen[0].filename == __file__
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match="X has no column 't' of values"):
        ring.log_likelihood(table[["place", "b"]])
