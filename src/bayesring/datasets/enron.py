"""Enron: who wrote to whom when, 203 senders x 203 receivers x 200 times, binary, five folds."""

from __future__ import annotations

import numpy as np

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import N_FOLDS, Dataset, Description, numbered, united
from bayesring.datasets.splits import Fold
from bayesring.model.types import Observations

SHAPE = (203, 203, 200)
REPOSITORY = ("taozerui/scalable_btr", "197ea39a9bf7ab0a530363d022d61e3f2b066c7d")
CHECKSUMS = (
    "601f96121e1d00c209dd806d1072d0e128f5bba56120865b82b45f7b34d52421",
    "5e3c24db8b0f2af9a952125262600af5b17e75a3ae5d696aed67e37795ee7bcb",
    "bd2fe918470cd11ae037c0cf28877e680a5aaf34bac0f0f8ac8e527aa7966912",
    "4489198d1040831d7f21a0ec121b054a6ec7580e6e234afc15ae41a2402b4d8b",
    "028f063621ac0d426ebccb628e2ceba456505f8308ceeb247392ef6e43c51d4a",
)
DESCRIPTION = Description(
    name="Enron",
    content="One where an e-mail was sent; sender x receiver x time, sampled from the corpus.",
    source=address(*REPOSITORY, "data/enron"),
    licence="None stated by the repository; the e-mails were made public by a US agency.",
    citation=(
        "Zhe, Xu, Chu, Qi and Park (2015), Scalable nonparametric multiway data analysis, AISTATS; "
        "folds of Tao, Tanaka and Zhao (2023), Scalable Bayesian tensor ring factorization for "
        "multiway data analysis, ICONIP."
    ),
    protocol=(
        "Five folds as published, as many zeros as ones, with new zeros drawn for each; one "
        "training row occurs twice per fold. AUC, accuracy."
    ),
)


def load_enron() -> Dataset:
    """Zeros and ones at some cells of (203, 203, 200): sender, receiver, time.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_enron
    >>> load_enron().shape
    (203, 203, 200)
    """
    sender, receiver, time = SHAPE
    return Dataset(
        DESCRIPTION,
        SHAPE,
        numbered(sender=sender, receiver=receiver, time=time),
        lambda: united([_load(fold) for fold in range(N_FOLDS)]),
        _load,
    )


def _load(fold: int) -> Fold:
    name = f"fold-{fold}.npz"
    path = fetch(f"enron/{name}", CHECKSUMS[fold], *REPOSITORY, f"data/enron/{name}")
    with np.load(path) as arrays:
        return Fold(
            *(
                Observations(rows[:, :3].astype(np.int64), rows[:, 3].astype(float), SHAPE)
                for rows in (arrays["train"], arrays["test"])
            )
        )
