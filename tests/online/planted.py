"""Planted data for online EM: a ring with a mean slice, its noise known."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from bayesring import TensorRing
from bayesring.model import ring
from tests.models import random_coords

SETTINGS = {
    "inference": "online-em",
    "chains": 2,
    "draws": 40,
    "epochs": 40,
    "random_state": 3,
    "progress": False,
    "n_jobs": 1,
}
SHAPE = (16, 12, 10)


def planted(rng, n, shape=SHAPE, rank=2, noise=0.2, steep=None):
    """Coordinates, values and entries; binary with log odds `steep` times the entries."""
    cores = [
        0.7 * rng.standard_normal((size, 1, rank, rank)) + 0.6 * np.eye(rank) for size in shape
    ]
    coords = random_coords(rng, shape, n)
    f = ring.entries(cores, coords)
    f = (f - f.mean()) / f.std()
    if steep is None:
        return coords, 50.0 + 8.0 * (f + noise * rng.standard_normal(n)), 50.0 + 8.0 * f
    return coords, (rng.random(n) < expit(steep * f)).astype(float), expit(steep * f)


def make(rank=3, **changes):
    return TensorRing(rank, **{**SETTINGS, **changes})


def rms(gaps):
    return float(np.sqrt(np.mean(np.square(gaps))))
