"""A table of small fits, and hashes of all that they give.

Only public names are used, and the script runs by itself, so that the same file can be put before
two versions of the library:

    python fits.py hashes.json [case ...]

Every fit states its rank and its length: a change of the defaults is not a change of the numbers.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesring import TensorRing, complete, load
from bayesring.priors import EntryGamma, NormalGamma

SHORT: dict[str, Any] = {"rank": 2, "warmup": 8, "draws": 6, "chains": 2}
"""Too few observations to hold any out."""
CHECKED: dict[str, Any] = {"rank": 2, "warmup": 100, "draws": 6, "chains": 2}
"""Long enough for held-out values to calibrate the noise."""
ONLINE: dict[str, Any] = {"inference": "online-em", "draws": 6, "chains": 2}


def observations(
    shape: tuple[int, ...], n: int, binary: bool = False, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a smooth function of the coordinates with noise, or whether they are positive."""
    rng = np.random.default_rng([seed, n, *shape])
    coords = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    waves = [np.sin(1 + coords[:, d] * (d + 1.3)) for d in range(len(shape))]
    values = 3.0 + sum(waves) + np.prod(waves, axis=0) + 0.3 * rng.standard_normal(n)
    return coords, (values > 3.0).astype(float) if binary else values


def table(n: int, seed: int = 0, stations: int = 6) -> Any:
    """A long table with keys of text, dates and integers, some values missing."""
    import pandas as pd

    coords, values = observations((stations, 8, 5), n, seed=seed)
    values[::7] = np.nan
    days = np.datetime64("2024-01-01") + coords[:, 1]
    return pd.DataFrame(
        {
            "station": [f"s{index:02}" for index in coords[:, 0]],
            "day": days.astype("M8[ns]"),
            "depth": coords[:, 2] * 10,
            "y": values,
        }
    )


def digest(*arrays: Any) -> str:
    """A hash of some arrays, shapes included."""
    total = hashlib.blake2b(digest_size=12)
    for array in arrays:
        plain = np.ascontiguousarray(array)
        total.update(f"{plain.shape} {plain.dtype.str}".encode())
        total.update(plain.tobytes())
    return total.hexdigest()


def columns_of(found: Any, *names: str) -> list[np.ndarray]:
    """The named columns of a table, or arrays as they are."""
    if hasattr(found, "columns"):
        return [np.asarray(found[name], dtype=float) for name in names]
    return list(found) if isinstance(found, tuple) else [found]


def results(ring: Any, cells: Any) -> dict[str, Any]:
    """Hashes of what a fitted ring says of some cells, and of its traces."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ring.predict(cells, return_std=True)
        if isinstance(found, tuple) and hasattr(cells, "columns"):
            found = ring.predict_table(cells)
        interval = ring.predict_interval(cells, 0.8)
        if hasattr(cells, "columns") and hasattr(ring, "predict_table"):
            interval = ring.predict_table(cells, 0.8)
        samples = ring.sample(cells, 5)
    traces = [
        [trace.rank, trace.log_likelihood, *(trace.described[k] for k in sorted(trace.described))]
        for trace in ring.trace_
    ]
    return {
        "rank": list(map(int, ring.rank_)),
        "predictions": digest(*columns_of(found, "mean", "std")),
        "intervals": digest(*columns_of(interval, "lower", "upper")),
        "samples": digest(samples),
        "trace": digest(*(array for trace in traces for array in trace)),
    }


def plain(
    shape: tuple[int, ...], n: int, binary: bool = False, **settings: Any
) -> Callable[[int], dict[str, Any]]:
    """Fit coordinates and values; look at 40 cells."""

    def run(n_jobs: int) -> dict[str, Any]:
        coords, values = observations(shape, n, binary)
        ring = TensorRing(
            **{"likelihood": "bernoulli" if binary else "gaussian"} | settings,
            random_state=3,
            progress=False,
            n_jobs=n_jobs,
        )
        ring.fit(coords, values, shape=shape)
        return results(ring, observations(shape, 40, seed=1)[0])

    return run


def rank_policies() -> Any:
    """The module that holds them has moved."""
    try:
        from bayesring.model import rank
    except ImportError:
        from bayesring.infer import rank
    return rank


def with_policy(name: str, *arguments: Any, **settings: Any) -> Callable[[int], dict[str, Any]]:
    """As `plain`, with a policy of the rank."""
    return plain(
        (8, 9, 7), 400, **SHORT | settings | {"rank": getattr(rank_policies(), name)(*arguments)}
    )


def from_table(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Fit a table; look at its own rows and at labels it never showed."""

    def run(n_jobs: int) -> dict[str, Any]:
        ring = TensorRing(**settings, random_state=3, progress=False, n_jobs=n_jobs)
        ring.fit(table(200), modes=["station", "day", "depth"], value="y")
        seen = results(ring, table(30, seed=1).drop(columns="y"))
        unseen = results(ring, table(30, seed=2, stations=9).drop(columns="y"))
        return {"seen": seen, "unseen": unseen}

    return run


def from_parquet(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Learn from two files."""

    def run(n_jobs: int) -> dict[str, Any]:
        ring = TensorRing(**settings, random_state=3, progress=False, n_jobs=n_jobs)
        with tempfile.TemporaryDirectory() as folder:
            for part in range(2):
                table(900, seed=part).to_parquet(Path(folder) / f"{part}.parquet")
            ring.fit(folder, modes=["station", "day", "depth"], value="y")
        return results(ring, table(30, seed=5).drop(columns="y"))

    return run


def in_parts(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Learn, save, load, and learn on, with labels that are new."""

    def run(n_jobs: int) -> dict[str, Any]:
        ring = TensorRing(**settings, random_state=3, progress=False, n_jobs=n_jobs)
        ring.fit(table(700), modes=["station", "day", "depth"], value="y")
        cells = table(30, seed=1).drop(columns="y")
        first = results(ring, cells)
        with tempfile.TemporaryDirectory() as folder:
            ring.save(Path(folder) / "model.ring")
            again = load(Path(folder) / "model.ring")
        loaded = results(again, cells)
        ring.partial_fit(table(150, seed=4, stations=8))
        again.partial_fit(table(150, seed=4, stations=8))
        return {
            "first": first,
            "loaded": loaded,
            "more": results(ring, cells),
            "more after loading": results(again, cells),
        }

    return run


def saved(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Fit, save and load."""

    def run(n_jobs: int) -> dict[str, Any]:
        coords, values = observations((8, 9, 7), 900)
        ring = TensorRing(**settings, random_state=3, progress=False, n_jobs=n_jobs)
        ring.fit(coords, values)
        with tempfile.TemporaryDirectory() as folder:
            ring.save(Path(folder) / "model.ring")
            again = load(Path(folder) / "model.ring")
        cells = observations((8, 9, 7), 40, seed=1)[0]
        tensor = ring.predict_tensor(return_std=True)
        return {
            "fitted": results(ring, cells),
            "loaded": results(again, cells),
            "tensor": digest(*tensor),
            "suggested": digest(ring.suggest(7)),
            "held out": digest(*ring.held_out_),
        }

    return run


def completed(**settings: Any) -> Callable[[int], dict[str, Any]]:
    """Fill an array with gaps."""

    def run(n_jobs: int) -> dict[str, Any]:
        coords, values = observations((6, 7, 8), 120)
        array = np.full((6, 7, 8), np.nan)
        array[tuple(coords.T)] = values
        found = complete(array, **settings, random_state=3, progress=False, n_jobs=n_jobs)
        return {
            "cells": digest(found.mean, found.std, found.lower, found.upper),
            "model": results(found.model, coords[:30]),
        }

    return run


FITS: dict[str, Callable[[int], dict[str, Any]]] = {
    "gibbs, matrix": plain((9, 8), 60, **SHORT),
    "gibbs, 3 modes": plain((8, 9, 7), 120, **SHORT),
    "gibbs, 4 modes": plain((5, 6, 4, 5), 150, **SHORT | {"rank": (2, 3, 1, 2)}),
    "gibbs, 5 modes": plain((3, 4, 3, 2, 3), 150, **SHORT),
    "gibbs, rank 5": plain((8, 9, 7), 400, **SHORT | {"rank": 5}),
    "gibbs, float32": plain((8, 9, 7), 400, **SHORT | {"rank": 5, "dtype": "float32"}),
    "gibbs, several blocks": plain((40, 30, 20), 21_000, **SHORT | {"warmup": 4, "draws": 3}),
    "gibbs, cut slices": plain((2, 50, 40), 30_000, **SHORT | {"warmup": 4, "draws": 3}),
    "gibbs, held-out values": plain((12, 11, 10), 700, **CHECKED),
    "gibbs, thinned": plain((8, 9, 7), 120, **SHORT | {"max_memory": 5_000}),
    "gibbs, paper": plain((8, 9, 7), 120, prior="paper", **SHORT),
    "gibbs, paper, entry": plain((8, 9, 7), 120, prior="paper", update="entry", **SHORT),
    "gibbs, entry gamma": plain((8, 9, 7), 120, prior=EntryGamma(), **SHORT),
    "gibbs, normal gamma": plain((8, 9, 7), 120, prior=NormalGamma(), **SHORT),
    "gibbs, normal gamma, entry": plain(
        (8, 9, 7), 120, prior=NormalGamma(), update="entry", **SHORT
    ),
    "gibbs, automatic rank": plain((12, 11, 10), 700, **CHECKED | {"rank": "auto"}),
    "gibbs, strands": with_policy("FixedRank", 2, 3),
    "gibbs, strands of the paper": with_policy("FixedRank", 2, 3, prior="paper"),
    "gibbs, adaption": with_policy("Adaption", prior="paper", warmup=60),
    "gibbs, truncation": with_policy("Truncation", 4, 3.0, 10, prior="paper", warmup=60),
    "gibbs, binary": plain((8, 9, 7), 120, binary=True, **SHORT),
    "gibbs, binary, matrix": plain((9, 8), 60, binary=True, **SHORT),
    "gibbs, binary, paper, entry": plain(
        (8, 9, 7), 120, binary=True, prior="paper", update="entry", **SHORT
    ),
    "gibbs, binary, cut slices": plain(
        (2, 50, 40), 30_000, binary=True, **SHORT | {"warmup": 3, "draws": 2}
    ),
    "gibbs, binary, automatic rank": plain(
        (12, 11, 10), 700, binary=True, **CHECKED | {"rank": "auto"}
    ),
    "gibbs, table": from_table(**SHORT),
    "gibbs, table, paper": from_table(prior="paper", **SHORT),
    "gibbs, saved": saved(**CHECKED | {"rank": "auto"}),
    "gibbs, completed": completed(**SHORT),
    "online": plain((12, 11, 10), 900, rank=2, epochs=12, **ONLINE),
    "online, matrix": plain((20, 18), 700, rank=2, epochs=8, **ONLINE),
    "online, 4 modes": plain((5, 6, 4, 5), 300, rank=(2, 3, 1, 2), epochs=8, **ONLINE),
    "online, automatic rank": plain((12, 11, 10), 900, rank="auto", epochs=8, **ONLINE),
    "online, paper": plain((12, 11, 10), 900, rank=2, epochs=12, prior="paper", **ONLINE),
    "online, entry gamma": plain((8, 9, 7), 400, rank=2, epochs=8, prior=EntryGamma(), **ONLINE),
    "online, normal gamma": plain((8, 9, 7), 400, rank=2, epochs=8, prior=NormalGamma(), **ONLINE),
    "online, binary": plain((12, 11, 10), 900, binary=True, rank=2, epochs=12, **ONLINE),
    "online, table": from_table(rank=2, epochs=8, **ONLINE),
    "online, Parquet": from_parquet(rank=2, epochs=12, **ONLINE),
    "online, Parquet, automatic rank": from_parquet(rank="auto", epochs=6, **ONLINE),
    "online, in parts": in_parts(rank=2, epochs=12, **ONLINE),
    "online, in parts, paper": in_parts(rank=2, epochs=8, prior="paper", **ONLINE),
    "online, saved": saved(rank=2, epochs=12, **ONLINE),
    "online, long": plain((12, 11, 10), 900, rank=2, epochs=120, **ONLINE),
}


def environment() -> dict[str, str]:
    """All that bits may depend on besides the code: versions and the features of the CPU."""
    import llvmlite
    import llvmlite.binding
    import numba
    import scipy
    from threadpoolctl import threadpool_info

    features = llvmlite.binding.get_host_cpu_features()
    blas = sorted(
        f"{each.get('internal_api')} {each.get('version')} {each.get('architecture')}"
        for each in threadpool_info()
        if each.get("user_api") == "blas"
    )
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "machine": platform.machine(),
        "cpu": llvmlite.binding.get_host_cpu_name(),
        "cpu features": digest(
            np.array(sorted(name for name, there in features.items() if there), dtype=str)
        ),
        "blas": "; ".join(dict.fromkeys(blas)),
    }


def main() -> None:
    """Run all fits, or those named, on one thread and on two, and write their hashes."""
    target, *names = sys.argv[1:]
    found = {}
    for name in names or FITS:
        one, two = FITS[name](1), FITS[name](2)
        if one != two:
            raise SystemExit(f"{name}: one thread and two give different bits.\n{one}\n{two}")
        found[name] = one
    recorded = {"environment": environment(), "fits": found}
    Path(target).write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
