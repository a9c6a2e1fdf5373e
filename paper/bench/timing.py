"""Shared by all measurements: rows of the table, clocks, reference work, test problems."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from bayesring import __version__
from bayesring.data.observations import Observations
from bayesring.engine.protocol import Engine
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import gibbs
from bayesring.infer.problem import Problem, make_problem
from bayesring.likelihoods import Bernoulli, Gaussian, Likelihood
from bayesring.model import ring
from bayesring.model.types import FloatArray, RingSize, RingState
from bayesring.priors import Fixed, ModePrior, RingPrior

CLIMATE = (17, 125, 156)
CLIMATE_N = 33_150
"""Shape and number of observations of USHCN with a tenth known."""


class Measurement(NamedTuple):
    """One line of the table: a figure and its goal."""

    name: str
    value: float | None
    """None if it could not be measured."""
    unit: str
    goal: float | None = None
    at_least: bool = True
    """Whether the goal is a lower bound."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met, if there is one and it was measured."""
        if self.goal is None or self.value is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def machine() -> dict[str, Any]:
    """The machine and versions, on which the figures depend besides the code."""
    model = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load when it began": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "bayesring": __version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def least(
    *functions: Callable[[], Any], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Minimum seconds of each function over some repeats, in turn, after one warm-up call each."""
    for function in functions:
        function()
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for place, function in enumerate(functions):
            begin = clock()
            function()
            best[place] = min(best[place], clock() - begin)
    return best


def random_data(
    shape: tuple[int, ...], n: int, likelihood: Likelihood, seed: int = 0
) -> Observations:
    """Observations of a smooth tensor at random cells."""
    rng = np.random.default_rng(seed)
    coords = np.empty((n, len(shape)), dtype=np.int32)
    fitted = np.ones(n)
    for mode, size in enumerate(shape):
        coords[:, mode] = rng.integers(0, size, n)
        fitted *= np.sin(np.linspace(0, 3 + mode, size))[coords[:, mode]]
    nuisance = likelihood.initial_nuisance()
    return Observations(coords, likelihood.simulate(rng, 2 * fitted, nuisance), shape)


class TimedChain:
    """A chain on test data, one scan per call."""

    def __init__(
        self,
        shape: tuple[int, ...] = CLIMATE,
        n: int = CLIMATE_N,
        rank: int = 5,
        core_prior: ModePrior | None = None,
        likelihood: Likelihood | None = None,
        engine: Engine = ONE_THREAD,
        problem: Problem | None = None,
        strands: int = 1,
        dtype: str = "float64",
    ) -> None:
        likelihood = likelihood or Gaussian(max_precision=100.0)
        prior = RingPrior.of(core_prior or Fixed()).for_shape(shape)
        if problem is None:
            problem = make_problem(random_data(shape, n, likelihood), likelihood, prior)
        self.problem = problem._replace(prior=prior, dtype=dtype)
        self.engine = engine
        self.streams = Streams.of_chain(0, 0)
        self.state: RingState = gibbs.init(
            self.streams, self.problem, RingSize(strands, (rank,) * len(shape))
        )
        self.scan = 0

    def __call__(self) -> None:
        """One more scan."""
        self.scan += 1
        self.state, _ = gibbs.step(self.streams, self.scan, self.state, self.problem, self.engine)

    def entries(self, cells: Observations) -> FloatArray:
        """Entries of the current ring at some cells."""
        flat = ring.flatten(ring.weighted(self.state.cores, self.state.weights))
        columns = np.ascontiguousarray(cells.coords.T, dtype=np.int32)
        return self.engine.entries(flat, columns)


def numpy_entries() -> Callable[[], list[FloatArray]]:
    """Reference work: the entries of the climate problem at rank 5 in plain NumPy.

    A few hundred at a time, so that it stays in cache like the kernels. All at once, it would
    measure memory and page faults, which other work on the machine disturbs twice as much.
    """
    rng = np.random.default_rng(0)
    cores = [rng.standard_normal((size, 1, 5, 5)) for size in CLIMATE]
    coords = random_data(CLIMATE, CLIMATE_N, Bernoulli()).coords
    parts = [coords[begin : begin + 500] for begin in range(0, CLIMATE_N, 500)]
    return lambda: [ring.entries(cores, part) for part in parts]


def dgemm_rate(repeats: int = 5) -> float:
    """Floating-point operations per second of NumPy's matrix product, on this thread."""
    size = 800
    matrix = np.random.default_rng(0).standard_normal((size, size))
    return 2 * size**3 / least(lambda: matrix @ matrix, repeats=repeats, clock=time.thread_time)[0]
