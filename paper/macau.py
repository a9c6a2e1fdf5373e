"""SMURFF with side information (Macau's prior) on labels without observations.

Its number of factors and its cap are chosen by leaving out a fifth of the labels of the training
data, as the test leaves out labels, so test values have no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bayesring.data.observations import Observations
from bayesring.metrics import rmse
from bayesring.model.types import FloatArray, IntArray
from paper.baselines import Smurff
from paper.contenders import PeerChoice
from paper.smurff_search import CAPS

LATENT = (10, 20, 40, 80)
CHOICES = tuple(PeerChoice(latent, cap) for latent in LATENT for cap in CAPS)
LEFT_OUT = 0.2
"""Share of the labels with observations that the inner split leaves out."""
AT_A_TIME = 2
"""Fits at a time, of one thread each."""


def fit_macau(
    train: Observations,
    test: Observations,
    features: Mapping[int, FloatArray],
    seed: int,
    choices: Iterable[PeerChoice] = CHOICES,
) -> dict[str, Any]:
    """Error on new labels of the mode with features, with settings chosen on an inner split.

    The least test error over all settings is not looked for: each is fitted to a part of the
    training data only.
    """
    mode = next(iter(features))
    part, held = inner_split(train, mode, seed)
    tried = list(choices)

    def error(choice: PeerChoice) -> float:
        return rmse(held.values, fit(part, features, choice, seed).predict(held.coords))

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        errors = dict(zip(tried, pool.map(error, tried), strict=True))
    chosen = min(errors, key=errors.__getitem__)
    model = fit(train, features, chosen, seed)
    return {
        "rmse": rmse(test.values, model.predict(test.coords)),
        "seconds": model.clocks_.described["cpu_seconds"],
        "cores used": model.clocks_.cores_used,
        "latent": chosen.latent,
        "cap": chosen.cap,
        "validation": {
            f"K {latent}, cap {cap:g}": error for (latent, cap), error in errors.items()
        },
    }


def inner_split(train: Observations, mode: int, seed: int) -> tuple[Observations, Observations]:
    """Training data without some labels of a mode, and what is known of these labels."""
    labels = np.unique(train.coords[:, mode])
    rng = np.random.default_rng(1000 * seed + 24)
    hidden = rng.choice(labels, round(LEFT_OUT * labels.size), replace=False)
    is_held = np.isin(train.coords[:, mode], hidden)
    return _rows(train, np.flatnonzero(~is_held)), _rows(train, np.flatnonzero(is_held))


def _rows(data: Observations, rows: IntArray) -> Observations:
    return Observations(data.coords[rows], data.values[rows], data.shape)


def fit(
    train: Observations, features: Mapping[int, FloatArray], choice: PeerChoice, seed: int
) -> Smurff:
    """SMURFF with features, in a process of its own."""
    model = Smurff(
        choice.latent,
        cap=choice.cap,
        features=features,
        n_jobs=1,
        random_state=seed,
        progress=False,
    )
    model.fit(train.coords, train.values, shape=train.shape)
    return model
