"""DBLP: who published where on what, 10000 authors x 200 venues x 10000 keywords, binary.

The ones as published with Du et al., "Probabilistic streaming tensor decomposition" (repository
yishuaidu/POST). The zeros that published figures were scored on are not public: folds here draw
their own.
"""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from bayesring.datasets.cache import fetch
from bayesring.types import IntArray

SHAPE = (10_000, 200, 10_000)


def load_dblp() -> IntArray:
    """Coordinates (193982, 3) of the ones: author, venue, keyword."""
    path = fetch(
        "dblp/dblp.mat",
        "9edd7cbb65256472ae817f33ac2e05c3566921d037335ffba315ff535ea456db",
        "yishuaidu/POST",
        "5f1398b20c03b4fdb947ce7a4cae78bd57772b99",
        "code/DBLP/tensor-data-large/dblp.mat",
    )
    data = loadmat(path, simplify_cells=True)["data"]
    ones = np.concatenate([data["Y"]["subs"], data["test_ind_all"]])
    return np.asarray(ones, dtype=np.int64) - 1
