"""Peers in processes of their own: what they are given, what comes back, and how they may end."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bayesring.data.observations import Observations
from bayesring.metrics import rmse
from paper import macau
from paper.baselines import Smurff
from paper.contenders import PeerChoice
from paper.macau import fit_macau, inner_split
from paper.peer_process import PeerFailure, PeerResult, SmurffRun, run_child, run_smurff

SHAPE = (30, 8, 7)


def planted(rng):
    """Values of rank one whose slices of the first mode are their feature."""
    feature, second, third = (rng.standard_normal(size) for size in SHAPE)
    coords = np.argwhere(rng.random(SHAPE) < 0.5)
    values = feature[coords[:, 0]] * second[coords[:, 1]] * third[coords[:, 2]]
    values = values + 0.01 * rng.standard_normal(len(values))
    return Observations(coords, values, SHAPE), feature[:, None]


def child(code, folder, **settings):
    run_child([sys.executable, "-c", code], folder, 2, **settings)


def test_a_death_is_told_with_the_last_words(tmp_path):
    code = "import os, sys; sys.stderr.write('no more'); sys.stderr.flush(); os.abort()"
    with pytest.raises(PeerFailure, match=r"by signal 6 \(SIGABRT\); it said: .*no more"):
        child(code, tmp_path)
    with pytest.raises(PeerFailure, match="exit code 3; it said: nothing"):
        child("raise SystemExit(3)", tmp_path)
    with pytest.raises(PeerFailure, match=r"(?s)exit code 1.*ZeroDivisionError"):
        child("1 / 0", tmp_path)


def test_a_child_that_hangs_is_stopped(tmp_path):
    with pytest.raises(PeerFailure, match=r"longer than 0\.2 seconds .* nothing"):
        child("import time; time.sleep(60)", tmp_path, timeout=0.2)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_pools_of_the_child_have_the_threads_that_it_is_given(tmp_path):
    code = (
        "import os, numpy, threadpoolctl; "
        "found = [each['num_threads'] for each in threadpoolctl.threadpool_info()]; "
        "assert found and set(found) == {min(2, len(os.sched_getaffinity(0)))}, found"
    )
    with threadpool_limits(1):
        child(code, tmp_path)


def test_scans_are_reported_as_they_end(tmp_path):
    seen = []
    code = "print('scan'); print('scan')"
    child(code, tmp_path, report=lambda: seen.append(threading.get_ident()))
    assert len(seen) == 2


def result(processor, threads):
    clocks = np.array([1.0, 2.0]), np.array([0.5, processor])
    return PeerResult([], np.zeros(0, dtype=int), *clocks, threads)


def test_fewer_cores_than_given_are_an_error_when_time_matters():
    fine = result(3.2, 2)
    assert fine.cores_used == pytest.approx(1.6)
    assert fine.shortfall() is None
    assert fine.for_timing() is fine
    assert result(1.8, 1).shortfall() is None
    held = result(2.0, 2)
    with pytest.raises(PeerFailure, match=r"given threads: 2, but used 1\.00 cores"):
        held.for_timing()


@pytest.fixture
def smurff():
    return pytest.importorskip("smurff")


def test_smurff_hands_back_draws_scans_and_clocks(smurff, rng):
    data, _ = planted(rng)
    found = run_smurff(data, SmurffRun(2, 1, burnin=4, samples=9, save_every=3))
    assert [each.shape for each in found.factors] == [(3, size, 2) for size in SHAPE]
    assert found.scans.tolist() == [7, 10, 13]
    assert len(found.wall) == len(found.processor) == 13
    assert (np.diff(found.wall) > 0).all()
    assert found.threads == 1
    assert found.described["cpu_seconds"] == found.processor[-1] > 0
    none = run_smurff(data, SmurffRun(2, 1, burnin=1, samples=2, save_every=0))
    assert none.factors == []


def test_what_smurff_says_when_it_fails_is_told(smurff, rng):
    data, feature = planted(rng)
    with pytest.raises(PeerFailure, match="same number of rows"):
        run_smurff(data, SmurffRun(2, 1, 1, 2), {0: feature[:-1]})


@pytest.mark.ci
def test_a_cap_below_the_signal_costs_accuracy(smurff):
    """On one data set: by chance SMURFF may go astray with any cap."""
    data, _ = planted(np.random.default_rng(1))
    train, test = (
        Observations(data.coords[part::2], data.values[part::2], SHAPE) for part in (0, 1)
    )
    settings = {"warmup": 50, "draws": 50, "n_jobs": 1, "random_state": 0, "progress": False}
    errors = []
    for cap in (1.0, 1000.0):
        model = Smurff(1, cap=cap, **settings).fit(train.coords, train.values, shape=SHAPE)
        errors.append(rmse(test.values, model.predict(test.coords)))
    assert errors[1] < 0.5 * errors[0]


def test_predictions_of_draws_have_the_mean_that_is_predicted(smurff, rng):
    data, _ = planted(rng)
    model = Smurff(2, warmup=3, draws=4, n_jobs=1, random_state=0, progress=False)
    model.fit(data.coords, data.values, shape=SHAPE)
    draws = [*model.predict_by_draw(data.coords)]
    assert len(draws) == 4
    np.testing.assert_allclose(np.mean(draws, axis=0), model.predict(data.coords))


def test_an_inner_split_leaves_out_whole_labels(rng):
    data, _ = planted(rng)
    part, held = inner_split(data, 0, seed=3)
    assert len(part.values) + len(held.values) == len(data.values)
    assert len(np.unique(held.coords[:, 0])) == 6
    assert not {*held.coords[:, 0]} & {*part.coords[:, 0]}


@pytest.mark.ci
def test_macau_predicts_new_labels_by_their_features(smurff, rng):
    data, feature = planted(rng)
    train, test = inner_split(data, 0, seed=7)
    settings = {"warmup": 60, "draws": 60, "n_jobs": 1, "random_state": 0, "progress": False}
    errors = []
    for own in (feature, rng.standard_normal(feature.shape)):
        model = Smurff(2, cap=100.0, features={0: own}, **settings)
        model.fit(train.coords, train.values, shape=SHAPE)
        errors.append(rmse(test.values, model.predict(test.coords)))
    assert errors[0] < 0.5 * np.std(test.values)
    assert errors[1] > 2 * errors[0]


def test_macau_is_chosen_on_labels_left_out_of_the_training_data(rng, monkeypatch):
    data, feature = planted(rng)
    train, test = inner_split(data, 0, seed=7)
    fitted = []

    class Fitted:
        clocks_ = PeerResult([], np.zeros(0), np.array([2.0]), np.array([3.0]), 2)

        def __init__(self, error):
            self.error = error

        def predict(self, coords):
            return np.full(len(coords), self.error)

    def fit(part, features, choice, seed):
        fitted.append((choice, len({*part.coords[:, 0]})))
        return Fitted(abs(choice.latent - 2) * 10.0)

    monkeypatch.setattr(macau, "fit", fit)
    choices = [PeerChoice(latent, 10.0) for latent in (1, 2, 3)]
    found = fit_macau(train, test, {0: feature}, 0, choices)
    assert sorted(fitted[:-1]) == [(each, 19) for each in choices]
    assert fitted[-1] == (choices[1], 24)
    assert (found["latent"], found["seconds"], found["cores used"]) == (2, 3.0, 1.5)
    assert found["rmse"] == pytest.approx(rmse(test.values, np.zeros(len(test.values))))
    assert [*found["validation"]] == ["K 1, cap 10", "K 2, cap 10", "K 3, cap 10"]
