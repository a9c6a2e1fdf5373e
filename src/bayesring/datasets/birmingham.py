"""Birmingham: cars in car parks, 30 car parks x 77 days x 18 half-hours."""

from __future__ import annotations

import numpy as np

from bayesring.datasets.dataset import Dataset, Description, numbered
from bayesring.datasets.traffic import LICENCE, PREPARED, PROTOCOL, load_traffic, source

PARKS, DAYS, HALF_HOURS = 30, 77, 18
FIRST_DAY, FIRST_HOUR = np.datetime64("2016-10-04"), 8.0
"""As its description states; the file itself has no dates."""
DESCRIPTION = Description(
    name="Birmingham",
    content="Occupied places of car parks, car park x day x half-hour, 8:00 to 16:30; 15 % absent.",
    source=source("Birmingham"),
    licence=LICENCE,
    citation=(
        "Stolfi, Alba and Yao (2017), Predicting car park occupancy rates in smart cities, "
        "Smart-CT; Parking Birmingham, UCI Machine Learning Repository; " + PREPARED
    ),
    protocol=PROTOCOL,
)


def load_birmingham() -> Dataset:
    """Occupied places (30, 77, 18): car park, day, half-hour (as an hour of the day).

    Returns
    -------
    Dataset
        Observations, labels, folds and description.

    Examples
    --------
    >>> from bayesring.datasets import load_birmingham
    >>> load_birmingham().shape
    (30, 77, 18)
    """
    order = {
        "day": FIRST_DAY + np.arange(DAYS),
        "half_hour": FIRST_HOUR + np.arange(HALF_HOURS) / 2,
    }
    return load_traffic(
        "Birmingham",
        "ebb2e47871294cb143be3549d1f618062b5327b2da7251b1bdafc145880b5e4a",
        DESCRIPTION,
        numbered(park=PARKS) | order,
        order,
    )
