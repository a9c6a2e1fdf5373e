"""Long tables as CSV, with every key written back exactly as it was read.

Everything is read as text first. A key column becomes integers or dates only if every entry is in
canonical form, so "007" stays "007"; otherwise the column stays text.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import check_fits, import_pyarrow, warn_of_rounded
from bayesring.data.dialects import PLAIN, Dialect, in_utf8, not_utf8, read_header
from bayesring.data.expanding import unzipped
from bayesring.data.labels import bad_text
from bayesring.data.matching import comparable
from bayesring.model.types import IntArray
from bayesring.wording import reason_of, shown

BLOCK = 2**20
"""Number of bytes parsed at a time, unless a line is longer."""
EXPANDED = 3
"""Bytes in memory per byte of a file, about."""
INSTEAD = "save it as Parquet, which online EM reads in pieces."
LONGEST_EXACT = 15
"""Digits of an integer that a float always holds."""
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How text begins that spreadsheets may run: signs, in full width too, and space before a sign."""
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ROWS = 10_000
"""Rows written at a time."""


def read_csv(
    source: str,
    modes: Sequence[str] | None,
    value: str | None,
    kinds: Mapping[str, NDArray[Any] | None] | None = None,
    dialect: Dialect = PLAIN,
) -> Any:
    """A CSV file, or standard input for "-", as a pyarrow table.

    `kinds` holds labels whose types the keys must match, for predictions of a fitted model.
    """
    return typed(read_texts(source, dialect), modes, value, kinds, dialect)


def read_texts(source: str, dialect: Dialect = PLAIN) -> Any:
    """A CSV file, or standard input for "-", as a pyarrow table of texts."""
    pa = import_pyarrow()
    from pyarrow import csv as arrow_csv

    content = in_utf8(_content(source), source, dialect)
    names, sep = read_header(content, source, dialect)
    as_text = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )

    # not a Python file object: Arrow reads ahead in a thread that may outlive an error, and would
    # still need the GIL while the interpreter shuts down
    buffer = pa.py_buffer(content)

    def parse(block_size: int) -> Any:
        options = arrow_csv.ReadOptions(block_size=block_size)
        lines = arrow_csv.ParseOptions(delimiter=sep, newlines_in_values=b'"' in content)
        return arrow_csv.read_csv(pa.BufferReader(buffer), options, lines, as_text)

    try:
        try:
            table = parse(BLOCK)
        except pa.ArrowInvalid as error:
            if "block size" not in str(error):
                raise
            table = parse(min(len(content) + 1, 2**31 - 1))  # a line longer than a block
    except pa.ArrowInvalid as error:
        wrong = not_utf8(content, source) if "UTF8" in str(error) else None
        reason = f"{source} is not a table in CSV: {reason_of(error)}."
        raise wrong or ValueError(reason) from None
    if table.column_names != names:
        raise ValueError(
            f"{source} is not a table in CSV: its header can be read in two ways, as "
            f"{shown(names)} and as {shown(table.column_names)}."
        )
    return table


def typed(
    table: Any,
    modes: Sequence[str] | None,
    value: str | None,
    kinds: Mapping[str, NDArray[Any] | None] | None = None,
    dialect: Dialect = PLAIN,
    numbers: Sequence[str] = (),
) -> Any:
    """A table of texts with keys and values of the types that they show; see `read_csv`.

    Columns of `numbers` hold something else than keys and values.
    """
    pa = import_pyarrow()
    # other columns stay unchanged
    ignored = kinds is not None or (modes is not None and value is not None)
    columns = {}
    for name in table.column_names:
        is_number = name == value or name in numbers
        used = is_number or name in (kinds or {}) or name in (modes or ())
        if (ignored and not used) or not pa.types.is_string(table[name].type):
            columns[name] = table[name]
            continue
        texts, places = _distinct(table[name], name)
        if is_number:
            called = f"{'value ' * (name == value)}column {name!r}"
            found = _numbers(texts, places, called, dialect)
            columns[name] = pa.array(found[places], from_pandas=True)
        elif (levels := (kinds or {}).get(name)) is not None:
            keys = comparable(texts, levels, name)
            columns[name] = _array(pa, keys, places, table[name])
        else:
            keys = _keys(texts, name not in (modes or ()), dialect)
            columns[name] = _array(pa, keys, places, table[name], blank=True)
    return pa.table(columns)


def _distinct(column: Any, name: str) -> tuple[NDArray[np.str_], IntArray]:
    """The distinct texts of a column in order of appearance, and each row's index among them.

    In a NumPy array every text is as long as the longest, so no array has one text per row.
    """
    encoded = column.combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    places = np.asarray(encoded.indices.to_numpy(zero_copy_only=False))
    wrong = bad_text(texts)
    if wrong is not None:
        line = int(np.argmax(places == wrong[0])) + 2
        raise ValueError(f"column {name!r} {wrong[1]} in line {line}.")
    return np.array(texts, dtype=str), places


def write_csv(
    target: str | os.PathLike[str], table: Any, kind: str = ".csv", safe_cells: bool = False
) -> None:
    """A pyarrow table as CSV to a file, or to standard output for "-".

    Of `kind` ".csv.gz" it is compressed, of ".tsv" separated by tabs.

    With `safe_cells`, text that a spreadsheet would run as a formula gets an apostrophe in front,
    in names of columns too. Read again, it keeps the apostrophe, so this is off by default.
    """
    if str(target) == "-":
        if isinstance(sys.stdout, io.TextIOWrapper):  # whatever the terminal is said to show
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")
        _write_rows(sys.stdout, table, safe_cells)
        return
    with open(target, "wb") as raw:
        # no name or time inside, so that equal tables give equal files
        compressed = kind == ".csv.gz"
        file: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else raw
        with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            _write_rows(text, table, safe_cells, "\t" if kind == ".tsv" else ",")


def _content(source: str) -> bytes:
    if source == "-":
        content = sys.stdin.buffer.read()
    else:
        check_fits(
            EXPANDED * os.path.getsize(source),
            f"the table {source}",
            INSTEAD,
        )
        try:
            if source.lower().endswith(".gz"):
                content = unzipped(source, EXPANDED, INSTEAD)
            else:
                content = Path(source).read_bytes()
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{source} cannot be read: {reason_of(error)}.") from None
    return content


def _numbers(
    texts: NDArray[np.str_], places: IntArray, called: str, dialect: Dialect = PLAIN
) -> NDArray[Any]:
    """Values of distinct texts; NaN where they are missing."""
    missing = dialect.is_missing(texts)
    if dialect.decimal != ".":
        texts = np.array([dialect.as_number(text) for text in texts.tolist()], dtype=str)
    try:
        found = _floats(np.where(missing, "nan", texts))
    except ValueError:
        wrong, text = next(
            (place, text)
            for place, text in enumerate(texts)
            if not missing[place] and not _converts(float, text)
        )
        row = int(np.argmax(places == wrong))
        raise ValueError(
            f"{called} holds {shown(str(text))} in line {row + 2}, but a number, or "
            f"nothing for a missing value, is required{_hint(str(text), dialect)}."
        ) from None
    for place, text in enumerate(texts.tolist()):
        if len(text) > LONGEST_EXACT and _is_rounded(text, float(found[place])):
            line = int(np.argmax(places == place)) + 2
            warn_of_rounded(called, text, float(found[place]), f"line {line}")
            break
    found[np.isin(found, dialect.codes())] = np.nan
    return np.asarray(found)


def _floats(texts: NDArray[np.str_]) -> NDArray[Any]:
    """Texts as numbers, one Python object after the other.

    NumPy's own conversion of an array of texts runs the handlers of signals, but loses what they
    raise: Ctrl-C would have no effect.
    """
    return texts.astype(object).astype(np.float64)


def _hint(text: str, dialect: Dialect) -> str:
    """What to say about a value that is no number, if that is easy to guess."""
    if DECIMAL_COMMA.fullmatch(text.strip()) and dialect.decimal == ".":
        return "; if the comma is its decimal mark, say so with --decimal ,"
    if dialect.decimal == "," and "." in text:
        return "; with --decimal , a number has no point"
    if re.fullmatch(r"[^\W\d_]{1,12}\.?|[.?*]+", text.strip()):
        return f"; if it means a missing value, say so with --na {text.strip()}"
    return ""


def _is_rounded(text: str, number: float) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and int(text) != number and isfinite(number)


def _keys(texts: NDArray[np.str_], floats: bool = False, dialect: Dialect = PLAIN) -> NDArray[Any]:
    """Distinct texts as integers or dates if nothing is lost; as floats if allowed.

    Digits alone, such as "007", are not floats unless some are missing.
    """
    for kind in ("int64", "M8[D]"):
        if _same_texts(texts, kind):
            return texts.astype(kind)
    if not floats or np.all(np.char.isdigit(texts)):
        return texts
    missing = dialect.is_missing(texts)
    points = [dialect.as_number(text) for text in texts.tolist()]
    if not all(gone or _converts(float, text) for gone, text in zip(missing, points, strict=True)):
        return texts
    found = _floats(np.where(missing, "nan", np.array(points, dtype=str)))
    found[np.isin(found, dialect.codes())] = np.nan
    return found


def _same_texts(texts: NDArray[np.str_], kind: str) -> bool:
    try:
        return bool(np.array_equal(texts.astype(kind).astype(str), texts))
    except (ValueError, OverflowError):
        return False


def _array(pa: Any, keys: NDArray[Any], places: IntArray, column: Any, blank: bool = False) -> Any:
    """The keys of all rows for Arrow; if they are text, the column itself.

    If `blank`, an empty text is a missing key.
    """
    if keys.dtype.kind != "U":
        return pa.array(keys[places], from_pandas=blank)
    if not blank:
        return column
    from pyarrow import compute

    return compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)


def _converts(convert: Callable[[str], Any], text: str) -> bool:
    try:
        convert(text)
    except ValueError:
        return False
    return True


def _write_rows(file: Any, table: Any, safe_cells: bool, sep: str = ",") -> None:
    """Rows with the shortest text that round-trips each number; empty for a missing value."""
    writer = csv.writer(_Lines(file), delimiter=sep, lineterminator="\r\n")
    writer.writerow(_texts(table.column_names, safe_cells))
    for batch in table.to_batches(max_chunksize=ROWS):
        columns: Iterable[list[Any]] = (
            _texts(column.to_pylist(), safe_cells) for column in batch.columns
        )
        writer.writerows(zip(*columns, strict=True))


class _Lines:
    """Ends lines with a line feed alone; csv itself then would not quote a carriage return."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def _texts(values: list[Any], safe_cells: bool) -> list[Any]:
    """Values as written to CSV; NaN is missing."""
    found = ["" if each is None or each != each else each for each in values]
    if not safe_cells:
        return found
    return [f"'{each}" if isinstance(each, str) and _is_formula(each) else each for each in found]


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet might run a text; a number such as -5 is none."""
    return text.startswith(FORMULA_BEGINS) and not NUMBER.fullmatch(text)
