"""Summary of a model for notebooks."""

from __future__ import annotations

from math import prod

import numpy as np

from bayesring.report import summary
from bayesring.report.fitted import Fitted
from bayesring.report.markup import facts, listing, times
from bayesring.report.svg import number, percent


def brief(fitted: Fitted) -> str:
    """A small table: data, rank, noise, held-out error, whether the chains agree."""
    sizes = zip(fitted.labels.names, fitted.shape, strict=True)
    diagnostics = fitted.diagnose()
    cells = prod(fitted.shape)
    scans = min(len(trace.log_likelihood) for trace in fitted.traces)
    kept = min(fitted.warmup, scans - 1)  # online EM has no kept scans: use its last look
    share = percent(fitted.n_observations / cells)
    rows = {
        "data": times(f"{name} ({size:,})" for name, size in sizes),
        "observations": f"{fitted.n_observations:,} for {cells:,} cells ({share})",
        "rank": ", ".join(times(draws.rank) for draws in fitted.posterior.chains),
        **{
            name: number(float(np.mean([path[kept:].mean() for path in each])))
            for name, each in summary.paths(fitted.traces).items()
            if name != "log likelihood"
        },
    }
    if fitted.held_out is not None:
        for score in summary.held_out_scores(fitted.held_out, fitted.is_binary)[:1]:
            rows[f"held-out {score.name}"] = (
                f"{number(score.value)} (from the average alone {number(score.baseline)})"
            )
    found = diagnostics.summary
    if fitted.sampled and np.isfinite(found.rhat).all():
        fewest = min(np.min(found.ess_bulk), np.min(found.ess_tail))
        rows["draws"] = (
            f"{fitted.posterior.n_draws:,}, worth at least {fewest:,.0f} independent ones"
        )
        rows["R-hat"] = f"at most {np.max(found.rhat):.3f}"
    return facts(rows) + listing(diagnostics.problems, "cautions")
