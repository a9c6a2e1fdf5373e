"""The paper's rank study: how often the true rank is found, from any start, under noise.

Tensors of size 10 x 10 x 10 x 10 and ring rank 5 are drawn and standardised, noise is added and
some cells are hidden. Then the rank is adapted by one of our strategies, or pruned by BTR-VI.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring.data.observations import Observations
from bayesring.data.splitting import hold_out
from bayesring.datasets import make_ring
from bayesring.engine.streams import Streams
from bayesring.engine.threads import one_blas_thread
from bayesring.infer import gibbs
from bayesring.infer.chain import Chain, explore
from bayesring.infer.length import Length
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model.rank import Adaption, RankPolicy, Truncation
from bayesring.model.types import FloatArray
from bayesring.priors import Fixed, GammaProcess, ModePrior, RingPrior
from paper.baselines import BayesianRingVI
from paper.results_store import Result, ResultsStore, write_json
from paper.runner import ResultCell

SHAPE, RANK = (10, 10, 10, 10), (5, 5, 5, 5)
NOISE = (10, 15, 20, 25, 30)
"""Signal-to-noise ratios, in decibels."""
MISSING = (0.1, 0.3, 0.5, 0.7, 0.9)
N_TENSORS = 3
"""Number of tensors per cell of the map; BTR-VI, whose cost grows with R^6, has one."""
POLICIES: dict[str, Callable[[int], RankPolicy]] = {"adaption": Adaption, "truncation": Truncation}
VARIATIONAL = "BTR-VI"
STARTS = (
    ("adaption", 2),
    ("adaption", 5),
    ("adaption", 10),
    ("truncation", 5),
    ("truncation", 10),
    (VARIATIONAL, 2),
    (VARIATIONAL, 5),
)
"""Strategies and initial ranks. BTR-VI and truncation only drop factors."""
WARMUP, ITERATIONS = 1500, 500
"""Number of scans of a chain and of iterations of BTR-VI, as in the paper."""
QUICK_LENGTH = 60
"""The same for a smoke test."""
COSTS = {"adaption": 12.0, "truncation": 15.0, VARIATIONAL: 60.0}


class Run(NamedTuple):
    """One tensor in one cell of the map, fitted from one start."""

    strategy: str
    initial: int
    snr: int
    missing: float
    tensor: int

    def cell(self, quick: bool = False) -> ResultCell:
        """The run as a cell, with the file that keeps its result."""
        method = f"{self.strategy}-{self.initial}"
        cost = 2.0 if quick else COSTS[self.strategy]
        place = f"snr{self.snr}-missing{self.missing:g}"
        part = f"tensor{self.tensor}"
        return ResultCell("rank", place, method, part, work, (self, quick), cost)


def all_runs(
    tensors: Iterable[int] = range(N_TENSORS),
    starts: Iterable[tuple[str, int]] = STARTS,
    noise: Iterable[int] = NOISE,
    missing: Iterable[float] = MISSING,
) -> list[Run]:
    """Every run of the study: the first tensor of each cell from every start, then the next."""
    places = product(tensors, noise, missing, starts)
    runs = [Run(*start, snr, share, tensor) for tensor, snr, share, start in places]
    return [run for run in runs if run.strategy != VARIATIONAL or run.tensor == 0]


def quick_runs() -> list[Run]:
    """Runs of a smoke test: every start, in two corners of the map."""
    return all_runs([0], noise=[10], missing=[0.1]) + all_runs([0], noise=[30], missing=[0.9])


def make_cells(quick: bool = False) -> list[ResultCell]:
    """The cells of the study."""
    return [run.cell(quick) for run in (quick_runs() if quick else all_runs())]


def rank_error(found: Sequence[int], true: Sequence[int]) -> float:
    """Err = sum_d |found_d - true_d| / sum_d true_d."""
    return sum(abs(a - b) for a, b in zip(found, true, strict=True)) / sum(true)


def find_rank(
    data: Observations,
    policy: RankPolicy,
    seed: int,
    warmup: int = WARMUP,
    cores: ModePrior | None = None,
) -> tuple[tuple[int, ...], float]:
    """Rank and noise of a chain at the warm-up scan after which the rank is fixed."""
    prior = RingPrior((cores or Fixed(),), GammaProcess(2.0))
    length = Length(warmup, 0, 1)
    explored, held = hold_out(data, seed)
    problem = make_problem(explored, Gaussian(), prior)
    streams = Streams.of_chain(seed, 0)
    chain = Chain(0, streams, gibbs.init(streams, problem, policy.start(len(data.shape))))
    with one_blas_thread:
        watched = None if held is None else held.data
        explore(chain, problem, policy, length, watched, until=length.adapt)
    return chain.state.rank, chain.described["noise"][-1]


def prune_rank(data: Observations, initial: int, seed: int, iterations: int) -> tuple[int, ...]:
    """Final rank of BTR-VI."""
    model = BayesianRingVI(rank=initial, max_iter=iterations, random_state=seed, progress=False)
    return tuple(map(int, model.fit(data.coords, data.values, shape=data.shape).rank_))


def work(run: Run, quick: bool, threads: int = 1) -> Result:
    """Draw the run's tensor, which is the same from every start, and find its rank."""
    begin = time.perf_counter()
    seed = [0, run.tensor, run.snr, round(100 * run.missing)]
    data = make_ring(SHAPE, RANK, snr=run.snr, missing=run.missing, seed=seed).observations
    found: Result = {}
    if run.strategy == VARIATIONAL:
        length = QUICK_LENGTH // 10 if quick else ITERATIONS
        rank = prune_rank(data, run.initial, run.tensor, length)
    else:
        length = QUICK_LENGTH if quick else WARMUP
        rank, noise = find_rank(data, POLICIES[run.strategy](run.initial), run.tensor, length)
        found = {"noise": noise}
    return {
        **run._asdict(),
        "seed": seed,
        "threads": 1,
        "rank": list(map(int, rank)),
        "error": rank_error(rank, RANK),
        **found,
        "seconds": time.perf_counter() - begin,
    }


def load_results(store: ResultsStore, quick: bool = False) -> dict[Run, Result]:
    """Existing results of the runs."""
    runs = quick_runs() if quick else all_runs()
    found = {run: run.cell(quick).load(store) for run in runs}
    return {run: result for run, result in found.items() if result and "error" in result}


def error_map(results: dict[Run, Result], strategy: str, initial: int) -> FloatArray:
    """Mean error of every cell, (noise, missing); NaN where there are no runs."""
    errors = np.full((len(NOISE), len(MISSING)), np.nan)
    for (row, snr), (column, missing) in product(enumerate(NOISE), enumerate(MISSING)):
        cell = (strategy, initial, snr, missing)
        here = [result["error"] for run, result in results.items() if run[:4] == cell]
        if here:
            errors[row, column] = np.mean(here)
    return errors


def summarise(results: dict[Run, Result]) -> dict[str, dict[str, Any]]:
    """For each start: mean error up to 70 % missing and over all cells, the map, runs and time."""
    summary = {}
    for strategy, initial in STARTS:
        own = [result for run, result in results.items() if run[:2] == (strategy, initial)]
        if not own:
            continue
        errors = error_map(results, strategy, initial)
        summary[f"{strategy} from {initial}"] = {
            "up_to_70_missing": _mean(errors[:, :4]),
            "at_90_missing": _mean(errors[:, 4:]),
            "all": _mean(errors),
            "map": [[None if np.isnan(x) else round(float(x), 4) for x in row] for row in errors],
            "runs": len(own),
            "seconds": round(sum(result["seconds"] for result in own), 1),
        }
    return summary


def _mean(errors: FloatArray) -> float | None:
    """Mean over the cells with runs; None if there are none."""
    known = errors[np.isfinite(errors)]
    return round(float(known.mean()), 4) if known.size else None


def table(summary: dict[str, dict[str, Any]]) -> str:
    """The summary as Markdown: one row per start."""
    lines = [
        "| strategy and start | mean error, up to 70 % missing | 90 % missing | all cells | runs "
        "| seconds per run |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in summary.items():
        numbers = [
            "-" if row[part] is None else f"{row[part]:.3f}"
            for part in ("up_to_70_missing", "at_90_missing", "all")
        ]
        pace = row["seconds"] / row["runs"]
        lines.append(f"| {name} | {' | '.join(numbers)} | {row['runs']} | {pace:.1f} |")
    return "\n".join(lines) + "\n"


def write(store: ResultsStore, out: Path, quick: bool = False) -> None:
    """Write summary, table and heat maps of the existing runs."""
    from paper.study_figures import plot_heat_maps, save_both

    summary = summarise(load_results(store, quick))
    if not summary:
        return
    write_json(out / "tables" / "rank.json", summary)
    (out / "tables" / "rank.md").write_text(table(summary))
    maps = {
        f"{name}\nmean {row['all']:.3f}": np.array(row["map"], dtype=float)
        for name, row in summary.items()
    }
    figure = plot_heat_maps(
        maps,
        ("SNR (dB)", [str(snr) for snr in NOISE]),
        ("missing", [f"{share:.0%}" for share in MISSING]),
        "error of the rank",
    )
    save_both(figure, out / "images" / "rank")
