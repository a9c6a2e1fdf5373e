"""Diagnostics of a fit: the table, the warnings, and the tree that ArviZ reads."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

from bayesring import TensorRing, complete, load
from bayesring.infer.state import Trace
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.rank import Adaption
from bayesring.posterior.convergence import (
    SHORT,
    DiagnosticWarning,
    _disagreement,
    diagnose,
    entry_draws,
    scalar_draws,
)
from tests.test_estimator import SHAPE, planted

CELLS = np.array([[0, 1, 2], [7, 8, 9]])


def fit(rank=1, seed=1, n=500, planted_rank=1, noise=0.3, **settings):
    X, y, *_ = planted(seed, n, noise, rank=planted_rank)
    settings = {"chains": 2, "random_state": 0, "progress": False, "shape": SHAPE} | settings
    return TensorRing(rank, **settings).fit(X, y)


@pytest.fixture(scope="module")
def good():
    return fit(rank=2, warmup=300, draws=1500, likelihood=Gaussian(max_precision=np.inf))


def diagnosed(ring, X=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ring.diagnostics(X)
    assert len(caught) == bool(found.problems)
    if caught:
        assert caught[0].category is DiagnosticWarning
        assert str(caught[0].message) == " ".join(found.problems)
    return found


def test_nothing_is_said_when_all_is_well(good):
    for cells in (None, CELLS):
        found = diagnosed(good, cells)
        assert found.problems == ()
        assert re.match(r"Means are off by up to \d% of their error bars", found.notes[0])


@pytest.mark.ci
def test_the_error_is_what_other_seeds_show():
    """Means of fits with other seeds differ by the Monte Carlo error that one fit reports."""
    rings = [fit(rank=2, warmup=200, draws=100, seed=1, random_state=k) for k in range(8)]
    cells = np.random.default_rng(0).integers(0, SHAPE, (200, 3))
    means = np.stack([ring.predict(cells) for ring in rings])
    _, deviation = rings[0].predict(cells, return_std=True)
    seen = np.quantile(means.std(axis=0, ddof=1) / deviation, 0.95)
    reported = np.median([ring.diagnostics().error for ring in rings])
    assert 0.5 * seen < reported < 2 * seen


@pytest.mark.ci
def test_an_error_of_probabilities_is_one_of_probabilities():
    X, y, *_ = planted(1, 500, 0.3, rank=1)
    binary = (y > np.median(y)).astype(float)
    settings = {"likelihood": "bernoulli", "chains": 2, "progress": False, "shape": SHAPE}
    rings = [
        TensorRing(2, warmup=100, draws=100, random_state=k, **settings).fit(X, binary)
        for k in range(8)
    ]
    cells = np.random.default_rng(0).integers(0, SHAPE, (200, 3))
    seen = np.quantile(np.stack([r.predict(cells) for r in rings]).std(axis=0, ddof=1), 0.95)
    reported = np.median([ring.diagnostics().error for ring in rings])
    assert 0.4 * seen < reported < 2.5 * seen


def test_fit_says_what_is_wrong_and_nothing_if_nothing_is():
    with pytest.warns(DiagnosticWarning, match="too few to judge") as caught:
        fit(warmup=10, draws=3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(rank=2, warmup=200, draws=400)


def test_complete_says_what_is_wrong():
    X, y, *_ = planted(1, 500, 0.3, rank=1)
    data = np.full(SHAPE, np.nan)
    data[tuple(X.T)] = y
    with pytest.warns(DiagnosticWarning, match="too few to judge"):
        complete(data, rank=2, warmup=10, draws=3, progress=False, random_state=0)


def test_the_table_has_noise_likelihood_and_the_cells_asked_for(good):
    table = good.diagnostics(CELLS)
    assert table.names == ("noise", "rmse", "log likelihood", "entry (0, 1, 2)", "entry (7, 8, 9)")
    row = table.rows()[3]
    mean, deviation = good.predict(CELLS[:1], return_std=True, noise=False)
    assert row["mean"] == pytest.approx(mean[0])
    assert row["sd"] == pytest.approx(deviation[0], rel=1e-3)
    assert row["mcse"] < row["sd"]
    assert row["rhat"] < 1.05
    text = str(table)
    for word in ("noise", "entry (7, 8, 9)", "mean", "mcse", "ess_bulk", "ess_tail", "rhat"):
        assert word in text
    assert "the worst of 50" in str(good.diagnostics())


def test_short_chains_are_told_to_run_longer():
    ring = fit(rank=3, planted_rank=3, noise=0.01, warmup=2, draws=20, chains=4)
    found = diagnosed(ring)
    assert re.fullmatch(
        r"Means are off by up to \d+% of their error bars because the chains are short; "
        r"run longer, with warmup=100 and draws=100\.",
        found.problems[0],
    )
    assert found.error > 1 / 3
    assert any("above 1.01: the chains do not agree" in note for note in found.notes)
    assert any("effective draws, fewer than 400" in note for note in found.notes)


def test_chains_that_disagree_for_good_are_told_to_be_more(good):
    """More draws of each would not help: half of them are off by as much."""
    first, *others = good.posterior_.chains
    moved = (first._replace(flat=1.5 * first.flat), *others)
    posterior = replace(good.posterior_, chains=moved)
    found = diagnose(posterior, good.trace_, good.warmup_, 600)
    assert re.fullmatch(
        r"Means are off by up to \d+% of their error bars because the chains disagree; "
        rf"run more of them, with chains={2 * len(moved)}\.",
        found.problems[0],
    )


def test_different_ranks_are_named():
    ring = fit(Adaption(every=3, kappa0=-0.3, threshold=0.0), warmup=60, draws=20, chains=4)
    ranks = {draws.rank for draws in ring.posterior_.chains}
    assert len(ranks) > 1
    assert any("chains ended at different ranks" in problem for problem in diagnosed(ring).notes)


def test_more_parameters_than_observations_are_counted():
    ring = fit(rank=5, n=100, warmup=20, draws=20)
    expected = "The ring has 675 parameters for 100 observations"
    assert any(problem.startswith(expected) for problem in diagnosed(ring).notes)


def test_noise_at_its_guard_is_named():
    ring = fit(rank=2, warmup=50, draws=50, likelihood=Gaussian(max_precision=1.5))
    message = r"The noise is at its bound in \d+% of the draws \(precision 1\.5 "
    assert any(re.match(message, problem) for problem in diagnosed(ring).notes)


def test_constant_quantities_do_not_confuse_it():
    ring = fit(warmup=10, draws=3)
    assert diagnosed(ring).problems[0].startswith("3 draws per chain are too few to judge")


def test_chains_of_unequal_length_are_thinned_to_match(rng):
    ring = fit(
        Adaption((1, 1, 1), every=3, threshold=0.0),
        warmup=60,
        draws=30,
        chains=3,
        max_memory=30_000,
    )
    lengths = [len(draws.flat) for draws in ring.posterior_.chains]
    assert entry_draws(ring.posterior_, CELLS).shape == (3, min(lengths), 2)


@pytest.mark.parametrize(
    ("likelihood", "error", "harms"),
    [(Gaussian(), 0.1, False), (Gaussian(), 0.4, True), (Bernoulli(), 0.04, False),
     (Bernoulli(), 0.1, True)],
)  # fmt: skip
def test_an_error_of_probabilities_harms_sooner(good, likelihood, error, harms):
    posterior = replace(good.posterior_, likelihood=likelihood)
    problems, notes = _disagreement(posterior, error, SHORT, 100, 100)
    assert (len(problems), len(notes)) == (harms, not harms)


def test_scans_of_the_warm_up_are_not_diagnosed():
    """Nor those that only the longer of two interrupted chains has."""
    traces = [Trace(np.ones((n, 3)), np.arange(n) + 0.5, {"noise": np.arange(n)}) for n in (9, 12)]
    found = scalar_draws(traces, 4)
    np.testing.assert_array_equal(found["noise"], [range(4, 9)] * 2)
    np.testing.assert_array_equal(found["log likelihood"], found["noise"] + 0.5)


def test_the_tree_pairs_each_entry_with_the_noise_of_its_draw():
    """With thinning, and with chains of different rank and so of different thinning."""
    ring = fit(
        Adaption((1, 1, 1), every=3, threshold=0.0),
        warmup=60,
        draws=31,
        chains=3,
        max_memory=325_000,
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
