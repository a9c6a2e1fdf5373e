"""The README's examples run and do what the text says."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from bayesring import TensorRing
from bayesring.command import cli

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
COMPLETE, COORDINATES, STREAM = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_with_a_table_runs():
    cells = np.argwhere(np.ones((3, 4, 5), dtype=bool))
    table = pd.DataFrame(cells, columns=["variable", "place", "month"])
    table["value"] = np.where(np.arange(60) % 6 == 0, np.nan, np.sin(cells.sum(axis=1)))
    names: dict = {"table": table}
    exec(COMPLETE, names)
    completion = names["completion"]
    assert completion.mean["value"].notna().all()
    assert completion.table.columns.tolist()[-4:] == ["mean", "std", "lower", "upper"]
    assert len(completion.model.suggest(10)) == 10


def test_the_example_with_coordinates_runs():
    names: dict = {}
    exec(COORDINATES, names)
    assert len(names["ring"].predict([[0, 0, 0]])) == 1
    error = names["filled"] - names["table"]
    assert np.sqrt(np.mean(error**2)) < 0.03
    assert np.all(names["low"] < names["high"])


def test_the_example_with_a_stream_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    columns = {"sensor": rng.integers(0, 9, 400), "day": rng.integers(0, 8, 400)}
    table = pd.DataFrame(columns | {"hour": rng.integers(0, 4, 400), "reading": rng.random(400)})
    (tmp_path / "readings").mkdir()
    table.to_parquet(tmp_path / "readings" / "part.parquet")
    later = table.assign(sensor=table["sensor"] + 1)
    names: dict = {"next_month": later, "TensorRing": partial(TensorRing, 2, epochs=2)}
    exec(STREAM, names)
    assert names["ring"].shape_ == (10, 8, 4)


def test_the_commands_for_your_own_data_are_understood(data_folder, tmp_path, monkeypatch):
    """The first as it stands, the second up to the fit."""
    monkeypatch.chdir(tmp_path)
    demo, complete = (
        shlex.split(line, comments=True)[1:]
        for line in TEXT.splitlines()
        if re.match(r"    bayesring (demo|complete) ", line)
    )
    result = CliRunner().invoke(cli.app, demo)
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(cli.app, [*complete, "--dry-run"])
    assert result.exit_code == 0, result.output
    assert "variable (17) x place (125) x month (156)" in result.output
    assert "trouble" not in result.output
