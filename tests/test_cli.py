"""The command line and the demo, on the real scene with short chains."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from bayesring import cli
from bayesring.experiments import demo


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
    assert "What it says" in (tmp_path / "out" / "report.html").read_text()
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
