"""Whatever interrupts `partial_fit`, or a fit anew, leaves the model as it was."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from bayesring.data.batches import ArrayRows
from bayesring.data.parquet import FileRows
from bayesring.engine.protocol import Engine
from bayesring.infer import online
from tests.online.planted import make, planted

MODES = ["who", "when", "what"]
NAMES = np.array([f"station {i:02d}" for i in range(20)])


class Broken:
    """A function that fails in its call number `at`, counted from 1, and counts its calls."""

    def __init__(self, function, error, at=None):
        self.function, self.error, self.at, self.calls = function, error, at, 0

    def __call__(self, *arguments, **named):
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.function(*arguments, **named)


PLACES = {
    "steps": (Engine, "learn", KeyboardInterrupt()),
    "curvature": (Engine, "add_gradient", KeyboardInterrupt()),
    "chains": (Engine, "draw", KeyboardInterrupt()),
    "draws": (online, "draw_gaps", KeyboardInterrupt()),
    "stream": (ArrayRows, "chunks", OSError("cannot be read")),
}
"""Where something may fail, and how."""


def broken(monkeypatch, place, at=None):
    home, name, error = PLACES[place]
    function = Broken(getattr(home, name), error, at)
    monkeypatch.setattr(home, name, lambda *given, **named: function(*given, **named))
    return function


@pytest.fixture(scope="module")
def tables():
    """A table to begin with, and one that brings new labels in two modes."""
    X, y, _ = planted(np.random.default_rng(7), 700)
    table = pd.DataFrame({"who": NAMES[X[:, 0]], "when": X[:, 1], "what": X[:, 2], "seen": y})
    early = (X[:, 0] < 12) & (X[:, 1] < 10)
    return table[early], table[~early][:90]


@pytest.fixture(scope="module")
def begun(tables):
    return make(2, chains=2, epochs=2).fit(tables[0], modes=MODES, value="seen")


def state_of(model, cells, path):
    """All that can be seen of a model, its file included."""
    model.save(path)
    levels = tuple(tuple(each) for each in model.labels_.levels)
    seen = model.n_observations_, model.shape_, levels, model.observed_ is None
    return seen, model.predict_table(cells).to_numpy(dtype=object).tolist(), path.read_bytes()


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    "place",
    [each if each == "chains" else pytest.param(each, marks=pytest.mark.ci) for each in PLACES],
)
def test_partial_fit_is_all_or_nothing(tables, begun, tmp_path, monkeypatch, place, n_jobs):
    """Seen to fail: labels, or the number of observations, taken over before the draws are made;
    cores moved in the estimates that the model holds.
    """
    first, more = tables
    path, model = tmp_path / "model.ring", copy.deepcopy(begun).set_params(n_jobs=n_jobs)
    if place == "draws":
        model.observed_ = None  # then they lie around the estimates
    before = state_of(model, first, path)
    with monkeypatch.context() as patch:
        counted = broken(patch, place)
        expected = state_of(copy.deepcopy(model).partial_fit(more), more, path)
    last = counted.calls
    assert last >= 2  # two rings at least
    for at in sorted({1, 2, last // 2, last}):
        with monkeypatch.context() as patch:
            broken(patch, place, at)
            with pytest.raises(type(PLACES[place][2])):
                model.partial_fit(more)
        assert state_of(model, first, path) == before
    assert state_of(model.partial_fit(more), more, path) == expected
    assert expected[0] != before[0]


@pytest.mark.parametrize(
    ("place", "source"),
    [
        (place, source)
        for place in PLACES
        for source in ("memory", "files")
        if (place, source) not in [("draws", "memory"), ("chains", "files")]
    ],
)
def test_a_fit_anew_is_all_or_nothing(tables, begun, tmp_path, monkeypatch, place, source):
    """Unless rows end early after some were learned from: what was learned is kept then."""
    first, more = tables
    path, model = tmp_path / "model.ring", copy.deepcopy(begun)
    before, given = state_of(model, first, path), more
    if source == "files":
        given = tmp_path / "more.parquet"
        more.to_parquet(given)
    with monkeypatch.context() as patch:
        if place == "stream":
            for rows in (ArrayRows, FileRows):
                patch.setattr(rows, "chunks", failing)
        else:
            broken(patch, place, 1)
        with pytest.raises(type(PLACES[place][2])):
            model.fit(given, modes=MODES, value="seen")
    assert state_of(model, first, path) == before
    model.fit(first, modes=MODES, value="seen")
    assert state_of(model, first, path) == before


def failing(*_):
    raise OSError("cannot be read")
    yield
