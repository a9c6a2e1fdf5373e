"""Labels given beside a table or a matrix: text is never padded, and checked as keys are."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesring import TensorRing, TensorRingClassifier, load
from bayesring.data.givenfeatures import open_features
from bayesring.data.unpadded import unpadded

SETTINGS = {"warmup": 2, "draws": 3, "chains": 1, "random_state": 0, "progress": False}
ONLINE = SETTINGS | {"inference": "online-em", "epochs": 1}
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda texts: np.array(texts, dtype=object),
    "pandas": pd.Series,
    "pandas categories": lambda texts: pd.Series(texts, dtype="category"),
    "polars": pl.Series,
    "pyarrow": lambda texts: pa.chunked_array([texts]),
}
NUL = "holds text with a NUL character, which keys may not contain, in row "
LONG = "holds a text of 20,000 characters, but a key may have at most 10,000, in row 2999."
ROWS = np.argwhere(np.ones((5, 4, 2)))


@pytest.fixture(params=HOLDERS)
def holder(request):
    return HOLDERS[request.param]


def refused(function, message):
    """The function refuses, before it takes memory for padded texts."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=re.escape(message)):
            function()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_labels_that_differ_in_nul_are_not_two_classes(holder):
    """Seen to be fitted: NumPy had taken `a` with and without it for one label."""
    y = holder(["a", "a\0", "b"] * 13 + ["a"])
    message = f"column 'y' {NUL}1."
    refused(lambda: TensorRingClassifier(1, **SETTINGS).fit(ROWS, y), message)


def test_labels_of_later_rows_are_checked_too():
    ring = TensorRingClassifier(1, **ONLINE).fit(ROWS, ["a", "b"] * 20)
    refused(lambda: ring.partial_fit(ROWS[:2], ["a", "b\0"]), f"column 'y' {NUL}1.")
    ring = TensorRingClassifier(1, **ONLINE)
    message = f"column 'classes' {NUL}1."
    refused(lambda: ring.partial_fit(ROWS[:2], ["a", "b"], classes=["a", "b\0"]), message)


def test_long_labels_are_refused_before_memory_is_taken(holder):
    """Seen to take 458 MB: every label was padded to the longest."""
    X = np.argwhere(np.ones((50, 30, 2)))
    y = holder(["a", "b"] * 1499 + ["a", "x" * 20_000])
    refused(lambda: TensorRingClassifier(1, **SETTINGS).fit(X, y), f"column 'y' {LONG}")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=lambda f: f.__module__)
def test_long_labels_of_a_column_are_refused_too(make):
    X = np.argwhere(np.ones((50, 30, 2)))
    labels = ["a", "b"] * 1499 + ["a", "x" * 20_000]
    table = make(dict(zip("abc", X.T, strict=True)) | {"v": labels})
    ring = TensorRingClassifier(1, **SETTINGS)
    refused(lambda: ring.fit(table, modes=["a", "b", "c"], value="v"), f"column 'y' {LONG}")


def test_long_labels_of_features_are_refused_before_memory_is_taken(holder):
    """Seen to take 229 MB."""
    keys = holder([f"k{number}" for number in range(2999)] + ["x" * 20_000])
    given = {"a": (keys, np.arange(3000.0)[:, None])}
    refused(lambda: open_features(given, ["a", "b"]), f"column \"features of 'a'\" {LONG}")


@pytest.mark.parametrize("keys", ["abc", None, 5, [["a"], ["b"]]])
def test_labels_of_features_are_a_column(keys):
    with pytest.raises(ValueError, match="features of 'a' must have one label per row, got"):
        open_features({"a": (keys, np.ones((2, 1)))}, ["a", "b"])


def test_features_find_the_labels_that_they_are_of(holder):
    source = open_features({"a": (holder(["b", "c", "a"]), np.ones((3, 1)))}, ["a", "b"])[0]
    assert source.keys.tolist() == ["b", "c", "a"]
    with pytest.raises(ValueError, match="has the label b twice, again in row 2"):
        open_features({"a": (holder(["b", "c", "b"]), np.ones((3, 1)))}, ["a", "b"])


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [("no", "yes", "O"), (0, 1, "i2"), (False, True, "?"), (-1.0, 1.0, "f4"), (3, 7, "u1")],
)
def test_classes_are_sorted_and_of_the_kind_of_the_labels(one, other, kind):
    y = np.array([other, one] * 20).astype(kind)
    ring = TensorRingClassifier(1, **SETTINGS).fit(ROWS, y)
    assert ring.classes_.tolist() == [one, other]
    assert ring.classes_.dtype == ("U3" if kind == "O" else kind)
    assert ring.observed_.values.tolist() == [1.0, 0.0] * 20


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b", 1], "y holds labels of different kinds, which cannot be sorted"),
        (["a", float("nan"), "b"], "y contains NaN or nothing in row 1"),
        (pd.Series(["a", None, "b"], dtype="string"), "y contains NaN or nothing in row 1"),
        ([], "y holds no labels, but a classifier needs two of them"),
        (["a", "\ud800"], r"column 'y' holds the text '\ud800', which is not valid Unicode, in"),
    ],
)
def test_what_is_no_label(y, message):
    refused(lambda: TensorRingClassifier(1, **SETTINGS).fit(ROWS[: len(y)], y), message)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (b"no", b"yes", "bytes_"),
        (np.datetime64("2020-01-01"), np.datetime64("2021-01-01"), "datetime64"),
        (1j, 2j, "complex128"),
    ],
)
def test_labels_that_no_file_holds_are_refused_before_the_fit(one, other, told):
    """Seen to fail: the model was saved, and refused when it was loaded."""
    expected = f"y holds labels of type {told}, but they must be text, numbers or booleans"
    y = np.array([other, one] * 20)
    refused(lambda: TensorRingClassifier(1, **SETTINGS).fit(ROWS, y), expected)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (False, True), (0.5, 1.5)])
def test_numbers_among_objects_are_labels(tmp_path, one, other):
    """Seen to fail: the model could not be saved."""
    ring = TensorRingClassifier(1, **SETTINGS).fit(ROWS, np.array([other, one] * 20, dtype=object))
    ring.save(tmp_path / "m.ring")
    found = load(tmp_path / "m.ring").classes_
    assert found.tolist() == [one, other]
    assert found.dtype.kind in "ibf"


def test_padded_text_and_numbers_stay_arrays():
    for values in (np.array(["a", "bc"]), np.array([1, 2], np.int8), [True, False], (1.5, 2)):
        np.testing.assert_array_equal(unpadded(values), np.asarray(values), strict=True)
    assert unpadded(pl.Series([1, None])).dtype == float


def test_a_regressor_does_not_mind():
    """Its values are numbers, whatever holds them."""
    ring = TensorRing(1, **SETTINGS).fit(ROWS, pl.Series(np.arange(40.0)))
    assert ring.n_observations_ == 40
