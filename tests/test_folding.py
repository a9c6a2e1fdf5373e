"""New labels with values of their own, folded into the kept draws."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, TensorRingClassifier, load, metrics
from bayesring.data import observations
from bayesring.engine.operations import slice_statistics
from bayesring.likelihoods import Gaussian
from bayesring.model import ring as ring_module
from bayesring.model.types import Axis, WorkingResponse
from bayesring.posterior import folding
from bayesring.posterior.folding import draw_chain
from bayesring.priors import EntryGamma, NormalWishart, Smooth
from tests.test_order import error, fit, smooth_table


def test_chains_of_slices_by_dense_algebra(rng):
    """With no noise the mean; covariance from unit noise in every direction."""
    n, size = 4, 3
    root = rng.standard_normal((size, size))
    omega = root @ root.T + np.eye(size)
    links = rng.uniform(0.1, 0.4, n - 1)
    blocks = np.stack([(1.5 + rng.random()) * omega + np.eye(size) for _ in range(n)])
    linear = rng.standard_normal((n, size))
    dense = np.zeros((n * size, n * size))
    for i in range(n):
        dense[i * size : (i + 1) * size, i * size : (i + 1) * size] = blocks[i]
    for i, link in enumerate(links):
        a, b = slice(i * size, (i + 1) * size), slice((i + 1) * size, (i + 2) * size)
        dense[a, b] = dense[b, a] = -link * omega
    mean = draw_chain(np.zeros((n, size)), blocks, linear, links, omega)
    np.testing.assert_allclose(mean.ravel(), np.linalg.solve(dense, linear.ravel()))
    units = np.eye(n * size).reshape(-1, n, size)
    columns = [draw_chain(own, blocks, linear, links, omega).ravel() for own in units]
    spread = np.stack(columns, axis=1) - mean.reshape(-1, 1)
    np.testing.assert_allclose(spread @ spread.T, np.linalg.inv(dense), atol=1e-12)


@pytest.mark.parametrize("new", [[8.0, 9.5], [0.5], [-1.0, 2.2, 2.4, 7.0, 11.0]])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_new_slices_beside_known_ones_by_dense_algebra(rng, monkeypatch, new, direction):
    """Conditional of the new slices of one dense Gaussian given the known ones."""
    x = direction * np.array([0.0, 1.0, 3.0, 3.5, 6.0])
    new = direction * np.sort(new)
    prior = Smooth().bind(Axis(5, x[:, None]))
    core = rng.standard_normal((5, 1, 2, 1))
    shared = prior._draw_shared(rng, core)
    shared = shared._replace(step=np.maximum(shared.step, 9))
    monkeypatch.setattr(Smooth, "_draw_shared", lambda *_: shared)
    length = prior.length(shared)
    for order in (np.arange(len(new)), np.arange(len(new))[::-1]):
        places = new[order]
        found = prior.beside(rng, core, Axis(len(new), places[:, None]))
        every = np.concatenate([x, places])
        between = np.exp(-np.abs(every[:, None] - every) / length)
        weights = np.linalg.solve(between[:5, :5], between[:5, 5:]).T
        own = np.linalg.inv(between[5:, 5:] - weights @ between[:5, 5:])
        links = np.zeros((len(new), len(new)))
        links[np.arange(len(new) - 1), np.arange(1, len(new))] = found.links
        np.testing.assert_allclose(np.diag(found.factors) - links - links.T, own, atol=1e-9)
        mean = shared.mean + weights @ (core.reshape(5, -1) - shared.mean)
        np.testing.assert_allclose(found.linear, own @ mean @ shared.precision, atol=1e-9)


def test_the_next_days_are_learned_from_half_of_their_cells(rng):
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    ring = fit(table[known & (day < 50)], "hierarchical", order=["day"], draws=100)
    before = ring.predict(table[day < 50][["day", "station", "hour"]])
    late = table[day >= 50]
    seen = np.arange(len(late)) % 2 == 0
    folded = ring.fold_in(late[seen].drop(columns="truth"))
    hidden = late[~seen]
    assert error(folded, hidden) < 0.5 * error(ring, hidden)
    assert 0.8 < metrics.coverage(hidden.y, *folded.predict_interval(hidden)) < 0.99
    np.testing.assert_array_equal(folded.predict(table[day < 50]), before)
    assert ring.shape_ == (50, 8, 4)
    assert folded.shape_ == (60, 8, 4)
    assert folded.n_observations_ == ring.n_observations_ + seen.sum()
    assert folded.forecast(1).day.min() == table.day.max() + pd.Timedelta(days=1)


def test_days_in_between_find_their_place(rng, tmp_path):
    """Slices, labels and observations stay in line; the folded model can be saved."""
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    gone = day.isin([7, 20, 21, 59])
    ring = fit(table[known & ~gone], "hierarchical", order=["day"])
    folded = ring.fold_in(table[known & gone].drop(columns="truth"))
    assert np.all(np.diff(folded.labels_.levels[0]) > np.timedelta64(0))
    assert np.all(np.diff(folded.prior_.modes[0].positions) > 0)
    np.testing.assert_array_equal(folded.predict(table[~gone]), ring.predict(table[~gone]))
    assert error(folded, table[gone & ~known]) < 0.3
    folded.save(tmp_path / "folded.ring")
    np.testing.assert_array_equal(
        load(tmp_path / "folded.ring").predict(table), folded.predict(table)
    )
    values = {
        tuple(row): y
        for row, y in zip(folded.observed_.coords, folded.observed_.values, strict=True)
    }
    days = list(folded.labels_.levels[0])
    for _, row in table[known & gone][:20].iterrows():
        place = (days.index(np.datetime64(row.day, "D")), int(row.station[1]), row.hour)
        assert values[place] == row.y


@pytest.mark.ci
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_new_labels_in_two_modes(rng, likelihood):
    table, known = smooth_table(rng)
    if likelihood == "bernoulli":
        table["y"] = (table.y > 0).astype(float)
    day = (table.day - table.day.min()).dt.days
    new = (day >= 55) | (table.station == "s7")
    ring = fit(table[known & ~new], "hierarchical", order=["day"], likelihood=likelihood, draws=60)
    folded = ring.fold_in(table[known & new].drop(columns="truth"))
    hidden = table[~known & new]
    truth = hidden.truth > 0
    if likelihood == "bernoulli":
        assert np.mean((folded.predict(hidden) > 0.5) == truth) > 0.75
    else:
        assert error(folded, hidden) < 0.5 * error(ring, hidden)
    again = ring.fold_in(table[known & new].drop(columns="truth"))
    np.testing.assert_array_equal(again.predict(hidden), folded.predict(hidden))


@pytest.mark.ci
def test_folding_agrees_with_a_refit(rng):
    """The posterior of a new exchangeable label, beside that of a fit to everything."""
    table, known = smooth_table(rng)
    new = table.station == "s7"
    whole = fit(table[known], "hierarchical", order=None, warmup=200, draws=200)
    part = fit(table[known & ~new], "hierarchical", order=None, warmup=200, draws=200)
    folded = part.fold_in(table[known & new].drop(columns="truth"))
    cells = table[~known & new]
    mean, std = whole.predict(cells, return_std=True)
    ours, spread = folded.predict(cells, return_std=True)
    assert np.sqrt(np.mean(((ours - mean) / std) ** 2)) < 0.5
    assert np.median(spread / std) == pytest.approx(1.0, abs=0.25)


def test_coordinates_grow(rng):
    values = np.sin(np.arange(30) / 4)[:, None, None] * (1 + rng.random((30, 5, 4)))
    coords = np.argwhere(rng.random(values.shape) < 0.7)
    old = coords[coords[:, 0] < 27]
    ring = TensorRing(1, warmup=60, draws=40, chains=1, random_state=0, progress=False)
    ring.fit(old, values[tuple(old.T)], shape=(27, 5, 4), positions={0: np.arange(27) / 2})
    new = coords[coords[:, 0] >= 27]
    folded = ring.fold_in(new, values[tuple(new.T)])
    assert folded.shape_ == (30, 5, 4)
    assert folded.prior_.modes[0].positions[-1] == 14.5
    assert np.isfinite(folded.predict_tensor()).all()


def test_what_cannot_be_folded_in(rng):
    table, known = smooth_table(rng, n_days=10)
    ring = fit(table[known], "hierarchical", order=["day"], warmup=2, draws=3)
    with pytest.raises(ValueError, match="fold_in is for rows with a label"):
        ring.fold_in(table[:5].drop(columns="truth"))
    more = table[:3].assign(station="new").drop(columns="truth")
    own = fit(table[known], EntryGamma(), warmup=2, draws=3)
    with pytest.raises(ValueError, match="EntryGamma gives every slice a prior of its own"):
        own.fold_in(more)
    plain = fit(table[known], NormalWishart(), warmup=2, draws=3)
    assert plain.fold_in(more).shape_[1] == 9
    with pytest.raises(ValueError, match="'y'"):
        plain.fold_in(more.drop(columns="y"))


def test_classes_are_those_of_the_fit(rng):
    table, known = smooth_table(rng, n_days=20)
    table["y"] = np.where(table.truth > 0, "yes", "no")
    day = (table.day - table.day.min()).dt.days
    ring = TensorRingClassifier(2, warmup=60, draws=40, chains=1, random_state=0, progress=False)
    modes = ["day", "station", "hour"]
    ring.fit(table[known & (day < 19)], modes=modes, value="y")
    late = table[day == 19]
    folded = ring.fold_in(late.drop(columns="truth"))
    assert np.mean(folded.predict(late) == late.y) > 0.8
    with pytest.raises(ValueError, match="maybe"):
        ring.fold_in(late.assign(y="maybe").drop(columns="truth"))


def test_a_mistyped_coordinate_is_refused_at_once():
    X, y = np.indices((6, 5)).reshape(2, -1).T, np.arange(30.0)
    ring = TensorRing(1, warmup=2, draws=3, chains=1, progress=False)
    ring.fit(X, y, positions={0: np.arange(6)})
    with pytest.raises(ValueError, match="the draws of a model of shape"):
        ring.fold_in([[10**9, 0]], [3.0])
    table, known = smooth_table(np.random.default_rng(0), n_days=6)
    other = fit(table[known], "hierarchical", warmup=2, draws=3)
    with pytest.raises(ValueError, match="fold_in needs at least one row with a value"):
        other.fold_in(table[:2].assign(station="new", y=np.nan).drop(columns="truth"))


def day_by_day(rng):
    """A ring of fifty days, and how to fold some part of another day into a model."""
    table, known = smooth_table(rng)
    day = (table.day - table.day.min()).dt.days
    ring = fit(table[known & (day < 50)], "hierarchical", order=["day"])

    def fold(model, number, share):
        own = table[day == number].drop(columns="truth")
        return model.fold_in(own[: int(share * len(own))]).predict(table[day == number])

    return ring, fold


@pytest.mark.parametrize("before", [[(50, 0.3)], [(51, 0.3)], [(50, 0.3), (53, 0.9)]])
def test_what_was_folded_in_before_changes_no_bits(rng, tmp_path, before):
    """Priors that are kept for the next time are those of the same label, or not used."""
    ring, fold = day_by_day(rng)
    ring.save(tmp_path / "fresh.ring")
    alone = fold(load(tmp_path / "fresh.ring"), 50, 0.6)
    for number, share in before:
        fold(ring, number, share)
    np.testing.assert_array_equal(fold(ring, 50, 0.6), alone)


def test_priors_of_a_day_are_drawn_once(rng, monkeypatch):
    ring, fold = day_by_day(rng)
    fold(ring, 50, 0.3)
    asked, whole = [], Smooth.beside
    monkeypatch.setattr(Smooth, "beside", lambda *given: asked.append(1) or whole(*given))
    fold(ring, 50, 0.6)
    assert not asked
    assert not pickle.loads(pickle.dumps(ring.posterior_)).memo
    assert not replace(ring.posterior_, scale=1.0).memo
    monkeypatch.setattr(folding, "MOST_KEPT", 0)
    fold(ring, 50, 0.6)
    assert len(asked) == ring.posterior_.n_draws


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_statistics_are_those_of_the_features(rng, mode):
    """Equation (4), with bonds that differ, two strands and weights."""
    shape, bonds, n = (4, 5, 3), (2, 3, 1), 70
    cores = [rng.standard_normal((shape[d], 2, bonds[d - 1], bonds[d])) for d in range(3)]
    weights = rng.standard_normal(2 * bonds[mode]).reshape(2, bonds[mode])
    coords = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    others = coords[:, ring_module.ring_order(mode, 3)].T.astype(np.int32).copy()
    response = WorkingResponse(rng.random(n), rng.standard_normal(n))
    flat = ring_module.flatten(cores)
    squares, sums = slice_statistics(flat, weights.ravel(), mode, others, response)
    features = ring_module.features(cores, weights, mode, coords)
    np.testing.assert_allclose(squares, features.T @ (response.weight[:, None] * features))
    np.testing.assert_allclose(sums, response.shift @ features)


@pytest.mark.parametrize(("modes", "scans"), [(1, 1), (2, folding.SWEEPS)])
def test_every_draw_is_folded_with_streams_of_its_own_until_it_has_forgotten(
    rng, monkeypatch, modes, scans
):
    """New labels of one mode are drawn at once, those of two in turn, from where they begin."""
    table, known = smooth_table(rng, n_days=6)
    ring = fit(table[known], "hierarchical", warmup=2, draws=3, chains=2, random_state=5)
    seen, drawn = [], []
    streams, draw = folding.Streams.of_folding, folding.draw_slices

    def noted(*given):
        seen.append(given)
        return streams(*given)

    monkeypatch.setattr(folding.Streams, "of_folding", noted)
    monkeypatch.setattr(folding, "draw_slices", lambda *given: drawn.append(1) or draw(*given))
    more = table[:3].assign(station="new").drop(columns="truth")
    ring.fold_in(more if modes == 1 else more.assign(day=table.day.max() + pd.Timedelta(days=9)))
    chains = enumerate(ring.posterior_.chains)
    expected = [(ring.seed_, chain, int(scan)) for chain, own in chains for scan in own.scans]
    assert sorted(seen) == expected
    assert len(drawn) == len(expected) * modes * scans


def test_folds_do_not_share_their_noise(rng):
    """Rows that are folded in one after the other vary as independently as those of one call."""
    coords = np.argwhere(np.ones((12, 6, 5)))
    y = rng.standard_normal(len(coords))
    settings = {"warmup": 30, "draws": 200, "chains": 1, "random_state": 0, "progress": False}
    ring = TensorRing(1, order=None, prior=NormalWishart(), **settings).fit(coords, y)
    cells = np.array([[12, 0, 0], [13, 0, 0]])
    found = ring.fold_in(cells[:1], [1.0]).fold_in(cells[1:], [1.0])
    slices = np.array([found.posterior_.cores(draw)[0][12:].ravel() for draw in range(200)])
    slices /= np.array([found.posterior_.cores(draw)[0][:12].std() for draw in range(200)])[:, None]
    assert abs(np.corrcoef(slices.T)[0, 1]) < 0.7


def test_labels_between_known_ones_keep_the_noise_of_each(rng):
    coords = np.argwhere(np.ones((8, 6, 5)))
    days = np.array([0, 1, 3, 4, 5, 6, 7, 8])
    table = pd.DataFrame({"day": days[coords[:, 0]], "b": coords[:, 1], "c": coords[:, 2]})
    table["y"] = rng.standard_normal(len(table))
    settings = {"warmup": 20, "draws": 10, "chains": 1, "random_state": 0, "progress": False}
    ring = TensorRing(1, likelihood=Gaussian(noise_by="day"), order=["day"], **settings)
    ring.fit(table, modes=["day", "b", "c"], value="y")
    new = pd.DataFrame({"day": [2, 2], "b": [0, 1], "c": [0, 1], "y": [0.1, 0.2]})
    with pytest.raises(
        ValueError, match="cannot put a label between known ones of 'day', whose la"
    ):
        ring.fold_in(new)
    assert ring.fold_in(new.assign(day=9)).shape_ == (9, 6, 5)


def test_many_rows_are_folded_in_standard_units(rng, monkeypatch):
    """From some number on, values are converted only when they are sorted."""
    coords = np.argwhere(np.ones((8, 6, 5)))
    y = 100 + 10 * rng.standard_normal(len(coords))
    settings = {"warmup": 20, "draws": 10, "chains": 1, "random_state": 0, "progress": False}
    ring = TensorRing(1, **settings).fit(coords, y)
    more = np.add(np.argwhere(np.ones((1, 6, 5))), [8, 0, 0])
    here = ring.fold_in(more, y[:30]).predict(more)
    monkeypatch.setattr(observations, "COMPACT", 10)
    np.testing.assert_allclose(ring.fold_in(more, y[:30]).predict(more), here, rtol=1e-4)
