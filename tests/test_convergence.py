"""Diagnostics of a fit: the table, the warnings, and the tree that ArviZ reads."""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from importlib.util import find_spec

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from bayesring import TensorRing, load
from bayesring.likelihoods import Gaussian
from bayesring.model.rank import Adaption
from bayesring.posterior.convergence import DiagnosticWarning, entry_draws
from tests.test_estimator import SHAPE, planted

CELLS = np.array([[0, 1, 2], [7, 8, 9]])


def fit(rank=1, seed=1, n=500, planted_rank=1, **settings):
    X, y, *_ = planted(seed, n, 0.3, rank=planted_rank)
    settings = {"chains": 2, "random_state": 0, "progress": False, "shape": SHAPE} | settings
    return TensorRing(rank, **settings).fit(X, y)


@pytest.fixture(scope="module")
def good():
    return fit(rank=2, warmup=400, draws=6000, likelihood=Gaussian(max_precision=np.inf))


def problems_of(ring, X=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ring.diagnostics(X)
    assert len(caught) == bool(found.problems)
    if caught:
        assert caught[0].category is DiagnosticWarning
        assert str(caught[0].message) == " ".join(found.problems)
    return found.problems


def test_nothing_is_said_when_all_is_well(good):
    assert problems_of(good) == ()
    assert problems_of(good, CELLS) == ()


def test_the_table_has_noise_likelihood_and_the_cells_asked_for(good):
    table = good.diagnostics(CELLS)
    assert table.names == ("noise", "rmse", "log likelihood", "entry (0, 1, 2)", "entry (7, 8, 9)")
    row = table.rows()[3]
    mean, deviation = good.predict(CELLS[:1], return_std=True, noise=False)
    assert row["mean"] == pytest.approx(mean[0])
    assert row["sd"] == pytest.approx(deviation[0], rel=1e-3)
    assert row["mcse"] < row["sd"]
    assert row["rhat"] < 1.01
    text = str(table)
    for word in ("noise", "entry (7, 8, 9)", "mean", "mcse", "ess_bulk", "ess_tail", "rhat"):
        assert word in text
    assert "the worst of 50" in str(good.diagnostics())


def test_short_chains_are_told_to_run_longer():
    ring = fit(rank=3, planted_rank=3, warmup=12, draws=20)
    problems = problems_of(ring, CELLS)
    assert (
        "above 1.01: the chains have not come to agree; run longer, with warmup=100 and draws=100"
        in (problems[0])
    )
    assert "effective draws, fewer than 200" in problems[1]
    assert "draws=100" in problems[1]


def test_different_ranks_are_named():
    ring = fit(Adaption(every=3, kappa0=-0.3, threshold=0.0), warmup=60, draws=20, chains=4)
    ranks = {draws.rank for draws in ring.posterior_.chains}
    assert len(ranks) > 1
    assert any("chains ended at different ranks" in problem for problem in problems_of(ring))


def test_more_parameters_than_observations_are_counted():
    ring = fit(rank=5, n=100, warmup=20, draws=20)
    expected = "The ring has 675 parameters for 100 observations"
    assert any(problem.startswith(expected) for problem in problems_of(ring))


def test_noise_at_its_guard_is_named():
    ring = fit(rank=2, warmup=50, draws=50, likelihood=Gaussian(max_precision=1.5))
    message = r"The noise is at its guard in \d+% of the draws \(precision 1\.5 "
    assert any(re.match(message, problem) for problem in problems_of(ring))


def test_constant_quantities_do_not_confuse_it():
    ring = fit(warmup=10, draws=3)
    assert problems_of(ring)[0].startswith("3 draws per chain are too few to judge; keep more")


def test_chains_of_unequal_length_are_thinned_to_match(rng):
    ring = fit(
        Adaption((1, 1, 1), every=3, threshold=0.0),
        warmup=60,
        draws=30,
        chains=3,
        max_memory=60_000,
    )
    lengths = [len(draws.flat) for draws in ring.posterior_.chains]
    assert entry_draws(ring.posterior_, CELLS).shape == (3, min(lengths), 2)


def test_the_tree_pairs_each_entry_with_the_noise_of_its_draw():
    """With thinning, and with chains of different rank and so of different thinning."""
    ring = fit(
        Adaption((1, 1, 1), every=3, threshold=0.0),
        warmup=60,
        draws=31,
        chains=3,
        max_memory=650_000,
    )
    lengths = [len(draws.scans) for draws in ring.posterior_.chains]
    assert 5 < min(lengths) < max(lengths) < 31
    tree = ring.to_datatree(CELLS)["posterior"]
    for chain, draws in enumerate(ring.posterior_.chains):
        rows = np.linspace(0, lengths[chain] - 1, min(lengths)).round().astype(int)
        noise = ring.posterior_.scale / np.sqrt(draws.nuisance[rows, 0])
        np.testing.assert_allclose(tree["noise"][chain], noise)


def test_changing_parameters_after_the_fit_changes_no_diagnosis(good, tmp_path):
    before = str(good.diagnostics(CELLS))
    good.save(tmp_path / "before.ring")
    original = good.get_params()
    try:
        good.set_params(warmup=7, draws=1, prior="paper", shape=None)
        assert str(good.diagnostics(CELLS)) == before
        good.save(tmp_path / "after.ring")
    finally:
        good.set_params(**original)
    assert (tmp_path / "before.ring").read_bytes() == (tmp_path / "after.ring").read_bytes()


def test_diagnostics_survive_saving(good, tmp_path):
    good.save(tmp_path / "model.ring")
    assert str(load(tmp_path / "model.ring").diagnostics(CELLS)) == str(good.diagnostics(CELLS))


@pytest.fixture(params=["arviz", "arviz_stats"])
def arviz_tools(request):
    """Container, summary and trace plot of ArviZ 0.x, or of the packages that ArviZ 1 is made of.

    Releases of `arviz_plots` break with some of matplotlib; where it is not installed, no plot.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(request.param)
        if request.param == "arviz_stats":
            found = find_spec("arviz_plots") is not None
            plot = import_module("arviz_plots").plot_trace if found else None
            return lambda tree: tree, module.summary, plot
    if not module.__version__.startswith("0."):
        return lambda tree: tree, module.summary, module.plot_trace
    return module.InferenceData.from_datatree, module.summary, module.plot_trace


def test_arviz_reads_the_tree(good, arviz_tools):
    contain, summarise, plot_trace = arviz_tools
    tree = good.to_datatree(CELLS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = contain(tree)
        summary = summarise(data, round_to="none")
        if plot_trace is not None:
            matplotlib.use("Agg")
            plot_trace(data)
            figures = map(pyplot.figure, pyplot.get_fignums())
            drawn = [axes for figure in figures for axes in figure.axes if axes.lines]
            pyplot.close("all")
            assert len(drawn) >= len(CELLS)
    assert set(tree["posterior"].dims) == {"chain", "draw", "cell"}
    ours = {row["quantity"]: row for row in good.diagnostics(CELLS).rows()}
    entry = summary.loc["entry[(0, 1, 2)]"]
    assert float(entry["mean"]) == pytest.approx(ours["entry (0, 1, 2)"]["mean"])
    assert float(entry["r_hat"]) == pytest.approx(ours["entry (0, 1, 2)"]["rhat"], abs=1e-6)
    assert float(entry["ess_bulk"]) == pytest.approx(ours["entry (0, 1, 2)"]["ess_bulk"], rel=1e-6)
    assert float(summary.loc["noise"]["mean"]) == pytest.approx(ours["noise"]["mean"])
