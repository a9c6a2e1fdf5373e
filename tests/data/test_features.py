"""Features as given, coded as numbers."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bayesring.command.describing import described_by
from bayesring.command.options import features_in
from bayesring.data import features
from bayesring.data.containers import open_container
from bayesring.data.featurecolumns import from_columns
from bayesring.data.features import MOST_COLUMNS, code
from bayesring.data.featuresources import with_types
from bayesring.data.givenfeatures import check_overlap, known_from, open_features
from bayesring.data.labels import Labels, Zone, plain_labels
from bayesring.data.traps import DataWarning

TABLE = {
    "station": ["a", "b", "c", "d"],
    "height": [100.0, 300.0, None, 200.0],
    "land": ["wood", "town", "wood", None],
    "since": [datetime.date(2020, 1, day) for day in (1, 2, 3, 7)],
    "same": [1, 1, 1, 1],
    "coast": [True, False, False, True],
}
LABELS = Labels(("station", "day"), (np.array(["a", "b", "c", "d", "e"]), np.arange(3)), "value")


def coded(given, labels=LABELS, shape=(5, 3), name="station"):
    (source,) = open_features({name: given}, labels.names)
    wider, sizes = known_from(labels, shape, [source])
    levels = wider.levels[source.mode]
    return code(source, np.arange(sizes[source.mode]) if levels is None else levels), wider, sizes


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_every_library_are_coded_alike(make):
    found, _, _ = coded(make(TABLE))
    expected, _, _ = coded(pd.DataFrame(TABLE))
    np.testing.assert_allclose(found.matrix, expected.matrix)
    assert found.names == ("height", "land", "since", "coast")
    assert found.groups.tolist() == [0, 0, 1, 1, 1, 2, 2, 3]  # what coast lacks, since lacks


def test_columns_are_standardised_and_say_what_was_missing():
    """Label e has no row at all: everything of it is missing."""
    found, _, _ = coded(pd.DataFrame(TABLE))
    np.testing.assert_allclose(np.mean(np.sum(found.matrix**2, axis=1)), 1.0)
    np.testing.assert_allclose(found.matrix.mean(axis=0), 0.0, atol=1e-12)
    plain = found.matrix / found.factor + found.centre
    np.testing.assert_allclose(plain[:, 0], [100, 300, 200, 200, 200])
    np.testing.assert_array_equal(plain[:, 1].round(9), [0, 0, 1, 0, 1])
    towns, woods, absent = plain[:, 2:5].round(9).T
    np.testing.assert_array_equal(towns, [0, 1, 0, 0, 0])
    np.testing.assert_array_equal(woods, [1, 0, 1, 0, 0])
    np.testing.assert_array_equal(absent, [0, 0, 0, 1, 1])
    np.testing.assert_allclose(plain[:, 5] - plain[0, 5], [0, 1, 2, 6, 2.25])
    # every number has the same variance, and all categories of a column together have it, too
    spread = found.matrix.var(axis=0)
    np.testing.assert_allclose(spread[[5, 7]], spread[0])
    np.testing.assert_allclose(spread[2:4].sum(), spread[0])


def test_labels_in_the_features_alone_are_known():
    more = pd.DataFrame({"station": ["z", "a"], "height": [1.0, 2.0]})
    found, labels, shape = coded(more)
    assert labels.levels[0].tolist() == ["a", "b", "c", "d", "e", "z"]
    assert shape == (6, 3)
    assert found.matrix.shape == (6, 2)
    matrix = np.arange(10.0).reshape(5, 2)
    _, _, shape = coded(matrix, plain_labels(2), (3, 3), "mode 0")
    assert shape == (5, 3)


def test_the_label_is_the_named_column_or_the_first():
    table = pd.DataFrame(TABLE)
    named = table[["height", "station"]]
    first = table[["station", "height"]].rename(columns={"station": "id"})
    np.testing.assert_array_equal(coded(named)[0].matrix, coded(first)[0].matrix)


def test_matrices_keep_the_sizes_of_their_columns():
    matrix = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 0.0]])
    keys = np.array(["c", "a", "b"])
    labels = Labels(("x", "y"), (np.array(["a", "b", "c"]), np.arange(2)), None)
    found, _, _ = coded((keys, matrix), labels, (3, 2), "x")
    own = matrix[[1, 2, 0]] - matrix.mean(axis=0)
    np.testing.assert_allclose(found.matrix, own / np.sqrt(np.mean(np.sum(own**2, axis=1))))
    thin, _, _ = coded((keys, sparse.coo_array(matrix)), labels, (3, 2), "x")
    own = matrix[[1, 2, 0]]
    np.testing.assert_allclose(
        thin.matrix.toarray(), own / np.sqrt(np.mean(np.sum(own**2, axis=1)))
    )


def test_further_labels_are_coded_as_those_of_the_fit():
    table = pd.DataFrame(TABLE)
    whole, _, _ = coded(table)
    (source,) = open_features({"station": table[2:4]}, LABELS.names)
    more = whole.more(source, np.array(["d", "nowhere", "c"]))
    np.testing.assert_allclose(more.matrix[5], whole.matrix[3])
    np.testing.assert_allclose(more.matrix[6], whole.matrix[4])  # nothing is known of either
    np.testing.assert_allclose(more.matrix[7], whole.matrix[2])
    np.testing.assert_allclose(whole.more(None, np.array(["q"])).matrix[5], whole.matrix[4])


def test_a_category_that_the_fit_did_not_know_is_none_of_its_categories():
    """Nor is it missing."""
    whole, _, _ = coded(pd.DataFrame(TABLE))
    further = pd.DataFrame(TABLE)[:1].assign(station="new", land="sea")
    (source,) = open_features({"station": further}, LABELS.names)
    new = whole.more(source, np.array(["new"])).matrix[5] / whole.factor + whole.centre
    np.testing.assert_allclose(new[whole.groups == 1], 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_further_rows_of_a_matrix_are_coded_as_those_of_the_fit(kind):
    """In the order of the labels; those without a row are at the mean of a dense matrix."""
    matrix = np.array([[1.0, 10.0], [2.0, 30.0], [4.0, 0.0]])
    labels = Labels(("x", "y"), (np.array(["a", "b", "c"]), np.arange(2)), None)
    whole, _, _ = coded((np.array(["c", "a", "b"]), kind(matrix)), labels, (3, 2), "x")
    (source,) = open_features({"x": (np.array(["c", "a"]), kind(matrix[:2]))}, labels.names)
    wider = (whole.more(source, np.array(["a", "new", "c"])), whole.more(None, np.array(["new"])))
    first, second = (sparse.csr_array(own.matrix).toarray() for own in wider)
    np.testing.assert_allclose(first[[3, 5]], first[[0, 2]])
    np.testing.assert_allclose(first[4], 0.0, atol=1e-12)
    np.testing.assert_allclose(second[3], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"station": ["a", "a"], "h": [1, 2]}), "label a twice, again in row 1"),
        (pd.DataFrame({"station": ["a", "b"]}), "no column besides"),
        (pd.DataFrame({"station": ["a", "b"], "h": [1.0, np.inf]}), "infinite number in row 1"),
        (pd.DataFrame({"station": ["a", "b", "c"], "h": list("xyz")}), "another text for every"),
        (
            pd.DataFrame({"station": list("abcde"), "h": ["1,5", None, "2,5", "3,5", "4"]}),
            "another text for every label, such as '1,5', which",
        ),
        (pd.DataFrame({"station": list("abcde"), "h": [1] * 5}), "same for every label"),
        (
            pd.DataFrame({"station": [1, 2], "h": [1, 2]}),
            "numbers such as 1 as labels, but text such as 'a'",
        ),
        (pd.DataFrame({"station": ["a", "b"], "h": [[1], [2]]}), "numbers, dates or text"),
        (np.ones((5, 2)), "which row is which label"),
        ((["a", "b"], np.ones((3, 2))), "2 labels, but 3 rows"),
        ((["a", "b"], np.eye(2)), "no row for the label c"),
        ((["a", "b"], np.array([[1.0], [np.nan]])), "not finite"),
        ("stations.csv", "must be a table"),
        (
            pd.DataFrame({"station": list("abcde"), "h": [1e300, 1, 2, 3, 4]}),
            "1e.300 in row 0, but",
        ),
        ((list("abcde"), np.eye(5) * 1e200), "holds 1e.200, but numbers up to"),
        ((list("abcde"), np.full((5, 2), 0.1)), "same for every label"),
        (pl.DataFrame({"station": ["a"], "h": [{"x": 1, "y": 2}]}), "values of type dict such as"),
        (pd.DataFrame({"station": ["a", None], "h": [1, 2]}), "has no label in row 1"),
        (pd.DataFrame(np.eye(5)), "a column named 0, but names must be text"),
    ],
)
def test_bad_features_are_refused_in_a_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        coded(given)


def test_what_is_no_mapping_of_modes_is_refused():
    with pytest.raises(TypeError, match="must map modes to tables"):
        open_features([1], LABELS.names)
    with pytest.raises(TypeError, match=r"got an object of type DataFrame\.$"):
        open_features(pd.DataFrame(TABLE), LABELS.names)
    with pytest.raises(ValueError, match="names the mode 'place'"):
        open_features({"place": pd.DataFrame(TABLE)}, LABELS.names)
    with pytest.raises(ValueError, match="names a mode twice"):
        open_features({"station": pd.DataFrame(TABLE), 0: pd.DataFrame(TABLE)}, LABELS.names)


def test_constants_are_left_out_whatever_their_rounding():
    """The mean of thirteen times 0.1 is not 0.1."""
    levels = np.array([f"s{i:02d}" for i in range(13)])
    labels = Labels(("station", "day"), (levels, np.arange(3)), "value")
    for constant in (0.1, 1 / 3, 1e6 + 0.1, 1e-200):
        table = pd.DataFrame({"station": levels, "h": range(13), "same": constant})
        found, _, _ = coded(table, labels, (13, 3))
        assert found.names == ("h",)
        with pytest.raises(ValueError, match="same for every label"):
            coded(table.drop(columns="h"), labels, (13, 3))
    table["same"] = 1e6 + 1e-3 * np.arange(13)
    assert coded(table, labels, (13, 3))[0].names == ("h", "same")


def test_an_index_named_as_the_mode_holds_the_labels():
    table = pd.DataFrame(TABLE)
    expected, labels, _ = coded(table)
    found, same, _ = coded(table.set_index("station"))
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert same.levels[0].tolist() == labels.levels[0].tolist()
    numbers = LABELS._replace(levels=(np.arange(5), np.arange(3)))
    floors = pd.DataFrame({"floor": [7, 9, 8, 5, 6], "h": range(5)})
    floors.index.name = "station"
    found, _, shape = coded(floors, numbers)
    assert (found.names, shape) == (("floor", "h"), (5, 3))


def test_categories_of_integers_are_categories():
    table = pd.DataFrame({"station": list("abcde"), "h": pd.Categorical([7, 8, 7, 9, 8])})
    found, _, _ = coded(table)
    assert found.columns[0].levels == ("7", "8", "9")


def test_further_labels_hold_what_those_of_the_fit_held():
    table = pd.DataFrame(TABLE)
    whole, _, _ = coded(table)

    def more(**changed):
        row = table[3:4].assign(station="z", land="wood", **changed)
        (source,) = open_features({"station": row}, LABELS.names)
        return whole.more(source, np.array(["z"])).matrix[-1]

    with pytest.raises(ValueError, match=r"holds numbers such as 5\.0, but held dates in the fit"):
        more(since=5.0)
    with pytest.raises(ValueError, match="holds text such as high, but held numbers in the fit"):
        more(height="high")
    for nothing in (None, np.nan, pd.NaT):
        row = table[3:4].assign(station="z", land=nothing, height=nothing, since=nothing)
        (source,) = open_features({"station": row}, LABELS.names)
        found = whole.more(source, np.array(["z"])).matrix[-1]
        np.testing.assert_allclose(found[:-1], whole.matrix[4][:-1])  # nothing is known of e


def test_zones_of_labels_are_those_of_the_data():
    days = pd.date_range("2020-01-01", periods=3)
    labels = Labels(("station", "day"), (np.arange(2), days.to_numpy()), None, (None, None))
    table = pd.DataFrame({"day": days, "h": [1, 2, 4]})
    aware = table.assign(day=days.tz_localize("Europe/Berlin"))
    assert coded(table, labels, (2, 3), "day")[2] == (2, 3)
    pair = (aware["day"], np.eye(3))
    for given in (aware, pair):
        with pytest.raises(ValueError, match="in the time zone Europe/Berlin as labels, but the"):
            coded(given, labels, (2, 3), "day")
    zoned = labels._replace(zones=(None, Zone("UTC", "us")))
    with pytest.raises(ValueError, match="times without a time zone as labels"):
        coded(table, zoned, (2, 3), "day")


def test_features_of_few_of_the_labels_are_told():
    def check(keys):
        (source,) = open_features({"station": (keys, np.eye(len(keys)))}, LABELS.names)
        check_overlap(source, LABELS.levels[0])

    check(["a", "b", "c", "z"])
    with pytest.raises(ValueError, match="none of the 5 labels in the data, such as 'a', but of"):
        check(["A", "B"])
    with pytest.warns(DataWarning, match="2 of the 5 labels in the data, not 'c', but of other"):
        check(["a", "b", "C", "D"])


def never(*_):
    raise AssertionError("this takes too much memory")


def test_too_many_categories_are_refused_before_they_take_memory(monkeypatch):
    n = MOST_COLUMNS + 2
    keys = np.array([f"{i:06d}" for i in range(n)])
    labels = Labels(("station", "day"), (keys, np.arange(3)), "value")
    monkeypatch.setattr(features, "_plain", never)
    table = pl.DataFrame({"station": keys, "h": np.append(keys[1:], keys[1])})
    with pytest.raises(ValueError, match="more than 100,000 columns"):
        coded(table, labels, (n, 3))


def test_sparse_rows_of_further_labels_stay_sparse(monkeypatch):
    matrix = sparse.random_array((5, 40), density=0.2, rng=1, format="csr")
    whole, _, _ = coded((list("abcde"), matrix))
    (source,) = open_features({"station": (["y", "z"], matrix[:2])}, LABELS.names)
    monkeypatch.setattr(sparse.csr_array, "toarray", never, raising=False)
    more = whole.more(source, np.array(["z", "w"])).matrix
    monkeypatch.undo()
    np.testing.assert_allclose(more.toarray()[5], whole.matrix.toarray()[1])
    assert more[[6]].nnz == whole.more(None, np.array(["q"])).matrix[[5]].nnz == 0


def test_words_that_numpy_takes_for_dates_are_text():
    texts = pa.table({"station": ["a", "b"], "d": ["today", "now"], "e": ["2020-01", "2020-02-03"]})
    found = with_types(texts, "station").schema
    assert pa.types.is_string(found.field("d").type)
    assert pa.types.is_timestamp(found.field("e").type)


@pytest.mark.parametrize("names", [["station"], ["h", "h"], [], ("station", "h")])
def test_columns_that_are_no_features_are_refused(names):
    table = pd.DataFrame({"station": ["a", "b"], "h": [1.0, 2.0], "value": [3.0, 4.0]})
    with pytest.raises(ValueError, match="must name different columns other than 'station'"):
        from_columns(table, {"station": names})
    found = from_columns(table, {"station": ("h", "value")})["station"]
    assert list(found.columns) == ["station", "h", "value"]


def test_coordinates_as_labels_count_from_zero():
    for keys, told in (([0, 1, -1], "got -1"), (["0", "1", "2"], "got '0'")):
        with pytest.raises(ValueError, match=told):
            coded((keys, np.eye(3)), plain_labels(2), (3, 3), "mode 0")


def test_a_mode_has_one_file_of_features():
    assert features_in(["a=x.csv", "b=y.csv"]) == {"a": "x.csv", "b": "y.csv"}
    with pytest.raises(ValueError, match=r"must name every mode once, got a=x\.csv and a=y\.csv"):
        features_in(["a=x.csv", "a=y.csv"])


def test_a_mistyped_coordinate_is_refused_before_it_takes_memory():
    table = pd.DataFrame({"mode 0": [0, 1, 10**13], "h": [1, 2, 4]})
    for given in (table, ([0, 1, 10**13], np.eye(3))):
        with pytest.raises(
            ValueError, match="10,000,000,000,001 coordinates, of which features of"
        ):
            coded(given, plain_labels(2), (3, 3), "mode 0")


def test_a_file_of_features_that_is_not_there_is_named():
    container = open_container(np.array([[1.0, np.nan], [2.0, 3.0]]))
    with pytest.raises(ValueError, match=r"'no\.csv' for 'mode 0', which is neither a file nor"):
        described_by({"mode 0": "no.csv"}, container)
