"""Accuracy of the defaults on the six data sets of the paper, beside the paper's own and SMURFF's.

Every data set is scored as published: five folds or seeds, one fit each. A cell of the table is
one data set, method and fold; it is written to its own file, so that a run that was interrupted
goes on where it stopped. Test data are read once, to score.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring import metrics
from bayesring.baselines import Smurff
from bayesring.datasets import (
    balanced_fold,
    load_alog,
    load_dblp,
    load_enron,
    load_indian_pines,
    load_kinship,
    load_ushcn,
    random_split,
)
from bayesring.datasets.dblp import SHAPE as DBLP_SHAPE
from bayesring.estimator import TensorRing
from bayesring.observations import Observations
from bayesring.storage import replacing
from bayesring.types import FloatArray

N_FOLDS = 5
N_CHECKED = 40_000
"""Test cells at which intervals are checked, if there are more."""
OURS, SMURFF = "bayesring", "SMURFF"

Data = tuple[Observations, Observations]


class Task(NamedTuple):
    """A data set: how to load a fold, what is scored, and what others reach."""

    load: Callable[[int], Data]
    scores: tuple[str, ...]
    paper: tuple[float, ...]
    """The paper's best figures."""
    goal: tuple[float, ...]
    latent: int
    """K with which SMURFF does best."""
    binary: bool = False


def _cells(tensor: FloatArray, share: float, seed: int) -> Data:
    split = random_split(tensor.shape, share, seed)
    train, test = (Observations(part, tensor[tuple(part.T)], tensor.shape) for part in split)
    return train, test


def _kinship(fold: int) -> Data:
    tensor = load_kinship()
    return balanced_fold(np.argwhere(tensor > 0), tensor.shape, fold)


ERRORS, IMAGE, LINKS = ("RMSE", "MAE"), ("PSNR", "SSIM"), ("AUC", "accuracy")
TASKS = {
    "USHCN": Task(
        lambda seed: _cells(load_ushcn(), 0.1, seed), ERRORS, (0.560, 0.405), (0.44, 0.30), 80
    ),
    "Indian Pines": Task(
        lambda seed: _cells(load_indian_pines(), 0.01, seed), IMAGE, (29.71, 0.84), (33, 0.90), 25
    ),
    "Alog": Task(load_alog, ERRORS, (0.92, 0.47), (0.70, 0.36), 50),
    "Kinship": Task(_kinship, LINKS, (0.973, 0.940), (0.985, 0.955), 80, binary=True),
    "Enron": Task(load_enron, LINKS, (0.911, 0.811), (0.98, 0.955), 20, binary=True),
    "DBLP": Task(
        lambda fold: balanced_fold(load_dblp(), DBLP_SHAPE, fold),
        LINKS,
        (0.957, 0.889),
        (0.975, 0.92),
        20,
        binary=True,
    ),
}


def run(
    folder: Path,
    names: Iterable[str] | None = None,
    methods: Iterable[str] = (OURS, SMURFF),
    folds: Iterable[int] = range(N_FOLDS),
    **settings: Any,
) -> None:
    """Work out the cells that `folder` does not have yet. `settings` go to `TensorRing`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TASKS if names is None else names:
        for method in methods:
            if method == SMURFF and find_spec("smurff") is None:
                continue
            for fold in folds:
                path = folder / f"{name}-{method}-{fold}.json".replace(" ", "_")
                if not path.exists():
                    result = cell(name, method, fold, **settings)
                    with replacing(path) as temporary:
                        temporary.write_text(json.dumps(result, indent=1) + "\n")


def cell(name: str, method: str, fold: int, **settings: Any) -> dict[str, Any]:
    """Fit one fold of one data set and score it."""
    task = TASKS[name]
    train, test = task.load(fold)
    begin = time.perf_counter()
    if method == SMURFF:
        predicted = predict_smurff(train, test, task.latent, task.binary)
        found: dict[str, Any] = {"latent": task.latent}
        found["seconds"] = time.perf_counter() - begin
    else:
        likelihood = "bernoulli" if task.binary else "gaussian"
        ring = TensorRing(likelihood=likelihood, shape=train.shape, random_state=fold, **settings)
        ring.fit(train.coords, train.values)
        found = {"seconds": time.perf_counter() - begin}
        predicted = _predict(ring, test)
        found |= {"rank": [list(draws.rank) for draws in ring.posterior_.chains]}
        found |= _trust(task, ring, test, predicted)
    found |= {each: SCORES[each](train, test, predicted) for each in task.scores}
    return {
        "data": name,
        "method": method,
        "fold": fold,
        **found,
        "versions": {each: version(each) for each in ("bayesring", "numpy", "numba")},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def _predict(ring: TensorRing, test: Observations) -> FloatArray:
    """Predictions for the test cells, by way of the whole tensor if they are most of it."""
    if 2 * len(test.values) > prod(test.shape):
        return np.asarray(ring.predict_tensor()[tuple(test.coords.T)])
    return np.asarray(ring.predict(test.coords))


def predict_smurff(train: Observations, test: Observations, latent: int, binary: bool) -> Any:
    """Posterior means of SMURFF, or probabilities of ones."""
    likelihood = "bernoulli" if binary else "gaussian"
    model = Smurff(latent, likelihood=likelihood, random_state=1, progress=False)
    return model.fit(train.coords, train.values, shape=train.shape).predict(test.coords)


def _trust(
    task: Task, ring: TensorRing, test: Observations, predicted: FloatArray
) -> dict[str, Any]:
    """Coverage of intervals, or the bins of the calibration of probabilities."""
    if task.binary:
        bins = metrics.calibration_bins(test.values, predicted)
        return {"bins": [each.tolist() for each in bins]}
    some = np.random.default_rng(0).permutation(len(test.values))[:N_CHECKED]
    lower, upper = ring.predict_interval(test.coords[some], level=0.9)
    return {"coverage": metrics.coverage(test.values[some], lower, upper)}


def _completed(train: Observations, test: Observations, predicted: FloatArray) -> Any:
    """The true and the completed tensor, known cells kept."""
    truth = np.empty(train.shape)
    truth[tuple(train.coords.T)] = train.values
    completed = truth.copy()
    truth[tuple(test.coords.T)] = test.values
    completed[tuple(test.coords.T)] = predicted
    return truth, completed


SCORES: dict[str, Callable[[Observations, Observations, FloatArray], float]] = {
    "RMSE": lambda _, test, predicted: metrics.rmse(test.values, predicted),
    "MAE": lambda _, test, predicted: metrics.mae(test.values, predicted),
    "PSNR": lambda train, test, predicted: metrics.psnr(*_completed(train, test, predicted)),
    "SSIM": lambda train, test, predicted: metrics.ssim(*_completed(train, test, predicted)),
    "AUC": lambda _, test, predicted: metrics.auc(test.values, predicted),
    "accuracy": lambda _, test, predicted: metrics.accuracy(test.values, predicted),
}


def table(folder: Path) -> str:
    """The cells of `folder` as a Markdown table, means and standard deviations over folds."""
    lines = [
        "| | paper's best | SMURFF | bayesring | goal | intervals or probabilities | minutes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        ours, theirs = (_read(folder, name, method) for method in (OURS, SMURFF))
        if not ours:
            continue
        lines.append(
            f"| {name}, {' / '.join(task.scores)} | {' / '.join(map(str, task.paper))} "
            f"| {_figures(task, theirs)} | **{_figures(task, ours)}** "
            f"| {' / '.join(map(str, task.goal))} | {_trusted(ours)} "
            f"| {sum(each['seconds'] for each in ours) / 60:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _read(folder: Path, name: str, method: str) -> list[dict[str, Any]]:
    pattern = f"{name}-{method}-*.json".replace(" ", "_")
    return [json.loads(path.read_text()) for path in sorted(folder.glob(pattern))]


def _figures(task: Task, cells: list[dict[str, Any]]) -> str:
    if not cells:
        return "-"
    numbers = {score: [each[score] for each in cells] for score in task.scores}
    digits = {score: 2 if score == "PSNR" else 3 for score in task.scores}
    means = " / ".join(f"{np.mean(each):.{digits[score]}f}" for score, each in numbers.items())
    spread = " / ".join(f"{np.std(each):.{digits[score]}f}" for score, each in numbers.items())
    folds = "" if len(cells) == N_FOLDS else f", {len(cells)} of {N_FOLDS} folds"
    return f"{means} (± {spread}{folds})"


def _trusted(cells: list[dict[str, Any]]) -> str:
    if "coverage" in cells[0]:
        return f"90 % intervals cover {np.mean([each['coverage'] for each in cells]):.1%}"
    pooled = metrics.CalibrationBins(*np.sum([each["bins"] for each in cells], axis=0))
    return f"calibration error {pooled.error():.3f}, by chance below {pooled.chance():.3f}"
