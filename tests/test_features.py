"""Fits with features of labels: what they say of labels with few observations or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bayesring import TensorRing, TensorRingClassifier, complete, load
from bayesring.data.labels import Labels
from bayesring.data.observations import Observations
from bayesring.featuring import attach
from bayesring.posterior import explained
from bayesring.posterior.posterior import _unflatten
from bayesring.priors import Featured, Fixed, Smooth
from tests.described_stations import FEW, KEYS, KNOWN, N, fitted_with, simulated_stations


@pytest.fixture(scope="module")
def simulated():
    return simulated_stations()


@pytest.fixture(scope="module")
def fitted(simulated):
    table, _, features = simulated
    return fitted_with(table, features)


@pytest.fixture(scope="module")
def fitted_to_known(simulated):
    table, _, features = simulated
    return fitted_with(table, features[:KNOWN])


def error_and_coverage(ring, cells):
    low, high = ring.predict_interval(cells)
    inside = np.mean((low <= cells["value"]) & (cells["value"] <= high))
    return float(np.sqrt(np.mean((ring.predict(cells) - cells["value"]) ** 2))), inside


def test_labels_without_observations_are_predicted_by_their_features(simulated, fitted):
    table, cells, _ = simulated
    plain = TensorRing(**FEW, order=None).fit(table, value="value", modes=KEYS)
    with pytest.warns(UserWarning, match="did not know"):
        without, _ = error_and_coverage(plain, cells)
    found, coverage = error_and_coverage(fitted, cells)
    assert found < 0.7 * without
    assert coverage > 0.75
    assert fitted.shape_ == (N, 6, 7)
    assert isinstance(fitted.prior_.modes[0], Featured)


@pytest.mark.parametrize(
    ("before", "after"),
    [(["b", "d"], ["a", "b", "c", "d"]), ([4, 2], [4, 3, 2, 1]), ([2, 4, 3], [2, 4, 3, 1])],
)
def test_observations_stay_with_their_labels_when_features_add_others(before, after):
    """Those that have an order, forwards or backwards, keep it; otherwise new ones come last."""
    labels = Labels(("x", "y"), (np.array(before), np.arange(1)), None)
    coords = np.stack([np.arange(len(before)), np.zeros(len(before), dtype=int)], axis=1)
    data = Observations(coords, np.arange(len(before)) + 0.5, (len(before), 1))
    keys = sorted(after)
    table = pd.DataFrame({"x": keys, "height": np.arange(len(keys)) ** 2.0})
    data, wider, (features, _) = attach(data, labels, {"x": table})
    assert wider.levels[0].tolist() == after
    assert data.shape == (len(after), 1)
    found = dict(zip(wider.levels[0][data.coords[:, 0]].tolist(), data.values, strict=True))
    assert found == {label: place + 0.5 for place, label in enumerate(before)}
    heights = features.matrix[:, 0] / features.factor[0] + features.centre[0]
    np.testing.assert_allclose(heights, [keys.index(label) ** 2 for label in after], atol=1e-9)


def test_features_of_later_labels_say_as_much(simulated, fitted, fitted_to_known):
    """Known from the fit on, or folded in without an observation: the same distribution."""
    _, cells, features = simulated
    later = fitted_to_known.fold_in(None, features={"station": features})
    first = fitted.predict(cells, return_std=True)
    second = later.predict(cells, return_std=True)
    gap = np.mean((first[0] - second[0]) ** 2) / np.mean(first[1] ** 2)
    assert gap < 0.1
    assert abs(np.mean(second[1]) / np.mean(first[1]) - 1) < 0.15
    assert later.shape_ == fitted.shape_
    assert fitted_to_known.shape_ == (KNOWN, 6, 7)


def test_observations_of_later_labels_add_to_their_features(simulated, fitted_to_known):
    _, cells, features = simulated
    some = cells.groupby("station").head(2)
    rest = cells.drop(some.index)
    described = fitted_to_known.fold_in(some, features={"station": features})
    undescribed = fitted_to_known.fold_in(some)
    nothing, _ = error_and_coverage(
        fitted_to_known.fold_in(None, features={"station": features}), rest
    )
    found, coverage = error_and_coverage(described, rest)
    assert found < nothing
    assert found < error_and_coverage(undescribed, rest)[0]
    assert coverage > 0.75


@pytest.mark.ci
def test_online_em_goes_on_with_features(simulated):
    table, cells, features = simulated
    some = cells.groupby("station").head(2)
    rest = cells.drop(some.index)
    ring = TensorRing(
        2, inference="online-em", chains=2, epochs=30, draws=40, random_state=1, progress=False
    )
    ring.fit(table, value="value", modes=KEYS, features={"station": features[:KNOWN]})
    ring.partial_fit(some, features={"station": features})
    found, _ = error_and_coverage(ring, rest)
    assert found < 0.5 * rest["value"].std()
    assert ring.features_[0].matrix.shape == (N, 4)


def test_one_seed_gives_one_result_on_any_number_of_threads(simulated, fitted):
    table, cells, features = simulated
    ring = TensorRing(**FEW, order=None, n_jobs=1)
    shuffled = features.sample(frac=1.0, random_state=0)
    ring.fit(table, value="value", modes=KEYS, features={"station": shuffled})
    np.testing.assert_array_equal(ring.predict(cells), fitted.predict(cells))


def test_a_checkpoint_is_of_its_features(simulated, tmp_path):
    table, _, features = simulated
    short = FEW | {"warmup": 4, "draws": 2}

    def fit(given):
        ring = TensorRing(**short)
        return ring.fit(
            table, value="value", modes=KEYS, features={"station": given}, checkpoint=tmp_path
        )

    fit(features)
    fit(features)
    with pytest.raises(ValueError, match="data"):
        fit(features.assign(a=features["a"] + features["b"] ** 2))


def test_order_and_features_together(rng):
    """Days that follow a feature, and change slowly besides."""
    n = 60
    warm = np.sin(np.arange(n) / 3.0) + 0.3 * rng.standard_normal(n)
    slow = np.cumsum(0.1 * rng.standard_normal(n))
    gains = rng.standard_normal((2, 5))
    cells = np.argwhere(np.ones((n, 5), dtype=bool))
    truth = (np.outer(warm, gains[0]) + np.outer(slow, gains[1]))[tuple(cells.T)]
    values = truth + 0.1 * rng.standard_normal(len(cells))
    known = (cells[:, 0] < 50) & (rng.random(len(cells)) < 0.7)
    found = []
    for features in (None, {"day": warm[:, None]}):
        ring = TensorRing(2, **{k: v for k, v in FEW.items() if k != "rank"}, order=["day"])
        ring.fit(
            cells[known], values[known], shape=(n, 5), modes=["day", "kind"], features=features
        )
        found.append(np.mean((ring.predict(cells[~known]) - values[~known]) ** 2))
    own = ring.prior_.modes[0]
    assert isinstance(own, Featured)
    assert isinstance(own.base, Smooth)
    assert found[1] < 0.5 * found[0]


def test_sparse_features_of_coordinates(rng):
    bits = sparse.random_array((80, 300), density=0.05, rng=rng, format="csr")
    bits.data[:] = 1.0
    effect = bits @ rng.standard_normal(300)
    cells = np.argwhere(np.ones((80, 6), dtype=bool))
    values = effect[cells[:, 0]] * (1 + 0.2 * cells[:, 1]) + 0.1 * rng.standard_normal(len(cells))
    ring = TensorRing(**FEW | {"rank": 1}).fit(cells, values, features={0: bits})
    assert ring.features_[0].matrix.shape == (80, 300)
    assert ring.score(cells, values) > 0.9


def test_many_features_are_drawn_by_conjugate_gradients(rng, monkeypatch):
    """As well as by the integral, on a table where both can be had."""
    monkeypatch.setattr("bayesring.priors.featured.FEW", 10)
    x = rng.standard_normal((100, 30))
    effect = x[:, :5].sum(axis=1)
    cells = np.argwhere(np.ones((100, 6), dtype=bool))
    values = effect[cells[:, 0]] * (1 + 0.2 * cells[:, 1]) + 0.1 * rng.standard_normal(len(cells))
    known = cells[:, 0] < 80
    ring = TensorRing(**FEW | {"rank": 1}, shape=(100, 6))
    ring.fit(cells[known], values[known], features={0: sparse.csr_array(x)})
    assert ring.prior_.modes[0].is_large
    assert ring.score(cells[~known], values[~known]) > 0.8


def test_a_classifier_and_complete_take_features(simulated):
    table, cells, features = simulated
    labels = np.where(table["value"] > 0, "up", "down")
    ring = TensorRingClassifier(**FEW)
    ring.fit(table[KEYS], labels, modes=KEYS, features={"station": features})
    assert ring.score(cells[KEYS], np.where(cells["value"] > 0, "up", "down")) > 0.7
    gaps = pd.concat([table, cells.head(20).assign(value=np.nan)])
    early = pd.DataFrame({"station": ["a00"], "a": [0.0], "b": [0.0], "c": [0.0], "d": [0.0]})
    more = pd.concat([early, features])  # a label before all others moves the rest
    found = complete(gaps, modes=KEYS, value="value", features={"station": more}, **FEW)
    filled = found.table.tail(20)
    expected = found.model.predict(filled[KEYS])
    np.testing.assert_allclose(filled["mean"], expected)
    assert np.corrcoef(expected, cells["value"].head(20))[0, 1] > 0.5


def test_what_cannot_use_features_is_refused(simulated, fitted, tmp_path):
    table, _, features = simulated
    given = {"station": features}
    with pytest.raises(ValueError, match="Fixed, cannot use them"):
        TensorRing(prior=Fixed()).fit(table, value="value", modes=KEYS, features=given)
    with pytest.raises(ValueError, match="which had none in the fit"):
        fitted.fold_in(None, features={"day": pd.DataFrame({"day": [9], "warm": [1.0]})})
    with pytest.raises(ValueError, match="lack the column 'd'"):
        fitted.fold_in(None, features={"station": features.drop(columns="d").replace("s00", "new")})
    with pytest.raises(ValueError, match="data in memory"):
        TensorRing(inference="online-em").fit(tmp_path, modes=KEYS, value="value", features=given)


def test_columns_of_the_table_itself_are_features(simulated, fitted):
    table, _, features = simulated
    wide = table.merge(features, on="station")
    ring = TensorRing(**FEW | {"warmup": 2, "draws": 2})
    ring.fit(wide, value="value", modes=KEYS, features={"station": ["a", "b"]})
    assert ring.features_[0].names == ("a", "b")
    unnamed = wide.drop(columns=["c", "d"])
    ring.fit(unnamed, value="value", features={"station": ["a", "b"]})
    assert ring.labels_.names == tuple(KEYS)
    with pytest.raises(ValueError, match="'day', which is not the same in all rows of"):
        ring.fit(wide, value="value", modes=KEYS, features={"station": ["day"]})
    with pytest.raises(ValueError, match="which is not a column of the table"):
        ring.fit(wide, value="value", modes=KEYS, features={"station": ["height"]})


def test_columns_that_depend_on_one_key_are_offered(simulated):
    import narwhals.stable.v2 as nw

    from bayesring.data.featurecolumns import offers

    table, _, features = simulated
    wide = nw.from_native(table.merge(features[["station", "a", "b"]], on="station").assign(q=1))
    (sentence,) = offers(wide, KEYS, "value")
    assert sentence == (
        "'a' and 'b' are the same for every row of a station: use them as features? "
        "--features station=a,b"
    )


def test_the_command_line_takes_features(simulated, fitted, tmp_path):
    from typer.testing import CliRunner

    from bayesring.command.cli import app

    table, _, features = simulated
    table.to_csv(tmp_path / "table.csv", index=False)
    odd = features.assign(land=np.where(features["a"] > 0, "wood", "NA"), since="2020-01-02")
    odd.loc[3, "since"] = "2021-05-01"
    odd.to_csv(tmp_path / "stations.csv", index=False)
    common = ["--modes", ",".join(KEYS), "--value", "value", "--rank", "2", "--chains", "1"]
    common += ["--warmup", "10", "--draws", "5", "-q", "--likelihood", "gaussian"]

    def run(*arguments):
        found = CliRunner().invoke(app, [str(each) for each in arguments])
        assert found.exit_code == 0, found.output
        return found.output

    model = tmp_path / "a.model"
    stations = f"station={tmp_path / 'stations.csv'}"
    run("fit", tmp_path / "table.csv", "-o", model, *common, "--features", stations)
    ring = load(model)
    assert ring.features_[0].names == ("a", "b", "c", "d", "land", "since")
    assert ring.shape_[0] == N
    assert "--features station=stations.csv " in ring.description_["origin"]["command"]
    wide = table.merge(features, on="station")
    wide.to_csv(tmp_path / "wide.csv", index=False)
    run("fit", tmp_path / "wide.csv", "-o", model, *common, "--features", "station=a,b")
    assert load(model).features_[0].names == ("a", "b")
    assert "--features station=a,b " in load(model).description_["origin"]["command"]
    offered = run("complete", tmp_path / "wide.csv", "--dry-run", "--json", *common[:4])
    assert "use them as features? --features station=a,b,c,d" in offered
    wrong = CliRunner().invoke(app, ["fit", "x.csv", "-o", "y", "--features", "station"])
    assert "MODE=FILE" in str(wrong.exception)


def test_what_features_explain_is_told(simulated, fitted, tmp_path):
    """Two of four features make up all that can be explained, in truth."""
    truth = simulated[2].attrs["share"]
    (found,) = fitted.diagnostics().explained
    assert found.mode == "station"
    assert found.share.lower < truth < found.share.upper < found.share.lower + 0.4
    assert set(list(found.features)[:2]) == {"a", "b"}
    assert found.features["c"].mean < 0.2 * found.features["a"].mean
    assert "Features explain" in str(fitted.diagnostics())
    fitted.report(tmp_path / "page.html", progress=False)
    page = (tmp_path / "page.html").read_text()
    assert "What features explain of the variance between levels of station" in page


def test_what_features_explain_is_asked_of_the_cores_of_every_draw(fitted, monkeypatch):
    """Of each chain, and without the weights of the bond that follows the mode."""
    seen, drawn = [], Featured.draw_shared

    def draw_and_see(self, rng, core):
        seen.append(core)
        return drawn(self, rng, core)

    monkeypatch.setattr(explained, "MOST_DRAWS", 8)
    monkeypatch.setattr(Featured, "draw_shared", draw_and_see)
    chance, names = np.random.default_rng(0), fitted.labels_.names
    chains = tuple(
        draws._replace(weights=chance.uniform(0.5, 2.0, draws.weights.shape))
        for draws in fitted.posterior_.chains
    )
    posterior = replace(fitted.posterior_, chains=chains)
    explained.explain(posterior, fitted.prior_, fitted.features_, names, 3)
    weighted = [
        (_unflatten(draws, row, posterior.shape)[0], draws.bond_weights(row, 0))
        for draws in posterior.chains
        for row in range(0, 40, 10)
    ]
    assert len(seen) == len(weighted) == 8
    for core, (expected, weights) in zip(seen, weighted, strict=True):
        np.testing.assert_allclose(core * weights[:, None], expected, rtol=1e-5, atol=1e-7)


def test_labels_of_unknown_features_are_as_uncertain_as_in_predict(simulated, fitted_to_known):
    """Without a row, or with nothing in it; those with features are as if alone."""
    _, cells, features = simulated
    with pytest.warns(UserWarning, match="did not know: .*use fold_in.None, features=....+ first"):
        expected = fitted_to_known.predict(cells, return_std=True)[1]
    nothing = features.assign(**dict.fromkeys("abcd", np.nan))[KNOWN:]
    known = fitted_to_known.fold_in(None, features={"station": features})
    with_features = known.predict(cells, return_std=True)[1]
    assert np.mean(with_features) < 0.8 * np.mean(expected)
    half = KNOWN + 5
    mixed = pd.concat([features[KNOWN:half], nothing[half - KNOWN :]])
    later = cells["station"] >= f"s{half:02d}"
    some = fitted_to_known.fold_in(None, features={"station": mixed})
    found = some.predict(cells, return_std=True)[1]
    assert np.mean(found[later]) == pytest.approx(np.mean(expected[later]), rel=0.15)
    assert np.mean(found[~later]) == pytest.approx(np.mean(with_features[~later]), rel=0.15)
    one = cells.groupby("station").head(1)
    rest = cells.drop(one.index)
    _, coverage = error_and_coverage(fitted_to_known.fold_in(one), rest)
    assert coverage > 0.85


def test_a_matrix_of_new_rows_alone_is_refused(rng):
    cells = np.argwhere(np.ones((6, 4, 3), dtype=bool))
    values, matrix = rng.standard_normal(len(cells)), rng.standard_normal((14, 2))
    few = FEW | {"warmup": 2, "draws": 2, "chains": 1}
    ring = TensorRing(**few, order=None).fit(cells, values, features={0: matrix[:6]})
    for X, y in ((None, None), ([[6, 0, 0], [7, 1, 1]], [1.0, 2.0])):
        with pytest.raises(ValueError, match="2 rows without labels, but one row for every label"):
            ring.fold_in(X, y, features={0: matrix[6:8]})
    with pytest.raises(ValueError, match="whose first 6 rows must be those of the fit"):
        ring.fold_in(None, features={0: matrix[6:]})
    assert ring.fold_in(None, features={0: matrix}).shape_ == (14, 4, 3)
    assert ring.fold_in(None, features={0: ([6, 7], matrix[6:8])}).shape_ == (8, 4, 3)
    with pytest.raises(ValueError, match="X is None, but observations or features"):
        ring.fold_in(None)
