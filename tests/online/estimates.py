"""Rings in the middle of their learning, and what tests want of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesring.data.batches import Chunk, Position
from bayesring.engine.streams import Streams
from bayesring.engine.threads import ONE_THREAD
from bayesring.infer import em
from bayesring.infer.em import E_STEP, Setting
from bayesring.infer.estimate import RingEstimate, curvatures, restarted
from bayesring.kernels.adam import FIRST
from bayesring.likelihoods import Bernoulli, Gaussian
from bayesring.model.types import RingSize
from bayesring.priors import EntryGamma, Fixed, GammaProcess, NormalGamma, NormalWishart, RingPrior
from tests.models import random_coords

LIKELIHOODS = [Gaussian(2.0, 2.0, 3.0), Bernoulli()]
PRIORS = [
    RingPrior((Fixed(1.7),), GammaProcess(3.0)),
    RingPrior((EntryGamma(),), GammaProcess(3.0)),
    RingPrior.of(NormalGamma()),
    RingPrior.of(NormalWishart()),
    RingPrior((NormalWishart(extra_degrees=2.0),), GammaProcess()),
]
SHAPES = [
    ((4, 3), (3, 2), 1),
    ((3, 4, 2), (2, 3, 1), 1),
    ((3, 4, 2), (2, 1, 2), 3),
    ((2, 3, 2, 2), (2, 1, 3, 2), 2),
]
N = 40


class Scene(NamedTuple):
    """An estimate with its data, every slice of which has observations."""

    estimate: RingEstimate
    setting: Setting
    columns: np.ndarray
    values: np.ndarray


def name_of(value) -> str:
    if isinstance(value, RingPrior):
        return f"{type(value.modes[0]).__name__}-{type(value.weights).__name__}"
    return str(value) if isinstance(value, tuple) else type(value).__name__


def doubled(coords):
    """Columns as the kernels want them: all modes, then the first D - 1 once more."""
    columns = coords.T.astype(np.int32)
    return np.ascontiguousarray(np.concatenate([columns, columns[:-1]]))


def counts_of(coords, shape):
    return [np.bincount(column, minlength=n) for column, n in zip(coords.T, shape, strict=True)]


def make_scene(rng, likelihood, prior, shape, bonds, strands, n=N) -> Scene:
    """An estimate somewhere on its way."""
    coords = random_coords(rng, shape, n)
    for mode, size in enumerate(shape):
        coords[:size, mode] = np.arange(size)
    setting = Setting(likelihood, prior.for_shape(shape), ONE_THREAD)
    size, counts = RingSize(strands, bonds), counts_of(coords, shape)
    estimate = em.start(Streams.of_chain(5, 0), size, counts, setting)
    if prior.weights.learned:
        estimate = estimate._replace(
            weights=tuple(rng.standard_normal(each.shape) for each in estimate.weights),
            gains=tuple(rng.gamma(2.0, size=each.shape) for each in estimate.gains),
        )
    columns = doubled(coords)
    fitted = estimate.fitted(columns, ONE_THREAD)
    values = likelihood.simulate(rng, fitted, np.array([2.0]))
    return Scene(estimate, setting, columns, values)


def learned(scene, rate=0.0, expects=False, parts=None):
    """The estimate after one batch of all the rows, or a batch for each of some `parts` of them."""
    estimate, setting, columns, values = scene
    parts = [np.arange(len(values))] if parts is None else parts
    batches = [
        (Chunk(np.ascontiguousarray(columns[:, part]), values[part]), Position(0, number + 1))
        for number, part in enumerate(parts)
    ]
    return em.learn(estimate, batches, rate, expects, setting)


def random_covariances(rng, prior, n_slices, size):
    """Of every slice (n, K, K), or variances of all entries (n, K) if the prior is diagonal."""
    if prior.diagonal:
        return rng.gamma(2.0, 0.2, size=(n_slices, size))
    roots = 0.4 * rng.standard_normal((n_slices, size, size + 1))
    return roots @ np.swapaxes(roots, 1, 2)


def spread_of(covariances):
    """What a prior is told of them."""
    return covariances if covariances.ndim == 2 else covariances.sum(axis=0)


def covariances_of(estimate, mode, diagonal):
    """Those that equation (20) gives, from inverses one by one; variances if `diagonal`."""
    prior = estimate.slice_priors[mode]
    entries = curvatures(estimate, mode) + prior.diagonal
    if diagonal:
        return 1 / entries
    return np.stack([np.linalg.inv(prior.precision + np.diag(each)) for each in entries])


def believe(scene, rng):
    """Give every core some distribution of its hyperparameters, not the best.

    Returns the scene then, the parameters of the distributions and covariances V.
    """
    estimate, priors, parameters = scene.estimate, scene.setting.prior.modes, []
    cores, slice_priors = estimate.core_list, []
    covariances = [
        random_covariances(rng, prior, len(core), core[0].size)
        for prior, core in zip(priors, cores, strict=True)
    ]
    for mode, (prior, core) in enumerate(zip(priors, cores, strict=True)):
        moved = core + rng.standard_normal(core.shape)
        parameters.append(prior.conditional(moved, spread_of(covariances[mode])))
        slice_priors.append(prior.slice_prior(core, prior.estimate_hyper(parameters[mode])))
    believing = scene._replace(estimate=estimate._replace(slice_priors=tuple(slice_priors)))
    return believing, parameters, covariances


def begun_anew(scene):
    """The same ring without anything that Adam remembers."""
    estimate = scene.estimate
    return scene._replace(estimate=restarted(estimate, estimate.core_list))


def gradient_of(scene, part=None):
    """What Adam is told for one batch, cores flat: after one step its mean is 1 - FIRST of it."""
    parts = None if part is None else [part]
    return learned(begun_anew(scene), parts=parts).adam.first / (1 - FIRST)


def weight_gradient_of(scene):
    """The same for the weights, from as many parts of the data as lie between two steps."""
    parts = np.array_split(np.arange(len(scene.values)), E_STEP)
    after = learned(begun_anew(scene), parts=parts)
    return [moments.first / (1 - FIRST) for moments in after.weight_adam]
