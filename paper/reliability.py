"""Coverage of intervals on real held-out data and on simulated tables; writes docs/reliability.md.

On real data: rank 5, three chains, fixed seeds; each seed draws the known cells and the chains.
Everything that is fitted, the calibration of the intervals included, comes from the known cells.
For the simulated tables see `paper.coverage`. What is in the files of results is not worked out
again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rich.progress import track

from bayesring import TensorRing, metrics
from bayesring.datasets import Dataset, load_indian_pines, load_ushcn, random_split
from bayesring.model.types import FloatArray
from paper import coverage, gap_coverage
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


def page(results: list[dict[str, Any]], simulated: str, gaps: str) -> str:
    """The results as a page, means and ranges over the seeds."""
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
    seeds = ", ".join(map(str, SEEDS))
    measured = PAGE.format(table="\n".join(lines), seeds=seeds, simulated=simulated, gaps=gaps)
    return measured + MUTATION_RUN


def main() -> None:
    """Measure what is missing, and write numbers and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two tables of each kind, the small")
    parser.add_argument("--again", action="store_true", help="measure real data anew")
    parser.add_argument("--page", action="store_true", help="only write the page")
    asked = parser.parse_args()
    path = ROOT / COMMITTED / "reliability.json"
    if asked.again or not path.exists():
        write_json(path, measure_all())
    tables = coverage.QUICK_TABLES if asked.quick else coverage.TABLES
    large = 0 if asked.quick else coverage.LARGE_TABLES
    wanted = iter(()) if asked.page else coverage.jobs(tables, large)
    simulated = coverage.run(coverage.FILE, wanted)
    gaps = gap_coverage.lines(coverage.read(gap_coverage.FILE, gap_coverage.GapJob))
    content = page(json.loads(path.read_text()), coverage.table(simulated), gaps)
    (ROOT / "docs" / "reliability.md").write_text(content)


PAGE = """# How far the intervals can be trusted

`make reliability` measures coverage and writes this page. The numbers behind it are in
`paper/results/reliability.json` and `paper/results/coverage.json`. An interrupted run resumes where
it stopped; `QUICK=1` simulates two tables of each kind, and `AGAIN=1` repeats the measurements on
real data.

## Real data

Some cells of real data were hidden, a ring of rank 5 was fitted to the rest (three chains, all
other settings at their defaults), and the hidden values were compared with their intervals. An
honest 90 % interval contains 90 % of them. Means over seeds {seeds}, with the range over seeds:

| data | 50 % coverage | 90 % coverage | RMSE | CRPS | log score | 50 %, assuming normal noise |
|---|---|---|---|---|---|---|
{table}

## Gaps

Cells of real tables are seldom missing one by one: a sensor fails for a day, or for good. Here
known cells were hidden in patterns, and a ring was fitted to the others with nothing set but the
positions of its modes. Mean coverage should be 87 to 93 %, or 84 to 96 % where a series or the
table ends; rows outside that are marked "off". Of every mask, up to 20,000 hidden cells were looked
up. `make gaps` adds masks, up to ten.

{gaps}

## Simulated tables

We simulated tables from rings of rank 2 with 15 to 33 % of the cells known, fitted each with two
chains (or rings, under online EM) and otherwise default settings, and checked up to 2,000 hidden
cells per table. Coverage is averaged over the number of tables in the fourth column. The aim is 200
tables per row (10 where there are 50,000 observations); each run of `make reliability` adds some
that are missing. Coverage should be within 3 points of its level, within 5 at 150 observations and
within 7 at 50. Rows outside that range are marked "off"; rows with too few tables to tell are
marked "open".

In binary tables about 8 % of the values are ones. There we check whether the true probability lies
in the interval for the probability (`noise=False`). The calibration error is the mean gap, over ten
bins, between predicted probabilities and observed shares of ones. Widths are those of 90 %
intervals, in standard deviations of the signal. The trivial width is that of the mean +- 1.64
standard deviations of the training values, and the trivial RMSE that of predicting their mean.
Widths and RMSE are medians over tables.

{simulated}

## Why this works

The noise in real tables is not normal: most values lie close to the fit and a few far off, and some
places or bands are noisier than others. If the noise is treated as normal, intervals that are right
at 90 % are far too wide at 50 %; the last column shows their coverage. A tenth of the training data
is therefore held out during warm-up, for two purposes. The held-out squared error in excess of the
posterior variance bounds the noise from below. The sizes of the held-out errors, in predicted
standard deviations, determine how much to stretch or shrink the intervals of each level. The chains
then continue with all of the training data. Hidden cells are never used.

With fewer than 2,000 observations, a tenth is too small a sample. Instead, once the chains have
ended, they run for a few more scans without one eighth of the observations, then without the next
eighth, and so on. Where the omitted values fall in their predictive distributions determines the
tails.

Online EM on its own underestimates its uncertainty. Its rings therefore serve as starting points of
short Gibbs chains, which provide the draws and the calibration. Only for data in files, or with
more than 131,072 observations, are draws taken from a normal distribution around each ring.

## What it does not promise

Calibration holds on average, over cells that resemble the training cells. It does not guarantee
each slice's intervals if some slices are much noisier than others, or those of cells unlike the
known ones (a new station, the months after the last). `ring.check()` sees neither: it simulates
from the model itself, and finds out whether fits come back with the right uncertainty when the
model is true, and whether the observed values scatter as much as it says. Standard deviations and
predictive samples, and hence CRPS, follow the calibrated intervals; the log score is that of the
uncalibrated mixture.
"""

MUTATION_RUN = """
## What the mutation run covers

`make mutants` takes the bugs of `tests/mutants/catalogue.py` one at a time. Each is one replacement
in one file of `src/bayesring`: a stream that ignores its seed, held-out rows that are trained on, a
setting that a checkpoint forgets. It is planted in a copy of the package, and the few tests that
the catalogue names for it are run. The run passes if these tests pass without any bug and at least
one of them fails with each. Every package has such bugs; many modules have none. `make test` checks
that each bug can still be planted, without planting it.

A passing run shows that these tests would notice these bugs, on the machine where it was run, and
no more. The bugs were written by hand, starting with those that an audit had slipped past the
tests, and tests were then written to catch them. That all are caught therefore says little about
other bugs. It says nothing about bugs in two places at once, the script of the report page,
`paper/`, or any number in the tables above.

## What was fuzzed

`make fuzz` feeds generated and damaged input to the library, its command line and every reader, in
a watched process. Each case must either work or be rejected in one sentence. An exception from
another library, a crash, no answer within ten seconds, a wrong shape, or a cell, key or row that
comes back changed counts as a failure. The counts are for seed 35, after what its first run found
was mended: 25 failures of three kinds (a `max_time` beyond the largest float, files without a
single value, and file names with a line separator in a message), and a page of Parquet that claimed
two gigabytes and took its time. Where something was mended, the target was run again. Four more
cases were too slow beside other work on the same two cores, and were not when run on their own.

| target | cases | work | refused | failed |
|---|---|---|---|---|
| fit | 3,922 | 3,785 | 137 | 0 |
| complete | 4,903 | 2,162 | 2,741 | 0 |
| predict | 5,883 | 2,680 | 3,203 | 0 |
| arguments | 19,608 | 3,986 | 15,622 | 0 |
| settings | 9,804 | 966 | 8,838 | 0 |
| tables | 8,824 | 6,512 | 2,312 | 0 |
| csv | 9,804 | 3,769 | 6,035 | 0 |
| parquet | 6,863 | 1,221 | 5,642 | 0 |
| stream | 3,922 | 600 | 3,322 | 0 |
| arrow | 4,902 | 1,235 | 3,667 | 0 |
| npy | 7,844 | 1,807 | 6,037 | 0 |
| npz | 4,902 | 395 | 4,507 | 0 |
| netcdf | 2,451 | 572 | 1,879 | 0 |
| zarr | 785 | 405 | 380 | 0 |
| model | 2,451 | 293 | 2,158 | 0 |
| checkpoint | 981 | 783 | 198 | 0 |
| paths | 1,177 | 400 | 777 | 0 |
| command | 981 | 122 | 859 | 0 |
| all | 100,007 | 31,693 | 68,314 | 0 |

Texts of NetCDF files are checked before HDF5 reads them, because a damaged one can keep it busy
without end; HDF5 itself is not checked further, so read NetCDF files from strangers in a separate
process. `make soak` went through 5,982 cycles of fit, save, load, predict and complete in an hour:
memory grew by 0.001 MB per 100 cycles, no file stayed open, and all repeated seeds gave the same
bits.
"""


if __name__ == "__main__":
    main()
