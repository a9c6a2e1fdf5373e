"""New labels with observations of their own, learned without refitting.

In every kept draw, the slices of the new labels are drawn given their observations and everything
else in that draw: the posterior of the new slices, as if what was known before had nothing to learn
from them. If the values are Gaussian and one mode only has new labels, one joint draw is exact;
otherwise a few Gibbs scans over the new slices are made, from draws of the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from bayesring.data.labels import NewLabels
from bayesring.data.observations import Observations
from bayesring.data.splitting import left_out
from bayesring.engine.streams import Purpose, Streams
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import Axis, FloatArray, Graph, SlicePrior
from bayesring.posterior import Posterior
from bayesring.posterior.unseen import widened
from bayesring.priors import RingPrior

SWEEPS = 20
"""Scans over the new slices if one joint draw is not exact."""


def fold_in(
    posterior: Posterior,
    prior: RingPrior,
    new: tuple[NewLabels, Sequence[Any], Sequence[FloatArray | None]],
    data: Observations,
    seed: int,
) -> Posterior:
    """The posterior with slices for new labels, given their standardised observations `data`.

    `new` holds the labels of every mode, and their features and positions, or None. Coordinates of
    new labels follow the known ones; every observation has at least one of them.
    """
    added, features, positions = new
    known = posterior.shape
    modes = [mode for mode, new in enumerate(added) if len(new)]
    parts = {mode: left_out(data, data.coords[:, mode] >= known[mode])[1] for mode in modes}
    axes = {
        mode: Axis(len(added[mode]), positions[mode], features=features[mode]) for mode in modes
    }
    places = [
        (chain, row) for chain, own in enumerate(posterior.chains) for row in range(len(own.flat))
    ]
    at_once = len(modes) == 1 and not posterior.likelihood.augments(data.given)
    sweeps = 1 if at_once else SWEEPS
    wider = widened(posterior, prior, added, seed, features, positions)
    start = wider.with_room if at_once else wider.at_levels  # a joint draw forgets where it began
    grown = start([np.arange(size) for size in wider.shape])

    def fold(draw: int) -> None:
        chain, row = places[draw]
        draws = posterior.chains[chain]
        streams = Streams.of_folding(seed, chain, int(draws.scans[row]))
        views = grown.cores(draw)  # what is written to them stays
        cores = [core.astype(np.float64) for core in views]
        weights = [draws.bond_weights(row, mode) for mode in range(len(cores))]
        priors = {
            mode: prior.modes[mode].beside(
                streams.rng(0, Purpose.HYPER, mode),
                ring.unweighted(cores[mode][: known[mode]], weights[mode]),
                axes[mode],
            )
            for mode in modes
        }
        for sweep in range(sweeps):
            for mode in modes:
                size, own = known[mode], weights[mode]
                found = draw_slices(
                    streams.rng(sweep, Purpose.SLICES, mode),
                    (cores, own, mode, size),
                    parts[mode],
                    priors[mode],
                    (posterior.likelihood, draws.nuisance[row]),
                )
                cores[mode][size:] = found.reshape(cores[mode][size:].shape) * own[:, None]
        for mode in modes:
            views[mode][known[mode] :] = cores[mode][known[mode] :]

    grown.engine.map_pieces(fold, range(len(places)))
    return grown


def draw_slices(
    rng: Generator,
    place: tuple[Sequence[FloatArray], FloatArray, int, int],
    data: Observations,
    prior: SlicePrior,
    noise_model: tuple[Likelihood, FloatArray],
) -> FloatArray:
    """Draw the slices of a mode from number `first` on jointly, (n, K), equations (4) to (6).

    `place` holds the weighted cores, the weights of the mode's bond, the mode and `first`.
    """
    (cores, weights, mode, first), (likelihood, nuisance) = place, noise_model
    features = ring.features(cores, weights, mode, data.coords)
    slices = ring.unweighted(cores[mode], weights).reshape(len(cores[mode]), -1)
    fitted = np.einsum("nk,nk->n", features, slices[data.coords[:, mode]])
    given = likelihood.locate(data.given, data.along)
    weight, shift = likelihood.augment(rng, fitted, data.values, nuisance, given)
    n, size = len(cores[mode]) - first, features.shape[1]
    precision = np.empty((n, size, size))
    linear = np.broadcast_to(prior.linear, (n, size)).copy()
    diagonal = np.broadcast_to(prior.diagonal, (n, size))
    for i, factor in enumerate(np.broadcast_to(prior.factors, n)):
        own = data.coords[:, mode] == first + i
        scaled = features[own] * weight[own, None]
        omega = prior.precision if prior.precision.ndim == 2 else prior.precision[i]
        precision[i] = factor * omega + np.diag(diagonal[i]) + features[own].T @ scaled
        linear[i] += shift[own] @ features[own]
    if prior.graph is not None:
        return draw_patch(rng.standard_normal((n, size)), precision, linear, prior.graph, omega)
    links = np.zeros(n - 1) if prior.links is None else prior.links
    return draw_chain(rng.standard_normal((n, size)), precision, linear, links, omega)


def draw_chain(
    noise: FloatArray,
    diagonal: FloatArray,
    linear: FloatArray,
    links: FloatArray,
    omega: FloatArray,
) -> FloatArray:
    """Draw from a Gaussian with block-tridiagonal precision: `diagonal`, and -links Omega beside.

    Blocks are eliminated from the first on: L_i L_i' = D_i - C_i C_i', C_i = -link_i Omega
    L_{i-1}^-T; then the slices are drawn from the last to the first.
    """
    lowers: list[FloatArray] = []
    halves: list[FloatArray] = []
    sides = [np.zeros_like(omega)]
    for i, block in enumerate(diagonal):
        if i:
            sides.append(np.linalg.solve(lowers[-1], -links[i - 1] * omega).T)
            block = block - sides[i] @ sides[i].T
        lowers.append(np.linalg.cholesky(block))
        carried = sides[i] @ halves[-1] if i else 0.0
        halves.append(np.linalg.solve(lowers[i], linear[i] - carried))
    slices = np.empty_like(linear)
    after: FloatArray = np.zeros(len(omega))
    for i in range(len(diagonal) - 1, -1, -1):
        slices[i] = np.linalg.solve(lowers[i].T, halves[i] + noise[i] - after)
        after = sides[i].T @ slices[i]
    return slices


def draw_patch(
    noise: FloatArray, diagonal: FloatArray, linear: FloatArray, graph: Graph, omega: FloatArray
) -> FloatArray:
    """Draw from a Gaussian with precision blocks `diagonal`, and those of a graph beside them."""
    n, size = noise.shape
    whole = np.zeros((n, size, n, size))
    for i in range(n):
        whole[i, :, i] = diagonal[i]
        for at in range(graph.starts[i], graph.starts[i + 1]):
            whole[i, :, graph.others[at]] = -graph.weights[at] * omega
    lower = np.linalg.cholesky(whole.reshape(n * size, n * size))
    half = np.linalg.solve(lower, linear.ravel()) + noise.ravel()
    return np.asarray(np.linalg.solve(lower.T, half).reshape(n, size))
