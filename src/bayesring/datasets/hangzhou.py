"""Hangzhou: passengers of metro stations, 80 stations x 25 days x 108 slots."""

from __future__ import annotations

import numpy as np

from bayesring.datasets.dataset import Dataset, Description, numbered
from bayesring.datasets.traffic import LICENCE, PREPARED, PROTOCOL, load_traffic, source

STATIONS, DAYS, SLOTS = 80, 25, 108
FIRST_DAY, FIRST_HOUR = np.datetime64("2019-01-01"), 6.0
"""As its description states; the file itself has no dates."""
DESCRIPTION = Description(
    name="Hangzhou",
    content="Passengers in ten minutes, station x day x slot, 6:00 to 24:00; 3 % absent.",
    source=source("Hangzhou"),
    licence=LICENCE,
    citation="Hangzhou metro passenger flow data set, doi:10.5281/zenodo.3145403; " + PREPARED,
    protocol=PROTOCOL,
)


def load_hangzhou() -> Dataset:
    """Passengers (80, 25, 108): station, day, slot of ten minutes (as an hour of the day).

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_hangzhou
    >>> load_hangzhou().shape
    (80, 25, 108)
    """
    order = {"day": FIRST_DAY + np.arange(DAYS), "slot": FIRST_HOUR + np.arange(SLOTS) / 6}
    return load_traffic(
        "Hangzhou",
        "55891c7e102a8352f3c8022f79bc588ae77a68625a565d79ed8aaadbf8e9202d",
        DESCRIPTION,
        numbered(station=STATIONS) | order,
        order,
    )
