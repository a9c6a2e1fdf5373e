"""Text keys that NumPy's arrays of text cannot hold well: very long ones, and those with NUL."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from bayesring.data import labels
from bayesring.data.csvfiles import read_csv
from bayesring.data.labels import as_keys, learn_column, learn_levels
from bayesring.data.opentables import open_table
from bayesring.data.parquet import ParquetRows
from bayesring.data.tables import code_table, find_columns

N = 100_000


def code(table):
    frame = open_table(table)
    return code_table(frame, find_columns(frame, ["a", "b"], "v"))


def columns(n=N, **changes):
    names = [f"k{number % 100}" for number in range(n)]
    for row, text in changes.items():
        names[int(row.removeprefix("row_"))] = text
    return {"a": names, "b": np.arange(n) % 7, "v": np.arange(n) / 10}


LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas objects": lambda given: pd.DataFrame(given).astype({"a": object}),
    "pandas categories": lambda given: pd.DataFrame(given).astype({"a": "category"}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow dictionaries": lambda given: pa.table(
        {**given, "a": pa.array(given["a"]).dictionary_encode()}
    ),
}
LONG = "column 'a' holds a text of 1,000,000 characters, but a key may have at most 10,000, in row "
NUL = "column 'a' holds text with a NUL character, which keys may not contain, in row "


@pytest.mark.parametrize("library", LIBRARIES)
def test_long_texts_are_refused_before_memory_is_taken(library):
    table = LIBRARIES[library](columns(row_777="x" * 1_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"^{re.escape(LONG)}777\\.$"):
            code(table)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_not_as_long_as_the_longest_text(library):
    table = LIBRARIES[library](columns(row_777="x" * 10_000))
    tracemalloc.start()
    try:
        found = code(table)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000  # rows would take 4,000 MB
    finally:
        tracemalloc.stop()
    assert found.labels.levels[0][found.coords[777, 0]] == "x" * 10_000
    assert found.shape == (101, 7)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", ["k1\0", "\0", "a\0b"])
def test_texts_with_nul_are_refused(library, text):
    with pytest.raises(ValueError, match=f"^{re.escape(NUL)}50\\.$"):
        code(LIBRARIES[library](columns(n=100, row_50=text)))


def test_labels_as_long_as_the_longest_must_fit_into_memory(monkeypatch):
    monkeypatch.setattr(labels, "PADDING", 1)
    monkeypatch.setattr(labels, "LARGEST", 4 * 101 * 60)
    code(pa.table(columns(row_3="x" * 60)))
    with pytest.raises(ValueError, match="text of 61 characters, but a key may have at most 60, "):
        code(pa.table(columns(row_3="x" * 61)))
    monkeypatch.setattr(labels, "PADDING", 101)  # all labels may be as long as all texts together
    code(pa.table(columns(row_3="x" * 5000)))


@pytest.mark.parametrize(
    "keys",
    [
        ["b", "a", "", "b", "ä", "\U0001f600", "B"],
        [np.str_("b"), "a", "b"],
        [3, 1, 2, 1],
        [True, False, True],
        [2.5, -0.0, 0.0],
    ],
)
def test_columns_are_learned_as_numpy_sorts_them(keys):
    for array in (np.array(keys), np.array(keys, dtype=object)):
        if array.dtype == object and isinstance(keys[0], float):
            continue
        found, places = learn_column(array, "a")
        levels, codes = learn_levels(as_keys(array, "a"))
        np.testing.assert_array_equal(found, levels)
        assert found.dtype == levels.dtype
        np.testing.assert_array_equal(places, codes)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k1\0", "holds text with a NUL character, which keys may not contain."),
        (
            "x" * 10_001,
            "holds a text of 10,001 characters, but a key may have at most 10,000.",
        ),
    ],
)
def test_parquet_names_file_and_row(tmp_path, text, message, dictionary):
    path = tmp_path / "x.parquet"
    given = columns(n=1000, row_0="\u20ac" * 5000, row_321=text)
    parquet.write_table(pa.table(given), path, row_group_size=200, use_dictionary=dictionary)
    rows = ParquetRows(path, ["a", "b"], "v")
    where = re.escape(f"File {path}, row 321, column 'a': {message}")
    with pytest.raises(ValueError, match=f"^{where}$"):
        rows.survey()


def write_csv(path, given):
    rows = zip(*given.values(), strict=True)
    lines = [",".join(given), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "k1\0",
            "column 'a' holds text with a NUL character, which keys may not contain, in line 52.",
        ),
        (
            "x" * 500_000,
            "column 'a' holds a text of 500,000 characters, but a key may have at most 10,000, in "
            "line 52.",
        ),
    ],
)
def test_csv_names_column_and_line(tmp_path, text, message):
    source = write_csv(tmp_path / "x.csv", columns(row_50=text))
    for modes in (["a", "b"], None):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
                read_csv(source, modes, "v")
            assert tracemalloc.get_traced_memory()[1] < 100_000_000
        finally:
            tracemalloc.stop()
    kinds = {"a": np.array(["k1"]), "b": np.array([1])}
    with pytest.raises(ValueError, match=re.escape(message)):
        read_csv(source, ["a", "b"], None, kinds)


@pytest.mark.parametrize("size", [1_100_000, 5_000_000])
@pytest.mark.parametrize("row", [50, 60_000, N - 1])
def test_csv_lines_may_be_longer_than_a_block_of_arrow(tmp_path, size, row):
    source = write_csv(tmp_path / "x.csv", columns(**{f"row_{row}": "x" * size}))
    message = f"holds a text of {size:,} characters, but a key may have at most 10,000, in line "
    with pytest.raises(ValueError, match=re.escape(f"{message}{row + 2}.")):
        read_csv(source, ["a", "b"], "v")
    note = {"note": ["", "y" * size, *[""] * 98]}
    source = write_csv(tmp_path / "y.csv", columns(n=100) | note)
    assert read_csv(source, ["a", "b"], "v")["note"].to_pylist() == note["note"]


def test_arrow_is_given_no_file_of_python(tmp_path, monkeypatch):
    """It reads ahead in a thread, which an error leaves behind.

    If that thread has to take Python's lock while the interpreter ends, the process hangs or is
    aborted: seen twice, with a line longer than a block.
    """
    given, right = [], arrow_csv.read_csv

    def read(source, *options):
        given.append(source)
        return right(source, *options)

    monkeypatch.setattr(arrow_csv, "read_csv", read)
    read_csv(write_csv(tmp_path / "x.csv", columns(n=100)), ["a", "b"], "v")
    assert [type(source) for source in given] == [pa.BufferReader]


def test_csv_columns_that_are_no_keys_may_hold_anything(tmp_path):
    given = columns(n=100) | {"note": ["x" * 20_000, *["y"] * 99]}
    source = write_csv(tmp_path / "x.csv", given)
    assert read_csv(source, ["a", "b"], "v")["note"][0].as_py() == "x" * 20_000
    table = read_csv(source, ["a", "b"], None, {"a": np.array(["k1"]), "b": np.array([1])})
    assert table["b"].type == pa.int64()
    assert table["note"].type == pa.string()
