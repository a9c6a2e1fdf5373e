"""A small run of the fuzzer, with Hypothesis to shrink what fails, and that it can fail."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayesring import TensorRing
from tests.fuzz import run, targets
from tests.fuzz.judging import is_refusal
from tests.fuzz.worker import case, outcome

QUICK = {"fit": 15, "complete": 15, "checkpoint": 8, "zarr": 8, "command": 12, "netcdf": 15}
"""Cases of the targets that take longest; others have `CASES`."""
CASES = 60
IN_PROCESS = ("fit", "complete", "predict", "arguments", "settings", "tables", "csv")
"""Targets without altered files, which might end the interpreter."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", IN_PROCESS)
def test_cases_work_or_are_refused(target, seed, tmp_path):
    for number in range(QUICK.get(target, CASES)):
        assert outcome(target, case(seed, target, number), tmp_path) in ("works", "refused"), number


@pytest.mark.parametrize("target", [each for each in targets.TARGETS if each not in IN_PROCESS])
def test_altered_files_work_or_are_refused(target, seed):
    found = run.fuzz(target, seed, QUICK.get(target, CASES))
    assert not found.failures
    assert sum(found.counts.values()) == QUICK.get(target, CASES)
    assert found.counts["refused"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(rng=st.randoms(use_true_random=False), target=st.sampled_from(["arguments", "settings"]))
def test_hypothesis_finds_nothing_either(tmp_path, rng, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcome(target, rng, tmp_path) in ("works", "refused")


def leak_an_error(rng, folder):
    float("x")


def refuse(rng, folder):
    TensorRing(draws=0).fit([[0, 1]], [1.0])


def test_it_sees_errors_of_other_libraries(tmp_path, monkeypatch):
    monkeypatch.setitem(targets.TARGETS, "fit", leak_an_error)
    assert outcome("fit", case(0, "fit", 0), tmp_path).startswith('ValueError: "could not convert')
    monkeypatch.setitem(targets.TARGETS, "fit", refuse)
    assert outcome("fit", case(0, "fit", 0), tmp_path) == "refused"
    assert not is_refusal(KeyError("x."))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os; print('ready\\n0 works', flush=True); os.abort()", "ended with -6"),
        ("import time; print('ready', flush=True); time.sleep(60)", "no answer within"),
        ("print('ready'); print('0 KeyError: x')", "KeyError"),
    ],
)  # fmt: skip
def test_it_sees_crashes_and_hangs(program, message, monkeypatch):
    monkeypatch.setattr(run, "command_of", lambda *_: [run.sys.executable, "-c", program])
    monkeypatch.setattr(run, "SECONDS", 1.0)
    found = run.fuzz("fit", 0, 2)
    assert found.counts["failed"] >= 1
    assert any(message in each for each in found.failures), found.failures
