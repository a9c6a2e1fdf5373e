"""Learners in the middle of their work, and what tests want of them."""

from __future__ import annotations

import numpy as np
from bayesring.infer.learner import E_STEP, Learner

from bayesring.engine.streams import Streams
from bayesring.kernels.adam import FIRST
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart, RingPrior
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


def random_covariances(rng, prior, n_slices, size):
    """Of every slice (n, K, K), or variances of all entries (n, K) if the prior is diagonal."""
    if prior.cores.diagonal:
        return rng.gamma(2.0, 0.2, size=(n_slices, size))
    roots = 0.4 * rng.standard_normal((n_slices, size, size + 1))
    return roots @ np.swapaxes(roots, 1, 2)


def spread_of(covariances):
    """What a prior is told of them."""
    return covariances if covariances.ndim == 2 else covariances.sum(axis=0)


def covariances_of(learner, mode):
    """Those that equation (20) gives, from inverses one by one."""
    prior = learner.slice_priors[mode]
    entries = learner.curvatures(mode) + prior.diagonal
    if learner.prior.cores.diagonal:
        return 1 / entries
    return np.stack([np.linalg.inv(prior.precision + np.diag(each)) for each in entries])


def believe(learner, rng):
    """Give every core some law of its hyperparameters, not the best; returns laws and V."""
    prior, laws = learner.prior, []
    covariances = [random_covariances(rng, prior, len(c), c[0].size) for c in learner.cores]
    for mode, core in enumerate(learner.cores):
        moved = core + rng.standard_normal(core.shape)
        laws.append(prior.cores.conditional(moved, spread_of(covariances[mode])))
        hyper = prior.cores.estimate_hyper(laws[mode])
        learner.slice_priors[mode] = prior.cores.slice_prior(core.shape, hyper)
    return laws, covariances


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
