"""Online EM for the estimator: from data and settings to draws, and on with more data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bayesring.checks import check_count
from bayesring.infer import online_em
from bayesring.infer.learner import Learner
from bayesring.infer.online_em import FEWEST_BATCHES, Settings, Sources
from bayesring.data.batches import ArrayRows
from bayesring.infer.chains import Draws, Outcome
from bayesring.engine.streams import Streams
from bayesring.engine.threads import count_threads, one_blas_thread
from bayesring.likelihoods import Likelihood
from bayesring.data.observations import Observations
from bayesring.data.parquet import Coding, ParquetRows, Survey, sources_of
from bayesring.progress import learning_progress, survey_progress
from bayesring.settings import Model, count_chains, resolve

MORE_RATES = tuple(0.0025 * 0.5 ** (step // 4) for step in range(20))
"""Adam's rates on new observations; each for a pass, or for as many as make enough batches."""

BATCH, LARGE_BATCH, MANY = 512, 2048, 2**20
"""Observations per step, the paper's, and from that many observations on: steps then cost more
than what they learn is worth."""


def settings_of(parameters: Any, seed: int, n: int, rings: int | None = None) -> Settings:
    """How rings learn from `n` observations, from the parameters of an estimator.

    Their number is that of the parameters unless `rings` says another.
    """
    chains = count_chains(parameters, n) if rings is None else rings
    budget = check_count(parameters.max_memory, "max_memory", 1)
    return Settings(
        seed,
        chains,
        check_count(parameters.draws, "draws", 1),
        budget // chains,
        batch_size_of(parameters.batch_size, n),
        check_count(parameters.epochs, "epochs", 1),
    )


def batch_size_of(batch_size: str | int, n: int) -> int:
    """Observations per step when there are `n` of them."""
    if batch_size == "auto":
        return BATCH if n < MANY else LARGE_BATCH
    if isinstance(batch_size, str):
        raise ValueError(f"batch_size must be 'auto' or a whole number, got {batch_size!r}.")
    return check_count(batch_size, "batch_size", 1)


def learn(
    data: Observations, model: Model, settings: Settings, n_jobs: int, progress: bool
) -> Outcome:
    """Learn from observations in memory."""
    sources = Sources.in_memory(data, settings.seed)
    settings = settings._replace(scale=data.scale)
    return _run(sources, data.shape, len(data.values), model, settings, n_jobs, progress)


def open_files(
    path: str | os.PathLike[str],
    y: Any,
    modes: Sequence[str] | None,
    value: str | None,
    parameters: Any,
) -> ParquetRows:
    """Parquet data for an estimator of these parameters, or a sentence on what is wrong."""
    resolve(parameters)
    if parameters.inference != "online-em":
        raise ValueError(
            f"X is the path {path}, but inference={parameters.inference!r} needs its data in "
            "memory; use inference='online-em', or read the file into a table first."
        )
    if y is not None or modes is None or value is None:
        raise ValueError(
            f"X is the path {path}: modes must name its key columns and value its column of "
            "values, and y must be left out."
        )
    return ParquetRows(path, modes, value, count_threads(parameters.n_jobs))


def survey_files(files: ParquetRows, progress: bool) -> Survey:
    """First pass over files: labels, counts, units."""
    with survey_progress(progress, files.n_rows) as report:
        return files.survey(report)


def coding_of(survey: Survey, likelihood: Likelihood) -> Coding:
    """Labels and units for the passes to come, or a sentence on what is wrong with the values."""
    if survey.n_observed == 0:
        raise ValueError(f"The data have {survey.n_rows:,} rows, and none of them has a value.")
    return Coding(survey.labels, *likelihood.units_from(survey.moments))


def learn_files(
    files: ParquetRows,
    survey: Survey,
    coding: Coding,
    model: Model,
    settings: Settings,
    n_jobs: int,
    progress: bool,
) -> Outcome:
    """Learn from files, in bounded memory."""
    sources = sources_of(files, survey, coding, settings.seed)
    settings = settings._replace(scale=coding.scale)
    return _run(sources, survey.shape, survey.n_observed, model, settings, n_jobs, progress)


def _run(
    sources: Sources,
    shape: tuple[int, ...],
    n: int,
    model: Model,
    settings: Settings,
    n_jobs: int,
    progress: bool,
) -> Outcome:
    sizes = model.policy.sizes(shape, n * model.likelihood.information)
    with learning_progress(progress, n) as report:
        return online_em.run(
            sources, model.likelihood, model.prior, sizes, settings, n_jobs, report
        )


def learn_more(
    learners: Sequence[Learner], data: Observations, settings: Settings, n_jobs: int
) -> list[Draws]:
    """Go on with new observations, in the units of the old; modes may have grown."""
    rows = ArrayRows(data)
    per_pass = max(1, -(-len(data.values) // settings.batch_size))
    passes = -(-FEWEST_BATCHES // per_pass)
    rates = [rate for rate in MORE_RATES for _ in range(passes)]

    def more(numbered: tuple[int, Learner]) -> Draws:
        number, learner = numbered
        streams = Streams.of_chain(settings.seed, number)
        learner.grow(data.shape)
        learner.add(rows, streams, settings.batch_size, rates)
        return online_em.draw_from(learner, streams, settings)

    with one_blas_thread, ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(more, enumerate(learners)))
