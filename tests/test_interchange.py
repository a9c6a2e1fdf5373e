"""TensorLy's own reconstruction gives our entries; suggestions are where the error bars are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tensorly.tr_tensor import tr_to_tensor

from bayesring import TensorRing, load
from bayesring.posterior import suggest as suggestion
from tests.models import random_coords

QUICK = {"rank": (2, 3, 1), "warmup": 10, "draws": 15, "chains": 2, "progress": False}
SHAPE = (4, 5, 6)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = random_coords(rng, SHAPE, 60)
    return X, 100 + 7 * rng.standard_normal(60)


@pytest.fixture(scope="module")
def ring(data):
    return TensorRing(shape=SHAPE, random_state=0, **QUICK).fit(*data)


@pytest.mark.parametrize("draw", [0, 14, 15, 29])
def test_tensorly_reconstructs_every_draw_in_the_units_of_the_data(ring, draw):
    tensor = ring.to_tensorly(draw)
    assert tensor.rank == (2, 3, 4, 2)
    cells = np.argwhere(np.ones(SHAPE, dtype=bool))
    posterior = ring.posterior_
    expected = posterior.location + posterior.scale * posterior.entries(cells)[draw]
    np.testing.assert_allclose(np.asarray(tr_to_tensor(tensor)).ravel(), expected, rtol=1e-10)


def test_the_mean_of_all_draws_is_the_prediction(ring):
    draws = [tr_to_tensor(ring.to_tensorly(draw)) for draw in range(ring.posterior_.n_draws)]
    np.testing.assert_allclose(np.mean(draws, axis=0), ring.predict_tensor(), rtol=1e-9)


def test_binary_rings_give_log_odds_at_their_own_rank(data):
    X, y = data
    binary = TensorRing(shape=SHAPE, likelihood="bernoulli", random_state=0, **QUICK)
    binary.fit(X, y > 100)
    tensor = binary.to_tensorly(3)
    assert tensor.rank == (1, 2, 3, 1)
    odds = binary.posterior_.entries(np.array([[1, 2, 3]]))[3, 0]
    np.testing.assert_allclose(np.asarray(tr_to_tensor(tensor))[1, 2, 3], odds, rtol=1e-10)


@pytest.mark.parametrize("draw", [-1, 30])
def test_draws_that_are_not_there(ring, draw):
    with pytest.raises(IndexError, match=f"draw must be from 0 to 29, got {draw}"):
        ring.to_tensorly(draw)


def test_suggestions_are_the_unobserved_cells_with_the_largest_error_bars(ring, data):
    found = ring.suggest(7)
    assert found.shape == (7, 3)
    cells = np.argwhere(np.ones(SHAPE, dtype=bool))
    observed = {tuple(row) for row in data[0].tolist()}
    free = np.array([cell for cell in cells.tolist() if tuple(cell) not in observed])
    _, std = ring.predict(free, return_std=True, noise=False)
    np.testing.assert_array_equal(found, free[np.argsort(-std)[:7]])
    everything = ring.suggest(1000)  # also those that are known best
    assert {tuple(row) for row in everything.tolist()} == {tuple(row) for row in free.tolist()}
    assert len(everything) == len(free)


def test_candidates_limit_the_suggestions(ring, data):
    some = np.array([[0, 0, 0], [3, 4, 5], [0, 0, 0], data[0][0], [2, 2, 2]])
    found = ring.suggest(10, candidates=some)
    assert {tuple(row) for row in found.tolist()} <= {tuple(row) for row in some.tolist()}
    assert tuple(data[0][0]) not in {tuple(row) for row in found.tolist()}
    assert len(found) == len({tuple(row) for row in found.tolist()})


def test_large_tensors_are_searched_in_part(ring, monkeypatch):
    monkeypatch.setattr(suggestion, "MOST_CANDIDATES", 50)
    found = ring.suggest(5)
    np.testing.assert_array_equal(found, ring.suggest(5))
    assert found.shape == (5, 3)
    assert len(suggestion.candidate_cells(SHAPE, None, 0)) <= 50


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_suggestions_for_tables_carry_the_labels(data, kind, tmp_path):
    X, y = data
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2020-02-01"], dtype="M8[us]")
    table = kind({"day": days[X[:, 0]], "b": X[:, 1], "c": X[:, 2] * 10, "t": y})
    ring = TensorRing(random_state=0, order=None, **QUICK)
    ring.fit(table, modes=["day", "b", "c"], value="t")
    ring.save(tmp_path / "model.ring")
    found = load(tmp_path / "model.ring").suggest(4)
    assert type(found) is type(table)
    assert list(found.columns) == ["day", "b", "c", "std"]
    plain = TensorRing(shape=SHAPE, random_state=0, **QUICK).fit(X, y).suggest(4)
    np.testing.assert_array_equal(np.array(found["c"]), plain[:, 2] * 10)
    np.testing.assert_array_equal(
        np.array(found["day"]).astype("M8[D]"), days[plain[:, 0]].astype("M8[D]")
    )
    some = found[["day", "b", "c"]][1:3]
    again = ring.suggest(1, candidates=some)
    assert type(again) is type(table)
    assert again["std"][1 if kind is pd.DataFrame else 0] == pytest.approx(found["std"][1])
