"""Kinship: terms that the Alyawarra of Central Australia use for each other, 104 x 104 x 26.

Recorded by Denham (1973); as prepared for RESCAL (repository mnick/rescal.py). Fully known and
binary: cell (i, j, k) is one if person i calls person j by term k.
"""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from bayesring.datasets.cache import fetch
from bayesring.types import FloatArray


def load_kinship() -> FloatArray:
    """Zeros and ones (104, 104, 26): person, person, term."""
    path = fetch(
        "kinship/alyawarradata.mat",
        "0e3b39e139291e4efd5e62faa55896ca96c70cd0c925da0d0a3b92d330883cb0",
        "mnick/rescal.py",
        "69dddaa9157fc7bd24d5d7ecf0308cc412403c17",
        "data/alyawarradata.mat",
    )
    return np.asarray(loadmat(path)["Rs"], dtype=np.float64)
