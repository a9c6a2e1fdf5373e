"""The work of each command between parsing and printing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bayesring.choosing import AUTO, choose_likelihood
from bayesring.command.preview import Preview, preview
from bayesring.comparing import check_columns, ranked, seen_cells
from bayesring.completion import fill_gaps, open_gaps
from bayesring.data.containers import Container, Long, open_container
from bayesring.data.csvfiles import with_types
from bayesring.data.featurecolumns import from_columns
from bayesring.data.files import (
    ARRAYS,
    STANDARD,
    TABLES,
    check_output,
    extension,
    is_parquet,
    read_data,
    read_features,
    write_arrays,
    write_completion,
    write_table,
)
from bayesring.data.kinds import Choice, choose_by_moments
from bayesring.data.parquet import ParquetRows
from bayesring.data.positions import mode_of
from bayesring.data.tables import is_table, open_table, values_of
from bayesring.data.writing import check_destination, same_place
from bayesring.engine.threads import count_threads
from bayesring.estimator import TensorRing, load
from bayesring.fitting import NOTHING_KEPT, Keep, survey_files
from bayesring.model.types import FloatArray

Summary = dict[str, Any]
"""What a command did, printable and JSON-ready."""


class Safety(NamedTuple):
    """Checkpoints, and what to do if a fit is interrupted."""

    checkpoint: Keep = NOTHING_KEPT
    partial: bool = False
    """Whether to use an interrupted fit if every chain has a draw."""

    @contextmanager
    def interruptible(self, ring: TensorRing) -> Iterator[list[str]]:
        """Collect notes; if an interrupted fit is used, one of them says so."""
        notes: list[str] = []
        try:
            yield notes
        except KeyboardInterrupt:
            if not (self.partial and getattr(ring, "interrupted_", False)):
                raise
            kept = [len(chain.flat) for chain in ring.posterior_.chains]
            notes.append(
                f"The fit was interrupted: its chains have {', '.join(map(str, kept))} draws of "
                f"the {ring.draws} asked for each."
            )


UNSAFE = Safety()


def preview_file(
    source: str, modes: Sequence[str] | None, value: str | None, fill: str, likelihood: str
) -> Preview:
    """What `complete_file` would work on."""
    container, notes = _open(source, modes, value, fill)
    found = preview(container, likelihood)
    return found._replace(notes=[*notes, *found.notes])


def complete_file(
    source: str,
    target: str,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    level: float = 0.9,
    likelihood: str = "auto",
    model: str | None = None,
    features: Mapping[str, str] | None = None,
    safety: Safety = UNSAFE,
    safe_cells: bool = False,
    **settings: Any,
) -> Summary:
    """Fill the gaps of a file into another one of the same kind; `model` names a file for the ring.

    `features` maps modes to files or columns, and `settings` go to `TensorRing`.
    """
    begin = time.perf_counter()
    check_output(source, target, safe_cells)
    if model is not None:
        check_destination(model)
        _check_apart("the model", model, {"the input": source, "the output": target})
    container, notes = _open(source, modes, value, fill, open_gaps)
    chosen, chosen_notes = choose_likelihood(likelihood, container.observations)
    ring = TensorRing(likelihood=chosen, **settings)
    with _noting_warnings() as noted, safety.interruptible(ring) as ended:
        ring.fit_observations(
            container.observations,
            container.labels,
            container.kind,
            safety.checkpoint,
            _features(features, container),
        )
    completion = fill_gaps(container, ring, level, [*notes, *chosen_notes, *ended])
    write_completion(target, completion, safe_cells)
    if model is not None:
        ring.save(model)
    told = list(completion.notes)
    if extension(target) == ".npy":
        told.append("A .npy file holds the mean only; .npz also holds std, lower and upper.")
    return {
        "input": source,
        "output": target,
        **({} if model is None else {"model": model}),
        "filled": completion.n_filled,
        "level": level,
        **_describe(ring),
        "notes": told,
        "warnings": noted,
        "interrupted": ring.interrupted_,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def fit_file(
    source: str,
    model: str,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    likelihood: str = "auto",
    features: Mapping[str, str] | None = None,
    safety: Safety = UNSAFE,
    **settings: Any,
) -> Summary:
    """Fit a ring to the known values of a file, and save it."""
    begin = time.perf_counter()
    check_destination(model)
    _check_apart("the model", model, {"the input": source})
    if settings.get("inference") == "online-em" and is_parquet(source) and features is None:
        ring, notes, noted = _fit_stream(source, model, modes, value, likelihood, safety, settings)
    else:
        container, notes = _open(source, modes, value)
        observed = container.observations
        chosen, chosen_notes = choose_likelihood(likelihood, observed)
        notes += chosen_notes
        ring = TensorRing(likelihood=chosen, **settings)
        with _noting_warnings() as noted, safety.interruptible(ring) as ended:
            described = _features(features, container)
            ring.fit_observations(
                observed, container.labels, container.kind, safety.checkpoint, described
            )
        notes += ended
    ring.save(model)
    return {
        "input": source,
        "model": model,
        **_describe(ring),
        "notes": notes,
        "warnings": noted,
        "interrupted": ring.interrupted_,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def _fit_stream(
    source: str,
    model: str,
    modes: Sequence[str] | None,
    value: str | None,
    likelihood: str,
    safety: Safety,
    settings: dict[str, Any],
) -> tuple[TensorRing, list[str], list[str]]:
    """Fit a ring to streamed Parquet data; save it even if the data end early."""
    if modes is None or value is None:
        raise ValueError("a stream needs --modes, its key columns, and --value, its values.")
    show = settings.get("progress", True)
    files = ParquetRows(source, modes, value, count_threads(settings.get("n_jobs")))
    survey = survey_files(files, show)
    auto = likelihood == AUTO
    found = choose_by_moments(survey.moments, survey.n_observed) if auto else Choice(likelihood, [])
    chosen, notes = found
    ring = TensorRing(likelihood=chosen, **settings)
    with _noting_warnings() as noted:
        try:
            ring.fit_rows(files, survey, safety.checkpoint)
        except ValueError:
            if hasattr(ring, "posterior_"):
                ring.save(model)
            raise
    rows = f"{survey.n_rows:,} rows were read as a stream, {survey.n_missing:,} without a value."
    return ring, [rows, *notes], noted


def predict_file(
    model: str, source: str, target: str, *, level: float = 0.9, safe_cells: bool = False
) -> Summary:
    """Predict the cells that a file lists, as labels of a table or as an array of coordinates."""
    check_output(source, target, safe_cells)
    _check_apart("the output", target, {"the model": model})
    ring = load(model)
    names, levels, *_ = ring.labels_
    is_array = extension(source) in ARRAYS
    if is_array:
        X = read_data(source)
    else:
        X = read_data(source, names, kinds=dict(zip(names, levels, strict=True)))
    with _noting_warnings() as noted:
        if is_array:
            mean, std = ring.predict(X, return_std=True)
            lower, upper = ring.predict_interval(X, level)
            found = {"mean": mean, "std": std, "lower": lower, "upper": upper}
            write_arrays(target, found)
        else:
            write_table(target, ring.predict_table(X, level), safe_cells)
    return {
        "input": source,
        "model": model,
        "output": target,
        "predicted": len(X),
        "level": level,
        "warnings": noted,
    }


def compare_files(models: Sequence[str], source: str) -> Summary:
    """Compare saved models by the log scores of the values in a file, all at the same rows."""
    rings = {path: load(path) for path in dict.fromkeys(models)}
    if len(rings) < 2:
        raise ValueError(f"compare needs at least 2 different models, got {len(rings)}.")
    if source == STANDARD:
        raise ValueError("every model reads the values: name a file with --on, not -.")
    check_columns(rings)
    scores, notes = [], []
    with _noting_warnings() as noted:
        for path, ring in rings.items():
            try:
                X, y = _held_out(ring, source)
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


def _held_out(ring: TensorRing, source: str) -> tuple[Any, FloatArray | None]:
    """Rows with values, or coordinates and values, of a file, in its order."""
    if extension(source) in TABLES:
        return _rows_with_values(ring, source), None
    data = open_container(read_data(source)).observations
    if data.shape != ring.shape_:
        raise ValueError(f"{source} has shape {data.shape}, but the model has {ring.shape_}.")
    return data.coords, data.values


def _rows_with_values(ring: TensorRing, source: str) -> Any:
    """The rows of a table that have a value, with keys of the types that the model knows."""
    names, levels, value, *_ = ring.labels_
    if value is None:
        raise ValueError(f"the model is not of a table, but {source} is one.")
    frame = open_table(read_data(source, names, value, dict(zip(names, levels, strict=True))))
    if value not in frame.columns:
        raise ValueError(f"{source} has no column {value!r}, which holds the model's values.")
    known = ~np.isnan(values_of(frame, value))
    if not known.any():
        raise ValueError(f"{source} has no value in column {value!r}.")
    return frame.filter(known.tolist()).to_native()


def report_file(model: str, target: str, *, progress: bool = True) -> Summary:
    """Write the page on a model."""
    if target == "-":
        raise ValueError("a report is a page to open in a browser: name a file with -o.")
    check_destination(target)
    _check_apart("the report", target, {"the model": model})
    page = load(model).report(target, progress=progress)
    return {"model": model, "report": target, "bytes": page.stat().st_size}


def _check_apart(what: str, path: str, others: Mapping[str, str]) -> None:
    """Refuse, before any work, a file that would replace another one."""
    for name, other in others.items():
        if STANDARD not in (path, other) and same_place(path, other):
            raise ValueError(f"{what} needs a file of its own, but {path} is that of {name}.")


def _open(
    source: str,
    modes: Sequence[str] | None,
    value: str | None,
    fill: str = "missing",
    opener: Callable[..., Container] = open_container,
) -> tuple[Container, list[str]]:
    """Open a file as a container; a note says if its columns were guessed."""
    data = read_data(source, modes, value)
    if not is_table(data):
        return opener(data, fill=fill), []
    guessed = modes is None or value is None
    notes = ["Key and value columns were recognised by their types, not named."] if guessed else []
    return opener(data, modes, value, fill), notes


def _features(
    features: Mapping[str, str] | None, container: Container
) -> dict[str | int, Any] | None:
    """Features from files, or from columns of the table itself."""
    if features is None:
        return None
    labels = container.labels
    found: dict[str | int, Any] = {}
    for name, source in features.items():
        mode = mode_of(name, labels.names, "features")
        listed = [each.strip() for each in source.split(",")]
        if isinstance(container, Long) and set(listed) <= set(container.frame.columns):
            table = container.frame.to_native()
            found |= from_columns(with_types(table.select([name, *listed]), name), {name: listed})
        else:
            found[name] = read_features(source, name, labels.levels[mode])
    return found


def _describe(ring: TensorRing) -> Summary:
    """A fitted ring in plain data."""
    likelihood = ring.posterior_.likelihood
    return {
        "modes": dict(zip(ring.labels_.names, map(int, ring.shape_), strict=True)),
        "value": ring.labels_.value,
        "observed": ring.n_observations_,
        "density": float(ring.n_observations_ / np.prod(ring.shape_, dtype=float)),
        "likelihood": type(likelihood).__name__.lower(),
        "rank": [list(draws.rank) for draws in ring.posterior_.chains],
        "seed": ring.seed_,
    }


@contextmanager
def _noting_warnings() -> Iterator[list[str]]:
    """Collect warnings meant for users instead of showing them."""
    noted: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)
        yield noted
    noted += dict.fromkeys(
        str(each.message) for each in caught if issubclass(each.category, UserWarning)
    )
