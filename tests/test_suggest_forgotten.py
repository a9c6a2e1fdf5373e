"""Cells to measure next, of models that do not know which cells were measured."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, load

CELLS = np.argwhere(np.ones((4, 4, 4)))
QUICK = {"inference": "online-em", "rank": 1, "epochs": 1, "draws": 2}
FORGOTTEN = "cells that were observed may be among those suggested.* as candidates=.$"


@pytest.fixture(scope="module")
def table():
    values = np.random.default_rng(0).normal(size=64)
    return pd.DataFrame(CELLS, columns=list("abc")).assign(v=values)[:62]


@pytest.fixture(scope="module")
def of_file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "x.parquet"
    table.to_parquet(path)
    ring = TensorRing(random_state=0, progress=False, **QUICK)
    return ring.fit(path, modes=["a", "b", "c"], value="v")


def test_that_observed_cells_may_be_suggested_is_said(of_file, tmp_path):
    of_file.save(tmp_path / "model.ring")
    for ring in (of_file, load(tmp_path / "model.ring")):
        with pytest.warns(UserWarning, match=FORGOTTEN) as caught:
            found = ring.suggest(5)
        assert len(found) == 5
        assert [own.filename for own in caught] == [__file__]


def test_candidates_are_free_by_themselves(of_file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = of_file.suggest(5, candidates=CELLS[62:])
    assert sorted(found.tolist()) == CELLS[62:].tolist()


def test_models_that_know_their_observations_say_nothing(table):
    ring = TensorRing(random_state=0, progress=False, **QUICK)
    ring.fit(table[["a", "b", "c"]].to_numpy(), table["v"].to_numpy(), shape=(4, 4, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ring.suggest(5)
    assert sorted(found.tolist()) == CELLS[62:].tolist()
