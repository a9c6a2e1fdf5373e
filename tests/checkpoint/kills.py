"""Kill fits with SIGKILL at random moments, and see that they end with the same bits.

    python -m tests.checkpoint.kills --kills 200

Every kind of fit has a folder. A process fits in it and is killed; the next goes on, with another
number of threads; and so on, until one gets to the end and is compared with a fit that nobody
disturbed. Then the folder begins anew. Processes are forked, so that moments to be killed at lie in
the fit and not in imports.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.checkpoint.fits import FITS, begun, fingerprint, run, write_parquet

LONGEST = 120.0
"""Seconds after which a fit that was not killed must have ended."""


def fit_and_write(name: str, folder: Path | None, n_jobs: int, source: Path, result: Path) -> None:
    """What a child does."""
    ring = run(name, folder, n_jobs=n_jobs, source=source)
    result.with_suffix(".part").write_text(fingerprint(ring))
    os.replace(result.with_suffix(".part"), result)


def spawn(*arguments: object) -> multiprocessing.Process:
    """A child that fits."""
    context = multiprocessing.get_context("fork")
    child = context.Process(target=fit_and_write, args=arguments)
    child.start()
    return child  # type: ignore[return-value]


def undisturbed(name: str, source: Path, home: Path) -> tuple[str, float]:
    """The fingerprint of a fit without a checkpoint, and the seconds of one with it."""
    seconds = 0.0
    for folder in (None, home / "measured"):
        result = home / "result"
        begin = time.monotonic()
        child = spawn(name, folder, 1, source, result)
        child.join(LONGEST)
        seconds = time.monotonic() - begin
        assert child.exitcode == 0, f"{name} failed without being killed"
    shutil.rmtree(home / "measured")
    return result.read_text(), seconds


def kill_all_kinds(kills: int, seed: int, names: list[str]) -> dict[str, list[int]]:
    """Kill fits of these kinds in turn; returns kills and fits that got to their end.

    In the end, those that have begun are left alone, and so is one of every kind that never ended.
    """
    chance = random.Random(seed)
    counts = {name: [0, 0] for name in names}
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        source = write_parquet(home)
        for name in names:
            if "more" in name:
                begun(name)  # kept for all children, which are killed in what comes after it
        known = {name: undisturbed(name, source, home) for name in names}
        kinds = {name: home / f"kind {number}" for number, name in enumerate(names)}
        spawned = 0
        while sum(each[0] for each in counts.values()) < kills or any(
            folder.exists() or not counts[name][1] for name, folder in kinds.items()
        ):
            name = names[spawned % len(names)]
            spawned += 1
            expected, seconds = known[name]
            result = home / "result"
            result.unlink(missing_ok=True)
            enough = sum(each[0] for each in counts.values()) >= kills
            if enough and counts[name][1] and not kinds[name].exists():
                continue
            child = spawn(name, kinds[name], chance.choice([1, 2]), source, result)
            child.join(LONGEST if enough else chance.uniform(0.0, 0.6 * seconds))
            if child.is_alive():
                assert not enough, f"{name} did not end within {LONGEST} s"
                os.kill(child.pid or 0, signal.SIGKILL)
                child.join()
                counts[name][0] += 1
                continue
            assert child.exitcode == 0, f"{name} failed when it was resumed"
            assert result.read_text() == expected, f"{name} ended with other bits"
            left = [each for each in os.listdir(kinds[name]) if each.endswith(".tmp")]
            assert not left, f"{name} left {left}"
            counts[name][1] += 1
            shutil.rmtree(kinds[name])
    return counts


def main() -> None:
    """Parse, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    begin = time.monotonic()
    counts = kill_all_kinds(given.kills, given.seed, list(FITS))
    for name, (killed, ended) in counts.items():
        sys.stdout.write(f"{name:28} {killed:4} kills, {ended:3} resumed fits, all the same bits\n")
    sys.stdout.write(f"{time.monotonic() - begin:.0f} s\n")


if __name__ == "__main__":
    main()
