"""BLAS is held to one thread during a fit and put back after it; other pools are left alone."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import sklearn.utils.extmath  # noqa: F401  (brings a pool of OpenMP into the process)
from threadpoolctl import threadpool_info, threadpool_limits

from bayesring import TensorRing
from bayesring.engine.threads import Threads, one_blas_thread
from bayesring.infer import chains

X = np.argwhere(np.ones((4, 3, 2), dtype=bool))
SETTINGS = {"warmup": 2, "draws": 2, "chains": 2, "random_state": 0, "progress": False}


def pools(kind):
    """Library and number of threads of every pool of a kind."""
    found = [each for each in threadpool_info() if each["user_api"] == kind]
    return sorted((each["filepath"], each["num_threads"]) for each in found)


def counts(kind):
    return [number for _, number in pools(kind)]


def in_thread(work):
    """What `work` gives in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads for every pool, whatever the machine has, so that one thread is a limit."""
    with threadpool_limits(2):
        if 2 not in counts("blas"):
            pytest.skip("BLAS runs on one thread here")
        yield


@pytest.fixture
def during(monkeypatch):
    """Numbers of threads seen within each scan: (BLAS, OpenMP)."""
    seen, right = [], chains.gibbs.step

    def step(*arguments):
        seen.append((counts("blas"), counts("openmp")))
        return right(*arguments)

    monkeypatch.setattr(chains.gibbs, "step", step)
    return seen


@pytest.mark.parametrize("run", [lambda work: work(), in_thread], ids=["main", "thread"])
def test_a_fit_holds_blas_to_one_thread_and_puts_it_back(during, run):
    """In the main thread and in another, after the main thread has set limits."""
    before = pools("blas"), pools("openmp")
    assert pools("openmp"), "scikit-learn brings one"
    # the number of threads of OpenMP is a matter of each thread
    openmp = in_thread(lambda: counts("openmp"))
    with one_blas_thread:
        pass
    run(lambda: TensorRing(2, n_jobs=2, **SETTINGS).fit(X, np.arange(24.0)))
    assert (pools("blas"), pools("openmp")) == before
    assert len(during) == 8
    assert all(set(blas) == {1} for blas, _ in during)
    assert all(found == openmp for _, found in during)


def test_blas_is_put_back_after_an_exception(monkeypatch):
    before = pools("blas"), pools("openmp")
    seen = []

    def step(*arguments):
        seen.extend(counts("blas"))
        raise RuntimeError("a scan failed")

    monkeypatch.setattr(chains.gibbs, "step", step)
    with pytest.raises(RuntimeError, match="a scan failed"):
        TensorRing(2, n_jobs=2, **SETTINGS).fit(X, np.arange(24.0))
    assert set(seen) == {1}
    assert (pools("blas"), pools("openmp")) == before


def test_predictions_put_blas_back_too():
    before, seen = pools("blas"), []
    ring = TensorRing(2, **SETTINGS).fit(X, np.arange(24.0))
    Threads(2).map_pieces(lambda piece: seen.extend(counts("blas")), range(3))
    assert set(seen) == {1}
    ring.predict_interval(X)
    assert pools("blas") == before
    with pytest.raises(ZeroDivisionError):
        Threads(2).map_pieces(lambda piece: 1 // piece, range(3))
    assert pools("blas") == before


def test_users_that_overlap_share_the_limit():
    """The first to come goes first, in a thread of its own; the last one lifts the limit."""
    before = pools("blas")
    entered, leave = threading.Event(), threading.Event()

    def first():
        with one_blas_thread:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(10)
    with one_blas_thread:
        leave.set()
        thread.join()
        assert set(counts("blas")) == {1}
    assert pools("blas") == before


def test_the_one_who_lifts_the_limit_need_not_be_the_one_who_set_it():
    """And both may still be running."""
    before = pools("blas")
    lifted, leave = threading.Event(), threading.Event()

    def last():
        one_blas_thread.__exit__()
        lifted.set()
        leave.wait(10)

    one_blas_thread.__enter__()
    thread = threading.Thread(target=last)
    thread.start()
    assert lifted.wait(10)
    assert pools("blas") == before
    with one_blas_thread:
        assert set(counts("blas")) == {1}
    leave.set()
    thread.join()
    assert pools("blas") == before


def test_limits_that_users_set_survive_a_fit():
    with threadpool_limits(1):
        TensorRing(2, **SETTINGS).fit(X, np.arange(24.0))
        assert set(counts("blas")) == {1}
    assert 2 in counts("blas")
