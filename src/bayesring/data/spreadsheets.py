"""Tables of spreadsheets (.xlsx): read as texts, like CSV; written with text as text."""

from __future__ import annotations

import datetime
import math
import os
from typing import Any
from zipfile import ZipFile

from bayesring.checks import check_fits, import_pyarrow
from bayesring.data.expanding import check_zipped
from bayesring.wording import shown

EXPANDED = 8
"""Bytes in memory per byte of a sheet, about."""
MOST_ROWS = 2**20
"""Rows of a sheet, its header included."""
EXACT = 2**53
"""Integers beyond this are written as text, since sheets hold numbers as floats."""
SHEET = "bayesring"


def import_openpyxl() -> Any:
    """The library that reads and writes spreadsheets."""
    try:
        import openpyxl
    except ImportError:
        raise ImportError("Spreadsheets need openpyxl: pip install 'bayesring[files]'.") from None
    return openpyxl


def write_sheet(path: str | os.PathLike[str], table: Any) -> None:
    """Write a pyarrow table to one sheet; text is marked as text and never runs as a formula."""
    openpyxl = import_openpyxl()
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if table.num_rows >= MOST_ROWS:
        raise ValueError(
            f"a sheet has at most {MOST_ROWS - 1:,} rows below its header, but the result has "
            f"{table.num_rows:,}; write .csv or .parquet."
        )
    columns = [
        [name, *own.to_pylist()]
        for name, own in zip(table.column_names, table.columns, strict=True)
    ]
    columns = [[_storable(value) for value in own] for own in columns]
    for value in {value for own in columns for value in own if isinstance(value, str)}:
        if ILLEGAL_CHARACTERS_RE.search(value):
            raise ValueError(
                f"a sheet cannot hold the text {shown(value)}; write .csv or .parquet."
            )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(SHEET)

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = WriteOnlyCell(sheet, value)
        found.data_type = "s"
        return found

    for row in zip(*columns, strict=True):
        sheet.append([cell(value) for value in row])
    with open(path, "wb") as file:
        book.save(file)


def header_of_sheet(path: str) -> list[str]:
    """Names of the columns of the only sheet; none if there are others."""
    book = import_openpyxl().load_workbook(path, read_only=True)
    try:
        if len(book.sheetnames) != 1:
            return []
        rows = book.worksheets[0].iter_rows(max_row=1, values_only=True)
        return [_text(cell) for cell in next(rows, ())]
    finally:
        book.close()


def _storable(value: Any) -> Any:
    """A value that a cell can hold without changing it, or its text; nothing for NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, bool | float | str) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT else str(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value if value.year >= 1900 else str(value)
    if type(value) is datetime.date and value.year >= 1900:
        return value
    return str(value)


def check_sheet(path: str, archive: ZipFile) -> None:
    """Raise a ValueError for a spreadsheet that expands to more than it should or memory holds."""
    size = check_zipped(path, archive, "save it as CSV")
    check_fits(EXPANDED * size, f"the spreadsheet {path}", "save it as CSV.")


def read_sheet(path: str, sheet: str | None) -> Any:
    """A sheet with a header as a pyarrow table of texts; formulas are the values they had."""
    pa, openpyxl = import_pyarrow(), import_openpyxl()
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        names = [own.title for own in book.worksheets]
        if sheet is None and len(names) != 1:
            raise ValueError(f"it has the sheets {shown(names)}; name one with --sheet")
        if sheet is not None and sheet not in names:
            raise ValueError(f"it has no sheet {shown(sheet)}, but {shown(names)}")
        own = book[names[0] if sheet is None else sheet]
        own.reset_dimensions()  # some programs declare wrong ones
        rows = [row for row in own.iter_rows(values_only=True) if any(map(_is_filled, row))]
    finally:
        book.close()
    if not rows:
        raise ValueError("it is empty: a header with the names of the columns is required")
    width = max(place + 1 for row in rows for place, cell in enumerate(row) if _is_filled(cell))
    header = [_text(cell) for cell in _padded(rows[0], width)]
    for place, name in enumerate(header):
        if not name:
            raise ValueError(f"its column {place + 1} has no name in the first row")
        if header.index(name) != place:
            raise ValueError(f"it has two columns of the same name, {shown(name)}")
    columns = zip(*(map(_text, _padded(row, width)) for row in rows[1:]), strict=True)
    texts = [list(column) for column in columns] or [[] for _ in header]
    return pa.table(
        {name: pa.array(own, pa.string()) for name, own in zip(header, texts, strict=True)}
    )


def _padded(row: tuple[Any, ...], width: int) -> tuple[Any, ...]:
    return (*row, *(None,) * (width - len(row)))[:width]


def _is_filled(cell: Any) -> bool:
    return cell is not None and cell != ""


def _text(cell: Any) -> str:
    """A cell as it would stand in a CSV file."""
    if cell is None:
        return ""
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time()
        return cell.date().isoformat() if midnight else cell.isoformat(sep=" ")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)
