"""Columns of a long table that say something of one key only: features of its labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from bayesring.data.opentables import is_table, open_table
from bayesring.data.sites import key_of_pair, pair_in
from bayesring.wording import as_text, shown


def of_one_key(frame: nw.DataFrame[Any], keys: Sequence[str], value: str | None) -> dict[str, str]:
    """For every column that is the same in all rows of a label, but not in all rows: its key.

    If there are several such keys, the one with the fewest labels.
    """
    found = {}
    sizes = {key: frame[key].n_unique() for key in keys}
    for name in frame.columns:
        if name in keys or name == value or frame[name].n_unique() < 2:
            continue
        for key in sorted(keys, key=sizes.__getitem__):
            if sizes[key] < len(frame) and len(frame.select(key, name).unique()) == sizes[key]:
                found[name] = key
                break
    return found


def offers(frame: nw.DataFrame[Any], keys: Sequence[str], value: str | None) -> list[str]:
    """Sentences on columns that could be features."""
    by_key: dict[str, list[str]] = {}
    pair = pair_in(frame.columns)
    place = None if pair is None or set(pair) & {*keys, value} else key_of_pair(frame, pair, keys)
    for name, key in of_one_key(frame, keys, value).items():
        if place is None or pair is None or name not in pair:
            by_key.setdefault(key, []).append(name)
    found = []
    if place is not None and pair is not None:
        found.append(f"{pair[0]!r} and {pair[1]!r} say where every {place} lies.")
    for key, names in by_key.items():
        listed = " and ".join(repr(name) for name in names)
        are = f"{listed} {'is' if len(names) == 1 else 'are'}"
        them = "it as a feature" if len(names) == 1 else "them as features"
        found.append(
            f"{are} the same for every row of a {key}: use {them}? --features "
            f"{key}={','.join(names)}"
        )
    return found


def from_columns(X: Any, features: Mapping[str | int, Any]) -> dict[str | int, Any]:
    """Features where lists of columns of the table `X` itself have become tables."""
    found = dict(features)
    for mode, names in features.items():
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, list | tuple) or not all(
            isinstance(each, str) for each in listed
        ):
            continue
        if not is_table(X):
            raise ValueError(
                f"features of {shown(mode)} names the columns {shown(names)}, but X is no table in "
                "memory that has them; give a table of features instead."
            )
        if not isinstance(mode, str):
            raise ValueError(
                f"features of {shown(mode)} names the columns {shown(names)}, but only a table "
                "has columns, whose modes have names."
            )
        found[mode] = _table_of(open_table(X, "X"), mode, listed)
    return found


def _table_of(frame: nw.DataFrame[Any], key: str, names: Sequence[str]) -> Any:
    """One row per label, with some columns."""
    if not names or key in names or len(set(names)) < len(names):
        raise ValueError(
            f"features of {key!r} must name different columns other than {key!r}, got "
            f"{shown(list(names))}."
        )
    for name in (key, *names):
        if name not in frame.columns:
            raise ValueError(
                f"features of {key!r} names {name!r}, which is not a column of the table; its "
                f"columns are {frame.columns}."
            )
    rows = frame.select(key, *names).unique(maintain_order=True)
    counts = rows[key].value_counts(sort=True, name="rows")
    if counts["rows"][0] > 1:
        label = counts[key][0]
        own = rows.filter(nw.col(key) == label)
        name = next(name for name in names if own[name].n_unique() > 1)
        raise ValueError(
            f"features of {key!r} names {name!r}, which is not the same in all rows of "
            f"{as_text(label)}; features belong to labels, not to rows."
        )
    return rows.to_native()
