"""The joint distribution of ring, hyperparameters, noise and data: its density and its draws.

Slow and simple. Samplers are tested against it, and data are simulated from it.
"""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import (
    NOTHING,
    FloatArray,
    Given,
    IntArray,
    Observations,
    RingSize,
    RingState,
)
from bayesring.priors import RingPrior


def draw_prior(
    rng: Generator,
    shape: tuple[int, ...],
    size: RingSize,
    likelihood: Likelihood,
    prior: RingPrior,
) -> RingState:
    """Draw a whole state from the prior."""
    cores: list[FloatArray] = []
    hyper: list[Any] = []
    prior = prior.for_shape(shape)
    for mode, n_slices in enumerate(shape):
        own = prior.of_mode(mode, cores)
        core_shape = size.core_shape(mode, n_slices)
        hyper.append(own.draw_hyper(rng, core_shape))
        cores.append(own.draw_core(rng, core_shape, hyper[-1]))
    gains = tuple(prior.weights.draw_gains(rng, (size.strands, r)) for r in size.bonds)
    weights = tuple(prior.weights.draw_weights(rng, each) for each in gains)
    return RingState(tuple(cores), weights, gains, tuple(hyper), likelihood.draw_nuisance(rng))


def simulate(
    rng: Generator,
    state: RingState,
    coords: IntArray,
    shape: tuple[int, ...],
    likelihood: Likelihood,
    given: Given = NOTHING,
) -> Observations:
    """Draw values at `coords` given a state and the observations' weights and offsets."""
    fitted = predictor(state, coords, given)
    known = likelihood.locate(given, coords.T.__getitem__)
    values = likelihood.simulate(rng, fitted, state.nuisance, known)
    return Observations(coords, values, shape, given=given)


def predictor(state: RingState, coords: IntArray, given: Given) -> FloatArray:
    """f_n at `coords`, offsets included."""
    fitted = ring.entries(ring.weighted(state.cores, state.weights), coords)
    return fitted if given.offset is None else fitted + given.offset


def log_joint(
    state: RingState, data: Observations, likelihood: Likelihood, prior: RingPrior
) -> float:
    """log p(y, cores, weights, gains, hyperparameters, nuisance), constants included."""
    fitted = predictor(state, data.coords, data.given)
    known = likelihood.locate(data.given, data.along)
    total = float(likelihood.log_prob(fitted, data.values, state.nuisance, known).sum())
    total += likelihood.log_prior(state.nuisance)
    prior = prior.for_shape(data.shape)
    for mode, (core, hyper) in enumerate(zip(state.cores, state.hyper, strict=True)):
        total += prior.of_mode(mode, state.cores).log_prob(core, hyper)
    for weights, gains in zip(state.weights, state.gains, strict=True):
        total += prior.weights.log_prob(weights, gains)
    return total
