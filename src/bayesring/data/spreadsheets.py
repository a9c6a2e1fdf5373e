"""Tables of spreadsheets (.xlsx), as texts that are then read like CSV."""

from __future__ import annotations

import datetime
from typing import Any
from zipfile import ZipFile

from bayesring.checks import check_fits, import_pyarrow
from bayesring.wording import shown

EXPANDED = 8
"""Bytes in memory per byte of a sheet, about."""


def read_sheet(path: str, sheet: str | None) -> Any:
    """A sheet with a header as a pyarrow table of texts; formulas are the values they had."""
    pa = import_pyarrow()
    try:
        import openpyxl
    except ImportError:
        raise ImportError("Spreadsheets need openpyxl: pip install 'bayesring[files]'.") from None
    with ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    check_fits(EXPANDED * size, f"the spreadsheet {path}", "save it as CSV.")
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
