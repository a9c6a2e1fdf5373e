"""Long tables as CSV, with every key written back exactly as it was read.

Everything is read as text first. A key column becomes integers or dates only if every entry is in
canonical form, so "007" stays "007"; otherwise the column stays text.
"""

from __future__ import annotations

import codecs
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

from bayesring.checks import import_pyarrow, warn_of_rounded
from bayesring.data.labels import KINDS, bad_text
from bayesring.model.types import IntArray
from bayesring.wording import as_text, reason_of, shown

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-")
"""Texts that mean a missing value."""
BLOCK = 2**20
"""Number of bytes parsed at a time, unless a line is longer."""
LONGEST_EXACT = 15
"""Digits of an integer that a float always holds."""
FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How text begins that spreadsheets may run: signs, in full width too, and space before a sign."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ROWS = 10_000
"""Rows written at a time."""


def read_csv(
    source: str,
    modes: Sequence[str] | None,
    value: str | None,
    kinds: Mapping[str, NDArray[Any] | None] | None = None,
) -> Any:
    """A CSV file, or standard input for "-", as a pyarrow table.

    `kinds` holds labels whose types the keys must match, for predictions of a fitted model.
    """
    pa = import_pyarrow()
    from pyarrow import csv as arrow_csv

    content = _content(source)
    names = _header(content, source)
    as_text = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )

    # not a Python file object: Arrow reads ahead in a thread that may outlive an error, and would
    # still need the GIL while the interpreter shuts down
    buffer = pa.py_buffer(content)

    def parse(block_size: int) -> Any:
        options = arrow_csv.ReadOptions(block_size=block_size)
        lines = arrow_csv.ParseOptions(newlines_in_values=b'"' in content)
        return arrow_csv.read_csv(pa.BufferReader(buffer), options, lines, as_text)

    try:
        try:
            table = parse(BLOCK)
        except pa.ArrowInvalid as error:
            if "block size" not in str(error):
                raise
            table = parse(min(len(content) + 1, 2**31 - 1))  # a line longer than a block
    except pa.ArrowInvalid as error:
        raise ValueError(f"{source} is not a table in CSV: {reason_of(error)}.") from None
    if table.column_names != names:
        raise ValueError(
            f"{source} is not a table in CSV: its header can be read in two ways, as "
            f"{shown(names)} and as {shown(table.column_names)}."
        )
    # other columns stay unchanged
    ignored = kinds is not None or (modes is not None and value is not None)
    columns = {}
    for name in names:
        if name != value and name not in (kinds or {}) and name not in (modes or ()) and ignored:
            columns[name] = table[name]
            continue
        texts, places = _distinct(table[name], name)
        if name == value:
            columns[name] = pa.array(_numbers(texts, places, name)[places], from_pandas=True)
        elif kinds is not None and kinds.get(name) is not None:
            columns[name] = _array(pa, _like(texts, kinds[name], name), places, table[name])
        else:
            keys = _keys(texts, floats=name not in (modes or ()))
            columns[name] = _array(pa, keys, places, table[name], blank=True)
    return pa.table(columns)


def with_types(table: Any, key: str) -> Any:
    """The table with numbers or dates where a column of text holds nothing else; not in `key`."""
    pa = import_pyarrow()
    columns = {key: table[key]}
    for name in table.column_names:
        if name == key:
            continue
        cells = [None if text in MISSING else text for text in table[name].to_pylist()]
        known = [text for text in cells if text is not None]
        convert: Any = None
        if known and all(NUMBER.fullmatch(text) for text in known):
            convert = float
        elif known and all(_converts(np.datetime64, text) for text in known):
            convert = np.datetime64
        if convert is None:
            columns[name] = pa.array(cells, pa.string())
        elif convert is float:
            columns[name] = pa.array([None if c is None else float(c) for c in cells], pa.float64())
        else:
            times = np.array([np.datetime64("NaT" if c is None else c, "us") for c in cells])
            columns[name] = pa.array(times)
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
    target: str | os.PathLike[str], table: Any, compressed: bool = False, safe_cells: bool = False
) -> None:
    """A pyarrow table as CSV to a file, or to standard output for "-".

    With `safe_cells`, text that a spreadsheet would run as a formula gets an apostrophe in front,
    in names of columns too. Read again, it keeps the apostrophe, so this is off by default.
    """
    if str(target) == "-":
        _write_rows(sys.stdout, table, safe_cells)
        return
    with open(target, "wb") as raw:
        # no name or time inside, so that equal tables give equal files
        file: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else raw
        with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            _write_rows(text, table, safe_cells)


def _content(source: str) -> bytes:
    if source == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            content = Path(source).read_bytes()
            if source.lower().endswith(".gz"):
                content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{source} cannot be read: {reason_of(error)}.") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{source} is in UTF-16, but CSV is read as UTF-8; save it as UTF-8.")
    return content.removeprefix(codecs.BOM_UTF8)


def _header(content: bytes, source: str) -> list[str]:
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape", newline="")
    try:
        names = next(csv.reader(lines), [])
    except csv.Error as error:
        raise ValueError(f"{source} is not a table in CSV: {reason_of(error)}.") from None
    if any("\ud800" <= each <= "\udfff" for name in names for each in name):
        raise ValueError(f"{source} has a header that is not in UTF-8; save it as UTF-8.")
    if not names:
        raise ValueError(f"{source} is empty: a header with the names of the columns is required.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        mark = next(mark for mark in ";\t|" if mark in names[0])
        raise ValueError(f"{source} seems to be separated by {mark!r}, but CSV needs commas.")
    if len(set(names)) < len(names):
        raise ValueError(f"{source} has two columns of the same name: {names}.")
    return names


def _numbers(texts: NDArray[np.str_], places: IntArray, name: str) -> NDArray[Any]:
    """Values of distinct texts; NaN where they are missing."""
    missing = np.isin(texts, MISSING)
    try:
        found = np.where(missing, "nan", texts).astype(np.float64)
    except ValueError:
        wrong, text = next(
            (place, text)
            for place, text in enumerate(texts)
            if not missing[place] and not _converts(float, text)
        )
        row = int(np.argmax(places == wrong))
        raise ValueError(
            f"value column {name!r} holds {str(text)!r} in line {row + 2}, but a number, or "
            "nothing for a missing value, is required."
        ) from None
    for place, text in enumerate(texts.tolist()):
        if len(text) > LONGEST_EXACT and _is_rounded(text, float(found[place])):
            line = int(np.argmax(places == place)) + 2
            warn_of_rounded(f"value column {name!r}", text, float(found[place]), f"line {line}")
            break
    return np.asarray(found)


def _is_rounded(text: str, number: float) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and int(text) != number and isfinite(number)


def _keys(texts: NDArray[np.str_], floats: bool = False) -> NDArray[Any]:
    """Distinct texts as integers or dates if nothing is lost; as floats if allowed.

    Digits alone, such as "007", are not floats unless some are missing.
    """
    for kind in ("int64", "M8[D]"):
        if _same_texts(texts, kind):
            return texts.astype(kind)
    numbers = all(text in MISSING or _converts(float, text) for text in texts.tolist())
    if floats and numbers and not np.all(np.char.isdigit(texts)):
        return np.where(np.isin(texts, MISSING), "nan", texts).astype(np.float64)
    return texts


def _same_texts(texts: NDArray[np.str_], kind: str) -> bool:
    try:
        return bool(np.array_equal(texts.astype(kind).astype(str), texts))
    except (ValueError, OverflowError):
        return False


def _like(texts: NDArray[np.str_], levels: NDArray[Any] | None, name: str) -> NDArray[Any]:
    """Keys converted to the type the model was fitted with."""
    if levels is None or levels.dtype.kind == "U":
        return texts
    if levels.dtype.kind == "b":
        return np.asarray(np.char.lower(texts) == "true")
    try:
        return texts.astype(levels.dtype)
    except (ValueError, OverflowError):
        raise ValueError(
            f"column {name!r} holds text such as {str(texts[0])!r}, but the model was fitted with "
            f"{KINDS[levels.dtype.kind]} such as {as_text(levels[0])}."
        ) from None


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


def _write_rows(file: Any, table: Any, safe_cells: bool) -> None:
    """Rows with the shortest text that round-trips each number; empty for a missing value."""
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
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
