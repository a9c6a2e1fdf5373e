"""Commands with --local-cluster and --scheduler: Parquet in, Parquet out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesring import TensorRing, load
from bayesring.command.cli import app
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
    assert not list(tmp_path.glob(".*partial"))


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
