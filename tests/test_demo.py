"""The demo: its pictures, numbers and report, and the table that it writes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from bayesring.command import cli, demo
from tests.shell import call_main, run


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
