"""Coverage of intervals on real held-out data; writes docs/reliability.md.

Rank 5, three chains, fixed seeds; each seed determines the known cells and the chains. Everything
that is fitted, including the calibration of the intervals, comes from the known cells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rich.progress import track

from bayesring import TensorRing, metrics
from bayesring.datasets import Dataset, load_indian_pines, load_ushcn, random_split
from bayesring.model.types import FloatArray
from paper.results_store import COMMITTED, ROOT, write_json

SEEDS = (0, 1, 2)
LEVELS = (0.5, 0.9)
N_TEST = 40_000
CASES: list[tuple[str, Callable[[], Dataset], float]] = [
    ("USHCN", load_ushcn, 0.05),
    ("USHCN", load_ushcn, 0.10),
    ("USHCN", load_ushcn, 0.50),
    ("Indian Pines", load_indian_pines, 0.01),
]


def measure(tensor: FloatArray, share: float, seed: int) -> dict[str, float]:
    """Fit one split and score intervals on hidden cells."""
    split = random_split(tensor.shape, share, seed)
    ring = TensorRing(5, chains=3, shape=tensor.shape, random_state=seed, progress=False)
    begin = time.perf_counter()
    ring.fit(split.train, tensor[tuple(split.train.T)])
    seconds = time.perf_counter() - begin
    rng = np.random.default_rng(seed)
    cells = split.test[rng.choice(len(split.test), N_TEST, replace=False)]
    truth = tensor[tuple(cells.T)]
    covered = {
        f"{level:.0%}": metrics.coverage(truth, *ring.predict_interval(cells, level))
        for level in LEVELS
    }
    calibrated: Any = ring.posterior_.likelihood
    plain = replace(ring.posterior_, likelihood=replace(calibrated, tails=()))
    covered["50% if normal"] = metrics.coverage(truth, *plain.interval(cells, 0.5))
    scored = cells[:5000]
    samples = ring.sample(scored, 200)
    return covered | {
        "RMSE": metrics.rmse(truth, ring.predict(cells)),
        "CRPS": metrics.crps(truth[:5000], samples),
        "log score": float(ring.posterior_.log_score(scored, truth[:5000]).mean()),
        "seconds": seconds,
    }


def measure_all() -> list[dict[str, Any]]:
    """Measure every case with every seed."""
    jobs = [(case, seed) for case in CASES for seed in SEEDS]
    return [
        {"data": name, "known": share, "seed": seed} | measure(loader().tensor, share, seed)
        for (name, loader, share), seed in track(jobs, "coverage")
    ]


def page(results: list[dict[str, Any]]) -> str:
    """The results as a page, with means and ranges over the seeds."""
    lines = []
    for name, _, share in CASES:
        rows = [row for row in results if row["data"] == name and row["known"] == share]
        mean = {key: np.mean([row[key] for row in rows]) for key in rows[0] if key != "data"}
        ends = [[row[f"{level:.0%}"] for row in rows] for level in LEVELS]
        spread = [f"{min(each):.1%} to {max(each):.1%}" for each in ends]
        lines.append(
            f"| {name}, {share:.0%} known | {mean['50%']:.1%} ({spread[0]}) | "
            f"{mean['90%']:.1%} ({spread[1]}) | {mean['RMSE']:.4g} | {mean['CRPS']:.4g} | "
            f"{mean['log score']:.3f} | {mean['50% if normal']:.1%} |"
        )
    return PAGE.format(table="\n".join(lines), seeds=", ".join(map(str, SEEDS)))


def main() -> None:
    """Measure, then write the numbers and the page."""
    results = measure_all()
    write_json(ROOT / COMMITTED / "reliability.json", results)
    (ROOT / "docs" / "reliability.md").write_text(page(results))


PAGE = """# How far the intervals can be trusted

Made by `make reliability`; the numbers behind it are in `paper/results/reliability.json`.

Some cells of real data were hidden, a ring of rank 5 was fitted to the rest (three chains, all
other settings at their defaults), and the hidden values were compared with their intervals. An
honest 90 % interval contains 90 % of them. Means over seeds {seeds}, with the range over seeds:

| data | 50 % coverage | 90 % coverage | RMSE | CRPS | log score | 50 %, assuming normal noise |
|---|---|---|---|---|---|---|
{table}

## Why this works

The noise in real tables is not normal: most values lie close to the fit and a few far off, and some
places or bands are noisier than others. If the noise is treated as normal, intervals that are right
at 90 % are far too wide at 50 %; the last column shows their coverage. A tenth of the training data
is therefore held out during warm-up, for two purposes. The held-out squared error in excess of the
posterior variance bounds the noise from below. The sizes of the held-out errors, in predicted
standard deviations, determine how much to stretch or shrink the intervals of each level. The chains
then continue with all of the training data. Hidden cells are never used.

## What it does not promise

The calibration holds on average over cells like the training cells. It does not guarantee correct
intervals within each slice if some slices are much noisier than others, nor for cells unlike the
known ones (a new station, or months after the last). Standard deviations, predictive samples, CRPS
and log score come from the normal mixture itself, without the stretching.

## What was fuzzed

`make fuzz` gives the library, its command line and every reader input that was generated or
damaged, in a process that is watched: each case must work or be refused in one sentence. An error
of another library, a crash, no answer within ten seconds, a wrong shape, or a cell, key or row that
comes back changed is a failure. Recorded with seed 1, target by target, each after the last fix
that it led to:

| target | cases | work | refused | failed |
|---|---|---|---|---|
| fit | 3,922 | 3,762 | 160 | 0 |
| complete | 4,902 | 2,118 | 2,784 | 0 |
| predict | 5,883 | 2,641 | 3,242 | 0 |
| arguments | 19,608 | 4,128 | 15,480 | 0 |
| settings | 9,804 | 600 | 9,204 | 0 |
| tables | 8,824 | 6,569 | 2,255 | 0 |
| csv | 9,804 | 2,945 | 6,859 | 0 |
| parquet | 6,863 | 1,228 | 5,635 | 0 |
| stream | 3,922 | 621 | 3,301 | 0 |
| arrow | 4,902 | 1,168 | 3,734 | 0 |
| npy | 7,844 | 1,950 | 5,894 | 0 |
| npz | 4,902 | 404 | 4,498 | 0 |
| netcdf | 2,451 | 593 | 1,857 | 1 |
| zarr | 785 | 429 | 356 | 0 |
| model | 2,451 | 295 | 2,156 | 0 |
| checkpoint | 981 | 794 | 187 | 0 |
| paths | 1,177 | 405 | 772 | 0 |
| command | 981 | 138 | 843 | 0 |
| all | 100,006 | 30,788 | 69,217 | 1 |

The failure is a NetCDF file whose damage makes HDF5 itself work for more than ten seconds on one
text; read NetCDF files from strangers in a process of their own. `make soak` went through 622
cycles of fit, save, load, predict and complete in ten minutes: memory grew by 0.5 MB per 100
cycles, no file stayed open, and all repeated seeds gave the same bits.
"""


if __name__ == "__main__":
    main()
