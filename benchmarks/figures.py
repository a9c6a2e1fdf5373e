"""Accuracy and speed on real data: the figures of the README, printed as one table.

Needs the data sets: see `bayesring.datasets`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bayesring import TensorRing, metrics
from bayesring.datasets import load_enron, load_ushcn, random_split

REFERENCE_MS = 2450
"""Milliseconds per Gibbs scan of the paper's public code, USHCN, rank 5, two threads."""


def ushcn(prior: str, seeds: range) -> dict[str, Any]:
    """Rank 5, one chain, 10 % observed: errors, coverage, milliseconds per scan."""
    tensor = load_ushcn()
    rows = []
    for seed in seeds:
        split = random_split(tensor.shape, 0.1, seed)
        truth = tensor[tuple(split.test.T)]
        ring = TensorRing(5, prior=prior, shape=tensor.shape, chains=1, random_state=seed)
        begin = time.perf_counter()
        ring.fit(split.train, tensor[tuple(split.train.T)])
        seconds = time.perf_counter() - begin
        predicted = ring.predict_tensor()[tuple(split.test.T)]
        some = np.random.default_rng(seed).choice(len(truth), 40_000, replace=False)
        lower, upper = ring.predict_interval(split.test[some])
        rows.append(
            {
                "RMSE": metrics.rmse(truth, predicted),
                "MAE": metrics.mae(truth, predicted),
                "coverage of 90 %": metrics.coverage(truth[some], lower, upper),
                "ms per scan": 1e3 * seconds / (ring.warmup + ring.draws),
            }
        )
    return _mean(rows)


def enron() -> dict[str, Any]:
    """Rank 3, one chain, five folds."""
    rows = []
    for fold in range(5):
        train, test = load_enron(fold)
        ring = TensorRing(3, likelihood="bernoulli", shape=train.shape, chains=1, random_state=fold)
        probability = ring.fit(train.coords, train.values).predict(test.coords)
        rows.append(
            {
                "AUC": metrics.auc(test.values, probability),
                "accuracy": metrics.accuracy(test.values, probability),
            }
        )
    return _mean(rows)


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def main() -> None:
    """Run everything, print a table, write JSON."""
    warm = TensorRing(2, warmup=1, draws=1, chains=1, progress=False)
    warm.fit(np.array([[0, 0, 0], [1, 1, 1]]), [0.0, 1.0])  # compile outside the timings
    results = {
        "USHCN, rank 5, prior='paper'": ushcn("paper", range(3)),
        "USHCN, rank 5, prior='hierarchical'": ushcn("hierarchical", range(3)),
        "Enron, rank 3, prior='hierarchical'": enron(),
    }
    for name, result in results.items():
        if "ms per scan" in result:
            result["times faster than the reference"] = REFERENCE_MS / result["ms per scan"]
        print(f"{name}: " + ", ".join(f"{key} {value:.3g}" for key, value in result.items()))
    path = Path("results") / "figures.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
