"""The work of the commands on saved models, between parsing and printing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesring.checks import check_level, check_point
from bayesring.command.noting import noting_warnings
from bayesring.command.outputs import check_apart, check_replaced
from bayesring.comparing import check_columns, ranked, seen_cells
from bayesring.data.containers import open_container
from bayesring.data.dialects import PLAIN, Dialect
from bayesring.data.files import (
    ARRAYS,
    LABELLED,
    SHEETS,
    STANDARD,
    TABLES,
    TEXTS,
    check_output,
    check_target,
    extension,
    format_of,
    read_data,
    write_arrays,
    write_statistics,
    write_table,
)
from bayesring.data.opentables import in_arrow, open_table
from bayesring.data.tables import values_of
from bayesring.data.writing import check_destination
from bayesring.estimator import TensorRing
from bayesring.loading import load
from bayesring.model.types import FloatArray

Summary = dict[str, Any]
"""What a command did, printable and JSON-ready."""


def predict_file(
    model: str,
    source: str,
    target: str,
    *,
    level: float = 0.9,
    point: str = "mean",
    exposure: str | None = None,
    safe_cells: bool = False,
    dialect: Dialect = PLAIN,
    force: bool = False,
) -> Summary:
    """Predict the cells that a file lists, as labels of a table or as an array of coordinates."""
    check_level(level)
    check_point(point)
    check_output(source, target, safe_cells)
    check_apart("the output", target, {"the model": model, "the input": source})
    check_replaced(target, "result", force)
    ring = load(model)
    names, levels, *_ = ring.labels_
    with noting_warnings() as noted:
        if format_of(source) in ARRAYS:
            if exposure is not None:
                raise ValueError(f"--exposure names a column, but {source} holds an array.")
            X = read_data(source, dialect=dialect)
            posterior, coords = ring._locate(X)
            with ring._shown(posterior, len(coords)) as shown:
                found = shown.summarise(coords, level, point=point)
            write_arrays(target, found.columns(point))
        else:
            kinds = dict(zip(names, levels, strict=True))
            columns = () if exposure is None else (exposure,)
            X = read_data(source, names, kinds=kinds, dialect=dialect, numbers=columns)
            found = ring.predict_table(X, level, point=point, exposure=exposure)
            write_table(target, found, safe_cells)
    return {
        "input": source,
        "model": model,
        "output": target,
        "predicted": len(X),
        "level": level,
        "warnings": noted,
    }


def compare_files(models: Sequence[str], source: str, *, dialect: Dialect = PLAIN) -> Summary:
    """Compare saved models by the log scores of the values in a file, all at the same rows."""
    rings = {path: load(path) for path in dict.fromkeys(models)}
    if len(rings) < 2:
        raise ValueError(f"compare needs at least 2 different models, got {len(rings)}.")
    if source == STANDARD:
        raise ValueError("every model reads the values: name a file with --on, not -.")
    check_columns(rings)
    scores, notes = [], []
    with noting_warnings() as noted:
        for path, ring in rings.items():
            try:
                X, y = _held_out(ring, source, dialect)
                scores.append(ring.log_score(X, y))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            notes += seen_cells(path, ring, X)
    found = ranked(rings, scores, notes)
    return {
        "on": source,
        "values": found.pointwise.shape[1],
        "scores": found.scores,
        "differences": {
            name: {"mean": mean, "error": error}
            for name, (mean, error) in found.differences.items()
        },
        "results": found.sentences(),
        "notes": list(found.notes),
        "warnings": noted,
    }


def _held_out(ring: TensorRing, source: str, dialect: Dialect) -> tuple[Any, FloatArray | None]:
    """Rows with values, or coordinates and values, of a file, in its order."""
    if format_of(source) in (*TABLES, *SHEETS):
        return _rows_with_values(ring, source, dialect), None
    data = open_container(read_data(source, dialect=dialect)).observations
    if data.shape != ring.shape_:
        raise ValueError(f"{source} has shape {data.shape}, but the model has {ring.shape_}.")
    return data.coords, data.values


def _rows_with_values(ring: TensorRing, source: str, dialect: Dialect) -> Any:
    """The rows of a table that have a value, with keys of the types that the model knows."""
    names, levels, value, *_ = ring.labels_
    if value is None:
        raise ValueError(f"the model is not of a table, but {source} is one.")
    kinds = dict(zip(names, levels, strict=True))
    frame = open_table(read_data(source, names, value, kinds, dialect))
    if value not in frame.columns:
        raise ValueError(f"{source} has no column {value!r}, which holds the model's values.")
    known = ~np.isnan(values_of(frame, value))
    if not known.any():
        raise ValueError(f"{source} has no value in column {value!r}.")
    return frame.filter(known.tolist()).to_native()


def report_file(model: str, target: str, *, progress: bool = True, force: bool = False) -> Summary:
    """Write the page on a model."""
    if target == "-":
        raise ValueError("a report is a page to open in a browser: name a file with -o.")
    check_destination(target)
    check_apart("the report", target, {"the model": model})
    check_replaced(target, "page", force)
    page = load(model).report(target, progress=progress)
    return {"model": model, "report": target, "bytes": page.stat().st_size}


def forecast_file(
    model: str,
    target: str,
    steps: int,
    *,
    mode: str | None = None,
    cells: str | None = None,
    level: float = 0.9,
    safe_cells: bool = False,
    dialect: Dialect = PLAIN,
    force: bool = False,
) -> Summary:
    """Predict the labels after the last of an ordered mode, in all fibres or those listed."""
    check_level(level)
    check_target(target)
    check_apart("the output", target, {"the model": model, "the cells": cells})
    check_replaced(target, "result", force)
    ring = load(model)
    tables = (*TABLES, *SHEETS)
    family = {None: ARRAYS, "xarray": LABELLED}.get(ring.table_kind_, tables)
    if extension(target) not in family:
        raise ValueError(
            f"{target} cannot hold the forecast of {model}; choose one of the extensions "
            f"{', '.join(family)}."
        )
    if safe_cells and extension(target) not in TEXTS:
        raise ValueError(f"safe cells are for CSV, but {target} is a {extension(target)} file.")
    X = None
    if cells is not None:
        kinds = dict(zip(ring.labels_.names, ring.labels_.levels, strict=True))
        is_array = format_of(cells) in ARRAYS
        X = (
            read_data(cells, dialect=dialect)
            if is_array
            else read_data(cells, (), kinds=kinds, dialect=dialect)
        )
    with noting_warnings() as noted:
        found = ring.forecast(steps, mode=mode, cells=X, level=level)
    if family is tables:
        rows = len(found)
        write_table(target, in_arrow(found), safe_cells)
    else:
        rows = int(np.size(found.mean))
        write_statistics(target, found._asdict())
    return {
        "model": model,
        "output": target,
        "steps": steps,
        "predicted": rows,
        "level": level,
        "warnings": noted,
    }


def check_file(model: str, *, progress: bool = True) -> Summary:
    """Whether the intervals of a saved model can be believed, by refits of simulated values."""
    ring = load(model)
    ring.progress = progress
    with noting_warnings() as noted:
        found = ring.check()
    return {
        "model": model,
        "believable": found.believable,
        "coverage": {f"{level:.0%}": round(own, 4) for level, own in found.coverage.items()},
        "scatter": round(found.scatter, 4),
        "results": [found.sentence],
        "warnings": noted,
    }
