"""The command line: files in, files out, one sentence when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring import load
from bayesring.command import cli
from tests.shell import KEYS, QUICK, call_main, rows_of, run, small_table


@pytest.fixture(scope="module")
def text():
    return small_table()


@pytest.fixture
def source(text, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


def test_complete_fills_a_csv(source, text):
    target = source.with_name("out.csv")
    result = run("complete", source, *KEYS, "-o", target, *QUICK)
    assert result.exit_code == 0, result.output
    given, found = rows_of(text), rows_of(target.read_text())
    assert list(found[0]) == ["place", "day", "number", "t", "mean", "std", "lower", "upper"]
    assert len(found) == len(given)
    for before, after in zip(given, found, strict=True):
        assert {name: after[name] for name in ("place", "day", "number")} == {
            name: before[name] for name in ("place", "day", "number")
        }
        if before["t"]:
            assert float(after["mean"]) == float(before["t"])
            assert float(after["std"]) == 0.0
        else:
            assert after["t"] == ""
            assert float(after["lower"]) < float(after["mean"]) < float(after["upper"])


def test_a_seed_gives_the_same_file_byte_for_byte_on_any_threads(source, tmp_path):
    names = ["one.csv", "two.csv", "other.csv"]
    for name, seed, jobs in zip(names, (5, 5, 6), (1, 2, 1), strict=True):
        options = ["--seed", seed, "--jobs", jobs, "--chains", 2, *QUICK[:6], "--quiet"]
        run("complete", source, *KEYS, "-o", tmp_path / name, *options)
    one, two, other = ((tmp_path / name).read_bytes() for name in names)
    assert one == two
    assert one != other


def test_the_order_of_rows_does_not_change_a_row(source, text, tmp_path):
    header, *rows = text.splitlines()
    (tmp_path / "turned.csv").write_text("\n".join([header, *reversed(rows)]) + "\n")
    for name in ("in.csv", "turned.csv"):
        run("complete", tmp_path / name, *KEYS, "-o", tmp_path / f"out-{name}", *QUICK)
    first = (tmp_path / "out-in.csv").read_text().splitlines()
    second = (tmp_path / "out-turned.csv").read_text().splitlines()
    assert first[1:] == second[:0:-1]


def test_standard_streams(text, source):
    result = run("complete", "-", *KEYS, "-o", "-", *QUICK, input=text)
    assert result.exit_code == 0, result.output
    target = source.with_name("out.csv")
    run("complete", source, *KEYS, "-o", target, *QUICK)
    assert result.stdout == target.read_text()


def test_fit_then_predict(source, tmp_path):
    model, target = tmp_path / "model.ring", tmp_path / "out.csv"
    result = run("fit", source, *KEYS, "-o", model, *QUICK)
    assert result.exit_code == 0, result.output
    (tmp_path / "ask.csv").write_text("number,place,day\n01,Bonn,2020-02-03\n10,Aix,2020-02-01\n")
    result = run("predict", model, tmp_path / "ask.csv", "-o", target, "--level", "0.5")
    assert result.exit_code == 0, result.output
    found = rows_of(target.read_text())
    assert [row["place"] for row in found] == ["Bonn", "Aix"]
    assert [row["number"] for row in found] == ["01", "10"]
    ring = load(model)
    assert ring.labels_.levels[0].tolist() == ["Aix", "Bonn", "Cork", "Delft, NL"]
    np.testing.assert_allclose(
        [float(row["mean"]) for row in found], ring.predict([[1, 2, 0], [0, 0, 2]]), rtol=1e-9
    )


def test_unknown_labels_are_reported(source, tmp_path):
    run("fit", source, *KEYS, "-o", tmp_path / "model.ring", *QUICK)
    (tmp_path / "ask.csv").write_text("place,day,number\nRome,2020-02-03,01\n")
    out = tmp_path / "out.csv"
    result = run("predict", tmp_path / "model.ring", tmp_path / "ask.csv", "-o", out, "--json")
    summary = json.loads(result.stdout)
    assert summary["predicted"] == 1
    assert "1 of 'place' (such as Rome)" in summary["warnings"][0]


def test_predict_takes_coordinates_for_a_model_of_an_array(tmp_path):
    array = np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60.0)).reshape(3, 4, 5)
    np.save(tmp_path / "in.npy", array)
    model = tmp_path / "model.ring"
    assert run("fit", tmp_path / "in.npy", "-o", model, *QUICK).exit_code == 0
    np.save(tmp_path / "ask.npy", np.array([[0, 0, 0], [2, 3, 4]]))
    result = run("predict", model, tmp_path / "ask.npy", "-o", tmp_path / "out.npz")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_array_equal(found["mean"], load(model).predict([[0, 0, 0], [2, 3, 4]]))


def test_arrays_are_completed(tmp_path):
    array = np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60.0)).reshape(3, 4, 5)
    np.save(tmp_path / "in.npy", array)
    arguments = ["complete", tmp_path / "in.npy", "-o", tmp_path / "out.npy", *QUICK[:-1]]
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert "A .npy file holds the mean only" in json.loads(result.stdout)["notes"][-1]
    found = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(found[~np.isnan(array)], array[~np.isnan(array)])
    assert np.isfinite(found).all()


def test_the_summary_says_what_was_done(source, tmp_path):
    arguments = ["complete", source, "-o", tmp_path / "out.parquet", "--model", tmp_path / "m.ring"]
    result = run(*arguments, *QUICK[:-1], "--json")
    summary = json.loads(result.stdout)
    assert summary["modes"] == {"place": 4, "day": 5, "number": 3}
    assert summary["rank"] == [[2, 2, 2]]
    assert summary["likelihood"] == "gaussian"
    assert summary["seed"] == 0
    assert summary["observed"] + summary["filled"] == 60
    recognised, treated = summary["notes"]
    assert recognised == "Key and value columns were recognised by their types, not named."
    assert "treated with normal noise (--likelihood student-t" in treated
    assert any("draws" in each for each in summary["warnings"])
    assert load(tmp_path / "m.ring").n_observations_ == summary["observed"]
    shown = run(*arguments, *QUICK[:-1]).stdout
    for word in ("filled", "2x2x2", "gaussian", "recognised by their types", "warning: "):
        assert word in shown


def test_binary_values_are_recognised_and_it_is_said(tmp_path, text):
    header, *rows = text.splitlines()
    lines = [
        row if row.endswith(",") else f"{row.rpartition(',')[0]},{i % 2}"
        for i, row in enumerate(rows)
    ]
    (tmp_path / "in.csv").write_text("\n".join([header, *lines]) + "\n")
    arguments = ["complete", tmp_path / "in.csv", *KEYS, "-o", tmp_path / "out.csv", *QUICK[:-1]]
    result = run(*arguments)
    assert "0 or 1: treated as binary" in " ".join(result.stdout.split())
    found = rows_of((tmp_path / "out.csv").read_text())
    assert all(0 <= float(row["lower"]) <= float(row["upper"]) <= 1 for row in found)
    as_numbers = run(*arguments, "--likelihood", "gaussian", "--json")
    assert json.loads(as_numbers.stdout)["likelihood"] == "gaussian"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["complete", "{in}", *KEYS], "error: an output file is required: name it with -o."),
        (["complete", "absent.csv", "-o", "{out}"], "error: absent.csv does not exist."),
        (["complete", "{in}", "-o", "out.npy"], "error: out.npy cannot hold the result for"),
        (["complete", "{in}", "-o", "nowhere/out.csv"], "there is no folder nowhere."),
        (
            ["complete", "{in}", "-o", "out.xls"],
            "error: out.xls has an unknown file extension",
        ),
        (["complete", "{in}", "-o", "{out}", "--modes", "a,b"], "error: modes names 'a', which is"),
        (["complete", "{in}", "-o", "{out}", "--rank", "two"], "error: rank must be 'auto' or a"),
        (
            ["complete", "{in}", "-o", "{out}", "--rank", "1,2"],
            "error: rank has 2 numbers, but the",
        ),
        (
            ["complete", "{in}", "-o", "{out}", "--likelihood", "normal"],
            "error: likelihood must be",
        ),
        (["fit", "{in}"], "error: an output file is required: name it with -o."),
        (["predict", "{in}", "{in}", "-o", "{out}"], "is not a bayesring model, or is damaged"),
    ],
)
def test_errors_are_one_sentence(monkeypatch, capsys, source, arguments, message):
    target = source.with_name("out.csv")
    places = {"{in}": source, "{out}": target}
    assert call_main(monkeypatch, *(places.get(each, each) for each in arguments)) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert "Traceback" not in shown
    assert not target.exists()


def test_tracebacks_are_for_debugging(monkeypatch, capsys):
    assert call_main(monkeypatch, "complete", "absent.csv", "-o", "x.csv", "--debug") == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "error: absent.csv does not exist." in shown


def test_a_model_is_that_of_its_seed(source):
    """And intervals of a command are those of its level."""
    asked = source.with_name("ask.csv")
    asked.write_text("place,day,number\nBonn,2020-02-03,01\n")
    found = {}
    for seed, level in ((1, "0.5"), (1, "0.9"), (2, "0.9")):
        model, out = source.with_name("model.ring"), source.with_name("out.csv")
        assert run("fit", source, *KEYS, "-o", model, *QUICK, "--seed", seed).exit_code == 0
        assert load(model).seed_ == seed
        assert run("predict", model, asked, "-o", out, "--level", level, "-q").exit_code == 0
        (row,) = rows_of(out.read_text())
        found[seed, level] = {name: float(row[name]) for name in ("mean", "lower", "upper")}
    assert found[1, "0.5"]["mean"] == found[1, "0.9"]["mean"] != found[2, "0.9"]["mean"]
    assert found[1, "0.9"]["lower"] < found[1, "0.5"]["lower"]
    assert found[1, "0.5"]["upper"] < found[1, "0.9"]["upper"]


def test_a_real_process_with_pipes(text):
    code = "from bayesring.command.cli import main; main()"
    command = [sys.executable, "-c", code, "complete", "-", *KEYS, "-o", "-", *QUICK]
    done = subprocess.run(
        command, input=text.encode(), capture_output=True, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert done.stdout.decode() == run(*command[3:], input=text).stdout
    broken = subprocess.run(
        command, input=b"a,b\n1,2\n", capture_output=True, env=os.environ, check=False
    )
    assert broken.returncode == 2
    assert broken.stdout == b""
    assert broken.stderr.decode().startswith("error: modes names 'place', which is not a column")


def test_shells_can_complete_the_commands():
    environment = os.environ | {
        "_BAYESRING_COMPLETE": "complete_bash",
        "COMP_WORDS": "bayesring pre",
        "COMP_CWORD": "1",
    }
    code = "from bayesring.command.cli import app; app(prog_name='bayesring')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=False
    )
    assert done.stdout.decode().split() == ["predict"]


def test_help_lists_the_commands():
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    for command in ("complete", "fit", "predict", "report", "compare", "demo"):
        assert command in result.output


def test_formulas_are_made_safe(tmp_path):
    source, target, model = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "m.ring"
    keys = ["=1+1", "-5", "@x"]
    lines = [f"{a},{b},{'' if a == b else -1.5}" for a in keys for b in keys]
    source.write_text("\n".join(["a,b,t", *lines]) + "\n")
    named = ["--modes", "a,b", "--value", "t", "--rank", "1", *QUICK[2:]]
    for flags, mark in (([], ""), (["--safe-cells"], "'")):
        result = run("complete", source, "-o", target, "--model", model, *named, *flags)
        assert result.exit_code == 0, result.output
        found = rows_of(target.read_text())
        assert [row["a"] for row in found[::3]] == [f"{mark}=1+1", "-5", f"{mark}@x"]
        assert found[1]["t"] == "-1.5"
        result = run("predict", model, source, "-o", target, *flags)
        assert result.exit_code == 0, result.output
        assert rows_of(target.read_text())[0]["b"] == f"{mark}=1+1"
