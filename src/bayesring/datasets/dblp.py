"""DBLP: who published where on what, 10000 authors x 200 venues x 10000 keywords, binary."""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import Dataset, Description, numbered
from bayesring.datasets.splits import balanced_fold
from bayesring.model.types import Observations

SHAPE = (10_000, 200, 10_000)
FILE = (
    "yishuaidu/POST",
    "5f1398b20c03b4fdb947ce7a4cae78bd57772b99",
    "code/DBLP/tensor-data-large/dblp.mat",
)
DESCRIPTION = Description(
    name="DBLP",
    content="One where an author published at a venue on a keyword; author x venue x keyword.",
    source=address(*FILE),
    licence="MIT (the repository's licence); the DBLP records are in the public domain (CC0 1.0).",
    citation=(
        "Du, Zheng, Lee and Zhe (2018), Probabilistic streaming tensor decomposition, ICDM; "
        "records of the dblp computer science bibliography."
    ),
    protocol=(
        "All 193,982 ones and as many zeros drawn at random; five-fold cross-validation. AUC, "
        "accuracy. The zeros that published figures were scored on are not public."
    ),
)


def load_dblp() -> Dataset:
    """The ones (193,982) of (10000, 200, 10000): author, venue, keyword.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_dblp
    >>> load_dblp().shape
    (10000, 200, 10000)
    """
    path = fetch(
        "dblp/dblp.mat",
        "9edd7cbb65256472ae817f33ac2e05c3566921d037335ffba315ff535ea456db",
        *FILE,
    )
    data = loadmat(path, simplify_cells=True)["data"]
    ones = np.concatenate([data["Y"]["subs"], data["test_ind_all"]]).astype(np.int64) - 1
    authors, venues, keywords = SHAPE
    return Dataset(
        DESCRIPTION,
        SHAPE,
        numbered(author=authors, venue=venues, keyword=keywords),
        lambda: Observations(ones, np.ones(len(ones)), SHAPE),
        lambda fold: balanced_fold(ones, SHAPE, fold),
    )
