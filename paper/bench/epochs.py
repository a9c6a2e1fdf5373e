"""Online EM: an epoch, rows per second from files, and the time compared with the sampler."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bayesring import TensorRing, metrics
from bayesring.data.batches import ArrayRows, Feed
from bayesring.data.observations import Observations
from bayesring.datasets import load_dblp
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD, one_blas_thread
from bayesring.infer import em
from bayesring.infer.schedule import RATE
from bayesring.likelihoods import Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import NormalWishart, RingPrior
from bayesring.settings import resolve
from paper.bench.processes import run_alone
from paper.bench.timing import CLIMATE, CLIMATE_N, Measurement, least, random_data
from paper.planted_stream import make_stream

REFERENCE_EPOCH = 0.695
"""Seconds per epoch of the authors' code on USHCN at rank 5, on two cores of this kind."""
EPOCHS = (10, 12, 14, 16, 24)
"""Lengths of fits; the first that predicts well enough counts."""
NEAR = 0.97
"""Share of the sampler's AUC and accuracy that counts as well enough."""

STREAM = """
import json, sys, time
import numpy as np
from bayesring import TensorRing, metrics
from bayesring.model import ring
from paper.planted_stream import planted_cores

def peak():
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

model = TensorRing(3, inference="online-em", random_state=0, progress=False)
begin = time.perf_counter()
model.fit(sys.argv[1], modes=["i", "j", "k"], value="value")
seconds = time.perf_counter() - begin
rng = np.random.default_rng(1)
cells = np.stack([rng.integers(0, size, 20_000) for size in model.shape_], axis=1)
error = metrics.rmse(ring.entries(planted_cores(model.shape_, 0), cells), model.predict(cells))
rows = model.estimates_[0].rows_seen
print(json.dumps({"rows": rows, "seconds": seconds, "peak": peak(), "error": error}))
"""


class TimedRing:
    """A ring that learns one epoch per call."""

    def __init__(self, data: Observations, rank: int) -> None:
        self._n = len(data.values)
        rows, streams = ArrayRows(data), Streams.of_chain(0, 0)
        prior = RingPrior.of(NormalWishart()).for_shape(data.shape)
        self._setting = em.Setting(Gaussian(max_precision=100.0), prior, ONE_THREAD)
        size = RingSize(1, (rank,) * len(data.shape))
        self._estimate = em.start(streams, size, rows.counts, self._setting)
        learning = resolve(TensorRing().get_params()).learning(self._n)
        self._feed = Feed(rows, streams, learning.batch_size)

    @property
    def rows_seen(self) -> int:
        """Number of observations learned so far."""
        return self._estimate.rows_seen

    def __call__(self) -> None:
        """One more epoch."""
        batches = self._feed.read(self._estimate.position, self._n)
        self._estimate = em.learn(self._estimate, batches, RATE, True, self._setting)


def epochs() -> Iterator[Measurement]:
    """An epoch on data of the size of USHCN, compared with the authors' code."""
    data = random_data(CLIMATE, CLIMATE_N, Gaussian())
    with one_blas_thread:
        seconds = least(TimedRing(data, 5), repeats=100)[0]
    yield Measurement(
        "epoch of online EM, USHCN, rank 5, against the authors' code",
        REFERENCE_EPOCH / seconds,
        "x faster",
        50.0,
        note=f"{1e3 * seconds:.1f} ms",
    )


def stream(rows: int) -> Iterator[Measurement]:
    """Rows per second through a fit from Parquet files, and its peak memory."""
    name = f"online EM from Parquet, rank 3, {rows:.0e} rows"
    if find_spec("pyarrow") is None:
        yield Measurement(name, None, "million rows/s", note="no pyarrow")
        return
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "stream"
        make_stream(target, rows, files=4)
        found = run_alone(STREAM, str(target))
    rate = found["rows"] / found["seconds"] / 1e6
    note = f"{found['seconds']:.0f} s, error {found['error']:.3f} under noise of 0.5"
    yield Measurement(name, rate, "million rows/s", 2.0, note=note)
    yield Measurement(f"peak memory, {name}", found["peak"] / 1e9, "GB", 2.0, at_least=False)


def against_gibbs() -> Iterator[Measurement]:
    """Time to within 3 % of the sampler's AUC and accuracy on DBLP, as the ratio sampler / ours."""
    name = "online EM to within 3 % of Gibbs on DBLP"
    try:
        train, test = load_dblp().split(0)
    except (OSError, ImportError):
        yield Measurement(name, None, "x faster", note="no data")
        return

    def scores(**settings: Any) -> tuple[float, float, float]:
        model = TensorRing(
            likelihood="bernoulli", shape=train.shape, random_state=0, progress=False, **settings
        )
        begin = time.perf_counter()
        found = model.fit(train.coords, train.values).predict(test.coords)
        seconds = time.perf_counter() - begin
        return seconds, metrics.auc(test.values, found), metrics.accuracy(test.values, found)

    gibbs, *goals = scores()
    for length in EPOCHS:
        ours, *reached = scores(inference="online-em", chains=1, epochs=length)
        if all(own >= NEAR * goal for own, goal in zip(reached, goals, strict=True)):
            note = f"{gibbs:.0f} s and {ours:.0f} s; AUC {goals[0]:.3f} and {reached[0]:.3f}"
            yield Measurement(name, gibbs / ours, "x faster", 10.0, note=note)
            return
    yield Measurement(
        name, 0.0, "x faster", 10.0, note=f"reached {reached[0]:.3f}, Gibbs {goals[0]:.3f}"
    )
