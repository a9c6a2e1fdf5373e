"""The command line: files in, files out, one sentence when something is wrong; the demo."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from bayesring import load
from bayesring.command import cli, demo, options
from bayesring.infer import chains

QUICK = ["--rank", "2", "--warmup", "8", "--draws", "6", "--chains", "1", "--quiet"]
KEYS = ["--modes", "place,day,number", "--value", "t"]


@pytest.fixture(scope="module")
def text():
    """A CSV text of 4 x 5 x 3 cells, some without a value."""
    rng = np.random.default_rng(1)
    rows = ["place,day,number,t"]
    for place in ("Aix", "Bonn", "Cork", '"Delft, NL"'):
        for day in range(1, 6):
            for number in ("01", "02", "10"):
                value = "" if rng.random() < 0.3 else f"{rng.normal(10, 2):.3f}"
                rows.append(f"{place},2020-02-{day:02},{number},{value}")
    return "\n".join(rows) + "\n"


@pytest.fixture
def source(text, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


def run(*arguments, **options):
    return CliRunner().invoke(cli.app, [str(each) for each in arguments], **options)


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content)))


def call_main(monkeypatch, *arguments):
    """Run the entry point itself; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["bayesring", *map(str, arguments)])
    monkeypatch.setattr(options, "show_tracebacks", False)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    return ending.value.code


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


def test_dry_run_shows_what_was_understood_and_writes_nothing(source):
    result = run("complete", source, *KEYS, "-o", source.with_name("out.csv"), "--dry-run")
    assert result.exit_code == 0, result.output
    for words in (
        "place (4) x day (5) x number (3)",
        "Aix, Bonn, Delft, NL",
        "gaussian",
        "density",
    ):
        assert words in result.stdout
    assert not source.with_name("out.csv").exists()


def test_dry_run_sees_likely_trouble(tmp_path):
    rows = [f"{i},{i % 3},2020,{i % 2},{'' if i == 5 else i / 7}" for i in range(12)]
    rows += ["3,0,2020,1,0.5"]
    (tmp_path / "in.csv").write_text("\n".join(["id,b,year,c,t", *rows[:12]]) + "\n")
    named = ["--modes", "id,b,year,c", "--value", "t"]
    result = run("complete", tmp_path / "in.csv", *named, "--dry-run", "--json")
    found = json.loads(result.stdout)
    assert found["modes"] == {"id": 12, "b": 3, "year": 1, "c": 2}
    assert found["labels"]["id"] == ["0", "1", "11"]
    assert found["to_fill"] == 1
    troubles = " ".join(found["troubles"])
    assert "Every row has a label of its own in 'id' (12)" in troubles
    assert "'year' has one label only" in troubles
    (tmp_path / "in.csv").write_text("\n".join(["id,b,year,c,t", *rows]) + "\n")
    found = json.loads(run("complete", tmp_path / "in.csv", "--dry-run", "--json").stdout)
    troubles = " ".join(found["troubles"])
    assert "1 of 12 labels of 'id' have no value at all" in troubles
    assert "Every row" not in troubles


def test_dry_run_without_gaps(tmp_path):
    rows = ["a,b,t", "x,1,0.5", "y,2,0.5", "x,1,0.5"]
    (tmp_path / "in.csv").write_text("\n".join(rows) + "\n")
    found = json.loads(run("complete", tmp_path / "in.csv", "--dry-run", "--json").stdout)
    troubles = " ".join(found["troubles"])
    for words in (
        "1 values repeat a cell",
        "two modes only",
        "All 3 values are 0.5",
        "nothing to fill",
        "'a' has 2 labels but only 1.5 values per label",
    ):
        assert words in troubles
    assert found["density"] == 0.5
    found = run("complete", tmp_path / "in.csv", "--dry-run", "--json", "--fill", "all")
    assert json.loads(found.stdout)["to_fill"] == 2


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


@pytest.fixture(scope="module")
def model(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "in.csv").write_text(text)
    run("fit", folder / "in.csv", *KEYS, "-o", folder / "model.ring", *QUICK)
    return folder / "model.ring"


COMMANDS = {
    "complete": ["complete", "{in}", *KEYS, "-o", "{bad}"],
    "complete with a model": ["complete", "{in}", *KEYS, "-o", "{out}", "--model", "{bad}"],
    "fit": ["fit", "{in}", *KEYS, "-o", "{bad}"],
    "fit to a stream": ["fit", "x.parquet", *KEYS, "--inference", "online-em", "-o", "{bad}"],
    "predict": ["predict", "{model}", "{in}", "-o", "{bad}"],
    "report": ["report", "{model}", "-o", "{bad}"],
    "demo": ["demo", "--table", "{bad}"],
}
BAD = {
    "folder.csv": "it is a folder, but a file is required.",
    "nowhere/x.csv": "there is no folder ",
    "in.csv/x.csv": "in.csv is not a folder.",
    "pipe.csv": "it is a pipe, but a file is required.",
    "loop.csv": "its symbolic links lead in a circle.",
    "/proc/x.csv": "no file can be created in the folder /proc.",
}


def forbid_work(monkeypatch):
    """Make anything that takes long fail, so that it is not done before the checks."""

    def work(*_, **__):
        raise AssertionError("work was done before the destination was looked at.")

    for name in ("read_data", "ParquetRows", "TensorRing"):
        monkeypatch.setattr(f"bayesring.command.workflows.{name}", work)
    for name in ("read_data", "load"):
        monkeypatch.setattr(f"bayesring.command.judged.{name}", work)
    for name in ("ushcn_table", "run_demo"):
        monkeypatch.setattr(f"bayesring.command.demo.{name}", work)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("bad", BAD)
def test_destinations_are_looked_at_before_any_work(
    monkeypatch, capsys, source, model, command, bad
):
    folder = source.parent
    (folder / "folder.csv").mkdir()
    (folder / "folder.csv" / "thesis.txt").write_text("ten years")
    os.mkfifo(folder / "pipe.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    before = sorted(folder.rglob("*"))
    forbid_work(monkeypatch)
    places = {"{in}": source, "{out}": folder / "out.csv", "{model}": model}
    arguments = [
        places.get(each, str(each).replace("{bad}", str(folder / bad)))
        for each in COMMANDS[command]
    ]
    assert call_main(monkeypatch, *arguments) == 2
    shown = capsys.readouterr().err
    assert BAD[bad] in shown
    assert shown.count("\n") == 1
    assert shown.startswith("error: ")
    assert sorted(folder.rglob("*")) == before
    assert (folder / "folder.csv" / "thesis.txt").read_text() == "ten years"


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("file", "file is not a folder."),
        ("file/sub", "file is not a folder."),
        ("/proc/x", "/proc."),
    ],
)
def test_the_demo_looks_at_its_folder_before_any_work(monkeypatch, capsys, tmp_path, out, message):
    forbid_work(monkeypatch)
    (tmp_path / "file").write_text("old")
    assert call_main(monkeypatch, "demo", "--out", tmp_path / out) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "old"


def test_the_demo_looks_at_each_of_its_files_before_any_work(monkeypatch, capsys, tmp_path):
    forbid_work(monkeypatch)
    (tmp_path / "report.md").mkdir()
    assert call_main(monkeypatch, "demo", "--out", tmp_path) == 2
    assert "report.md cannot be written: it is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["complete", "{in}", "-o", "{out}", "--model", "{in}"], "is that of the input."),
        (["complete", "{in}", "-o", "{out}", "--model", "{out}"], "is that of the output."),
        (["complete", "{in}", "-o", "{link}", "--model", "{out}"], "is that of the output."),
        (["fit", "{in}", "-o", "{in}"], "the model needs a file of its own, but"),
        (["predict", "{in}", "{in}", "-o", "{in}"], "is that of the model."),
        (["report", "{in}", "-o", "{in}"], "the report needs a file of its own, but"),
    ],
)
def test_a_model_has_a_file_of_its_own(monkeypatch, capsys, source, text, arguments, message):
    forbid_work(monkeypatch)
    link = source.with_name("link.csv")
    link.symlink_to("out.csv")
    places = {"{in}": source, "{out}": source.with_name("out.csv"), "{link}": link}
    assert call_main(monkeypatch, *(places.get(each, each) for each in arguments)) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert source.read_text() == text


def test_tracebacks_are_for_debugging(monkeypatch, capsys):
    assert call_main(monkeypatch, "complete", "absent.csv", "-o", "x.csv", "--debug") == 2
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "error: absent.csv does not exist." in shown


@pytest.fixture
def interrupted(monkeypatch):
    """Fits that are interrupted, as by Ctrl-C, after eleven scans; three of them are kept."""
    step = chains.Chain.step

    def end(self, *arguments):
        if self.scan == 11:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(chains.Chain, "step", end)


@pytest.mark.parametrize("command", ["complete", "fit"])
def test_an_interrupted_command_writes_only_if_asked(
    monkeypatch, capsys, source, interrupted, command
):
    target = source.with_name("out.csv" if command == "complete" else "out.ring")
    arguments = [command, source, *KEYS, "-o", target, *QUICK]
    assert call_main(monkeypatch, *arguments) == 130
    assert "interrupted; no result was written." in capsys.readouterr().err
    assert not target.exists()
    assert call_main(monkeypatch, *arguments[:-1], "--keep-partial", "--json") == 130
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"]
    assert any("its chains have 3 draws of the 6 asked for" in each for each in found["notes"])
    assert target.exists()


@pytest.mark.parametrize("command", ["complete", "fit"])
def test_commands_go_on_from_their_checkpoint(monkeypatch, capsys, source, interrupted, command):
    """With the scans that were done, and the bytes of a run that nobody disturbed."""
    folder = source.with_name("kept")
    names = ["one", "two"] if command == "fit" else ["one.csv", "two.csv"]
    first, second = (source.with_name(name) for name in names)
    arguments = [command, source, *KEYS, "-o", first, *QUICK]
    kept = ["--checkpoint", folder, "--checkpoint-every", "0"]
    assert call_main(monkeypatch, *arguments, *kept) == 130
    assert f"resume from {folder}" in " ".join(capsys.readouterr().err.split())
    monkeypatch.undo()
    scans, step = [], chains.Chain.step
    monkeypatch.setattr(
        chains.Chain, "step", lambda self, *rest: scans.append(self.scan) or step(self, *rest)
    )
    assert run(*arguments, *kept).exit_code == 0
    assert scans == [11, 12, 13]
    assert run(command, source, *KEYS, "-o", second, *QUICK).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


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


def test_the_climate_table(data_folder, tmp_path):
    result = run("demo", "--table", tmp_path / "climate.csv")
    assert "331,500 rows, of which 33,150 have a value" in " ".join(result.stdout.split())
    with (tmp_path / "climate.csv").open() as file:
        assert next(file) == "variable,place,month,value\n"
        assert next(file).startswith("CO2,30.475N 114.75W,1990-01-01,")


@pytest.fixture
def quick_demo(monkeypatch):
    """The demo with chains too short to be good, but every path taken."""
    run = demo.run_demo
    monkeypatch.setattr(
        demo,
        "run_demo",
        lambda seed: run(seed, warmup=30, draws=5, chains=2, rank=2, progress=False),
    )
    monkeypatch.setattr(demo, "N_CHECKED", 500)


def test_demo_leaves_pictures_numbers_and_a_report(quick_demo, tmp_path):
    result = CliRunner().invoke(cli.app, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    for word in ("PSNR", "SSIM", "rank", "2x2x2", "90 % interval"):
        assert word in result.output
    numbers = json.loads((tmp_path / "out" / "result.json").read_text())
    assert 20 < numbers["psnr"] < 40
    assert 0.5 < numbers["coverage"] <= 1
    for name in ("completion.png", "rank.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What it says</h2>" in page
    assert "row × column × band" in page
    assert f"{numbers['psnr']:.2f} dB" in (tmp_path / "out" / "report.md").read_text()


def test_errors_are_one_sentence_and_exit_code_2(monkeypatch, tmp_path, capsys):
    def fail(seed):
        raise ValueError("something in row 3 is wrong.")

    monkeypatch.setattr(demo, "run_demo", fail)
    assert call_main(monkeypatch, "demo", "--out", tmp_path) == 2
    captured = capsys.readouterr()
    assert "error: something in row 3 is wrong." in captured.err
    assert "Traceback" not in captured.err


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
