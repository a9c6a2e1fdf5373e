"""Fit, save, load, predict and complete, over and over, with changing shapes.

    python -m tests.soak --minutes 60

Memory must stay flat, no file may stay open, and a repeated seed must give what it gave first.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bayesring import TensorRing, complete, load

STEEPEST = 1.0
"""Megabytes by which memory may grow in 100 cycles."""
WARM = 0.3
"""Share of the cycles after which memory is measured: kernels, caches and pools have their size."""
KINDS = 12
"""Cycles after which the same cycle comes again."""


class Soaked(NamedTuple):
    """What many cycles left behind."""

    cycles: int
    slope: float
    """Megabytes per 100 cycles, after warming up."""
    megabytes: float
    """At the end."""
    opened: list[str]
    """Files open at the end that were not at the beginning."""
    changed: list[int]
    """Cycles that did not give what they gave first."""

    @property
    def is_flat(self) -> bool:
        """Whether memory stays as it is."""
        return self.slope < STEEPEST


def cycle(kind: int, folder: Path) -> str:
    """One round, all of it determined by its kind; a digest of everything it computed."""
    rng = np.random.default_rng(kind)
    shape = tuple(rng.integers(3, 20, 2 + kind % 3).tolist())
    settings = {"warmup": 5, "draws": 5, "chains": 2, "random_state": kind, "progress": False}
    settings |= {"rank": 1 + kind % 3, "n_jobs": 2, "inference": "gibbs"}
    if kind % 4 == 3:
        settings |= {"inference": "online-em", "epochs": 2}
    n = int(rng.integers(50, 3000))
    X = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    y = rng.standard_normal(n)
    if kind % 5 == 4:
        settings["likelihood"], y = "bernoulli", (y > 0) * 1.0
    ring = TensorRing(shape=shape, **settings)
    ring.fit(X, y, checkpoint=folder / f"checkpoint {kind}" if kind % 3 == 2 else None)
    ring.save(folder / "model.ring")
    found = [*load(folder / "model.ring").predict(X, return_std=True)]
    found += [*ring.predict_interval(X[:50]), ring.sample(X[:20], 5), ring.suggest(5)]
    table = pa.table({f"k{mode}": column for mode, column in enumerate(X.T)} | {"v": y})
    values = pa.array(y, mask=rng.random(n) < 0.1)
    filled = complete(
        table.set_column(len(shape), "v", values),
        value="v",
        modes=table.column_names[:-1],
        **settings,
    )
    found.append(filled.table["mean"].to_numpy())
    if kind % 4 == 0:
        ring.report(folder / "report.html", progress=False)
    for each in folder.glob("checkpoint */*"):
        each.unlink()
    total = hashlib.sha256()
    for each in found:
        total.update(np.ascontiguousarray(each).tobytes())
    return total.hexdigest()


def soak(cycles: int | None = None, seconds: float | None = None, show: bool = False) -> Soaked:
    """Run so many cycles, or as many as fit into the time."""
    begin, sizes, first, changed = time.monotonic(), [], {}, []
    opened = before = set()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not _is_over(len(sizes), cycles, time.monotonic() - begin, seconds):
            number = len(sizes)
            found = cycle(number % KINDS, Path(name))
            if first.setdefault(number % KINDS, found) != found:
                changed.append(number)
            sizes.append(_megabytes())
            opened = _open_files()
            before = before if number >= KINDS else opened
            if show and number % 100 == 99:
                sys.stdout.write(f"{number + 1:,} cycles: {sizes[-1]:.1f} MB\n")
                sys.stdout.flush()
    return Soaked(len(sizes), _slope(sizes), sizes[-1], sorted(opened - before), changed)


def _is_over(done: int, cycles: int | None, spent: float, seconds: float | None) -> bool:
    if seconds is not None:
        return spent > seconds and done > KINDS
    return done >= (cycles or 0)


def _slope(sizes: list[float]) -> float:
    """Megabytes per 100 cycles along a line through what comes after warming up."""
    late = np.array(sizes[round(WARM * len(sizes)) :])
    return float(100 * np.polyfit(np.arange(len(late)), late, 1)[0]) if len(late) > 2 else 0.0


def _megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _open_files() -> set[str]:
    """What is open, by its number and what it leads to."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{each.name} {os.readlink(each)}")
        except OSError:  # the folder itself, while it was listed
            continue
    return {each for each in found if "/proc/" not in each}


def main() -> int:
    """Print what was found; the exit code says whether it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    found = soak(seconds=60 * parser.parse_args().minutes, show=True)
    sys.stdout.write(
        f"{found.cycles:,} cycles; {found.megabytes:.1f} MB at the end, {found.slope:+.3f} MB per "
        f"100 cycles; {len(found.opened)} files left open {found.opened}; "
        f"{len(found.changed)} results changed {found.changed[:5]}\n"
    )
    return 0 if found.is_flat and not found.opened and not found.changed else 1


if __name__ == "__main__":
    sys.exit(main())
