"""Alog: access log of a file system, 200 users x 100 actions x 200 resources, five folds.

Values are log(1 + count), with zeros sampled in (Zhe et al., 2016); the folds are those published
with Fang et al., "Bayesian streaming sparse Tucker decomposition" (repository
xuangu-fang/Bayesian-streaming-sparse-tucker). Only 21 of the 100 actions occur among the nonzeros.
"""

from __future__ import annotations

import numpy as np

from bayesring.datasets.cache import fetch
from bayesring.observations import Observations

SHAPE = (200, 100, 200)
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


def load_alog(fold: int) -> tuple[Observations, Observations]:
    """Training and test observations of one of the folds 0 to 4."""
    if fold not in range(5):
        raise ValueError(f"fold must be 0 to 4, got {fold!r}.")
    return _load("train", fold), _load("test", fold)


def _load(part: str, fold: int) -> Observations:
    name = f"{part}-fold-{fold + 1}.txt"
    path = fetch(
        f"alog/{name}",
        CHECKSUMS[part][fold],
        "xuangu-fang/Bayesian-streaming-sparse-tucker",
        "e87dafbb0d951de43e4bfac7eb2e3bbfbd46840a",
        f"data/alog/{name}",
    )
    rows = np.loadtxt(path, delimiter=",")
    return Observations(rows[:, :3].astype(np.int64) - 1, rows[:, 3], SHAPE)
