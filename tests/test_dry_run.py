"""`complete --dry-run`: how the input is understood, and likely trouble."""

from __future__ import annotations

import json

import pytest

from tests.shell import KEYS, run, small_table


@pytest.fixture(scope="module")
def text():
    return small_table()


@pytest.fixture
def source(text, tmp_path):
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


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
