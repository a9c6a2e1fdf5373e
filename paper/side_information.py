"""What features of labels are worth: figures for docs/side-information.md.

Every figure is one row of `paper/results/side_information.json`; a row that is there is not worked
out again. SMURFF runs in a process of its own (`paper.macau`).
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from bayesring import TensorRing
from bayesring.data.observations import Observations
from bayesring.data.writing import replacing
from bayesring.datasets import load_enron, load_kinship, load_ushcn
from bayesring.datasets.dataset import Dataset
from bayesring.datasets.ushcn import _content
from bayesring.engine.streams import Streams
from bayesring.engine.threads import Threads
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.metrics import auc
from bayesring.model.types import Axis, FloatArray, IntArray, RingSize
from bayesring.priors import (
    Featured,
    ModePrior,
    NormalWishart,
    RingPrior,
    UnitWeights,
    many_slopes,
)
from paper.macau import fit_macau
from paper.results_store import COMMITTED, ROOT, write_json

PAGE = ROOT / "docs" / "side-information.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FILE = ROOT / COMMITTED / "side_information.json"
QUIET: dict[str, Any] = {"progress": False}
LABELS, OTHERS, RANK = 1000, (15, 15), 3
FEATURES, USEFUL, SHARE = 50, 10, 0.15
"""Of the simulation: features, those that matter, and the share of cells observed."""
LEFT_OUT = 0.2
NOISE = 0.3
NEIGHBOURS = 5
"""Nearest places whose mean is the trivial answer."""
LENGTH = 4.0
"""Degrees over which the kernel of places falls to a third."""
Row = dict[str, Any]


def simulated(seed: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, IntArray]:
    """Cells, values, what the true slopes predict of them, features, and new labels."""
    rng = np.random.default_rng(1000 * seed + 19)
    x = rng.standard_normal((LABELS, FEATURES))
    slopes = rng.standard_normal((USEFUL, RANK)) / np.sqrt(USEFUL)
    explained = x[:, :USEFUL] @ slopes * np.sqrt(0.5)
    slices = explained + np.sqrt(0.5) * rng.standard_normal((LABELS, RANK))
    others = [rng.standard_normal((n, RANK)) for n in OTHERS]
    size = LABELS * OTHERS[0] * OTHERS[1]
    chosen = rng.choice(size, int(SHARE * size), replace=False)
    cells = np.stack(np.unravel_index(np.sort(chosen), (LABELS, *OTHERS)), axis=1)

    def entries(own: FloatArray) -> FloatArray:
        parts = [core[i] for core, i in zip((own, *others), cells.T, strict=True)]
        return np.asarray(np.prod(parts, axis=0).sum(axis=1))

    values = entries(slices) + NOISE * rng.standard_normal(len(cells))
    new = rng.choice(LABELS, int(LEFT_OUT * LABELS), replace=False)
    return cells, values, entries(explained), x, new


def scored(ring: TensorRing, cells: IntArray, values: FloatArray) -> Row:
    """Error and coverage of 90 % intervals."""
    low, high = ring.predict_interval(cells)
    inside = float(np.mean((low <= values) & (values <= high)))
    gaps = ring.predict(cells) - values
    return {"rmse": float(np.sqrt(np.mean(gaps**2))), "coverage": inside}


def cold_start(method: str, seed: int) -> Row:
    """New labels of a simulated table, and cells of known labels that were left out."""
    cells, values, by_truth, x, new = simulated(seed)
    is_new = np.isin(cells[:, 0], new)
    if method == "true slopes":
        return {"rmse": float(np.sqrt(np.mean((by_truth - values)[is_new] ** 2)))}
    if method == "mean":
        return {"rmse": float(np.sqrt(np.mean((values[~is_new].mean() - values[is_new]) ** 2)))}
    rng = np.random.default_rng(1000 * seed + 20)
    hidden = ~is_new & (rng.random(len(values)) < 0.1)
    train = ~is_new & ~hidden
    given: dict[str, dict[str | int, Any] | None] = {
        "features": {0: x},
        "no features": None,
        "useless features": {0: rng.standard_normal(x.shape)},
    }
    begin = process_time()
    ring = TensorRing(random_state=seed, shape=(LABELS, *OTHERS), **QUIET)
    ring.fit(cells[train], values[train], features=given[method])
    found = scored(ring, cells[is_new], values[is_new])
    known = scored(ring, cells[hidden], values[hidden])
    return found | {"known": known, "seconds": process_time() - begin}


def places() -> FloatArray:
    """Latitude and longitude of the places of USHCN."""
    return np.array(_content()["locations"], dtype=float)


def ushcn_split(seed: int) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """A tenth of the cells of most places, and some of the others."""
    data = load_ushcn()
    cells, values = data.observations.coords, data.observations.values
    rng = np.random.default_rng(1000 * seed + 21)
    new = rng.choice(data.shape[1], int(LEFT_OUT * data.shape[1]), replace=False)
    is_new = np.isin(cells[:, 1], new)
    train = np.flatnonzero(~is_new & (rng.random(len(cells)) < 0.1))
    test = rng.choice(np.flatnonzero(is_new), 20_000, replace=False)
    return cells[train], values[train], cells[test], values[test]


def described_places(method: str) -> dict[str | int, Any] | None:
    """Features of places by the name of the method."""
    where = places()
    gaps = where[:, None] - where[None]
    gaps[..., 1] *= np.cos(np.deg2rad(where[:, 0].mean()))
    kernel = np.exp(-np.sqrt(np.sum(gaps**2, axis=2)) / LENGTH)
    values, vectors = np.linalg.eigh(kernel)
    found: dict[str, dict[str | int, Any] | None] = {
        "no features": None,
        "latitude and longitude": {1: standard(where)},
        "kernel of places": {1: vectors * np.sqrt(np.maximum(values, 0.0))},
    }
    return found[method]


def standard(columns: FloatArray) -> FloatArray:
    """Columns of mean zero and variance one."""
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def ushcn(method: str, seed: int) -> Row:
    """Places of USHCN that were left out."""
    train, values, test, truth = ushcn_split(seed)
    if method == "mean":
        return {"rmse": float(np.sqrt(np.mean((values.mean() - truth) ** 2)))}
    if method == "nearest places":
        return {"rmse": _nearest(train, values, test, truth)}
    if method.startswith("SMURFF"):
        features = described_places(method.partition(", ")[2])
        assert features is not None
        shape = load_ushcn().shape
        known, new = Observations(train, values, shape), Observations(test, truth, shape)
        return fit_macau(known, new, {1: features[1]}, seed)
    begin = process_time()
    ring = TensorRing(random_state=seed, shape=load_ushcn().shape, **QUIET)
    if method == "positions":
        table = pa.table(dict(zip(("latitude", "longitude"), places().T, strict=True)))
        ring.fit(train, values, positions={1: table})
    else:
        ring.fit(train, values, features=described_places(method))
    return scored(ring, test, truth) | {"seconds": process_time() - begin}


def _nearest(train: IntArray, values: FloatArray, test: IntArray, truth: FloatArray) -> float:
    """RMSE of the mean of a variable in a month over the nearest places, or over all months."""
    shape, where = load_ushcn().shape, places()
    known = np.full(shape, np.nan)
    known[tuple(train.T)] = values
    by_place = np.nanmean(np.where(np.isnan(known), np.nan, known), axis=2)  # variable, place
    found = np.empty(len(test))
    for row, (variable, place, month) in enumerate(test):
        order = np.argsort(np.sum((where - where[place]) ** 2, axis=1))
        here = known[variable, order, month]
        here = here[~np.isnan(here)][:NEIGHBOURS]
        around = by_place[variable, order]
        around = around[~np.isnan(around)][:NEIGHBOURS]
        found[row] = here.mean() if here.size else around.mean()
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def shared(data: Dataset) -> Any:
    """The study of a data set whose first two modes are the same people."""

    def work(method: str, seed: int) -> Row:
        fold = data.split(seed)
        begin = process_time()
        share = [(0, 1)] if method == "shared" else None
        ring = TensorRing(
            likelihood="bernoulli", random_state=seed, share=share, shape=data.shape, **QUIET
        )
        ring.fit(fold.train.coords, fold.train.values)
        found = ring.predict(fold.test.coords)
        score = ring.score(fold.test.coords, fold.test.values)
        return {
            "auc": auc(fold.test.values, found),
            "log score": score,
            "seconds": process_time() - begin,
        }

    return work


def symmetric(method: str, seed: int) -> Row:
    """A symmetric table of which half of the mirror images are missing."""
    rng = np.random.default_rng(1000 * seed + 22)
    n, kinds = 60, 10
    drugs, others = rng.standard_normal((n, RANK)), rng.standard_normal((kinds, RANK))
    cells = np.stack(np.triu_indices(n), axis=1)
    cells = np.column_stack(
        [np.repeat(cells, kinds, axis=0), np.tile(np.arange(kinds), len(cells))]
    )
    parts = [core[i] for core, i in zip((drugs, drugs, others), cells.T, strict=True)]
    values = np.prod(parts, axis=0).sum(axis=1) + NOISE * rng.standard_normal(len(cells))
    train = rng.random(len(cells)) < 0.1
    swapped = cells[:, [1, 0, 2]]
    both = rng.random(len(cells)) < (0.0 if method.startswith("half") else 1.0)
    flipped = rng.random(len(cells)) < 0.5
    first = np.where(flipped[:, None], swapped, cells)[train]
    second = np.where(flipped[:, None], cells, swapped)[train & both]
    known = np.concatenate([first, second])
    seen = np.concatenate([values[train], values[train & both]])
    share = [(0, 1, "symmetric")] if method.endswith("shared") else None
    ring = TensorRing(random_state=seed, share=share, shape=(n, n, kinds), **QUIET)
    ring.fit(known, seen)
    return scored(ring, cells[~train], values[~train]) | {
        "mean": float(np.sqrt(np.mean((values[train].mean() - values[~train]) ** 2)))
    }


def fingerprints(method: str, seed: int) -> Row:
    """Processor seconds of scans with 10^5 labels, 10^4 sparse features, 10^7 observations, K = 25.

    All slopes are drawn anew in one scan of five, as they are on average.
    """
    rng = np.random.default_rng(1000 * seed + 23)
    shape, n_features, ones, n = (100_000, 100, 100), 10_000, 50, 10_000_000
    coords = np.stack([rng.integers(0, size, n, dtype=np.int32) for size in shape], axis=1)
    data = Observations(coords, rng.standard_normal(n), shape)
    del coords
    columns = rng.integers(0, n_features, shape[0] * ones)
    starts = np.arange(0, len(columns) + 1, ones)
    bits = sparse.csr_array(
        (np.full(len(columns), ones**-0.5), columns, starts), shape=(shape[0], n_features)
    )
    axes = [Axis(shape[0], features=bits), Axis(shape[1]), Axis(shape[2])]
    first: ModePrior = Featured() if method == "features" else NormalWishart()
    prior = RingPrior((first, NormalWishart(), NormalWishart()), UnitWeights()).bind(axes)
    streams, times = Streams.of_chain(seed, 0), []
    with Threads(1) as engine:
        problem = make_problem(data, Gaussian(), prior, engine=engine)
        del data
        state = gibbs.init(streams, problem, RingSize(1, (5, 5, 5)))
        for scan in range(1, 6 if method == "features" else 3):
            many_slopes.RENEWED = 1.0 if scan == 1 else 0.0
            begin = process_time()
            state, _ = gibbs.step(streams, scan, state, problem, engine)
            times.append(process_time() - begin)
    return {"seconds": float(np.mean(times)), "scans": times}


STUDIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "cold start": (
        cold_start,
        ("mean", "true slopes", "no features", "features", "useless features"),
    ),
    "USHCN": (
        ushcn,
        (
            "mean",
            "nearest places",
            "no features",
            "latitude and longitude",
            "kernel of places",
            "positions",
            "SMURFF Macau, latitude and longitude",
            "SMURFF Macau, kernel of places",
        ),
    ),
    "Kinship": (lambda *asked: shared(load_kinship())(*asked), ("apart", "shared")),
    "Enron": (lambda *asked: shared(load_enron())(*asked), ("apart", "shared")),
    "fingerprints": (fingerprints, ("plain", "features")),
    "symmetric": (symmetric, ("half, apart", "both, apart", "half, shared", "both, shared")),
}


def figures() -> str:
    """The rows as a table, averaged over seeds."""
    lines = [
        "| study | method | seeds | RMSE | 90 % intervals cover | AUC | log score | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = known()
    for study, (_, methods) in STUDIES.items():
        for method in methods:
            found = [row for name, row in rows.items() if name.startswith(f"{study}/{method}/")]
            if not found:
                continue

            def mean(field: str, form: str, own: list[Row] = found) -> str:
                kept = [row[field] for row in own if field in row]
                return format(float(np.mean(kept)), form) if kept else ""

            numbers = [mean("rmse", ".3f"), mean("coverage", ".1%"), mean("auc", ".4f")]
            numbers += [mean("log score", ".4f"), mean("seconds", ".0f")]
            lines.append(f"| {study} | {method} | {len(found)} | {' | '.join(numbers)} |")
            if "known" in found[0]:
                inner = [row["known"] for row in found]
                numbers = [mean("rmse", ".3f", inner), mean("coverage", ".1%", inner), "", "", ""]
                name = f"{study}, known labels"
                lines.append(f"| {name} | {method} | {len(found)} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def write_figures() -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    with replacing(PAGE) as temporary:
        temporary.write_text(f"{before}{BEGIN}\n\n{figures()}\n\n{END}{after}")


def known() -> dict[str, Row]:
    """Rows that are there already."""
    return dict(json.loads(FILE.read_text())) if Path(FILE).exists() else {}


def main() -> None:
    """Work out what is not there yet, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="study/method, or the beginning of it")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(asked.seeds):
        for study, (work, methods) in STUDIES.items():
            for method in methods:
                name = f"{study}/{method}/{seed}"
                if not name.startswith(asked.only) or (name in known() and not asked.again):
                    continue
                found = work(method, seed)
                write_json(FILE, known() | {name: found})
                sys.stdout.write(f"{name}: {found}\n")
                sys.stdout.flush()
    write_figures()


if __name__ == "__main__":
    main()
