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
    found = run("predict", ring, tmp_path / "log", "-o", tmp_path / "cells", *there)
    assert found.exit_code == 0, found.exception
    expected = load(ring).predict_table(log)
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "cells")["upper"], expected["upper"])
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
    ],
)
def test_bad_options(log, tmp_path, arguments, expected):
    found = run("fit", tmp_path / "log", "-o", tmp_path / "m.ring", *COLUMNS, *FAST, *arguments)
    assert expected in str(found.exception)


def test_an_existing_folder_is_not_touched(log, tmp_path):
    (tmp_path / "full").mkdir()
    given = ["complete", tmp_path / "log", "-o", tmp_path / "full", *COLUMNS, "--local-cluster", 1]
    assert "full exists; a cluster writes a new folder" in str(run(*given).exception)
