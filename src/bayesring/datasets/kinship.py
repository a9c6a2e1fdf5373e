"""Kinship: terms that the Alyawarra of Central Australia use for each other, 104 x 104 x 26."""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import Dataset, Description, numbered, whole
from bayesring.datasets.splits import balanced_fold

FILE = (
    "mnick/rescal.py",
    "69dddaa9157fc7bd24d5d7ecf0308cc412403c17",
    "data/alyawarradata.mat",
)
DESCRIPTION = Description(
    name="Kinship",
    content="One where a person calls another by a term; person x person x term, fully known.",
    source=address(*FILE),
    licence="GPL-3.0 (the repository's licence); none stated for the data themselves.",
    citation=(
        "Denham (1973), The detection of patterns in Alyawarra nonverbal behavior, PhD thesis, "
        "University of Washington; as prepared for Nickel, Tresp and Kriegel (2011), A three-way "
        "model for collective learning on multi-relational data, ICML."
    ),
    protocol=(
        "All ones and as many zeros drawn at random; five-fold cross-validation. AUC, accuracy."
    ),
)


def load_kinship() -> Dataset:
    """Zeros and ones (104, 104, 26): person, person, term.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_kinship
    >>> load_kinship().shape
    (104, 104, 26)
    """
    path = fetch(
        "kinship/alyawarradata.mat",
        "0e3b39e139291e4efd5e62faa55896ca96c70cd0c925da0d0a3b92d330883cb0",
        *FILE,
    )
    tensor = np.asarray(loadmat(path)["Rs"], dtype=np.float64)
    callers, called, terms = tensor.shape
    return Dataset(
        DESCRIPTION,
        tensor.shape,
        numbered(caller=callers, called=called, term=terms),
        lambda: whole(tensor),
        lambda fold: balanced_fold(np.argwhere(tensor > 0), tensor.shape, fold),
    )
