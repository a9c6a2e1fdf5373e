"""What large batches of online EM cost in accuracy, and in CPU time.

    python -m paper.bench.large_batches --rows 1000000 --sizes auto 65536 262144

A ring of rank 3 plus noise is written to Parquet files, and learned by one thread with the default
size of a batch and with larger ones. A cluster gives the same bits. Errors are those of predicted
entries of the planted ring at random cells; the rank is known.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesring import TensorRing, metrics
from bayesring.model import ring
from paper.planted_stream import RANK, make_stream, planted_cores

SHAPE = (1_000, 1_000, 100)
CELLS = 50_000


class Learned(NamedTuple):
    """One fit."""

    batch_size: int | str
    error: float
    """Root mean squared distance from the planted ring."""
    coverage: float
    """Share of cells whose planted entry lies within a 90 % interval for it."""
    seconds: float
    """CPU seconds."""
    passes: float
    """Rows seen, over rows."""


def learn(path: Path, rows: int, size: int | str, seed: int, epochs: int) -> Learned:
    """Fit, and compare with the planted ring."""
    settings: dict[str, Any] = {"epochs": epochs, "random_state": seed, "progress": False}
    model = TensorRing(RANK, inference="online-em", batch_size=size, n_jobs=1, **settings)
    begin = time.process_time()
    model.fit(path, modes=["i", "j", "k"], value="value")
    seconds = time.process_time() - begin
    rng = np.random.default_rng(1)
    cells = np.stack([rng.integers(0, own, CELLS) for own in model.shape_], axis=1)
    truth = ring.entries(planted_cores(SHAPE, 0), cells)
    lower, upper = model.predict_interval(cells, 0.9, noise=False)
    inside = float(np.mean((lower <= truth) & (truth <= upper)))
    passes = model.estimates_[0].rows_seen / rows
    return Learned(size, metrics.rmse(truth, model.predict(cells)), inside, seconds, passes)


def size_of(text: str) -> int | str:
    """A number, or "auto"."""
    return text if text == "auto" else int(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sizes", type=size_of, nargs="+", default=["auto", 65_536, 262_144])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=200)
    given = parser.parse_args()
    print("| batch_size | RMSE to the truth | coverage of 90 % | CPU seconds | passes |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        make_stream(path, given.rows, SHAPE, files=8)
        for size in given.sizes:
            found = learn(path, given.rows, size, given.seed, given.epochs)
            name = f"{size:,}" if isinstance(size, int) else size
            figures = f"{found.error:.4f} | {found.coverage:.3f} | {found.seconds:.1f}"
            print(f"| {name} | {figures} | {found.passes:.1f} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
