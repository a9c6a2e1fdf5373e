"""Which existing files a command may replace: those that bayesring wrote, or all with --force."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zipfile
from collections.abc import Mapping

from bayesring.data.files import ARRAYS, POINTS, SHEETS, SPREADS, STANDARD, TABLES, extension
from bayesring.data.labelledfiles import names_besides_coordinates
from bayesring.data.modelheaders import read_model_header
from bayesring.data.spreadsheets import header_of_sheet
from bayesring.data.writing import same_place

PAGES = (b'<meta name="generator" content="bayesring', b"completed by bayesring")
"""What a page that bayesring wrote holds."""
LOOKED_AT = 2**20
"""Bytes of a page, or characters of a table, that are looked at."""


def check_apart(what: str, path: str, others: Mapping[str, str | None]) -> None:
    """Refuse, before any work, a file that would replace another one of the command."""
    for name, other in others.items():
        if other is not None and STANDARD not in (path, other) and same_place(path, other):
            raise ValueError(f"{what} needs a file of its own, but {path} is that of {name}.")


def check_replaced(path: str | os.PathLike[str], kind: str, force: bool) -> None:
    """Refuse, before any work, to replace what may be somebody's own.

    `kind` is what is written: "model", "page" or "result". An empty file may be replaced.
    """
    text = os.fspath(path)
    if force or text == STANDARD or not os.path.exists(text):
        return
    if os.path.isfile(text) and not os.path.getsize(text):
        return
    try:
        ours = {"model": _is_model, "page": _is_page, "result": _is_result}[kind](text)
    except Exception:  # whatever is wrong with it, it is not ours
        ours = False
    if not ours:
        raise FileExistsError(
            f"{text} exists, and does not look like something bayesring wrote; --force replaces it."
        )


def _is_model(path: str) -> bool:
    return bool(read_model_header(path))


def _is_page(path: str) -> bool:
    with open(path, "rb") as file:
        content = file.read(LOOKED_AT)
    return any(mark in content for mark in PAGES)


def _is_result(path: str) -> bool:
    """Whether a file has the four columns, arrays or variables of a result, and only it has."""
    kind = extension(path)
    if kind in (*TABLES, *SHEETS):
        *_, point, std, lower, upper = ("", "", "", *_columns(path, kind))
        return point in POINTS and (std, lower, upper) == SPREADS
    if kind in ARRAYS:
        if kind == ".npy":
            return False  # an array has no name
        with zipfile.ZipFile(path) as archive:
            found = {name.removesuffix(".npy") for name in archive.namelist()}
        return _are_statistics(found)
    return _are_statistics(names_besides_coordinates(path))


def _are_statistics(names: set[str]) -> bool:
    return any(names == {point, *SPREADS} for point in POINTS)


def _columns(path: str, kind: str) -> list[str]:
    if kind == ".parquet":
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    if kind in (".arrow", ".feather"):
        import pyarrow as pa

        with pa.OSFile(path) as file:
            return list(pa.ipc.open_file(file).schema.names)
    if kind in SHEETS:
        return header_of_sheet(path)
    opened = gzip.open if kind == ".csv.gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as text:
        lines = io.StringIO(text.read(LOOKED_AT), newline="")
        return next(csv.reader(lines, delimiter="\t" if kind == ".tsv" else ","), [])
