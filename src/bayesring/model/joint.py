"""The joint distribution of ring, hyperparameters, noise and data: its density and its draws.

Slow and plain. Samplers are judged against it, and data are simulated from it.
"""

from __future__ import annotations

from numpy.random import Generator

from bayesring.model import ring
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Observations
from bayesring.priors.protocol import RingPrior
from bayesring.model.types import IntArray, RingSize, RingState


def draw_prior(
    rng: Generator,
    shape: tuple[int, ...],
    size: RingSize,
    likelihood: Likelihood,
    prior: RingPrior,
) -> RingState:
    """Draw a whole state from the prior."""
    cores, hyper = [], []
    for mode, n_slices in enumerate(shape):
        core_shape = size.core_shape(mode, n_slices)
        hyper.append(prior.cores.draw_hyper(rng, core_shape))
        cores.append(prior.cores.draw_core(rng, core_shape, hyper[-1]))
    gains = tuple(prior.weights.draw_gains(rng, (size.strands, r)) for r in size.bonds)
    weights = tuple(prior.weights.draw_weights(rng, each) for each in gains)
    return RingState(tuple(cores), weights, gains, tuple(hyper), likelihood.draw_nuisance(rng))


def simulate(
    rng: Generator,
    state: RingState,
    coords: IntArray,
    shape: tuple[int, ...],
    likelihood: Likelihood,
) -> Observations:
    """Draw values at `coords` given a state."""
    fitted = ring.entries(ring.weighted(state.cores, state.weights), coords)
    return Observations(coords, likelihood.simulate(rng, fitted, state.nuisance), shape)


def log_joint(
    state: RingState, data: Observations, likelihood: Likelihood, prior: RingPrior
) -> float:
    """Log p(y, cores, weights, gains, hyperparameters, nuisance), constants included."""
    fitted = ring.entries(ring.weighted(state.cores, state.weights), data.coords)
    total = float(likelihood.log_prob(fitted, data.values, state.nuisance).sum())
    total += likelihood.log_prior(state.nuisance)
    for core, hyper in zip(state.cores, state.hyper, strict=True):
        total += prior.cores.log_prob(core, hyper)
    for weights, gains in zip(state.weights, state.gains, strict=True):
        total += prior.weights.log_prob(weights, gains)
    return total
