"""Parquet data sets of any length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bayesring.data.parquet import ParquetRows


def test_streams_for_trials_are_planted_rings(tmp_path):
    """The script that writes data sets of any length: rows, files and shape are as asked."""
    root = Path(__file__).parents[2]
    arguments = ["--rows", "5001", "--files", "3", "--shape", "20", "30", "10", "--noise", "0.1"]
    command = [sys.executable, "-m", "paper.planted_stream", str(tmp_path / "x"), *arguments]
    subprocess.run(command, capture_output=True, check=True, cwd=root)
    assert len(list((tmp_path / "x").iterdir())) == 3
    survey = ParquetRows(tmp_path / "x", ["i", "j", "k"], "value").survey()
    assert survey.n_rows == 5001
    assert survey.shape == (20, 30, 10)
    assert 0.3 < survey.variance < 3
