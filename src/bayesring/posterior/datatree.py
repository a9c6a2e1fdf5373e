"""Draws as an `xarray.DataTree` with the groups that ArviZ knows.

| group | contents |
|---|---|
| posterior | parameters of the likelihood, and entries at some cells |
| sample_stats | log likelihood of all training values |
| log_likelihood | log density of each training value given each draw |
| observed_data | the training values |
| posterior_predictive | a new value per draw at their cells |

The last three are of the model itself: held-out values calibrate intervals and `sample`, but a
model is judged and compared by its own density.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from bayesring.checks import check_fits
from bayesring.engine.streams import Purpose, aside
from bayesring.infer.state import Trace
from bayesring.model.types import IntArray, Observations
from bayesring.posterior import Posterior
from bayesring.posterior.convergence import (
    cell_name,
    entry_draws,
    matching_draws,
    rows_of,
    scalar_traces,
)

MOST_OBSERVATIONS = 2000
"""Number of training values that a tree holds at most."""
VALUE = "y"
"""Name of the values in each of their groups."""


class Training(NamedTuple):
    """Training values, if the model has kept them, and the seed of their replicates."""

    observed: Observations | None
    seed: int


def to_datatree(
    posterior: Posterior,
    traces: Sequence[Trace],
    sampled: bool,
    cells: IntArray,
    training: Training,
) -> Any:
    """The tree; parameters only if they were sampled, values only if they were kept."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray: pip install 'bayesring[arviz]'.") from None
    cells = cells[np.sort(np.unique(cells, axis=0, return_index=True)[1])]  # labels are unique
    kept = [
        draws.scans[rows] - 1
        for draws, rows in zip(posterior.chains, matching_draws(posterior), strict=True)
    ]
    scalars = {
        name.replace(" ", "_"): (
            ("chain", "draw"),
            np.stack([numbers[rows] for numbers, rows in zip(each, kept, strict=True)]),
        )
        for name, each in (scalar_traces(traces) if sampled else {}).items()
    }
    statistics = {name: scalars.pop(name) for name in ("log_likelihood",) if name in scalars}
    entries = (("chain", "draw", "cell"), entry_draws(posterior, cells))
    coords = {"chain": np.arange(len(kept)), "draw": np.arange(len(kept[0]))}
    named_cells = {"cell": [cell_name(cell) for cell in cells]}
    groups = {
        "posterior": xr.Dataset(scalars | {"entry": entries}, coords | named_cells),
        "sample_stats": xr.Dataset(statistics, coords),
    }
    if training.observed is not None:
        groups |= _groups_of_values(posterior, training.observed, training.seed, coords)
    return _tree_class().from_dict(groups)


def _groups_of_values(
    posterior: Posterior, observed: Observations, seed: int, coords: dict[str, Any]
) -> dict[str, Any]:
    """Log likelihood, values and replicates at the training cells, or at some of them."""
    import xarray as xr

    rows = _some_rows(len(observed.values))
    cells, given = np.asarray(observed.coords[rows]), observed.given.at(rows)
    check_fits(
        4 * 8 * posterior.n_draws * len(rows),
        f"the log likelihood of {len(rows):,} values with its replicates",
        "keep fewer draws.",
    )
    places = {
        "observation": rows,
        "at": ("observation", [cell_name(cell) for cell in cells]),
    }
    chosen = np.stack(rows_of(posterior))
    rng = np.random.default_rng(aside(seed, Purpose.SAMPLE))
    own = {"source": "the model itself, before intervals are calibrated"}
    which = {"observations": _said(len(rows), len(observed.values))}
    per_draw = {
        "log_likelihood": posterior.log_likelihood(cells, observed.values[rows], given),
        "posterior_predictive": posterior.replicate(rng, cells, given),
    }
    groups = {
        name: xr.Dataset(
            {VALUE: (("chain", "draw", "observation"), each[chosen])}, coords | places, which | own
        )
        for name, each in per_draw.items()
    }
    if given.censored is not None and given.censored.any():
        which["censored"] = "values known by their ends only stand at an end or in the middle"
    values = {VALUE: ("observation", np.asarray(observed.values[rows], dtype=float))}
    return groups | {"observed_data": xr.Dataset(values, places, which)}


def _some_rows(n: int) -> IntArray:
    """Random rows that depend on `n` alone, so that all models of the same data share them."""
    if n <= MOST_OBSERVATIONS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_OBSERVATIONS, replace=False))


def _said(some: int, n: int) -> str:
    if some == n:
        return f"all {n:,} training observations, in order of their coordinates"
    return (
        f"a random {some:,} of {n:,} training observations, the same for every model of these data"
    )


def _tree_class() -> Any:
    """`xarray.DataTree`, or a kind of it that ArviZ 0.x reads if that is what is installed."""
    import xarray as xr

    try:
        if not version("arviz").startswith("0."):
            return xr.DataTree
    except PackageNotFoundError:
        return xr.DataTree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arviz = import_module("arviz")
        except Exception:  # old releases break with new ones of what they are built on
            return xr.DataTree
    from bayesring.posterior.oldarviz import LegacyTree

    arviz.InferenceData.register(LegacyTree)
    return LegacyTree
