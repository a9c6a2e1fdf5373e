"""Alog: access log of a file system, 200 users x 100 actions x 200 resources, five folds."""

from __future__ import annotations

import numpy as np

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import N_FOLDS, Dataset, Description, numbered, united
from bayesring.datasets.splits import Fold
from bayesring.model.types import Observations

SHAPE = (200, 100, 200)
REPOSITORY = (
    "xuangu-fang/Bayesian-streaming-sparse-tucker",
    "e87dafbb0d951de43e4bfac7eb2e3bbfbd46840a",
)
CHECKSUMS = {
    "train": (
        "ae48dede8b51b571e4663472a55158de6c7c85cc7cbf87d5055dcc805b6c7efe",
        "747f25101ce31292793d77046bbba9f4882d6b5e0fa3ed0ad345c94ca7b03856",
        "f0b5c1726a81700417f0c2108af73c848a7805dd01fed03f4781d77c2e5ad994",
        "b9d38c84114b43c309e3783ba463c967958f62be6dac0f5c9bc30bf212ca1163",
        "041c33453f874c82bdae6b5522b23d7847d24c4c033e2eff93e303a4eaf6c5ab",
    ),
    "test": (
        "d3385da1b834e37bd88ce81bccbcda273246face0252f60d515ed5067850c38b",
        "abcbdb0dc6587f9fcffa036cde82ef39afc7ee552d4e4f486672fdf2bec69dff",
        "495726539ef698e39e7e4ceb65a877fb465b5c47c502da2a41e6d3c09b4b1726",
        "046be2767940472eaa6598760bf358bc562ba070c46168cfed6b7a4d6ce834f5",
        "374fd00b9790a0ee8a5f41e28a78a091d0b2ad099c10dc074dbbd6714b49a23d",
    ),
}
DESCRIPTION = Description(
    name="Alog",
    content=(
        "How often a user did an action on a resource, log(1 + count), with sampled zeros; only "
        "21 of the 100 actions occur among the nonzeros."
    ),
    source=address(*REPOSITORY, "data/alog"),
    licence="None stated by the repository.",
    citation=(
        "Zhe, Xu, Chu, Qi and Park (2015), Scalable nonparametric multiway data analysis, AISTATS; "
        "folds of Fang, Kirby and Zhe (2021), Bayesian streaming sparse Tucker decomposition, UAI."
    ),
    protocol="Five random splits as published, with new zeros drawn for each. RMSE, MAE.",
)


def load_alog() -> Dataset:
    """Values at some cells of (200, 100, 200): user, action, resource.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_alog
    >>> load_alog().shape
    (200, 100, 200)
    """
    users, actions, resources = SHAPE
    return Dataset(
        DESCRIPTION,
        SHAPE,
        numbered(user=users, action=actions, resource=resources),
        lambda: united([_fold(fold) for fold in range(N_FOLDS)]),
        _fold,
    )


def _fold(fold: int) -> Fold:
    return Fold(_load("train", fold), _load("test", fold))


def _load(part: str, fold: int) -> Observations:
    name = f"{part}-fold-{fold + 1}.txt"
    path = fetch(f"alog/{name}", CHECKSUMS[part][fold], *REPOSITORY, f"data/alog/{name}")
    rows = np.loadtxt(path, delimiter=",")
    return Observations(rows[:, :3].astype(np.int64) - 1, rows[:, 3], SHAPE)
