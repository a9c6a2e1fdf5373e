"""What a cluster costs: laying out blocks, bytes and memory, scans and what is added to them.

    python -m paper.bench.cluster --rows 10000000 --workers 2

A table of random rows is written to a Parquet folder, surveyed and laid out on worker processes of
this machine, and scanned. *Arithmetic* is the CPU time of the workers inside the operations on
blocks. Overhead is everything else: CPU time of the driver (scheduler included) and of the workers
outside of them, and the wall time of a scan beyond the arithmetic of the busiest worker.

As on a slow network, every step waits for ``--delay`` seconds, and as long as the bytes that go
from and to the driver take at ``--bandwidth`` bytes per second. Several numbers of rows, delays
and bandwidths are measured in turn on one cluster, all with all. ``--json`` prints a line for each,
and ``--store`` adds them to `paper/results/cluster.csv`, for `paper.bench.scan_model`. Memory is
that of the first number of rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import ceil, log2
from pathlib import Path
from typing import Any, NamedTuple

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
from paper.results_store import COMMITTED, ROOT

RUNS = ROOT / COMMITTED / "cluster.csv"
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

    delay, bandwidth = 0.0, float("inf")
    """Seconds per step, and bytes per second."""
    moved, steps = 0, 0
    """Bytes from and to the driver so far, and calls of `map_blocks`."""

    def map_blocks(self, operation: Any, task: Any, blocks: Any) -> Iterable[Any]:
        """As `Cluster`, with an added delay for the way to the workers and back."""
        before = self.moved
        found = super().map_blocks(TimedOperation(operation), task, blocks)
        self.steps += 1
        time.sleep(self.delay + (self.moved - before) / self.bandwidth)
        return found

    def _stripped(self, task: Any, n_tasks: int) -> tuple[Any, list[Any]]:
        bare, parts = super()._stripped(task, n_tasks)
        inside = sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
        self.moved += inside * n_tasks
        return bare, parts

    def _send(self, name: str, part: Any) -> Any:
        """Workers that have a core pass it on: the last one has it after log2(W) more hops."""
        self.moved += part.nbytes * (1 + ceil(log2(len(self.threads()))))
        return super()._send(name, part)

    def _persistently(self, send: Callable[[], Any]) -> Any:
        found = super()._persistently(send)
        if isinstance(found, list):
            self.moved += sum(len(each) for each in found if isinstance(each, bytes))
        return found


class Network(NamedTuple):
    """What is added to the network of this machine."""

    delay: float = 0.0
    bandwidth: float = float("inf")


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


def warm_up(client: Any, folder: Path) -> None:
    """Let the workers load everything that they need."""
    write_rows(folder, 40_000, part=2_500)
    with Cluster(client) as cluster:
        read = cluster.read_files(folder, MODES, "y")
        short = cluster.short_cuts(folder, MODES, "y")
        make_problem(spread_over(cluster, read, MODES, "y", short)[0], *MODEL, engine=cluster)


class Runs(NamedTuple):
    """What is scanned: rings of one rank, in one or several chains."""

    rank: int
    scans: int
    chains: int = 1


def measure(
    client: Any, folder: Path, n: int, runs: Runs, networks: Sequence[Network]
) -> Iterator[dict[str, Any]]:
    """The figures by name, for each of the networks. Scans are those of all chains."""
    write_rows(folder, n)
    workers = len(client.nthreads())
    laid: dict[str, Any] = {"rows": n, "workers": workers}
    base = {worker: found[2] for worker, found in client.run(used).items()}

    def peak() -> float:
        return float(max(found[2] - base[worker] for worker, found in client.run(used).items()))

    with TimedCluster(client) as cluster:
        begin = time.perf_counter()
        read = cluster.read_files(folder, MODES, "y")
        short = cluster.short_cuts(folder, MODES, "y")
        spread, _ = spread_over(cluster, read, MODES, "y", short)
        laid["seconds to survey"] = time.perf_counter() - begin
        laid["peak MB per worker of the survey"] = peak() / 1e6
        begin = time.perf_counter()
        problem = make_problem(spread.standardised(0.0, 1.0), *MODEL, engine=cluster)
        laid["seconds to lay out"] = time.perf_counter() - begin
        views = [view for view in problem.views if isinstance(view, Placed)]
        laid["tasks per mode"] = max(len(view.groups) for view in views)
        share = n * sum(4 * (len(SHAPE) - 1) + 4 for _ in SHAPE) / workers
        laid["MB of blocks per worker"] = share / 1e6
        laid["peak MB per worker beyond the start"] = peak() / 1e6
        laid["peak over share of the blocks"] = peak() / share
        streams = [Streams.of_chain(0, chain) for chain in range(runs.chains)]
        size = RingSize(1, (runs.rank,) * len(SHAPE))
        states = [gibbs.init(each, problem, size) for each in streams]
        states[0], _ = gibbs.step(streams[0], 1, states[0], problem, cluster)  # compiles
        laid["MB of the ring"] = sum(core.nbytes for core in states[0].cores) / 1e6
        scans = runs.chains * runs.scans

        def scan(chain: int) -> None:
            for number in range(2, runs.scans + 2):
                states[chain], _ = gibbs.step(
                    streams[chain], number, states[chain], problem, cluster
                )

        for network in networks:
            cluster.delay, cluster.bandwidth = network
            before, here = client.run(used), time.process_time()
            moved, steps, begin = cluster.moved, cluster.steps, time.perf_counter()
            cluster.map_chains(scan, range(runs.chains))
            wall = (time.perf_counter() - begin) / scans
            after = client.run(used)
            driver = (time.process_time() - here) / scans
            inside = [(after[each][1] - before[each][1]) / scans for each in after]
            around = [(after[each][0] - before[each][0]) / scans for each in after]
            yield laid | {
                "delay": network.delay,
                "bandwidth": network.bandwidth,
                "scans": scans,
                "steps per scan": (cluster.steps - steps) / scans,
                "MB from and to the driver per scan": (cluster.moved - moved) / scans / 1e6,
                "seconds per scan": wall,
                "arithmetic, CPU seconds per scan, all workers": sum(inside),
                "arithmetic of the busiest worker": max(inside),
                "CPU seconds of driver and scheduler per scan": driver,
                "CPU seconds of workers outside of arithmetic": sum(around) - sum(inside),
                "overhead in CPU": (driver + sum(around) - sum(inside)) / sum(inside),
                "overhead in wall time": wall / max(inside) - 1,
                "peak MB of the driver": used()[2] / 1e6,
                "cores": os.cpu_count(),
                "load": os.getloadavg()[0],
            }


def store(run: dict[str, Any]) -> None:
    """Add a run to the results."""
    is_new = not RUNS.exists()
    with RUNS.open("a", newline="") as file:
        table = csv.DictWriter(file, list(run), lineterminator="\n")
        if is_new:
            table.writeheader()
        table.writerow({name: f"{own:.6g}" for name, own in run.items()})


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
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rank", type=int, default=5)
    parser.add_argument("--scans", type=int, default=5, help="of every chain")
    parser.add_argument("--chains", type=int, default=1, help="side by side")
    parser.add_argument(
        "--delay", type=float, nargs="+", default=[0.0], help="seconds added to every step"
    )
    parser.add_argument(
        "--bandwidth", type=float, nargs="+", default=[float("inf")], help="bytes per second"
    )
    parser.add_argument("--one-thread", action="store_true", help="also without a cluster")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--store", action="store_true", help="add the runs to paper/results")
    given = parser.parse_args()
    if given.store and given.chains > 1:
        parser.error("--store keeps runs of one chain: the model of scan time is of one.")
    networks = [Network(*each) for each in product(given.delay, given.bandwidth)]
    with tempfile.TemporaryDirectory() as folder, connected(None, given.workers) as client:
        warm_up(client, Path(folder) / "small")
        for n in given.rows:
            alone = dict(threads(n, given.rank, given.scans)) if given.one_thread else {}
            rows = Path(folder) / str(n)
            runs = Runs(given.rank, given.scans, given.chains)
            for found in measure(client, rows, n, runs, networks):
                if given.store:
                    store(found)
                show(found | alone, given.json)


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print figures."""
    if as_json:
        print(json.dumps(found), flush=True)  # noqa: T201
        return
    for name, number in found.items():
        shown = f"{number:,}" if isinstance(number, int) else f"{number:,.4g}"
        print(f"{name:48} {shown}", flush=True)  # noqa: T201


if __name__ == "__main__":
    from paper.bench import cluster as by_name  # so that workers find it by this name

    by_name.main()
