"""Every kind of value: counts, outliers, ratings and links, against normal noise and the trivial.

`make kinds` measures what is missing of `JOBS`, keeps it in `paper/results/kinds.json`, and writes
the page `docs/kinds-of-values.md`. Fits are from the defaults; see `paper.kind_fits`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from bayesring import datasets, metrics
from bayesring.datasets.dataset import N_FOLDS
from bayesring.model import ring as rings
from bayesring.model.types import FloatArray, IntArray
from paper.count_figures import WEEK, nyc
from paper.coverage import calibration_error
from paper.kind_fits import FLOOR, LEVEL, MODELS, SCORED, Row, Rows, fit, mass
from paper.kinds_page import page
from paper.results_store import COMMITTED, ROOT, write_json

FILE, PAGE = ROOT / COMMITTED / "kinds.json", ROOT / "docs" / "kinds-of-values.md"


def alog() -> Rows:
    """Fold 0 of Alog as logarithms of counts, and as counts; errors are of log(1 + count)."""
    data = datasets.load_alog()
    train, test = data.split(0)
    found: Rows = {}
    for name, likelihood, counts in (
        ("log(1 + y), normal noise", "gaussian", False),
        ("log(1 + y), Student-t", "student-t", False),
        ("counts, negative binomial", "negative-binomial", True),
    ):
        values = np.rint(np.expm1(train.values)) if counts else train.values
        ring = fit(train.coords, values, data, likelihood=likelihood)
        draws = ring.sample(test.coords, 200, random_state=0)
        draws = np.log1p(draws) if counts else draws
        centre = draws.mean(axis=0) if counts else ring.predict(test.coords)
        low, high = ring.predict_interval(test.coords, LEVEL)
        ends = (np.log1p(low), np.log1p(high)) if counts else (low, high)
        found[name] = {
            "RMSE": metrics.rmse(test.values, centre),
            "MAE": metrics.mae(test.values, np.median(draws, axis=0)),
            "90 % intervals hold": metrics.coverage(test.values, ends[0] - 1e-9, ends[1] + 1e-9),
            "seconds": ring.seconds_,
        }
    mean, median = train.values.mean(), np.median(train.values)
    found["mean and median of all"] = {
        "RMSE": metrics.rmse(test.values, np.full(len(test.values), mean)),
        "MAE": metrics.mae(test.values, np.full(len(test.values), median)),
    }
    return found


# ---- Simulated.


def signal(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    """A ring of rank 2 with mean zero and variance one."""
    cores = [0.7 * rng.standard_normal((size, 1, 2, 2)) + 0.6 * np.eye(2) for size in shape]
    entries = rings.dense(cores)
    return np.asarray((entries - entries.mean()) / entries.std())


def drawn(rng: Generator, shape: tuple[int, ...], n: int) -> tuple[IntArray, IntArray]:
    """Known cells, and as many others at most."""
    order = rng.permutation(int(np.prod(shape)))
    cells = np.stack(np.unravel_index(order, shape), axis=1)
    return cells[:n], cells[n : 2 * n]


SHAPE, KNOWN, TABLES = (25, 20, 20), 3_000, 3


def outliers() -> Rows:
    """5 % of the values are off by ten standard deviations of the noise, which is a third."""
    sums: dict[str, list[Row]] = {}
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        truth = signal(rng, SHAPE)
        known, hidden = drawn(rng, SHAPE, KNOWN)
        clean = truth[tuple(known.T)] + rng.standard_normal(KNOWN) / 3
        off = rng.random(KNOWN) < 0.05
        dirty = clean + off * rng.choice([-1.0, 1.0], KNOWN) * 10 / 3
        target = truth[tuple(hidden.T)]
        for name, likelihood, values in (
            ("normal noise, without outliers", "gaussian", clean),
            ("Student-t, with outliers", "student-t", dirty),
            ("normal noise, with outliers", "gaussian", dirty),
        ):
            ring = fit(known, values, SHAPE, likelihood=likelihood)
            new = target + rng.standard_normal(target.size) / 3
            far = rng.random(target.size) < 0.05 * (values is dirty)
            new += far * rng.choice([-1.0, 1.0], target.size) * 10 / 3
            ends = ring.predict_interval(hidden, LEVEL)
            sums.setdefault(name, []).append(
                {
                    "RMSE": metrics.rmse(target, ring.predict(hidden)),
                    "90 % intervals hold": metrics.coverage(new, *ends),
                    "seconds": ring.seconds_,
                }
            )
        sums.setdefault("mean of all", []).append(
            {"RMSE": metrics.rmse(target, np.full(target.size, dirty.mean()))}
        )
    return means(sums)


CUTS = np.array([-1.2, -0.4, 0.3, 1.1])


def ratings() -> Rows:
    """Ratings 1 to 5: where a signal, with noise of 0.6, lies between cut points."""
    sums: dict[str, list[Row]] = {}
    for seed in range(TABLES):
        rng = np.random.default_rng(seed)
        truth = signal(rng, SHAPE)
        cells = drawn(rng, SHAPE, KNOWN)
        scores = [truth[tuple(each.T)] + 0.6 * rng.standard_normal(KNOWN) for each in cells]
        train, test = (1.0 + np.searchsorted(CUTS, each) for each in scores)
        exact = np.diff(
            ndtr((np.r_[-np.inf, CUTS, np.inf][:, None] - truth[tuple(cells[1].T)]) / 0.6), axis=0
        )
        table: dict[str, FloatArray] = {"the true probabilities": exact}
        shares = np.bincount(train.astype(int), minlength=6)[1:] / KNOWN
        table["shares of all"] = np.broadcast_to(shares[:, None], exact.shape)
        for name, likelihood in (("ordinal", "ordinal"), ("normal noise", "gaussian")):
            ring = fit(cells[0], train, SHAPE, likelihood=likelihood)
            table[name] = np.exp([_rated(ring, cells[1], k) for k in range(1, 6)])
        for name, chances in table.items():
            own = chances[test.astype(int) - 1, np.arange(KNOWN)]
            hits = test == np.arange(1, 6)[:, None]
            sums.setdefault(name, []).append(
                {
                    "log score": float(np.mean(np.log(np.maximum(own, FLOOR)))),
                    "calibration error": calibration_error(chances.ravel(), 1.0 * hits.ravel()),
                }
            )
    return means(sums)


def _rated(ring: Any, cells: IntArray, k: int) -> FloatArray:
    """Log probability of rating k."""
    if ring.posterior_.likelihood.discrete:
        return np.asarray(ring.log_score(cells, np.full(len(cells), float(k))))
    low = np.full(len(cells), k - 0.5 if k > 1 else -np.inf)
    return mass(ring, cells, low, np.full(len(cells), k + 0.5 if k < 5 else np.inf))


def means(sums: dict[str, list[Row]]) -> Rows:
    """Averages over tables."""
    return {
        name: {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        for name, rows in sums.items()
    }


# ---- Links.


def links(load: Callable[[], Any], folds: Sequence[int]) -> Rows:
    """Calibration of the defaults, as fitted and without it: means over folds."""
    data = load()
    several = [_links_of_fold(data, fold) for fold in folds]
    return {
        who: {name: float(np.mean([each[who][name] for each in several])) for name in row}
        for who, row in several[0].items()
    }


def _links_of_fold(data: Any, fold: int) -> Rows:
    train, test = data.split(fold)
    rows = np.random.default_rng(0).permutation(len(test.values))[:SCORED]
    cells, y = test.coords[rows], test.values[rows]
    ring = fit(train.coords, train.values, data, likelihood="bernoulli", random_state=fold)
    plain = np.exp(ring.log_score(cells, np.ones(len(y))))
    share = np.full(len(y), train.values.mean())
    found = {}
    for name, chances in (
        ("calibrated", ring.predict(cells)),
        ("as sampled", plain),
        ("share of ones", share),
    ):
        found[name] = {
            "calibration error": calibration_error(chances, y),
            "AUC": metrics.auc(y, chances),
            "log score": metrics.binary_log_score(y, chances),
        }
    found["calibrated"]["seconds"] = ring.seconds_
    return found


JOBS: dict[str, Callable[[], Rows]] = {
    "outliers": outliers,
    "ratings": ratings,
    "Kinship": lambda: links(datasets.load_kinship, range(N_FOLDS)),
    "Alog": alog,
    "NYC's first week": lambda: nyc("NYC's first week", False, WEEK),
    "NYC's first week, zeros too": lambda: nyc("NYC's first week, zeros too", True, WEEK),
    "NYC": lambda: nyc("NYC", False),
    "NYC, zeros too": lambda: nyc("NYC, zeros too", True),
    "DBLP": lambda: links(datasets.load_dblp, [1]),
}


def read(path: Path) -> dict[str, Rows]:
    """What is known."""
    known: dict[str, Rows] = json.loads(path.read_text()) if path.exists() else {}
    return known


def run(path: Path, wanted: Iterator[str], again: bool) -> dict[str, Rows]:
    """Measure what is missing; `again`, with fits of this code, not those that were kept."""
    if again:
        shutil.rmtree(MODELS, ignore_errors=True)
    for name in wanted:
        if again or name not in read(path):
            found = {
                who: {key: round(value, 5) for key, value in row.items()}
                for who, row in JOBS[name]().items()
            }
            known = read(path) | {name: found}  # others may have added theirs
            write_json(path, {each: known[each] for each in JOBS if each in known})
    return read(path)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--only", default="*", help="pattern of names, such as 'NYC*'")
    parser.add_argument("--again", action="store_true", help="also what is known")
    asked = parser.parse_args()
    known = run(asked.out, (name for name in JOBS if fnmatch(name, asked.only)), asked.again)
    if asked.out == FILE:
        PAGE.write_text(page(known))


if __name__ == "__main__":
    main()
