"""What people in a hurry do: every refusal says what to do instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesring
from bayesring import TensorRing, complete

QUICK = {"rank": 1, "warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}
SHELL = ["--rank", "1", "--warmup", "2", "--draws", "2", "--chains", "1"]


def table():
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(np.indices((4, 3, 3)).reshape(3, -1).T, columns=["a", "b", "c"])
    return cells.assign(v=np.where(rng.random(36) < 0.2, np.nan, rng.normal(size=36)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: TensorRing(**QUICK).fit(t, "v"), ValueError, "name columns of X by modes="),
        (
            lambda t: TensorRing(**QUICK).fit(t, ["a", "b", "c"], "v"),
            ValueError,
            "name columns of X by modes= and value=, of",
        ),
        (
            lambda t: TensorRing(**QUICK).fit(t.set_index(["a", "b", "c"])),
            ValueError,
            "in the index: call reset_index\\(\\) first",
        ),
        (
            lambda t: TensorRing(**QUICK).fit(np.ones((3, 3, 3))),
            ValueError,
            "to fill its gaps use bayesring.complete",
        ),
        (lambda t: complete("t.csv"), TypeError, "data is the name of a file, 't.csv'; read it"),
        (lambda t: complete(None), TypeError, "data is of type NoneType, but an array with NaN"),
        (lambda t: complete({"a": [1]}), TypeError, "data is of type dict, but an array with NaN"),
        (lambda t: complete([[1.0, None]]), ValueError, "with NaN where one is missing"),
        (lambda t: complete(t, values="v"), TypeError, "no argument 'values'; did you mean value"),
        (lambda t: complete(t, wibble=3), TypeError, "complete has no argument 'wibble'."),
    ],
)
def test_a_refusal_says_what_to_do(call, error, message):
    with pytest.raises(error, match=message):
        call(table())


def test_a_terminal_that_cannot_show_a_label(tmp_path):
    """The summary writes it otherwise; data on standard output are UTF-8 all the same."""
    named = table().assign(a=lambda each: "Stra\u00dfe " + each["a"].astype(str))
    named.to_csv(tmp_path / "in.csv", index=False)
    home = str(Path(bayesring.__file__).parents[1])
    plain = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONPATH": home}
    options = {"cwd": tmp_path, "env": plain, "capture_output": True, "check": False}
    command = [sys.executable, "-m", "bayesring", "complete", "in.csv", "--modes", "a,b,c"]
    command += ["--value", "v"]
    done = subprocess.run([*command, "--dry-run"], **options)
    assert done.returncode == 0, done.stderr
    assert b"Stra\\xdfe" in done.stdout
    done = subprocess.run(
        [*command, "-o", "-", "-q", *SHELL],
        cwd=tmp_path,
        env=plain,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Stra\u00dfe 0" in done.stdout.decode("utf-8")
