"""Positions with several coordinates: where the labels of a mode lie on a map, or on the globe.

Latitudes and longitudes become points in space, whose distance, through the Earth, is at most 0.2 %
less than that along its surface up to 1,400 km: unlike angles it is the same at all latitudes, and
unlike the distance along the surface it allows a search for near places. Anything else is a plane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from bayesring.data.opentables import is_table, open_table
from bayesring.model.types import FloatArray, IntArray
from bayesring.wording import shown

LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")
"""Names of columns that say where a label lies, in small letters."""
EARTH = 6371.0
"""Radius of the Earth in kilometres."""
MOST_COORDINATES = 16


class Sites(NamedTuple):
    """Where the labels of a mode lie."""

    places: FloatArray
    """(I_d, P) as given, latitudes before longitudes; NaN where unknown."""
    names: tuple[str, ...] = ()
    """Of the columns, or none."""
    on_globe: bool = False

    def coordinates(self) -> FloatArray:
        """(I_d, P), of which distances are those between places; on the globe in kilometres."""
        if not self.on_globe:
            return self.places
        latitude, longitude = np.deg2rad(self.places.T)
        flat = np.cos(latitude)
        x = [flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)]
        return EARTH * np.stack(x, axis=1)

    @property
    def usable(self) -> bool:
        """Whether all places are known and differ."""
        known = bool(np.isfinite(self.places).all())
        return known and len(np.unique(self.coordinates(), axis=0)) == len(self.places)

    def at(self, line: IntArray) -> Sites:
        """Those of labels in another order; unknown for labels beyond the last."""
        unknown = np.full((max(0, len(line) - len(self.places)), self.places.shape[1]), np.nan)
        return self._replace(places=np.concatenate([self.places, unknown])[line])

    @property
    def words(self) -> str:
        """What they are."""
        named = " and ".join(repr(name) for name in self.names)
        return f"by {named}" if named else f"by {self.places.shape[1]} coordinates"


def pair_in(names: Sequence[Any]) -> tuple[str, str] | None:
    """The columns of latitudes and longitudes among some names, if there is one of each."""
    found = [
        [name for name in names if isinstance(name, str) and name.lower() in known]
        for known in (LATITUDES, LONGITUDES)
    ]
    return (found[0][0], found[1][0]) if [len(own) for own in found] == [1, 1] else None


def key_of_pair(frame: nw.DataFrame[Any], pair: tuple[str, str], keys: Sequence[str]) -> str | None:
    """The key that latitude and longitude depend on; the one with the fewest labels of several."""
    found = numbers_in(frame, pair)
    if found is None or not is_on_globe(Sites(found, pair, on_globe=True)):
        return None
    sizes = {key: frame[key].n_unique() for key in keys}
    for key in sorted(keys, key=sizes.__getitem__):
        if 2 < sizes[key] < len(frame):
            rows = frame.select(key, *pair).unique()
            if len(rows) == sizes[key]:
                return key
    return None


def numbers_in(frame: nw.DataFrame[Any], names: Sequence[str]) -> FloatArray | None:
    """Columns of numbers, or of texts of numbers, (n, P); None if they are not."""
    columns = []
    for name in names:
        cells = frame[name].to_numpy()
        try:
            columns.append(cells.astype(float))
        except (TypeError, ValueError):
            return None
    return np.stack(columns, axis=1)


def is_on_globe(sites: Sites) -> bool:
    """Whether latitudes and longitudes are such; true of places that are not on the globe."""
    if not sites.on_globe:
        return True
    latitude, longitude = sites.places.T
    with np.errstate(invalid="ignore"):
        wrong = (np.abs(latitude) > 90) | (longitude < -180) | (longitude > 360)
    return not wrong.any()


def given_sites(given: Any, name: str, keys: Any, size: int) -> Sites | None:
    """Positions with several coordinates as the user gave them; None if they are on a line.

    An array with one row per coordinate, or a table, which may have the labels in a column named
    as the mode.
    """
    if not is_table(given):
        array: NDArray[Any] = np.empty(0) if isinstance(given, Mapping) else _as_array(given)
        if array.ndim != 2 or array.shape[1] < 2:
            return None
        names: tuple[str, ...] = ()
    else:
        frame = open_table(given, f"positions of {name}")
        names = tuple(column for column in frame.columns if column != name)
        pair = pair_in(names)
        names = pair if pair is not None and len(names) == 2 else names
        if len(names) < 2:
            return None
        array = np.stack([frame[column].to_numpy() for column in names], axis=1)
        if name in frame.columns:
            array = _by_label(frame[name].to_numpy(), array, keys, name)
    numeric = array.dtype.kind in "iuf" and len(array) == size
    sites = Sites(array.astype(float), names, pair_in(names) is not None) if numeric else None
    right = sites is not None and sites.usable and is_on_globe(sites)
    if sites is None or not right or array.shape[1] > MOST_COORDINATES:
        raise ValueError(
            f"positions of the mode {shown(name)} must be {size} rows of finite numbers, one per "
            f"label, no two alike, got an array of {array.dtype} and shape {array.shape}."
        )
    return sites


def _as_array(given: Any) -> NDArray[Any]:
    """Rows of numbers; nothing if they are no rectangle."""
    try:
        return np.asarray(given)
    except (ValueError, TypeError):
        return np.empty(0)


def _by_label(found: Any, array: Any, keys: Any, name: str) -> Any:
    rows = {str(key): row for key, row in zip(found, array, strict=True)}
    missing = [key for key in keys if str(key) not in rows]
    if missing:
        raise ValueError(
            f"positions of the mode {shown(name)} must have a row for every label, but have none "
            f"for {shown(str(missing[0]))}."
        )
    return np.stack([rows[str(key)] for key in keys])


def more_sites(sites: Sites, X: Any, name: str, new: Any) -> FloatArray:
    """Places of new labels of a mode from the columns of a table that has their rows, or NaN."""
    places = np.full((len(new), sites.places.shape[1]), np.nan)
    if not sites.names or not len(new) or not is_table(X):
        return places
    frame = open_table(X, "X")
    if not {name, *sites.names} <= set(frame.columns):
        return places
    rows = frame.select(name, *sites.names).unique(maintain_order=True)
    by_text = {str(key): row for key, *row in rows.iter_rows()}
    for place, key in enumerate(new):
        found = by_text.get(str(key))
        if found is not None and all(each is not None for each in found):
            places[place] = found
    return places


def places_of_new(sites: Sites, given: Any, name: str, keys: Any, before: int) -> FloatArray:
    """Places (I_d, P) of the labels `keys`, of which the first were known, and others are given.

    For the new ones alone, or for all of them; those of known ones must be what they were.
    """
    size, columns = len(keys), sites.places.shape[1]
    rows = open_table(given, f"positions of {name}") if is_table(given) else None
    if rows is not None and name in rows.columns:
        found = {str(key) for key in rows[name].to_numpy()}
        whole = all(str(key) in found for key in keys)
    else:
        whole = len(rows if rows is not None else _as_array(given)) == size
    asked = keys if whole else keys[before:]
    more = given_sites(given, name, asked, len(asked)) if len(asked) else sites.at(np.arange(0))
    if more is None or more.places.shape[1] != columns or set(more.names) != set(sites.names):
        raise ValueError(
            f"positions of the mode {shown(name)} must be rows of {columns} numbers, {sites.words}"
            f" as in the fit, got {shown(given)}."
        )
    places = sites.at(np.arange(size)).places
    if whole and not np.array_equal(more.places[:before], places[:before]):
        raise ValueError(
            f"positions of the mode {shown(name)} must be those of the fit for the {before} labels "
            "that it knew, but they differ."
        )
    places[size - len(more.places) :] = more.places
    if not sites._replace(places=places).usable and sites.usable:
        raise ValueError(
            f"positions of the mode {shown(name)} must all differ, but a new label lies where "
            "another one does."
        )
    return places
