"""Figures of every kind of value: measured once, and shown as they were measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bayesring.likelihoods import Gaussian, NegativeBinomial
from paper import kind_figures as kinds
from paper.count_figures import chance_up_to
from paper.kinds_page import SAID


def test_what_is_known_is_not_measured_again(tmp_path, monkeypatch):
    asked = []
    jobs = {name: lambda name=name: asked.append(name) or {"one": {"RMSE": 1.0}} for name in "ab"}
    monkeypatch.setattr(kinds, "JOBS", jobs)
    monkeypatch.setattr(kinds, "MODELS", tmp_path / "models")
    kinds.MODELS.mkdir()
    path = tmp_path / "kinds.json"
    kinds.run(path, iter("a"), again=False)
    known = kinds.run(path, iter("ab"), again=False)
    assert asked == ["a", "b"]
    assert known == {name: {"one": {"RMSE": 1.0}} for name in "ab"}
    assert kinds.MODELS.exists()
    kinds.run(path, iter("a"), again=True)
    assert asked == ["a", "b", "a"]
    assert not kinds.MODELS.exists(), "fits of older code are not taken for this one's"


def test_the_page_shows_the_committed_figures():
    known = kinds.read(kinds.FILE)
    assert kinds.PAGE.read_text() == kinds.page(known)
    assert set(known) <= set(kinds.JOBS) == set(SAID)


def ring_of(likelihood, fitted, nuisance):
    """A stand-in for a fitted ring: one draw, the same everywhere."""
    posterior = SimpleNamespace(
        likelihood=likelihood,
        location=0.0,
        scale=1.0,
        nuisance=nuisance[None],
        entries=lambda cells: np.full((1, len(cells)), fitted),
    )
    return SimpleNamespace(posterior_=posterior)


@pytest.mark.parametrize("logs", [False, True])
def test_chances_of_whole_numbers_under_normal_noise(logs):
    y, cells = np.array([-1.0, 0.0, 2.0]), np.zeros((3, 2), dtype=int)
    ring = ring_of(Gaussian(), 1.0, np.array([4.0]))
    found = chance_up_to(ring, cells, y, logs)
    ends = np.log1p([0.5, 2.5]) if logs else np.array([0.5, 2.5])
    np.testing.assert_allclose(found, [0.0, *stats.norm.cdf(ends, 1.0, 0.5)], atol=1e-12)


def test_chances_of_counts():
    y, cells = np.array([-1.0, 0.0, 2.0]), np.zeros((3, 2), dtype=int)
    ring = ring_of(NegativeBinomial(), 0.0, np.array([3.0, np.log(2.0), *[3.0] * 6]))
    exact = stats.nbinom.cdf([0, 2], 3.0, 3.0 / 5.0)
    np.testing.assert_allclose(chance_up_to(ring, cells, y, False), [0.0, *exact], atol=1e-9)
