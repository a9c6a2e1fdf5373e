"""Key columns of Arrow: counted in a first pass, turned into coordinates in the later ones.

No row ever becomes a Python object. Whole numbers, dates, times and truth values are handled as
integers: through a table that covers their range if it is moderate, by bisection otherwise. Text is
handled through Arrow's dictionaries, one look-up per distinct text of a batch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.kernels import streams
from bayesring.labels import KINDS, as_keys
from bayesring.types import IntArray

DENSE = 1 << 24
"""Largest range of whole numbers that a table covers."""
PENDING = 1 << 20
"""Distinct keys of batches that are gathered, at the least, before they are merged."""


class KeyType(NamedTuple):
    """What a key column holds."""

    text: str
    """As Arrow says it."""
    dtype: np.dtype[Any]
    """Of the labels; that of text is settled by the labels themselves."""

    @property
    def is_whole(self) -> bool:
        """Whether keys can be handled as integers."""
        return self.dtype.kind in "iubMm"

    def agrees(self, other: KeyType) -> bool:
        """Whether two files may hold the same keys with these types."""
        if {self.dtype.kind, other.dtype.kind} <= set("iu"):
            return True
        return self.dtype.kind == other.dtype.kind and (
            self.dtype.kind in "Uf" or self.text == other.text
        )

    def joined(self, other: KeyType) -> KeyType:
        """The type that holds the keys of both."""
        if self.dtype.kind == "U":
            return self
        dtype = np.result_type(self.dtype, other.dtype)
        both_whole = self.is_whole and dtype.kind == "f"
        return KeyType(self.text, np.dtype(np.int64) if both_whole else dtype)


def key_type(arrow_type: Any, name: str) -> KeyType:
    """What a column of this type holds, or a sentence on why it can be no key."""
    pa = import_pyarrow()
    types = pa.types
    plain = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    if types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain):
        return KeyType("string", np.dtype(str))
    if types.is_date32(plain):
        return KeyType(str(plain), np.dtype("M8[D]"))
    if types.is_date64(plain):
        return KeyType(str(plain), np.dtype("M8[ms]"))
    if types.is_timestamp(plain):
        return KeyType(str(plain), np.dtype(f"M8[{plain.unit}]"))
    if types.is_duration(plain):
        return KeyType(str(plain), np.dtype(f"m8[{plain.unit}]"))
    if types.is_integer(plain) or types.is_floating(plain) or types.is_boolean(plain):
        return KeyType(str(plain), np.dtype(plain.to_pandas_dtype()))
    raise ValueError(
        f"column {name!r} holds values of type {plain}, but a key must be text, a number, a date, "
        "a duration or a truth value."
    )


def numbers_of(column: Any) -> NDArray[Any]:
    """A column without nulls, and not of text: as int32, int64 or floats of NumPy."""
    pa = import_pyarrow()
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_date32(kind):
        column = column.view(pa.int32())
    elif types.is_temporal(kind):
        column = column.view(pa.int64())
    elif types.is_boolean(kind) or (types.is_integer(kind) and kind.bit_width < 32):
        column = column.cast(pa.int32())
    elif types.is_unsigned_integer(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ValueError("whole numbers of 2^63 and more, which are too large.") from None
    return np.asarray(column.to_numpy(zero_copy_only=False))


class Tally:
    """Distinct keys of one column and how often each was met; the memory of `DENSE` counts."""

    def __init__(self, kind: KeyType, name: str) -> None:
        self._kind, self._name = kind, name
        self._low: int = 0
        self._seen: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._counts: IntArray = np.zeros(0, dtype=np.int64)
        self._dense = kind.is_whole
        self._merged: Any = None
        self._pending: list[Any] = []
        self._n_pending = 0

    def add(self, column: Any, weight: int = 1) -> None:
        """Count the keys of a column without nulls."""
        if not len(column):
            return
        if self._kind.dtype.kind == "U":
            coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
            places = numbers_of(coded.indices)
            counts = np.bincount(places, minlength=len(coded.dictionary))
            met = np.flatnonzero(counts)
            self._put(coded.dictionary.take(import_pyarrow().array(met)), weight * counts[met])
            return
        keys = numbers_of(column)
        if self._dense and self._covers(int(keys.min()), int(keys.max())):
            streams.count(keys, self._low, self._seen, self._counts, weight)
        else:
            distinct, counts = np.unique(keys, return_counts=True)
            wide = np.int64 if self._kind.is_whole else np.float64
            self._put(import_pyarrow().array(distinct.astype(wide)), weight * counts)

    def result(self) -> tuple[NDArray[Any], IntArray]:
        """The labels in sorted order, and the count of each."""
        if self._dense:
            found = np.flatnonzero(self._seen)
            keys, counts = found + self._low, self._counts[found]
        else:
            self._merge()
            keys, counts = (column.to_numpy() for column in self._merged.columns)
        if self._kind.dtype.kind in "Mm":
            keys = keys.astype(np.int64).view(self._kind.dtype)
        elif self._kind.dtype.kind != "U":
            keys = keys.astype(self._kind.dtype)
        levels, places = np.unique(as_keys(keys, self._name), return_inverse=True)
        totals = np.zeros(len(levels), dtype=np.int64)
        np.add.at(totals, places, counts)
        return levels, totals

    def _covers(self, smallest: int, largest: int) -> bool:
        """Make the table of counts wide enough for these keys; False if that is too wide."""
        high = self._low + len(self._counts)
        if len(self._counts) and self._low <= smallest and largest < high:
            return True
        if len(self._counts):
            smallest, largest = min(smallest, self._low), max(largest, high - 1)
        if largest - smallest >= DENSE:
            self._give_up_table()
            return False
        # a range that grows may grow on: leave room, where it grew, for as much again
        if len(self._counts) and smallest < self._low:
            smallest = max(smallest - len(self._counts), largest + 1 - DENSE, -(2**63))
        size = max(largest - smallest + 1, min(2 * len(self._counts), DENSE))
        seen, counts = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64)
        if len(self._counts):
            before = slice(self._low - smallest, self._low - smallest + len(self._counts))
            seen[before], counts[before] = self._seen, self._counts
        self._low, self._seen, self._counts = smallest, seen, counts
        return True

    def _give_up_table(self) -> None:
        found = np.flatnonzero(self._seen)
        if len(found):
            self._put(import_pyarrow().array(found + self._low), self._counts[found])
        self._dense = False
        self._seen, self._counts = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)

    def _put(self, keys: Any, counts: IntArray) -> None:
        pa = import_pyarrow()
        if self._kind.dtype.kind == "U":
            keys = keys.cast(pa.large_string())
        self._pending.append(pa.table({"key": keys, "count": counts}))
        self._n_pending += len(keys)
        if self._n_pending > max(PENDING, 0 if self._merged is None else len(self._merged)):
            self._merge()

    def _merge(self) -> None:
        pa = import_pyarrow()
        tables = [*([] if self._merged is None else [self._merged]), *self._pending]
        grouped = pa.concat_tables(tables).group_by("key").aggregate([("count", "sum")])
        self._merged = grouped.rename_columns(["key", "count"]).combine_chunks()
        self._pending, self._n_pending = [], 0


class Coder(Protocol):
    """Turns the keys of one column into coordinates."""

    def code(self, column: Any, out: IntArray) -> int:
        """Coordinates of a column without nulls; the first row whose key is unknown, or -1."""


class TableCoder:
    """Whole numbers of a moderate range."""

    def __init__(self, levels: IntArray) -> None:
        self._low = int(levels[0])
        self._table = np.full(int(levels[-1]) - self._low + 1, -1, dtype=np.int32)
        self._table[levels - self._low] = np.arange(len(levels), dtype=np.int32)

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        return int(streams.look_up(numbers_of(column), self._low, self._table, out))


class SortedCoder:
    """Any numbers."""

    def __init__(self, levels: NDArray[Any]) -> None:
        self._levels = levels

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        keys = numbers_of(column)
        places = np.searchsorted(self._levels, keys)
        np.minimum(places, len(self._levels) - 1, out=places)
        out[:] = places
        wrong = self._levels[places] != keys
        return int(np.argmax(wrong)) if wrong.any() else -1


class TextCoder:
    """Text; remembers the codes of the dictionary it met last, which batches often share."""

    def __init__(self, levels: NDArray[Any]) -> None:
        pa = import_pyarrow()
        self._levels = pa.array(levels.astype(object), pa.large_string())
        self._dictionary: Any = None
        self._codes: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        from pyarrow import compute

        coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        if self._dictionary is None or not coded.dictionary.equals(self._dictionary):
            texts = coded.dictionary.cast(self._levels.type)
            found = compute.index_in(texts, value_set=self._levels).fill_null(-1)
            self._dictionary, self._codes = coded.dictionary, found.to_numpy()
        out[:] = self._codes[numbers_of(coded.indices)]
        wrong = out < 0
        return int(np.argmax(wrong)) if wrong.any() else -1


def make_coder(levels: NDArray[Any], kind: KeyType, name: str) -> Coder:
    """The quickest coder for sorted labels and a column's type, which must be of one kind."""
    found, expected = KINDS[kind.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"column {name!r} holds {found}, but the model was fitted with {expected} such as "
            f"{levels[0]!s}."
        )
    if kind.dtype.kind == "U":
        return TextCoder(levels)
    if kind.is_whole and levels.dtype.kind != "f":
        if kind.dtype.kind in "Mm":
            levels = levels.astype(kind.dtype)
        whole = levels.astype(np.int64)
        return TableCoder(whole) if int(whole[-1]) - int(whole[0]) < DENSE else SortedCoder(whole)
    return SortedCoder(levels)


def copies(coders: Sequence[Coder]) -> list[Coder]:
    """The same coders with memories of their own, for another thread."""
    return [copy.copy(each) for each in coders]
