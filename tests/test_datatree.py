"""The tree that ArviZ judges models by."""

from __future__ import annotations

import pickle
import sys
import warnings
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot

from bayesring.posterior import datatree
from tests.simulated_rings import NAMES, N, entries, fitted, simulated


@pytest.fixture(scope="module")
def rings():
    return {name: fitted(name, *simulated(name)) for name in NAMES}


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
