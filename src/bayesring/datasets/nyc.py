"""NYC: taxi trips between zones of New York, 30 origins x 30 destinations x 1,464 hours."""

from __future__ import annotations

import numpy as np

from bayesring.datasets.dataset import Dataset, Description, numbered
from bayesring.datasets.traffic import LICENCE, PREPARED, PROTOCOL, load_traffic, source

ZONES, HOURS, HOURS_OF_DAY = 30, 1464, 24
FIRST_HOUR = np.datetime64("2018-05-01T00")
"""As its description states; the file itself has no dates."""
DESCRIPTION = Description(
    name="NYC taxi",
    content="Taxi trips in an hour, origin x destination x hour of May and June; 26 % are zero.",
    source=source("NYC"),
    licence=LICENCE,
    citation="Trip record data of 2018, New York City Taxi and Limousine Commission; " + PREPARED,
    protocol=PROTOCOL,
)


def load_nyc() -> Dataset:
    """Trips (30, 30, 1464): origin, destination, hour.

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_nyc
    >>> load_nyc().shape
    (30, 30, 1464)
    """
    order = {"hour": FIRST_HOUR + np.arange(HOURS)}
    return load_traffic(
        "NYC",
        "3514ad3922083176215590c4a59563464833b2d889764199de3913f71fff47be",
        DESCRIPTION,
        numbered(origin=ZONES, destination=ZONES) | order,
        order,
        HOURS_OF_DAY,
    )
