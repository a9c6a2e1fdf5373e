"""A model of the time of a scan on a cluster, fitted to measured runs.

    python -m paper.bench.cluster --rows 100000 1000000 --workers 2 --bandwidth inf 2e7 --store
    python -m paper.bench.scan_model

With n observations, D modes, W workers of one thread on a machine of C cores, a ring of B bytes,
a network of N bytes per second and a delay of t seconds per step, a scan takes

    T = (a n (D + 1/2) + b sum_d I_d) / min(W, C) + (D + 1) (latency + c W + t)
        + k B (2 + ceil(log2 W)) / N

a and b are fitted to the CPU time of the arithmetic, which other jobs hardly change; latency, c and
k to the rest of the wall time, by least squares of relative errors, none of them negative. If
the bytes that the model counts are those that travel, k is 1. Where other jobs ran, latency and c
are too large; the CPU time of driver and scheduler, (D + 1) (p + q W), is told beside them.
``--predict n W N`` prints T.
"""

from __future__ import annotations

import argparse
import csv
from math import ceil, log2
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from bayesring.model.types import FloatArray
from paper.bench.cluster import RUNS, SHAPE

ORDER = len(SHAPE)


class ClusterRun(NamedTuple):
    """A measured run."""

    rows: float
    workers: int
    cores: int
    delay: float
    bandwidth: float
    ring: float
    """Bytes of the ring."""
    arithmetic: float
    """CPU seconds per scan of all workers on their blocks."""
    wall: float
    """Seconds per scan."""
    moved: float = 0.0
    """Bytes per scan from and to the driver."""
    driver: float = 0.0
    """CPU seconds per scan of driver and scheduler."""
    load: float = 0.0
    """Jobs that wanted a core at the end."""

    @property
    def at_once(self) -> int:
        """Workers that compute at the same time."""
        return min(self.workers, self.cores)

    @property
    def bytes(self) -> float:
        """Bytes per scan that the model counts: every core to the last worker, and back."""
        return self.ring * (2 + ceil(log2(self.workers)))


class ScanModel(NamedTuple):
    """The constants."""

    a: float
    """Seconds per observation and mode."""
    b: float
    """Seconds per slice."""
    latency: float
    """Seconds per step."""
    c: float
    """Seconds per step and worker."""
    network: float
    """Seconds that a byte takes, times the bandwidth."""

    def arithmetic(self, run: ClusterRun) -> float:
        """CPU seconds per scan on blocks."""
        return float(np.dot([self.a, self.b], counts(run)))

    def seconds(self, run: ClusterRun) -> float:
        """Seconds per scan."""
        rest = np.dot([self.latency, self.c, self.network], waits(run))
        return float(self.arithmetic(run) / run.at_once + (ORDER + 1) * run.delay + rest)


def counts(run: ClusterRun) -> list[float]:
    """What a and b are multiplied by."""
    return [run.rows * (ORDER + 0.5), float(sum(SHAPE))]


def waits(run: ClusterRun) -> list[float]:
    """What latency, c and k are multiplied by."""
    return [ORDER + 1, (ORDER + 1) * run.workers, run.bytes / run.bandwidth]


def fitted(runs: list[ClusterRun]) -> ScanModel:
    """The constants by least squares of relative errors."""
    a, b = solved([counts(run) for run in runs], [run.arithmetic for run in runs])
    work = [np.dot([a, b], counts(run)) / run.at_once for run in runs]
    rest = [run.wall - own - (ORDER + 1) * run.delay for run, own in zip(runs, work, strict=True)]
    weights = [1 / run.wall for run in runs]
    return ScanModel(a, b, *solved([waits(run) for run in runs], rest, weights))


def solved(
    factors: list[list[float]], found: list[float], weights: list[float] | None = None
) -> FloatArray:
    """Constants, none negative, with the smallest sum of squared errors, by default relative."""
    scale = 1 / np.array(found) if weights is None else np.array(weights)
    matrix = np.array(factors) * scale[:, None]
    size = np.abs(matrix).max(axis=0)
    size[size == 0] = 1.0
    return np.asarray(nnls(matrix / size, np.array(found) * scale)[0] / size)


def read_runs(path: Path) -> list[ClusterRun]:
    """The runs of a file that `paper.bench.cluster` has written."""
    with path.open(newline="") as file:
        return [
            ClusterRun(
                float(row["rows"]),
                int(float(row["workers"])),
                int(float(row["cores"])),
                float(row["delay"]),
                float(row["bandwidth"]),
                1e6 * float(row["MB of the ring"]),
                float(row["arithmetic, CPU seconds per scan, all workers"]),
                float(row["seconds per scan"]),
                1e6 * float(row["MB from and to the driver per scan"]),
                float(row["CPU seconds of driver and scheduler per scan"]),
                float(row["load"]),
            )
            for row in csv.DictReader(file)
        ]


def table(runs: list[ClusterRun], model: ScanModel) -> list[str]:
    """Measured and predicted figures as a table in Markdown."""
    lines = [
        "| rows | workers | delay, s | MB/s | MB moved | model | arithmetic, CPU s | model "
        "| scan, s | model | load |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        speed = "" if np.isinf(run.bandwidth) else f"{run.bandwidth / 1e6:g}"
        figures = (
            f"{run.rows:,.0f} | {run.workers} | {run.delay:g} | {speed} | {run.moved / 1e6:.1f} | "
            f"{run.bytes / 1e6:.1f} | {run.arithmetic:.3f} | {model.arithmetic(run):.3f} | "
            f"{run.wall:.2f} | {model.seconds(run):.2f} | {run.load:.0f}"
        )
        lines.append(f"| {figures} |")
    return lines


def summary(runs: list[ClusterRun], model: ScanModel) -> list[str]:
    """The constants, and how far the model is off."""
    errors = np.array([model.seconds(run) / run.wall - 1 for run in runs])
    work = np.array([model.arithmetic(run) / run.arithmetic - 1 for run in runs])
    own, each = solved([waits(run)[:2] for run in runs], [run.driver for run in runs])
    return [
        f"a = {1e9 * model.a:.1f} ns per observation and mode",
        f"b = {1e6 * model.b:.2f} us per slice",
        f"latency = {1e3 * model.latency:.1f} ms per step",
        f"c = {1e3 * model.c:.1f} ms per step and worker",
        f"CPU of driver and scheduler = {1e3 * own:.1f} ms per step, and {1e3 * each:.1f} ms per "
        "step and worker",
        f"k = {model.network:.3f} times the bytes over the bandwidth",
        f"median error: {np.median(np.abs(work)):.1%} of the arithmetic, "
        f"{np.median(np.abs(errors)):.1%} of a scan (largest {np.abs(errors).max():.1%})",
    ]


def added(runs: list[ClusterRun]) -> list[str]:
    """What an added delay or a narrow network costs, over what the model says: medians of pairs.

    A run is compared with the last one before it, so other jobs matter less than in the fit.
    """
    known: dict[tuple[float, ...], ClusterRun] = {}
    by_delay, by_bytes = [], []
    for run in runs:
        known[run[:5]] = run
        quick = known.get((*run[:3], 0.0, run.bandwidth))
        wide = known.get((*run[:4], np.inf))
        if run.delay and quick is not None:
            by_delay.append((run.wall - quick.wall) / ((ORDER + 1) * run.delay))
        if np.isfinite(run.bandwidth) and wide is not None:
            by_bytes.append((run.wall - wide.wall) / (run.bytes / run.bandwidth))
    found = {"a delay": by_delay, "a narrow network": by_bytes}
    return [
        f"{name} adds {np.median(own):.2f} times what the model says (quartiles "
        f"{np.quantile(own, 0.25):.2f} and {np.quantile(own, 0.75):.2f}, {len(own)} pairs)"
        for name, own in found.items()
        if own
    ]


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument(
        "--predict", type=float, nargs=3, metavar=("ROWS", "WORKERS", "BYTES_PER_SECOND")
    )
    given = parser.parse_args()
    runs = read_runs(given.runs)
    model = fitted(runs)
    print("\n".join([*table(runs, model), "", *summary(runs, model), *added(runs)]))  # noqa: T201
    if given.predict is not None:
        rows, workers, bandwidth = given.predict
        run = ClusterRun(rows, int(workers), int(workers), 0.0, bandwidth, runs[0].ring, 0.0, 0.0)
        print(f"predicted: {model.seconds(run):.3g} s per scan")  # noqa: T201


if __name__ == "__main__":
    main()
