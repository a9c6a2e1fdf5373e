"""Chains of the rank study that start at the truth."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bayesring.model import ring
from paper import rank_from_truth as study


def test_the_start_is_the_truth():
    made, state, _ = study.table(30, 1, "truth")
    hidden = made.hidden()
    found = ring.entries(ring.weighted(state.cores, state.weights), hidden.coords)
    assert np.sqrt(np.mean((found - hidden.values) ** 2)) < 0.05
    _, other, _ = study.table(30, 1, "random")
    found = ring.entries(ring.weighted(other.cores, other.weights), hidden.coords)
    assert np.sqrt(np.mean((found - hidden.values) ** 2)) > 0.9


def test_a_few_scans_from_the_truth_stay_there():
    assert study.hidden_error(30, 0, "truth", 8) < 0.2
    assert study.hidden_error(30, 0, "random", 8) > 0.8
    assert study.kept_rank(30, 0, 10) == 0.0


@pytest.mark.parametrize("known", [{}, {"10": {"truth": 0.99, "random": 1.0, "rank error": 0.8}}])
def test_the_table_shows_what_is_known(tmp_path, monkeypatch, known):
    monkeypatch.setattr(study, "FILE", tmp_path / "found.json")
    if known:
        study.FILE.write_text(json.dumps(known))
    assert ("| 10 | 0.99 | 1.0 | 0.8 |" in study.shown()) == bool(known)
