"""How a text file writes its table: separator, decimal mark, encoding, words for missing values."""

from __future__ import annotations

import codecs
import csv
import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.wording import reason_of, shown

MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "-"),
    *("#N/A", "#NA", "<NA>"),
)
"""Texts that mean a missing value."""
SEPARATORS = ";\t|"
"""Tried if a header has no comma, in this order."""
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
"""Separators in words, which are easier to type in a shell."""
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Marks at the beginning of a file, the longer ones before those that they begin with."""
PIECE = 2**24
"""Bytes looked at together when the first wrong one is sought."""


class Dialect(NamedTuple):
    """What `--sep`, `--decimal`, `--encoding`, `--na` and `--sheet` say."""

    sep: str | None = None
    """One character; None for a comma or, if the header has none, one of `SEPARATORS`."""
    decimal: str = "."
    encoding: str | None = None
    """None for UTF-8, or what a mark at the beginning of the file says."""
    na: tuple[str, ...] = ()
    """Words for a missing value besides `MISSING`; those that are numbers count as numbers."""
    sheet: str | None = None
    """Sheet of a spreadsheet; None for its only one."""

    def checked(self) -> Dialect:
        """The same with names of separators replaced; a ValueError says what cannot be."""
        sep = None if self.sep is None else NAMES.get(self.sep, self.sep)
        if sep is not None and (len(sep) != 1 or sep in '"\r\n' or not sep.isascii()):
            raise ValueError(
                f"--sep must be one character, or one of {', '.join(NAMES)}, got {shown(self.sep)}."
            )
        if self.decimal not in (".", ","):
            raise ValueError(f"--decimal must be . or a comma, got {shown(self.decimal)}.")
        if sep == self.decimal:
            raise ValueError(f"--sep and --decimal are both {shown(sep)}, but must differ.")
        if self.encoding is not None:
            try:
                known = codecs.lookup(self.encoding)
            except (LookupError, ValueError):
                known = None
            if known is None or not getattr(known, "_is_text_encoding", True):
                raise ValueError(
                    f"--encoding names {shown(self.encoding)}, which is not known; latin-1, "
                    "cp1252, utf-16 and shift_jis are, for example."
                )
        return self._replace(sep=sep)

    def refuse_unused(self, used: tuple[str, ...], path: str, kind: str) -> None:
        """Raise an error if something was said that a file of this kind has no use for."""
        for name, given in self._asdict().items():
            if name not in used and given != Dialect._field_defaults[name]:
                where = "spreadsheets" if name == "sheet" else "CSV files"
                raise ValueError(f"--{name} is for {where}, but {path} is a {kind} file.")

    def is_missing(self, texts: NDArray[np.str_]) -> NDArray[np.bool_]:
        """Which texts mean a missing value."""
        return np.isin(texts, (*MISSING, *self.na))

    def as_number(self, text: str) -> str:
        """A text with its decimal mark as a point, if it has that mark."""
        if self.decimal == "." or "." in text or "_" in text:
            return text
        return text.replace(",", ".")

    def codes(self) -> list[float]:
        """Numbers that mean a missing value."""
        found = []
        for word in self.na:
            try:
                found.append(float(self.as_number(word)))
            except ValueError:
                continue
        return found


PLAIN = Dialect()


def in_utf8(content: bytes, source: str, dialect: Dialect) -> bytes:
    """The content of a file in UTF-8, without a mark at its beginning."""
    mark = next((each for each in MARKS if content.startswith(each)), b"")
    encoding = dialect.encoding or (MARKS[mark] if mark else "utf-8")
    name = codecs.lookup(encoding).name
    plain = content.removeprefix(mark) if mark and name in _families(mark) else content
    if name == "utf-8":
        return plain
    if mark and name in ("utf-16", "utf-32"):
        name = MARKS[mark]
    try:
        return plain.decode(name).encode("utf-8")
    except (UnicodeError, OverflowError) as error:
        raise ValueError(f"{source} is not in {encoding}: {reason_of(error)}.") from None


def _families(mark: bytes) -> tuple[str, ...]:
    """Encodings in which a mark is a mark, and not text."""
    own = MARKS[mark]
    return (own, own.rsplit("-", 1)[0], "utf-8-sig" if own == "utf-8" else own)


def not_utf8(content: bytes, source: str) -> ValueError | None:
    """The error for a file that is not in UTF-8, with the line of the first wrong byte."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 1
    for begin in range(0, len(content), PIECE):
        piece = content[begin : begin + PIECE]
        try:
            decoder.decode(piece, final=begin + PIECE >= len(content))
        except UnicodeDecodeError as error:
            line = lines + piece.count(b"\n", 0, error.start)
            return ValueError(
                f"{source} is not in UTF-8: line {line} holds other bytes; name its encoding, for "
                "example with --encoding latin-1."
            )
        lines += piece.count(b"\n")
    return None


def read_header(content: bytes, source: str, dialect: Dialect) -> tuple[list[str], str]:
    """Names of the columns of a table in UTF-8, and the separator."""
    names = _split(content, source, dialect.sep or ",")
    sep = dialect.sep or ","
    if dialect.sep is None and len(names) == 1:
        counts = {each: names[0].count(each) for each in SEPARATORS}
        best = max(counts, key=lambda each: counts[each])
        if counts[best]:
            names, sep = _split(content, source, best), best
    if sep == dialect.decimal:
        raise ValueError(f"{source} is separated by commas, so --decimal cannot be a comma.")
    if not names:
        raise ValueError(f"{source} is empty: a header with the names of the columns is required.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{source} has two columns of the same name, {shown(twice)}.")
    return names, sep


def _split(content: bytes, source: str, sep: str) -> list[str]:
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogateescape", newline="")
    try:
        names = next(csv.reader(lines, delimiter=sep), [])
    except csv.Error as error:
        raise ValueError(f"{source} is not a table in CSV: {reason_of(error)}.") from None
    if any("\ud800" <= each <= "\udfff" for name in names for each in name):
        raise not_utf8(content, source) or ValueError(f"{source} has a header not in UTF-8.")
    return names
