"""Tables as people have them: other separators, marks, encodings, spreadsheets, many files."""

from __future__ import annotations

import codecs
import gzip
import re
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from bayesring import TensorRing
from bayesring.data import spreadsheets
from bayesring.data.cellnumbers import cell_numbers, rows_among
from bayesring.data.dialects import Dialect
from bayesring.data.files import check_output, read_data, write_table
from bayesring.data.matching import comparable

QUICK = {"rank": 1, "warmup": 2, "draws": 2, "chains": 1, "random_state": 0, "progress": False}
KEYS = ["site", "day", "code"]
LINES = [
    "site,day,code,t",
    "Ås,2020-01-01,007,1.5",
    "Ås,2020-01-02,010,",
    "Bø,2020-01-01,007,-2.25",
    "Bø,2020-01-02,010,1e3",
]
TEXT = "\n".join(LINES) + "\n"


def read(path, **said):
    table = read_data(str(path), KEYS, "t", dialect=Dialect(**said))
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "plain.csv").write_text(TEXT, "utf-8")
    return read(tmp_path / "plain.csv")


def semicolons(mark):
    return TEXT.replace(",", ";").replace(".", mark)


FILES = {
    "semicolons": (semicolons(".").encode(), {}),
    "said semicolons": (semicolons(".").encode(), {"sep": ";"}),
    "in words": (semicolons(".").encode(), {"sep": "semicolon"}),
    "decimal commas": (semicolons(",").encode(), {"decimal": ","}),
    "tabs": (TEXT.replace(",", "\t").encode(), {}),
    "tabs and decimal commas": (
        TEXT.replace(",", "\t").replace(".", ",").encode(),
        {"decimal": ","},
    ),
    "pipes": (TEXT.replace(",", "|").encode(), {"sep": "pipe"}),
    "Latin-1": (TEXT.encode("latin-1"), {"encoding": "latin-1"}),
    "cp1252": (TEXT.encode("cp1252"), {"encoding": "cp1252"}),
    "UTF-8 with a mark": (codecs.BOM_UTF8 + TEXT.encode(), {}),
    "UTF-8 with a mark, said": (codecs.BOM_UTF8 + TEXT.encode(), {"encoding": "utf-8"}),
    "UTF-16": (TEXT.encode("utf-16"), {}),
    "UTF-16, said": (TEXT.encode("utf-16"), {"encoding": "utf-16"}),
    "UTF-16, big end first": (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), {}),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "UTF-32": (TEXT.encode("utf-32"), {}),
    "words for missing": (TEXT.replace("010,\n", "010,kaputt\n").encode(), {"na": ("kaputt",)}),
    "codes for missing": (TEXT.replace("010,\n", "010,-999.0\n").encode(), {"na": ("-999",)}),
    "pandas' word": (TEXT.replace("010,\n", "010,<NA>\n").encode(), {}),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_table_in_any_dialect(tmp_path, plain, name):
    content, said = FILES[name]
    (tmp_path / "x.csv").write_bytes(content)
    assert read(tmp_path / "x.csv", **said) == plain
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content))
    assert read(tmp_path / "x.csv.gz", **said) == plain


def test_tsv(tmp_path, plain):
    (tmp_path / "x.tsv").write_text(TEXT.replace(",", "\t"), "utf-8")
    assert read(tmp_path / "x.tsv") == plain
    (tmp_path / "one.tsv").write_text(TEXT, "utf-8")
    assert read(tmp_path / "one.tsv", sep=",") == plain


@pytest.mark.parametrize(
    ("content", "said", "message"),
    [
        (TEXT.encode("latin-1"), {}, "not in UTF-8: line 2 holds other bytes; name its encoding"),
        (TEXT.encode(), {"encoding": "klingon"}, "names 'klingon', which is not known; latin-1"),
        (TEXT.encode(), {"encoding": "base64"}, "names 'base64', which is not known"),
        (TEXT.encode("latin-1"), {"encoding": "utf-16"}, "is not in utf-16: "),
        (TEXT.encode(), {"sep": "::"}, "--sep must be one character, or one of tab, "),
        (TEXT.encode(), {"sep": "\n"}, "--sep must be one character"),
        (TEXT.encode(), {"decimal": "'"}, "--decimal must be . or a comma, got"),
        (TEXT.encode(), {"decimal": ",", "sep": ","}, "--sep and --decimal are both ','"),
        (TEXT.encode(), {"decimal": ","}, "is separated by commas, so --decimal cannot be a comma"),
        (
            semicolons(",").encode(),
            {},
            "holds '1,5' in line 2, but a number, or nothing for",
        ),
        (semicolons(",").encode(), {}, "the comma is its decimal mark, say so with --decimal ,"),
        (
            semicolons(",").replace("1,5", "1.000,5").encode(),
            {"decimal": ","},
            "with --decimal , a number has no point",
        ),
        (TEXT.replace("1.5", "ausgefallen").encode(), {}, "say so with --na ausgefallen"),
        (TEXT.encode(), {"sheet": "one"}, "--sheet is for spreadsheets, but "),
    ],
)
def test_what_is_wrong_with_a_dialect(tmp_path, content, said, message):
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read(tmp_path / "x.csv", **said)
    assert str(caught.value).isprintable()


def test_options_of_text_are_refused_for_other_files(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    for said in ({"sep": ";"}, {"encoding": "latin-1"}, {"decimal": ","}):
        with pytest.raises(ValueError, match=r"is for CSV files, but .*x\.npy is a \.npy file"):
            read_data(str(tmp_path / "x.npy"), dialect=Dialect(**said))
    found = read_data(str(tmp_path / "x.npy"), dialect=Dialect(na=("0",)))
    assert np.isnan(found).sum() == 6
    parquet.write_table(pa.table({"a": [-9, 1], "t": [-9.0, 2.0]}), tmp_path / "x.parquet")
    found = read_data(str(tmp_path / "x.parquet"), dialect=Dialect(na=("-9",)))
    assert found.to_pydict() == {"a": [-9, 1], "t": [None, 2.0]}


def write_sheets(path, sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)


ROWS = [
    ["site", "day", "code", "t"],
    ["Ås", pd.Timestamp("2020-01-01").to_pydatetime(), "007", 1.5],
    ["Ås", pd.Timestamp("2020-01-02").to_pydatetime(), "010", None],
    ["Bø", pd.Timestamp("2020-01-01").to_pydatetime(), "007", -2.25],
    ["Bø", pd.Timestamp("2020-01-02").to_pydatetime(), "010", 1000],
    [None, None, None, None],
]


def test_spreadsheets(tmp_path, plain):
    path = tmp_path / "x.xlsx"
    write_sheets(path, {"data": ROWS})
    assert read(path) == plain
    write_sheets(path, {"data": ROWS, "other": [["a"], [1]]})
    assert read(path, sheet="data") == plain
    with pytest.raises(ValueError, match=r"has the sheets \['data', 'other'\]; name one with --sh"):
        read(path)
    with pytest.raises(ValueError, match="has no sheet 'x'"):
        read(path, sheet="x")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "it is empty"),
        ([["a", None, "t"], [1, 2, 3]], "its column 2 has no name"),
        ([["a", "a", "t"], [1, 2, 3]], "two columns of the same name, 'a'"),
    ],
)
def test_bad_spreadsheets(tmp_path, rows, message):
    write_sheets(tmp_path / "x.xlsx", {"data": rows})
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.xlsx")
    (tmp_path / "y.xlsx").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"y\.xlsx is not a \.xlsx file: "):
        read(tmp_path / "y.xlsx")


def test_spreadsheets_are_written_with_text_as_text(tmp_path):
    """What would be a formula stays text, numbers stay numbers, and all comes back as it was."""
    path = str(tmp_path / "x.xlsx")
    table = pa.table(
        {
            "site": ["=1+1", "@a", "Ås"],
            "id": [1, 2**60 + 1, 3],
            "day": pa.array([0, 1, 2], pa.timestamp("s")),
            "mean": [1.5, float("nan"), -2.0],
        }
    )
    check_output("input.csv", path)
    write_table(path, table)
    sheet = openpyxl.load_workbook(path)["bayesring"]
    assert [cell.data_type for cell in sheet["A"]] == ["s"] * 4
    assert sheet["A2"].value == "=1+1"
    assert sheet["B3"].value == str(2**60 + 1)
    assert sheet["C3"].value == pd.Timestamp("1970-01-01 00:00:01")
    assert [sheet[f"D{row}"].value for row in (2, 3, 4)] == [1.5, None, -2.0]
    back = read_data(path)
    assert back.column("site").to_pylist() == ["=1+1", "@a", "Ås"]
    assert back.column("id").to_pylist() == [1, 2**60 + 1, 3]
    with pytest.raises(ValueError, match="safe cells are for CSV"):
        check_output("input.csv", path, safe_cells=True)
    with pytest.raises(ValueError, match="a sheet cannot hold the text"):
        write_table(path, pa.table({"site": ["a\x01b"]}))
    assert openpyxl.load_workbook(path)["bayesring"]["A2"].value == "=1+1"  # as it was


def test_a_table_with_more_rows_than_a_sheet_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(spreadsheets, "MOST_ROWS", 3)
    write_table(str(tmp_path / "x.xlsx"), pa.table({"a": [1, 2]}))
    with pytest.raises(ValueError, match="at most 2 rows below its header, but the result has 3"):
        write_table(str(tmp_path / "x.xlsx"), pa.table({"a": [1, 2, 3]}))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_many_files_are_one_table(tmp_path, kind):
    """Folders named key=value are columns, and hidden files are left out."""
    whole = pd.DataFrame({"site": ["a", "b"] * 4, "year": [2020, 2021] * 4, "t": np.arange(8.0)})
    for (site, year), part in whole.groupby(["site", "year"]):
        folder = tmp_path / "data" / f"site={site}" / f"year={year}"
        folder.mkdir(parents=True)
        for number, own in enumerate((part[:2], part[2:])):
            path = folder / f"{number}.{kind}"
            rest = own[["t"]].assign(day=[1, 2])
            rest.to_csv(path, index=False) if kind == "csv" else rest.to_parquet(path, index=False)
    (tmp_path / "data" / "_SUCCESS").write_text("")
    (tmp_path / "data" / f".hidden.{kind}").write_text("broken")
    modes = ["site", "year", "day"]
    expected = sorted((s, y, t) for s, y, t in whole.itertuples(index=False))
    for path in ("data", f"data/**/*.{kind}", "data/site=*", "data/site=?/year=*"):
        found = read_data(str(tmp_path / path), modes, "t").to_pydict()
        rows = sorted(zip(found["site"], found["year"], found["t"], strict=True))
        assert rows == expected, path
    one = read_data(str(tmp_path / "data/site=a/year=2020"), ["day", "t"], "t")
    assert one.column_names in (["t", "day"], ["day", "t"])
    if kind == "parquet":
        online = TensorRing(1, inference="online-em", chains=1, draws=2, epochs=1, progress=False)
        ring = online.fit(str(tmp_path / "data/**/*.parquet"), modes=modes, value="t")
        assert ring.shape_ == (2, 2, 2)


def test_what_is_wrong_with_many_files(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,t\n1,2,3\n")
    (tmp_path / "b.csv").write_text("a,c,t\n1,2,3\n")
    with pytest.raises(ValueError, match=r"b\.csv has the columns \['a', 'c', 't'\], but"):
        read_data(str(tmp_path / "*.csv"))
    (tmp_path / "c.tsv").write_text("a\tb\tt\n1\t2\t3\n")
    with pytest.raises(ValueError, match=r"files of several kinds, such as \w\.csv and c\.tsv"):
        read_data(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="matches no file with one of the extensions"):
        read_data(str(tmp_path / "x*.csv"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="contains no file with one of the extensions"):
        read_data(str(tmp_path / "empty"))


TABLE = pd.DataFrame(
    {
        "a": np.repeat(["x", "y", "z"], 8),
        "b": np.tile([1, 2, 3, 4], 6),
        "t": np.linspace(-1, 1, 24).round(3),
    }
)
KINDS = {
    "Decimal": lambda t: t.assign(t=[Decimal(str(each)) for each in t["t"]]),
    "objects": lambda t: t.assign(t=t["t"].astype(object)),
    "text": lambda t: t.assign(t=t["t"].astype(str)),
    "keys as Decimal": lambda t: t.assign(b=[Decimal(int(each)) for each in t["b"]]),
    "keys as objects": lambda t: t.assign(b=t["b"].astype(object)),
    "polars": pl.from_pandas,
    "lazy": lambda t: pl.from_pandas(t).lazy(),
    "polars Decimal": lambda t: pl.from_pandas(t).with_columns(pl.col("t").cast(pl.Decimal(9, 3))),
    "pyarrow": pa.Table.from_pandas,
    "a reader": lambda t: pa.Table.from_pandas(t).to_reader(5),
    "a batch": pa.RecordBatch.from_pandas,
    "a dataset": lambda t: dataset.dataset(pa.Table.from_pandas(t)),
    "pyarrow Decimal": lambda t: pa.table(
        {"a": t["a"], "b": t["b"], "t": pa.array([Decimal(str(each)) for each in t["t"]])}
    ),
    "nullable": lambda t: t.assign(t=t["t"].astype("Float64"), b=t["b"].astype("Int64")),
}


@pytest.fixture(scope="module")
def fitted():
    return TensorRing(**QUICK).fit(TABLE, modes=["a", "b"], value="t")


@pytest.mark.parametrize("kind", KINDS)
def test_any_kind_of_table_and_number(fitted, kind):
    ring = TensorRing(**QUICK).fit(KINDS[kind](TABLE), modes=["a", "b"], value="t")
    np.testing.assert_array_equal(ring.predict(TABLE), fitted.predict(TABLE))
    np.testing.assert_array_equal(fitted.predict(KINDS[kind](TABLE)), fitted.predict(TABLE))
    found = fitted.predict_table(KINDS[kind](TABLE))
    assert len(found) == 24
    assert fitted.score(KINDS[kind](TABLE)) == fitted.score(TABLE)
    np.testing.assert_array_equal(fitted.log_score(KINDS[kind](TABLE)), fitted.log_score(TABLE))


def test_values_apart_may_be_objects(fitted):
    for y in (TABLE["t"].astype(object), [Decimal(str(each)) for each in TABLE["t"]]):
        ring = TensorRing(**QUICK).fit(TABLE[["a", "b"]], y)
        np.testing.assert_array_equal(ring.predict(TABLE), fitted.predict(TABLE))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["1,5", *TABLE["t"][1:].astype(str)],
            "holds the text '1,5' in row 0, .* decimal comma",
        ),
        ([*TABLE["t"][1:], "many"], "holds the text 'many' in row 23, but numbers are required"),
        ([*TABLE["t"][1:], {"a": 1}], "in row 23, but numbers are required"),
        ([*TABLE["t"][1:], 1j], "in row 23, but numbers are required|complex"),
    ],
)
def test_values_that_are_no_numbers(values, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TensorRing(**QUICK).fit(
            TABLE.assign(t=np.array(values, dtype=object)), modes=["a", "b"], value="t"
        )


def test_numbers_beyond_64_bits_are_keys():
    for first in (10**20, 2**63, 2**63 - 4, -(10**30)):
        table = TABLE.assign(b=[first + each for each in TABLE["b"].tolist()])
        ring = TensorRing(**QUICK).fit(table, modes=["a", "b"], value="t")
        assert ring.labels_.levels[1].tolist() == sorted(str(first + own) for own in (1, 2, 3, 4))
        as_text = table.assign(b=table["b"].astype(str))
        np.testing.assert_array_equal(ring.predict(table), ring.predict(as_text))
    with pytest.warns(UserWarning, match="1 of 'b'"):  # a small one is unknown, and no error
        ring.predict(TABLE.assign(b=7))


@pytest.mark.parametrize(
    ("keys", "levels", "expected"),
    [
        ([1, 10], ["001", "010"], ["001", "010"]),
        ([1.5, 2.0], ["1.50", "2"], ["1.50", "2"]),
        ([1, 99], ["1", "x"], ["1", "99"]),
        (["2020-01-02"], np.array(["2020-01-02"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
        (np.array(["2020-01-02"], "M8[D]"), ["2020-01-02 00:00"], ["2020-01-02 00:00"]),
        (["7", "8.0"], [7, 8], [7, 8]),
        (["0.5"], [0.5], [0.5]),
        ([True, False], ["TRUE", "false"], ["TRUE", "false"]),
        (["True", "false "], [False, True], [True, False]),
        ([10**18 + 1], [str(10**18 + 1), str(10**18)], [str(10**18 + 1)]),
    ],
)
def test_keys_that_can_be_read_in_one_way(keys, levels, expected):
    found = comparable(np.array(keys), np.array(levels), "k")
    assert found.dtype.kind == np.array(levels).dtype.kind
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.mark.parametrize(
    ("keys", "levels", "message"),
    [
        ([7], ["7", "007"], r"holds 7, which may be any of the labels \['7', '007'\]"),
        ([7], ["a", "b"], "holds numbers such as 7, but the model was fitted with text such as a"),
        (["x"], [7], "holds text such as x, but the model was fitted with numbers such as 7"),
        (["nan"], [7.0], "holds text such as nan"),
        (["1_0"], [10], "holds text such as 1_0"),
        (["NaT"], np.array(["2020-01-02"], "M8[D]"), "holds text such as NaT"),
        (["01/02/2020"], np.array(["2020-01-02"], "M8[D]"), "holds text such as 01/02/2020"),
        (["99999999999999999999"], [7], "holds the integer 99999999999999999999, but the labels"),
        ([True], [0, 1], "holds booleans such as True, but the model was fitted with numbers"),
    ],
)
def test_keys_that_cannot(keys, levels, message):
    with pytest.raises(ValueError, match=message):
        comparable(np.array(keys), np.array(levels), "k")


def test_cells_of_tensors_beyond_64_bits(rng):
    """Two rows have one number if and only if they are one cell."""
    shape = (2**31, 2**31, 2**31, 5)
    some = rng.integers(0, shape, (50, 4))
    some[:20] = some[0]
    some[:20, 0] = 4 * np.arange(20)  # times 5 * 2^62, these would all be zero
    coords = some[rng.integers(0, 50, 300)]
    numbers = cell_numbers(coords, shape)
    same = (coords[:, None] == coords[None]).all(axis=2)
    np.testing.assert_array_equal(numbers[:, None] == numbers[None], same)
    np.testing.assert_array_equal(rows_among(some, coords[:9], shape), same_rows(some, coords[:9]))


def same_rows(cells, others):
    return (cells[:, None] == others[None]).all(axis=2).any(axis=1)


def test_names_of_columns_are_text():
    with pytest.raises(ValueError, match="has a column named 0, but names must be text"):
        TensorRing(**QUICK).fit(TABLE.set_axis([0, 1, 2], axis=1), modes=[0, 1], value=2)


def test_a_lazy_table_that_breaks_says_so_in_a_sentence():
    broken = pl.from_pandas(TABLE).lazy().select("nothing")
    with pytest.raises(ValueError, match=r"^X cannot be read: [^\n]*nothing[^\n]*$"):
        TensorRing(**QUICK).fit(broken, modes=["a", "b"], value="t")
