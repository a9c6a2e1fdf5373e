"""Peers run in a process of their own, with the threads that they are said to have.

Within our own process, pools of threads that we or a library limit would be limited for the peer as
well, and the time of one would be counted as the other's. The data go to the child as files and
come back as files; a child that dies is reported with what it said last. CPU time over wall time
says how many cores it used.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.model.types import FloatArray, IntArray
from paper.results_store import ROOT
from paper.smurff_child import DONE, SETTINGS, TASK

CHILD = "paper.smurff_child"
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the threads of a pool when a process begins."""
SHARE = 0.75
"""Share of the given threads' time that a peer must have used."""
LAST_WORDS = 2000
"""Characters of what a child said before it died."""


class PeerFailure(RuntimeError):
    """The peer's process died, took too long, or did not use the threads that it was given."""


class SmurffRun(NamedTuple):
    """What SMURFF is asked to do."""

    latent: int
    threads: int
    burnin: int = 200
    samples: int = 300
    cap: float = 10.0
    """Bound on the signal-to-noise ratio of its adaptive noise; 10 is its default."""
    probit: bool = False
    seed: int = 1
    save_every: int = 1
    """Scans after the burn-in per draw handed back; 0 for none."""


class PeerResult(NamedTuple):
    """What came back: draws, and clocks that ran during the scans alone."""

    factors: list[FloatArray]
    """(draws, I_d, K) for each mode; empty if none were asked for."""
    scans: IntArray
    """Scans that the draws are from, from 1."""
    wall: FloatArray
    """Seconds from the beginning to the end of each scan."""
    processor: FloatArray
    """The same of CPU time, over all threads."""
    threads: int

    @property
    def seconds(self) -> float:
        """Wall seconds of the fit, without predictions."""
        return float(self.wall[-1])

    @property
    def cores_used(self) -> float:
        """CPU time over wall time."""
        return float(self.processor[-1] / self.wall[-1])

    @property
    def described(self) -> dict[str, float]:
        """What a table says of the run besides its scores."""
        return {
            "seconds": self.seconds,
            "cpu_seconds": float(self.processor[-1]),
            "cores_used": self.cores_used,
        }

    def shortfall(self) -> str | None:
        """A sentence if it used fewer cores than given, else None."""
        if self.cores_used >= SHARE * self.threads:
            return None
        return (
            f"SMURFF was given threads: {self.threads}, but used {self.cores_used:.2f} cores "
            f"(CPU time over wall time), with a load of {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} cores; it must use {SHARE * self.threads:.2f} to be timed."
        )

    def for_timing(self) -> PeerResult:
        """Itself, or an error if it used fewer cores than it was given."""
        sentence = self.shortfall()
        if sentence is not None:
            raise PeerFailure(sentence)
        return self


def run_smurff(
    data: Observations,
    run: SmurffRun,
    features: Mapping[int, FloatArray] | None = None,
    report: Callable[[], None] | None = None,
    timeout: float | None = None,
) -> PeerResult:
    """Run SMURFF on observations as they are, in standard units or not, in a process of its own.

    Parameters
    ----------
    data : training data; there is no test set, predictions are made from the draws afterwards
    run : what to do
    features : side information of some modes, one row per slice; these get Macau's prior
    report : called after every scan
    timeout : seconds after which the child is stopped, if any
    """
    if find_spec("smurff") is None:
        raise ImportError(
            "Smurff needs the package smurff, which is not installed; install it with "
            "pip install --group paper."
        )
    with TemporaryDirectory() as name:
        folder = Path(name)
        arrays: dict[str, Any] = {
            "coords": data.coords,
            "values": data.values,
            "shape": np.array(data.shape),
            **{f"features{mode}": own for mode, own in (features or {}).items()},
        }
        np.savez(folder / TASK, **arrays)
        settings = run._asdict() | {"reports": report is not None}
        (folder / SETTINGS).write_text(json.dumps(settings))
        run_child([sys.executable, "-m", CHILD, name], folder, run.threads, report, timeout)
        with np.load(folder / DONE) as done:
            names = [f"factors{mode}" for mode in range(len(data.shape))]
            kept = [done[name] for name in names if name in done]
            scans = done["scans"] if "scans" in done else np.zeros(0, dtype=np.int64)
            return PeerResult(kept, scans, done["wall"], done["processor"], run.threads)


def run_child(
    command: list[str],
    folder: Path,
    threads: int,
    report: Callable[[], None] | None = None,
    timeout: float | None = None,
) -> None:
    """Run a program until it ends; a death or an end too late becomes a `PeerFailure`."""
    said = folder / "stderr"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | dict.fromkeys(POOLS, str(threads)),
            stdout=subprocess.PIPE if report else subprocess.DEVNULL,
            stderr=errors,
        ) as child,
    ):
        try:
            if report is not None:
                assert child.stdout is not None
                for _ in child.stdout:
                    report()
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            raise PeerFailure(
                f"SMURFF's process took longer than {timeout:g} seconds and was stopped; it said: "
                f"{_last_words(said)}"
            ) from None
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise PeerFailure(
            f"SMURFF's process {_end(child.returncode)}; it said: {_last_words(said)}"
        )


def _end(code: int) -> str:
    """How a process ended, in words."""
    if code > 0:
        return f"ended with exit code {code}"
    names = {each.value: each.name for each in signal.Signals}
    return f"was ended by signal {-code} ({names.get(-code, 'unknown')})"


def _last_words(path: Path) -> str:
    """The end of what a process wrote to standard error."""
    return path.read_text(errors="replace").strip()[-LAST_WORDS:] or "nothing"
