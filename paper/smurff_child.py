"""SMURFF in a process of its own: reads a task, samples, writes draws and clocks.

Started by `paper.peer_process`; imports neither bayesring nor anything else with threads of its
own, so that SMURFF has the cores to itself. The clocks stand still before the first and after the
last scan: draws are read back from SMURFF's file, and predictions made from them, afterwards.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TASK, SETTINGS, DONE = "task.npz", "settings.json", "done.npz"
"""Files by which the two processes talk: arrays and numbers handed over, and what comes back."""


def make_session(task: Any, settings: dict[str, Any], draws: Path | None) -> Any:
    """A SMURFF session with normal priors, and Macau's on modes with features.

    It gets no test set, of which it would make predictions in every scan. `draws` is the file into
    which every `save_every`-th scan after the burn-in goes.
    """
    import smurff

    coords = np.ascontiguousarray(task["coords"].T, dtype=np.int64)
    shape = [int(size) for size in task["shape"]]
    train = smurff.SparseTensor((task["values"].astype(float), tuple(coords)), shape)
    features = {
        mode: np.ascontiguousarray(task[name], dtype=float)
        for mode in range(len(shape))
        if (name := f"features{mode}") in task
    }
    session = smurff.TrainSession(
        priors=["macau" if mode in features else "normal" for mode in range(len(shape))],
        num_latent=settings["latent"],
        num_threads=settings["threads"],
        burnin=settings["burnin"],
        nsamples=settings["samples"],
        seed=settings["seed"],
        verbose=0,
        save_name=None if draws is None else str(draws),
        save_freq=None if draws is None else settings["save_every"],
    )
    noise = (
        smurff.ProbitNoise(0.5)
        if settings["probit"]
        else smurff.AdaptiveNoise(1.0, settings["cap"])
    )
    session.addTrainAndTest(train, None, noise=noise)
    for mode, own in features.items():
        session.addSideInfo(mode, own, smurff.SampledNoise(1.0), direct=True)
    return session


def sample(session: Any, reports: bool) -> tuple[list[float], list[float]]:
    """Run all scans; wall and CPU seconds since the beginning, after each of them."""
    wall, processor = [], []
    begin, begin_processor = time.perf_counter(), time.process_time()
    session.init()
    while session.step():
        wall.append(time.perf_counter() - begin)
        processor.append(time.process_time() - begin_processor)
        if reports:
            sys.stdout.write("scan\n")
            sys.stdout.flush()
    return wall, processor


def read_draws(session: Any, burnin: int) -> dict[str, Any]:
    """The kept factors of each mode, (draws, I_d, K), and the scans that they are from, from 1."""
    found = session.makePredictSession()
    kept = [sample.latents for sample in found.samples]
    scans = np.array([burnin + sample.no for sample in found.samples])
    found.h5_file.close()
    factors = {f"factors{mode}": np.array(own) for mode, own in enumerate(zip(*kept, strict=True))}
    return factors | {"scans": scans}


def main(folder: Path) -> None:
    """Do the task in a folder."""
    settings = json.loads((folder / SETTINGS).read_text())
    draws = folder / "draws.hdf5" if settings["save_every"] else None
    with np.load(folder / TASK) as task:
        session = make_session(task, settings, draws)
    wall, processor = sample(session, settings["reports"])
    kept = {} if draws is None else read_draws(session, settings["burnin"])
    np.savez(folder / DONE, wall=np.array(wall), processor=np.array(processor), **kept)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
