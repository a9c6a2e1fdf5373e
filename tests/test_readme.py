"""The README's examples run and do what the text says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesring import TensorRing
from bayesring.command import cli

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
(FIVE_LINES,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.ci
def test_the_five_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TensorRing.__init__.__kwdefaults__, "progress", False)
    cells = np.argwhere(np.ones((3, 4, 5), dtype=bool))
    table = pd.DataFrame(cells, columns=["variable", "place", "month"])
    table["value"] = np.where(np.arange(60) % 6 == 0, np.nan, np.sin(cells.sum(axis=1)))
    table.to_csv("climate.csv", index=False)
    assert len([line for line in FIVE_LINES.splitlines() if line]) == 5
    names: dict = {}
    exec(FIVE_LINES, names)
    completion = names["completion"]
    assert completion.mean["value"].notna().all()
    written = pd.read_csv("completed.csv")
    assert written.columns.tolist()[-4:] == ["mean", "std", "lower", "upper"]
    assert len(written) == len(table)
    methods = re.search(r"scikit-learn estimator: (.*?)\. ", TEXT, re.DOTALL)[1]
    for name in re.findall(r"`(\w+)`", methods):
        assert hasattr(completion.model, name), name


def test_the_commands_are_understood(data_folder, tmp_path, monkeypatch):
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
