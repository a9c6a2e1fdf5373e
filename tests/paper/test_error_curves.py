"""Curves of error against seconds: what is averaged, when it was known, and who is first."""

from __future__ import annotations

import json
from contextlib import nullcontext

import numpy as np
import pytest

from bayesring import progress
from bayesring.data.observations import Observations
from bayesring.datasets.splits import Fold
from bayesring.metrics import rmse
from paper.bench import error_curves as curves
from paper.bench import peers
from paper.bench.error_curves import ErrorCurve
from paper.contenders import PeerChoice, error_of
from paper.smurff_search import SearchSet
from paper.tasks import TASKS

TASK = TASKS["USHCN"]


@pytest.fixture
def fold(rng):
    cores = [rng.standard_normal((size, 2)) for size in (8, 9, 10)]
    coords = np.argwhere(np.ones((8, 9, 10)))
    parts = [core[i] for core, i in zip(cores, coords.T, strict=True)]
    values = np.prod(parts, axis=0).sum(axis=1) + 0.1 * rng.standard_normal(len(coords))
    known = rng.random(len(coords)) < 0.8
    return Fold(
        Observations(coords[known], values[known], (8, 9, 10)),
        Observations(coords[~known], values[~known], (8, 9, 10)),
    )


def test_running_means_are_means_of_what_came_first():
    found = dict(curves.running_means([np.array([1.0, 4.0]), np.array([3.0, 8.0])], {1, 2}))
    np.testing.assert_array_equal(found[1], [1, 4])
    np.testing.assert_array_equal(found[2], [2, 6])
    assert {1, 500} <= curves.spread_out(500)
    assert len(curves.spread_out(500)) <= curves.LOOKS


def test_a_curve_reaches_an_error_at_its_first_point_there():
    curve = ErrorCurve([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 0.2, 0.3])
    assert curve.reaches(0.3) == 2.0
    assert curve.reaches(0.3, "processor") == 4.0
    assert curve.reaches(0.1) is None
    curve = ErrorCurve([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [0.2, 0.4, 0.3, 0.1])
    assert curve.reaches(0.3) == 1.0
    assert curve.stays(0.3) == 3.0
    assert curve.stays(0.4) == 1.0
    assert curve.stays(0.05) is None


def found(clock="wall", ours=0.2):
    theirs = ErrorCurve([1.0, 6.0], [2.0, 9.0], [0.5, 0.3])
    mine = ErrorCurve([2.0, 3.0], [1.0, 3.0], [0.4, ours])
    both = {"SMURFF": theirs, "bayesring": mine, "online EM": mine}
    return {
        "set": "Enron",
        "clock": clock,
        "score": "1 - AUC",
        "curves": {label: curve._asdict() for label, curve in both.items()},
    }


def test_the_row_is_their_time_over_ours():
    assert curves.row_of(found()).value == pytest.approx(2.0)
    busy = curves.row_of(found("processor"))
    assert busy.value == pytest.approx(3.0)
    assert "CPU" in busy.unit
    never = curves.row_of(found(ours=0.31))
    assert never.value == 0
    assert "there: SMURFF 6 s, bayesring never" in never.note
    assert "ends: SMURFF 0.3, bayesring 0.31" in never.note
    assert curves.row_of(found(ours=0.3005)).value == pytest.approx(2.0)


def test_a_picture_has_a_panel_for_each_set(tmp_path):
    file = tmp_path / "curves.json"
    file.write_text(json.dumps({"Enron": found(), "Alog": found("processor")}))
    curves.write_picture(tmp_path / "curves", file)
    text = (tmp_path / "curves.svg").read_text()
    assert text.count("<!-- Enron -->") == text.count("<!-- Alog -->") == 1
    assert "CPU seconds" in text
    assert (tmp_path / "curves.png").stat().st_size > 5000


def test_our_curve_ends_with_the_whole_fit(fold, monkeypatch):
    train, test = fold
    short = {"rank": 2, "warmup": 20, "draws": 15, "chains": 2}
    right, before = curves._ring, progress.chain_progress
    rings = []

    def ring(*given, **settings):
        rings.append(right(*given, **short | settings))
        return rings[-1]

    monkeypatch.setattr(curves, "_ring", ring)
    curve = curves.ours(train, test, TASK, 1)
    assert progress.chain_progress is before
    assert curve.wall == sorted(curve.wall)
    assert curve.wall[0] > 0
    expected = rmse(test.values, rings[0].predict(test.coords))
    assert curve.error[-1] == pytest.approx(expected)
    assert curve.error[-2] == pytest.approx(expected)  # the mean of all draws
    assert curve.wall[-1] >= curve.wall[-2]
    first = curves.ours(train, test, TASK, 1).error[0]
    one = min(draws.scans[0] for draws in rings[0].posterior_.chains)
    assert one == 21
    assert first != pytest.approx(expected)


def test_draws_count_from_when_they_were_made(fold, monkeypatch):
    """The second chain is made to be the first in time."""
    train, test = fold
    short = {"rank": 2, "warmup": 4, "draws": 3, "chains": 2}
    ring = curves._ring(train, TASK, 1, **short)
    clock = curves.ScanClock()
    clock.at = {(c, s): (10.0 * (1 - c) + s, 0.5 * s) for c in (0, 1) for s in range(1, 8)}
    clock.now = lambda: (99.0, 9.0)
    monkeypatch.setattr(curves, "watched", lambda: nullcontext(clock))
    monkeypatch.setattr(curves, "_ring", lambda *_: ring)
    curve = curves.ours(train, test, TASK, 1)
    assert curve.wall == [5.0, 6.0, 7.0, 15.0, 16.0, 17.0, 99.0]
    assert curve.processor == [2.5, 3.0, 3.5, 2.5, 3.0, 3.5, 9.0]
    posterior = ring.posterior_
    entry = posterior.location + posterior.scale * posterior.entries(test.coords)[3]
    assert curve.error[0] == pytest.approx(rmse(test.values, entry))


def test_their_curve_leaves_out_what_favours_them(fold):
    pytest.importorskip("smurff")
    train, test = fold
    curve, _ = curves.smurff(train, test, TASK, PeerChoice(2, 1000.0), 1, scans=60)
    assert curve.error[-1] < 0.5 * np.std(test.values)
    assert curve.error[-1] <= curve.error[0]
    assert len(curve.wall) == len(curve.error)
    assert curve.wall == sorted(curve.wall)


@pytest.mark.ci
def test_a_set_is_compared_and_kept(fold, monkeypatch, tmp_path):
    pytest.importorskip("smurff")
    monkeypatch.setattr(curves, "search_sets", lambda: {"small": SearchSet(TASK, lambda: fold)})
    monkeypatch.setattr(curves, "favoured", lambda store, name: PeerChoice(2, 1000.0))
    monkeypatch.setattr(curves, "warm_up", lambda *_: None)
    monkeypatch.setattr(curves, "EPOCHS", (2,))
    right = curves._ring

    def ring(*given, **settings):
        short = {"rank": 2, "chains": 1, "draws": 10}
        if "inference" not in settings:
            short["warmup"] = 10
        return right(*given, **short | settings)

    monkeypatch.setattr(curves, "_ring", ring)
    monkeypatch.setattr(curves, "count_threads", lambda _: 1)
    monkeypatch.setattr(curves, "SCANS", 40)
    file = tmp_path / "curves.json"
    (row,) = curves.measure(busy=True, file=file)
    kept = json.loads(file.read_text())["small"]
    assert row == curves.row_of(kept)
    assert kept["clock"] == "processor"
    assert (kept["latent"], kept["cap"]) == (2, 1000.0)
    assert {*kept["curves"]} == {"SMURFF", "bayesring", "online EM"}


def test_nothing_is_measured_before_settings_are_chosen(monkeypatch, tmp_path):
    monkeypatch.setattr(curves, "favoured", lambda store, name: None)
    rows = [*curves.measure(["Enron"], file=tmp_path / "curves.json")]
    assert [row.value for row in rows] == [None]
    assert "make peers" in rows[0].note


def test_too_few_cores_leave_no_figure(fold, monkeypatch, tmp_path):
    monkeypatch.setattr(curves, "smurff", lambda *_: (found, "it used 1 core of 2."))
    with pytest.raises(curves.PeerFailure, match="1 core of 2"):
        curves.compare("small", SearchSet(TASK, lambda: fold), PeerChoice(2, 10.0), 2, busy=False)


@pytest.mark.ci
def test_scans_of_both_programs_are_timed_in_turn():
    pytest.importorskip("smurff")
    rows = [*peers.smurff_scan(rounds=1, scans=4)]
    assert [row.goal for row in rows][-2:] == [None, None]
    assert all((row.value is None) == ("to be timed" in row.note) for row in rows)
    assert all(row.value is None or row.value > 0 for row in rows)


def test_errors_are_those_of_the_task():
    assert error_of(TASK, np.zeros(2), np.ones(2)) == 1.0
    assert error_of(TASKS["Enron"], np.array([0.0, 1.0]), np.array([0.2, 0.9])) == 0.0
