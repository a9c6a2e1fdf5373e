"""Colours that colour-blind readers can distinguish, for both the page and matplotlib."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayesring.model.types import FloatArray

LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""The Okabe-Ito palette."""
VALUES, ERRORS, SHARES, CORRELATIONS = "viridis", "magma", "cividis", "RdBu_r"
"""Names of the colour maps; that of correlations is white at zero."""
ANCHORS = {
    "viridis": "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725",
    "magma": "000004 140e36 3b0f70 641a80 8c2981 b73779 de4968 f7705c fe9f6d fecf92 fcfdbf",
    "cividis": "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
    "RdBu_r": "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f",
}
"""Evenly spaced points of matplotlib's maps; colours in between are interpolated."""


def anchors(name: str) -> list[list[int]]:
    """Red, green, blue (0 to 255) of the points of a colour map."""
    return [list(bytes.fromhex(code)) for code in ANCHORS[name].split()]


def paint(shares: FloatArray, name: str) -> NDArray[np.uint8]:
    """Colours (..., 3) of numbers between 0 and 1."""
    points = np.array(anchors(name), dtype=float)
    places = np.clip(shares, 0.0, 1.0) * (len(points) - 1)
    knots = np.arange(len(points))
    channels = [np.interp(places, knots, points[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)
