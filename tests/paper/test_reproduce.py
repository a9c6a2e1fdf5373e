"""The reproduction: scores, tables beside the paper's, figures, page, command."""

from __future__ import annotations

import json
import os
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring.data.observations import Observations
from bayesring.datasets import load_enron, random_fold
from bayesring.datasets.dataset import Dataset, Description, numbered, whole
from bayesring.datasets.splits import Fold
from paper import (
    accuracy,
    accuracy_tables,
    comparison,
    contenders,
    published,
    rank_study,
    reproduction_page,
    scale,
    studies,
    tasks,
)
from paper.contenders import Job, PeerChoice
from paper.reproduce import app
from paper.results_store import Provenance, ResultsStore
from paper.runner import run_cells

ABOUT = Description("small", "", "", "", "", "")
SOURCE = Provenance("c0ffee", "code")


@pytest.fixture
def store(tmp_path):
    return ResultsStore(tmp_path)


def scene():
    rng = np.random.default_rng(0)
    return 100 * np.add.outer(np.add.outer(rng.random(20), rng.random(21)), rng.random(4))


def small_image():
    """A scene of 20 x 21 x 4 cells, a third known."""
    tensor = scene()
    labels = numbered(a=20, b=21, c=4)
    return Dataset(
        ABOUT, tensor.shape, labels, lambda: whole(tensor), lambda s: random_fold(tensor, 1 / 3, s)
    )


def small_links():
    def fold(seed):
        parts = small_image().split(seed)
        return Fold(
            *(Observations(p.coords, (p.values > 150).astype(float), p.shape) for p in parts)
        )

    return Dataset(ABOUT, (20, 21, 4), numbered(a=20, b=21, c=4), lambda: None, fold)


@pytest.fixture
def small(monkeypatch):
    """Small stand-ins for a real-valued set with pictures and a binary one; fewer other cells."""
    image = tasks.TASKS["Indian Pines"]._replace(load=small_image)
    links = tasks.TASKS["Enron"]._replace(load=small_links)
    for module in (tasks, accuracy, comparison, reproduction_page):
        monkeypatch.setattr(module, "TASKS", {"Indian Pines": image, "Enron": links})
    monkeypatch.setattr(scale, "QUICK_SIZES", (10,))
    monkeypatch.setattr(
        rank_study, "quick_runs", lambda: rank_study.all_runs([0], [("adaption", 2)], [10], [0.9])
    )
    monkeypatch.setattr(rank_study, "QUICK_LENGTH", 10)
    one_at_a_time = {
        name: study._replace(jobs=lambda _: 1) for name, study in studies.STUDIES.items()
    }
    monkeypatch.setattr(studies, "STUDIES", one_at_a_time)


def keep(store, name, method, folds=range(5), **scores):
    """Write cells with given scores: a number, or one per fold."""
    for cell in accuracy.make_cells([name], [method], folds):
        fold = int(cell.part)
        found = {
            score: value if np.isscalar(value) else value[fold] for score, value in scores.items()
        }
        about = {"seconds": 60.0, "versions": {"bayesring": "1"}, "machine": "some, 2 cores"}
        cell.keep(store, {"fold": fold} | found | about, SOURCE)


def row_of(table, label):
    return next(
        [field.strip() for field in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith(f"| {label} |")
    )


def test_the_paper_is_transcribed_whole():
    """How many figures there are, and some of them; all were compared with the paper by program."""
    assert len(published.FIGURES) == 60
    assert sum(figure is None for figure in published.FIGURES.values()) == 4
    assert str(published.FIGURES["USHCN", "RMSE", "SBTR-Online"]) == "0.560 ± 0.004"
    assert str(published.FIGURES["Alog", "RMSE", "TTWOPT"]) == "2.84 ± 1.38"
    assert str(published.FIGURES["DBLP", "accuracy", "SBTR-Gibbs"]) == "0.869 ± 0.002"
    assert published.best("Indian Pines", "PSNR").mean == "29.71"
    assert published.best("Alog", "MAE").mean == "0.47"
    assert published.best("Kinship", "AUC").mean == "0.973"


def test_every_row_of_the_paper_has_a_method():
    rows = {method.printed for method in contenders.METHODS.values()} - {None}
    assert rows == set(published.ROWS["continuous"]) == set(published.ROWS["binary"])


def test_a_table_has_the_papers_figure_the_difference_and_marks(store):
    keep(store, "USHCN", "bayesring", RMSE=[0.42, 0.43, 0.42, 0.43, 0.43], MAE=0.3)
    keep(store, "USHCN", "SMURFF", folds=[0, 1], RMSE=0.442, MAE=0.2999)
    keep(store, "USHCN", "BTR-VI", RMSE=0.7, MAE=0.5)
    table = comparison.table(store, "USHCN")
    ours = row_of(table, "bayesring, Gibbs")
    assert ours[1:4] == ["**0.426 ± 0.005**", "0.587 ± 0.007", "-0.161"]
    assert ours[4:7] == ["**0.300 ± 0.000**", "0.430 ± 0.003", "-0.130"]
    assert ours[7:] == ["5 of 5", "1.0", ""]
    theirs = row_of(table, "SMURFF")
    assert theirs[1:5] == ["*0.442 ± 0.000*", "-", "", "**0.300 ± 0.000**"]
    assert theirs[7] == "2 of 5"
    assert row_of(table, "BTR-VI")[1:4] == ["0.700 ± 0.000", "0.614 ± 0.030", "+0.086"]
    assert row_of(table, "TTWOPT")[1:4] == ["not computed", "0.761 ± 0.001", ""]


def test_higher_is_better_where_it_is(store):
    keep(store, "Enron", "bayesring", AUC=0.9, accuracy=0.8)
    keep(store, "Enron", "TTWOPT", AUC=0.95, accuracy=0.7)
    table = comparison.table(store, "Enron")
    assert row_of(table, "TTWOPT")[1] == "**0.950 ± 0.000**"
    assert row_of(table, "bayesring, Gibbs")[1] == "*0.900 ± 0.000*"


def test_what_cannot_run_says_so(store):
    keep(store, "DBLP", "BayesCP", cannot="it needs 512 GB.")
    keep(store, "DBLP", "bayesring", AUC=0.97, accuracy=0.92)
    table = comparison.markdown(store, "binary")
    assert "| Bayesian CP | cannot run | NA |" in table
    assert "- Bayesian CP cannot run on DBLP: it needs 512 GB." in table
    assert (
        "DBLP, bayesring, Gibbs: AUC 0.970, paper 0.925 (better)"
        in reproduction_page.differences(store, "binary")
    )


def test_differences_within_chance_are_not_discussed(store):
    keep(store, "Enron", "bayesring", AUC=[0.82, 0.83, 0.84, 0.82, 0.83], accuracy=0.9)
    told = reproduction_page.differences(store, "binary")
    assert "accuracy 0.900, paper 0.758 (better)" in told
    assert "AUC" not in told


def test_numbers_in_the_text_are_known_or_leave_it_out(store, tmp_path):
    assert reproduction_page.fill("a {b/c} {d/e}", {"b/c": "1"}) is None
    assert reproduction_page.fill("a {b/c}", {"b/c": "1"}) == "a 1"
    text = reproduction_page.write(store, tmp_path).read_text()
    assert "{" not in text
    assert "0 of 150 cells of the table of continuous data" in text
    keep(store, "Alog", "bayesring", RMSE=0.68, MAE=0.33)
    keep(store, "USHCN", "bayesring", RMSE=0.427, MAE=0.33)
    assert "RMSE 0.427 where the paper has 0.587, and on Alog 0.680 where it has 0.98" in (
        reproduction_page.write(store, tmp_path).read_text()
    )


def every_number():
    """Keys that the page can ever know."""
    keys = {f"paper/{data}/{row}/{score}" for data, score, row in published.FIGURES}
    for name, task in tasks.TASKS.items():
        keys |= {f"{name}/{m}/{score}" for m in contenders.METHODS for score in task.scores}
    parts = ("up_to_70_missing", "at_90_missing", "all")
    keys |= {f"rank/{s} from {i}/{part}" for s, i in rank_study.STARTS for part in parts}
    keys.add("rank/truth/mean")
    return keys | {f"scale/{n}/{size}" for n, m in scale.METHODS.items() for size in m.sizes}


def test_every_number_in_the_text_can_be_computed():
    text = reproduction_page.TEXT.read_text()
    used = set(reproduction_page.NUMBER.findall(text))
    assert len(used) > 40
    assert used <= every_number()


def test_scores_are_those_of_the_predictions():
    train, test = small_image().split(3)
    truth = scene()
    assert tasks.SCORES["SSIM"](train, test, test.values) == pytest.approx(1.0)
    off = tasks.SCORES["PSNR"](train, test, test.values + 1.0)
    expected = 20 * np.log10(truth.max() / np.sqrt(len(test.values) / truth.size))
    assert off == pytest.approx(expected)


def test_a_cell_has_scores_and_intervals(small):
    found = accuracy.work("Indian Pines", "bayesring", 3, True, None, 1)
    assert found["rank"] == [[2, 2, 2]]
    assert 0 <= found["coverage"] <= 1
    assert {"PSNR", "SSIM", "seconds", "seed"} <= set(found)
    found = accuracy.work("Enron", "bayesring", 3, True, None, 1)
    assert len(found["bins"]) == 4
    assert 0.5 < found["AUC"] <= 1


def test_the_short_table_of_the_readme(store):
    bins = np.ones((4, 10)).tolist()
    keep(store, "Enron", "bayesring", folds=[0, 1], AUC=0.98, accuracy=0.95, bins=[bins, bins])
    keep(store, "Indian Pines", "bayesring", PSNR=33.0, SSIM=0.9, coverage=0.91)
    table = accuracy_tables.table(store)
    assert table.count("\n") == 8
    for words in ("PSNR / SSIM | 29.71 / 0.84 |", "2 of 5 folds", "cover 91.0%", "by chance"):
        assert words in table
    assert "| **33.00** / **0.900** § |" in accuracy_tables.short_table(store)


def test_figures_are_bold_only_where_they_are_best(store):
    keep(store, "Alog", "bayesring", RMSE=0.7, MAE=0.33, coverage=0.9, prediction_seconds=1.0)
    keep(store, "Alog", "SMURFF", RMSE=0.69, MAE=0.35)
    table = accuracy_tables.short_table(store)
    assert "| 0.700 / **0.330** |" in table
    assert "§" not in table


def test_the_rank_of_the_tensor_train_is_chosen_on_training_data(monkeypatch):
    fitted = []

    class Train:
        def __init__(self, rank, **_):
            self.rank, self.max_iter, self.losses_ = rank, 9, [3.0, 2.0]

        def fit(self, X, y, shape):
            fitted.append((self.rank, len(y)))
            return self

        def predict(self, X):
            return np.full(len(X), abs(self.rank - 5.0))

    monkeypatch.setattr(contenders.baselines, "TensorTrainWOPT", Train)
    data = Observations(np.argwhere(np.ones((5, 4, 5))), np.zeros(100), (5, 4, 5))
    found = contenders.tensor_train(Job(data, tasks.TASKS["Alog"], 0, 1, False))
    assert fitted == [(3, 90), (5, 90), (10, 90), (5, 100)]
    assert found.described == {
        "rank": 5,
        "validation": {"3": 2.0, "5": 0.0, "10": 5.0},
        "budget": {"start": 5, "steps": 2, "limit": 9},
    }


@pytest.mark.ci
def test_smurff_predicts_the_same_cells(data_folder):
    pytest.importorskip("smurff")
    train, test = load_enron().split(0)
    job = Job(train, tasks.TASKS["Enron"], 0, 1, False, PeerChoice(4, 10.0))
    predicted = contenders.smurff(job).predict(test.coords)
    assert tasks.SCORES["AUC"](train, test, predicted) > 0.8


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.ci
def test_quick_takes_every_path(small, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run("all", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    out = tmp_path / "quick"
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    for name in ("rank", "scale"):
        assert {f"images/{name}.png", f"images/{name}.svg", f"tables/{name}.md"} <= names
    for name in ("rank", "scale", "continuous", "binary"):
        assert f"tables/{name}.json" in names
    assert {"accuracy.csv", "rank.csv", "scale.csv"} <= names
    rows = (out / "accuracy.csv").read_text()
    assert "\nIndian Pines,bayesring,0," in rows
    assert "\nEnron,Gibbs-paper,0," in rows
    text = (out / "reproduction.md").read_text()
    assert "A smoke test: these numbers are meaningless" in text
    json.loads((out / "tables" / "binary.json").read_text())
    before = {path: os.stat(path).st_mtime_ns for path in out.glob("*.csv")}
    again = run("all", "--quick", "--out", tmp_path, "--quiet")
    assert again.exit_code == 0, again.output
    assert before == {path: os.stat(path).st_mtime_ns for path in out.glob("*.csv")}


def test_only_computes_what_is_named(small, tmp_path):
    result = run("binary", "--quick", "--only", "Enron/mean", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "1 cells computed" in result.output
    _, *rows = (tmp_path / "quick" / "accuracy.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in rows] == [["Enron", "mean", "0"]]
    refused = run("binary", "--only", "Enron/nothing", "--out", tmp_path)
    assert isinstance(refused.exception, ValueError)
    assert "--only Enron/nothing names none of the data sets" in str(refused.exception)


def test_a_cell_that_fails_is_named_at_the_end(small, tmp_path, monkeypatch):
    def fail():
        raise FileNotFoundError("the file is not here: get it.")

    broken = tasks.TASKS["Enron"]._replace(load=fail)
    monkeypatch.setitem(accuracy.TASKS, "Enron", broken)
    result = run("binary", "--quick", "--only", "mean", "--out", tmp_path)
    assert "1 cells could not be computed; the first, Enron/mean/0: the file is not here" in str(
        result.exception
    )


def test_unknown_words_are_refused(tmp_path):
    assert run("everything").exit_code == 2
    assert "--jobs must be 1 or more" in str(run("rank", "--jobs", 0, "--out", tmp_path).exception)


def test_smurff_says_when_it_is_not_there(store, monkeypatch, small):
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    cells = accuracy.make_cells(["Enron"], ["SMURFF"], [0], quick=True)
    outcome = run_cells(cells, store, show=False)
    assert outcome.unavailable == ["SMURFF is not installed: pip install --group paper."]
    assert cells[0].load(store) is None


def test_scale_is_measured_and_shown(store, tmp_path):
    found = scale.work("Gibbs", 10, 1)
    assert found["observations"] == 10
    assert 0 < found["least"] <= found["median"]
    cells = {(c.method, c.data): c for c in scale.make_cells()}
    about = {"versions": {}, "machine": ""}
    for size, seconds in ((10, 0.001), (100, 0.5), (316, 3.0)):
        result = {"size": size, "observations": size**4 // 1000, "least": seconds, "seconds": 1.0}
        cells["Gibbs", f"I{size}"].keep(store, result | about, SOURCE)
    cells["BTR-VI", "I100"].keep(store, {"cannot": "too large."} | about, SOURCE)
    (tmp_path / "tables").mkdir()
    scale.write(store, tmp_path)
    table = (tmp_path / "tables" / "scale.md").read_text()
    assert "| 316 | 9,971,221 | - | 3 s |" in table
    assert "| 100 | 100,000 | cannot run | 500 ms |" in table
    assert (tmp_path / "images" / "scale.svg").read_text().startswith("<?xml")


def test_the_sizes_reach_ten_million_observations():
    assert scale.SIZES == (10, 30, 50, 70, 100)
    assert round(0.001 * max(scale.FURTHER) ** 4, -6) == 10**7
