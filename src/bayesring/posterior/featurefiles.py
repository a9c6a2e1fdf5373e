"""Features of labels in a model file: arrays and plain data, and what they may contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesring.data.features import MOST_COLUMNS, Column, Features
from bayesring.data.givenfeatures import is_sparse
from bayesring.posterior.modelchecks import (
    TEXT,
    Expected,
    Rule,
    check_arrays,
    check_fields,
    is_number,
    real,
    whole,
)
from bayesring.wording import shorten

SPARSE = ("data", "indices", "indptr")
"""Arrays of a sparse matrix."""
TEXTS = Rule(
    lambda value: isinstance(value, list | tuple) and all(map(TEXT.fits, value)), "a list of texts"
)
DESCRIBED = {"names": TEXTS, "columns": Rule(lambda value: isinstance(value, list), "a list")}
COLUMN = {
    "name": TEXT,
    "mean": Rule(is_number, "a finite number"),
    "levels": Rule(lambda value: value is None or TEXTS.fits(value), "null or a list of texts"),
    "missing": Rule(lambda value: type(value) is bool, "true or false"),
    "kind": TEXT,
}


def features_to_plain(features: Sequence[Features | None]) -> dict[str, Any]:
    """For every mode with features, by its number: names, and how columns are coded."""
    return {
        str(mode): {"names": own.names, "columns": [each._asdict() for each in own.columns]}
        for mode, own in enumerate(features)
        if own is not None
    }


def features_to_arrays(features: Sequence[Features | None]) -> dict[str, NDArray[Any]]:
    """Features of all modes as named arrays: "features 0/matrix", ..."""
    arrays: dict[str, NDArray[Any]] = {}
    for mode, own in enumerate(features):
        if own is None:
            continue
        if is_sparse(own.matrix):
            named = {name: getattr(own.matrix, name) for name in SPARSE}
        else:
            named = {"matrix": own.matrix}
        named |= {"groups": own.groups, "centre": own.centre, "factor": own.factor}
        arrays |= {f"features {mode}/{name}": np.asarray(each) for name, each in named.items()}
    return arrays


def features_from_arrays(
    described: Any, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]
) -> tuple[Features | None, ...]:
    """Inverse of both, checked against the shape; older files have none."""
    if not isinstance(described, dict) or not set(described) <= {str(m) for m in range(len(shape))}:
        raise ValueError(f"the features must be an object of modes, got {shorten(described)}.")
    for name in arrays:
        if name.startswith("features ") and name[9:].partition("/")[0] not in described:
            raise ValueError(f"it has an array {shorten(name)}, which is unknown.")
    return tuple(
        _of_mode(described[str(mode)], arrays, mode, size) if str(mode) in described else None
        for mode, size in enumerate(shape)
    )


def _of_mode(described: Any, arrays: Mapping[str, NDArray[Any]], mode: int, size: int) -> Features:
    where, start = f"the features of mode {mode}", f"features {mode}/"
    plain = check_fields(described, DESCRIBED, where)
    own = {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }
    columns = tuple(_column(each, where) for each in plain["columns"])
    names, count = tuple(plain["names"]), len(own.get("centre", ()))
    if not 1 <= count <= MOST_COLUMNS:
        raise ValueError(f"{where} have {count} columns.")
    parts: dict[str, Expected] = {
        "groups": whole((count,), 0, max(len(names) - 1, 0)),
        "centre": real((count,)),
        "factor": real((count,), 0.0),
    }
    stored_sparse = "indptr" in own
    if stored_sparse:
        stored = own["data"].shape if "data" in own else (0,)
        parts |= {
            "data": real(stored),
            "indices": whole(stored, 0, count - 1),
            "indptr": whole((size + 1,), 0, stored[0] if len(stored) == 1 else 0),
        }
    else:
        parts["matrix"] = real((size, count))
    check_arrays(own, parts, where)
    if columns and count != sum(len(c.levels or " ") + c.missing for c in columns):
        raise ValueError(f"the columns of {where} do not make up {count} in all.")
    if len(set(own["groups"].tolist())) != len(names):
        raise ValueError(f"{where} must have one name per group of columns.")
    if stored_sparse:
        pointers = own["indptr"]
        if pointers[0] != 0 or pointers[-1] != len(own["data"]) or np.any(np.diff(pointers) < 0):
            raise ValueError(f"the array 'indptr' of {where} must increase from 0 to the end.")
        matrix: Any = sparse.csr_array(tuple(own[name] for name in SPARSE), shape=(size, count))
    else:
        matrix = own["matrix"].astype(float, copy=False)
    return Features(matrix, names, own["groups"], own["centre"], own["factor"], columns)


def _column(found: Any, where: str) -> Column:
    older = {"kind": ""} if isinstance(found, dict) else {}
    plain = check_fields(older | found if older else found, COLUMN, f"a column of {where}")
    levels = plain["levels"]
    return Column(
        plain["name"],
        float(plain["mean"]),
        None if levels is None else tuple(levels),
        plain["missing"],
        plain["kind"],
    )
