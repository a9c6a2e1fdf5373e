"""Count keys in the first pass over a stream, and convert them to coordinates in later passes.

Integers in a moderate range use a lookup table over the range. Everything else uses a hash table,
with text hashed by its bytes. Each entry of an Arrow dictionary is looked up once.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.labels import KINDS, LONGEST, as_keys, bad_text
from bayesring.data.parquet.arrowkeys import KeyType, bits_of, numbers_of, texts_of
from bayesring.kernels import hashing
from bayesring.kernels import pools as streams
from bayesring.model.types import IntArray

DENSE = 1 << 24
"""Largest range of integers covered by a lookup table."""


class BadText(ValueError):
    """A text that is not a valid key."""

    place = 0
    """Row of the counted column."""

    def __init__(self, what: str, text: Any) -> None:
        super().__init__(what)
        self._text = text

    def at(self, column: Any) -> BadText:
        """The same error with the row of the first such text in a column."""
        decoded = column.dictionary_decode() if hasattr(column, "dictionary") else column
        self.place = max(0, int(decoded.index(self._text).as_py()))
        return self


class Coder(Protocol):
    """Converts the keys of one column to coordinates."""

    def code(self, column: Any, out: IntArray) -> int:
        """Codes of a column without nulls; the first row whose key is unknown, or -1."""


class TableCoder:
    """Integers in a moderate range."""

    def __init__(self, levels: NDArray[np.int64]) -> None:
        self._low = int(levels.min())
        self._table = np.full(int(levels.max()) - self._low + 1, -1, dtype=np.int32)
        self._table[levels - self._low] = np.arange(len(levels), dtype=np.int32)

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        return int(streams.look_up(numbers_of(column), self._low, self._table, out))


class NumberCoder:
    """Arbitrary numbers; learns new ones."""

    def __init__(self, levels: NDArray[np.int64]) -> None:
        self.levels: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._slots = _slots(0)
        self._add(levels)

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        return int(hashing.find_numbers(numbers_of(column), self.levels, self._slots, out))

    def learn(self, column: Any) -> None:
        """Give codes to the keys of a column, none of which is known."""
        self._add(np.unique(numbers_of(column)).astype(np.int64))

    def _add(self, new: NDArray[np.int64]) -> None:
        first = len(self.levels)
        self.levels = np.concatenate([self.levels, new])
        if 2 * len(self.levels) > len(self._slots):
            first, self._slots = 0, _slots(len(self.levels))
        hashing.put_numbers(self.levels, first, self._slots)


class TextCoder:
    """Text; learns new texts, and caches the codes of the last dictionary."""

    def __init__(self, levels: Any) -> None:
        self._offsets: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._data: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self._slots = _slots(0)
        self._last: tuple[Any, IntArray, int] | None = None
        self._add(levels)

    @property
    def levels(self) -> NDArray[Any]:
        """The texts in the order of their codes."""
        pa = import_pyarrow()
        buffers = pa.py_buffer(self._offsets), pa.py_buffer(self._data)
        n = len(self._offsets) - 1
        return np.asarray(
            pa.LargeStringArray.from_buffers(n, *buffers).to_numpy(zero_copy_only=False)
        )

    def code(self, column: Any, out: IntArray) -> int:
        """See `Coder`."""
        if not hasattr(column, "dictionary"):
            return self._find(column, out)
        if self._last is None or not self._last[0].equals(column.dictionary):
            found = np.empty(len(column.dictionary), dtype=np.int32)
            self._last = column.dictionary, found, self._find(column.dictionary, found)
        _, codes, unknown = self._last
        out[:] = codes[numbers_of(column.indices)]
        if unknown < 0:
            return -1
        wrong = out < 0
        return int(np.argmax(wrong)) if wrong.any() else -1

    def learn(self, column: Any) -> None:
        """Give codes to the keys of a column, none of which is known."""
        if hasattr(column, "dictionary"):
            column = column.dictionary_decode()
        self._last = None
        new = column.unique()
        _check_texts(new)
        self._add(new)

    def _find(self, texts: Any, out: IntArray) -> int:
        found = texts_of(texts)
        return int(hashing.find_texts(*found, self._offsets, self._data, self._slots, out))

    def _add(self, texts: Any) -> None:
        offsets, data = texts_of(texts)
        first = len(self._offsets) - 1
        moved = offsets[1:] - offsets[0] + self._offsets[-1]
        self._offsets = np.concatenate([self._offsets, moved])
        self._data = np.concatenate([self._data, data[offsets[0] : offsets[-1]]])
        n = len(self._offsets) - 1
        if 2 * n > len(self._slots):
            first, self._slots = 0, _slots(n)
        hashing.put_texts(self._offsets, self._data, first, self._slots)


class KeyTally:
    """Distinct keys of one column and their counts."""

    def __init__(self, kind: KeyType, name: str) -> None:
        self._kind, self._name = kind, name
        self._low = 0
        """Key of the first count; used while a lookup table covers the range of the keys."""
        self._seen: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._coder: NumberCoder | TextCoder | None = None
        if kind.dtype.kind == "U":
            self._coder = TextCoder(import_pyarrow().array([], "string"))
        elif not kind.is_whole:
            self._coder = NumberCoder(np.zeros(0, dtype=np.int64))

    def add(self, column: Any, weight: int = 1) -> None:
        """Count the keys of a column without nulls, each with `weight`."""
        if not len(column):
            return
        if self._coder is None:
            keys = numbers_of(column)
            if self._covers(int(keys.min()), int(keys.max())):
                streams.count(keys, self._low, self._seen, self._counts, weight)
                return
            self._coder = self._without_table()
        codes = np.empty(len(column), dtype=np.int32)
        if self._coder.code(column, codes) >= 0:
            try:
                self._coder.learn(column.filter(import_pyarrow().array(codes < 0)))
            except BadText as error:
                raise error.at(column) from None
            self._coder.code(column, codes)
            largest = int(codes.max())
            if largest >= len(self._counts):
                self._grow(0, max(largest + 1, 2 * len(self._counts)))
        streams.count(codes, 0, self._seen, self._counts, weight)

    def result(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sorted labels and their counts."""
        found = np.flatnonzero(self._seen)
        counts, dtype = self._counts[found], self._kind.dtype
        try:
            keys = found + self._low if self._coder is None else self._coder.levels
        except import_pyarrow().ArrowException:
            raise ValueError(f"column {self._name!r} holds text that is not in UTF-8.") from None
        if dtype.kind in "Mm":
            keys = keys.view(dtype)
        elif dtype.kind == "f":
            keys = keys.view(np.float64).astype(dtype)
        elif dtype.kind != "U":
            keys = keys.astype(dtype)
        levels, places = np.unique(as_keys(keys, self._name), return_inverse=True)
        totals = np.zeros(len(levels), dtype=np.int64)
        np.add.at(totals, places, counts)
        return levels, totals

    def _covers(self, smallest: int, largest: int) -> bool:
        """Extend the table of counts to cover these keys; False if it would become too large."""
        size = len(self._counts)
        if not size:
            self._low = smallest
        low, high = min(smallest, self._low), max(largest + 1, self._low + size)
        if high - low > DENSE:
            return False
        # a growing range may keep growing: leave as much room again on the side where it grew
        if low < self._low:
            low = max(low - size, high - DENSE, -(2**63))
        if high > self._low + size:
            high = max(high, min(high + size, low + DENSE, 2**63))
        if high - low > size:
            self._grow(low, high - low)
        return True

    def _grow(self, low: int, size: int) -> None:
        seen, counts = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64)
        before = slice(self._low - low, self._low - low + len(self._counts))
        seen[before], counts[before] = self._seen, self._counts
        self._low, self._seen, self._counts = low, seen, counts

    def _without_table(self) -> NumberCoder:
        """Abandon the table but keep its counts."""
        found = np.flatnonzero(self._seen)
        coder = NumberCoder(found + self._low)
        self._low, self._seen, self._counts = 0, self._seen[found], self._counts[found]
        return coder


def make_coder(levels: NDArray[Any], kind: KeyType, name: str) -> Coder:
    """The fastest coder for the labels and type of a column, which must be of the same kind."""
    found, expected = KINDS[kind.dtype.kind], KINDS[levels.dtype.kind]
    if found != expected:
        raise ValueError(
            f"column {name!r} holds {found}, but the model was fitted with {expected} such as "
            f"{levels[0]!s}."
        )
    if kind.dtype.kind == "U":
        return TextCoder(import_pyarrow().array(levels.tolist(), "large_string"))
    if kind.dtype.kind == "f":
        return NumberCoder(bits_of(levels))
    if kind.dtype.kind in "Mm":
        levels = levels.astype(kind.dtype)
    numbers = levels.astype(np.int64)
    if levels.dtype.kind == "f" and not np.array_equal(numbers, levels):
        raise ValueError(
            f"column {name!r} holds integers, but the model was fitted with floats such as "
            f"{levels[numbers != levels][0]!s}."
        )
    dense = int(numbers.max()) - int(numbers.min()) < DENSE
    return TableCoder(numbers) if dense else NumberCoder(numbers)


def copies(coders: Sequence[Coder]) -> list[Coder]:
    """Copies of the coders with separate caches, for another thread."""
    return [copy.copy(each) for each in coders]


def _check_texts(texts: Any) -> None:
    """Reject texts that are not valid keys; only those with suspicious bytes are examined."""
    offsets, data = texts_of(texts)
    lengths = np.diff(offsets)
    own = data[offsets[0] : offsets[-1]]
    suspect = lengths > LONGEST
    nul = np.flatnonzero(own == 0) + offsets[0]
    suspect[np.searchsorted(offsets, nul, side="right") - 1] = True
    for place in np.flatnonzero(suspect):
        wrong = bad_text([texts[int(place)].as_py()])
        if wrong is not None:
            raise BadText(wrong[1].rstrip(","), texts[int(place)])


def _slots(n: int) -> NDArray[np.int32]:
    """An empty hash table with room for twice `n` keys."""
    return np.full(1 << max(10, (4 * n - 1).bit_length()), -1, dtype=np.int32)
