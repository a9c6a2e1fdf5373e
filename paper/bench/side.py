"""One side of `paper.bench.against`: a process that scans on request.

Run as a script with the sources of some commit first on the path, so it imports nothing from
`paper` and knows two internal interfaces of the library: the one with engines, and the earlier one.

Reads lines of JSON from standard input and answers each with one line: `{"case": ..., "threads":
...}` prepares a chain, a number requests that many scans and returns their wall and CPU seconds,
and null requests a digest of the chain's state.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Side = tuple[Callable[[], None], Callable[[], list[Any]]]
"""A step, and the arrays of the current state."""
SEED = 0


def random_cells(case: dict[str, Any]) -> tuple[Any, Any]:
    """Coordinates and values of a smooth tensor at random cells."""
    rng = np.random.default_rng(SEED)
    n, shape = case["observations"], case["shape"]
    coords = np.stack([rng.integers(0, size, n, dtype=np.int32) for size in shape], axis=1)
    fitted = 2 * np.ones(n)
    for mode, size in enumerate(shape):
        fitted *= np.sin(np.linspace(0, 3 + mode, size))[coords[:, mode]]
    values = fitted + 0.3 * rng.standard_normal(n)
    return coords, (values > 0).astype(float) if case["binary"] else values


@contextmanager
def with_engine(case: dict[str, Any], threads: int) -> Iterator[Side]:
    """Drive the library with engines."""
    from bayesring.data.batches import ArrayRows, Feed
    from bayesring.data.observations import Observations
    from bayesring.engine.streams import Streams
    from bayesring.engine.threads import Threads
    from bayesring.infer import em, gibbs
    from bayesring.infer.problem import make_problem
    from bayesring.likelihoods import Bernoulli, Gaussian, Likelihood
    from bayesring.model.types import RingSize
    from bayesring.priors import NormalWishart, RingPrior

    shape = tuple(case["shape"])
    data = Observations(*random_cells(case), shape)
    likelihood: Likelihood = Bernoulli() if case["binary"] else Gaussian(max_precision=100.0)
    prior = RingPrior.of(NormalWishart()).for_shape(shape)
    size = RingSize(case["strands"], (case["rank"],) * len(shape))
    streams = Streams.of_chain(SEED, 0)
    with Threads(threads) as engine:
        if case["batch"]:
            setting, rows = em.Setting(likelihood, prior, engine), ArrayRows(data)
            estimate = em.start(streams, size, rows.counts, setting)
            feed = Feed(rows, streams, case["batch"])

            def learn() -> None:
                nonlocal estimate
                batches = feed.read(estimate.position, case["observations"])
                estimate = em.learn(estimate, batches, case["rate"], True, setting)

            yield learn, lambda: [estimate.cores]
            return
        problem = make_problem(data, likelihood, prior, engine=engine)
        state, scan = gibbs.init(streams, problem, size), 0

        def step() -> None:
            nonlocal state, scan
            scan += 1
            state = gibbs.step(streams, scan, state, problem, engine)[0]

        yield step, lambda: [*state.cores, *state.weights]


@contextmanager
def with_maps(case: dict[str, Any], threads: int) -> Iterator[Side]:
    """Drive the library from before engines."""
    from bayesring.infer.base import make_problem  # type: ignore[import-not-found]
    from bayesring.infer.learner import Learner  # type: ignore[import-not-found]
    from bayesring.infer.rows import ArrayRows, batches  # type: ignore[import-not-found]
    from bayesring.infer.streams import Streams  # type: ignore[import-not-found]
    from bayesring.infer.threads import ChainThreads  # type: ignore[import-not-found]
    from bayesring.observations import Observations  # type: ignore[import-not-found]
    from bayesring.types import RingSize  # type: ignore[import-not-found]

    from bayesring.infer import gibbs
    from bayesring.likelihoods import Bernoulli, Gaussian
    from bayesring.priors import NormalWishart, RingPrior

    shape = tuple(case["shape"])
    data = Observations(*random_cells(case), shape)
    likelihood = Bernoulli() if case["binary"] else Gaussian(max_precision=100.0)
    prior = RingPrior.of(NormalWishart())
    size = RingSize(case["strands"], (case["rank"],) * len(shape))
    streams = Streams.of_chain(SEED, 0)
    with ChainThreads(1, threads) as pool:
        if case["batch"]:
            rows = ArrayRows(data)
            learner = Learner(streams, size, rows.counts, likelihood, prior)
            source = batches(rows, streams, case["batch"])

            def learn() -> None:
                end = learner.rows_seen + case["observations"]
                while learner.rows_seen < end:
                    learner.learn(*next(source), case["rate"], True)

            yield learn, lambda: [learner.flat]
            return
        problem = make_problem(data, likelihood, prior)
        state, scan = gibbs.init(streams, problem, size), 0

        def step() -> None:
            nonlocal state, scan
            scan += 1
            state = gibbs.step(streams, scan, state, problem, pool.map_blocks)[0]

        yield step, lambda: [*state.cores, *state.weights]


def main() -> None:
    """Answer one line after another."""
    try:
        import bayesring.engine.threads  # noqa: F401

        drive = with_engine
    except ImportError:
        drive = with_maps
    asked = json.loads(sys.stdin.readline())
    with drive(asked["case"], asked["threads"]) as (step, state):
        step()
        answer: Any = "ready"
        while True:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
            line = sys.stdin.readline()
            if not line:
                return
            scans = json.loads(line)
            if scans is None:
                parts = b"".join(np.ascontiguousarray(part).tobytes() for part in state())
                answer = hashlib.sha256(parts).hexdigest()
                continue
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(scans):
                step()
            answer = time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
