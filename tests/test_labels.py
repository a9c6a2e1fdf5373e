"""Labels: every kind of key, coded in sorted order, stored without pickle."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesring import TensorRing, load
from bayesring.data.labels import (
    as_keys,
    encode,
    extend,
    label_texts,
    learn_column,
    learn_levels,
    numbers_of,
)

QUICK = {"rank": 1, "warmup": 3, "draws": 6, "chains": 2, "random_state": 0, "progress": False}
DATES = [datetime.date(2021, 3, 1), datetime.date(2020, 12, 24), datetime.date(2021, 1, 1)]
TIMES = [datetime.datetime(2021, 3, 1, 12), datetime.datetime(2020, 12, 24), datetime.datetime.max]
KEYS = {
    "text": ["b", "a", "é"],
    "integers": [10, 2, -3],
    "large numbers": [2**40, 2**40 + 1, 0],
    "floats": [0.5, -1.25, 3.0],
    "truth": [True, False, True],
    "dates": DATES,
    "times": [time.replace(microsecond=0, year=2021) for time in TIMES],
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_key_is_learned_sorted_and_saved(tmp_path, make, kind):
    keys = KEYS[kind]
    table = make({"a": keys, "b": ["x", "y", "x"], "t": [1.0, 2.0, 4.0]})
    ring = TensorRing(order=None, **QUICK).fit(table, modes=["a", "b"], value="t")
    levels = ring.labels_.levels[0]
    assert (
        [np.datetime64(k, "us") for k in sorted(set(keys))] == list(levels.astype("M8[us]"))
        if levels.dtype.kind == "M"
        else sorted(set(keys)) == levels.tolist()
    )
    ring.save(tmp_path / "model.ring")
    loaded = load(tmp_path / "model.ring")
    assert loaded.labels_.names == ("a", "b")
    assert loaded.labels_.value == "t"
    for kept, found in zip(ring.labels_.levels, loaded.labels_.levels, strict=True):
        assert kept.dtype == found.dtype
        np.testing.assert_array_equal(kept, found)
    predicted = np.array(loaded.predict_table(table)["mean"])
    np.testing.assert_array_equal(predicted, np.array(ring.predict_table(table)["mean"]))
    codes = [sorted(set(keys)).index(key) for key in keys]
    coords = np.stack([codes, [0, 1, 0]], axis=1)
    by_hand = TensorRing(**QUICK).fit(coords, [1.0, 2.0, 4.0], shape=ring.shape_)
    np.testing.assert_allclose(predicted, by_hand.predict(coords), rtol=1e-12)


@given(
    st.one_of(
        st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
        st.lists(st.floats(allow_nan=False), min_size=1),
        st.lists(st.dates(), min_size=1),
        st.lists(st.datetimes(), min_size=1),
    )
)
def test_coding_is_undone_by_looking_up(keys):
    array = (
        as_keys(np.array(keys, dtype=object), "k")
        if not isinstance(keys[0], float)
        else as_keys(keys, "k")
    )
    levels, codes = learn_levels(array)
    assert np.all(levels[codes] == array)
    assert np.all(levels[:-1] < levels[1:])
    np.testing.assert_array_equal(encode(array, levels), codes)
    shuffled = np.random.default_rng(0).permutation(len(levels))
    np.testing.assert_array_equal(levels[shuffled][encode(array, levels[shuffled])], array)
    rest = levels[1:]
    if len(rest):
        unknown = encode(array, rest) == len(rest)
        np.testing.assert_array_equal(unknown, codes == 0)


def test_equal_dates_of_different_libraries_are_equal_labels():
    table = pl.DataFrame({"d": DATES, "b": [1, 2, 1], "t": [1.0, 2.0, 4.0]})
    ring = TensorRing(**QUICK).fit(table, modes=["d", "b"], value="t")
    assert ring.labels_.levels[0].dtype == "M8[D]"
    stamps = pd.DataFrame({"d": pd.to_datetime(DATES), "b": [1, 2, 1]})
    again = TensorRing(**QUICK).fit(stamps, [1.0, 2.0, 4.0])
    assert again.labels_.levels[0].dtype == "M8[D]"
    assert label_texts(again.labels_, (3, 2))[0] == ["2020-12-24", "2021-01-01", "2021-03-01"]
    objects = pd.DataFrame({"d": DATES, "b": [1.0, 2.0, 1.0]})
    np.testing.assert_array_equal(
        ring.predict_table(stamps)["mean"], ring.predict_table(objects)["mean"]
    )


def test_periods_are_the_dates_they_begin_on():
    months = pd.PeriodIndex(["2020-02", "2020-01", "2020-02"], freq="M")
    table = pd.DataFrame({"d": months, "b": [1, 2, 2], "t": [1.0, 2.0, 4.0]})
    ring = TensorRing(**QUICK).fit(table)
    assert ring.labels_.levels[0].astype(str).tolist() == ["2020-01-01", "2020-02-01"]
    assert ring.predict_table(table)["d"].dtype == table["d"].dtype


TABLE = pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 2], "t": [1.0, 2.0, 4.0]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            TABLE.assign(a=[1, 2, 3]),
            "column 'a' holds numbers such as 1, but the model was fitted ",
        ),
        (TABLE.assign(b=["1", "b", "2"]), "column 'b' holds text such as b, but the model was fi"),
        (TABLE.assign(b=pd.to_datetime(DATES)), "'b' holds dates such as 2021-03-01, but the mod"),
        (TABLE[["a"]], "X names 'b', which is not a column of the table; its columns are ['a']."),
        (TABLE.iloc[:0], "X is empty: found a table with 0 rows."),
        (TABLE.assign(a=[["x"], ["y"], ["x"]]), "a key must be text, a number, a date"),
        (TABLE.assign(b=[1, 2, None]), "column 'b' has no key in row 2: every row must say which "),
    ],
)
def test_tables_that_do_not_fit_the_model(table, message):
    ring = TensorRing(**QUICK).fit(TABLE, modes=["a", "b"], value="t")
    with pytest.raises(ValueError, match=re.escape(message)):
        ring.predict(table)


def test_column_names_are_for_tables():
    coords = np.indices((3, 3)).reshape(2, -1).T
    with pytest.raises(ValueError, match="value names a column of a table, but X is of type ndarr"):
        TensorRing(**QUICK).fit(coords, np.arange(9.0), modes=["a", "b"], value="t")
    for wrong in (["a"], ["a", "a"], ["a", 3], "ab", 7):
        with pytest.raises(ValueError, match="modes must be"):
            TensorRing(**QUICK).fit(coords, np.arange(9.0), modes=wrong)
    named = TensorRing(**QUICK).fit(
        coords, np.arange(9.0), modes=["a", "b"], positions={"b": [1, 2, 4]}
    )
    assert named.labels_.names == ("a", "b")
    with pytest.raises(ValueError, match="values are given twice: as y and as the column 't'"):
        TensorRing(**QUICK).fit(TABLE, [1, 2, 3], modes=["a", "b"], value="t")
    with pytest.raises(ValueError, match=r"shape \(5, 5\) does not fit the labels of the table"):
        TensorRing(shape=(5, 5), **QUICK).fit(TABLE, modes=["a", "b"], value="t")


def test_values_may_come_apart_from_the_labels():
    together = TensorRing(**QUICK).fit(TABLE, modes=["a", "b"], value="t")
    apart = TensorRing(**QUICK).fit(TABLE[["a", "b"]], TABLE["t"], modes=["a", "b"])
    np.testing.assert_array_equal(
        together.predict_table(TABLE)["mean"], apart.predict_table(TABLE)["mean"]
    )
    assert together.score(TABLE) == apart.score(TABLE, TABLE["t"])


def test_integers_in_a_table_are_labels():
    table = pd.DataFrame({"a": [0, 3, 1], "b": [0, 1, 2]})
    ring = TensorRing(**QUICK).fit(table, [1.0, 2.0, 3.0])
    assert ring.shape_ == (3, 3)
    assert ring.labels_.levels[0].tolist() == [0, 1, 3]
    of_array = TensorRing(**QUICK).fit(table.to_numpy(), [1.0, 2.0, 3.0])
    assert of_array.shape_ == (4, 3)  # coordinates


def test_rows_without_a_value_make_their_labels_known():
    table = pd.concat([TABLE, pd.DataFrame({"a": ["new"], "b": [1], "t": [np.nan]})])
    ring = TensorRing(**QUICK).fit(table, modes=["a", "b"], value="t")
    assert ring.n_observations_ == 3
    assert ring.labels_.levels[0].tolist() == ["new", "x", "y"]
    assert ring.predict_table(table.tail(1))["mean"].notna().all()


def test_predictions_of_tables_are_those_of_coordinates():
    ring = TensorRing(**QUICK).fit(TABLE, modes=["a", "b"], value="t")
    coords = np.array([[0, 0], [1, 1], [0, 1]])
    found = ring.predict_table(TABLE, level=0.8)
    assert list(found) == ["a", "b", "mean", "std", "lower", "upper"]
    mean, std = ring.predict(coords, return_std=True)
    lower, upper = ring.predict_interval(coords, level=0.8)
    for name, expected in zip(found.columns[2:], (mean, std, lower, upper), strict=True):
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)
    for own, other in zip(ring.predict_interval(TABLE, 0.8), (lower, upper), strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(ring.sample(TABLE, 3), ring.sample(coords, 3))
    quiet = ring.predict_table(TABLE, noise=False)
    assert (quiet["std"] < found["std"]).all()


def test_binary_tables_hold_intervals_of_probabilities():
    table = TABLE.assign(t=[0, 1, 1])
    ring = TensorRing(likelihood="bernoulli", **QUICK).fit(table, modes=["a", "b"], value="t")
    found = ring.predict_table(table)
    assert found["lower"].gt(0).all()
    assert found["upper"].lt(1).all()
    np.testing.assert_allclose(ring.predict(table), found["mean"], rtol=1e-12)


def test_equal_keys_have_equal_numbers_however_they_are_kept():
    """Also between processes and releases: the first one is written down."""
    assert numbers_of(np.array(["a"])) == [4681665781835383343]
    for one, other in [
        (np.array(["a", "é"]), np.array(["a", "é", "longer"])[:2]),
        (np.array([2, -1, 2**40], dtype=np.int64), np.array([2.0, -1.0, 2.0**40])),
        (np.array([2, 3], dtype=np.int8), np.array([2, 3], dtype=np.uint64)),
        (np.array([0.5], dtype=np.float32), np.array([0.5])),
        (np.array(["2020-01-31"], dtype="M8[D]"), np.array(["2020-01-31"], dtype="M8[ns]")),
        (np.array([48], dtype="m8[h]"), np.array([2], dtype="m8[D]")),
    ]:
        assert numbers_of(one) == numbers_of(other)


def test_different_keys_have_different_numbers():
    """Python's own hash has the same for -1 and -2."""
    keys = [
        np.arange(-1000, 1000),
        np.arange(1000) / 7,
        np.arange(1000).astype("M8[h]"),
        np.arange(1000).astype("m8[s]"),
        np.array([f"station {n}" for n in range(1000)]),
    ]
    for each in keys:
        numbers = numbers_of(each)
        assert len(set(numbers)) == len(each)
        assert all(0 <= number < 2**64 for number in numbers)


def test_new_labels_that_no_type_holds_beside_the_old_are_refused():
    """In either: a large integer beside fractions would become another one."""
    fractions, large = np.array([0.5, 1.0]), np.array([2**53 + 1])
    for levels, added in ((fractions, large), (large, fractions)):
        with pytest.raises(ValueError, match="no type holds both exactly"):
            extend(levels, added, "a")
    np.testing.assert_array_equal(extend(fractions, np.array([3]), "a"), [0.5, 1.0, 3.0])


@pytest.mark.parametrize("dtype", [object, str])
def test_text_that_no_file_can_hold_is_no_key(dtype):
    """Half of an emoji, as text cut by UTF-16 leaves it: no model or report could be written."""
    keys = np.array(["a", "b", "s\ud83d"], dtype=dtype)
    with pytest.raises(ValueError, match=r"'s\\ud83d', which is not valid Unicode, in row 2"):
        learn_column(keys, "a")
    whole = np.array(["a", "\U0001f600"], dtype=dtype)
    assert learn_column(whole, "a")[0].tolist() == ["a", "\U0001f600"]
