"""Fitting: a function from data source, model and engine to an outcome."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesring.arranging import arranged, arrangement, put_back
from bayesring.checkpoint import Checkpoint
from bayesring.checkpoint.manifest import (
    check_contents,
    check_interval,
    digest,
    open_checkpoint,
)
from bayesring.checkpoint.trees import take_apart
from bayesring.data.batches import Sources
from bayesring.data.moments import moments_of
from bayesring.data.observations import Observations, standardised
from bayesring.engine.threads import Threads
from bayesring.infer import online
from bayesring.infer.chains import run_chains
from bayesring.infer.estimate import RingEstimate
from bayesring.infer.members import Course
from bayesring.infer.state import Draws, Outcome
from bayesring.interrupts import ending_on_sigterm
from bayesring.likelihoods import Likelihood
from bayesring.model.spec import Model
from bayesring.model.types import Axis, FloatArray
from bayesring.settings import Settings

if TYPE_CHECKING:
    from bayesring.data.parquet import Coding, ParquetRows, Survey
    from bayesring.engine.protocol import Engine
    from bayesring.engine.remoterows import SpreadRows
    from bayesring.engine.spread import Spread


class Fit(NamedTuple):
    """The result of a fit, with its model and units."""

    outcome: Outcome
    model: Model
    """With one prior per mode."""
    units: Units


class Units(NamedTuple):
    """Shape, and the units that map standardised values back to the user's."""

    shape: tuple[int, ...]
    location: float
    scale: float


class Keep(NamedTuple):
    """Where and how often a fit saves its state."""

    folder: str | os.PathLike[str] | None = None
    every: float = 30.0
    """Seconds."""

    def check(self) -> None:
        """Refuse, before any work, a folder that cannot be that of a checkpoint."""
        if self.folder is not None:
            check_interval(self.every)
            check_contents(self.folder)

    def open(self, settings: Settings, data: str) -> AbstractContextManager[Checkpoint]:
        """The checkpoint of a fit with these settings to data with this digest."""
        return open_checkpoint(self.folder, self.every, {"data": data, **settings.facts()})


NOTHING_KEPT = Keep()


def fit_memory(
    data: Observations,
    settings: Settings,
    axes: Sequence[Axis] | None = None,
    keep: Keep = NOTHING_KEPT,
    engine: Engine | None = None,
) -> Fit:
    """Sample from the posterior, or learn rings, given observations in memory.

    By default on threads of this process.
    """
    known = "" if keep.folder is None else digest(*_parts_of_data(data, axes or ()))
    likelihood = settings.model.likelihood
    location, scale = likelihood.units_from(moments_of(_seen(data)))
    units = Units(data.shape, location, scale)
    data = standardised(data, location, scale)
    model = bound(settings.model, data.shape, axes)
    n = len(data.values)
    chains = settings.count_chains(n)
    lines = None
    if axes is not None and settings.inference == "gibbs":
        lines = arrangement(model.prior, data.shape, model.likelihood.group_mode)
    if lines is not None and axes is not None:
        data, axes = arranged(data, axes, lines)
        own = bound(settings.model, data.shape, axes)
        found = _sample(data, units, own, settings, keep, known, engine)
        return Fit(put_back(found, lines), model, units)
    if settings.inference == "online-em":
        sources = online.sources_in_memory(data, settings.seed)
        with keep.open(settings, known) as checkpoint:
            outcome = _learn(sources, units, n, model, settings, chains, checkpoint, engine)
        return Fit(outcome, model, units)
    outcome = _sample(data, units, model, settings, keep, known, engine)
    return Fit(outcome, model, units)


def fit_spread(
    data: Spread,
    settings: Settings,
    engine: Engine,
    axes: Sequence[Axis] | None = None,
    keep: Keep = NOTHING_KEPT,
) -> Fit:
    """Sample from the posterior given observations on the workers of a cluster."""
    location, scale = settings.model.likelihood.units_from(data.seen)
    units = Units(data.shape, location, scale)
    model = bound(settings.model, data.shape, axes)
    ready = data.standardised(location, scale)
    known = ""
    if keep.folder is not None:
        known = digest(data.n, np.array(data.moments), *data.counts, ready.fingerprint())
    outcome = _sample(ready, units, model, settings, keep, known, engine)
    return Fit(outcome, model, units)


def _sample(
    data: Observations | Spread,
    units: Units,
    model: Model,
    settings: Settings,
    keep: Keep,
    known: str,
    engine: Engine | None,
) -> Outcome:
    """Run chains on data in standard units."""
    from bayesring.progress import chain_progress

    n, warmup, draws = data.n, settings.warmup, settings.draws
    scans = None if warmup is None or draws is None else warmup + draws
    chains = settings.count_chains(n)
    with (
        ending_on_sigterm(),
        keep.open(settings, known) as checkpoint,
        chain_progress(settings.progress, chains, scans, warmup) as report,
        engine or Threads(settings.n_jobs) as opened,
    ):
        sampling = settings.sampling(n, units.scale)
        return run_chains(data, model, sampling, opened, report, checkpoint)


def _parts_of_data(data: Observations, axes: Sequence[Axis]) -> tuple[Any, ...]:
    """Arrays that tell data apart."""
    known_of = {name: each for name, each in data.given._asdict().items() if each is not None}
    parts: tuple[Any, ...] = (data.shape, data.coords, data.values, *known_of.values())
    parts += (tuple(known_of),) if known_of else ()
    parts += tuple(each.positions for each in axes if each.positions is not None)
    return parts + tuple(part for each in axes for part in _parts_of(each.features))


def _parts_of(features: Any) -> tuple[Any, ...]:
    """Arrays that tell features apart."""
    if features is None:
        return ()
    if hasattr(features, "toarray"):
        return features.shape, features.data, features.indices, features.indptr
    return (features,)


def fit_files(
    files: ParquetRows | SpreadRows,
    survey: Survey,
    settings: Settings,
    keep: Keep = NOTHING_KEPT,
    engine: Engine | None = None,
) -> Fit:
    """Learn a ring from Parquet data, in bounded memory, or on the workers of a cluster."""
    from bayesring.data.parquet import sources_of

    coding = coding_of(survey, settings.model.likelihood)
    model = bound(settings.model, survey.shape)
    settings.check_draw_fits(survey.shape, model.policy.start(len(survey.shape)), 1)
    units = Units(survey.shape, coding.location, coding.scale)
    sources = sources_of(files, survey, coding, settings.seed)
    known = ""
    if keep.folder is not None:
        about = survey.n_rows, np.array(survey.moments, dtype=float), *survey.counts
        known = digest(*about, files.fingerprint(coding))
    with keep.open(settings, known) as checkpoint:
        n = survey.n_observed
        outcome = _learn(sources, units, n, model, settings, 1, checkpoint, engine)
    return Fit(outcome, model, units)


def _learn(
    sources: Sources,
    units: Units,
    n: int,
    model: Model,
    settings: Settings,
    rings: int,
    checkpoint: Checkpoint,
    engine: Engine | None = None,
) -> Outcome:
    """Learn `rings` rings from `n` observations.

    Of a ring to choose, a pair of draws must fit into memory; of the smallest, one will do.
    """
    from bayesring.progress import learning_progress

    learning = settings.learning(n, units.scale, rings)
    if learning.warmup and (sources.in_memory is None or n > online.MOST_SAMPLED):
        what = "files or a cluster" if sources.in_memory is None else f"{n:,} observations"
        raise ValueError(
            f"warmup={learning.warmup} is for chains, but inference='online-em' runs none for "
            f"{what}; leave warmup out, or limit the passes by epochs=."
        )
    sizes = model.policy.sizes(units.shape, n * model.likelihood.information)
    fitting = [size for size in sizes if 16 * size.parameters(units.shape) <= learning.max_bytes]
    with (
        ending_on_sigterm(),
        learning_progress(settings.progress, n) as report,
        engine or Threads(settings.n_jobs) as opened,
    ):
        return online.run(
            sources,
            model.likelihood,
            model.prior,
            fitting or sizes[:1],
            learning,
            opened,
            report,
            checkpoint,
        )


def fit_more(
    estimates: Sequence[RingEstimate],
    data: Observations,
    model: Model,
    settings: Settings,
    everything: Observations | None = None,
    keep: Keep = NOTHING_KEPT,
    axes: Sequence[Axis] = (),
) -> tuple[list[RingEstimate], list[Draws]]:
    """Continue learning; the given estimates are not modified.

    `everything` holds all observations so far, `data` among them, if they are known. Modes may
    have grown, and a draw with them: it must still fit. What is kept belongs to these estimates and
    data, so that the same call can go on with it, and no other.
    """
    if not estimates:
        raise ValueError(
            "partial_fit goes on with rings of online EM, but the model has none: it was fitted "
            "with inference='gibbs', or labels were folded in; fit it anew with "
            "inference='online-em'."
        )
    settings.check_draw_fits(data.shape, estimates[0].size, len(estimates))
    learning = settings.learning(len(data.values), data.scale, len(estimates))
    if everything is not None:
        everything = standardised(everything, data.location, data.scale)
    known = ""
    if keep.folder is not None:
        before = [part for each in estimates for part in take_apart(each)[1]]
        all_values = () if everything is None else (everything.values,)
        known = digest(*before, *all_values, *_parts_of_data(data, axes))
    with (
        ending_on_sigterm(),
        keep.open(settings, known) as checkpoint,
        Threads(settings.n_jobs) as engine,
    ):
        course = Course(data, learning, model.prior, engine, checkpoint=checkpoint)
        return online.learn_more(estimates, course, model.likelihood, everything)


def _seen(data: Observations) -> FloatArray:
    """The values that were observed themselves, or else what stands for them."""
    values, censored = data.values, data.given.censored
    return values if censored is None or censored.all() else values[~censored]


def bound(model: Model, shape: Sequence[int], axes: Sequence[Axis] | None = None) -> Model:
    """The model with one prior per mode, which knows what `axes` say of its labels."""
    return model._replace(prior=model.prior.bind(axes or [Axis.of_coordinates(n) for n in shape]))


def open_files(
    path: str | os.PathLike[str],
    y: Any,
    modes: Sequence[str] | None,
    value: str | None,
    settings: Settings,
    cluster: Any = None,
) -> ParquetRows | SpreadRows:
    """Open Parquet data for a fit with these settings, here or on a cluster."""
    if settings.inference != "online-em":
        raise ValueError(
            f"X is the path {path}, but inference={settings.inference!r} needs its data in "
            "memory; use inference='online-em', or read the file into a table first."
        )
    if y is not None or modes is None or value is None:
        raise ValueError(
            f"X is the path {path}: modes must name its key columns and value its column of "
            "values, and y must be left out."
        )
    from bayesring.data.parquet import ParquetRows

    if cluster is not None:
        from bayesring.engine.remoterows import SpreadFiles

        return SpreadFiles(cluster, Path(path), tuple(modes), value)
    return ParquetRows(path, modes, value, settings.n_jobs)


def rows_of(data: Spread) -> SpreadRows:
    """Observations on the workers of a cluster, as rows to learn from batch by batch."""
    if data.rows is None:
        raise ValueError(
            f"inference='online-em' learns from keys and values alone, but X is a Dask DataFrame "
            f"of {data.n:,} observations with weights, exposures, errors or bounds; use "
            "inference='gibbs'."
        )
    rows: SpreadRows = data.rows
    return rows


def survey_files(files: ParquetRows | SpreadRows, progress: bool) -> Survey:
    """First pass over files: labels, counts, units."""
    from bayesring.progress import survey_progress

    with survey_progress(progress, files.n_rows) as report:
        return files.survey(report)


def coding_of(survey: Survey, likelihood: Likelihood) -> Coding:
    """Labels and units for the following passes."""
    if survey.n_observed == 0:
        raise ValueError(f"The data have {survey.n_rows:,} rows, and none of them has a value.")
    from bayesring.data.parquet import Coding

    return Coding(survey.labels, *likelihood.units_from(survey.moments))
