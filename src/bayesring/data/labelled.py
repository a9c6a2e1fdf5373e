"""Labelled arrays of xarray: what their labels are, and how results are described.

Attributes follow the CF conventions: the standard deviation has the modifier "standard_error" in
its `standard_name`, and a deviation from a temperature is a difference of temperatures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesring.data.labels import Labels, as_keys
from bayesring.data.sites import Sites, is_on_globe, pair_in

STORAGE_ENCODING = (
    *("zlib", "complevel", "shuffle", "fletcher32", "grid_mapping"),
    *("compression", "compression_opts", "compressors"),
)
"""xarray's encoding settings that cannot change the numbers of a variable."""
STALE_ATTRIBUTES = (
    *("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"),
    *("valid_min", "valid_max", "valid_range", "actual_range"),
)
"""Attributes that make readers convert or mask the numbers of a file, or that they falsify."""
TEMPERATURES = (
    *("k", "kelvin", "degc", "degree_c", "degrees_c", "celsius", "degree_celsius"),
    *("degrees_celsius", "degf", "degree_f", "degrees_f", "degree_fahrenheit", "fahrenheit"),
)
WORDS = {
    "mean": "{name}, gaps filled",
    "median": "{name}, gaps filled by medians",
    "std": "standard deviation of {name}",
    "lower": "lower end of the {level:.3g} % interval of {name}",
    "upper": "upper end of the {level:.3g} % interval of {name}",
}
"""The `long_name` of each statistic."""


class Statistic(NamedTuple):
    """What a result is."""

    name: str
    """mean, median, std, lower or upper."""
    keeps: bool
    """Whether a known cell has its value; otherwise it is zero."""
    level: float
    """Of the interval."""
    probability: bool = False
    """Whether it describes the probability of a one."""


def labels_of(data: Any) -> Labels:
    """The names of dimensions, and the coordinates along them."""
    levels = tuple(_levels_of(data, dim) for dim in data.dims)
    name = None if data.name is None else str(data.name)
    labels = Labels(tuple(map(str, data.dims)), levels, name, (None,) * data.ndim)
    pair = pair_in(list(data.coords))
    if pair is None or len(along := data.coords[pair[0]].dims) != 1:
        return labels
    if data.coords[pair[1]].dims != along or along[0] in pair:
        return labels
    places = np.stack([np.asarray(data.coords[own].values, dtype=float) for own in pair], axis=1)
    sites = Sites(places, pair, on_globe=True)
    return labels.with_sites(data.dims.index(along[0]), sites if is_on_globe(sites) else None)


def _levels_of(data: Any, dim: Any) -> NDArray[Any] | None:
    """The coordinates along a dimension, if they can serve as labels; without any, its numbers."""
    if dim not in data.coords:
        return np.arange(data.sizes[dim])
    try:
        levels = as_keys(data.coords[dim].values, str(dim))
    except ValueError:
        return None
    return levels if len(np.unique(levels)) == len(levels) else None


def like(data: Any, numbers: NDArray[Any], statistic: Statistic) -> Any:
    """A result as an array like `data`, with attributes and encoding that are true of it."""
    result = data.copy(data=numbers)
    encoding = result.encoding
    kept = {name: encoding[name] for name in STORAGE_ENCODING if name in encoding}
    chunks = encoding.get("chunksizes")
    if chunks is not None and encoding.get("original_shape", result.shape) == result.shape:
        kept |= {"chunksizes": chunks, "original_shape": result.shape}
    if "compressors" in encoding and len(encoding.get("chunks") or ()) == result.ndim:
        kept |= {"chunks": encoding["chunks"]}
    result.encoding = kept
    result.attrs = described(result.attrs, statistic, data.name)
    return result


def described(attributes: Mapping[str, Any], statistic: Statistic, name: Any) -> dict[str, Any]:
    """The attributes of a variable as they are for a statistic of it."""
    kept = {key: each for key, each in attributes.items() if key not in STALE_ATTRIBUTES}
    called = str(kept.get("long_name") or kept.get("standard_name") or name or "value")
    standard = kept.pop("standard_name", None)
    if statistic.probability:
        called, standard = f"the probability that {called} is 1", None
        kept["units"] = "1"
    elif statistic.name == "std":
        standard = None if standard is None else f"{standard} standard_error"
        if str(kept.get("units", "")).lower() in TEMPERATURES:
            kept["units_metadata"] = "temperature: difference"
    if standard is not None:
        kept["standard_name"] = standard
    kept["long_name"] = WORDS[statistic.name].format(name=called, level=100 * statistic.level)
    return kept


def tensor(labels: Labels, numbers: NDArray[Any], what: str) -> Any:
    """A whole tensor as a labelled array, for a model that was fitted to one."""
    import xarray as xr

    coords = {
        name: _in_nanoseconds(levels) if levels.dtype.kind == "M" else levels
        for name, levels in zip(labels.names, labels.levels, strict=True)
        if levels is not None
    }
    called = labels.value or "value"
    attributes = {"long_name": f"{what} of {called}"}
    return xr.DataArray(numbers, coords, labels.names, labels.value, attributes)


def _in_nanoseconds(times: NDArray[Any]) -> NDArray[Any]:
    """Times as most arrays have them; unchanged if some are not in 1677 to 2262 and do not fit."""
    found = times.astype("M8[ns]")
    return found if np.array_equal(found.astype(times.dtype), times) else times
