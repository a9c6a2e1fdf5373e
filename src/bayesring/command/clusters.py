"""Commands on a Dask cluster: Parquet in, Parquet out, the rows never in this process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesring.checks import check_level, check_point
from bayesring.choosing import choose_likelihood
from bayesring.command.outputs import check_replaced
from bayesring.command.where import Where
from bayesring.data.dialects import Dialect
from bayesring.data.files import is_parquet
from bayesring.data.writing import PARQUET, check_destination, replacing
from bayesring.estimator import TensorRing
from bayesring.loading import load
from bayesring.oncluster import (
    FILLED,
    Asked,
    count_gaps,
    fill_frame,
    observe_on,
    open_cluster,
)
from bayesring.wording import reason_of


def complete_file(where: Where, source: str, target: str, **given: Any) -> dict[str, Any]:
    """Fill the rows without a value; as `bayesring.command.workflows.complete_file`."""
    return _fit(where, source, target, **given)


def fit_file(where: Where, source: str, model: str, **given: Any) -> dict[str, Any]:
    """Fit a model and save it; as `bayesring.command.workflows.fit_file`."""
    return _fit(where, source, None, model=model, **given)


def _fit(
    where: Where,
    source: str,
    output: str | None,
    *,
    modes: Sequence[str] | None,
    value: str | None,
    likelihood: str,
    model: str | None,
    safety: Any,
    fill: str = "missing",
    level: float = 0.9,
    point: str = "mean",
    safe_cells: bool = False,
    reading: Any,
    features: Any = None,
    **settings: Any,
) -> dict[str, Any]:
    """Fit Parquet data; save the model, and write the rows with their gaps filled to `output`."""
    begin = time.perf_counter()
    _check_parquet(source, reading.dialect, safe_cells)
    if modes is None or value is None:
        raise ValueError("a cluster needs --modes, the key columns, and --value, the values.")
    if features:
        raise ValueError("--features are for data in memory, but a cluster reads files.")
    for name in reading.extras:
        raise ValueError(f"{name} is for data in memory, but a cluster reads files.")
    if fill != "missing" or reading.mask is not None:
        raise ValueError("a cluster fills rows without a value; list the cells to fill as rows.")
    if safety.partial:
        raise ValueError(
            "--keep-partial is for fits on one machine; on a cluster use --checkpoint."
        )
    if model is not None:
        check_destination(model)
        check_replaced(model, "model", safety.force)
    target = None if output is None else _free(output)
    safety.check(output, model)
    source_frame: Any = None
    check_level(level)
    check_point(point)
    with where.open() as client, warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", UserWarning)
        cluster = open_cluster(client)
        if target is not None:
            source_frame = cluster.files_frame(Path(source))
            count_gaps(cluster, source_frame, value, point)
        if settings.get("inference") == "online-em":
            from bayesring.engine.remoterows import SpreadFiles

            files = SpreadFiles(cluster, Path(source), modes, value)
            survey = files.survey()
            chosen, notes = choose_likelihood(likelihood, survey)
            ring = TensorRing(likelihood=chosen, **settings)
            ring.fit_rows(files, survey, safety.checkpoint, cluster)
        else:
            data, labels, _ = observe_on(cluster, Path(source), None, None, modes, value, {})
            chosen, notes = choose_likelihood(likelihood, data)
            ring = TensorRing(likelihood=chosen, **settings)
            ring.fit_observations(data, labels, None, safety.checkpoint, engine=cluster)
        if model is not None:
            ring.save(model)
        if target is not None:
            notes = [*notes, FILLED]
            _write(fill_frame(source_frame, Asked(ring, level, point=point)), target)
    return {
        "input": source,
        **({} if output is None else {"output": output, "level": level}),
        **({} if model is None else {"model": model}),
        "observations": ring.n_observations_,
        "shape": list(ring.shape_),
        "seed": ring.seed_,
        "notes": notes,
        "warnings": [str(each.message) for each in noted if each.category is UserWarning],
        "interrupted": ring.interrupted_,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def predict_file(
    where: Where,
    model: str,
    source: str,
    output: str,
    *,
    level: float = 0.9,
    point: str = "mean",
    **given: Any,
) -> dict[str, Any]:
    """Predict the cells that Parquet data list; writes a folder of Parquet files."""
    _check_parquet(source, given["dialect"], given["safe_cells"])
    if given.get("exposure") is not None:
        raise ValueError("--exposure is for data in memory, but a cluster reads files.")
    check_level(level)
    check_point(point)
    ring, target = load(model), _free(output)
    with where.open():
        from bayesring.engine.dask import read_frame

        cells = read_frame(Path(source), list(ring.labels_.names))
        _write(ring.predict_table(cells, level, point=point), target)
    return {"input": source, "model": model, "output": output, "level": level}


def _check_parquet(source: str, dialect: Dialect, safe_cells: bool) -> None:
    """Refuse other formats, and options that only these have."""
    if not is_parquet(source):
        raise ValueError(f"a cluster reads Parquet files or folders, and {source} is neither.")
    dialect.refuse_unused((), source, ".parquet")
    if safe_cells:
        raise ValueError("--safe-cells is for CSV, but a cluster writes Parquet files.")


def _free(output: str) -> Path:
    """The folder to write, which must not exist."""
    if output == "-":
        raise ValueError("a cluster writes a folder of Parquet files: name it with -o.")
    if Path(output).exists():
        raise ValueError(f"{output} exists; a cluster writes a new folder of Parquet files.")
    return check_destination(output)


def _write(frame: Any, target: Path) -> None:
    """Write a Dask DataFrame; the folder has its name only when it is whole."""
    with replacing(target, PARQUET) as partial:
        try:
            frame.to_parquet(partial, write_index=False)
        except OSError as error:
            raise OSError(f"{target} could not be written: {reason_of(error)}.") from None
        _free(str(target))  # nobody else has made it meanwhile
