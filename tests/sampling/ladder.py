"""The statistical rungs of the testing ladder, as functions that tests and planted bugs share.

Statistics are gauge-free and light-tailed; errors of chain means come from batch means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import chisquare

from bayesring.engine.streams import Streams
from bayesring.infer import gibbs
from bayesring.infer.problem import make_problem
from bayesring.model import ring
from bayesring.model.joint import draw_prior, simulate
from bayesring.model.types import NOTHING, RingSize

COORDS = np.array(
    [[0, 0, 0], [1, 1, 0], [0, 2, 1], [1, 0, 1], [1, 2, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]]
)
SHAPE = (2, 4, 2)  # slice 3 of mode 1 has no observation
SIZE = RingSize(1, (2, 3, 1))


class Geweke(NamedTuple):
    """Standardised gaps between the two simulators, one per statistic."""

    names: list[str]
    z: np.ndarray

    def worst(self) -> str:
        place = int(np.argmax(np.abs(self.z)))
        return f"{self.names[place]}: z = {self.z[place]:.1f}"


def statistics(state, data) -> dict[str, float]:
    """Gauge-free, light-tailed functions of (theta, y)."""
    cores = ring.weighted(state.cores, state.weights)
    everywhere = np.arctan(ring.dense(cores))
    f = np.arctan(ring.entries(cores, data.coords))
    y = np.arctan(data.values)
    unseen = everywhere[:, 3, :]
    found = {
        "f": f.mean(),
        "f^2": np.mean(f**2),
        "y": y.mean(),
        "y^2": np.mean(y**2),
        "f y": np.mean(f * y),
        "unseen f": unseen.mean(),
        "unseen f^2": np.mean(unseen**2),
        "unseen f x f": unseen.mean() * f.mean(),
    }
    for mode, (core, weights, gains) in enumerate(
        zip(state.cores, state.weights, state.gains, strict=True)
    ):
        found[f"log |lambda| {mode}"] = np.log(np.abs(weights)).mean()
        found[f"log |lambda_last| {mode}"] = np.log(np.abs(weights[:, -1])).mean()
        found[f"log delta {mode}"] = np.log(gains).mean()
        found[f"log |G| {mode}"] = np.log(np.mean(core**2))
        found[f"mean G {mode}"] = np.arctan(core.mean())
        for name, array in zip(
            getattr(state.hyper[mode], "_fields", ()), state.hyper[mode], strict=True
        ):
            if array.dtype.kind == "i":  # which of a grid, zero among them
                found[f"hyper {name} {mode}"] = array.mean()
                found[f"hyper {name} is zero {mode}"] = np.mean(array == 0)
            else:
                found[f"hyper {name} {mode}"] = np.log(np.mean(np.square(array)) + 1e-9)
    for place, number in enumerate(state.nuisance):
        found[f"nuisance {place}"] = np.arctan(number)
        found[f"nuisance x f {place}"] = np.arctan(number) * f.mean()
    return found


def as_it_is(data):
    """All of the data."""
    return data


def geweke(
    likelihood, prior, update, seed: int, n: int, size=SIZE, given=NOTHING, see=as_it_is
) -> Geweke:
    """Geweke (2004): draws of (theta, y) from the prior, and by scan-then-data, must agree.

    `see` is what the sampler sees of the data.
    """
    rng, streams = np.random.default_rng(seed), Streams.of_chain(seed, 0)

    def from_prior():
        state = draw_prior(rng, SHAPE, size, likelihood, prior)
        return state, simulate(rng, state, COORDS, SHAPE, likelihood, given)

    direct = [list(statistics(*from_prior()).values()) for _ in range(n)]
    state, data = from_prior()
    chain = []
    for scan in range(1, n + 1):
        problem = make_problem(see(data), likelihood, prior, update)
        state, _ = gibbs.step(streams, scan, state, problem)
        data = simulate(rng, state, COORDS, SHAPE, likelihood, given)
        found = statistics(state, data)
        chain.append(list(found.values()))
    gap = np.mean(chain, axis=0) - np.mean(direct, axis=0)
    error = np.hypot(batch_error(chain), batch_error(direct))
    return Geweke(list(found), gap / np.where(error > 0, error, 1.0))  # some may be constant


def batch_error(draws, n_batches: int = 50) -> np.ndarray:
    """Standard error of the mean of a correlated sequence, from means of long batches."""
    draws = np.asarray(draws)
    size = len(draws) // n_batches
    means = draws[: size * n_batches].reshape(n_batches, size, -1).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(n_batches)


def calibration(
    likelihood,
    prior,
    update,
    seed: int,
    n_simulations=200,
    n_draws=63,
    thin=4,
    warmup=100,
    size=SIZE,
) -> dict[str, float]:
    """Talts et al. (2018): the truth's rank among posterior draws is uniform.

    Returns the p-value of a chi-squared test with eight bins for each gauge-free quantity.
    """
    rng = np.random.default_rng(seed)
    ranks = []
    for simulation in range(n_simulations):
        truth = draw_prior(rng, SHAPE, size, likelihood, prior)
        coords = np.stack([rng.integers(0, size, 20) for size in SHAPE], axis=1)
        coords[:, 1] %= 3  # slice 3 of mode 1 stays without observations
        data = simulate(rng, truth, coords, SHAPE, likelihood)
        problem = make_problem(data, likelihood, prior, update)
        streams = Streams.of_chain(seed, simulation)
        state = draw_prior(rng, SHAPE, size, likelihood, prior)
        true_numbers = gauge_free(truth, data, likelihood)
        below = np.zeros(len(true_numbers), dtype=int)
        for scan in range(1, warmup + thin * n_draws + 1):
            state, _ = gibbs.step(streams, scan, state, problem)
            if scan > warmup and (scan - warmup) % thin == 0:
                numbers = gauge_free(state, data, likelihood)
                below += [numbers[name] < true_numbers[name] for name in numbers]
        ranks.append(below)
    p_values = {}
    for name, column in zip(true_numbers, np.transpose(ranks), strict=True):
        counts = np.bincount(column * 8 // (n_draws + 1), minlength=8)
        p_values[name] = float(chisquare(counts).pvalue)
    return p_values


def gauge_free(state, data, likelihood) -> dict[str, float]:
    """Quantities that the posterior determines: entries, noise, log likelihood."""
    cores = ring.weighted(state.cores, state.weights)
    tensor = ring.dense(cores)
    fitted = ring.entries(cores, data.coords)
    numbers = {
        "an entry": tensor[0, 0, 0],
        "an entry of the empty slice": tensor[1, 3, 1],
        "mean square of entries": np.mean(tensor[:, :3] ** 2),
        "distance of neighbours": np.mean((tensor[:, 1] - tensor[:, 2]) ** 2),
        "log likelihood": likelihood.log_prob(fitted, data.values, state.nuisance).sum(),
    }
    return numbers | {f"nuisance {p}": number for p, number in enumerate(state.nuisance)}
