"""The work of the commands that fit, between parsing and printing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from bayesring.checkpoint.manifest import check_outside
from bayesring.checks import check_level, check_point
from bayesring.choosing import choose_likelihood
from bayesring.command.describing import described_by
from bayesring.command.noting import noting_warnings
from bayesring.command.origin import remember
from bayesring.command.outputs import check_apart, check_replaced
from bayesring.command.preview import Preview, preview
from bayesring.completion import fill_gaps, open_gaps
from bayesring.data.cellextras import known_of
from bayesring.data.containers import Container, open_container
from bayesring.data.dialects import PLAIN, Dialect
from bayesring.data.files import (
    STANDARD,
    check_output,
    extension,
    is_parquet,
    read_data,
    write_completion,
)
from bayesring.data.masks import masked
from bayesring.data.opentables import is_table
from bayesring.data.parquet import ParquetRows
from bayesring.data.writing import check_destination
from bayesring.engine.threads import count_threads
from bayesring.estimator import TensorRing
from bayesring.fitting import NOTHING_KEPT, Keep, survey_files
from bayesring.oncluster import Asked

Summary = dict[str, Any]
"""What a command did, printable and JSON-ready."""


class Reading(NamedTuple):
    """How an input is read, and which of its gaps are left."""

    dialect: Dialect = PLAIN
    mask: str | list[str] | None = None
    extras: Mapping[str, str] = {}
    """Columns that say more of values, by their arguments in Python."""


class Safety(NamedTuple):
    """Checkpoints, and what to do if a fit is interrupted."""

    checkpoint: Keep = NOTHING_KEPT
    partial: bool = False
    """Whether to use an interrupted fit if every chain has a draw."""
    force: bool = False
    """Whether to replace files that bayesring did not write."""

    def check(self, *outputs: str | None) -> None:
        """Refuse, before any work, folders of others, and outputs in the place of the state."""
        self.checkpoint.check()
        for each in outputs:
            if each is not None and self.checkpoint.folder is not None and each != STANDARD:
                check_outside(self.checkpoint.folder, each)

    @property
    def go_on(self) -> str:
        """How to resume, if that is possible."""
        folder = self.checkpoint.folder
        return "" if folder is None else f" Run the same command again to resume from {folder}."

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
                f"the {ring.draws} asked for each.{self.go_on}"
            )


UNSAFE, PLAINLY = Safety(), Reading()


def preview_file(
    source: str,
    modes: Sequence[str] | None,
    value: str | None,
    fill: str,
    likelihood: str,
    reading: Reading = PLAINLY,
    share: Any = None,
) -> Preview:
    """What `complete_file` would work on."""
    container, notes = _open(source, modes, value, fill, reading=reading)
    found = preview(masked(container, reading.mask), likelihood, share)
    return found._replace(notes=[*notes, *found.notes])


def complete_file(
    source: str,
    target: str,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    fill: str = "missing",
    level: float = 0.9,
    point: str = "mean",
    likelihood: str = "auto",
    model: str | None = None,
    features: Mapping[str, str] | None = None,
    safety: Safety = UNSAFE,
    safe_cells: bool = False,
    reading: Reading = PLAINLY,
    **settings: Any,
) -> Summary:
    """Fill the gaps of a file into another one of the same kind; `model` names a file for the ring.

    `features` maps modes to files or columns, and `settings` go to `TensorRing`.
    """
    begin = time.perf_counter()
    check_level(level)
    check_point(point)
    check_output(source, target, safe_cells)
    check_apart("the output", target, {"the input": source})
    check_replaced(target, "result", safety.force)
    if model is not None:
        check_destination(model)
        check_apart("the model", model, {"the input": source, "the output": target})
        check_replaced(model, "model", safety.force)
    safety.check(target, model)
    with noting_warnings() as noted:
        container, notes = _open(
            source, modes, value, fill, gaps=True, reading=reading, point=point
        )
        observed, of_missing = known_of(container, reading.extras)
        chosen, chosen_notes = choose_likelihood(likelihood, observed)
        ring = TensorRing(likelihood=chosen, **settings)
        with safety.interruptible(ring) as ended:
            keep, found = safety.checkpoint, described_by(features, container, reading.dialect)
            ring.fit_observations(observed, container.labels, container.kind, keep, found)
    told = [*notes, *chosen_notes, *ended]
    completion = fill_gaps(container, Asked(ring, level, point=point), told, of_missing)
    write_completion(target, completion, safe_cells, source)
    if model is not None:
        remember(ring, source)
        ring.save(model)
    told = list(completion.notes)
    if extension(target) == ".npy":
        told.append(f"A .npy file holds the {point} only; .npz also holds std, lower and upper.")
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
    reading: Reading = PLAINLY,
    **settings: Any,
) -> Summary:
    """Fit a ring to the known values of a file, and save it."""
    begin = time.perf_counter()
    check_destination(model)
    check_apart("the model", model, {"the input": source})
    check_replaced(model, "model", safety.force)
    safety.check(model)
    stream = settings.get("inference") == "online-em" and is_parquet(source) and not features
    if stream:
        reading.dialect.refuse_unused((), source, ".parquet")
        for name in reading.extras:
            raise ValueError(
                f"{name} is for data in memory, but online EM reads {source} as a stream; use "
                "inference='gibbs'."
            )
        ring, notes, noted = _fit_stream(source, model, modes, value, likelihood, safety, settings)
    else:
        with noting_warnings() as noted:
            container, notes = _open(source, modes, value, reading=reading)
            observed = known_of(container, reading.extras).observed
            chosen, chosen_notes = choose_likelihood(likelihood, observed)
            ring = TensorRing(likelihood=chosen, **settings)
            with safety.interruptible(ring) as ended:
                keep, found = safety.checkpoint, described_by(features, container, reading.dialect)
                ring.fit_observations(observed, container.labels, container.kind, keep, found)
        notes += [*chosen_notes, *ended]
    remember(ring, source)
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
    chosen, notes = choose_likelihood(likelihood, survey)
    ring = TensorRing(likelihood=chosen, **settings)
    with noting_warnings() as noted:
        try:
            ring.fit_rows(files, survey, safety.checkpoint)
        except ValueError:
            if hasattr(ring, "posterior_"):
                remember(ring, source)
                ring.save(model)
            raise
    rows = f"{survey.n_rows:,} rows were read as a stream, {survey.n_missing:,} without a value."
    return ring, [rows, *notes], noted


def _open(
    source: str,
    modes: Sequence[str] | None,
    value: str | None,
    fill: str = "missing",
    gaps: bool = False,
    reading: Reading = PLAINLY,
    point: str = "mean",
) -> tuple[Container, list[str]]:
    """Open a file as a container, of which there must be `gaps` to fill or not.

    Notes say if its columns were guessed, and what is special about the gaps.
    """
    columns = tuple(reading.extras.values())
    data = read_data(source, modes, value, dialect=reading.dialect, numbers=columns)
    for name in reading.extras if not is_table(data) else ():
        raise ValueError(f"{name} names a column, but {source} holds an array.")
    named = (modes, value) if is_table(data) else (None, None)
    guessed = is_table(data) and (modes is None or value is None)
    notes = ["Key and value columns were recognised by their types, not named."] if guessed else []
    if not gaps:
        return open_container(data, *named, fill, extras=reading.extras), notes
    container, told = open_gaps(
        data, *named, fill, mask=reading.mask, point=point, extras=reading.extras
    )
    return container, notes + told


def name_of_kind(likelihood: Any) -> str:
    """The name of a likelihood as users type it, negative-binomial for example."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(likelihood).__name__).lower()


def _describe(ring: TensorRing) -> Summary:
    """A fitted ring in plain data."""
    likelihood = ring.posterior_.likelihood
    return {
        "modes": dict(zip(ring.labels_.names, map(int, ring.shape_), strict=True)),
        "value": ring.labels_.value,
        "observed": ring.n_observations_,
        "density": float(ring.n_observations_ / np.prod(ring.shape_, dtype=float)),
        "likelihood": name_of_kind(likelihood),
        "rank": [list(draws.rank) for draws in ring.posterior_.chains],
        "seed": ring.seed_,
    }
