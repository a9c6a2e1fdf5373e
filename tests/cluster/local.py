"""Local clusters of worker processes, and how to treat them badly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd

from bayesring.engine.connection import bring_back

OPTIONS = {
    "threads_per_worker": 1,
    "processes": True,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
}


def pretend_few_are_many(compact):
    """Let data of `compact` observations stay on the cluster; runs here and on every worker."""
    from bayesring import estimator, oncluster
    from bayesring.data import observations
    from bayesring.engine import spread

    for module in (estimator, oncluster, observations, spread):
        module.COMPACT = compact


def kill_one(client, which=0):
    """SIGKILL to one worker process; its nanny starts another one."""
    processes = sorted(client.run(os.getpid).items())
    os.kill(processes[which % len(processes)][1], signal.SIGKILL)


def make_whole(client, n_workers=2):
    """Wait until all workers are back."""
    bring_back(client)
    client.wait_for_workers(n_workers, timeout=60)


def long_table(rng, n, shape=(3, 30, 8)):
    """A table with structure, gaps and keys of several types."""
    places = [rng.integers(size, size=n) for size in shape]
    signal = np.sin(places[0] + 1.0) * np.cos(places[1] / 5) + 0.3 * places[2]
    frame = pd.DataFrame(
        {
            "sensor": np.array([f"s{i}" for i in range(shape[0])])[places[0]],
            "day": np.datetime64("2024-01-01") + places[1],
            "depth": places[2],
            "y": signal + 0.2 * rng.standard_normal(n),
        }
    )
    frame.loc[frame.index % 40 == 3, "y"] = np.nan
    return frame


MODES = ["sensor", "day", "depth"]


def same_draws(one, other):
    for own, its in zip(one.chains, other.chains, strict=True):
        np.testing.assert_array_equal(own.flat, its.flat)
        np.testing.assert_array_equal(own.nuisance, its.nuisance)


def start(kind, file, *options):
    """A scheduler or a worker in a process of its own, which meet at `file`."""
    module = f"distributed.cli.dask_{kind}"
    given = ["--scheduler-file", str(file), "--no-dashboard", *options]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", module, *given], **quiet)
