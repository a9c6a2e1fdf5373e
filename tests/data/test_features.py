"""Features as given, coded as numbers."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bayesring.data.features import code, known_from, open_features
from bayesring.data.labels import Labels, plain_labels

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
        (pd.DataFrame({"station": list("abcde"), "h": [1] * 5}), "same for every label"),
        (pd.DataFrame({"station": [1, 2], "h": [1, 2]}), "but text such as a elsewhere"),
        (pd.DataFrame({"station": ["a", "b"], "h": [[1], [2]]}), "numbers, dates or text"),
        (np.ones((5, 2)), "which row is which label"),
        ((["a", "b"], np.ones((3, 2))), "2 labels, but 3 rows"),
        ((["a", "b"], np.eye(2)), "no row for the label c"),
        ((["a", "b"], np.array([[1.0], [np.nan]])), "not finite"),
        ("stations.csv", "must be a table"),
    ],
)
def test_bad_features_are_refused_in_a_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        coded(given)


def test_what_is_no_mapping_of_modes_is_refused():
    with pytest.raises(TypeError, match="must map modes to tables"):
        open_features([1], LABELS.names)
    with pytest.raises(ValueError, match="names the mode 'place'"):
        open_features({"place": pd.DataFrame(TABLE)}, LABELS.names)
    with pytest.raises(ValueError, match="names a mode twice"):
        open_features({"station": pd.DataFrame(TABLE), 0: pd.DataFrame(TABLE)}, LABELS.names)
