"""Signals while kernels compile or are loaded: held back, but neither lost nor late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba import njit
from numba.core import event

from bayesring.data import csvfiles
from bayesring.engine.compiling import cancelled_by
from bayesring.engine.threads import Stopped, Threads
from tests.shell import KEYS, small_table

BUSY = 4.0
"""Seconds more that a busy machine may take, on top of the two that are promised."""


class Caught(Exception):
    """What a handler of a test raises."""


@pytest.fixture
def caught():
    """SIGINT raises it; a timer sends SIGINT."""

    def handle(number, frame):
        raise Caught

    def send(number, frame):
        signal.raise_signal(signal.SIGINT)

    before = {signal.SIGINT: signal.signal(signal.SIGINT, handle)}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, send)
    yield handle
    for each, old in before.items():
        signal.signal(each, old)


def new_kernel():
    @njit
    def kernel(values):
        total = 0.0
        for each in values:
            total += np.sqrt(each) if each > 0 else each
        return total

    return kernel


def test_a_signal_waits_for_the_end_of_a_load(caught):
    """Where nothing is compiled there is no pass, only the lock."""
    event.start_event("numba:compiler_lock")
    signal.raise_signal(signal.SIGINT)
    event.start_event("numba:compiler_lock")  # a kernel that the kernel calls
    event.end_event("numba:compiler_lock")
    with pytest.raises(Caught):
        event.end_event("numba:compiler_lock")
    assert signal.getsignal(signal.SIGINT) is caught
    event.start_event("numba:compiler_lock")
    event.end_event("numba:compiler_lock")  # it is handed over once


def test_a_signal_waits_for_the_next_pass_alone(caught):
    event.start_event("numba:compiler_lock")
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(Caught):
        event.start_event("numba:run_pass", data={"name": "a pass"})
    event.end_event("numba:compiler_lock")
    assert signal.getsignal(signal.SIGINT) is caught
    event.start_event("numba:run_pass", data={"name": "another"})


def test_signals_that_a_program_ignores_or_leaves_alone_stay_so(caught):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    default = signal.getsignal(signal.SIGTERM)
    event.start_event("numba:compiler_lock")
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    event.end_event("numba:compiler_lock")
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is default


def test_other_threads_leave_signals_alone(caught):
    def load():
        event.start_event("numba:compiler_lock")
        found.append(signal.getsignal(signal.SIGINT))
        event.end_event("numba:compiler_lock")

    found = []
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert found == [caught]


def test_an_interrupted_compilation_can_be_begun_again(caught):
    """At twenty moments; whatever was left half-made is made anew."""
    new_kernel()(np.ones(3))  # the first one takes longer
    begin = time.perf_counter()
    assert new_kernel()(np.ones(3)) == 3.0
    takes = time.perf_counter() - begin
    interrupted = 0
    for moment in np.linspace(0.02, 0.95, 20):
        kernel = new_kernel()
        try:
            signal.setitimer(signal.ITIMER_REAL, moment * takes)
            assert kernel(np.ones(3)) == 3.0
            time.sleep(0.5 * takes)
        except Caught:
            interrupted += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert kernel(np.full(2, 4.0)) == 4.0
    assert interrupted > 3


def test_cancelled_work_stops_at_the_next_pass():
    calls = []

    def check():
        calls.append(1)
        if len(calls) > 5:
            raise Stopped

    kernel = new_kernel()
    with pytest.raises(Stopped), cancelled_by(check):
        kernel(np.ones(3))
    assert len(calls) == 6
    assert kernel(np.ones(3)) == 3.0


@pytest.mark.parametrize("mapping", ["chains", "pieces"])
def test_threads_of_a_cancelled_fit_stop_compiling(mapping):
    """One fails while the other compiles a kernel."""
    passes = []

    class Counting(event.Listener):
        def on_start(self, told):
            passes.append(threading.get_ident())
            if len(passes) == 3:
                failing.set()
                end = time.monotonic() + 60
                while not engine._stop.is_set() and time.monotonic() < end:
                    time.sleep(0.01)

        def on_end(self, told):
            pass

    failing, kernel = threading.Event(), new_kernel()

    def work(item):
        if item == "compiles":
            return kernel(np.ones(3))
        assert failing.wait(60)
        raise OSError("no more")

    engine = Threads(2)
    with engine, event.install_listener("numba:run_pass", Counting()):
        mapped = engine.map_chains if mapping == "chains" else engine.map_pieces
        with pytest.raises(OSError, match="no more"):
            mapped(work, ["compiles", "fails"])
    assert len(passes) < 10
    assert kernel(np.ones(3)) == 3.0


def test_reading_numbers_can_be_interrupted(caught):
    """NumPy's own conversion of texts would lose what the handler raises."""
    texts = np.arange(1_000_000).astype(str)
    begin = time.perf_counter()
    assert csvfiles._floats(texts[:100_000]).sum() == 99_999 * 50_000
    signal.setitimer(signal.ITIMER_REAL, max(0.01, time.perf_counter() - begin))
    try:
        with pytest.raises(Caught):
            csvfiles._floats(texts)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.ci
@pytest.mark.parametrize("seconds", [1.0, 3.0])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_command_ends_in_time_while_kernels_compile(tmp_path, seconds, threads):
    """Seen to fail: 15 seconds, until all kernels of the first scan were there."""
    (tmp_path / "in.csv").write_text(small_table())
    command = [sys.executable, "-m", "bayesring", "fit", "in.csv", *KEYS, "-o", "m.ring"]
    command += ["--jobs", threads, "--rank", "3", "--draws", "1000000"]
    fit = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        begin = time.monotonic()
        while not list(tmp_path.glob("cache/**/*.nbi")):
            assert fit.poll() is None, fit.communicate()
            assert time.monotonic() - begin < 100
            time.sleep(0.02)
        time.sleep(seconds)
        sent = time.monotonic()
        fit.send_signal(signal.SIGINT)
        said = "".join(fit.communicate(timeout=60))
    finally:
        fit.kill()
    assert time.monotonic() - sent < 2.0 + BUSY
    assert fit.returncode == 130, said
    assert "interrupted" in said
