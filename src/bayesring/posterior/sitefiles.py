"""Places of labels on a map in a model file: names in its description, numbers in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import Labels
from bayesring.data.sites import MOST_COORDINATES, Sites, is_on_globe
from bayesring.wording import shorten


def sites_to_plain(labels: Labels) -> dict[str, Any]:
    """By the number of a mode, what its places are called, and whether they are on the globe."""
    return {
        str(mode): {"names": list(own.names), "globe": own.on_globe}
        for mode, own in enumerate(labels.sites)
        if own is not None
    }


def with_sites(
    labels: Labels,
    described: Any,
    arrays: Mapping[str, NDArray[Any]],
    shape: tuple[int, ...],
) -> Labels:
    """Labels with the places that a file has, checked; older files have none."""
    if not isinstance(described, dict) or set(described) != set(arrays):
        raise ValueError("its places are not those that its description names.")
    for name, own in described.items():
        mode = int(name) if name.isdecimal() and len(name) < 3 else len(shape)
        names: Any = own.get("names") if isinstance(own, dict) else None
        globe: Any = own.get("globe") if isinstance(own, dict) else None
        right = isinstance(names, list) and all(isinstance(each, str) for each in names)
        places = arrays[name]
        right = right and type(globe) is bool and mode < len(shape) and places.ndim == 2
        if not right or places.dtype.kind != "f" or len(places) != shape[mode]:
            raise ValueError(f"its places of mode {shorten(name)} are not one row per label.")
        width = places.shape[1]
        fits = 2 <= width <= MOST_COORDINATES and len(names) in (0, width)
        sites = Sites(np.asarray(places, dtype=float), tuple(names), globe)
        if not fits or (globe and width != 2) or not is_on_globe(sites):
            raise ValueError(f"its places of mode {shorten(name)} cannot be such.")
        labels = labels.with_sites(mode, sites)
    return labels
