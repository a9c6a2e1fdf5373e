"""Error against seconds: SMURFF, bayesring and online EM on eight sets, and the picture of it.

* SMURFF runs with the K and cap that are best by test error, in a process of its own. Its draws are
  replayed outside the clock: the error at a scan is that of the mean of its draws so far, without
  the first 10, 25, 50, 100 or 200 scans, whichever is best, which favours it.
* bayesring runs once with every default. What is kept of each chain and when each scan ended, as
  reported to progress bars, give the error of the mean of all draws so far; the last point is the
  fit as a whole, with all that follows its chains.
* Online EM has no draws on the way: every point is a fit of its own, with more and more epochs, and
  the last one has every default.

Predictions are never in the clock. On a busy machine CPU seconds count, and the row says so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring import TensorRing, progress
from bayesring.data.observations import Observations
from bayesring.engine.threads import count_threads
from bayesring.infer.state import ScanReport
from bayesring.model.types import NOTHING, FloatArray
from paper.baselines import Smurff
from paper.bench.timing import Measurement, machine
from paper.contenders import PeerChoice, error_of
from paper.peer_process import PeerFailure
from paper.results_store import COMMITTED, ROOT, ResultsStore, write_json
from paper.smurff_search import SearchSet, favoured, named, search_sets
from paper.tasks import Task

FILE = ROOT / COMMITTED / "curves.json"
PICTURE = ROOT / "docs" / "images" / "curves"
MOST_CELLS = 10_000
"""Test cells at which errors are measured."""
SCANS = 500
DISCARDED = (10, 25, 50, 100, 200)
"""Scans that SMURFF's mean may leave out."""
EPOCHS = (2, 5, 10, 25)
LOOKS = 40
"""Points of a curve."""
WITHIN = 1.003
"""An error within this factor of the one that SMURFF ends with counts as having reached it."""
GOAL = 1.0


class ErrorCurve(NamedTuple):
    """Errors of what is known after some seconds."""

    wall: list[float]
    processor: list[float]
    error: list[float]

    def reaches(self, error: float, clock: str = "wall") -> float | None:
        """Seconds until an error is reached, or None."""
        return next((at for at, now in self._points(clock) if now <= error), None)

    def stays(self, error: float, clock: str = "wall") -> float | None:
        """Seconds after which an error is never exceeded again, or None."""
        found = None
        for at, now in reversed(self._points(clock)):
            if now > error:
                break
            found = at
        return found

    def _points(self, clock: str) -> list[tuple[float, float]]:
        times = self.wall if clock == "wall" else self.processor
        return [*zip(times, self.error, strict=True)]


class ScanClock:
    """Wall and CPU seconds since it was made, at the end of every scan of every chain."""

    def __init__(self) -> None:
        self._begin = self._clocks()
        self.at: dict[tuple[int, int], tuple[float, float]] = {}

    def __call__(self, report: ScanReport) -> None:
        """Note the time."""
        self.at[report.chain, report.scan] = self.now()

    def now(self) -> tuple[float, float]:
        """Wall and CPU seconds."""
        wall, processor = self._clocks()
        return wall - self._begin[0], processor - self._begin[1]

    @staticmethod
    def _clocks() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()


@contextmanager
def watched() -> Iterator[ScanClock]:
    """Fits within report their scans to a watch instead of progress bars."""
    watch, right = ScanClock(), progress.chain_progress

    @contextmanager
    def reporting(*_: Any) -> Iterator[ScanClock]:
        yield watch

    progress.chain_progress = reporting  # type: ignore[assignment]
    try:
        yield watch
    finally:
        progress.chain_progress = right


def running_means(
    predictions: Iterable[FloatArray], looks: set[int]
) -> Iterator[tuple[int, FloatArray]]:
    """Means of the first predictions, for each number of them among `looks`."""
    total: Any = 0.0
    for number, each in enumerate(predictions, start=1):
        total = total + each
        if number in looks:
            yield number, total / number


def spread_out(n: int, looks: int = LOOKS) -> set[int]:
    """Numbers from 1 to n, dense at first, n among them."""
    return {round(each) for each in np.geomspace(1, n, looks)}


def ours(train: Observations, test: Observations, task: Task, threads: int) -> ErrorCurve:
    """A fit with every default."""
    with watched() as watch:
        ring = _ring(train, task, threads)
        whole = watch.now()
    posterior = ring.posterior_
    fitted = posterior.entries(test.coords)
    given = posterior.likelihood.locate(NOTHING, test.coords.T.__getitem__)
    means = posterior.likelihood.mean(fitted, posterior.nuisance, given)
    means = posterior.location + posterior.scale * means
    times = np.array(
        [
            watch.at[chain, int(scan)]
            for chain, draws in enumerate(posterior.chains)
            for scan in draws.scans
        ]
    )
    order = np.argsort(times[:, 0], kind="stable")
    found = [
        (*times[order[number - 1]], error_of(task, test.values, mean))
        for number, mean in running_means(means[order], spread_out(len(order)))
    ]
    found.append((*whole, error_of(task, test.values, ring.predict(test.coords))))
    return _curve(found)


def online_em(train: Observations, test: Observations, task: Task, threads: int) -> ErrorCurve:
    """Fits of a few epochs, and one with every default."""
    found = []
    for settings in (*({"epochs": each} for each in EPOCHS), {}):
        watch = ScanClock()
        ring = _ring(train, task, threads, inference="online-em", **settings)
        now = watch.now()
        found.append((*now, error_of(task, test.values, ring.predict(test.coords))))
    return _curve(found)


def _ring(train: Observations, task: Task, threads: int, **settings: Any) -> TensorRing:
    ring = TensorRing(
        likelihood=task.likelihood,
        shape=train.shape,
        random_state=0,
        n_jobs=threads,
        progress=False,
        **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ring.fit(train.coords, train.values)


def smurff(
    train: Observations,
    test: Observations,
    task: Task,
    choice: PeerChoice,
    threads: int,
    scans: int = SCANS,
) -> tuple[ErrorCurve, str | None]:
    """One run of SMURFF, and a sentence if it used fewer cores than it was given."""
    model = Smurff(
        choice.latent,
        likelihood=task.likelihood,
        cap=choice.cap,
        warmup=1,
        draws=scans - 1,
        n_jobs=threads,
        random_state=0,
        progress=False,
    )
    model.fit(train.coords, train.values, shape=train.shape)
    clocks = model.clocks_
    looks = spread_out(scans)
    totals: dict[int, Any] = dict.fromkeys(DISCARDED, 0.0)
    counts = dict.fromkeys(DISCARDED, 0)
    found, due = [], False
    for scan, each in zip(clocks.scans, model.predict_by_draw(test.coords), strict=True):
        for discarded in DISCARDED:
            if scan > discarded:
                totals[discarded] = totals[discarded] + each
                counts[discarded] += 1
        due = due or int(scan) in looks
        if due and counts[DISCARDED[0]]:
            means = [totals[part] / counts[part] for part in DISCARDED if counts[part]]
            best = min(error_of(task, test.values, mean) for mean in means)
            found.append((clocks.wall[scan - 1], clocks.processor[scan - 1], best))
            due = False
    return _curve(found), clocks.shortfall()


def _curve(points: Sequence[tuple[float, float, float]]) -> ErrorCurve:
    ordered = sorted((float(wall), float(cpu), float(error)) for wall, cpu, error in points)
    return ErrorCurve(*([*column] for column in zip(*ordered, strict=True)))


def compare(
    name: str, own: SearchSet, choice: PeerChoice, threads: int, busy: bool
) -> dict[str, Any]:
    """All three curves of a set. Unless `busy`, SMURFF must use the cores that it is given."""
    train, test = own.split()
    step = -(-len(test.values) // MOST_CELLS)
    test = Observations(test.coords[::step], test.values[::step], test.shape)
    theirs, shortfall = smurff(train, test, own.task, choice, threads)
    if shortfall is not None and not busy:
        raise PeerFailure(shortfall)
    curves = {
        "SMURFF": theirs,
        "bayesring": ours(train, test, own.task, threads),
        "online EM": online_em(train, test, own.task, threads),
    }
    return {
        "set": name,
        "score": "1 - AUC" if own.task.likelihood == "bernoulli" else "RMSE",
        "latent": choice.latent,
        "cap": choice.cap,
        "threads": threads,
        "clock": "processor" if busy else "wall",
        "note": shortfall or "",
        "load": os.getloadavg()[0],
        "machine": machine(),
        "curves": {label: curve._asdict() for label, curve in curves.items()},
    }


def row_of(found: dict[str, Any]) -> Measurement:
    """SMURFF's seconds to the error that it ends with over ours to the same.

    Where test cells are few, errors go up and down by chance, and the first moment at which a curve
    is there means little. The note says the ratio of the moments from which they stay there, too.
    """
    clock = found["clock"]
    curves = {label: ErrorCurve(**curve) for label, curve in found["curves"].items()}
    target = WITHIN * curves["SMURFF"].error[-1]
    texts, ratios = [], []
    for verb, find in (("there", ErrorCurve.reaches), ("there to stay", ErrorCurve.stays)):
        times = {label: find(curve, target, clock) for label, curve in curves.items()}
        theirs, mine = times["SMURFF"], times["bayesring"]
        assert theirs is not None
        ratios.append(0.0 if mine is None else theirs / mine)
        words = ", ".join(
            f"{label} {'never' if at is None else f'{at:.2g} s'}" for label, at in times.items()
        )
        texts.append(f"{verb}: {words}")
    ends = ", ".join(f"{label} {curve.error[-1]:.4g}" for label, curve in curves.items())
    unit = "x faster" if clock == "wall" else "x faster (CPU, other work on the machine)"
    note = "; ".join([*texts, f"{ratios[1]:.3g} x to stay", f"ends: {ends}"])
    return Measurement(_label(found["set"]), ratios[0], unit, GOAL, note=note)


def _label(name: str) -> str:
    return f"time to SMURFF's error, {name}"


def measure(
    names: Sequence[str] | None = None, busy: bool = False, file: Path = FILE
) -> Iterator[Measurement]:
    """Measure sets one after another, keep their curves in a file, and give a row for each."""
    store, threads = ResultsStore(ROOT / COMMITTED), min(2, count_threads(None))
    for name, own in search_sets().items():
        if names and name not in names:
            continue
        label = _label(name)
        choice = favoured(store, name)
        if find_spec("smurff") is None or choice is None:
            note = "no smurff" if choice else "its K and cap are not chosen yet: make peers"
            yield Measurement(label, None, "x faster", GOAL, note=note)
            continue
        try:
            warm_up(own.task, threads)
            found = compare(name, own, choice, threads, busy)
        except (PeerFailure, OSError) as error:
            yield Measurement(label, None, "x faster", GOAL, note=str(error))
            continue
        write_json(file, known(file) | {name: found})
        yield row_of(found)


def warm_up(task: Task, threads: int) -> None:
    """Compile what a fit needs before anything is timed."""
    rng = np.random.default_rng(0)
    coords = rng.integers(0, 9, (700, 3))
    data = Observations(coords, (rng.random(700) < 0.5).astype(float), (9, 9, 9))
    for settings in ({}, {"inference": "online-em", "epochs": 2}):
        _ring(data, task, threads, chains=1, **settings).predict(coords)


def known(file: Path = FILE) -> dict[str, Any]:
    """Curves that are there already."""
    return dict(json.loads(file.read_text())) if file.exists() else {}


def write_picture(stem: Path, file: Path = FILE) -> None:
    """Draw all curves that are there, as PNG and SVG."""
    from paper.study_figures import plot_curves, save_both  # needs matplotlib

    panels, quantities = {}, {}
    clocks = {found["clock"] for found in known(file).values()}
    times = "wall" if clocks == {"wall"} else "processor"
    for name, found in known(file).items():
        quantities[name] = found["score"]
        panels[name] = {
            label: (curve[times], curve["error"]) for label, curve in found["curves"].items()
        }
    clock = "seconds" if times == "wall" else "CPU seconds, both threads"
    save_both(plot_curves(panels, quantities, clock), stem)


def main() -> None:
    """Measure some or all sets, print a line for each, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="sets, with commas; all if none is named")
    parser.add_argument("--busy", action="store_true", help="count CPU seconds, on a busy machine")
    parser.add_argument("--file", type=Path, default=FILE, help="where curves are kept")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="picture, without its ending")
    asked = parser.parse_args()
    for row in measure(named(",".join(asked.names)), asked.busy, asked.file):
        value = "not measured" if row.value is None else f"{row.value:.3g} {row.unit}"
        sys.stdout.write(f"{row.name}: {value}; {row.note}\n")
        sys.stdout.flush()
    if known(asked.file):
        write_picture(asked.picture, asked.file)


if __name__ == "__main__":
    main()
