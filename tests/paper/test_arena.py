"""The arena: trivial methods do what they say, cells are kept, and the page follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from bayesring.datasets import Dataset, Description
from bayesring.datasets.dataset import numbered, whole
from bayesring.datasets.splits import Fold
from bayesring.model.types import Observations
from paper.arena import trivial
from paper.arena.arena_cells import STUDY, JsonStore, make_cells, work
from paper.arena.arena_page import page
from paper.arena.contests import CONTESTS, hour_of_week, month_of_year, together, weekday
from paper.results_store import COMMITTED, ROOT, CellKey, Provenance

SHAPE = (3, 6, 5)


def known_part(tensor, hidden) -> tuple[trivial.Known, np.ndarray]:
    """What is known of a tensor, and the coordinates of what is hidden."""
    order = {"day": np.datetime64("2024-01-01") + np.arange(6), "slot": np.arange(5.0)}
    data = Dataset(
        Description(*["none"] * 6),
        SHAPE,
        numbered(series=3) | order,
        lambda: whole(tensor),
        lambda fold: Fold(whole(tensor), whole(tensor)),
        order,
    )
    coords = np.argwhere(~hidden)
    return trivial.Known(Observations(coords, tensor[~hidden], SHAPE), data), np.argwhere(hidden)


@pytest.fixture
def hidden(rng):
    return rng.random(SHAPE) < 0.3


def test_main_effects_are_found(hidden):
    tensor = 100.0 * np.add.outer(np.add.outer(np.arange(3), np.arange(6) ** 2), np.arange(5))
    known, coords = known_part(tensor, hidden)
    guess = trivial.additive(known, coords).mean
    assert np.abs(guess - tensor[hidden]).mean() < 0.15 * tensor.std()


@pytest.mark.parametrize(("name", "mode"), [("day", 1), ("slot", 2)])
def test_lines_are_those_of_numpy(rng, hidden, name, mode):
    tensor = rng.random(SHAPE)
    known, coords = known_part(tensor, hidden)
    for cell, value in zip(coords, trivial.along(known, coords, name).mean, strict=True):
        fibre = tuple(slice(None) if each == mode else at for each, at in enumerate(cell))
        seen = np.flatnonzero(~hidden[fibre])
        if len(seen):
            assert value == pytest.approx(np.interp(cell[mode], seen, tensor[fibre][seen]))


def test_a_series_without_values_gets_main_effects(rng):
    tensor, hidden = rng.random(SHAPE), np.zeros(SHAPE, dtype=bool)
    hidden[1, :, 2] = True
    known, coords = known_part(tensor, hidden)
    expected = trivial.additive(known, coords).mean
    np.testing.assert_allclose(trivial.along(known, coords, "day").mean, expected)


def test_planes_are_flat(hidden):
    flat = np.add.outer(2.0 * np.arange(6), -np.arange(5))
    tensor = np.stack([flat, flat + 1, flat + 2])
    hidden[:, [0, 0, -1, -1], [0, -1, 0, -1]] = False
    known, coords = known_part(tensor, hidden)
    guess = trivial.plane(known, coords, ("day", "slot")).mean
    np.testing.assert_allclose(guess, tensor[hidden], atol=0.02)


def test_groups_have_means_medians_and_something_coarser(rng):
    tensor, hidden = rng.random(SHAPE), np.zeros(SHAPE, dtype=bool)
    hidden[0, 0, 0] = True
    known, coords = known_part(tensor, hidden)
    for recodings in ([{"day": together}], [{"day": weekday}, {"day": together}]):
        guess = trivial.grouped(known, coords, recodings)
        assert guess.mean == pytest.approx(tensor[0, 1:, 0].mean())
        assert guess.median == pytest.approx(np.median(tensor[0, 1:, 0]))


def test_neighbours_see_what_slices_share(rng):
    pattern = np.array([1.0, -1.0, 1.0])[:, None, None]
    tensor = pattern * rng.normal(size=SHAPE[1:])
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[0, :, 2] = True
    known, coords = known_part(tensor, hidden)
    errors = [
        np.abs(each - tensor[hidden]).mean()
        for each in (
            trivial.neighbours(known, coords, "series").mean,
            trivial.additive(known, coords).mean,
        )
    ]
    assert errors[0] < errors[1]


def test_calendars():
    days = np.array(["2018-05-01", "2018-05-06"], dtype="M8[D]")
    assert weekday(days).tolist() == [1, 6]
    assert month_of_year(days).tolist() == [4, 4]
    assert hour_of_week(np.array(["2018-05-01T03"], dtype="M8[h]")).tolist() == [27]


def test_cells_have_names_of_their_own():
    names = [cell.name for cell in make_cells()]
    assert len(names) == len(set(names))
    for name, contest in CONTESTS.items():
        assert all(len(texts) == len(contest.columns(name)) for texts in contest.printed.values())


def test_cells_are_kept(tmp_path):
    store, key = JsonStore(tmp_path / "new"), CellKey("NYC RM 40", "mean", "RM 40")
    assert store.load(STUDY, key) is None
    result = {"RMSE": 1.5, "MAPE": 0.25, "seconds": 0.1}
    store.keep(STUDY, key, result, Provenance("commit", "code"))
    store.keep(STUDY, key._replace(method="slot"), result, Provenance("commit", "code"))
    assert JsonStore(tmp_path / "new").load(STUDY, key)["RMSE"] == 1.5
    assert "| mean | **1.500** / **0.250** | - / - | - / - |  | 0.1 |" in page(store)


def test_a_fit_is_scored(data_folder):
    found = work("Server room", 0, "bayesring", quick=True, threads=1)
    assert found["RMSE"] < 0.9
    assert 0.7 < found["coverage"] <= 1


def test_linear_interpolation_scores_as_known(data_folder):
    found = [work("Server room", fold, "along time", False, 1)["RMSE"] for fold in range(5)]
    assert np.mean(found) == pytest.approx(0.0916, abs=5e-5)


def test_the_committed_page_follows_from_the_committed_cells():
    written = (ROOT / "docs" / "arena.md").read_text(encoding="utf-8")
    assert written == page(JsonStore(ROOT / COMMITTED))
