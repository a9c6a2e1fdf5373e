"""Coverage of intervals where real tables miss cells in patterns; goes on where it stopped.

Some of the known cells of a table are hidden: single ones, whole days of a series, some steps of
all series, all that follows a date, or both ends. A ring from the defaults is fitted to the others
and has to cover what was hidden. One row per fit is kept in `paper/results/gaps.json`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring import TensorRing, datasets, metrics
from bayesring.datasets import Dataset
from bayesring.model.types import IntArray, Observations
from paper import coverage
from paper.arena import trivial
from paper.results_store import COMMITTED, ROOT

LEVEL = 0.9
MASKS = 10
MOST = 20_000
"""Hidden cells that are looked up, at most."""
FILE = ROOT / COMMITTED / "gaps.json"
NEAR, FAR = (0.87, 0.93), (0.84, 0.96)
"""Where mean coverage should be: within what is known, and beyond its ends."""
COLUMNS = (
    "table",
    "hidden",
    "masks",
    "90 % intervals cover",
    "from mask to mask",
    "",
    "RMSE",
    "RMSE of main effects",
)
Hide = Callable[[Generator, IntArray, tuple[int, ...]], NDArray[np.bool]]
"""Which of the cells (n, D) of a tensor of some shape to hide."""


def single(rng: Generator, coords: IntArray, shape: tuple[int, ...]) -> NDArray[np.bool]:
    """Three of ten cells."""
    return rng.random(len(coords)) < 0.3


def fibres(
    rng: Generator, coords: IntArray, shape: tuple[int, ...], modes: tuple[int, ...]
) -> NDArray[np.bool]:
    """Three of ten fibres: cells with the same labels in `modes` are hidden together."""
    chosen = rng.random([shape[mode] for mode in modes]) < 0.3
    return np.asarray(chosen[tuple(coords[:, mode] for mode in modes)])


def steps(
    rng: Generator, coords: IntArray, shape: tuple[int, ...], day: int, slot: int
) -> NDArray[np.bool]:
    """On three of ten days, a third of the slots in a row, of all series."""
    length = max(1, shape[slot] // 3)
    chosen = rng.random(shape[day]) < 0.3
    first = rng.integers(0, shape[slot] - length + 1, shape[day])
    since = coords[:, slot] - first[coords[:, day]]
    return np.asarray(chosen[coords[:, day]] & (since >= 0) & (since < length))


def for_good(
    rng: Generator, coords: IntArray, shape: tuple[int, ...], series: int, day: int
) -> NDArray[np.bool]:
    """Two of ten series after some day of the second half."""
    ends = rng.integers(shape[day] // 2, shape[day], shape[series])
    chosen = rng.random(shape[series]) < 0.2
    return np.asarray(chosen[coords[:, series]] & (coords[:, day] >= ends[coords[:, series]]))


def both_ends(
    rng: Generator, coords: IntArray, shape: tuple[int, ...], day: int
) -> NDArray[np.bool]:
    """The first and the last tenth of the days, one day more or less."""
    tenth = max(1, shape[day] // 10 + int(rng.integers(-1, 2)))
    return np.asarray((coords[:, day] < tenth) | (coords[:, day] >= shape[day] - tenth))


def stripes(
    rng: Generator, coords: IntArray, shape: tuple[int, ...], row: int, band: int
) -> NDArray[np.bool]:
    """In every band, five stripes of four rows."""
    hidden = np.zeros((shape[row], shape[band]), dtype=bool)
    for column in hidden.T:
        for first in rng.integers(0, shape[row] - 3, 5):
            column[first : first + 4] = True
    return np.asarray(hidden[coords[:, row], coords[:, band]])


class Gappy(NamedTuple):
    """A table, and how its cells are hidden."""

    load: Callable[[], Dataset]
    patterns: Mapping[str, tuple[Hide, tuple[float, float]]]
    """Name: what hides cells, and where mean coverage should be."""
    known: float = 1.0
    """Share of all cells that is known before anything is hidden."""


OF_DAYS: dict[str, tuple[Hide, tuple[float, float]]] = {
    "single cells": (single, NEAR),
    "whole days of a series": (partial(fibres, modes=(0, 1)), NEAR),
    "some hours of all series": (partial(steps, day=1, slot=2), NEAR),
    "a series after some day": (partial(for_good, series=0, day=1), FAR),
    "the first and last days": (partial(both_ends, day=1), FAR),
}
TABLES = {
    "Birmingham": Gappy(datasets.load_birmingham, OF_DAYS),
    "Hangzhou": Gappy(datasets.load_hangzhou, OF_DAYS),
    "USHCN": Gappy(
        datasets.load_ushcn, {"months of a place": (partial(fibres, modes=(1, 2)), NEAR)}, 0.2
    ),
    "Indian Pines": Gappy(
        datasets.load_indian_pines,
        {"stripes of rows": (partial(stripes, row=0, band=2), NEAR)},
        0.02,
    ),
}


class GapJob(NamedTuple):
    """One fit."""

    table: str
    pattern: str
    mask: int


def jobs(masks: int = MASKS) -> Iterator[GapJob]:
    """All fits, mask after mask, so that a run that is stopped has as many of every pattern."""
    for mask in range(masks):
        for name, table in TABLES.items():
            yield from (GapJob(name, pattern, mask) for pattern in table.patterns)


def measure(job: GapJob) -> dict[str, Any]:
    """Hide, fit, and look up what is hidden."""
    table = TABLES[job.table]
    data, rng = table.load(), np.random.default_rng([job.mask, *job.pattern.encode()])
    coords, values = data.observations.coords, data.observations.values
    if table.known < 1:
        some = rng.random(len(values)) < table.known
        coords, values = coords[some], values[some]
    hidden = table.patterns[job.pattern][0](rng, coords, data.shape)
    train = Observations(coords[~hidden], values[~hidden], data.shape)
    ring = TensorRing(shape=data.shape, random_state=job.mask, progress=False)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counts as real values, and chains that differ
        known: dict[str, Any] = {"positions": data.positions, "modes": list(data.labels)}
        ring.fit(train.coords, train.values, **known)
    seconds = time.perf_counter() - begin
    asked = rng.permutation(np.flatnonzero(hidden))[:MOST]
    cells, truth = coords[asked], values[asked]
    main = trivial.additive(trivial.Known(train, data), cells).mean
    found = {
        "coverage": metrics.coverage(truth, *ring.predict_interval(cells, LEVEL)),
        "RMSE": metrics.rmse(truth, ring.predict(cells)),
        "RMSE of main effects": metrics.rmse(truth, main),
        "seconds": seconds,
        "hidden": int(hidden.sum()),
        "rank": int(max(ring.rank_)),
    }
    return {name: round(n, 5) if isinstance(n, float) else n for name, n in found.items()}


def lines(known: Mapping[GapJob, dict[str, Any]]) -> str:
    """One line for every table and pattern that was measured, in Markdown."""
    found = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for name, table in TABLES.items():
        for pattern, (_, (low, high)) in table.patterns.items():
            rows = [row for job, row in known.items() if job[:2] == (name, pattern)]
            if not rows:
                continue
            inside = [row["coverage"] for row in rows]
            off = "" if low <= np.mean(inside) <= high else "off"
            cells = [
                name,
                pattern,
                str(len(rows)),
                f"{np.mean(inside):.1%}",
                f"{min(inside):.1%} to {max(inside):.1%}",
                off,
                *(f"{np.mean([row[each] for row in rows]):.4g}" for each in COLUMNS[-2:]),
            ]
            found.append(f"| {' | '.join(cells)} |")
    return "\n".join(found)


def main() -> None:
    """Work out what is missing, or some of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--masks", type=int, default=MASKS)
    parser.add_argument("--only", default="*", help="TABLE/PATTERN; * matches anything")
    parser.add_argument("--seconds", type=float, default=np.inf)
    asked = parser.parse_args()
    wanted = (job for job in jobs(asked.masks) if fnmatch("/".join(job[:2]), asked.only))
    coverage.run(FILE, wanted, asked.seconds, GapJob, measure)


if __name__ == "__main__":
    main()
