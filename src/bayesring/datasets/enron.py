"""Enron: who wrote to whom when, 203 senders x 203 receivers x 200 times, binary, five folds.

Sampled from the Enron e-mail corpus (Zhe et al., 2015), with the folds of the tensor ring paper
(repository taozerui/scalable_btr). As many zeros as ones; one training row occurs twice per fold.
"""

from __future__ import annotations

import numpy as np

from bayesring.datasets.cache import fetch
from bayesring.observations import Observations

SHAPE = (203, 203, 200)
CHECKSUMS = (
    "601f96121e1d00c209dd806d1072d0e128f5bba56120865b82b45f7b34d52421",
    "5e3c24db8b0f2af9a952125262600af5b17e75a3ae5d696aed67e37795ee7bcb",
    "bd2fe918470cd11ae037c0cf28877e680a5aaf34bac0f0f8ac8e527aa7966912",
    "4489198d1040831d7f21a0ec121b054a6ec7580e6e234afc15ae41a2402b4d8b",
    "028f063621ac0d426ebccb628e2ceba456505f8308ceeb247392ef6e43c51d4a",
)


def load_enron(fold: int) -> tuple[Observations, Observations]:
    """Training and test observations of one of the folds 0 to 4."""
    if fold not in range(len(CHECKSUMS)):
        raise ValueError(f"fold must be 0 to {len(CHECKSUMS) - 1}, got {fold!r}.")
    path = fetch(
        f"enron/fold-{fold}.npz",
        CHECKSUMS[fold],
        "taozerui/scalable_btr",
        "197ea39a9bf7ab0a530363d022d61e3f2b066c7d",
        f"data/enron/fold-{fold}.npz",
    )
    with np.load(path) as arrays:
        train, test = (
            Observations(rows[:, :3].astype(np.int64), rows[:, 3].astype(float), SHAPE)
            for rows in (arrays["train"], arrays["test"])
        )
    return train, test
