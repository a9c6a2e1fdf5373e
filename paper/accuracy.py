"""Accuracy on the paper's six data sets: the cells of its two tables, and of our short one.

Every data set is scored as published: five folds or seeds, one fit each. A cell is one data set,
method and fold. Test data are read only here, for scoring. SMURFF's settings are those that
`paper.smurff_search` has found; its rows with other settings are out of date.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesring import metrics
from bayesring.data.observations import Observations
from bayesring.datasets.dataset import N_FOLDS
from bayesring.model.types import FloatArray
from bayesring.posterior.convergence import DiagnosticWarning
from paper import smurff_search
from paper.contenders import FAVOURED, METHODS, OURS, PEERS, SMURFF, Job, PeerChoice, Predictor
from paper.results_store import Result, ResultsStore
from paper.runner import ResultCell
from paper.tasks import SCORES, TASKS, Task

STUDY = "accuracy"
N_CHECKED = 40_000
"""Maximum number of test cells at which intervals are checked."""
QUICK_TRAIN = 3000
"""Number of training observations in a smoke test."""
COSTS = {
    "BayesCP": (25, 40, 40, 15, 8, 700),
    "TTWOPT": (20, 60, 30, 15, 4, 300),
    "BTR-VI": (900, 900, 900, 600, 120, 3600),
    OURS: (90, 120, 100, 60, 20, 540),
    "online-EM": (60, 60, 60, 60, 20, 300),
    "Gibbs-paper": (150, 150, 150, 80, 15, 600),
    SMURFF: (70, 180, 25, 35, 5, 220),
    FAVOURED: (70, 180, 25, 35, 5, 220),
}
"""Approximate seconds per fit on one core, for each data set of `TASKS`."""


def make_cells(
    names: Iterable[str] | None = None,
    methods: Iterable[str] = METHODS,
    folds: Iterable[int] = range(N_FOLDS),
    quick: bool = False,
    store: ResultsStore | None = None,
) -> list[ResultCell]:
    """Cells of some data sets: the first fold of every method, then the next.

    `store` knows SMURFF's settings, without which its cells cannot be computed.
    """
    return [
        ResultCell(
            STUDY,
            name,
            method,
            str(fold),
            work,
            (name, method, fold, quick, _choice(store, name, method)),
            1.0 if quick else _cost(name, method),
        )
        for name in (TASKS if names is None else names)
        for fold in folds
        for method in methods
        if METHODS[method].runs_on(name) and not _is_double(store, name, method)
    ]


def _choice(store: ResultsStore | None, name: str, method: str) -> PeerChoice | None:
    if store is None or method not in PEERS:
        return None
    find = smurff_search.chosen if method == SMURFF else smurff_search.favoured
    return find(store, name)


def _is_double(store: ResultsStore | None, name: str, method: str) -> bool:
    """Whether SMURFF's settings are those that favour it, so that its cells stand for both."""
    if store is None or method != FAVOURED:
        return False
    best = smurff_search.favoured(store, name)
    return best is not None and best == smurff_search.chosen(store, name)


def is_outdated(cell: ResultCell, store: ResultsStore) -> bool:
    """Whether a row of SMURFF was computed with other settings than it has now."""
    found, choice = cell.load(store), cell.arguments[-1]
    return found is not None and choice is not None and settings_of(found) != choice


def settings_of(found: Result) -> PeerChoice | None:
    """Settings of a row of SMURFF; None if they were not recorded, which they were not at first."""
    return PeerChoice(int(found["rank"]), float(found["cap"])) if "cap" in found else None


def _cost(name: str, method: str) -> float:
    costs = COSTS.get(method)
    return 1.0 if costs is None else float(costs[list(TASKS).index(name)])


def work(
    name: str, method: str, fold: int, quick: bool, peer: PeerChoice | None, threads: int
) -> Result:
    """Fit one fold of one data set and score it. The clock stops before predictions are made."""
    task = TASKS[name]
    train, test = task.load().split(fold)
    if quick:
        train = _some(train, QUICK_TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)
        begin = time.perf_counter()
        fitted = METHODS[method].fit(Job(train, task, fold, threads, quick, peer))
        seconds, begin = time.perf_counter() - begin, time.perf_counter()
        predicted = fitted.predict(test.coords)
        found = {
            "fold": fold,
            "seed": fold,
            "seconds": seconds,
            "prediction_seconds": time.perf_counter() - begin,
            **fitted.described,
            **_trust(task, fitted, test, predicted),
        }
    return found | {each: SCORES[each](train, test, predicted) for each in task.scores}


def _some(data: Observations, number: int) -> Observations:
    """An evenly spaced subset of the observations."""
    step = max(1, len(data.values) // number)
    return Observations(data.coords[::step], data.values[::step], data.shape)


def _trust(
    task: Task, fitted: Predictor, test: Observations, predicted: FloatArray
) -> dict[str, Any]:
    """Coverage of intervals, or calibration bins of probabilities."""
    if task.likelihood == "bernoulli":
        if not fitted.is_probability:
            return {}
        bins = metrics.calibration_bins(test.values, predicted)
        return {"bins": [each.tolist() for each in bins]}
    if fitted.interval is None:
        return {}
    some = np.random.default_rng(0).permutation(len(test.values))[:N_CHECKED]
    lower, upper = fitted.interval(test.coords[some])
    return {"coverage": metrics.coverage(test.values[some], lower, upper)}


def load_cells(store: ResultsStore, name: str, method: str) -> list[Result]:
    """Existing results of the cells of a data set and method."""
    if _is_double(store, name, method):
        method = SMURFF
    found = [cell.load(store) for cell in make_cells([name], [method])]
    return [each for each in found if each is not None]
