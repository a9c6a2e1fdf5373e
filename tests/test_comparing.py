"""Comparisons of models: leaving one out, held-out scores with their error, the command."""

from __future__ import annotations

import json
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from bayesring import Comparison, TensorRing, compare, likelihoods, load
from bayesring.command import cli
from tests.simulated_rings import NAMES, QUICK, SHAPE, fitted, simulated, simulated_table


@pytest.fixture(scope="module")
def rings():
    return {name: fitted(name, *simulated(name)) for name in NAMES}


@pytest.fixture(scope="module")
def table():
    return simulated_table()


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
