"""Learners in the middle of their work, and what tests want of them."""

from __future__ import annotations

import numpy as np

from bayesring.infer.learner import E_STEP, Learner
from bayesring.infer.streams import Streams
from bayesring.kernels.adam import FIRST
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart, RingPrior
from bayesring.types import RingSize
from tests.models import random_coords

LIKELIHOODS = [Gaussian(2.0, 2.0, 3.0), Bernoulli()]
PRIORS = [
    RingPrior(Fixed(1.7), GammaProcess(3.0)),
    RingPrior(EntryGamma(), GammaProcess(3.0)),
    RingPrior.of(NormalGamma()),
    RingPrior.of(NormalWishart()),
    RingPrior(NormalWishart(extra_degrees=2.0), GammaProcess()),
]
SHAPES = [
    ((4, 3), (3, 2), 1),
    ((3, 4, 2), (2, 3, 1), 1),
    ((3, 4, 2), (2, 1, 2), 3),
    ((2, 3, 2, 2), (2, 1, 3, 2), 2),
]
N = 40


def name_of(value) -> str:
    if isinstance(value, RingPrior):
        return f"{type(value.cores).__name__}-{type(value.weights).__name__}"
    return str(value) if isinstance(value, tuple) else type(value).__name__


def doubled(coords):
    """Columns as the kernels want them: all modes, then the first D - 1 once more."""
    columns = coords.T.astype(np.int32)
    return np.ascontiguousarray(np.concatenate([columns, columns[:-1]]))


def counts_of(coords, shape):
    return [np.bincount(column, minlength=n) for column, n in zip(coords.T, shape, strict=True)]


def make_learner(rng, likelihood, prior, shape, bonds, strands, n=N):
    """A learner somewhere on its way, with its data: every slice has observations."""
    coords = random_coords(rng, shape, n)
    for mode, size in enumerate(shape):
        coords[:size, mode] = np.arange(size)
    learner = Learner(
        Streams.of_chain(5, 0),
        RingSize(strands, bonds),
        counts_of(coords, shape),
        likelihood,
        prior,
    )
    if prior.weights.learned:
        weights = [rng.standard_normal(each.shape) for each in learner.weights]
        learner.gains = [rng.gamma(2.0, size=each.shape) for each in weights]
        learner.restore([learner.flat.copy(), *weights])
    values = likelihood.simulate(rng, learner.fitted(doubled(coords)), np.array([2.0]))
    learner.nuisance = likelihood.initial_nuisance()
    return learner, doubled(coords), values


def believe(learner, rng):
    """Give every core some law of its hyperparameters, not the best; returns laws and spreads."""
    spreads = [rng.gamma(2.0, 0.2, size=(len(c), c[0].size)) for c in learner.cores]
    laws = []
    for mode, core in enumerate(learner.cores):
        cores = learner.prior.cores
        laws.append(cores.conditional(core + rng.standard_normal(core.shape), spreads[mode]))
        learner.slice_priors[mode] = cores.slice_prior(core.shape, cores.expect_hyper(laws[mode]))
    return laws, spreads


def gradient_of(learner, columns, values):
    """What Adam is told for one batch, cores flat: after one step its mean is 1 - FIRST of it."""
    learner.set_cores(learner.cores)
    learner.move_cores(columns, values, 0.0)
    return learner.moments.first / (1 - FIRST)


def weight_gradient_of(learner, columns, values):
    """The same for the weights, from as many parts of the data as lie between two steps."""
    learner.weight_gradient[:] = 0.0
    for part in np.array_split(np.arange(len(values)), E_STEP):
        learner.learn(np.ascontiguousarray(columns[:, part]), values[part], 0.0, expects=False)
    return [moments.first / (1 - FIRST) for moments in learner.weight_moments]
