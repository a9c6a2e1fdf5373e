"""Arrow key columns: their allowed types, and their contents as NumPy arrays.

No row ever becomes a Python object. Integers, dates, times and booleans are handled as integers,
floats as integers with the same bits, and text as bytes with offsets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.checks import import_pyarrow
from bayesring.data.labels import Zone


class KeyType(NamedTuple):
    """Type of a key column."""

    text: str
    """Arrow's name of the type."""
    dtype: np.dtype[Any]
    """NumPy dtype of the labels; for text it depends on the labels themselves."""
    zone: Zone | None = None
    """Time zone of times that have one; they are kept in UTC."""

    @property
    def is_whole(self) -> bool:
        """Whether keys can be handled as integers."""
        return self.dtype.kind in "iubMm"

    def agrees(self, other: KeyType) -> bool:
        """Whether files with these types can hold the same keys."""
        if {self.dtype.kind, other.dtype.kind} <= set("iu"):
            return True
        return self.dtype.kind == other.dtype.kind and (
            self.dtype.kind in "Uf" or self.text == other.text
        )

    def joined(self, other: KeyType) -> KeyType:
        """The common type for the keys of both."""
        if self.dtype.kind == "U":
            return self
        dtype = np.result_type(self.dtype, other.dtype)
        both_whole = self.is_whole and dtype.kind == "f"
        return self._replace(dtype=np.dtype(np.int64) if both_whole else dtype)


def key_type(arrow_type: Any, name: str) -> KeyType:
    """Key type of a column; raises an error if the column cannot be a key."""
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
        zone = None if plain.tz is None else Zone(plain.tz, plain.unit)
        return KeyType(str(plain), np.dtype(f"M8[{plain.unit}]"), zone)
    if types.is_duration(plain):
        return KeyType(str(plain), np.dtype(f"m8[{plain.unit}]"))
    if types.is_integer(plain) or types.is_floating(plain) or types.is_boolean(plain):
        return KeyType(str(plain), np.dtype(plain.to_pandas_dtype()))
    raise ValueError(
        f"column {name!r} holds values of type {plain}, but a key must be text, a number, a date, "
        "a duration or a boolean."
    )


def numbers_of(column: Any) -> NDArray[Any]:
    """A non-text column without nulls, as int32 or int64."""
    pa = import_pyarrow()
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_floating(kind):
        return bits_of(column.to_numpy(zero_copy_only=False))
    if types.is_date32(kind):
        column = column.view(pa.int32())
    elif types.is_temporal(kind):
        column = column.view(pa.int64())
    elif types.is_boolean(kind) or kind.bit_width < 32:
        column = column.cast(pa.int32())
    elif types.is_unsigned_integer(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ValueError("integers of 2^63 and more are too large.") from None
    return np.asarray(column.to_numpy(zero_copy_only=False))


def bits_of(floats: NDArray[Any]) -> NDArray[np.int64]:
    """The bits of float64 as integers; both zeros map to one value."""
    return (floats.astype(np.float64) + 0.0).view(np.int64)


def texts_of(column: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """A text column without nulls: the offsets (n + 1,) and the bytes."""
    pa = import_pyarrow()
    if column.type not in (pa.string(), pa.large_string()):
        column = column.cast(pa.large_string())
    _, offsets, data = column.buffers()
    if not len(column):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    width = np.int32 if column.type == pa.string() else np.int64
    begins = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    read_only = np.frombuffer(b"" if data is None else data, np.uint8)
    return begins.astype(np.int64), read_only
