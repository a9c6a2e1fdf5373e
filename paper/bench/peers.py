"""Other programs on the same data with the same threads: SMURFF and NumPyro, if installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from bayesring import TensorRing, metrics
from bayesring.data.observations import Observations
from bayesring.datasets import load_enron, load_ushcn
from bayesring.engine.threads import Threads, count_threads, one_blas_thread
from bayesring.infer import diagnostics
from bayesring.likelihoods import Gaussian
from bayesring.priors import Fixed, ModePrior, NormalWishart
from paper.baselines.smurff import smurff_session
from paper.bench.timing import CLIMATE, Measurement, TimedChain, least, random_data

BUDGETS = ((20, 10), (40, 20), (80, 40), (120, 60), (200, 100), (300, 200))
"""Warm-up and draws of fits of increasing length."""
BURNIN = 50
"""Number of scans that SMURFF discards before averaging."""
WITHIN = 1.003
"""A running error within this factor of its minimum counts as having reached it."""


def smurff_scan() -> Iterator[Measurement]:
    """A scan compared with one of SMURFF's with as many parameters per slice, K = R^2 = 25."""
    names: dict[str, tuple[ModePrior, float]] = {
        "fixed prior": (Fixed(), 3.0),
        "hierarchical prior": (NormalWishart(), 2.0),
    }
    if find_spec("smurff") is None:
        for name in names:
            yield Measurement(
                f"scan of SMURFF (K = 25) against ours, {name}", None, "x", note="no smurff"
            )
        return
    data = random_data(CLIMATE, 33_150, Gaussian())
    jobs = min(2, count_threads(None))
    for threads, clock, unit in ((jobs, time.perf_counter, "wall"), (1, time.thread_time, "CPU")):
        session = smurff_session(data, data, 25, threads, burnin=10_000)
        session.init()
        with Threads(threads) as engine:
            chains = [TimedChain(core_prior=prior, engine=engine) for prior, _ in names.values()]
            theirs, *ours = least(session.step, *chains, repeats=10, clock=clock)
        for (name, (_, goal)), seconds in zip(names.items(), ours, strict=True):
            yield Measurement(
                f"scan of SMURFF (K = 25) against ours, {name}, threads: {threads}",
                theirs / seconds,
                f"x faster ({unit})",
                goal if threads > 1 else None,
                note=f"{1e3 * theirs:.1f} and {1e3 * seconds:.1f} ms",
            )


def smurff_targets() -> Iterator[Measurement]:
    """Time to reach SMURFF's best held-out figure on real data, as the ratio theirs / ours."""
    missing = "no smurff" if find_spec("smurff") is None else None
    try:
        (train, test), links = load_ushcn().split(0), load_enron().split(0)
    except (OSError, ImportError):
        missing = "no data"
    if missing is not None:
        yield Measurement("time to SMURFF's RMSE on USHCN", None, "x faster", note=missing)
        yield Measurement("time to SMURFF's AUC on Enron", None, "x faster", note=missing)
        return
    step = len(test.values) // 20_000
    some = Observations(test.coords[::step], test.values[::step], test.shape)
    yield _target("RMSE on USHCN", train, some, 25, 7, "gaussian", metrics.rmse, goal=2.0)
    yield _target("AUC on Enron", *links, 20, 3, "bernoulli", lambda y, p: 1 - metrics.auc(y, p))


def _target(
    name: str,
    train: Observations,
    test: Observations,
    latent: int,
    rank: int,
    likelihood: str,
    error: Callable[[Any, Any], float],
    goal: float | None = None,
) -> Measurement:
    """Ratio of the seconds that SMURFF and our fit need to reach SMURFF's best error."""
    jobs = min(2, count_threads(None))
    probit = likelihood == "bernoulli"
    session = smurff_session(train, test, latent, jobs, BURNIN, 150, probit=probit)
    begin = time.perf_counter()
    session.init()
    spent, errors = [], []
    steps = 0
    while session.step():
        steps += 1
        if steps > BURNIN and steps % 10 == 0:
            predictions = session.getTestPredictions()
            found = np.array([(each.val, each.pred_avg) for each in predictions])
            spent.append(time.perf_counter() - begin)
            errors.append(error(*found.T))
    best = min(errors)
    theirs = next(at for at, now in zip(spent, errors, strict=True) if now <= WITHIN * best)
    for warmup, draws in BUDGETS:
        model = TensorRing(
            rank, likelihood=likelihood, shape=train.shape, warmup=warmup, draws=draws, chains=1,
            n_jobs=jobs, random_state=0, progress=False,
        )  # fmt: skip
        begin = time.perf_counter()
        ours_error = error(test.values, model.fit(train.coords, train.values).predict(test.coords))
        ours = time.perf_counter() - begin
        if ours_error <= WITHIN * best:
            note = f"{theirs:.1f} s and {ours:.1f} s at rank {rank}, error {best:.3f}"
            return Measurement(
                f"time to SMURFF's {name}", theirs / ours, "x faster", goal, note=note
            )
    note = f"reached {ours_error:.3f}, SMURFF {best:.3f}"
    return Measurement(f"time to SMURFF's {name}", 0.0, "x faster", goal, note=note)


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
