"""Parquet data that cannot be used: files, rows and columns are named."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesring import TensorRing
from bayesring.data.files import read_data
from bayesring.data.parquet import Coding, ParquetRows
from tests.parquet_files import N, epoch_of, opened, planted, small_pools


def write_parts(folder, *tables):
    folder.mkdir()
    for part, table in enumerate(tables):
        parquet.write_table(table, folder / f"part-{part}.parquet", row_group_size=300)
    return folder


def with_value(table, row, value):
    values = table["value"].to_pylist()
    values[row] = value
    return table.set_column(2, "value", pa.array(values, table["value"].type))


def with_key(table, row, key):
    keys = table["i"].to_pylist()
    keys[row] = key
    return table.set_column(0, "i", pa.array(keys, table["i"].type))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            with_value(planted(), 4321, np.nan),
            "column 'value': NaN; values must be finite numbers.",
        ),
        (
            with_value(planted(), 4321, -np.inf),
            "column 'value': infinity; values must be finite numbers.",
        ),
        (
            with_value(with_value(planted(), 4320, None), 4321, np.nan),
            "column 'value': NaN; values must be finite numbers.",
        ),
        (
            with_key(planted(), 4321, None),
            "column 'i': no key; every row must say which cell it belongs to, only the value may "
            "be missing.",
        ),
    ],
    ids=["NaN", "infinity", "NaN after a gap", "no key"],
)
def test_bad_rows_are_named(tmp_path, bad, message):
    folder = write_parts(tmp_path / "x", planted(), bad)
    rows = ParquetRows(folder, ["i", "j"], "value")
    message = "^" + re.escape(f"File part-1.parquet, row 4,321, {message}") + "$"
    with pytest.raises(ValueError, match=message):
        rows.survey()
    good = ParquetRows(folder / "part-0.parquet", ["i", "j"], "value").survey()
    with pytest.raises(ValueError, match=message):
        epoch_of(rows, Coding(good.labels))
    assert len(rows.take(Coding(good.labels), np.arange(N + 300)).values) == N + 300


def test_missing_fractions_among_keys_are_named(tmp_path):
    table = planted().set_column(0, "i", pa.array([0.5] * 4999 + [np.nan]))
    with pytest.raises(ValueError, match=r"x\.parquet, row 4,999, column 'i': no key;"):
        opened(tmp_path / "x.parquet", table).survey()


def test_what_came_before_a_bad_row_is_kept(tmp_path, monkeypatch):
    small_pools(monkeypatch)
    rows = opened(tmp_path / "x.parquet", with_value(planted(50_000), 49_000, np.nan))
    labels = opened(tmp_path / "y.parquet", planted(50_000)).survey().labels
    kept = []
    with pytest.raises(ValueError, match=r"row 49,000, column 'value': NaN"):
        kept += (len(chunk.values) for chunk in rows.chunks(Coding(labels), 0, 0, rows=100))
    assert sum(kept) > 0


def test_unknown_labels_are_named(tmp_path):
    rows = opened(tmp_path / "x.parquet", planted())
    survey = rows.survey()
    text = planted().set_column(0, "i", planted()["i"].cast(pa.string()))
    for table, levels, key in [
        (planted(), survey.labels.levels[0], 99),
        (planted(), np.append(survey.labels.levels[0], 2**50), 99),
        (text, np.sort(survey.labels.levels[0].astype(str)), "99"),
    ]:
        labels = survey.labels._replace(levels=(levels, survey.labels.levels[1]))
        other = opened(tmp_path / "y.parquet", with_key(table, 4000, key))
        with pytest.raises(
            ValueError,
            match=r"y\.parquet, row 4,000, column 'i': 99, which is not among the labels of",
        ):
            epoch_of(other, Coding(labels))
    with pytest.raises(
        ValueError,
        match="column 'i' holds text, but the model was fitted with numbers such as -3",
    ):
        epoch_of(opened(tmp_path / "z.parquet", text), Coding(survey.labels))


def test_columns_and_types_are_checked_before_any_work(tmp_path):
    table = planted()
    text = table.set_column(0, "i", table["i"].cast(pa.string()))
    for number, (second, modes, message) in enumerate(
        [
            (
                table.drop_columns("value"),
                ("i", "j"),
                "File part-1.parquet has no column 'value'; its columns are ['i', 'j'].",
            ),
            (
                table.drop_columns("j"),
                ("i", "j"),
                "File part-1.parquet has no column 'j'; its columns are ['i', 'value'].",
            ),
            (
                text,
                ("i", "j"),
                "File part-1.parquet, column 'i': holds string, but int32 in part-0.parquet; a "
                "column must have one type in all files.",
            ),
            (
                table.set_column(2, "value", text["i"]),
                ("i", "j"),
                "File part-1.parquet, column 'value': holds string, but numbers are required.",
            ),
            (
                table.set_column(0, "i", pa.array([b"x"] * N)),
                ("i", "j"),
                "File part-1.parquet: column 'i' holds values of type binary, but a key must be "
                "text, a number, a date, a duration or a boolean.",
            ),
            (table, ("i",), "modes must name at least 2 key columns, got ['i']."),
            (table, ("i", "i"), "modes names a column twice: ['i', 'i']."),
            (table, ("i", "value"), "value 'value' is also among the modes ['i', 'value']."),
            (table, "ij", "modes must be a list of column names, got the text 'ij'."),
        ]
    ):
        folder = write_parts(tmp_path / str(number), table, second)
        with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
            ParquetRows(folder, modes, "value")
    with pytest.raises(ValueError, match=r"empty\.parquet holds no rows\."):
        opened(tmp_path / "empty.parquet", table[:0])
    gaps = table.set_column(2, "value", pa.nulls(N, pa.float32()))
    with pytest.raises(ValueError, match="'value' holds no value in any of its 5,000 rows"):
        opened(tmp_path / "gaps.parquet", gaps).survey()
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist\."):
        ParquetRows(tmp_path / "nowhere", ["i", "j"], "value")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"nothing contains no file with the extension \.parquet"
    ):
        ParquetRows(tmp_path / "nothing", ["i", "j"], "value")


def test_files_that_end_before_their_last_row_are_named(tmp_path, monkeypatch):
    """Arrow may stop early without a word; rows must not be lost for that."""
    rows = opened(tmp_path / "x.parquet", planted())
    right = parquet.ParquetFile.iter_batches

    def shorter(self, *arguments, row_groups, **settings):
        for batch in right(self, *arguments, row_groups=row_groups, **settings):
            yield batch.slice(0, len(batch) - 7) if row_groups == [2] else batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", shorter)
    with pytest.raises(ValueError, match=r"row 893 and after: the file ends before its 900 rows"):
        rows.survey()


def test_damaged_files_are_named(tmp_path):
    folder = write_parts(tmp_path / "x", planted(), planted())
    path = folder / "part-1.parquet"
    whole = path.read_bytes()

    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        ValueError,
        match=r"^File part-1\.parquet is not a complete Parquet file: it is truncated or damaged "
        r"\(.*\)\.$",
    ):
        ParquetRows(folder, ["i", "j"], "value")

    path.write_bytes(whole[:1000] + whole[5000:])
    with pytest.raises(
        ValueError,
        match=r"^File part-1\.parquet is not a complete Parquet file: it is truncated or damaged "
        r"\(it has [\d,]+ bytes before its footer, which refers to [\d,]+ or more\)\.$",
    ):
        ParquetRows(folder, ["i", "j"], "value")

    metadata = parquet.ParquetFile(path.with_name("part-0.parquet")).metadata
    begin = metadata.row_group(4).column(0).dictionary_page_offset
    path.write_bytes(whole[:begin] + b"\xff" * 200 + whole[begin + 200 :])
    rows = ParquetRows(folder, ["i", "j"], "value")
    message = (
        r"^File part-1\.parquet, row 1,200 and after: cannot be read, the file is damaged \(.*\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        rows.survey()
    labels = ParquetRows(path.with_name("part-0.parquet"), ["i", "j"], "value").survey().labels
    with pytest.raises(ValueError, match=message):
        epoch_of(rows, Coding(labels))


def test_values_whose_variance_overflows(tmp_path):
    path = tmp_path / "x.parquet"
    table = {"a": [0, 1, 2, 0], "b": ["x", "y", "x", "y"], "v": [1e200, -1e200, 1.0, 2.0]}
    parquet.write_table(pa.table(table), path, row_group_size=2)
    ring = TensorRing(1, inference="online-em", epochs=1, draws=2, chains=1, progress=False)
    with pytest.raises(ValueError, match=r"values, from -1e\+200 to 1e\+200, are too large for"):
        ring.fit(path, modes=["a", "b"], value="v")


def test_text_that_is_not_utf_8(tmp_path):
    path = tmp_path / "x.parquet"
    texts = pa.array([b"x", b"\xff\xfe", b"x", b"y"], pa.binary()).view(pa.string())
    parquet.write_table(pa.table({"a": texts, "b": [0, 1, 1, 0], "v": [1.0, 2.0, 3.0, 4.0]}), path)
    ring = TensorRing(1, inference="online-em", epochs=1, draws=2, chains=1, progress=False)
    with pytest.raises(ValueError, match="'a' holds text that is not in UTF-8"):
        ring.fit(path, modes=["a", "b"], value="v")
    with pytest.raises(ValueError, match=r"x\.parquet is not a .parquet file: .*UTF8"):
        read_data(str(path))
