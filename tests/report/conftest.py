"""Small fitted models that the tests of reports share."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring import TensorRing
from bayesring.data.labels import Labels
from bayesring.data.observations import HeldOut, Observations

SHAPE = (5, 12, 9)
LABELS = Labels(
    ("kind", "place", "month"),
    (
        np.array(["rain", "sun", "<b>&fog", "wind", "snow"]),
        None,
        np.arange("2001-01", "2001-10", dtype="M8[M]").astype("M8[D]"),
    ),
    "index",
)
QUICK = {"warmup": 20, "draws": 20, "chains": 2, "random_state": 0, "progress": False, "n_jobs": 1}


def truth(coords):
    i, j, k = coords.T
    return 3 + np.sin(i + 0.7 * j) + 0.3 * k


def some_cells(rng, n):
    """Coordinates with a few repeated cells."""
    return np.stack([rng.integers(0, size, n) for size in SHAPE], axis=1)


def make_held_out(rng, is_binary):
    coords = some_cells(rng, 400)
    mean, noise = truth(coords), 0.2 * rng.standard_normal(400)
    if not is_binary:
        return HeldOut(coords, mean + noise, mean, np.full(400, 0.2))
    probability = 1 / (1 + np.exp(-2 * (mean - 4)))
    tosses = (rng.random(400) < probability) * 1.0
    return HeldOut(coords, tosses, probability, np.sqrt(probability * (1 - probability)))


def make_ring(is_binary):
    rng = np.random.default_rng(1)
    coords = some_cells(rng, 200)
    values = truth(coords) + 0.2 * rng.standard_normal(200)
    if is_binary:
        values = (values > 4) * 1.0
    ring = TensorRing(2, likelihood="bernoulli" if is_binary else "gaussian", **QUICK)
    ring.fit_observations(Observations(coords, values, SHAPE), LABELS, None)
    ring.held_out_ = make_held_out(rng, is_binary)
    return ring


@pytest.fixture(scope="session")
def real_ring():
    """Real values, labels of several kinds, held-out predictions."""
    return make_ring(False)


@pytest.fixture(scope="session")
def binary_ring():
    """The same with zeros and ones."""
    return make_ring(True)


@pytest.fixture(params=["real", "binary"])
def ring(request):
    """Both kinds in turn."""
    return request.getfixturevalue(f"{request.param}_ring")
