"""The paper's scale study: seconds per iteration over the size of a sparse order-4 tensor.

I x I x I x I tensors of rank 2 with 99.9 % of the cells missing. The paper stops at I = 100; our
two methods continue to ten million observations. Cells are measured one after another, each method
with all threads it can use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.datasets import make_ring
from bayesring.engine.threads import Threads
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.priors import NormalWishart, RingPrior
from paper.baselines import BayesianRingVI
from paper.bench.epochs import TimedRing
from paper.bench.timing import TimedChain
from paper.results_store import Result, ResultsStore, write_json
from paper.runner import ResultCell

SIZES = (10, 30, 50, 70, 100)
FURTHER = (178, 316)
"""About a million and ten million observations."""
QUICK_SIZES = (10, 30)
MISSING, RANK, SNR = 0.999, 2, 20.0
ENOUGH = 1.0
"""Minimum seconds per measurement, if it needs few iterations."""
MOST = 50
"""Maximum number of measured iterations."""


class Timed(NamedTuple):
    """A method as shown in the figure."""

    label: str
    unit: str
    sizes: tuple[int, ...]
    measure: Callable[[Observations, int], list[float]]
    """Seconds of each of several iterations, given observations and a number of threads."""


def gibbs_scans(data: Observations, threads: int) -> list[float]:
    """Scans of one chain of our Gibbs sampler with the default prior."""
    likelihood, prior = Gaussian(max_precision=100.0), NormalWishart()
    problem = make_problem(data, likelihood, RingPrior.of(prior))
    with Threads(threads) as engine:
        chain = TimedChain(
            rank=RANK,
            shape=data.shape,
            core_prior=prior,
            likelihood=likelihood,
            problem=problem,
            engine=engine,
        )
        return _repeat(chain)


def online_epochs(data: Observations, threads: int) -> list[float]:
    """Epochs of one ring of our online EM, which learns on one thread, with the default batches."""
    return _repeat(TimedRing(data, RANK))


def variational_iterations(data: Observations, threads: int) -> list[float]:
    """Iterations of BTR-VI: the time of a longer fit minus that of a shorter one."""
    return _by_length(
        lambda length: BayesianRingVI(
            rank=RANK, max_iter=length, tol=0.0, random_state=0, progress=False
        ).fit(data.coords, data.values, shape=data.shape)
    )


def _repeat(step: Callable[[], Any]) -> list[float]:
    """Seconds of every call, after one warm-up call."""
    step()
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < ENOUGH and len(seconds) < MOST):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    return seconds


def _by_length(fit: Callable[[int], Any]) -> list[float]:
    """Seconds per iteration of a fit, three times: a fit of 1 + n iterations minus a fit of 1.

    n grows until the longer fit takes clearly more time than the shorter one.
    """
    fit(1)
    n = 2
    while n < MOST and _time(fit, 1 + n) - _time(fit, 1) < ENOUGH / 4:
        n = min(3 * n, MOST)
    short = min(_time(fit, 1) for _ in range(3))
    return [(_time(fit, 1 + n) - short) / n for _ in range(3)]


def _time(fit: Callable[[int], Any], length: int) -> float:
    begin = time.perf_counter()
    fit(length)
    return time.perf_counter() - begin


METHODS = {
    "BTR-VI": Timed("BTR-VI", "iteration", SIZES, variational_iterations),
    "Gibbs": Timed("bayesring, Gibbs", "scan", SIZES + FURTHER, gibbs_scans),
    "online-EM": Timed("bayesring, online EM", "epoch", SIZES + FURTHER, online_epochs),
}


def make_cells(quick: bool = False) -> list[ResultCell]:
    """One cell per method and size, small sizes first."""
    return [
        ResultCell(
            "scale", f"I{size}", name, "seconds", work, (name, size), 5 + 1e-7 * size**4 * 0.6
        )
        for size in (QUICK_SIZES if quick else SIZES + FURTHER)
        for name, method in METHODS.items()
        if size in method.sizes
    ]


def work(name: str, size: int, threads: int) -> Result:
    """Measure one method at one size."""
    data = make_ring((size,) * 4, RANK, snr=SNR, missing=MISSING, seed=size).observations
    begin = time.perf_counter()
    seconds = METHODS[name].measure(data, threads)
    return {
        "size": size,
        "observations": len(data.values),
        "seed": size,
        "per": METHODS[name].unit,
        "median": float(np.median(seconds)),
        "least": float(min(seconds)),
        "repeats": len(seconds),
        "seconds": time.perf_counter() - begin,
    }


def summarise(store: ResultsStore) -> dict[str, dict[int, Result]]:
    """Measurements by method and size."""
    found: dict[str, dict[int, Result]] = {name: {} for name in METHODS}
    for cell in make_cells():
        result = cell.load(store)
        if result is not None:
            found[cell.method][cell.arguments[1]] = result
    return {name: results for name, results in found.items() if results}


def observations(size: int) -> int:
    """Number of observed cells."""
    return round((1 - MISSING) * size**4)


def table(summary: dict[str, dict[int, Result]]) -> str:
    """Seconds per iteration, one row per size."""
    heads = [f"{METHODS[name].label}, per {METHODS[name].unit}" for name in summary]
    lines = [
        f"| I | observations | {' | '.join(heads)} |",
        f"|---|---|{'---|' * len(heads)}",
    ]
    for size in sorted({size for results in summary.values() for size in results}):
        cells = [_shown(results.get(size)) for results in summary.values()]
        lines.append(f"| {size} | {observations(size):,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(result: Result | None) -> str:
    if result is None:
        return "-"
    return "cannot run" if "cannot" in result else duration(result["least"])


def duration(seconds: float) -> str:
    """A duration in seconds or milliseconds."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def write(store: ResultsStore, out: Path, quick: bool = False) -> None:
    """Write summary, table and plot of the measurements."""
    from paper.study_figures import plot_scale, save_both

    summary = summarise(store)
    if not summary:
        return
    write_json(out / "tables" / "scale.json", summary)
    (out / "tables" / "scale.md").write_text(table(summary))
    lines = {
        f"{METHODS[name].label} ({METHODS[name].unit})": [
            (size, observations(size), each["least"])
            for size, each in results.items()
            if "least" in each
        ]
        for name, results in summary.items()
    }
    measured = {label: line for label, line in lines.items() if line}
    if measured:
        save_both(plot_scale(measured, max(SIZES)), out / "images" / "scale")
