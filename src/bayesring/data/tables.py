"""Long tables: one row per cell, one column per key, one for the value.

pandas, polars and pyarrow tables are read and written through narwhals, so a result has the type of
the input.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.checks import check_values, numbers_of, warn_of_rounding
from bayesring.data.dialects import MISSING
from bayesring.data.labels import (
    Labels,
    NewLabels,
    Zone,
    encode,
    extend,
    learn_column,
    learn_levels,
    zone_of_objects,
)
from bayesring.data.matching import comparable
from bayesring.data.observations import Observations
from bayesring.data.opentables import kind_of
from bayesring.model.types import NOTHING, FloatArray, Given, IntArray
from bayesring.wording import as_text, shown

WIDE, WIDE_ANY = 3, 6
"""Number of float columns, or of any numeric columns, from which a table looks wide."""
MELT = {
    "pandas": "table.melt(id_vars={keys}, var_name='column', value_name='value')",
    "polars": "table.unpivot(index={keys}, variable_name='column', value_name='value')",
    "pyarrow": "table.to_pandas().melt(id_vars={keys}, var_name='column', value_name='value')",
}
"""How to convert a wide table to a long one."""


class Columns(NamedTuple):
    """Which columns of a table are keys and which is the value."""

    modes: tuple[str, ...]
    value: str | None
    """None if the values are given separately."""
    guessed: bool = False
    """Whether the keys were not named, so all other columns were used."""


class Coded(NamedTuple):
    """A table converted to numbers."""

    coords: IntArray
    """(n, D), one row per row of the table."""
    values: FloatArray
    """(n,), NaN where the value is missing."""
    labels: Labels

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each mode."""
        return tuple(len(levels) for levels in self.labels.levels if levels is not None)

    @property
    def observations(self) -> Observations:
        """The rows with a value; there must be at least one."""
        known = ~np.isnan(self.values)
        if not known.any():
            raise ValueError(
                f"value column {self.labels.value!r} holds no value in any of its "
                f"{len(known)} rows."
            )
        return Observations(self.coords[known], self.values[known], self.shape)


def find_columns(
    frame: nw.DataFrame[Any],
    modes: Sequence[str] | None,
    value: str | None,
    values_apart: bool = False,
) -> Columns:
    """The columns named by the user, checked, with defaults where they are obvious.

    They are obvious if exactly one column holds floats and every other one is a key or named. With
    `values_apart` there is no value column.
    """
    check_names(modes, value)
    for name in [*(() if modes is None else modes), *([] if value is None else [value])]:
        _check_column(frame, name, "value" if name == value else "modes")
    if value is not None and values_apart:
        raise ValueError(f"values are given twice: as y and as the column {value!r}.")
    if value is None and not values_apart:
        value = _obvious_value(frame, modes)
    keys = tuple(name for name in frame.columns if name != value) if modes is None else tuple(modes)
    for name in (*keys, *(() if value is None else (value,))):
        if not isinstance(name, str):
            raise ValueError(
                f"the table has a column named {shown(name)}, but names must be text; rename its "
                "columns, for example with table.set_axis(['a', 'b', 'c'], axis=1)."
            )
    if value in keys:
        raise ValueError(f"value {value!r} is also among the modes {list(keys)}.")
    if len(set(keys)) < len(keys):
        raise ValueError(f"modes names a column twice: {list(keys)}.")
    if modes is None and not values_apart and any(frame.schema[n].is_float() for n in keys):
        raise ValueError(_cannot_guess(frame, keys))
    if len(keys) < 2:
        index = nw.maybe_get_index(frame)
        named = [name for name in getattr(index, "names", ()) if name is not None]
        hint = f", and {named} are in the index: call reset_index() first" if named else ""
        raise ValueError(
            f"modes must name at least 2 key columns, got {list(keys)}; the columns are "
            f"{frame.columns}{hint}."
        )
    return Columns(keys, value, guessed=modes is None and not values_apart)


def code_table(frame: nw.DataFrame[Any], columns: Columns, y: Any = None) -> Coded:
    """Coordinates, values and labels of a long table, independent of the order of its rows.

    `y` holds the values if `columns` has no value column.
    """
    levels, codes, zones = [], [], []
    for name in columns.modes:
        level, code, zone = keys_of(frame, name)
        if columns.guessed and len(level) == len(frame) > 1:
            raise ValueError(
                f"modes and value are required: {columns.value!r} seemed to hold the values, but "
                f"then every row has a different label in {name!r}, which no key has; the columns "
                f"are {frame.columns}."
            )
        levels.append(level)
        codes.append(code)
        zones.append(zone)
    labels = Labels(columns.modes, tuple(levels), columns.value, tuple(zones))
    if columns.value is None:
        values = check_values(y, len(frame))
    else:
        values = values_of(frame, columns.value)
    return Coded(np.stack(codes, axis=1), values, labels)


def locate(
    frame: nw.DataFrame[Any], labels: Labels, shape: Sequence[int]
) -> tuple[IntArray, NewLabels]:
    """Coordinates (n, D) of the rows of a table, and the new labels.

    The coordinates of new labels follow the known ones, in the order of the labels.
    """
    codes, added = [], []
    for mode, (name, levels, size) in enumerate(
        zip(labels.names, labels.levels, shape, strict=True)
    ):
        _check_column(frame, name, "X")
        keys, places, zone = keys_of(frame, name)
        if levels is None:
            codes.append(_coordinates(keys, places, size, name))
            added.append(np.empty(0, dtype=np.int64))
            continue
        labels.check_zone(mode, zone, name)
        keys = comparable(keys, levels, name, int(places[0]))
        code = encode(keys, levels)
        unknown = code == size
        new, own = learn_levels(keys[unknown])
        code[unknown] = size + own
        codes.append(code[places])
        added.append(new)
    return np.stack(codes, axis=1), tuple(added)


def code_more(
    frame: nw.DataFrame[Any],
    labels: Labels,
    shape: Sequence[int],
    y: Any = None,
    given: Given = NOTHING,
) -> tuple[Observations, Labels]:
    """Observations of a table in existing labels, and the labels with new ones at the end."""
    coords, added = locate(frame, labels, shape)
    levels = tuple(
        extend(level, new, name) if level is not None and len(new) else level
        for name, level, new in zip(labels.names, labels.levels, added, strict=True)
    )
    if y is None:
        if labels.value is None:
            raise ValueError("y is required: the model does not know a column of values.")
        _check_column(frame, labels.value, "X")
        values = values_of(frame, labels.value)
    else:
        values = check_values(y, len(frame))
    known = np.isfinite(values)
    grown = np.maximum(shape, coords.max(axis=0) + 1)
    sizes = tuple(int(n) for n in grown)
    found = Observations(coords[known], values[known], sizes, given=given.at(known))
    return found, labels._replace(levels=levels)


def describe_new(names: Sequence[str], added: NewLabels) -> str:
    """Number of unknown labels of each mode, with an example, for a warning."""
    return ", ".join(
        f"{len(new)} of {name!r} (such as {as_text(new[0])})"
        for name, new in zip(names, added, strict=True)
        if len(new)
    )


def keys_of(frame: nw.DataFrame[Any], name: str) -> tuple[NDArray[Any], IntArray, Zone | None]:
    """The sorted distinct keys of a column, the index of each row's key, and the time zone."""
    kind = frame.schema[name]
    if frame.implementation.is_polars() and kind in (nw.String, nw.Categorical, nw.Enum):
        # not to_numpy: polars would pad all texts to the longest
        keys = np.array(frame[name].to_list(), dtype=object)
    else:
        keys = frame[name].to_numpy()
    if isinstance(kind, nw.Datetime) and kind.time_zone is not None:
        zone: Zone | None = Zone(kind.time_zone, kind.time_unit)
    else:
        zone = zone_of_objects(keys)
    return *learn_column(keys, name), zone


def values_of(frame: nw.DataFrame[Any], name: str) -> FloatArray:
    """A value column as float64, NaN where it is missing; infinity is rejected.

    Numbers may be Python objects or text, too.
    """
    column = frame[name]
    kind = column.dtype
    if kind.is_integer():  # not cast: Arrow refuses integers that floats cannot hold
        whole = np.asarray(column.fill_null(0).to_numpy())
        warn_of_rounding(whole, f"value column {name!r}")
        values = np.where(column.is_null().to_numpy(), np.nan, whole.astype(np.float64))
    elif (kind.is_numeric() and kind != nw.Decimal) or kind == nw.Boolean:
        values = np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    elif kind in (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Unknown, nw.Decimal):
        values = numbers_of(column.to_list(), f"value column {name!r}", MISSING)
    else:
        known = column.drop_nulls()
        example = f" such as {as_text(known[0])}" if len(known) else ""
        raise ValueError(f"value column {name!r} holds {kind}{example}, but numbers are required.")
    missing = np.isnan(values)
    check_values(np.where(missing, 0.0, values), len(values), f"value column {name!r}")
    return values


def add_columns(frame: nw.DataFrame[Any], columns: Mapping[str, NDArray[Any]]) -> nw.DataFrame[Any]:
    """The table with numeric columns added or replaced."""
    return frame.with_columns(
        *(
            nw.new_series(name, values, nw.Float64, backend=frame.implementation)
            for name, values in columns.items()
        )
    )


def check_new_columns(frame: nw.DataFrame[Any], names: Sequence[str]) -> None:
    """Reject a table that already has columns with these names."""
    for name in names:
        if name in frame.columns:
            raise ValueError(
                f"the table already has a column {name!r}, which the result needs; rename it first."
            )


def make_table(
    kind: str, columns: Mapping[str, NDArray[Any]], zones: Mapping[str, Zone | None] | None = None
) -> Any:
    """A new table of the library `kind`; times are in their `zones`."""
    backend, own = cast(Any, kind), zones or {}
    plain = {
        name: _in_zone(values, zone) if (zone := own.get(name)) else _for_tables(values, kind)
        for name, values in columns.items()
    }
    frame = nw.from_dict(plain, backend=backend)
    times = [
        nw.col(name).dt.replace_time_zone("UTC").dt.convert_time_zone(zone.name)
        for name, zone in own.items()
        if zone is not None
    ]
    return (frame.with_columns(*times) if times else frame).to_native()


def _in_zone(times: NDArray[Any], zone: Zone) -> NDArray[Any]:
    """Times in their original unit."""
    return times.astype(f"M8[{zone.unit}]")


def append_cells(frame: nw.DataFrame[Any], coded: Coded, cells: IntArray) -> nw.DataFrame[Any]:
    """The table with one row appended per cell; keys keep their types, the rest is missing."""
    keys = []
    for mode, name in enumerate(coded.labels.names):
        _, first_rows = np.unique(coded.coords[:, mode], return_index=True)
        keys.append(frame[name][first_rows[cells[:, mode]].tolist()])
    rows = nw.maybe_reset_index(keys[0].to_frame()).with_columns(*keys[1:])
    return nw.maybe_reset_index(nw.concat([frame, rows], how="diagonal"))


def _coordinates(keys: NDArray[Any], places: IntArray, size: int, name: str) -> IntArray:
    """A column of coordinates, checked: its distinct keys and the index of each row's key."""
    wrong = ~np.isin(keys, np.arange(size))
    if wrong.any():
        row = int(np.argmax(wrong[places]))
        raise ValueError(
            f"column {name!r} must hold coordinates from 0 to {size - 1}, got "
            f"{as_text(keys[places[row]])} in row {row}."
        )
    return np.asarray(keys.astype(np.int64)[places])


def _for_tables(values: NDArray[Any], kind: str) -> Any:
    """Days as times or Python dates, since not every library accepts arrays of days."""
    if values.dtype != "M8[D]":
        return values
    return values.astype("M8[s]") if kind == "pandas" else values.tolist()


def check_names(modes: Any, value: Any) -> None:
    """Reject what cannot name columns."""
    if isinstance(modes, str):
        raise ValueError(f"modes must be a list of column names, got the text {modes!r}.")
    in_order = hasattr(modes, "__getitem__") and hasattr(modes, "__len__")
    in_order = (
        in_order and not isinstance(modes, bytes | Mapping) and getattr(modes, "ndim", 1) == 1
    )
    if modes is not None and not (in_order and all(isinstance(each, Hashable) for each in modes)):
        raise ValueError(f"modes must be a list of column names, got {shown(modes)}.")
    if not isinstance(value, Hashable):
        raise ValueError(f"value must be the name of a column, got {shown(value)}.")


def _check_column(frame: nw.DataFrame[Any], name: str, argument: str) -> None:
    if name in frame.columns:
        return
    index = nw.maybe_get_index(frame)
    if index is not None and name in index.names:
        raise ValueError(
            f"{argument} names {name!r}, which is in the index of the table and not a column; call "
            "reset_index() first."
        )
    raise ValueError(
        f"{argument} names {shown(name)}, which is not a column of the table; its columns are "
        f"{frame.columns}."
    )


def _obvious_value(frame: nw.DataFrame[Any], modes: Sequence[str] | None) -> str:
    rest = [name for name in frame.columns if name not in (modes or ())]
    if modes is not None and len(rest) == 1:
        return rest[0]
    floats = [name for name in rest if frame.schema[name].is_float()]
    if len(floats) == 1:
        return floats[0]
    raise ValueError(_cannot_guess(frame, rest))


def _cannot_guess(frame: nw.DataFrame[Any], rest: Sequence[str]) -> str:
    """Error that asks for key and value columns, with help if the table looks wide."""
    numbers = [name for name in rest if frame.schema[name].is_numeric()]
    floats = [name for name in numbers if frame.schema[name].is_float()]
    if len(floats) < WIDE and len(numbers) < WIDE_ANY:
        return (
            "modes and value are required: name the key columns and the column of values; the "
            f"columns are {frame.columns}."
        )
    keys = [name for name in frame.columns if name not in numbers]
    melt = MELT.get(kind_of(frame), MELT["pandas"]).format(keys=keys)
    return (
        f"the table looks wide: it has {len(numbers)} columns of numbers such as {numbers[0]!r} "
        f"and {numbers[1]!r}; make it long first, with {melt}, or name modes and value."
    )
