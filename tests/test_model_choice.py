"""Pointwise log likelihoods, the tree that ArviZ judges models by, and comparisons of models."""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from bayesring import Comparison, TensorRing, TensorRingClassifier, compare, likelihoods, load
from bayesring.command import cli
from bayesring.likelihoods.real_valued import LEVELS
from bayesring.posterior import datatree
from tests.models import random_coords

SHAPE, N = (5, 4, 3), 80
QUICK = {"rank": 2, "warmup": 20, "draws": 20, "chains": 2, "random_state": 0, "progress": False}


def simulated(name, seed=0, n=N):
    """Cells, and values that the likelihood can have; real ones are far from standard units."""
    truth, rng = np.random.default_rng(100), np.random.default_rng(seed)
    X = random_coords(rng, SHAPE, n)
    sizes = [truth.normal(size=size) for size in SHAPE]
    f = sum(each[X[:, mode]] for mode, each in enumerate(sizes)) / 2
    values = {
        "Gaussian": 50 + 8 * (f + rng.normal(size=n) / 2),
        "StudentT": 50 + 8 * (f + rng.normal(size=n) * np.where(rng.random(n) < 0.1, 2, 0.3)),
        "Bernoulli": (rng.random(n) < expit(f)).astype(float),
        "NegativeBinomial": rng.poisson(np.exp(1 + f) * rng.gamma(2.0, 0.5, n)),
        "Poisson": rng.poisson(np.exp(1 + f)),
        "Ordinal": np.clip(np.round(3 + f + rng.normal(size=n) / 2), 1, 5),
    }
    return X, values[name]


def fitted(name, X, y, shape=SHAPE, **more):
    settings = QUICK | {key: more.pop(key) for key in list(more) if key in QUICK}
    own = getattr(likelihoods, name)()
    return TensorRing(likelihood=own, shape=shape, **settings).fit(X, y, **more)


NAMES = [name for name in likelihoods.__all__ if name != "Likelihood"]


@pytest.fixture(scope="module")
def rings():
    return {name: fitted(name, *simulated(name)) for name in NAMES}


def entries(posterior, X):
    """f by the definition of a ring: sum over strands of the trace of the product of slices."""
    found = np.empty((posterior.n_draws, len(X)))
    for draw in range(posterior.n_draws):
        cores = [core.astype(float) for core in posterior.cores(draw)]
        for row, cell in enumerate(X):
            product = cores[0][cell[0]]
            for core, index in zip(cores[1:], cell[1:], strict=True):
                product = product @ core[index]
            found[draw, row] = np.trace(product, axis1=-2, axis2=-1).sum()
    return found


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
    wider = replace(posterior.likelihood, tails=tuple(2 * stats.norm.ppf(LEVELS)))
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


# ---- What is refused, and how.


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


@pytest.fixture(scope="module")
def table():
    X, y = simulated("Gaussian")
    return pd.DataFrame({"place": np.array(list("vwxyz"))[X[:, 0]], "b": X[:, 1], "t": y})


def test_labels_unknown_to_the_fit_are_said(table):
    ring = TensorRing(order=None, **QUICK).fit(table, modes=["place", "b"], value="t")
    new = table.head(3).replace({"place": {table["place"][0]: "nowhere"}})
    with pytest.warns(UserWarning, match="Labels that the fit did not know: 1 of 'place'") as seen:
        found = ring.log_likelihood(new)
    assert seen[0].filename == __file__
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match="X has no column 't' of values"):
        ring.log_likelihood(table[["place", "b"]])


# ---- The tree.


@pytest.fixture(scope="module")
def az():
    """ArviZ as pip installs it here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def azs():
    """What ArviZ 1 is made of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz_stats")


def test_groups_hold_what_the_model_says_of_its_training_values(rings):
    ring = rings["Gaussian"]
    tree, data = ring.to_datatree(), ring.observed_
    assert isinstance(tree, xr.DataTree)
    names = {"posterior", "sample_stats", "log_likelihood", "observed_data", "posterior_predictive"}
    assert set(tree.children) == names
    pointwise = tree["log_likelihood"]["y"]
    assert pointwise.dims == ("chain", "draw", "observation")
    np.testing.assert_array_equal(pointwise, ring.log_likelihood())
    np.testing.assert_array_equal(tree["observed_data"]["y"], data.values)
    cell = tuple(int(index) for index in data.coords[7])
    assert str(tree["observed_data"]["at"][7].item()) == str(cell)
    assert tree["log_likelihood"].attrs["observations"].startswith("all 80 training observations")
    assert "before intervals are calibrated" in tree["log_likelihood"].attrs["source"]


def test_log_likelihoods_add_up_to_that_of_the_chains(rings):
    """Which is in standard units: n log(scale) apart."""
    ring = rings["Gaussian"]
    tree = ring.to_datatree()
    total = tree["log_likelihood"]["y"].sum("observation") + N * np.log(ring.posterior_.scale)
    np.testing.assert_allclose(total, tree["sample_stats"]["log_likelihood"], rtol=1e-6)


def test_replicates_are_what_the_model_expects_of_each_draw():
    """One draw with many observations: their mean and spread; the same for the same seed."""
    X, y = simulated("Gaussian", n=2000)
    ring = fitted("Gaussian", X, y, warmup=5, draws=4)
    tree = ring.to_datatree()
    found = tree["posterior_predictive"]["y"].values.reshape(8, -1)
    again = ring.to_datatree()["posterior_predictive"]["y"].values
    np.testing.assert_array_equal(found, again.reshape(8, -1))
    posterior = ring.posterior_
    mean = posterior.location + posterior.scale * posterior.entries(ring.observed_.coords)
    noise = posterior.scale / np.sqrt(posterior.nuisance[:, :1])
    z = (found - mean) / noise
    np.testing.assert_allclose(z.mean(axis=1), 0.0, atol=4 / np.sqrt(2000))
    np.testing.assert_allclose(z.std(axis=1), 1.0, atol=4 / np.sqrt(4000))


def test_replicates_have_the_exposure_of_their_observation():
    X, y = simulated("Poisson")
    exposure = np.where(np.arange(N) % 2, 1.0, 100.0)
    ring = fitted("Poisson", X, y * exposure, exposure=exposure)
    found = ring.to_datatree()["posterior_predictive"]["y"].values.reshape(40, -1)
    posterior, data = ring.posterior_, ring.observed_
    own = posterior.nuisance
    mean = data.given.exposure * np.exp(entries(posterior, data.coords) + own[:, 1:2])
    z = (found - mean) / np.sqrt(mean + mean**2 / own[:, :1])
    for rows in (data.given.exposure > 1, data.given.exposure == 1):
        assert abs(z[:, rows].mean()) < 4 / np.sqrt(z[:, rows].size)


def test_of_many_observations_all_models_of_the_data_hold_the_same(rings, monkeypatch):
    monkeypatch.setattr(datatree, "MOST_OBSERVATIONS", 30)
    X, y = simulated("Poisson")
    other = fitted("Gaussian", X, y, random_state=5)
    one, two = rings["Poisson"].to_datatree(), other.to_datatree()
    for name in ("log_likelihood", "observed_data", "posterior_predictive"):
        assert one[name].sizes["observation"] == 30
        said = one[name].attrs["observations"]
        assert said.startswith("a random 30 of ")
        assert said.endswith("the same for every model of these data")
    xr.testing.assert_equal(one["observed_data"].to_dataset(), two["observed_data"].to_dataset())
    rows = one["observed_data"]["observation"].values
    assert np.any(np.diff(rows) > 1)
    values = rings["Poisson"].observed_.values[rows]
    np.testing.assert_array_equal(one["observed_data"]["y"], values)


def test_chains_of_different_length_are_matched(rings):
    """As in the group of the entries: each value with the noise of its draw."""
    ring = rings["Gaussian"]
    posterior, before = ring.posterior_, ring.log_likelihood()
    first, second = posterior.chains
    short = second._replace(
        flat=second.flat[:7], scans=second.scans[:7], nuisance=second.nuisance[:7]
    )
    try:
        ring.posterior_ = replace(posterior, chains=(first, short))
        pointwise, tree = ring.log_likelihood(), ring.to_datatree()
        assert pointwise.shape == (2, 7, 80)
        kept = np.linspace(0, 19, 7).round().astype(int)
        np.testing.assert_array_equal(pointwise[0], before[0, kept])
        np.testing.assert_array_equal(pointwise[1], before[1, :7])
        np.testing.assert_array_equal(tree["log_likelihood"]["y"].values, pointwise)
    finally:
        ring.posterior_ = posterior


def test_cells_asked_for_twice_are_there_once(rings):
    """Otherwise ArviZ could not tell their rows apart."""
    tree = rings["Gaussian"].to_datatree([[3, 1, 1], [0, 0, 0], [3, 1, 1]])
    assert tree["posterior"]["cell"].values.tolist() == ["(3, 1, 1)", "(0, 0, 0)"]


@pytest.mark.filterwarnings("ignore")
def test_arviz_reads_the_tree_as_it_is(rings, az):
    matplotlib.use("Agg")
    ring = rings["Gaussian"]
    summary = az.summary(ring.to_datatree(), round_to="none")
    tree = ring.to_datatree()
    noise = float(tree["posterior"]["noise"].mean())
    assert float(summary.loc["noise"]["mean"]) == pytest.approx(noise)
    found = az.loo(tree)
    elpd = found.elpd_loo if hasattr(found, "elpd_loo") else found.elpd
    assert elpd == pytest.approx(ring.log_likelihood().mean(axis=(0, 1)).sum(), rel=0.1)
    plot = az.plot_ppc if hasattr(az, "plot_ppc") else az.plot_ppc_dist
    plot(tree)
    pyplot.close("all")


@pytest.mark.filterwarnings("ignore")
def test_arviz_0_reads_the_tree_by_conversion_and_in_other_ways(rings, az):
    if not az.__version__.startswith("0."):
        pytest.skip("ArviZ 1 reads trees")
    tree = rings["Gaussian"].to_datatree()
    data = az.InferenceData.from_datatree(tree)
    assert set(data.groups()) == set(tree.children) == set(tree.groups())
    assert az.loo(data)["elpd_loo"] == az.loo(tree)["elpd_loo"]
    assert az.waic(tree)["elpd_waic"] == az.waic(data)["elpd_waic"]
    pd.testing.assert_frame_equal(az.summary(tree), az.summary(data))
    xr.testing.assert_equal(az.ess(tree), az.ess(data))
    az.plot_trace(tree, var_names=["noise"])
    az.plot_loo_pit(tree, y="y")
    az.plot_bpv(tree)
    pyplot.close("all")
    assert az.extract(tree, group="posterior_predictive").sizes["sample"] == 40


def test_the_tree_for_arviz_0_is_a_tree_in_every_other_way(rings, az, tmp_path):
    tree = rings["Gaussian"].to_datatree()
    for other in (pickle.loads(pickle.dumps(tree)), tree.copy(deep=True)):
        assert isinstance(other, xr.DataTree)
        xr.testing.assert_identical(other, tree)
    assert tree.groups == xr.DataTree.from_dict(tree.to_dict()).groups
    assert tree.isel(draw=slice(3))["posterior"].sizes["draw"] == 3
    assert tree["posterior/noise"].dims == ("chain", "draw")
    assert "posterior" in repr(tree)
    assert not hasattr(tree, "prior")
    assert tree.posterior.ds.identical(tree["posterior"].dataset)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again.load(), xr.DataTree.from_dict(tree.to_dict()))


@pytest.mark.parametrize("found", ["1.3.0", None, "broken"])
def test_without_arviz_0_the_tree_is_plain(rings, azs, monkeypatch, found):
    def version(name):
        if found is None:
            raise PackageNotFoundError(name)
        return found if found != "broken" else "0.9.0"

    monkeypatch.setattr(datatree, "version", version)
    monkeypatch.setitem(sys.modules, "arviz", None)  # as if it could not be imported
    tree = rings["Gaussian"].to_datatree()
    assert type(tree) is xr.DataTree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert azs.loo(tree).elpd < 0
        assert azs.loo_pit(tree).sizes["observation"] == N
        assert "noise" in azs.summary(tree).index


@pytest.fixture(scope="module")
def heavy():
    """Two models of values with outliers, of which one knows them."""
    X, y = simulated("StudentT", n=500)
    return [fitted(name, X, y, warmup=40, draws=40) for name in ("Gaussian", "StudentT")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["arviz", "arviz_stats"])
def test_leaving_one_out_prefers_the_model_that_is_right(heavy, package):
    pytest.importorskip(package)
    trees = {name: ring.to_datatree() for name, ring in zip("gt", heavy, strict=True)}
    found = import_module(package).compare(trees)
    assert found.index[0] == "t"
    gap, error = (abs(float(found.loc["g", name])) for name in ("elpd_diff", "dse"))
    assert gap > 3 * error > 0


# ---- Comparisons.


def test_held_out_scores_prefer_the_model_that_is_right(heavy):
    X, y = simulated("StudentT", seed=1, n=1000)
    found = compare(heavy, X, y)
    assert found.names == ("studentt", "gaussian")
    for name, ring in zip(("gaussian", "studentt"), heavy, strict=True):
        assert found.scores[name] == pytest.approx(ring.log_score(X, y).mean(), rel=1e-12)
    gap, error = found.differences["gaussian"]
    assert gap == pytest.approx(found.scores["gaussian"] - found.scores["studentt"])
    assert gap < -3 * error
    assert "gaussian is worse than studentt by 0." in str(found)
    assert str(found).count("per value.") == 1


def test_the_error_is_that_of_a_bootstrap():
    """Paired: what rows have in common does not count."""
    rng = np.random.default_rng(0)
    common = 5 * rng.normal(size=400)
    scores = np.stack([common, common - 0.1 + 0.5 * rng.exponential(size=400) - 0.5])
    _, error = Comparison(("a", "b"), scores).differences["b"]
    gap = scores[1] - scores[0]
    means = gap[rng.integers(0, 400, (4000, 400))].mean(axis=1)
    assert error == pytest.approx(means.std(), rel=0.05)


def test_the_error_covers_the_difference_as_often_as_it_should(rings):
    """Over many sets of held-out rows, 95 % within two errors of what all rows say."""
    X, y = simulated("Poisson", seed=0, n=20_000)
    models = {"poisson": rings["Poisson"], "negative": rings["NegativeBinomial"]}
    whole = compare(models, X, y)
    (name, (truth, _)), *_ = whole.differences.items()
    within = []
    for part in range(100):
        rows = slice(200 * part, 200 * part + 200)
        gaps = whole.pointwise[1, rows] - whole.pointwise[0, rows]
        own = Comparison(whole.names, whole.pointwise[:, rows]).differences[name]
        assert own[0] == pytest.approx(gaps.mean())
        within.append(abs(own[0] - truth) < 2 * own[1])
    assert 0.88 <= np.mean(within) <= 1.0


def test_a_transform_needs_its_derivative():
    """By the offset the score of a model of log y is that of a log-normal y."""
    X, z = simulated("Gaussian", n=400)
    y = np.exp(z / 16)
    train, test = slice(300), slice(300, None)
    models = {
        "plain": fitted("Gaussian", X[train], y[train], rank=1),
        "log": fitted("Gaussian", X[train], np.log(y[train]), rank=1),
    }
    values = {"plain": y[test], "log": np.log(y[test])}
    offset = {"log": -np.log(y[test])}
    found = compare(models, X[test], values, offset=offset)
    posterior = models["log"].posterior_
    mean = posterior.location + posterior.scale * posterior.entries(X[test])
    noise = posterior.scale / np.sqrt(posterior.nuisance[:, :1])
    density = stats.lognorm.pdf(y[test], noise, scale=np.exp(mean)).mean(axis=0)
    assert found.scores["log"] == pytest.approx(np.log(density).mean(), rel=1e-9)
    with pytest.raises(ValueError, match="y of log is not that of plain, so that their scores"):
        compare(models, X[test], values)


def test_densities_and_probabilities_are_compared_with_a_note(rings):
    X, y = simulated("Poisson", seed=4)
    X = X[:40]
    other = fitted("Gaussian", *simulated("Poisson"))
    found = compare({"n": other, "p": rings["Poisson"]}, X, y[:40])
    assert "n gives densities and p probabilities" in found.notes[0]
    with pytest.raises(ValueError, match=r"p: y must hold counts, .* got 0\.5 in row 0"):
        compare({"n": other, "p": rings["Poisson"]}, X, np.full(40, 0.5))
    assert not compare([other, other], X, y[:40]).notes[0].startswith("n gives")


def test_cells_of_the_fit_are_noted(rings):
    X, _ = simulated("Poisson")
    free = np.array([cell for cell in np.ndindex(SHAPE) if list(cell) not in X.tolist()])
    cells = np.concatenate([X[:5], free])
    models = {"p": rings["Poisson"], "n": rings["NegativeBinomial"]}
    found = compare(models, cells, np.ones(len(cells)))
    assert found.notes[0].startswith("p was fitted to values at the cells of 5 of these rows")
    assert not compare(models | {"n": models["p"]}, free, np.ones(len(free))).notes


def test_equal_models_have_equal_scores(rings):
    X, y = simulated("Poisson")
    found = compare([rings["Poisson"]] * 2, X, y)
    assert found.names == ("poisson", "poisson 2")
    assert "poisson 2 and poisson have the same scores." in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": []}, "compare needs at least 2 models, got 0"),
        ({"models": 3}, "models must be a dictionary or a list of models, got 3"),
        ({"models": [3, 4]}, "models must be fitted rings, got 3 in place 0"),
        ({"y": [1.0]}, "p: y has 1 values, but X has 80 rows"),
        ({"y": None}, "p: y is required"),
        ({"y": {"p": [1.0]}}, "y lacks values for 'n'"),
        ({"offset": {"q": 1.0}}, r"offset names 'q', but the models are \['p', 'n'\]"),
        ({"offset": {"p": [1.0, 2.0]}}, "offset of p must be a number, or 80 of them"),
        ({"offset": {"p": np.nan}}, "offset of p must be finite"),
        ({"X": [[0, 0, 0]], "y": [1]}, "a comparison needs at least 2 rows"),
        ({"X": [[0, 0, 7]], "y": [1]}, "p: X has coordinate 7 in row 0"),
    ],
)
def test_comparisons_that_make_no_sense(rings, arguments, message):
    X, y = simulated("Poisson")
    models = {"p": rings["Poisson"], "n": rings["NegativeBinomial"]}
    given = {"models": models, "X": X, "y": y} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        compare(**given)


def test_models_of_different_columns_are_refused(table):
    table = table.assign(u=np.log(table["t"]))
    fits = {
        name: TensorRing(order=None, **QUICK).fit(
            table[["place", "b", name]], modes=["place", "b"], value=name
        )
        for name in "tu"
    }
    with pytest.raises(ValueError, match="models were fitted to different columns"):
        compare(fits, table)
    found = compare(fits, table, {"t": table["t"], "u": table["u"]}, offset={"u": -table["u"]})
    assert set(found.names) == {"t", "u"}


# ---- The command.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two models of a table, and rows that they have not seen; keys like 01 stay text."""
    folder = tmp_path_factory.mktemp("compare")
    X, y = simulated("NegativeBinomial", n=300)
    keys = [f"{a:02},{'xyzw'[b]},{c}" for a, b, c in X]
    rows = [f"{key},{value}" for key, value in zip(keys, y, strict=True)]
    rows[250] = keys[250] + ","
    head = "a,b,c,t"
    (folder / "train.csv").write_text("\n".join([head, *rows[:200]]) + "\n")
    (folder / "test.csv").write_text("\n".join([head, *rows[200:]]) + "\n")
    train = pd.read_csv(folder / "train.csv", dtype={"a": str})
    for name in ("NegativeBinomial", "Poisson"):
        own = getattr(likelihoods, name)()
        ring = TensorRing(likelihood=own, **QUICK).fit(train, modes=list("abc"), value="t")
        ring.save(folder / f"{name}.ring")
    return folder


def run(*arguments):
    return CliRunner().invoke(cli.app, ["compare", *map(str, arguments)])


def test_the_command_says_what_the_function_says(files):
    paths = [files / f"{name}.ring" for name in ("Poisson", "NegativeBinomial")]
    result = run(*paths, "--on", files / "test.csv", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["values"] == 99
    table = pd.read_csv(files / "test.csv", dtype={"a": str}).dropna()
    expected = compare({str(path): load(path) for path in paths}, table)
    assert found["scores"] == pytest.approx(expected.scores, rel=1e-12)
    worse = expected.names[1]
    assert tuple(found["differences"][worse].values()) == pytest.approx(expected.differences[worse])
    assert found["results"] == expected.sentences()
    shown = run(*paths, "--on", files / "test.csv").stdout
    assert " is worse than " in " ".join(shown.split())


@pytest.mark.parametrize(
    ("models", "on", "message"),
    [
        (["Poisson.ring"], "test.csv", "compare needs at least 2 different models, got 1"),
        (["Poisson.ring"] * 2, "test.csv", "compare needs at least 2 different models, got 1"),
        (["Poisson.ring", "test.csv"], "test.csv", "is not a bayesring model, or is damaged"),
        (["Poisson.ring", "NegativeBinomial.ring"], "absent.csv", "absent.csv does not exist"),
        (["Poisson.ring", "NegativeBinomial.ring"], "renamed.csv", "has no column 't', which"),
        (["Poisson.ring", "NegativeBinomial.ring"], "blank.csv", "has no value in column 't'"),
        (["Poisson.ring", "NegativeBinomial.ring"], "words.csv", "value column 't' holds 'many'"),
        (["Poisson.ring", "NegativeBinomial.ring"], "cube.npy", "has shape (2, 2, 2), but the"),
    ],
)
def test_the_command_refuses_in_one_sentence(files, monkeypatch, capsys, models, on, message):
    monkeypatch.chdir(files)
    row = "00,x,0,"
    (files / "renamed.csv").write_text(f"a,b,c,u\n{row}1\n")
    (files / "blank.csv").write_text(f"a,b,c,t\n{row}\n{row}\n")
    (files / "words.csv").write_text(f"a,b,c,t\n{row}many\n{row}1\n")
    np.save(files / "cube.npy", np.ones((2, 2, 2)))
    monkeypatch.setattr(sys, "argv", ["bayesring", "compare", *models, "--on", on])
    with pytest.raises(SystemExit) as ending:
        cli.main()
    shown = capsys.readouterr().err
    assert ending.value.code == 2
    assert message in shown
    assert shown.count("\n") == 1


def test_arrays_are_compared_cell_by_cell(rings, tmp_path):
    X, y = simulated("Poisson", seed=7, n=20)
    array = np.full(SHAPE, np.nan)
    array[tuple(X.T)] = y
    np.save(tmp_path / "cells.npy", array)
    for name in ("Poisson", "NegativeBinomial"):
        rings[name].save(tmp_path / f"{name}.ring")
    paths = [tmp_path / f"{name}.ring" for name in ("Poisson", "NegativeBinomial")]
    found = json.loads(run(*paths, "--on", tmp_path / "cells.npy", "--json").stdout)
    known = np.argwhere(~np.isnan(array))
    scores = rings["Poisson"].log_score(known, array[tuple(known.T)])
    assert found["scores"][str(paths[0])] == pytest.approx(scores.mean())
