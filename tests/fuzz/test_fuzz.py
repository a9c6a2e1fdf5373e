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

CASES = {
    "fit": 15,
    "complete": 15,
    "predict": 30,
    "arguments": 100,
    "settings": 100,
    "tables": 40,
    "csv": 40,
    "mixed": 80,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", [each for each in CASES if each != "mixed"])
def test_cases_work_or_are_refused(target, seed, tmp_path):
    found = [outcome(target, case(seed, target, n), tmp_path) for n in range(CASES[target])]
    assert set(found) <= {"works", "refused"}


def test_altered_files_work_or_are_refused(seed):
    """In a process of its own: a damaged file may end the interpreter."""
    found = run.fuzz("mixed", seed, CASES["mixed"])
    assert not found.failures
    assert found.counts.keys() == {"works", "refused"}
    assert sum(found.counts.values()) == CASES["mixed"]


def test_every_target_is_run():
    assert {*CASES, *targets.ALTERED} == {*targets.TARGETS}
    assert {*targets.SHARES, "mixed"} == {*targets.TARGETS}


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
