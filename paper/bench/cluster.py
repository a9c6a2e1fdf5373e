"""What a cluster costs: laying out blocks, bytes and memory, scans and what is added to them.

    python -m paper.bench.cluster --rows 10000000 --workers 2

A table of random rows is written to a Parquet folder, surveyed and laid out on worker processes of
this machine, and scanned. *Arithmetic* is the CPU time of the workers inside the operations on
blocks. Overhead is everything else: CPU time of the driver (scheduler included) and of the workers
outside of them, and the wall time of a scan beyond the arithmetic of the busiest worker. With
``--delay`` every step waits that long, as on a slow network; ``--json`` prints one line.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bayesring.engine.dask import Cluster, connected
from bayesring.engine.placing import Placed
from bayesring.engine.spread import spread_over
from bayesring.engine.streams import Streams
from bayesring.engine.threads import Threads
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.likelihoods import Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import NormalWishart, RingPrior

MODES = ("user", "item", "week")
SHAPE = (20_000, 5_000, 100)
PART = 1 << 20
MODEL = Gaussian(), RingPrior.of(NormalWishart())
spent = [0.0]
"""CPU seconds of this process inside operations on blocks."""


class TimedOperation:
    """An operation that counts its CPU time."""

    def __init__(self, operation: Callable[[Any, Any], Any]) -> None:
        self.operation, self.__name__ = operation, operation.__name__

    def __call__(self, task: Any, block: Any) -> Any:
        """Run it."""
        begin = time.thread_time()
        found = self.operation(task, block)
        spent[0] += time.thread_time() - begin
        return found


class TimedCluster(Cluster):
    """A cluster whose workers count the CPU time of operations on blocks."""

    delay = 0.0

    def map_blocks(self, operation: Any, task: Any, blocks: Any) -> Iterable[Any]:
        """As `Cluster`, with an added delay for the way to the workers and back."""
        time.sleep(self.delay)
        return super().map_blocks(TimedOperation(operation), task, blocks)


def used() -> tuple[float, float, int]:
    """CPU seconds of this process, those within operations on blocks, and its peak memory."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.process_time(), spent[0], usage.ru_maxrss * 1024


def write_rows(folder: Path, n: int, part: int = PART, seed: int = 0) -> None:
    """Random rows in files of `part` rows."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    for number, begin in enumerate(range(0, n, part)):
        rng = np.random.default_rng([seed, number])
        rows = min(part, n - begin)
        places = [rng.integers(size, size=rows, dtype=np.int32) for size in SHAPE]
        table = pa.table(dict(zip(MODES, places, strict=True)))
        table = table.append_column("y", pa.array(rng.standard_normal(rows, dtype=np.float32)))
        parquet.write_table(table, folder / f"part-{number:05d}.parquet")


def measure(n: int, workers: int, rank: int, scans: int, delay: float) -> Iterator[tuple[str, Any]]:
    """The figures, by name."""
    with tempfile.TemporaryDirectory() as folder, connected(None, workers) as client:
        small, large = Path(folder) / "small", Path(folder) / "large"
        write_rows(small, 40_000, part=2_500)
        with Cluster(client) as cluster:  # loads everything that the workers need
            read = cluster.read_files(small, MODES, "y")
            short = cluster.short_cuts(small, MODES, "y")
            make_problem(spread_over(cluster, read, MODES, "y", short)[0], *MODEL, engine=cluster)
        write_rows(large, n)
        yield "rows", n
        yield "workers", workers
        base = {worker: found[2] for worker, found in client.run(used).items()}
        with TimedCluster(client) as cluster:
            begin = time.perf_counter()
            read = cluster.read_files(large, MODES, "y")
            short = cluster.short_cuts(large, MODES, "y")
            spread, _ = spread_over(cluster, read, MODES, "y", short)
            yield "seconds to survey", time.perf_counter() - begin
            grown = [found[2] - base[worker] for worker, found in client.run(used).items()]
            yield "peak MB per worker of the survey", max(grown) / 1e6
            begin = time.perf_counter()
            problem = make_problem(spread.standardised(0.0, 1.0), *MODEL, engine=cluster)
            yield "seconds to lay out", time.perf_counter() - begin
            views = [view for view in problem.views if isinstance(view, Placed)]
            yield "tasks per mode", max(len(view.groups) for view in views)
            share = n * sum(4 * (len(SHAPE) - 1) + 4 for _ in SHAPE) / workers
            yield "MB of blocks per worker", share / 1e6
            grown = [found[2] - base[worker] for worker, found in client.run(used).items()]
            yield "peak MB per worker beyond the start", max(grown) / 1e6
            yield "peak over share of the blocks", max(grown) / share
            streams = Streams.of_chain(0, 0)
            state = gibbs.init(streams, problem, RingSize(1, (rank,) * len(SHAPE)))
            state, _ = gibbs.step(streams, 1, state, problem, cluster)  # compiles
            cluster.delay = delay
            before, here = client.run(used), time.process_time()
            begin = time.perf_counter()
            for scan in range(2, scans + 2):
                state, _ = gibbs.step(streams, scan, state, problem, cluster)
            wall = (time.perf_counter() - begin) / scans
            after = client.run(used)
            driver = (time.process_time() - here) / scans
            inside = [(after[each][1] - before[each][1]) / scans for each in after]
            around = [(after[each][0] - before[each][0]) / scans for each in after]
        yield "seconds per scan", wall
        yield "arithmetic, CPU seconds per scan, all workers", sum(inside)
        yield "arithmetic of the busiest worker", max(inside)
        yield "CPU seconds of driver and scheduler per scan", driver
        yield "CPU seconds of workers outside of arithmetic", sum(around) - sum(inside)
        yield "overhead in CPU", (driver + sum(around) - sum(inside)) / sum(inside)
        yield "overhead in wall time", wall / max(inside) - 1
        yield "MB of the ring", sum(core.nbytes for core in state.cores) / 1e6
        yield "peak MB of the driver", used()[2] / 1e6


def threads(n: int, rank: int, scans: int) -> Iterator[tuple[str, Any]]:
    """CPU seconds of the same scan on one thread of this process, without a cluster."""
    from bayesring.data.observations import Observations

    rng = np.random.default_rng(0)
    coords = np.stack([rng.integers(size, size=n, dtype=np.int32) for size in SHAPE])
    data = Observations(coords.T, rng.standard_normal(n).astype(np.float32), SHAPE)
    with Threads(1) as engine:
        problem = make_problem(data, *MODEL, engine=engine)
        streams = Streams.of_chain(0, 0)
        state = gibbs.init(streams, problem, RingSize(1, (rank,) * len(SHAPE)))
        state, _ = gibbs.step(streams, 1, state, problem, engine)
        begin = time.process_time()
        for scan in range(2, scans + 2):
            state, _ = gibbs.step(streams, scan, state, problem, engine)
        yield "one thread, CPU seconds per scan", (time.process_time() - begin) / scans


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rank", type=int, default=5)
    parser.add_argument("--scans", type=int, default=5)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds added to every step")
    parser.add_argument("--one-thread", action="store_true", help="also without a cluster")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    asked = [partial(measure, given.rows, given.workers, given.rank, given.scans, given.delay)]
    if given.one_thread:
        asked.append(partial(threads, given.rows, given.rank, given.scans))
    found = {}
    for each in asked:
        for name, number in each():
            found[name] = number
            if not given.json:
                shown = f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"
                print(f"{name:48} {shown}", flush=True)  # noqa: T201
    if given.json:
        print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    from paper.bench import cluster as by_name  # so that workers find it by this name

    by_name.main()
