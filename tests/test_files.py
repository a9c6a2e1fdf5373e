"""Files by their extension: what is read is what was written, and nothing is left half written."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bayesring import complete
from bayesring.data.csvfiles import read_csv, write_csv
from bayesring.data.files import check_output, read_data, write_completion, write_table

QUICK = {"rank": 1, "warmup": 5, "draws": 5, "chains": 1, "random_state": 0, "progress": False}
TABLE = pa.table(
    {
        "place": ["a, b", 'c "d"', "é", "a, b"],
        "day": [datetime.date(2020, 1, day) for day in (1, 2, 1, 2)],
        "number": [3, 1, 2, 2],
        "t": [0.1, None, 1 / 3, -2.5e-300],
    }
)


@pytest.fixture(scope="module")
def completed():
    return complete(TABLE, modes=["place", "day", "number"], value="t", **QUICK)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.feather"])
def test_tables_come_back(tmp_path, completed, name):
    path = str(tmp_path / name)
    write_completion(path, completed)
    found = read_data(path, ["place", "day", "number"], "t")
    assert found.column_names == completed.table.column_names
    for column in ("place", "day", "number", "t"):
        assert found[column].to_pylist() == completed.table[column].to_pylist()
    for column in ("mean", "std", "lower", "upper"):
        np.testing.assert_array_equal(
            np.array(found[column], dtype=float), np.array(completed.table[column])
        )
    before = (tmp_path / name).read_bytes()
    write_completion(path, completed)
    assert (tmp_path / name).read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [name]


def contents(path):
    """Names and bytes of a file or of all files in a folder."""
    if path.is_file():
        return path.read_bytes()
    found = (each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path)): each.read_bytes() for each in found}


ARRAY = np.where(np.arange(24) % 5 == 0, np.nan, np.sin(np.arange(24))).reshape(2, 3, 4)


def test_numpy_files(tmp_path):
    np.save(tmp_path / "in.npy", ARRAY)
    np.testing.assert_array_equal(read_data(str(tmp_path / "in.npy")), ARRAY)
    found = complete(ARRAY, **QUICK)
    write_completion(str(tmp_path / "out.npy"), found)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), found.mean)
    write_completion(str(tmp_path / "out.npz"), found)
    with np.load(tmp_path / "out.npz") as arrays:
        assert list(arrays) == ["mean", "std", "lower", "upper"]
        np.testing.assert_array_equal(arrays["upper"], found.upper)
    np.testing.assert_array_equal(read_data(str(tmp_path / "out.npz"), value="std"), found.std)
    with pytest.raises(ValueError, match=r"holds the arrays \['mean', 'std', .*; name one of them"):
        read_data(str(tmp_path / "out.npz"))


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_labelled_arrays(tmp_path, name):
    months = np.array(["2020-01", "2020-02", "2020-03"], dtype="M8[ns]")
    data = xr.DataArray(
        ARRAY, dims=("a", "month", "c"), coords={"month": months}, name="t", attrs={"units": "K"}
    )
    packed = {"t": {"dtype": "int16", "scale_factor": 1e-3, "_FillValue": -1}}
    data.to_dataset().to_netcdf(tmp_path / "in.nc", engine="h5netcdf", encoding=packed)
    given = read_data(str(tmp_path / "in.nc"))
    found = complete(given, **QUICK)
    for _ in range(2):
        write_completion(str(tmp_path / name), found)
    with xr.open_dataset(
        tmp_path / name, **({"engine": "zarr"} if name == "x.zarr" else {})
    ) as out:
        assert set(out.data_vars) == {"mean", "std", "lower", "upper"}
        np.testing.assert_array_equal(out["std"].values, found.std.values)
        np.testing.assert_array_equal(out["month"].values, months)
        assert out["mean"].attrs["units"] == "K"
    before = contents(tmp_path / name)
    write_completion(str(tmp_path / name), found)
    assert contents(tmp_path / name) == before
    assert len(before) > 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.nc", name]
    again = read_data(str(tmp_path / name), value="mean")
    xr.testing.assert_equal(again, found.mean.rename("mean"))


def read_text(text, modes=("k",), value="t", **options):
    """A CSV text as read from standard input."""
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        return read_csv("-", modes, value, **options)
    finally:
        sys.stdin = stdin


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["1", "10", "-2"], [1, 10, -2]),
        (["001", "010", "2"], ["001", "010", "2"]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["1.0", "2.0", "3.5"], ["1.0", "2.0", "3.5"]),
        (["2020-01-31", "1999-12-01"], [datetime.date(2020, 1, 31), datetime.date(1999, 12, 1)]),
        (["2020-01", "2020-02"], ["2020-01", "2020-02"]),
        (["31.01.2020", "01.02.2020"], ["31.01.2020", "01.02.2020"]),
        (["NA", "nan", "Null"], ["NA", "nan", "Null"]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
    ],
)
def test_keys_become_numbers_or_dates_only_if_nothing_is_lost(keys, expected):
    table = read_text("k,t\n" + "".join(f"{key},1\n" for key in keys))
    assert table["k"].to_pylist() == expected
    written = io.StringIO()
    sys.stdout, stdout = written, sys.stdout
    try:
        write_csv("-", table)
    finally:
        sys.stdout = stdout
    assert [line.split(",")[0] for line in written.getvalue().splitlines()[1:]] == keys


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1),
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
        ),
        min_size=1,
    )
)
def test_any_text_and_number_survives_csv(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    keys, values = zip(*rows, strict=True)
    table = pa.table({"k": pa.array(keys), "t": pa.array(values, pa.float64())})
    write_csv(path, table)
    found = read_csv(str(path), ["k"], "t")
    assert [str(key) for key in found["k"].to_pylist()] == list(keys)
    assert found["t"].to_pylist() == list(values)


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "null", "-"])
def test_missing_values_in_csv(missing):
    assert read_text(f"k,t\na,{missing}\nb,2\n")["t"].to_pylist() == [None, 2.0]


def test_other_columns_stay_as_they_are():
    table = read_text("k,t,code,note\na,1,007,NA\nb,2,1e3,\n")
    assert table["code"].to_pylist() == ["007", "1e3"]
    assert table["note"].to_pylist() == ["NA", ""]


def test_a_byte_order_mark_and_windows_line_ends():
    table = read_text("\ufeffk,t\r\na,1\r\n")
    assert table.to_pydict() == {"k": ["a"], "t": [1.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k,t\na,1\nb,abc\n", "value column 't' holds 'abc' in line 3, but a number, or nothing"),
        ("k,t\na,1,2\n", "- is not a table in CSV:"),
        ("", "- is empty: a header with the names of the columns is required."),
        ("k,k,t\na,b,1\n", "- has two columns of the same name, 'k'."),
    ],
)
def test_bad_csv(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_text(text)


def test_keys_like_those_of_a_model():
    text = "k,t\n1,1\n2,2\n"
    assert read_text(text, kinds={"k": np.array(["1", "x"])})["k"].to_pylist() == ["1", "2"]
    assert read_text(text, kinds={"k": np.array([5, 6])})["k"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match=r"'k' holds text such as 1, but .* dates such as 2020"):
        read_text("k,t\n1,1\nb,2\n", kinds={"k": np.array(["2020-01-01"], dtype="M8[D]")})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.xls", "has an unknown file extension; known extensions are .csv, .csv.gz, .tsv, .par"),
        ("absent.csv", "absent.csv does not exist."),
        ("broken.parquet", "broken.parquet is not a .parquet file: "),
        ("broken.arrow", "broken.arrow is not a .arrow file: "),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, message):
    for broken in ("broken.parquet", "broken.arrow"):
        (tmp_path / broken).write_bytes(b"something else")
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        read_data(str(tmp_path / name))


def test_compressed_tables_are_gzip(tmp_path):
    write_table(str(tmp_path / "x.csv.gz"), TABLE)
    written = (tmp_path / "x.csv.gz").read_bytes()
    assert gzip.decompress(written).startswith(b"place,day,number,t\n")
    assert written[3:8] == bytes(5), "neither a name nor the time of writing"


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.nc", "x.zarr"])
def test_a_folder_is_never_replaced_by_a_result(tmp_path, name):
    """Not even by a Zarr store, if the folder holds anything else."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("ten years")
    data = xr.DataArray(ARRAY) if name in ("x.nc", "x.zarr") else ARRAY
    with pytest.raises(IsADirectoryError, match=r"cannot be (written|replaced): it is a folder"):
        write_completion(str(tmp_path / name), complete(data, **QUICK))
    assert contents(tmp_path) == {f"{name}/thesis.txt": b"ten years"}


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet", "x.arrow", "x.feather"])
def test_a_folder_is_never_replaced_by_a_table(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "part-0.parquet").write_text("a data set")
    with pytest.raises(IsADirectoryError, match="it is a folder, but a file is required"):
        write_table(str(tmp_path / name), TABLE)
    assert contents(tmp_path) == {f"{name}/part-0.parquet": b"a data set"}


class FailingTable:
    """A table whose rows end in an error after the first."""

    column_names = ("a", "b")

    def to_batches(self, max_chunksize):
        yield pa.table({"a": [1], "b": [2]}).to_batches()[0]
        raise OSError("the disk is full.")


def test_a_csv_that_fails_half_way_is_not_left_behind(tmp_path):
    (tmp_path / "x.csv").write_text("old")
    with pytest.raises(OSError, match="disk is full"):
        write_table(str(tmp_path / "x.csv"), FailingTable())
    assert (tmp_path / "x.csv").read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
HARMLESS = ["-5", "+5", "-.5e-3", "a=b", "", "'=1", "7", "x-y", "0"]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_formulas_become_text_if_asked_for(tmp_path, name):
    texts = FORMULAS + HARMLESS
    table = pa.table({"=key": texts, "n": [-1.5] * len(texts), "m": [-7] * len(texts)})
    opened = gzip.open if name.endswith(".gz") else open
    for safe in (False, True):
        write_table(str(tmp_path / name), table, safe_cells=safe)
        with opened(tmp_path / name, "rt", newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        mark = "'" if safe else ""
        assert header == [f"{mark}=key", "n", "m"]
        assert [row[0] for row in rows] == [mark + text for text in FORMULAS] + HARMLESS
        assert {(row[1], row[2]) for row in rows} == {("-1.5", "-7")}


def test_formulas_in_other_files_are_no_danger(tmp_path):
    with pytest.raises(ValueError, match=r"safe cells are for CSV, .*out.parquet is a .parquet"):
        check_output("in.csv", str(tmp_path / "out.parquet"), safe_cells=True)


@pytest.mark.parametrize("key", ["a\rb", "\r", "a\nb", "a\r\nb", '"', ","])
def test_a_key_with_an_end_of_line_stays_one_key(tmp_path, key):
    path = tmp_path / "x.csv"
    table = pa.table({"a": [key, "z"], "b": ["x", key], "v": [0.5, None]})
    write_table(str(path), table)
    assert read_data(str(path), ["a", "b"], "v").equals(table)


def damaged(name, content):
    """A whole file of a format with its last third gone, or with other bytes in the middle."""
    buffer = io.BytesIO()
    if name.endswith(".npy"):
        np.save(buffer, np.zeros((3, 4)))
    elif name.endswith(".npz"):
        np.savez_compressed(buffer, v=np.random.default_rng(0).random((3, 4)))
    else:
        buffer.write(gzip.compress(b"a,b,v\n" + b"1,2,3.5\n" * 50))
    whole = buffer.getvalue()
    third = len(whole) // 3
    return {
        "cut": whole[: 2 * third],
        "other bytes": whole[:third] + bytes(range(20)) + whole[third + 20 :],
        "nothing": b"",
        "text": b"hello",
    }[content]


@pytest.mark.parametrize("content", ["cut", "other bytes", "nothing", "text"])
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv.gz", "x.CSV.GZ"])
def test_damaged_files_are_refused_in_a_sentence(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(damaged(name, content))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} .*[^.]\\.$") as caught:
        read_data(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_damaged_stores_are_refused_in_a_sentence(tmp_path, name):
    path = tmp_path / name
    dataset = xr.DataArray(np.zeros((3, 4)), dims=["a", "b"], name="v").to_dataset()
    if name == "x.nc":
        dataset.to_netcdf(path, engine="h5netcdf")
        files = [path]
    else:
        dataset.to_zarr(path, zarr_format=2, consolidated=True)
        files = [each for each in path.rglob("*") if each.is_file() and "v" in each.name[:2]]
        files.append(path / ".zmetadata")
    for file in files:
        file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is not a .*[^.]\\.$") as caught:
        read_data(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (codecs.BOM_UTF16_LE + b"a", "is not in utf-16-le: "),
        ("\xe9,b,v\n1,2,3\n".encode("latin-1"), "is not in UTF-8: line 1 holds other bytes; name"),
        ("a,b,v\n1,2,3\n1,\xe9,3\n".encode("latin-1"), "is not in UTF-8: line 3 holds other"),
        (b"a,b,v\n1,2,3\n1,\x1b[31m\xff\n", "is not a table in CSV: "),
        (b"a" * 200_000 + b",b\n1,2\n", "field larger than field limit"),
    ],
)
def test_csv_that_is_none(tmp_path, content, message):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_data(str(path), None, "v")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_within_cells(tmp_path, ends):
    """In the header too, and at the edges of what is parsed at a time."""
    path = tmp_path / "x.csv"
    keys = [f"{number}\n{'x' * 1000}" for number in range(3000)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=ends)
        writer.writerows([["two\nlines", "b", "v"], *([key, "k", 0.5] for key in keys)])
    table = read_data(str(path), ["two\nlines", "b"], "v")
    assert table["two\nlines"].to_pylist() == keys


def test_damaged_texts_of_netcdf_are_found_before_hdf5_loops(tmp_path):
    path = tmp_path / "x.nc"
    array = xr.DataArray(np.zeros((4, 2)), dims=["a", "b"], coords={"a": list("wxyz")}, name="v")
    array.to_netcdf(path, engine="h5netcdf")
    assert read_data(str(path)).coords["a"].values.tolist() == list("wxyz")
    whole = bytearray(path.read_bytes())
    heap = whole.index(b"GCOL")
    for place, byte in ((heap + 9, 0xFF), (heap + 24, 0x21), (heap + 31, 0x80)):
        changed = whole.copy()
        changed[place] = byte
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is not a \.nc file: the texts at byte [0-9,]+ are"):
            read_data(str(path))


def test_files_that_cannot_be_opened_end_in_silence(tmp_path):
    """Seen to fail: h5netcdf asks a file that it did not finish to open whether it is writable."""
    from h5netcdf import File

    array = xr.DataArray(np.zeros((2, 3)), dims=("a", "b"), name="v")
    array.to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    read_data(str(tmp_path / "in.nc"))
    half_made = File.__new__(File)
    half_made._closed = half_made._close_h5file = False
    half_made.close()
