"""Fits whose modes share their labels, and symmetric tables."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest

from bayesring import TensorRing, complete, load
from bayesring.data.labels import plain_labels
from bayesring.data.observations import Observations
from bayesring.model.types import Given
from bayesring.priors import Featured
from bayesring.sharing import is_symmetric, symmetrised, together, turned

FEW = {"rank": 2, "warmup": 60, "draws": 40, "chains": 2, "random_state": 3, "progress": False}
KEYS = ["one", "two", "kind"]


@pytest.fixture(scope="module")
def tables():
    """All cells of a symmetric tensor of 20 drugs, with equal noise in mirror images."""
    rng = np.random.default_rng(8)
    drugs, kinds = rng.standard_normal((20, 2)), rng.standard_normal((6, 2))
    cells = np.argwhere(np.ones((20, 20, 6), dtype=bool))
    noise = rng.standard_normal((20, 20, 6))
    noise = np.where(np.arange(20)[:, None, None] < np.arange(20)[:, None], noise, 0)
    noise = noise + np.swapaxes(noise, 0, 1)
    truth = np.einsum("ir,jr,kr->ijk", drugs, drugs, kinds)
    table = pd.DataFrame(cells, columns=KEYS)
    table["one"] = [f"d{i:02d}" for i in cells[:, 0]]
    table["two"] = [f"d{i:02d}" for i in cells[:, 1]]
    table["value"] = (truth + 0.1 * noise).ravel()
    low, high = cells[:, :2].min(axis=1), cells[:, :2].max(axis=1)
    pair = (low * 20 + high) * 6 + cells[:, 2]  # the same number for both
    known = rng.random(2400)[pair] < 0.15
    upper = cells[:, 0] <= cells[:, 1]
    kept = rng.random(2400)[pair] < 0.5  # which of the two is there if only one is
    chosen = (upper == kept) | (low == high)
    return table[known], table[known & chosen], table[~known]


def fit(table, **settings):
    ring = TensorRing(**FEW | settings)
    return ring.fit(table, value="value", modes=KEYS)


def error(ring, cells):
    return float(np.sqrt(np.mean((ring.predict(cells) - cells["value"]) ** 2)))


def test_mirror_images_are_one(tables):
    """Half of them missing, or all there twice: the same model, bit for bit."""
    both, half, hidden = tables
    rings = [
        fit(both, share=[("one", "two")]),
        fit(half, share=[("one", "two", "symmetric")]),
    ]
    mirrors = both.rename(columns={"one": "two", "two": "one"}).merge(both, on=KEYS)
    assert len(mirrors) == len(both) > 1.8 * len(half)
    assert rings[0].symmetric_ == ((0, 1),)
    np.testing.assert_array_equal(rings[0].predict(hidden), rings[1].predict(hidden))
    mirrored = hidden.rename(columns={"one": "two", "two": "one"})
    np.testing.assert_array_equal(rings[0].predict(hidden), rings[0].predict(mirrored))
    plain = fit(half)
    assert error(rings[0], hidden) < error(plain, hidden)
    tensor = rings[0].predict_tensor()
    np.testing.assert_array_equal(tensor, np.swapaxes(tensor, 0, 1))
    cells = hidden.head(5)
    places = [rings[0].labels_.levels[mode].searchsorted(cells[KEYS[mode]]) for mode in range(2)]
    found = tensor[places[0], places[1], cells["kind"]]
    np.testing.assert_allclose(found, rings[0].predict(cells), rtol=1e-9)


def test_labels_of_either_mode_are_those_of_both(tables, tmp_path):
    both, _, hidden = tables
    rng = np.random.default_rng(1)
    directed = both[(both["one"] != "d03") & (both["two"] != "d17")].copy()
    directed["value"] += 0.5 * rng.standard_normal(len(directed))  # mirror images differ
    ring = fit(directed, share=[("two", "one")])
    assert ring.symmetric_ == ()
    assert ring.shape_ == (20, 20, 6)
    assert ring.prior_.share == ((0, 1),)
    assert isinstance(ring.prior_.modes[1], Featured)
    cells = hidden[(hidden["one"] == "d03") | (hidden["two"] == "d17")]
    plain = fit(directed)
    with pytest.warns(UserWarning, match="did not know"):
        without = error(plain, cells)
    assert error(ring, cells) < 0.8 * without
    ring.save(tmp_path / "a.model")
    np.testing.assert_array_equal(load(tmp_path / "a.model").predict(cells), ring.predict(cells))
    new = cells.head(3).assign(one="new", two="newer")
    with pytest.warns(UserWarning, match="did not know"):
        assert np.isfinite(ring.predict(new)).all()


def test_gaps_of_a_symmetric_table_are_filled(tables):
    _, half, hidden = tables
    gaps = pd.concat([half, hidden.head(50).assign(value=np.nan)])
    found = complete(gaps, modes=KEYS, value="value", share=[("one", "two")], **FEW)
    filled = found.table.tail(50)
    np.testing.assert_allclose(filled["mean"], found.model.predict(filled[KEYS]))


def test_tables_are_symmetric_if_all_mirror_images_agree(rng):
    cells = np.argwhere(np.ones((8, 8, 2), dtype=bool))
    values = (cells[:, 0] * cells[:, 1] + cells[:, 2]).astype(float)
    data = Observations(cells, values, (8, 8, 2))
    assert is_symmetric(data, (0, 1))
    values[17] += 1.0
    assert not is_symmetric(data._replace(values=values), (0, 1))
    side = cells[:, 0] < cells[:, 1]
    assert is_symmetric(data._replace(coords=cells[side], values=values[side]), (0, 1))
    few = np.flatnonzero(side)[:5]
    assert not is_symmetric(data._replace(coords=cells[few], values=values[few]), (0, 1))
    once = turned(cells, ((0, 1),))
    np.testing.assert_array_equal(once, turned(cells[:, [1, 0, 2]], ((0, 1),)))
    counts = np.bincount(once[:, 0], minlength=8)
    assert counts.min() > 0  # every label is in either mode
    tensor = rng.standard_normal((8, 8, 2))
    np.testing.assert_array_equal(
        symmetrised(tensor, ((0, 1),))[tuple(cells.T)], tensor[tuple(once.T)]
    )


def test_the_diagonal_is_no_mirror_image():
    """Rows on both sides of it, none of which has its mirror image."""
    diagonal = np.repeat(np.arange(30)[:, None], 2, axis=1)
    cells = np.concatenate([diagonal, [[0, 1], [2, 1], [3, 4], [6, 5]]])
    assert not is_symmetric(Observations(cells, np.ones(len(cells)), (30, 30)), (0, 1))
    below = np.concatenate([diagonal, [[1, 0], [2, 1]]])
    assert not is_symmetric(Observations(below, np.ones(len(below)), (30, 30)), (0, 1))


def test_rows_keep_their_weights_when_mirror_images_are_one():
    cells = np.argwhere(~np.eye(7, dtype=bool))
    values = (cells.sum(axis=1) + 10 * cells.min(axis=1)).astype(float)
    data = Observations(cells, values, (7, 7), given=Given(weight=values + 0.5))
    found, _, symmetric = together(data, plain_labels(2), [(0, 1)])
    assert symmetric == ((0, 1),)
    assert len(found.values) == len(cells) // 2
    np.testing.assert_array_equal(found.given.weight, found.values + 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": "one"}, "a list of pairs"),
        ({"share": [("one", "two", "skew")]}, "the word 'symmetric'"),
        ({"share": [("one", "one")]}, "names a mode twice"),
        ({"share": [("one", "three")]}, "names the mode 'three'"),
        ({"share": [("one", "kind")]}, "names 'kind', which has numbers such as 0"),
        ({"share": [("one", "two")], "inference": "online-em"}, "needs chains"),
        ({"share": [("one", "two")], "prior": "paper"}, "cannot be linked"),
    ],
)
def test_what_cannot_be_shared_is_refused(settings, message, tables):
    with pytest.raises(ValueError, match=message):
        fit(tables[0], **settings)


def test_shared_modes_take_no_order_and_no_fold_in(tables):
    cells = np.argwhere(np.ones((6, 6, 3), dtype=bool))
    values = np.random.default_rng(0).standard_normal(len(cells))
    with pytest.raises(ValueError, match="by share and by order"):
        TensorRing(**FEW, share=[(0, 1)], order=[0]).fit(cells, values)
    ring = TensorRing(**FEW | {"warmup": 2, "draws": 2}, share=[(0, 1)]).fit(cells, values)
    with pytest.raises(ValueError, match="cannot be used with share"):
        ring.fold_in([[6, 0, 0]], [1.0])


def test_repeats_stay_and_only_mirror_images_count_once():
    """Cells of labels a, b, c; turned, (0, 1) becomes (1, 0) and (1, 2) becomes (2, 1)."""
    rows = [
        ((0, 1), 5.0, 1.0),  # repeated in one order
        ((0, 1), 5.0, 1.0),
        ((0, 2), 7.0, 1.0),  # a mirror image
        ((2, 0), 7.0, 1.0),
        ((1, 2), 3.0, 1.0),  # another weight
        ((2, 1), 3.0, 2.0),
        ((1, 3), 4.0, 1.0),  # the same two values, in another order
        ((3, 1), 6.0, 1.0),
        ((3, 1), 4.0, 1.0),
        ((1, 3), 6.0, 1.0),
        ((0, 3), 1.0, 1.0),  # other values
        ((3, 0), 2.0, 1.0),
        ((2, 2), 9.0, 1.0),  # on the diagonal
        ((2, 2), 9.0, 1.0),
    ]
    coords = np.array([own for own, _, _ in rows])
    values, weight = (np.array([row[i] for row in rows]) for i in (1, 2))
    data = Observations(coords, values, (4, 4), given=Given(weight=weight))
    found, _, _ = together(data, plain_labels(2), [(0, 1, "symmetric")])
    kept = [
        (*cell, v, w)
        for cell, v, w in zip(found.coords.tolist(), found.values, found.given.weight, strict=True)
    ]
    assert sorted(kept) == [
        (0, 2, 7.0, 1.0),
        (1, 0, 5.0, 1.0),
        (1, 0, 5.0, 1.0),
        (1, 3, 4.0, 1.0),
        (1, 3, 6.0, 1.0),
        (2, 1, 3.0, 1.0),
        (2, 1, 3.0, 2.0),
        (2, 2, 9.0, 1.0),
        (2, 2, 9.0, 1.0),
        (3, 0, 1.0, 1.0),
        (3, 0, 2.0, 1.0),
    ]


def test_a_new_label_of_a_symmetric_table_is_one_label(tables):
    _, half, _ = tables
    ring = fit(half, share=[("one", "two", "symmetric")], warmup=5, draws=20, chains=1)
    pairs = [("zz", "d00"), ("d01", "zz"), ("zz", "yy"), ("d00", "yy"), ("zz", "zz"), ("aa", "d03")]
    cells = pd.DataFrame(pairs, columns=KEYS[:2]).assign(kind=1)
    mirrored = cells.rename(columns={"one": "two", "two": "one"})
    with pytest.warns(UserWarning, match="did not know"):
        at_once = ring.predict(cells)
    with pytest.warns(UserWarning, match="did not know"):
        np.testing.assert_array_equal(ring.predict(mirrored), at_once)
    for row in range(len(cells)):
        for own in (cells, mirrored):
            with pytest.warns(UserWarning, match="did not know"):
                alone = ring.predict(own[row : row + 1])
            np.testing.assert_allclose(alone, at_once[row : row + 1], rtol=1e-12)
    assert len(np.unique(at_once)) == len(at_once)


def test_symmetry_is_seen_in_tensors_of_any_size(rng):
    cells = rng.integers(0, 60_000, (50, 4))
    mirrored = cells[:, [1, 0, 2, 3]]
    data = Observations(np.concatenate([cells, mirrored]), np.tile(cells[:, 2], 2), (60_000,) * 4)
    assert is_symmetric(data, (0, 1))
    assert not is_symmetric(data, (2, 3))


def of_labels(one, two):
    """A table in which the labels of both modes are those."""
    rng = np.random.default_rng(0)
    n = 4 * max(len(one), len(two))
    return pd.DataFrame(
        {
            "one": np.resize(one, n),
            "two": np.resize(rng.permutation(two), n),
            "kind": np.arange(n) % 3,
            "value": rng.standard_normal(n),
        }
    )


BRIEF = {"warmup": 2, "draws": 2, "share": [("one", "two")]}


def test_modes_without_a_common_label_share_nothing():
    table = of_labels([f"a{i}" for i in range(12)], [f"A{i}" for i in range(15)])
    expected = (
        r"share names 'one' and 'two', which have no label in common \(12 of 'one' and 15 of "
        r"'two', such as a0 and A0\); labels must be written alike, or leave the "
        r"pair out of share\.$"
    )
    with pytest.raises(ValueError, match=expected):
        fit(table, **BRIEF)
    with pytest.raises(ValueError, match="no label in common"):
        fit(table.assign(two=table["two"].str[1:].astype(int) + 100, one=table.index % 9), **BRIEF)


def test_hardly_any_common_label_is_told(recwarn):
    """One of twelve is, two of twelve are not, and all of a few among many are not."""
    ours = [f"a{i:02d}" for i in range(12)]
    others = [f"b{i:02d}" for i in range(30)]
    with pytest.warns(UserWarning, match=r"only 1 label in common \(12 of 'one' and 31 of") as told:
        fit(of_labels(ours, [*others, "a00"]), **BRIEF)
    (warning,) = (each for each in told if "in common" in str(each.message))
    assert "such as a01 and b00): are labels written alike?" in str(warning.message)
    assert warning.filename == __file__
    for theirs in ([*others, "a00", "a07"], [*others, *ours]):
        fit(of_labels(ours, theirs), **BRIEF)
    assert not [each for each in recwarn if "in common" in str(each.message)]


def test_bare_coordinates_are_the_same_labels(recwarn):
    """Whatever their values are: arrays have no labels that could differ."""
    table = of_labels(np.arange(5), np.arange(5, 10))
    ring = TensorRing(**FEW | {"warmup": 2, "draws": 2}, share=[(0, 1)])
    ring.fit(table[KEYS].to_numpy(), table["value"].to_numpy())
    assert ring.shape_ == (10, 10, 3)
    assert not [each for each in recwarn if "in common" in str(each.message)]


COMMON = ["--modes", ",".join(KEYS), "--value", "value", "--rank", "2", "--seed", "3", "--quiet"]
LENGTH = ["--warmup", "4", "--draws", "4", "--chains", "2", "--likelihood", "gaussian"]


def run(*words):
    from typer.testing import CliRunner

    from bayesring.command.cli import app

    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize(
    ("option", "share"),
    [("one=two", [("one", "two")]), (" two = one =symmetric", [("two", "one", "symmetric")])],
)
def test_the_command_line_shares_as_python_does(option, share, tables, tmp_path):
    """The same draws, bit for bit, by fit and by complete."""
    half = tables[1]
    half.to_csv(tmp_path / "half.csv", index=False)
    expected = fit(half, share=share, warmup=4, draws=4)
    for command, target in (("fit", "-o"), ("complete", "--model")):
        model, rest = tmp_path / f"{command}.model", []
        if command == "complete":
            rest = ["-o", tmp_path / "out.csv", "--fill", "all"]
        words = [tmp_path / "half.csv", target, model, *rest, *COMMON, *LENGTH]
        found = run(command, *words, "--share", option)
        assert found.exit_code == 0, found.output
        ring = load(model)
        assert ring.prior_.share == ((0, 1),)
        assert shlex.quote(option) in ring.description_["origin"]["command"]
        for ours, theirs in zip(ring.posterior_.chains, expected.posterior_.chains, strict=True):
            np.testing.assert_array_equal(ours.flat, theirs.flat)
        cells = half[KEYS][:5]
        np.testing.assert_array_equal(ring.predict(cells), expected.predict(cells))


def test_what_the_command_line_cannot_share_is_refused(tables, tmp_path):
    tables[0].to_csv(tmp_path / "both.csv", index=False)
    words = ["fit", tmp_path / "both.csv", "-o", tmp_path / "x.model", *COMMON, *LENGTH]
    for options, message in (
        (["one"], "--share must be MODE=MODE or MODE=MODE=symmetric, got 'one'."),
        (["one="], "--share must be MODE=MODE"),
        (["one=two=skew"], "--share must be MODE=MODE"),
        (["one=two=kind=symmetric"], "--share must be MODE=MODE"),
        (["one=three"], "share names the mode 'three'"),
        (["one=two", "two=kind"], "share names a mode twice"),
    ):
        given = [word for option in options for word in ("--share", option)]
        assert message in str(run(*words, *given).exception)


def test_a_dry_run_says_what_is_shared(tables, tmp_path):
    tables[0].to_csv(tmp_path / "both.csv", index=False)
    words = ["complete", tmp_path / "both.csv", *COMMON[:4], "--dry-run", "--json"]
    assert "mirror image are one" in run(*words, "--share", "one=two").output
    assert "mirror image are one" not in run(*words).output
    assert "names 'kind'" in str(run(*words, "--share", "one=kind").exception)
    apart = of_labels([f"a{i:02d}" for i in range(12)], [f"b{i:02d}" for i in range(30)] + ["a00"])
    apart.to_csv(tmp_path / "apart.csv", index=False)
    words[1] = tmp_path / "apart.csv"
    assert "only 1 label in common" in run(*words, "--share", "one=two").output
