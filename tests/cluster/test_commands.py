"""Commands with --local-cluster and --scheduler: Parquet in, Parquet out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from dask import dataframe
from typer.testing import CliRunner

from bayesring import TensorRing, load
from bayesring.command.cli import app
from bayesring.command.clusters import _write
from tests.cluster.local import MODES, long_table, same_draws

pytestmark = pytest.mark.filterwarnings("ignore::bayesring.data.traps.DataWarning")
FAST = ["--rank", "2", "--warmup", "2", "--draws", "2", "--chains", "1", "--seed", "3", "-q"]
COLUMNS = ["--modes", ",".join(MODES), "--value", "y", "--likelihood", "gaussian"]


@pytest.fixture
def log(tmp_path, rng):
    frame = long_table(rng, 300)
    (tmp_path / "log").mkdir()
    frame.to_parquet(tmp_path / "log" / "a.parquet", row_group_size=100)
    return frame


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_complete_then_predict(client, log, tmp_path):
    """The cluster of the tests, by its address."""
    there = ["--scheduler", client.scheduler.address]
    ring = tmp_path / "m.ring"
    found = run(
        "complete",
        tmp_path / "log",
        "-o",
        tmp_path / "full",
        "--model",
        ring,
        *COLUMNS,
        *FAST,
        *there,
    )
    assert found.exit_code == 0, found.exception
    here = TensorRing(2, warmup=2, draws=2, chains=1, random_state=3, progress=False)
    here.fit(log, modes=MODES, value="y")
    filled = pd.read_parquet(tmp_path / "full")
    gaps = log["y"].isna().to_numpy()
    np.testing.assert_array_equal(filled["mean"][~gaps], log["y"][~gaps])
    np.testing.assert_array_equal(filled["mean"][gaps], here.predict_table(log[gaps])["mean"])
    medians = [*there, "--point", "median"]
    found = run("predict", ring, tmp_path / "log", "-o", tmp_path / "cells", *medians)
    assert found.exit_code == 0, found.exception
    expected = load(ring).predict_table(log, point="median")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "cells")[["median", "upper"]], expected[["median", "upper"]]
    )
    assert not list(tmp_path.glob(".*"))


@pytest.mark.ci
def test_online_em(client, log, tmp_path):
    given = "--inference", "online-em", "--rank", 2, "--seed", 3
    ring, there = tmp_path / "m.ring", ["--scheduler", client.scheduler.address]
    found = run("fit", tmp_path / "log", "-o", ring, *COLUMNS, *given, *there)
    assert found.exit_code == 0, found.exception
    here = TensorRing(2, inference="online-em", random_state=3, progress=False)
    here.fit(tmp_path / "log", modes=MODES, value="y")
    same_draws(here.posterior_, load(ring).posterior_)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--local-cluster", "0"], "--local-cluster must be at least 1, got 0"),
        (["--local-cluster", "1", "--scheduler", "x"], "exclude each other"),
        (["--local-cluster", "1", "--na", "-999"], "--na is for CSV files, but"),
        (["--local-cluster", "1", "--keep-partial"], "on a cluster use --checkpoint"),
    ],
)
def test_bad_options(log, tmp_path, arguments, expected):
    found = run("fit", tmp_path / "log", "-o", tmp_path / "m.ring", *COLUMNS, *FAST, *arguments)
    assert expected in str(found.exception)


def test_options_that_a_cluster_has_no_use_for_are_refused(log, tmp_path):
    given = ["-o", tmp_path / "full", "--local-cluster", 1]
    found = run("complete", tmp_path / "log", *COLUMNS, *given, "--safe-cells")
    assert "--safe-cells is for CSV" in str(found.exception)
    found = run("predict", tmp_path / "m.ring", tmp_path / "log", *given, "--sep", ";")
    assert "--sep is for CSV files" in str(found.exception)


def test_the_file_of_somebody_else_is_not_replaced_by_a_model(log, tmp_path):
    (tmp_path / "m.ring").write_text("ten years")
    found = run("fit", tmp_path / "log", "-o", tmp_path / "m.ring", *COLUMNS, "--local-cluster", 1)
    assert "--force replaces it" in str(found.exception)
    assert (tmp_path / "m.ring").read_text() == "ten years"


def test_an_existing_folder_is_not_touched(log, tmp_path):
    (tmp_path / "full").mkdir()
    given = ["complete", tmp_path / "log", "-o", tmp_path / "full", *COLUMNS, "--local-cluster", 1]
    assert "full exists; a cluster writes a new folder" in str(run(*given).exception)


def test_destinations_are_looked_at_before_the_fit(log, tmp_path):
    given = [*COLUMNS, "--local-cluster", 1]
    found = run("complete", tmp_path / "log", "-o", tmp_path / "none" / "full", *given)
    assert "there is no folder" in str(found.exception)
    (tmp_path / "file").write_text("ten years")
    found = run("predict", tmp_path / "m.ring", tmp_path / "log", "-o", tmp_path / "file", *given)
    assert found.exit_code
    assert (tmp_path / "file").read_text() == "ten years"


def test_nothing_is_left_of_a_result_that_could_not_be_written(client, log, tmp_path, monkeypatch):
    def full(frame, path, **options):
        path.mkdir()
        (path / "part.0.parquet").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dataframe.DataFrame, "to_parquet", full)
    there = ["--scheduler", client.scheduler.address]
    found = run("complete", tmp_path / "log", "-o", tmp_path / "full", *COLUMNS, *FAST, *there)
    assert "full could not be written: [Errno 28] No space left" in str(found.exception)
    assert {path.name for path in tmp_path.iterdir()} == {"log"}


@pytest.mark.ci
def test_interrupts_end_a_local_cluster(log, tmp_path):
    """Ctrl-C reaches all processes of a terminal; one sentence, and nobody is left."""
    given = ["--modes", ",".join(MODES), "--value", "y", "--warmup", "100000", "-q"]
    asked = ["complete", tmp_path / "log", "-o", tmp_path / "full", *given, "--local-cluster", "2"]
    command = subprocess.Popen(
        [sys.executable, "-m", "bayesring", *map(str, asked)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(15)
    os.killpg(command.pid, signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert (command.returncode, said) == (130, "error: interrupted; no result was written.\n")
    for _ in range(50):
        listed = subprocess.run(["ps", "-eo", "pgid,stat"], capture_output=True, text=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        left = [row for row in rows if row[0] == str(command.pid) and row[1][0] != "Z"]
        if not left:
            break
        time.sleep(0.2)
    assert not left
    assert {path.name for path in tmp_path.iterdir()} == {"log"}


def test_folders_of_others_survive(tmp_path):
    """Neither what looks like our temporary folder, nor what appears during the work, is lost."""
    frame, theirs = dataframe.from_pandas(pd.DataFrame({"a": [1, 2]}), npartitions=1), "theirs.txt"
    (tmp_path / ".full.partial").mkdir()
    (tmp_path / ".full.partial" / theirs).write_text("kept")
    _write(frame, tmp_path / "full")
    assert len(pd.read_parquet(tmp_path / "full")) == 2

    def make_folder(part):
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / theirs).write_text("kept")
        return part

    with pytest.raises(ValueError, match="other exists; a cluster writes a new folder"):
        _write(frame.map_partitions(make_folder, meta=frame), tmp_path / "other")
    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob(theirs))
    assert found == [".full.partial/theirs.txt", "other/theirs.txt"]
    assert {each.name for each in tmp_path.iterdir()} == {"full", "other", ".full.partial"}
