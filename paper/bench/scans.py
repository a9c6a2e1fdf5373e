"""Scans: seconds, conditionals, scaling, threads, share of the machine's peak, predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bayesring import TensorRing
from bayesring.engine.operations import ENTRYWISE, JOINT, CoreTask, StatisticsTask
from bayesring.engine.streams import Purpose
from bayesring.engine.threads import ONE_THREAD, Threads, count_threads, one_blas_thread
from bayesring.infer import diagnostics, gibbs
from bayesring.infer.problem import make_problem
from bayesring.kernels import slices as slices_kernel
from bayesring.likelihoods import (
    Bernoulli,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from bayesring.model import ring
from bayesring.priors import Fixed, NormalWishart, RingPrior
from paper.bench.timing import (
    CLIMATE,
    CLIMATE_N,
    Measurement,
    TimedChain,
    dgemm_rate,
    least,
    numpy_entries,
    random_data,
)

KEPT = "against NumPy entries in the cache"
"""Unit of the rows that `check` compares with the committed figures."""


def kept(repeats: int = 15) -> Iterator[Measurement]:
    """Scans on one thread, as multiples of the time NumPy needs for the entries alone."""
    chains = {
        "scan, rank 5, fixed prior": TimedChain(),
        "scan, rank 5, hierarchical prior": TimedChain(core_prior=NormalWishart()),
        "scan, rank 10, fixed prior": TimedChain(rank=10),
        "scan, rank 5, Bernoulli": TimedChain(likelihood=Bernoulli()),
        "scan, 500 observations, rank 3": TimedChain((20, 30, 40), 500, 3, NormalWishart()),
        "scan, 25 strands of rank 2": TimedChain(rank=2, strands=25, core_prior=NormalWishart()),
        "scan, rank 5, float32": TimedChain(dtype="float32"),
        "scan, rank 10, float32": TimedChain(rank=10, dtype="float32"),
    }
    with one_blas_thread:
        reference, *times = least(
            numpy_entries(), *chains.values(), repeats=repeats, clock=time.thread_time
        )
    for name, seconds in zip(chains, times, strict=True):
        yield Measurement(name, seconds / reference, KEPT, note=f"{1e3 * seconds:.2f} ms CPU")
    yield Measurement(
        "Bernoulli scan against Gaussian scan", times[3] / times[0], "x", 3.0, at_least=False
    )
    yield Measurement("float32 against float64, rank 5", times[0] / times[6], "x faster", 1.5)
    yield Measurement("float32 against float64, rank 10", times[2] / times[7], "x faster", 1.5)


def kinds(repeats: int = 15) -> Iterator[Measurement]:
    """Scans of other kinds of values, as multiples of the Gaussian scan of as many observations.

    Of five scans each, since parameters without a conditional of their own are drawn in two ways.
    """
    likelihoods: dict[str, tuple[Likelihood, float | None]] = {
        "Gaussian": (Gaussian(max_precision=100.0), None),
        "Student-t": (StudentT(max_precision=100.0), 1.5),
        "negative binomial": (NegativeBinomial(centre=1.0, max_size=10.0), 4.0),
        "Poisson": (Poisson(centre=1.0, r=50.0), None),
        "ordinal": (Ordinal(levels=5), None),
    }
    chains = [TimedChain(likelihood=likelihood) for likelihood, _ in likelihoods.values()]

    def five(chain: TimedChain) -> Callable[[], None]:
        def scan() -> None:
            for _ in range(5):
                chain()

        return scan

    with one_blas_thread:
        times = least(*map(five, chains), repeats=repeats, clock=time.thread_time)
    for (name, (_, goal)), seconds in list(zip(likelihoods.items(), times, strict=True))[1:]:
        yield Measurement(
            f"{name} scan against Gaussian scan", seconds / times[0], "x", goal, at_least=False
        )


def conditionals() -> Iterator[Measurement]:
    """Milliseconds of each conditional of a scan of the climate problem, one thread."""
    chain = TimedChain()
    chain()
    state, problem, streams = chain.state, chain.problem, chain.streams
    prior = problem.prior
    mode = 1
    flat = ring.flatten(ring.weighted(state.cores, state.weights))
    task = CoreTask(
        flat,
        state.weights[mode].ravel(),
        state.cores[mode],
        prior.modes[mode].slice_prior(state.cores[mode], state.hyper[mode]),
        problem.likelihood,
        state.nuisance,
        streams,
        1,
    )
    asked = StatisticsTask(flat, problem.likelihood, state.nuisance, streams, 1)
    one_by_one = problem._replace(update=ENTRYWISE)
    statistics = gibbs.draw_core(task, mode, problem)[1]
    parts = {
        "hyperparameters": lambda: NormalWishart().update_hyper(
            streams.rng(1, Purpose.HYPER), state.cores[mode]
        ),
        "slices": lambda: gibbs.draw_core(task, mode, problem),
        "slices, entry by entry": lambda: gibbs.draw_core(task, mode, one_by_one),
        "weights": lambda: gibbs.draw_weights(
            streams, 1, mode, statistics, prior.weights.precisions(state.gains[mode])
        ),
        "gains": lambda: prior.weights.update_gains(
            streams.rng(1, Purpose.GAINS), state.weights[mode], state.gains[mode]
        ),
        "entries and noise": lambda: ONE_THREAD.statistics(asked, problem.views[0]),
    }
    with one_blas_thread:
        times = least(*parts.values(), clock=time.thread_time)
    for name, seconds in zip(parts, times, strict=True):
        yield Measurement(f"{name} of one mode, rank 5", 1e3 * seconds, "ms CPU")


def peak_share(quick: bool) -> Iterator[Measurement]:
    """Useful operations per second of the core update, relative to NumPy's matrix product.

    Useful operations are the products around the ring, a symmetric rank-one update per observation,
    and a Cholesky factor and two solves per slice. With 2,000 observations per slice, the update
    dominates, not the Cholesky.
    """
    with one_blas_thread:
        peak = dgemm_rate()
        yield Measurement("matrix product in NumPy, one thread", peak / 1e9, "Gflop/s")
        for rank in (8, 16) if quick else (3, 5, 8, 10, 12, 16):
            for per_slice in (2000, 100):
                seconds, operations = _core_update(rank, per_slice)
                yield Measurement(
                    f"core update, rank {rank}, {per_slice} observations per slice",
                    operations / seconds / peak,
                    "of matrix product",
                    0.25 if rank >= 8 else None,
                    note=f"{operations / seconds / 1e9:.1f} Gflop/s",
                )


def _core_update(rank: int, per_slice: int) -> tuple[float, float]:
    """Seconds and useful operations of `draw_slices` on one block."""
    rng = np.random.default_rng(0)
    n_slices, size = max(1, 8000 // per_slice), rank * rank
    n = n_slices * per_slice
    flat = ring.flatten([rng.standard_normal((150, 1, rank, rank)) / rank for _ in range(3)])
    arguments = (
        *flat,
        0,
        rng.integers(0, 150, (2, n)).astype(np.int32),
        np.arange(0, n + 1, per_slice),
        np.ones(n),
        rng.standard_normal(n),
        np.ones(rank),
        np.eye(size),
        np.zeros((1, size)),
        np.zeros((1, size)),
        np.ones(1),
        rng.standard_normal((n_slices, size)),
    )
    seconds = least(lambda: slices_kernel.draw_slices(*arguments), clock=time.thread_time)[0]
    per_observation = 2 * rank**3 + size * (size + 1)
    return seconds, n * per_observation + n_slices * (size**3 / 3 + 2 * size**2)


def threads(n: int) -> Iterator[Measurement]:
    """Wall time of one thread against two, and the same for NumPy matrix products."""
    shape = (1000, 1000, 1000)
    jobs = min(2, count_threads(None))
    likelihood = Gaussian(max_precision=100.0)
    problem = make_problem(random_data(shape, n, likelihood), likelihood, RingPrior.of(Fixed()))
    matrix = np.random.default_rng(0).standard_normal((400, 400))

    def products(run: Callable[..., Iterable[object]]) -> None:
        list(run(lambda _: [matrix @ matrix for _ in range(20)], range(2)))

    with Threads(2) as engine, ThreadPoolExecutor(2) as other:
        one = TimedChain(shape, problem=problem)
        two = TimedChain(shape, problem=problem, engine=engine)
        alone, together, product, side_by_side = least(
            one, two, lambda: products(map), lambda: products(other.map), repeats=7
        )
    yield Measurement(
        f"{jobs} threads against 1, {n:,} observations",
        alone / together,
        "x faster",
        1.8,
        note=f"matrix products: {product / side_by_side:.2f}",
    )


def growth(quick: bool, large: bool) -> Iterator[Measurement]:
    """Nanoseconds per observation of a scan on one thread, as M, R, D and I vary."""
    counts = (10**4, 10**6) if quick else (10**4, 10**5, 10**6, 10**7)
    per_observation = {}
    for n in (*counts, 10**8) if large else counts:
        per_observation[n] = _per_observation((1000, 1000, 1000), n, 3)
        yield Measurement(f"scan, M = {n:.0e}, rank 3", per_observation[n], "ns/observation")
    largest = max(per_observation)
    if largest > 10**6:
        yield Measurement(
            f"time per observation at {largest:.0e} against 1e+06",
            per_observation[largest] / per_observation[10**6],
            "x",
            1.3,
            at_least=False,
        )
    for rank in (2, 8) if quick else (2, 3, 5, 8, 12, 16):
        figure = _per_observation((300, 300, 300), 10**5, rank)
        yield Measurement(f"scan, rank {rank}, M = 1e+05", figure, "ns/observation")
    for order in (3, 4) if quick else (3, 4, 5, 6):
        figure = _per_observation((50,) * order, 10**5, 4)
        yield Measurement(f"scan, D = {order}, rank 4, M = 1e+05", figure, "ns/observation")
    for size in (100, 10_000) if quick else (100, 1000, 10_000, 100_000):
        figure = _per_observation((size, 100, 100), 10**5, 3)
        yield Measurement(f"scan, I = {size:,}, rank 3, M = 1e+05", figure, "ns/observation")


def _per_observation(shape: tuple[int, ...], n: int, rank: int) -> float:
    with one_blas_thread:
        chain = TimedChain(shape, n, rank)
        repeats = 2 if n > 10**6 else 5
        return 1e9 * least(chain, repeats=repeats, clock=time.thread_time)[0] / n


def predictions() -> Iterator[Measurement]:
    """Cells times draws per second that `predict` computes at rank 5."""
    data = random_data(CLIMATE, CLIMATE_N, Gaussian())
    model = TensorRing(5, shape=CLIMATE, warmup=5, draws=100, chains=1, progress=False)
    model.fit(data.coords, data.values)
    cells = random_data(CLIMATE, 200_000, Gaussian(), seed=1).coords
    seconds = least(lambda: model.predict(cells), repeats=3)[0]
    yield Measurement(
        "predict, rank 5", 100 * len(cells) / seconds / 1e6, "M cells x draws/s", 10.0
    )


def mixing(quick: bool) -> Iterator[Measurement]:
    """Effective draws per second of entries at held-out cells, slice-wise and entry-wise."""
    scans = 200 if quick else 1000
    likelihood = Gaussian(max_precision=100.0)
    cells = random_data(CLIMATE, 200, likelihood, seed=1)
    for name, update in (("slice", JOINT), ("entry", ENTRYWISE)):
        data = random_data(CLIMATE, CLIMATE_N, likelihood)
        problem = make_problem(data, likelihood, RingPrior.of(Fixed()), update)
        chain = TimedChain(problem=problem, rank=3)
        with one_blas_thread:
            for _ in range(scans):
                chain()
            begin = time.thread_time()
            draws = []
            for _ in range(scans):
                chain()
                draws.append(chain.entries(cells))
            seconds = time.thread_time() - begin
        effective = diagnostics.ess_bulk(np.stack(draws)[None])
        figure = float(np.median(effective)) / seconds
        yield Measurement(
            f"update={name!r}: effective draws of held-out entries", figure, "per CPU second"
        )
