"""Can the chains be trusted? A table of gauge-invariant quantities, and problems in plain words.

Only quantities that the posterior determines are checked: entries, noise, log likelihood. Cores and
weights wander along the gauge forever and would fail every test for no reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesring.infer.state import Trace
from bayesring.model.types import FloatArray, IntArray
from bayesring.posterior import Posterior
from bayesring.posterior.diagnostics import Summary, summarise

RHAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
N_CELLS = 50
"""Number of cells checked if the user gives none."""


class DiagnosticWarning(UserWarning):
    """The chains should not be relied on in their current state."""


@dataclass(frozen=True)
class Diagnostics:
    """One row per quantity, and the problems found, one sentence each.

    Parameters
    ----------
    names : of the quantities
    summary : mean, sd, mcse, ess_bulk, ess_tail, rhat, one number per quantity
    problems : what is wrong and what to do about it; empty if there is nothing wrong
    """

    names: tuple[str, ...]
    summary: Summary
    problems: tuple[str, ...]

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
        return "\n".join([*lines, *(f"! {problem}" for problem in self.problems)])

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
        names.append(f"entry {_cell(chosen[worst])}, the worst of {len(chosen)}")
    else:
        names += [f"entry {_cell(cell)}" for cell in chosen]
    parts.append(of_entries)
    summary = Summary(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    slow = []
    if warmup is not None:
        n_scans = len(traces[0].log_likelihood) - warmup
        slow = _slow_chains(names, summary, posterior, warmup, n_scans)
    problems = [
        *slow,
        *_ring_problems(posterior, n_observations),
        *posterior.likelihood.concerns(posterior.nuisance),
    ]
    return Diagnostics(tuple(names), summary, tuple(problems))


def scalar_draws(traces: Sequence[Trace], warmup: int) -> dict[str, FloatArray]:
    """Noise and other likelihood parameters, and the log likelihood, (chains, draws) each."""
    described = {
        name: np.stack([trace.described[name][warmup:] for trace in traces])
        for name in traces[0].described
    }
    log_likelihood = np.stack([trace.log_likelihood[warmup:] for trace in traces])
    return described | {"log likelihood": log_likelihood}


def entry_draws(posterior: Posterior, cells: IntArray) -> FloatArray:
    """Entries in the units of the data, (chains, draws, n); longer chains are thinned to match."""
    entries = posterior.location + posterior.scale * posterior.entries(cells)
    parts = np.split(entries, np.cumsum([len(draws.scans) for draws in posterior.chains])[:-1])
    return np.stack(
        [part[rows] for part, rows in zip(parts, _matching_draws(posterior), strict=True)]
    )


def _matching_draws(posterior: Posterior) -> list[IntArray]:
    """Indices of the draws to use from each chain so that all chains have equally many."""
    shortest = min(len(draws.scans) for draws in posterior.chains)
    return [
        np.linspace(0, len(draws.scans) - 1, shortest).round().astype(int)
        for draws in posterior.chains
    ]


def random_cells(shape: tuple[int, ...], seed: int) -> IntArray:
    """Random cells of the tensor, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, N_CELLS) for size in shape], axis=1)


def to_datatree(
    posterior: Posterior, traces: Sequence[Trace], sampled: bool, cells: IntArray
) -> Any:
    """Draws as an `xarray.DataTree` with ArviZ's groups; scalars only if they were sampled."""
    try:
        import xarray as xr
    except ImportError:
        raise ImportError("to_datatree needs xarray: pip install 'bayesring[arviz]'.") from None
    kept = [
        draws.scans[rows] - 1
        for draws, rows in zip(posterior.chains, _matching_draws(posterior), strict=True)
    ]
    scalars = {
        name.replace(" ", "_"): (
            ("chain", "draw"),
            np.stack([numbers[rows] for numbers, rows in zip(each, kept, strict=True)]),
        )
        for name, each in (scalar_draws(traces, 0) if sampled else {}).items()
    }
    statistics = {name: scalars.pop(name) for name in ("log_likelihood",) if name in scalars}
    entries = (("chain", "draw", "cell"), entry_draws(posterior, cells))
    coords = {"chain": np.arange(len(kept)), "draw": np.arange(len(kept[0]))}
    named_cells = {"cell": [_cell(cell) for cell in cells]}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(scalars | {"entry": entries}, coords | named_cells),
            "sample_stats": xr.Dataset(statistics, coords),
        }
    )


def _slow_chains(
    names: Sequence[str], summary: Summary, posterior: Posterior, warmup: int, draws: int
) -> list[str]:
    """Messages about chains that disagree and about too few effective draws."""
    if np.isnan(summary.rhat).any():
        return [
            f"{draws} draws per chain are too few to judge; keep more, with draws={ESS_PER_CHAIN} "
            "or above."
        ]
    problems = []
    rhat = summary.rhat
    if rhat.max() > RHAT_LIMIT:
        place = int(np.argmax(rhat))
        problems.append(
            f"R-hat of {names[place]} is {rhat[place]:.4g}, above {RHAT_LIMIT}: the chains do "
            f"not agree; run longer, with warmup={max(2 * warmup, 100)} "
            f"and draws={max(2 * draws, ESS_PER_CHAIN)}."
        )
    ess = np.minimum(summary.ess_bulk, summary.ess_tail)
    needed = ESS_PER_CHAIN * len(posterior.chains)
    if ess.min() < needed:
        place = int(np.argmin(ess))
        problems.append(
            f"{names[place]} has {ess[place]:.0f} effective draws, fewer than {needed}: its error "
            f"bar is rough; keep more, with draws={max(2 * draws, ESS_PER_CHAIN)}."
        )
    return problems


def _ring_problems(posterior: Posterior, n_observations: int) -> list[str]:
    """Messages about rank and size."""
    problems = []
    ranks = [draws.rank for draws in posterior.chains]
    if len(set(ranks)) > 1:
        listed = ", ".join("x".join(map(str, rank)) for rank in ranks)
        problems.append(
            f"The chains ended at different ranks ({listed}): they describe different models, and "
            "their predictions are averaged; give rank= a number, or a longer warmup."
        )
    n_parameters = max(draws.flat.shape[1] for draws in posterior.chains)
    if n_parameters > n_observations:
        problems.append(
            f"The ring has {n_parameters:,} parameters for {n_observations:,} observations: the "
            "prior decides much of the answer; a smaller rank= would rely on it less."
        )
    return problems


def _cell(cell: IntArray) -> str:
    return f"({', '.join(str(int(index)) for index in cell)})"
