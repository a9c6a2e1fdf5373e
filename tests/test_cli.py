"""The command line and the demo, on the real scene with short chains."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from bayesring import cli
from bayesring.experiments import demo
from bayesring.experiments.bench import run as bench_run
from bayesring.experiments.bench.timing import Row


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
    assert f"{numbers['psnr']:.2f} dB" in (tmp_path / "out" / "report.md").read_text()


def test_errors_are_one_sentence_and_exit_code_2(monkeypatch, tmp_path, capsys):
    def fail(seed):
        raise ValueError("something in row 3 is wrong.")

    monkeypatch.setattr(demo, "run_demo", fail)
    monkeypatch.setattr(sys, "argv", ["bayesring", "demo", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ending:
        cli.main()
    assert ending.value.code == 2
    captured = capsys.readouterr()
    assert "error: something in row 3 is wrong." in captured.err
    assert "Traceback" not in captured.err


def test_help_lists_the_commands():
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_bench_prints_rows_and_writes_json_and_readme(monkeypatch, tmp_path):
    rows = [Row("a scan", 2.0, "x", 3.0, note="so far"), Row("a peer", None, "x", note="absent")]
    monkeypatch.setattr(bench_run, "measure", lambda quick, large: iter(rows))
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{bench_run.BEGIN}\nold\n{bench_run.END}\nafter\n")
    arguments = ["bench", "--out", str(tmp_path / "b.json"), "--readme", str(readme)]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    for word in ("a scan", "missed", "so far", "not measured"):
        assert word in result.output
    assert json.loads((tmp_path / "b.json").read_text())["rows"][0]["met"] is False
    assert "| a scan | 2 x (missed) | at least 3 |" in readme.read_text()
    assert "old" not in readme.read_text()
    assert readme.read_text().endswith("after\n")


@pytest.mark.parametrize(("value", "code"), [(1.2, 0), (1.4, 1)])
def test_bench_check_fails_when_a_scan_got_slower(monkeypatch, tmp_path, value, code):
    committed = tmp_path / "bench.json"
    row = Row("a scan", 1.0, bench_run.scans.KEPT)
    committed.write_text(json.dumps(bench_run.to_json([row])))
    monkeypatch.setattr(bench_run.scans, "kept", lambda: iter([row._replace(value=value)]))
    result = CliRunner().invoke(cli.app, ["bench", "--check", str(committed)])
    assert result.exit_code == code, result.output
    assert ("1.40 times the committed figure" in result.output) == bool(code)
