"""The tensor train: entries, gradient, recovery."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.model import ring
from paper.baselines import TensorTrainWOPT
from paper.baselines.sorted_views import lay_out
from paper.baselines.tensor_train import initial_cores
from paper.kernels import train
from tests.models import random_coords
from tests.paper.baselines.reference_models import planted, train_entries

CASES = [((4, 5), (3,)), ((4, 3, 5), (2, 3)), ((3, 2, 4, 3), (1, 4, 2))]


@pytest.mark.parametrize(("shape", "rank"), CASES, ids=str)
def test_entries_and_gradient(shape, rank, rng):
    """Gradient by central differences, entry by entry; duplicates and unseen slices included."""
    bonds = np.array([1, *rank, 1])
    coords = random_coords(rng, tuple(size - 1 for size in shape), 15)
    coords[4] = coords[2]
    values = rng.standard_normal(15)
    columns = np.ascontiguousarray(coords.T)
    cores = [10 * core for core in initial_cores(rng, shape, bonds)]
    flat, starts = lay_out(cores)
    expected = ring.entries([core[:, None] for core in cores], coords)
    found = train.train_entries(flat, starts, bonds, columns)
    np.testing.assert_allclose(found, expected, rtol=1e-12)

    def loss(point):
        return train.train_loss(point, starts, bonds, columns, values, np.zeros_like(point))

    assert loss(flat) == pytest.approx(0.5 * np.sum((values - expected) ** 2))
    gradient = np.zeros_like(flat)
    train.train_loss(flat, starts, bonds, columns, values, gradient)
    steps = 1e-6 * np.eye(flat.size)
    differences = [(loss(flat + step) - loss(flat - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def test_planted_train_is_recovered(seed):
    (coords, values), (cells, truth) = planted(seed, (14, 15, 16), 1200, train_entries, noise=0.01)
    model = TensorTrainWOPT(2, max_iter=2000, tol=1e-12, random_state=seed, progress=False)
    predicted = model.fit(coords, values).predict(cells)
    assert np.sqrt(np.mean((predicted - truth) ** 2)) < 0.05
    assert np.all(np.diff(model.losses_) <= 0)
    assert model.rank_ == (2, 2)
    assert [core.shape for core in model.cores_] == [(14, 1, 2), (15, 2, 2), (16, 2, 1)]


def test_ranks_of_the_inner_bonds(rng):
    coords, values = rng.integers(0, 4, (30, 3)), rng.standard_normal(30)
    model = TensorTrainWOPT((2, 3), random_state=0, progress=False)
    assert model.fit(coords, values).rank_ == (2, 3)
    with pytest.raises(ValueError, match="rank has 3 numbers, but a train over 3 modes has 2"):
        model.set_params(rank=(2, 3, 4)).fit(coords, values)
