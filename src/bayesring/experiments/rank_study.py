"""The paper's rank study: how often the true rank is found, from any start, under noise.

Tensors of size 10 x 10 x 10 x 10 and ring rank 5 are drawn, standardised, covered with noise and
partly hidden. A chain then adapts its rank in warm-up. Each run leaves one small file, so that a
study that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from bayesring import ring
from bayesring.infer import gibbs, holdout
from bayesring.infer.base import make_problem
from bayesring.infer.rank import Adaption, RankPolicy, Truncation
from bayesring.infer.run import Chain, Schedule, explore
from bayesring.infer.streams import Streams
from bayesring.infer.threads import one_blas_thread
from bayesring.likelihoods import Gaussian
from bayesring.observations import Observations
from bayesring.priors import Fixed, GammaProcess
from bayesring.priors.base import CorePrior, RingPrior
from bayesring.storage import replacing
from bayesring.types import FloatArray

SHAPE, RANK = (10, 10, 10, 10), (5, 5, 5, 5)
NOISE = (10, 15, 20, 25, 30)
"""Signal-to-noise ratios, in decibels."""
MISSING = (0.1, 0.3, 0.5, 0.7, 0.9)
STARTS = (("adaption", 2), ("adaption", 5), ("adaption", 10), ("truncation", 5), ("truncation", 10))
POLICIES: dict[str, Callable[[int], RankPolicy]] = {"adaption": Adaption, "truncation": Truncation}
WARMUP = 1500


class Run(NamedTuple):
    """One tensor in one cell of the map, fitted from one start."""

    strategy: str
    initial: int
    snr: int
    missing: float
    tensor: int

    @property
    def name(self) -> str:
        """Place of the run's file under the folder of results."""
        place = f"{self.strategy}-{self.initial}"
        return f"{place}/snr{self.snr}-missing{self.missing:g}-tensor{self.tensor}.json"


class RunResult(NamedTuple):
    """What a run found."""

    rank: tuple[int, ...]
    error: float
    noise: float
    """Standard deviation of the noise, as the chain's last scan has it."""
    seconds: float


def all_runs(
    tensors: Iterable[int] = range(3),
    starts: Iterable[tuple[str, int]] = STARTS,
    noise: Iterable[int] = NOISE,
    missing: Iterable[float] = MISSING,
) -> list[Run]:
    """Every run of the study: the first tensor of each cell from every start, then the next."""
    places = product(tensors, noise, missing, starts)
    return [Run(*start, snr, share, tensor) for tensor, snr, share, start in places]


def draw_tensor(rng: Generator, shape: Sequence[int], rank: Sequence[int]) -> FloatArray:
    """Draw a ring with standard normal cores and bring its entries to mean zero, variance one."""
    cores = [
        rng.standard_normal((size, 1, rank[mode - 1], rank[mode]))
        for mode, size in enumerate(shape)
    ]
    tensor = ring.dense(cores)
    return np.asarray((tensor - tensor.mean()) / tensor.std())


def observe(rng: Generator, tensor: FloatArray, snr: float, missing: float) -> Observations:
    """Add normal noise of `snr` decibels below the signal, and hide a share of the cells."""
    noisy = tensor + rng.standard_normal(tensor.shape) * tensor.std() * 10 ** (-snr / 20)
    n_seen = round((1 - missing) * tensor.size)
    seen = np.sort(rng.permutation(tensor.size)[:n_seen])
    coords = np.stack(np.unravel_index(seen, tensor.shape), axis=1)
    return Observations(coords, noisy.ravel()[seen], tensor.shape)


def rank_error(found: Sequence[int], true: Sequence[int]) -> float:
    """Err = sum_d |found_d - true_d| / sum_d true_d."""
    return sum(abs(a - b) for a, b in zip(found, true, strict=True)) / sum(true)


def find_rank(
    data: Observations,
    policy: RankPolicy,
    seed: int,
    warmup: int = WARMUP,
    cores: CorePrior | None = None,
) -> tuple[tuple[int, ...], float]:
    """Rank and noise of a chain at the scan of its warm-up after which the rank rests."""
    prior = RingPrior(cores or Fixed(), GammaProcess(2.0))
    schedule = Schedule(warmup, 0, 1)
    explored, held = holdout.hold_out(data, seed)
    problem = make_problem(explored, Gaussian(), prior)
    streams = Streams.of_chain(seed, 0)
    chain = Chain(0, streams, gibbs.init(streams, problem, policy.start(len(data.shape))))
    with one_blas_thread:
        explore(chain, problem, policy, schedule, held, until=schedule.adapt)
    return chain.state.rank, chain.described["noise"][-1]


def perform(run: Run, seed: int = 0, warmup: int = WARMUP) -> RunResult:
    """Draw the run's tensor, which is the same from every start, and find its rank."""
    begin = time.perf_counter()
    rng = np.random.default_rng([seed, run.tensor, run.snr, round(100 * run.missing)])
    data = observe(rng, draw_tensor(rng, SHAPE, RANK), run.snr, run.missing)
    rank, noise = find_rank(data, POLICIES[run.strategy](run.initial), run.tensor, warmup)
    return RunResult(rank, rank_error(rank, RANK), noise, time.perf_counter() - begin)


def run_study(
    folder: Path,
    runs: Iterable[Run],
    seed: int = 0,
    warmup: int = WARMUP,
    report: Callable[[Run, RunResult], None] | None = None,
) -> dict[Run, RunResult]:
    """Perform what has no file in `folder` yet, read the rest, and return all results."""
    results = {}
    for run in runs:
        path = folder / run.name
        if not path.exists():
            _write(path, {**run._asdict(), **perform(run, seed, warmup)._asdict()})
        results[run] = _read(path)
        if report is not None:
            report(run, results[run])
    return results


def _read(path: Path) -> RunResult:
    kept: dict[str, Any] = json.loads(path.read_text())
    return RunResult(tuple(kept["rank"]), kept["error"], kept["noise"], kept["seconds"])


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content) + "\n")


def error_map(results: dict[Run, RunResult], strategy: str, initial: int) -> FloatArray:
    """Mean error of every cell, (noise, missing); NaN where nothing has been run."""
    errors = np.full((len(NOISE), len(MISSING)), np.nan)
    for (row, snr), (column, missing) in product(enumerate(NOISE), enumerate(MISSING)):
        cell = (strategy, initial, snr, missing)
        here = [result.error for run, result in results.items() if run[:4] == cell]
        if here:
            errors[row, column] = np.mean(here)
    return errors


def summarise(results: dict[Run, RunResult]) -> dict[str, dict[str, Any]]:
    """Per start: mean error up to 70 % missing and over all cells, the map, runs and time."""
    summary = {}
    for strategy, initial in dict.fromkeys(run[:2] for run in results):
        errors = error_map(results, strategy, initial)
        own = [result for run, result in results.items() if run[:2] == (strategy, initial)]
        summary[f"{strategy} from {initial}"] = {
            "up_to_70_missing": _mean(errors[:, :4]),
            "all": _mean(errors),
            "map": [[round(float(cell), 4) for cell in row] for row in errors],
            "runs": len(own),
            "seconds": round(sum(result.seconds for result in own), 1),
        }
    return summary


def _mean(errors: FloatArray) -> float:
    """Mean of the cells that have been run, NaN if none has."""
    known = errors[np.isfinite(errors)]
    return round(float(known.mean()), 4) if known.size else float("nan")


def table(summary: dict[str, dict[str, Any]]) -> str:
    """The summary as Markdown: one row per start."""
    lines = [
        "| | mean error, up to 70 % missing | all cells | runs | seconds per run |",
        "|---|---|---|---|---|",
    ]
    for name, row in summary.items():
        pace = row["seconds"] / row["runs"]
        numbers = f"{row['up_to_70_missing']:.3f} | {row['all']:.3f} | {row['runs']} | {pace:.1f}"
        lines.append(f"| {name} | {numbers} |")
    return "\n".join(lines)


def write_study(folder: Path, results: dict[Run, RunResult]) -> dict[str, dict[str, Any]]:
    """Write summary and heat maps into `folder`, and return the summary."""
    from bayesring.report.figures import plot_heat_maps

    summary = summarise(results)
    _write(folder / "summary.json", summary)
    maps = {
        f"{name}\n({row['up_to_70_missing']:.3f}; all cells {row['all']:.3f})": np.array(row["map"])
        for name, row in summary.items()
    }
    plot_heat_maps(
        folder / "rank.png",
        maps,
        ("SNR (dB)", [str(snr) for snr in NOISE]),
        ("missing", [f"{share:.0%}" for share in MISSING]),
        "error of the rank",
    )
    return summary
