"""The rank study at 90 % missing, from the truth: whether a ring of rank 5 is there to be found.

`make rank-from-truth` starts chains at the ring that the values were drawn from, and at random,
keeps what became of them in `paper/results/rank_from_truth.json`, and writes the page of the
reproduction anew. A chain that stays near the truth shows that the posterior holds it; one that
leaves shows that it does not, whatever a search might find.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import NamedTuple

import numpy as np

from bayesring.datasets import make_ring
from bayesring.datasets.synthetic import Simulation
from bayesring.engine.streams import Streams
from bayesring.engine.threads import one_blas_thread
from bayesring.infer import gibbs
from bayesring.infer.chain import Chain, explore
from bayesring.infer.length import Length
from bayesring.infer.problem import Problem, make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model import ring
from bayesring.model.rank import Adaption, FixedRank
from bayesring.model.types import FloatArray, RingState
from bayesring.priors import Fixed, GammaProcess, RingPrior
from paper.rank_study import N_TENSORS, NOISE, RANK, SHAPE, WARMUP, rank_error
from paper.results_store import COMMITTED, ROOT, write_json

FILE = ROOT / COMMITTED / "rank_from_truth.json"
MISSING = 0.9
SCANS = 600
"""Scans at rank 5; the second half is averaged."""
STARTS = ("truth", "random")


class StartedChain(NamedTuple):
    """Simulated values, and where a chain for them starts."""

    made: Simulation
    state: RingState
    problem: Problem


def table(snr: int, tensor: int, start: str) -> StartedChain:
    """The values of the rank study in one cell of its map, and where a chain starts."""
    seed = [0, tensor, snr, round(100 * MISSING)]
    made = make_ring(SHAPE, RANK, snr=snr, missing=MISSING, seed=seed)
    prior = RingPrior((Fixed(),), GammaProcess(2.0))
    problem = make_problem(made.observations, Gaussian(), prior)
    streams = Streams.of_chain(tensor, 0)
    state = gibbs.init(streams, problem, FixedRank(RANK).start(len(SHAPE)))
    if start == "truth":
        cores, deviation = true_cores(made, seed)
        weights = tuple(np.full((1, rank), deviation ** (-1 / len(RANK))) for rank in RANK)
        state = state._replace(
            cores=tuple(cores), weights=weights, nuisance=np.array([10 ** (snr / 10)])
        )
    return StartedChain(made, state, problem)


def true_cores(made: Simulation, seed: list[int]) -> tuple[list[FloatArray], float]:
    """Cores that `make_ring` draws first from this seed, and the deviation it divides by."""
    rng = np.random.default_rng(seed)
    cores: list[FloatArray] = [
        rng.standard_normal((size, 1, RANK[mode - 1], RANK[mode]))
        for mode, size in enumerate(SHAPE)
    ]
    entries = ring.entries(cores, made.observations.coords)
    mean = np.trace(reduce(np.matmul, [core[:, 0].mean(axis=0) for core in cores]))
    true = made.entries(made.observations.coords)
    return cores, float(np.linalg.norm(entries - mean) / np.linalg.norm(true))


def hidden_error(snr: int, tensor: int, start: str, scans: int = SCANS) -> float:
    """RMSE of the mean over the second half of a chain of rank 5, at the cells that are hidden.

    The entries have mean zero and variance one, so that a model that knows nothing has one.
    """
    made, state, problem = table(snr, tensor, start)
    hidden, streams = made.hidden(), Streams.of_chain(tensor, 0)
    total, count = np.zeros(len(hidden.values)), 0
    with one_blas_thread:
        for scan in range(1, scans + 1):
            state, _ = gibbs.step(streams, scan, state, problem)
            if 2 * scan > scans:
                weighted = ring.weighted(state.cores, state.weights)
                total += ring.entries(weighted, hidden.coords)
                count += 1
    return float(np.sqrt(np.mean((total / count - hidden.values) ** 2)))


def kept_rank(snr: int, tensor: int, scans: int = WARMUP) -> float:
    """Error of the rank that adaption ends with if it begins at the truth."""
    _, state, problem = table(snr, tensor, "truth")
    chain = Chain(0, Streams.of_chain(tensor, 0), state)
    length = Length(scans, 0, 1)
    with one_blas_thread:
        explore(chain, problem, Adaption(RANK), length, until=length.adapt)
    return rank_error(chain.state.rank, RANK)


def measure(snr: int, scans: int = SCANS, warmup: int = WARMUP) -> dict[str, float]:
    """Means over the tensors of a cell."""
    tensors = range(N_TENSORS)
    found = {
        start: float(np.mean([hidden_error(snr, each, start, scans) for each in tensors]))
        for start in STARTS
    }
    found["rank error"] = float(np.mean([kept_rank(snr, each, warmup) for each in tensors]))
    return {name: round(each, 3) for name, each in found.items()}


def read() -> dict[str, dict[str, float]]:
    """What is known, by signal-to-noise ratio."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {}


def rank_errors() -> list[float]:
    """Errors of the rank of adaption that began at the truth."""
    return [row["rank error"] for row in read().values()]


def shown() -> str:
    """What is known as a table of the page; empty if nothing is."""
    known = read()
    if not known:
        return ""
    lines = [
        "| SNR (dB) | RMSE at hidden cells, from the truth | from a random start "
        "| error of the rank, adaption from the truth |",
        "|---|---|---|---|",
    ]
    for snr, row in known.items():
        lines.append(f"| {snr} | {row['truth']} | {row['random']} | {row['rank error']} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all cells, and write the page."""
    from paper import reproduction_page
    from paper.results_store import ResultsStore

    write_json(FILE, {str(snr): measure(snr) for snr in NOISE})
    reproduction_page.write(ResultsStore(ROOT / COMMITTED), ROOT / "docs")


if __name__ == "__main__":
    main()
