"""Other programs on the same data with the same threads: SMURFF and NumPyro, if installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from bayesring.data.observations import Observations
from bayesring.engine.threads import Threads, count_threads, one_blas_thread
from bayesring.infer import diagnostics
from bayesring.likelihoods import Gaussian
from bayesring.priors import Fixed, ModePrior, NormalWishart
from paper.bench.timing import CLIMATE, Measurement, TimedChain, least, random_data
from paper.peer_process import SmurffRun, run_smurff

ROUNDS, SCANS = 4, 20
"""Rounds in which both programs are timed, and SMURFF's scans in each."""


def smurff_scan(rounds: int = ROUNDS, scans: int = SCANS) -> Iterator[Measurement]:
    """A scan compared with one of SMURFF's with as many parameters per slice, K = R^2 = 25.

    SMURFF runs in a process of its own, in turn with ours. If it used fewer cores than it was
    given, there is no figure.
    """
    priors: dict[str, tuple[ModePrior, float]] = {
        "fixed prior": (Fixed(), 3.5),
        "hierarchical prior": (NormalWishart(), 3.0),
    }
    row = "scan of SMURFF (K = 25) against ours"
    if find_spec("smurff") is None:
        for name in priors:
            yield Measurement(f"{row}, {name}", None, "x", note="no smurff")
        return
    data = random_data(CLIMATE, 33_150, Gaussian())
    jobs = min(2, count_threads(None))
    for threads, clock, unit in ((jobs, time.perf_counter, "wall"), (1, time.thread_time, "CPU")):
        ours, theirs = [float("inf")] * len(priors), float("inf")
        cores, shortfall = 0.0, None
        for _ in range(rounds):
            found = run_smurff(data, SmurffRun(25, threads, 1, scans, save_every=0))
            if found.cores_used > cores:  # the round with least of other work
                cores = found.cores_used
                shortfall = found.shortfall() if unit == "wall" else None
            times = found.wall if unit == "wall" else found.processor
            theirs = min(theirs, float(np.diff(times).min()))
            with Threads(threads) as engine:
                chains = [
                    TimedChain(core_prior=prior, engine=engine) for prior, _ in priors.values()
                ]
                again = least(*chains, repeats=scans // 2, clock=clock)
            ours = [min(pair) for pair in zip(ours, again, strict=True)]
        for (name, (_, goal)), seconds in zip(priors.items(), ours, strict=True):
            yield Measurement(
                f"{row}, {name}, threads: {threads}",
                None if shortfall else theirs / seconds,
                f"x faster ({unit})",
                goal if threads > 1 else None,
                note=shortfall
                or f"{1e3 * theirs:.1f} and {1e3 * seconds:.1f} ms, SMURFF on {cores:.2f} cores",
            )


def nuts(quick: bool) -> Iterator[Measurement]:
    """Effective draws per second of entries of a small tensor, compared with NumPyro's NUTS."""
    name = "effective draws per second against NumPyro NUTS, 8 x 9 x 10, rank 2"
    if find_spec("numpyro") is None:
        yield Measurement(name, None, "x", note="no numpyro")
        return
    shape, rank, n = (8, 9, 10), 2, 300
    likelihood = Gaussian(max_precision=float("inf"))
    data = random_data(shape, n, likelihood)
    cells = random_data(shape, 50, likelihood, seed=1)
    scans = 500 if quick else 4000
    chain = TimedChain(shape, n, rank, likelihood=likelihood)
    with one_blas_thread:
        for _ in range(scans):
            chain()
        begin = time.process_time()
        draws = []
        for _ in range(scans):
            chain()
            draws.append(chain.entries(cells))
        seconds = time.process_time() - begin
    ours = float(np.median(diagnostics.ess_bulk(np.stack(draws)[None]))) / seconds
    theirs_draws, seconds = _nuts_entries(data, cells, rank, 100 if quick else 500)
    theirs = float(np.median(diagnostics.ess_bulk(theirs_draws[None]))) / seconds
    yield Measurement(name, ours / theirs, "x", note=f"{ours:.0f} and {theirs:.1f} per CPU second")


def _nuts_entries(
    data: Observations, cells: Observations, rank: int, scans: int
) -> tuple[Any, float]:
    """Draws (scans, cells) of the same model by NUTS, and CPU seconds after its warm-up."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def entries(cores: Any, weights: Any, coords: Any) -> Any:
        product = cores[0][coords[:, 0]] * weights[0]
        for mode in range(1, len(cores)):
            product = product @ (cores[mode][coords[:, mode]] * weights[mode])
        return jnp.trace(product, axis1=1, axis2=2)

    def model() -> None:
        cores, weights = [], []
        for mode, size in enumerate(data.shape):
            normal = dist.Normal(0, 1).expand([size, rank, rank]).to_event(3)
            cores.append(numpyro.sample(f"core{mode}", normal))
            gains = numpyro.sample(f"gains{mode}", dist.Gamma(2, 1).expand([rank]).to_event(1))
            weight = dist.Normal(0, jnp.cumprod(gains) ** -0.5).to_event(1)
            weights.append(numpyro.sample(f"weights{mode}", weight))
        tau = numpyro.sample("tau", dist.Gamma(1.0, 0.3))
        fitted = entries(cores, weights, data.coords)
        numpyro.deterministic("entries", entries(cores, weights, cells.coords))
        numpyro.sample("y", dist.Normal(fitted, tau**-0.5), obs=data.values)

    run = MCMC(NUTS(model), num_warmup=scans, num_samples=scans, progress_bar=False)
    run.warmup(jax.random.PRNGKey(0))
    begin = time.process_time()
    run.run(jax.random.PRNGKey(1))
    return np.asarray(run.get_samples()["entries"], dtype=float), time.process_time() - begin
