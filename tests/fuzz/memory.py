"""Cases over what is given in memory: `fit`, `predict`, `complete`, their input and settings."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import sparse
import xarray as xr

from bayesring import TensorRing, complete
from bayesring.data import inputs
from bayesring.settings import resolve
from tests.fuzz.hostile import keys, numpy_rng, values, wrong

TINY: dict[str, Any] = {
    "rank": 1,
    "warmup": 2,
    "draws": 2,
    "chains": 1,
    "n_jobs": 1,
    "random_state": 0,
    "progress": False,
}
"""Settings with which a fit takes milliseconds."""
LARGEST = 1e290
"""Values beyond this may be predicted with infinite error bars."""


def tiny_settings(rng: Random) -> dict[str, Any]:
    """Settings that are valid together."""
    own: dict[str, Any] = {"rank": rng.choice([1, 1, 2]), "random_state": rng.randrange(9)}
    own["dtype"] = rng.choice(["float64", "float64", "float32"])
    choice = rng.randrange(12)
    if choice == 0:
        own |= {"inference": "online-em", "epochs": 1, "batch_size": 8, "dtype": "float64"}
    elif choice == 1:
        own |= {"prior": "paper", "update": "entry"}
    elif choice == 2:
        own |= {"prior": "paper"}
    elif choice == 3:
        own |= {"chains": 2}
    elif choice == 4:
        own |= {"warmup": 0, "draws": 1}
    return TINY | own


def coordinates(rng: Random, n: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """Rows of coordinates, and a shape that they fit into."""
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(2, 5)))
    X = np.stack([numpy_rng(rng).integers(0, size, n) for size in shape], axis=1)
    return X, shape


def fit(rng: Random, folder: Path) -> None:
    """A real fit to coordinates, and what it predicts."""
    n = rng.choice([1, 2, 3, 7, 20, 60])
    X, shape = coordinates(rng, n)
    y: Any = values(rng, n)
    settings = tiny_settings(rng)
    given: Any = X
    choice = rng.randrange(8)
    if choice == 0:
        given = X.tolist()
    elif choice == 1:
        given = X.astype(rng.choice([np.int8, np.uint8, np.uint64, np.float64, np.float32]))
    elif choice == 2:
        given = np.asfortranarray(X)
    kind = rng.randrange(8)
    if kind < 2:
        settings["likelihood"] = "bernoulli"
        y = (y > 0) * rng.choice([1, 1.0, True])
    elif kind < 4:
        settings["likelihood"] = rng.choice(["negative-binomial", "poisson", "ordinal"])
        y = np.minimum(np.abs(np.nan_to_num(y)), 9.0).round()
    elif kind == 4:
        settings["likelihood"] = "student-t"
    if rng.randrange(6) == 0:
        y = y.tolist()
    kept, kept_y = np.array(given), np.array(y)
    ring = TensorRing(**settings).fit(given, y, shape=rng.choice([shape, None]))
    assert np.array_equal(given, kept)
    assert np.array_equal(y, kept_y)
    assert ring.n_observations_ == n
    observed = ring.observed_
    assert observed is not None
    weight = observed.given.weight
    often = 1 if weight is None else weight.astype(int)  # equal rows are one
    found = np.repeat(observed.values, often).tolist()
    assert sorted(found) == sorted(kept_y.astype(float).tolist())
    _check_predictions(ring, X, bool(np.max(np.abs(kept_y)) < LARGEST))


def _check_predictions(ring: TensorRing, X: Any, tame: bool) -> None:
    """Shapes and order of what a ring predicts."""
    mean, std = ring.predict(X, return_std=True)
    lower, upper = ring.predict_interval(X, 0.8)
    for each in (mean, std, lower, upper):
        assert each.shape == (len(X),)
        assert not tame or np.isfinite(each).all(), each
    assert not tame or ((std >= 0).all() and (lower <= upper).all())
    assert np.array_equal(ring.predict(X[::-1])[::-1], mean, equal_nan=True)
    assert ring.sample(X, 3).shape == (3, len(X))


def arguments(rng: Random, folder: Path) -> None:
    """Input of the wrong kind, or at its edges, converted and checked but not fitted."""
    n = rng.choice([1, 2, 5, 9])
    X, shape = coordinates(rng, n)
    given: dict[str, Any] = {"X": X, "y": values(rng, n), "shape": rng.choice([shape, None])}
    given |= {"modes": None, "value": None}
    for _ in range(rng.choice([0, 1, 1, 2])):
        given[rng.choice(list(given))] = wrong(rng)
    if rng.randrange(4) == 0:
        y = values(rng, n).tolist()
        y[rng.randrange(n)] = wrong(rng)
        given["y"] = y
    data, labels, _ = inputs.observe(**given)
    assert len(data.values) == len(data.coords) == len(given["y"])
    assert np.isfinite(data.values).all()
    assert np.array_equal(data.coords, np.array(given["X"]))
    assert np.array_equal(data.values, np.array(given["y"]).astype(float))
    assert len(data.shape) == len(labels.names) == data.coords.shape[1]
    assert (data.coords.max(axis=0) < data.shape).all()


def settings(rng: Random, folder: Path) -> None:
    """Settings of the wrong kind."""
    given = TensorRing(**tiny_settings(rng)).get_params(deep=False)
    for _ in range(rng.choice([1, 1, 2])):
        given[rng.choice(list(given))] = wrong(rng)
    found = resolve(given, ("a", "b", "c"))
    found.check_ring_fits((3, 3, 3), 9)
    assert found.draws >= 1
    assert found.seed >= 0


def make_table(rng: Random, n: int) -> tuple[Any, dict[str, list[Any]], list[Any]]:
    """A table of some library, the keys in it, and its values, some of which are missing."""
    names = rng.sample(
        ["a", "b", "c d", "mode 0", "", "=x", "mean ", "\u2028"], rng.randrange(2, 4)
    )
    columns = {name: keys(rng, n) for name in names}
    given: list[Any] = values(rng, n).tolist()
    missing = rng.choice([0.0, 0.2, 0.2, 1.0]) if rng.randrange(9) == 0 else 0.2
    given = [None if rng.random() < missing else each for each in given]
    kind = rng.randrange(4)
    everything = {**columns, "v": given}
    if kind == 0:
        table: Any = pl.DataFrame(everything, strict=False)
    elif kind == 1:
        table = pa.table(everything)
    elif kind == 2:
        table = pd.DataFrame(everything)
    else:
        table = pd.DataFrame(everything, index=[rng.randrange(3) for _ in range(n)])
        texts = [name for name in names if isinstance(columns[name][0], str)]
        table = table.astype(dict.fromkeys(texts, "category"))
    return table, columns, given


def tables(rng: Random, folder: Path) -> None:
    """Long tables, coded and decoded again."""
    table, columns, given = make_table(rng, rng.choice([1, 2, 5, 20]))
    if rng.randrange(4) == 0:
        modes, value = rng.choice([wrong(rng), list(columns)]), rng.choice([wrong(rng), "v", None])
        inputs.observe(table, rng.choice([None, None, wrong(rng)]), None, modes, value)
        return
    data, labels, _ = inputs.observe(table, None, None, list(columns), "v")
    known = [row for row, each in enumerate(given) if each is not None]
    assert np.array_equal(data.values, np.array([given[row] for row in known], dtype=float))
    for mode, name in enumerate(columns):
        levels = labels.levels[mode]
        assert levels is not None
        for row, key in zip(known, levels[data.coords[:, mode]], strict=True):
            assert _same_key(columns[name][row], key), (columns[name][row], key)


def _same_key(given: Any, found: Any) -> bool:
    if isinstance(given, datetime.datetime | datetime.date):
        return bool(np.datetime64(given) == found)
    if isinstance(given, datetime.timedelta):
        return bool(np.timedelta64(given) == found)
    return type(found.item()) is type(given) and found.item() == given


@cache
def fitted(kind: str) -> TensorRing:
    """Rings to predict with."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, size, 40) for size in (4, 3, 3)], axis=1)
    y = rng.standard_normal(40)
    if kind == "coordinates":
        return TensorRing(**TINY, shape=(4, 3, 3)).fit(X, y)
    levels: dict[str, Any] = {
        "text": np.array(["s0", "s1", "=s2", "s3"]),
        "integers": np.array([0, 2**53, 2**53 + 1, -(2**60)]),
        "dates": np.arange("2001-01-01", "2001-01-05", dtype="M8[D]"),
    }
    first = levels[kind][X[:, 0]]
    table = pa.table({"a": first, "b": X[:, 1], "c": X[:, 2] * 0.5, "v": y})
    return TensorRing(**TINY).fit(table, modes=["a", "b", "c"], value="v")


def predict(rng: Random, folder: Path) -> None:
    """Cells to predict, valid or not, for rings fitted before."""
    kind = rng.choice(["coordinates", "text", "integers", "dates"])
    ring, n = fitted(kind), rng.choice([1, 2, 5])
    if kind == "coordinates":
        X: Any = np.stack([numpy_rng(rng).integers(0, size, n) for size in (4, 3, 3)], axis=1)
        if rng.randrange(2):
            X = rng.choice(
                [wrong(rng), X.astype(float), X + rng.choice([0, 1, -1, 2**40]), X[:, :2]]
            )
    else:
        columns: dict[str, list[Any]] = {name: keys(rng, n) for name in ("a", "b", "c")}
        if rng.randrange(3):
            levels = ring.labels_.levels
            known = {name: np.resize(levels[m], n) for m, name in enumerate(columns)}  # type: ignore[arg-type]
            columns |= dict(rng.sample(list(known.items()), rng.choice([2, 3])))
        library = rng.choice([pd.DataFrame, pl.DataFrame, pa.table])
        X = library(columns)
    choice = rng.randrange(5)
    if choice == 0:
        level = rng.choice([0.5, 1e-300, 1 - 1e-16, wrong(rng)])
        assert all(each.shape == (len(X),) for each in ring.predict_interval(X, level))
    elif choice == 1:
        n_draws = rng.choice([1, 2, wrong(rng)])
        assert ring.sample(X, n_draws).shape == (n_draws, len(X))
    elif choice == 2 and kind != "coordinates":
        found, given = nw.from_native(ring.predict_table(X)), nw.from_native(X)
        assert found.columns == ["a", "b", "c", "mean", "std", "lower", "upper"]
        for name in ("a", "b", "c"):
            assert found[name].to_list() == given[name].to_list()
    elif choice == 3:
        suggested = ring.suggest(rng.choice([1, 3, wrong(rng)]), rng.choice([None, X]))
        assert len(suggested) >= 0
    else:
        mean = ring.predict(X)
        assert mean.shape == (len(X),)
        assert np.isfinite(mean).all()


def completion(rng: Random, folder: Path) -> None:
    """Containers of every kind, completed."""
    if rng.randrange(3) == 0:
        _complete_table(rng)
        return
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.choice([1, 2, 2, 3, 4])))
    size = int(np.prod(shape))
    array = values(rng, size).reshape(shape)
    kind = rng.randrange(5)
    if array.dtype.kind == "f" and kind != 1:
        array[numpy_rng(rng).random(shape) < rng.choice([0.2, 0.2, 1.0])] = np.nan
    own, extra = tiny_settings(rng), {}
    if rng.randrange(6) == 0:
        extra = {rng.choice(["fill", "implicit", "level", "modes", "value"]): wrong(rng)}
    data: Any = array
    if kind == 1:
        data = np.ma.masked_array(array, mask=numpy_rng(rng).random(shape) < 0.3)
    elif kind == 2:
        names = [f"d{mode}" for mode in range(len(shape))]
        data = xr.DataArray(array, dims=names, name=rng.choice([None, "v"]))
        if rng.randrange(2):
            data = data.assign_coords(d0=keys(rng, shape[0]))
    elif kind == 3 and len(shape) > 0:
        data = sparse.COO.from_numpy(np.where(array == array, array, np.nan))
        extra |= {"fill": rng.choice(["missing", "all"])}
    elif kind == 4 and rng.randrange(3) == 0:
        data = rng.choice([wrong(rng), array.tolist()])
    kind = 1 if isinstance(data, np.ma.MaskedArray) else kind  # some wrong input is right
    before = data.copy() if hasattr(data, "copy") else data
    found = complete(data, **own, **extra)
    mean = found.mean
    assert type(mean) is (type(data) if not isinstance(data, list) else np.ndarray)
    shape = np.shape(before)
    assert mean.shape == shape
    dense = [each.todense() if kind == 3 else np.asarray(each) for each in (mean, before)]
    known = ~np.isnan(dense[1]) if dense[1].dtype.kind == "f" else np.ones(shape, dtype=bool)
    if kind == 1:
        known &= ~np.ma.getmaskarray(before)
    if kind == 3:
        known &= dense[1] != 0
    assert np.array_equal(dense[0][known], dense[1][known].astype(dense[0].dtype))
    if kind == 2:
        assert mean.dims == data.dims
        assert all(mean.coords[each].equals(data.coords[each]) for each in data.coords)


def _complete_table(rng: Random) -> None:
    table, columns, given = make_table(rng, rng.choice([2, 5, 20]))
    found = complete(
        table,
        modes=list(columns),
        value="v",
        fill=rng.choice(["missing", "missing", "all"]),
        **tiny_settings(rng),
    )
    assert type(found.table) is type(table)
    rows, before = nw.from_native(found.table), nw.from_native(table)
    for name in columns:  # the rows that there were come first, in their order
        assert rows[name].to_list()[: len(given)] == before[name].to_list()
    mean = rows["mean"].to_list()
    for row, value in enumerate(given):
        assert value is None or mean[row] == value
