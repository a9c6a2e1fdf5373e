"""Coverage of intervals on simulated tables; goes on where it stopped.

Every kind of table of `paper.simulated_tables`, at every size, is fitted by both algorithms, with
two chains or rings and everything else at its default. One row per fit is kept in
`paper/results/coverage.json`; a row that is there is not worked out again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as t_distribution

from bayesring import TensorRing, metrics
from bayesring.model.types import FloatArray
from paper.results_store import COMMITTED, ROOT, write_rows
from paper.simulated_tables import CASES, SHAPES, Table, draw_table

LEVELS = (0.5, 0.9, 0.99)
INFERENCES = ("gibbs", "online-em")
CHAINS = 2
"""Half of the default; a quarter for online EM."""
TABLES, LARGE_TABLES = 200, 10
"""Tables per case; of 50,000 observations."""
QUICK_TABLES = 2
ALLOWED = {50: 0.07, 150: 0.05}
"""How far mean coverage may be from the level; 0.03 with more observations."""
BINS = 10
FILE = ROOT / COMMITTED / "coverage.json"
MEDIANS = ("RMSE", "width", "trivial width")
COLUMNS = (
    "table",
    "observations",
    "algorithm",
    "tables",
    *(f"{level:.0%}" for level in LEVELS),
    "",
    "width",
    "trivial width",
    "RMSE",
    "RMSE of the mean",
    "calibration error",
)


class CoverageJob(NamedTuple):
    """One fit."""

    case: str
    n: int
    inference: str
    seed: int


def jobs(tables: int, large_tables: int) -> Iterator[CoverageJob]:
    """All fits, table after table, so that a run that is stopped has as many of every case."""
    for seed in range(tables):
        for n in SHAPES:
            if seed < (large_tables if n == max(SHAPES) else tables):
                yield from (
                    CoverageJob(case, n, each, seed) for case in CASES for each in INFERENCES
                )


def calibration_error(chances: FloatArray, tosses: FloatArray) -> float:
    """Mean gap between predicted chance and share of ones, over bins of equal size."""
    order = np.argsort(chances, kind="stable")
    parts = zip(
        np.array_split(chances[order], BINS), np.array_split(tosses[order], BINS), strict=True
    )
    gaps = [len(ours) * abs(float(ours.mean() - ones.mean())) for ours, ones in parts]
    return sum(gaps) / len(chances)


def measure(job: CoverageJob) -> dict[str, Any]:
    """Fit one table and look up what is hidden."""
    table: Table = draw_table(job.case, job.n, job.seed)
    binary = table.tosses is not None
    ring = TensorRing(
        likelihood="bernoulli" if binary else "gaussian",
        inference=job.inference,
        shape=table.shape,
        random_state=job.seed,
        progress=False,
        n_jobs=1,
        chains=CHAINS,
    )
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables without a single one
        ring.fit(table.coords, table.values)
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - begin, 2)}
    for level in LEVELS:
        ends = ring.predict_interval(table.hidden, level, noise=not binary)
        found[f"{level:.0%}"] = metrics.coverage(table.truth, *ends)
        found[f"width {level:.0%}"] = float(np.mean(ends[1] - ends[0]))
    mean, deviation = float(table.values.mean()), float(table.values.std())
    predicted = ring.predict(table.hidden)
    if table.tosses is not None:
        found["calibration error"] = calibration_error(predicted, table.tosses)
    half = 1.64 * deviation
    found |= {
        "RMSE": metrics.rmse(table.truth, predicted),
        "RMSE of the mean": metrics.rmse(table.truth, np.full(len(predicted), mean)),
        "trivial 90%": metrics.coverage(
            table.truth, np.full(1, mean - half), np.full(1, mean + half)
        ),
        "trivial width": 2 * half,
        "rank": int(max(ring.rank_)),
    }
    return {
        name: round(each, 5) if isinstance(each, float) else each for name, each in found.items()
    }


def read(path: Path, kind: Callable[..., Any] = CoverageJob) -> dict[Any, dict[str, Any]]:
    """What is known, by jobs of this kind."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return {kind(*row["job"]): row["found"] for row in rows}


def keep(path: Path, known: dict[Any, dict[str, Any]]) -> None:
    """Write it down."""
    write_rows(path, ({"job": list(job), "found": found} for job, found in sorted(known.items())))


def run(
    path: Path,
    wanted: Iterator[Any],
    seconds: float = np.inf,
    kind: Callable[..., Any] = CoverageJob,
    work_out: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[Any, dict[str, Any]]:
    """Work out what is missing, by `measure` unless told, for so many seconds at most."""
    known, begin = read(path, kind), time.monotonic()
    for job in wanted:
        if time.monotonic() - begin > seconds:
            break
        if job not in known:
            known[job] = (work_out or measure)(job)
            keep(path, known)
    return known


def verdict(n: int, rows: list[dict[str, Any]]) -> str:
    """Whether mean coverage is as near to every level as it should be.

    "off" if it is not, "open" if chance might make up for it: the mean is beyond the limit, but its
    95 % interval, by a t distribution, is not.
    """
    allowed, found = ALLOWED.get(n, 0.03), ""
    wide = float(t_distribution.ppf(0.975, len(rows) - 1)) if len(rows) > 1 else np.inf
    for level in LEVELS:
        inside = [row[f"{level:.0%}"] for row in rows]
        error = np.std(inside, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else 1.0
        gap = abs(np.mean(inside) - level)
        if gap > allowed + wide * error:
            return "off"
        if gap > allowed:
            found = "open"
    return found


def averages(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Means over tables; medians of widths and errors, which noise without variance would spoil."""
    return {
        name: float(
            (np.median if name.startswith(MEDIANS) else np.mean)([row[name] for row in rows])
        )
        for name in rows[0]
    }


def table(known: dict[CoverageJob, dict[str, Any]]) -> str:
    """One line for every kind of table, size and algorithm."""
    lines = []
    for key in product(CASES, SHAPES, INFERENCES):
        rows = [found for job, found in known.items() if job[:3] == key]
        if not rows:
            continue
        case, n, inference = key
        mean = averages(rows)
        cells = [
            case,
            f"{n:,}",
            inference,
            str(len(rows)),
            *(f"{mean[f'{level:.0%}']:.1%}" for level in LEVELS),
            verdict(n, rows),
            f"{mean['width 90%']:.2f}",
            f"{mean['trivial width']:.2f}",
            f"{mean['RMSE']:.3f}",
            f"{mean['RMSE of the mean']:.3f}",
            f"{mean['calibration error']:.3f}" if "calibration error" in mean else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *lines])


def main() -> None:
    """Work out what is missing, or some of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--large-tables", type=int, default=LARGE_TABLES)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--only", action="append", help="a case, a size or an algorithm")
    asked = parser.parse_args()
    groups = [{*CASES}, {*map(str, SHAPES)}, {*INFERENCES}]
    chosen = [{*(asked.only or ())} & group or group for group in groups]
    wanted = (
        job
        for job in jobs(asked.tables, asked.large_tables)
        if all(str(part) in some for part, some in zip(job, chosen, strict=False))
    )
    run(asked.out, wanted, asked.seconds)


if __name__ == "__main__":
    main()
