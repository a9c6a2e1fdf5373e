"""Commands as people type them: versions, advice, errors, what may be replaced, what is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesring
from bayesring import TensorRing, load
from bayesring.command import cli, options
from bayesring.command.outputs import check_replaced
from bayesring.command.screen import _text, in_shell
from bayesring.command.workflows import name_of_kind
from bayesring.data.files import check_output
from bayesring.infer import selfcheck
from bayesring.likelihoods import Gaussian, NegativeBinomial, StudentT

QUICK = ["--rank", "1", "--warmup", "2", "--draws", "2", "--chains", "1"]
ALL = ["complete", "fit", "predict", "forecast", "check", "compare", "report", "info", "demo"]
NAMED = ["--modes", "site,day,code", "--value", "t"]


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(3)
    rows = ["site,day,code,t"]
    rows += [
        f"{site},2020-01-{day:02},{code:03},{'' if rng.random() < 0.2 else f'{rng.normal():.3f}'}"
        for site in "ABC"
        for day in range(1, 8)
        for code in (1, 7, 10)
    ]
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    """A table, and a model of it with an ordered mode."""
    found = tmp_path_factory.mktemp("commands")
    (found / "in.csv").write_text(text)
    result = run("fit", found / "in.csv", "-o", found / "m.ring", *NAMED, *QUICK, "--order", "day")
    assert result.exit_code == 0, result.output
    return found


def run(*arguments, **more):
    return CliRunner().invoke(cli.app, [str(each) for each in arguments], **more)


def call(monkeypatch, *arguments):
    """Run the entry point itself; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["bayesring", *map(str, arguments)])
    monkeypatch.setattr(options, "show_tracebacks", False)
    with pytest.raises(SystemExit) as ending:
        cli.main()
    return ending.value.code


def test_the_version_and_the_exit_codes():
    assert run("--version").stdout == f"bayesring {bayesring.__version__}\n"
    shown = " ".join(run("--help").stdout.split())
    assert "Exit codes: 0 done; 1 check says not to believe" in shown
    for name in [
        "complete",
        "fit",
        "predict",
        "forecast",
        "check",
        "compare",
        "report",
        "info",
        "demo",
    ]:
        assert f" {name} " in shown
        assert run(name, "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["info"], ["info", "MODEL"], ["complete", "--help"]]
)
def test_quick_commands_load_nothing_slow(folder, arguments):
    words = [str(folder / "m.ring") if each == "MODEL" else each for each in arguments]
    code = (
        f"import sys\nsys.argv = ['bayesring', *{words!r}]\n"
        "from bayesring.command.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ending:\n    assert not ending.code\n"
        "slow = {'numba', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'xarray', 'narwhals'}\n"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_info_tells_what_a_model_holds(folder):
    found = json.loads(run("info", folder / "m.ring", "--json").stdout)
    ring = load(folder / "m.ring")
    assert found["modes"] == {"site": 3, "day": 7, "code": 3}
    assert found["observed"] == ring.n_observations_
    assert found["draws"] == [2]
    assert found["likelihood"] == "Gaussian"
    assert found["seed"] == 0
    assert found["value"] == "t"
    assert found["bytes"] == (folder / "m.ring").stat().st_size
    assert "site (3) x day (7) x code (3)" in run("info", folder / "m.ring").stdout
    ours = json.loads(run("info", "--json").stdout)["versions"]
    assert ours["bayesring"] == bayesring.__version__
    assert ours["numpy"] == np.__version__


def test_info_of_something_else(monkeypatch, capsys, folder):
    assert call(monkeypatch, "info", folder / "in.csv") == 2
    assert "is not a bayesring model, or is damaged" in capsys.readouterr().err
    with zipfile.ZipFile(folder / "odd.ring", "w") as archive:
        archive.writestr("description.json", '{"format": "bayesring model", "version": 3}')
    assert call(monkeypatch, "info", folder / "odd.ring") == 2
    assert "is not a bayesring model, or is damaged: 'shape'" in capsys.readouterr().err
    hostile = {"format": "bayesring model", "version": 3, "shape": [2, 2], "n_observations": 1}
    hostile |= {"labels": {"names": ["\x1b[31m[red]", "b"], "value": "\x07"}}
    with zipfile.ZipFile(folder / "odd.ring", "w") as archive:
        archive.writestr("description.json", json.dumps(hostile))
    shown = run("info", folder / "odd.ring").stdout
    assert "\\x1b[31m[red]" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("use draws=400 and warmup=300.", "use --draws 400 and --warmup 300."),
        ("(likelihood='gaussian' takes", "(--likelihood gaussian takes"),
        ("fit with order=['day', 'hour'].", "fit with --order day,hour."),
        ("or order=None.", "or --order none."),
        ("a smaller rank= would", "a smaller --rank would"),
        ("mask='sea level' leaves", "mask='sea level' leaves".replace("mask=", "--mask ")),
        ("a larger max_memory= or", "a larger --max-memory or"),
        ("random_state=3", "--seed 3"),
        ("likelihood=Gaussian() takes", "likelihood=Gaussian() takes"),
        ("rank=(2, 3, 4)", "--rank 2,3,4"),
        ("modes and value are required: name", "--modes and --value are required: name"),
        ("a file /tmp/draws=4/x stays", "a file /tmp/draws=4/x stays"),
    ],
)
def test_advice_is_in_the_syntax_of_the_shell(said, told):
    assert in_shell(said) == told


def test_warnings_and_errors_speak_shell(monkeypatch, capsys, folder, text):
    result = run("complete", folder / "in.csv", "-o", folder / "a.csv", *NAMED, *QUICK, "--json")
    told = " ".join(json.loads(result.stdout)["warnings"])
    assert "--draws" in told
    assert "draws=" not in told
    (folder / "full.csv").write_text("a,b,t\nx,1,0.5\ny,2,0.25\n")
    words = ["complete", folder / "full.csv", "-o", folder / "b.csv", "--modes", "a,b"]
    assert call(monkeypatch, *words) == 2
    assert "--fill all fills the other 2 cells" in capsys.readouterr().err


def test_errors_are_json_if_asked(monkeypatch, capsys, folder):
    for arguments, message in (
        (["complete", "absent.csv", "-o", "x.csv"], "absent.csv does not exist."),
        (["complete", folder / "in.csv", "-o", "-"], "would both write to standard output"),
        (["compare", folder / "m.ring"], "Missing option '--on'"),
        (["complete", "--nonsense"], "No such option: --nonsense"),
        (["predict", folder / "m.ring"], "Missing argument"),
    ):
        assert call(monkeypatch, *arguments, "--json") == 2
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert message in found["error"]
        assert found["exit_code"] == 2
        assert err == ""
        if "-" not in arguments:  # that is allowed without --json
            assert call(monkeypatch, *arguments) == 2
            assert capsys.readouterr().err.count("\n") == 1


def test_forecast(folder, monkeypatch, capsys):
    out = folder / "ahead.csv"
    assert run("forecast", folder / "m.ring", "2", "-o", out, "-q").exit_code == 0
    found = pd.read_csv(out, dtype={"code": str})
    assert len(found) == 2 * 9
    assert sorted(set(found["day"])) == ["2020-01-08", "2020-01-09"]
    assert sorted(set(found["code"])) == ["001", "007", "010"]
    expected = load(folder / "m.ring").forecast(2).to_pandas()
    np.testing.assert_allclose(found["upper"], expected["upper"], rtol=1e-12)
    (folder / "cells.csv").write_text("code,site\n010,B\n001,C\n")
    some = ["forecast", folder / "m.ring", "2", "-o", out, "--cells", folder / "cells.csv"]
    assert run(*some, "--level", "0.5", "-q").exit_code == 0
    part = pd.read_csv(out, dtype={"code": str})
    assert part["site"].tolist() == ["B", "B", "C", "C"]
    assert part["day"].tolist() == ["2020-01-08", "2020-01-09"] * 2
    both = part.merge(found, on=["site", "day", "code"])
    np.testing.assert_allclose(both["mean_x"], both["mean_y"], rtol=1e-12)
    assert (both["upper_x"] < both["upper_y"]).all()
    for words, message in (
        (["0"], "steps must be an integer of at least 1"),
        (["1", "--mode", "site"], "such as A, are text, which has no order; fit with numbers"),
        (["1", "--mode", "x"], "mode names the mode 'x'"),
    ):
        assert call(monkeypatch, "forecast", folder / "m.ring", *words, "-o", out) == 2
        assert message in capsys.readouterr().err
    assert call(monkeypatch, "forecast", folder / "m.ring", "1", "-o", folder / "x.npy") == 2
    assert "cannot hold the forecast of" in capsys.readouterr().err


def test_check_has_an_exit_code(folder, monkeypatch, capsys):
    ranks = np.linspace(0, 1, 20 * 50).reshape(50, 20).T
    for scatter, code in ((1.0, 0), (9.0, 1)):
        monkeypatch.setattr(
            selfcheck, "run", lambda *_, s=scatter: selfcheck.judged(ranks, s), raising=True
        )
        assert call(monkeypatch, "check", folder / "m.ring", "--json") == code
        found = json.loads(capsys.readouterr().out)
        assert found["believable"] == (code == 0)
        assert found["results"]


def test_a_model_of_the_shell_takes_what_pandas_reads(folder):
    ring = load(folder / "m.ring")
    assert ring.labels_.levels[1].dtype.kind == "M"
    assert ring.labels_.levels[2].dtype.kind == "U"
    read = pd.read_csv(folder / "in.csv")
    assert read["code"].dtype == int
    result = run("predict", folder / "m.ring", folder / "in.csv", "-o", folder / "p.csv")
    assert result.exit_code == 0, result.output
    expected = pd.read_csv(folder / "p.csv")["mean"]
    np.testing.assert_allclose(ring.predict(read), expected, rtol=1e-12)
    parsed = pd.read_csv(folder / "in.csv", parse_dates=["day"])
    np.testing.assert_array_equal(ring.predict(parsed), ring.predict(read))
    np.testing.assert_array_equal(
        ring.predict(pd.read_csv(folder / "in.csv", dtype=str)), ring.predict(read)
    )


OWN = {
    "x.csv": b"name,phone\nAnn,12\n",
    "x.csv.gz": b"\x1f\x8b broken",
    "x.parquet": b"PAR1",
    "x.npy": b"numbers",
    "x.npz": b"PK",
    "x.nc": b"\x89HDF",
    "x.tsv": b"a\tb\n",
}


@pytest.mark.parametrize("name", OWN)
def test_the_files_of_others_are_not_replaced(tmp_path, name):
    (tmp_path / name).write_bytes(OWN[name])
    with pytest.raises(FileExistsError, match="exists, and does not look like something bayesring"):
        check_replaced(tmp_path / name, "result", False)
    check_replaced(tmp_path / name, "result", True)
    (tmp_path / name).write_bytes(b"")
    check_replaced(tmp_path / name, "result", False)


def test_what_commands_wrote_they_replace(folder, text, monkeypatch, capsys):
    for ending in (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"):
        words = ["complete", folder / "in.csv", "-o", folder / f"own{ending}", *NAMED, *QUICK, "-q"]
        for _ in range(2):
            assert run(*words, "--model", folder / "own.ring").exit_code == 0
    array = np.where(np.arange(24) % 5 == 0, np.nan, np.arange(24.0)).reshape(2, 3, 4)
    np.save(folder / "in.npy", array)
    for _ in range(2):
        assert run("complete", folder / "in.npy", "-o", folder / "own.npz", *QUICK).exit_code == 0
    words = ["complete", folder / "in.npy", "-o", folder / "own.npy", *QUICK]
    assert call(monkeypatch, *words, "-q") == 0
    assert call(monkeypatch, *words, "-q") == 2  # an array has no name that would tell
    assert "--force replaces it" in capsys.readouterr().err
    assert call(monkeypatch, *words, "-q", "--force") == 0
    for _ in range(2):
        assert run("report", folder / "m.ring", "-o", folder / "own.html", "-q").exit_code == 0
    (folder / "own.html").write_text("<html>my page</html>")
    assert call(monkeypatch, "report", folder / "m.ring", "-o", folder / "own.html") == 2
    assert (folder / "own.html").read_text() == "<html>my page</html>"
    (folder / "notes.ring").write_text("not a model")
    words = ["fit", folder / "in.csv", "-o", folder / "notes.ring", *NAMED, *QUICK, "-q"]
    assert call(monkeypatch, *words) == 2
    assert (folder / "notes.ring").read_text() == "not a model"
    assert call(monkeypatch, *words, "--force") == 0
    assert load(folder / "notes.ring").seed_ == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_the_input_is_never_replaced(folder, text, monkeypatch, capsys, force):
    os.symlink("in.csv", folder / f"link{len(force)}.csv")
    for target in (folder / "in.csv", folder / f"link{len(force)}.csv"):
        for words in (
            ["complete", folder / "in.csv", *NAMED],
            ["predict", folder / "m.ring", folder / "in.csv"],
            ["forecast", folder / "m.ring", "1", "--cells", folder / "in.csv"],
        ):
            assert call(monkeypatch, *words, "-o", target, *force) == 2
            assert "needs a file of its own" in capsys.readouterr().err
    assert (folder / "in.csv").read_text() == text


def test_the_demo_does_not_replace_the_files_of_others(tmp_path, monkeypatch, capsys):
    (tmp_path / "report.md").write_text("mine")
    assert call(monkeypatch, "demo", "--out", tmp_path) == 2
    assert "--force replaces it" in capsys.readouterr().err
    (tmp_path / "climate.csv").write_text("mine")
    assert call(monkeypatch, "demo", "--table", tmp_path / "climate.csv") == 2
    assert (tmp_path / "climate.csv").read_text() == "mine"


def test_dialects_and_masks_of_the_shell(folder, text):
    odd = text.replace(",", ";").replace(".", ",").replace("A", "Å").encode("latin-1")
    (folder / "odd.csv").write_bytes(odd.replace(b";\n", b";-999\n"))
    said = ["--decimal", ",", "--encoding", "latin-1", "--na", "-999,weg"]
    out = folder / "odd-out.csv"
    words = ["complete", folder / "odd.csv", "-o", out, *NAMED, *QUICK, "--json", *said]
    result = run(*words, "--inference", "gibbs")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["filled"] == text.count(",\n")
    found = pd.read_csv(out)
    assert set(found["site"]) == {"Å", "B", "C"}
    dry = run(*words[:2], *NAMED, *said, "--dry-run", "--json")
    assert json.loads(dry.stdout)["to_fill"] == text.count(",\n")
    known = [line for line in text.splitlines() if not line.startswith("A,2020-01-01,001")]
    hole = "\n".join([*known, "D,2020-01-01,001,", "D,2020-01-02,001,"]) + "\n"
    (folder / "hole.csv").write_text(hole)
    result = run("complete", folder / "hole.csv", "-o", out, *NAMED, *QUICK, "--mask", "day")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(out)
    assert found.loc[found["site"] == "D", "mean"].isna().all()
    assert found.loc[found["site"] != "D", "mean"].notna().all()


def test_spreadsheets_in_and_out(folder, text, tmp_path):
    table = pd.read_csv(folder / "in.csv", dtype={"code": str})
    table.to_excel(tmp_path / "in.xlsx", index=False)
    out, model = tmp_path / "out.xlsx", tmp_path / "m.ring"
    given = ["complete", tmp_path / "in.xlsx", "-o", out, *NAMED, *QUICK, "--model", model]
    for _ in range(2):  # a result of the first run is replaced by the second
        result = run(*given, "--order", "day")
        assert result.exit_code == 0, result.exception
    found = pd.read_excel(out, dtype={"code": str})
    assert list(found)[-5:] == ["t", "mean", "std", "lower", "upper"]
    np.testing.assert_array_equal(found["mean"].notna(), True)
    assert found["code"].tolist() == table["code"].tolist()
    assert run("predict", model, tmp_path / "in.xlsx", "-o", out).exit_code == 0
    assert run("forecast", model, 1, "-o", out, "--mode", "day").exit_code == 0
    assert set(pd.read_excel(out)["day"].astype(str)) == {"2020-01-08"}


def test_online_em_completes(folder):
    arguments = ["complete", folder / "in.csv", "-o", folder / "em.csv", *NAMED]
    result = run(
        *arguments, "--model", folder / "em.ring", *QUICK, "--inference", "online-em", "-q"
    )
    assert result.exit_code == 0, result.output
    assert load(folder / "em.ring").inference == "online-em"


def test_traps_are_told_by_the_shell_too(folder, text):
    (folder / "trap.csv").write_text(text.replace(",\n", ",-999\n", 1))
    result = run("complete", folder / "trap.csv", "-o", folder / "t.csv", *NAMED, *QUICK, "--json")
    told = json.loads(result.stdout)["warnings"]
    assert any("1 value is -999, far from all" in each for each in told)
    dry = run("complete", folder / "trap.csv", *NAMED, "--dry-run", "--json")
    assert any("1 value is -999" in each for each in json.loads(dry.stdout)["troubles"])


def test_partial_fit_says_what_to_set():
    ring = TensorRing()
    assert not hasattr(ring, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit needs inference='online-em', but infere"):
        ring.partial_fit([[0, 1]], [1.0])
    assert TensorRing(inference="online-em").partial_fit.__name__ == "partial_fit"


@pytest.mark.parametrize(
    ("source", "target", "refused"),
    [
        (".", "out.csv", True),
        (".", "sub/out.csv", True),
        ("*.csv", "out.csv", True),
        ("*.csv", "sub/out.csv", False),
        ("*.csv", "out.parquet", False),
        ("**/*.csv", "sub/out.csv", True),
        ("in*.csv", "out.csv", False),
        ("in.csv", "out [1].csv", False),
        ("in.csv", "out*.csv", True),
    ],
)
def test_an_output_is_never_part_of_the_input(tmp_path, monkeypatch, source, target, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "in.csv").write_text("a,b,t\nx,1,1\n")
    if refused:
        with pytest.raises(ValueError, match=r"would be part of the input|a pattern names no file"):
            check_output(source, target)
    else:
        check_output(source, target)


@pytest.mark.parametrize("command", ["complete", "predict", "forecast"])
def test_levels_are_looked_at_first(folder, monkeypatch, capsys, command):
    words = {
        "complete": [folder / "in.csv"],
        "predict": [folder / "m.ring", folder / "in.csv"],
        "forecast": [folder / "m.ring", "1"],
    }[command]
    out = folder / "level.csv"
    assert call(monkeypatch, command, *words, "-o", out, "--level", "90") == 2
    assert "level must lie strictly between 0 and 1, got 90.0" in capsys.readouterr().err
    assert not out.exists()


def test_a_summary_speaks_as_people_do():
    """Names that can be typed, yes and no, and the option that makes a code a missing value."""
    assert [name_of_kind(each()) for each in (NegativeBinomial, StudentT, Gaussian)] == [
        "negative-binomial",
        "student-t",
        "gaussian",
    ]
    assert _text("believable", True) == "yes"
    for code in ("-999", "1e+20"):
        for why in ("far from all others", "while all others are zero or more"):
            said = f"2 values are {code}, {why}: if that stands for a missing value, make it one."
            assert in_shell(said).endswith(f"a missing value, say so with --na {code}.")
