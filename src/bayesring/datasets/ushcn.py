"""USHCN: monthly climate series, 17 variables x 125 places x 156 months, standardised per series.

From the United States Historical Climatology Network, as prepared for the tensor ring paper
(repository taozerui/scalable_btr).
"""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from bayesring.datasets.cache import fetch
from bayesring.types import FloatArray


def load_ushcn() -> FloatArray:
    """Standardised values (17, 125, 156): variable, place, month."""
    path = fetch(
        "ushcn/USHCN.mat",
        "67a48fc1dd6077d650aa54d9795d0a6f3dc0756efebbfc4d722f47b61f9ae967",
        "taozerui/scalable_btr",
        "197ea39a9bf7ab0a530363d022d61e3f2b066c7d",
        "data/USHCN.mat",
    )
    series = loadmat(path)["data_series"]
    return np.stack([series[variable][0] for variable in range(len(series))])
