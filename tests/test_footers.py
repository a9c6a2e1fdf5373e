"""Footers of Parquet files, which need not be trusted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from bayesring.data.files import read_data
from bayesring.data.parquet import ParquetRows, thrift
from bayesring.data.parquet.thrift import FOOTER, PAGE, Walk, read_footer

N_ALTERED = 500


def test_altered_footers_are_refused_or_work(tmp_path, seed):
    """In a process of its own: Arrow ends the interpreter at some footers."""
    program = [sys.executable, Path(__file__).with_name("hostile_footers.py")]
    done = subprocess.run(
        [*program, str(seed), str(N_ALTERED), tmp_path],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-200:] + done.stderr[-2000:]
    outcomes = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()]
    assert len(outcomes) == N_ALTERED
    assert (
        {"refused refused", "works works"}
        <= set(outcomes)
        <= {
            "refused refused",
            "works works",
            "refused works",
        }
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_dictionary": False, "compression": "none"},
        {"write_page_index": True, "store_schema": False, "version": "1.0"},
    ],
)
def test_a_footer_says_what_arrow_says(tmp_path, settings):
    columns = {
        "a": [f"k{number % 7}" for number in range(100)],
        "nested": [{"x": number, "y": [number, 1]} for number in range(100)],
        "b": np.arange(100.0),
    }
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=30, **settings)
    metadata = parquet.read_metadata(path)
    groups = read_footer(path)
    assert len(groups) == metadata.num_row_groups == 4
    for number, group in enumerate(groups):
        expected = metadata.row_group(number)
        assert group.n_rows == expected.num_rows
        assert len(group.columns) == expected.num_columns == 4
        for place, column in enumerate(group.columns):
            known = expected.column(place)
            assert column[:4] == (
                known.path_in_schema,
                known.num_values,
                known.total_uncompressed_size,
                known.dictionary_page_offset is not None,
            )
            begin = known.dictionary_page_offset or known.data_page_offset
            assert (column.begin, column.end) == (begin, begin + known.total_compressed_size)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has only 0 bytes"),
        (b"PAR1", "it has only 4 bytes"),
        (b"PAR1" + bytes(20), "does not begin and end as a Parquet file"),
        (b"PARE" + bytes(20) + b"PARE", "does not begin and end as a Parquet file"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "footer of 2,147,483,647 bytes is longer than the file"),
        (b"PAR1\x00\x01\x00\x00\x00PAR1", "its footer lacks the schema"),
    ],
)
def test_files_that_are_no_parquet(tmp_path, content, message):
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^File .*x\.parquet is not a complete .*{message}"):
        ParquetRows(path, ["a", "b"], "v")
    with pytest.raises(ValueError, match=rf"x\.parquet is not a \.parquet file: .*{message}"):
        read_data(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x1c" * 100 + b"\x00" * 100, "nested too deeply"),
        (b"\x19" * 100, "nested too deeply"),
        (b"\x19\xf5" + b"\xff" * 4 + b"\x07", "ends too early"),
        (b"\x18" + b"\xff" * 4 + b"\x07", "ends too early"),
        (b"\x16" + b"\xff" * 11, "a number that is too long"),
        (b"\x15", "ends too early"),
        (b"\x1d\x00", "fields of a wrong type"),
        (b"\x2c\x00\x00", "fields of a wrong type"),
    ],
)
def test_a_walk_ends(content, message):
    with pytest.raises(ValueError, match=message):
        Walk(content).struct(FOOTER)


@pytest.mark.parametrize("which", ["unpacked", "packed"])
@pytest.mark.parametrize("page", [0, 2])
@pytest.mark.parametrize("group", [0, 1])
def test_pages_do_not_claim_more_than_there_is(tmp_path, monkeypatch, which, page, group):
    """Arrow would clear as much memory as a page says, whatever the file has."""
    monkeypatch.setattr(thrift, "LARGE_PAGE", 2**18)
    path, n = tmp_path / "x.parquet", 60_000  # three pages in each of two row groups
    values = np.random.default_rng(0).random(2 * n)
    table = pa.table({"v": values, "a": np.arange(2 * n), "b": np.arange(2 * n)})
    settings = {"use_dictionary": False, "compression": "none", "row_group_size": n}
    parquet.write_table(table, path, **settings)
    place, content = read_footer(path)[group].columns[0].begin, bytearray(path.read_bytes())
    for _ in range(page):
        head = Walk(bytes(content[place : place + 100]))
        place += head.struct(PAGE)[3] + head.place
    begin = place + (3 if which == "unpacked" else 7)
    assert content[begin - 1] == 0x15, "three bytes of a number follow"
    content[begin : begin + 3] = b"\xfe\xff\x7f"
    path.write_bytes(content)
    message = rf"a page of column 'v' in row group {group} claims to have 1,048,575 bytes, but all"
    with pytest.raises(ValueError, match=message):
        ParquetRows(path, ["a", "b"], "v")
    with pytest.raises(ValueError, match=message):
        read_data(str(path))
    monkeypatch.setattr(thrift, "MOST_PAGES", group * 9 + page)
    assert len(read_footer(path)) == 2, "of very many pages, the first ones are looked at"
