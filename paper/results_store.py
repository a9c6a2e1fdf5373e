"""Results of the evaluation: one CSV file per study, one row per cell.

A row has the cell's name (data, method, part), its results, versions and machine, and the commit of
the code that computed it. Each entry of a dictionary has its own column, such as `versions.numpy`;
lists are JSON. Numbers keep all digits. An empty field means that a cell has no such result.

A file is written under a temporary name and renamed, so it is always complete. A lock lets several
processes add rows to the same file, one at a time.
"""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import bayesring
from bayesring.data.writing import replacing

Result = dict[str, Any]
ROOT = Path(__file__).parents[1]
COMMITTED = Path("paper/results")
"""Folder of the committed results, relative to the root of the repository."""
CODE = ("src", "paper", "pyproject.toml", ":!paper/results")
"""Paths whose changes make the running code differ from the commit."""

WORD = re.compile(r"[\w-]+")
"""Names of entries that can have their own columns."""


class CellKey(NamedTuple):
    """Key of a row within its study."""

    data: str
    method: str
    part: str


class Provenance(NamedTuple):
    """Origin of a row."""

    commit: str
    """With "+dirty" if the code had uncommitted changes; "unknown" outside a repository."""
    commit_source: str
    """ "code": the commit of the code that ran; "file": the last commit that changed the row's
    file, for rows computed before commits were recorded."""


class ResultsTable(NamedTuple):
    """A file as text."""

    columns: list[str]
    """Columns other than the key."""
    rows: dict[CellKey, dict[str, str]]
    """Fields that are not empty."""


class ResultsStore:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[tuple[int, ...], ResultsTable]] = {}

    def path(self, study: str) -> Path:
        """The file of a study."""
        return self.folder / f"{study}.csv"

    def load(self, study: str, key: CellKey) -> Result | None:
        """Result of a cell, or None if it is not computed yet."""
        row = self._table(study).rows.get(key)
        return None if row is None else _result(key, row)

    def provenance(self, study: str, key: CellKey) -> Provenance:
        """Origin of a row."""
        row = self._table(study).rows[key]
        return Provenance(*(row[field] for field in Provenance._fields))

    def keep(self, study: str, key: CellKey, result: Result, source: Provenance) -> None:
        """Add a row, or replace the one with the same name."""
        row = _row(result)
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone_in(self.folder):
            columns, rows = self._table(study)
            new = ResultsTable(_with(columns, row), {**rows, key: row | source._asdict()})
            write_table(self.path(study), new)

    def _table(self, study: str) -> ResultsTable:
        """Contents of the file, reread only if it has changed."""
        path = self.path(study)
        if not path.exists():
            return ResultsTable([*Provenance._fields], {})
        about = path.stat()
        state = (about.st_ino, about.st_mtime_ns, about.st_size)
        if study not in self._known or self._known[study][0] != state:
            self._known[study] = (state, read_table(path))
        return self._known[study][1]


def read_table(path: Path) -> ResultsTable:
    """Read a file as text."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        lines = list(reader)
        columns = [name for name in reader.fieldnames or () if name not in CellKey._fields]
    rows = {
        CellKey(*(line[field] for field in CellKey._fields)): {
            name: line[name] for name in columns if line[name]
        }
        for line in lines
    }
    return ResultsTable(columns, rows)


def write_table(path: Path, table: ResultsTable) -> None:
    """Write a file atomically, with rows sorted by name."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*CellKey._fields, *table.columns])
        for key, row in sorted(table.rows.items()):
            writer.writerow([*key, *(row.get(name, "") for name in table.columns)])


def _with(columns: Sequence[str], row: Iterable[str]) -> list[str]:
    """Columns merged with those of a row, each after its predecessor in the row."""
    found, at = list(columns), 0
    for name in row:
        if name not in found:
            found.insert(at, name)
        at = found.index(name) + 1
    return found


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process writes to the folder; a lock is released with its process."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _row(result: Result) -> dict[str, str]:
    """A result as text fields."""
    row: dict[str, str] = {}
    for name, value in result.items():
        if name in CellKey._fields:
            continue
        if isinstance(value, dict) and value and all(map(WORD.fullmatch, value)):
            row |= {f"{name}.{part}": _to_text(each) for part, each in value.items()}
        else:
            row[name] = _to_text(value)
    return row


def _result(key: CellKey, row: dict[str, str]) -> Result:
    """The result encoded by text fields."""
    result: Result = {"data": key.data, "method": key.method}
    for name, text in row.items():
        if name in Provenance._fields:
            continue
        outer, dot, inner = name.partition(".")
        if dot:
            result.setdefault(outer, {})[inner] = _from_text(text)
        else:
            result[name] = _from_text(text)
    return result


def _to_text(value: Any) -> str:
    """JSON, or the text itself if it cannot be mistaken for anything else."""
    if isinstance(value, str) and value.isprintable() and value and _from_text(value) is value:
        return value
    return json.dumps(value)


def _from_text(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def write_json(path: Path, content: Any) -> None:
    """Write a file atomically, creating its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """The same of a list, one row a line."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(f"[\n{lines}\n]\n")


def this_code() -> Provenance:
    """The commit of the running code."""
    try:
        commit = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return Provenance("unknown", "code")
    if ROOT not in Path(bayesring.__file__).resolve().parents:
        return Provenance("unknown", "code")
    return Provenance(f"{commit}+dirty" if changed else commit, "code")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
