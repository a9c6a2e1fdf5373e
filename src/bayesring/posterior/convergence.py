"""Can the chains be trusted? A table of gauge-invariant quantities, and problems in plain words.

Only quantities that the posterior determines are checked: entries, noise, log likelihood. Cores and
weights wander along the gauge forever and would fail every test for no reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesring.infer.diagnostics import Summary, summarise
from bayesring.infer.length import FIRST_DRAWS, STALLED
from bayesring.infer.precision import answer_error, random_cells
from bayesring.infer.state import Trace
from bayesring.model.types import NOTHING, FloatArray, IntArray
from bayesring.posterior import Posterior

RHAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
OFF, OFF_PROBABILITY = 1 / 3, 0.05
"""Monte Carlo error above which results suffer: for a mean or the end of an interval, relative to
the predictive standard deviation of a new observation, whose square it raises by a ninth; for a
probability, absolute."""
SHORT, DISAGREE = "are short", "disagree"
"""Where Monte Carlo error comes from: more draws help, or hardly do."""


class DiagnosticWarning(UserWarning):
    """The chains should not be relied on in their current state."""


@dataclass(frozen=True)
class Diagnostics:
    """One row per quantity, the effect of the chains' disagreement on results, and problems.

    Parameters
    ----------
    names : names of the quantities
    summary : mean, sd, mcse, ess_bulk, ess_tail, rhat, one number per quantity
    problems : what harms the results and what to do about it; empty if nothing does
    notes : what is worth knowing but does not harm the results
    error : 95 % quantile over cells of the Monte Carlo error of predictive means and ends of 90 %
        intervals, including disagreement between chains: relative to the predictive standard
        deviation or, for binary values, the absolute error of probabilities; NaN if unknown
    explained : what the features of each mode explain, if any has some
    """

    names: tuple[str, ...]
    summary: Summary
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    error: float = float("nan")
    explained: tuple[Any, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dictionaries, ready for a DataFrame."""
        columns = self.summary._asdict()
        return [
            {"quantity": name} | {column: float(numbers[i]) for column, numbers in columns.items()}
            for i, name in enumerate(self.names)
        ]

    def __str__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"{'':{width}} " + "".join(f"{column:>10}" for column in Summary._fields)]
        for row in self.rows():
            name = row.pop("quantity")
            lines.append(f"{name:{width}} " + "".join(f"{number:10.4g}" for number in row.values()))
        lines += [f"! {problem}" for problem in self.problems]
        lines += [f"- {note}" for note in self.notes]
        return "\n".join([*lines, *(line for each in self.explained for line in each.lines())])

    __repr__ = __str__


def diagnose(
    posterior: Posterior,
    traces: Sequence[Trace],
    warmup: int | None,
    n_observations: int,
    cells: IntArray | None = None,
    seed: int = 0,
) -> Diagnostics:
    """Check noise, log likelihood, and entries at `cells` (n, D) or at some random cells.

    `warmup` is None if nothing was sampled: rings of online EM are not chains.

    Requested cells get a row each; for random cells only the worst gets one.
    """
    scalars = {} if warmup is None else scalar_draws(traces, warmup)
    names = list(scalars)
    parts = [summarise(np.stack(list(scalars.values()), axis=-1))] if scalars else []
    chosen = random_cells(posterior.shape, seed) if cells is None else cells
    of_entries = summarise(entry_draws(posterior, chosen))
    if cells is None:
        worst = int(np.nanargmax(of_entries.rhat)) if np.isfinite(of_entries.rhat).any() else 0
        of_entries = Summary(*(numbers[[worst]] for numbers in of_entries))
        names.append(f"entry {cell_name(chosen[worst])}, the worst of {len(chosen)}")
    else:
        names += [f"entry {cell_name(cell)}" for cell in chosen]
    parts.append(of_entries)
    summary = Summary(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    problems: list[str] = []
    notes: list[str] = []
    error = float("nan")
    if warmup is not None:
        n_scans = min(len(trace.log_likelihood) for trace in traces) - warmup
        half, error = _answer_errors(posterior, chosen)
        stalled = n_scans >= FIRST_DRAWS and error > STALLED * half
        cause = DISAGREE if stalled else SHORT
        problems, notes = _disagreement(posterior, error, cause, warmup, n_scans)
        notes += _slow_chains(names, summary, posterior)
    notes += [
        *_ring_notes(posterior, n_observations),
        *posterior.likelihood.concerns(posterior.nuisance),
    ]
    return Diagnostics(tuple(names), summary, tuple(problems), tuple(notes), error)


def _answer_errors(posterior: Posterior, cells: IntArray) -> tuple[float, float]:
    """`Diagnostics.error` of the first half of the draws, and of all."""
    entries = _standard_entries(posterior, cells)
    nuisance = np.stack([posterior.nuisance[rows] for rows in rows_of(posterior)])
    given = posterior.likelihood.locate(NOTHING, lambda mode: cells[:, mode])
    kept = entries.shape[1]
    half, whole = (
        answer_error(posterior.likelihood, entries[:, :end], nuisance[:, :end], given)
        for end in (max(kept // 2, 1), kept)
    )
    return half, whole


def _disagreement(
    posterior: Posterior, error: float, cause: str, warmup: int, draws: int
) -> tuple[list[str], list[str]]:
    """Problems and notes: the effect of Monte Carlo error on the results, and what would help."""
    remedy = f"run longer, with warmup={max(2 * warmup, 100)} and "
    remedy += f"draws={max(2 * draws, ESS_PER_CHAIN)}"
    if cause == DISAGREE:
        remedy = f"run more of them, with chains={2 * max(len(posterior.chains), 2)}"
    if np.isnan(error):
        return [
            f"{draws} draws per chain are too few to judge; keep more, with draws={ESS_PER_CHAIN} "
            "or above."
        ], []
    binary = posterior.likelihood.binary
    what = (
        f"Probabilities are off by up to {error:.2g}"
        if binary
        else (f"Means are off by up to {error:.0%} of their error bars")
    )
    said = f"{what} because the chains {cause}"
    if error > (OFF_PROBABILITY if binary else OFF):
        return [f"{said}; {remedy}."], []
    return [], [f"{said}."]


def scalar_draws(traces: Sequence[Trace], warmup: int) -> dict[str, FloatArray]:
    """Noise and other likelihood parameters, and the log likelihood, (chains, draws) each.

    Interrupted chains differ in length; all are truncated to the shortest.
    """
    end = min(len(trace.log_likelihood) for trace in traces)
    return {
        name: np.stack([numbers[warmup:end] for numbers in each])
        for name, each in scalar_traces(traces).items()
    }


def scalar_traces(traces: Sequence[Trace]) -> dict[str, list[FloatArray]]:
    """The same over all scans of each chain."""
    described = {name: [trace.described[name] for trace in traces] for name in traces[0].described}
    return described | {"log likelihood": [trace.log_likelihood for trace in traces]}


def entry_draws(posterior: Posterior, cells: IntArray) -> FloatArray:
    """Entries in the units of the data, (chains, draws, n); longer chains are thinned to match."""
    return posterior.location + posterior.scale * _standard_entries(posterior, cells)


def _standard_entries(posterior: Posterior, cells: IntArray) -> FloatArray:
    """The same in standardised units."""
    entries = posterior.entries(cells)
    return np.stack([entries[rows] for rows in rows_of(posterior)])


def rows_of(posterior: Posterior) -> list[IntArray]:
    """The same draws as `matching_draws`, as rows of all chains end to end."""
    starts = np.cumsum([0, *(len(draws.scans) for draws in posterior.chains[:-1])])
    return [start + rows for start, rows in zip(starts, matching_draws(posterior), strict=True)]


def matching_draws(posterior: Posterior) -> list[IntArray]:
    """Indices of the draws to use from each chain so that all chains have equally many."""
    shortest = min(len(draws.scans) for draws in posterior.chains)
    return [
        np.linspace(0, len(draws.scans) - 1, shortest).round().astype(int)
        for draws in posterior.chains
    ]


def _slow_chains(names: Sequence[str], summary: Summary, posterior: Posterior) -> list[str]:
    """Messages about R-hat and effective sample sizes beyond the usual limits."""
    if np.isnan(summary.rhat).any():
        return []
    notes = []
    rhat = summary.rhat
    if rhat.max() > RHAT_LIMIT:
        place = int(np.argmax(rhat))
        notes.append(
            f"R-hat of {names[place]} is {rhat[place]:.4g}, above {RHAT_LIMIT}: the chains do "
            "not agree on it."
        )
    ess = np.minimum(summary.ess_bulk, summary.ess_tail)
    needed = ESS_PER_CHAIN * len(posterior.chains)
    if ess.min() < needed:
        place = int(np.argmin(ess))
        notes.append(f"{names[place]} has {ess[place]:.0f} effective draws, fewer than {needed}.")
    return notes


def _ring_notes(posterior: Posterior, n_observations: int) -> list[str]:
    """Messages about rank and size."""
    notes = []
    ranks = [draws.rank for draws in posterior.chains]
    if len(set(ranks)) > 1:
        listed = ", ".join("x".join(map(str, rank)) for rank in ranks)
        notes.append(
            f"The chains ended at different ranks ({listed}): they describe different models, and "
            "their predictions are averaged; set rank= to a number, or use a longer warmup."
        )
    n_parameters = max(draws.flat.shape[1] for draws in posterior.chains)
    if n_parameters > n_observations:
        notes.append(
            f"The ring has {n_parameters:,} parameters for {n_observations:,} observations: the "
            "prior determines much of the result; a smaller rank= would rely on it less."
        )
    return notes


def cell_name(cell: IntArray) -> str:
    """Its coordinates as text."""
    return f"({', '.join(str(int(index)) for index in cell)})"
