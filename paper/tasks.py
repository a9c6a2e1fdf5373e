"""The six data sets as tasks: what is fitted, and how predictions are scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesring import metrics
from bayesring.data.observations import Observations
from bayesring.datasets import (
    Dataset,
    load_alog,
    load_dblp,
    load_enron,
    load_indian_pines,
    load_kinship,
    load_ushcn,
)
from bayesring.model.types import FloatArray


class Task(NamedTuple):
    """A data set: how to load it, what is scored, and the goals."""

    load: Callable[[], Dataset]
    table: str
    """The paper's table that contains it, "continuous" or "binary"."""
    scores: tuple[str, ...]
    goal: tuple[float, ...]
    """What we set out to reach, one number per score."""

    @property
    def likelihood(self) -> str:
        """Likelihood of the values, as passed to methods."""
        return "bernoulli" if self.table == "binary" else "gaussian"


ERRORS, IMAGE, LINKS = ("RMSE", "MAE"), ("PSNR", "SSIM"), ("AUC", "accuracy")
TASKS = {
    "USHCN": Task(load_ushcn, "continuous", ERRORS, (0.41, 0.275)),
    "Indian Pines": Task(load_indian_pines, "continuous", IMAGE, (35, 0.91)),
    "Alog": Task(load_alog, "continuous", ERRORS, (0.66, 0.31)),
    "Kinship": Task(load_kinship, "binary", LINKS, (0.985, 0.955)),
    "Enron": Task(load_enron, "binary", LINKS, (0.98, 0.955)),
    "DBLP": Task(load_dblp, "binary", LINKS, (0.98, 0.935)),
}


def _completed(
    train: Observations, test: Observations, predicted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The true and the completed tensor, with known cells kept."""
    truth = np.zeros(train.shape)
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
DIGITS = {"PSNR": 2}
"""Number of decimals shown, 3 by default."""


def show(score: str, number: float) -> str:
    """A score with its usual number of decimals."""
    return f"{number:.{DIGITS.get(score, 3)}f}"
