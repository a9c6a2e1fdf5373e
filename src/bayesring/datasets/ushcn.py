"""USHCN: monthly climate series, 17 variables x 125 places x 156 months, standardised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from bayesring.datasets.cache import address, fetch
from bayesring.datasets.dataset import Dataset, Description, whole
from bayesring.datasets.splits import random_fold, random_split

FIRST_MONTH, N_MONTHS = np.datetime64("1990-01"), 156
"""Months covered by the source of the series, 1990 to 2002; the file itself has no dates."""
SHARE = 0.1
FILE = (
    "taozerui/scalable_btr",
    "197ea39a9bf7ab0a530363d022d61e3f2b066c7d",
    "data/USHCN.mat",
)
DESCRIPTION = Description(
    name="USHCN",
    content="Monthly climate series, variable x place x month, each standardised.",
    source=address(*FILE),
    licence="None stated by the repository; the station records come from a US agency.",
    citation=(
        "United States Historical Climatology Network, National Centers for Environmental "
        "Information, NOAA; as prepared for Tao, Tanaka and Zhao (2023), Scalable Bayesian tensor "
        "ring factorization for multiway data analysis, ICONIP."
    ),
    protocol="Five seeds: 10 % of the cells for training, all others for testing. RMSE, MAE.",
)


def load_ushcn() -> Dataset:
    """Standardised values (17, 125, 156): variable, place, month.

    Positions of places are their latitudes and longitudes.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_ushcn
    >>> load_ushcn().shape
    (17, 125, 156)
    """
    content = _content()
    series = content["data_series"]
    tensor = np.stack([series[variable][0] for variable in range(len(series))])
    variables = np.array([str(name[0]) for name in content["variable_names"][0]])
    where = np.asarray(content["locations"], dtype=float)
    places = np.array([f"{north}N {-east}W" for north, east in content["locations"]])
    months = (FIRST_MONTH + np.arange(N_MONTHS)).astype("M8[D]")
    return Dataset(
        DESCRIPTION,
        tensor.shape,
        {"variable": variables, "place": places, "month": months},
        lambda: whole(tensor),
        lambda seed: random_fold(tensor, SHARE, seed),
        {"place": where, "month": np.arange(float(N_MONTHS))},
    )


def ushcn_table(share: float = 1.0, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Columns of a long table of variable, place, month and value, with a share of values known.

    The others are NaN. The known values are the ones that `random_split` draws for training.

    Returns
    -------
    dict of arrays
        Columns by name, for ``pandas.DataFrame`` for example.

    Examples
    --------
    >>> from bayesring.datasets import ushcn_table
    >>> list(ushcn_table(share=0.1))
    ['variable', 'place', 'month', 'value']
    """
    data = load_ushcn()
    known = np.zeros(data.shape, dtype=bool)
    known[tuple(random_split(data.shape, share, seed).train.T)] = True
    columns = {
        name: levels[places]
        for (name, levels), places in zip(
            data.labels.items(), data.observations.coords.T, strict=True
        )
    }
    return columns | {"value": np.where(known.ravel(), data.observations.values, np.nan)}


def _content() -> dict[str, Any]:
    path = fetch(
        "ushcn/USHCN.mat",
        "67a48fc1dd6077d650aa54d9795d0a6f3dc0756efebbfc4d722f47b61f9ae967",
        *FILE,
    )
    return dict(loadmat(path))
