"""New labels with observations of their own, learned without refitting.

In every kept draw, the slices of the new labels are drawn given their observations and everything
else in that draw: the posterior of the new slices, as if what was known before had nothing to learn
from them. If the values are Gaussian and one mode only has new labels, one joint draw is exact;
otherwise a few Gibbs scans over the new slices are made, from draws of the prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayesring.data.labels import NewLabels
from bayesring.data.observations import Observations
from bayesring.data.splitting import left_out
from bayesring.engine.operations import slice_statistics
from bayesring.engine.streams import Purpose, Streams
from bayesring.likelihoods import Likelihood
from bayesring.model import ring
from bayesring.model.types import Axis, FloatArray, Graph, IntArray, SlicePrior, WorkingResponse
from bayesring.posterior import Posterior
from bayesring.posterior.unseen import Widened, widen
from bayesring.priors import RingPrior

SWEEPS = 20
"""Scans over the new slices if one joint draw is not exact."""
MOST_KEPT = 2**23
"""Numbers in the priors of new slices, all draws together, up to which they are kept."""


class NewRows(NamedTuple):
    """Observations that have a new label of a mode."""

    data: Observations
    of_label: Sequence[IntArray]
    """Rows of each new label."""
    others: Sequence[NDArray[np.int32]]
    """Their indices in the other modes, in ring order, (D - 1, n)."""

    @classmethod
    def of(cls, data: Observations, mode: int, first: int, n: int) -> Self:
        """Those from label number `first` on, `n` of them."""
        own = left_out(data, data.coords[:, mode] >= first)[1]
        rows = [np.flatnonzero(own.coords[:, mode] == first + i) for i in range(n)]
        order = ring.ring_order(mode, len(data.shape))
        others = [np.ascontiguousarray(own.coords[at][:, order].T, np.int32) for at in rows]
        return cls(own, rows, others)


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
    parts = {mode: NewRows.of(data, mode, known[mode], len(added[mode])) for mode in modes}
    axes = {
        mode: Axis(len(added[mode]), positions[mode], features=features[mode]) for mode in modes
    }
    places = [
        (chain, row) for chain, own in enumerate(posterior.chains) for row in range(len(own.flat))
    ]
    at_once = len(modes) == 1 and not posterior.likelihood.augments(data.given)
    sweeps = 1 if at_once else SWEEPS
    wider = widen(posterior, prior, added, seed, features, positions)
    assert isinstance(wider, Widened)  # there are new labels
    start = wider.with_room if at_once else wider.at_levels  # a joint draw forgets where it began
    grown = start([np.arange(size) for size in wider.shape])
    priors = known_priors(posterior, prior, axes, seed)

    def fold(draw: int) -> None:
        chain, row = places[draw]
        draws = posterior.chains[chain]
        streams = Streams.of_folding(seed, chain, int(draws.scans[row]))
        views = grown.cores(draw)  # what is written to them stays
        cores = [core.astype(np.float64) for core in views]
        weights = [draws.bond_weights(row, mode) for mode in range(len(cores))]
        if draw not in priors:
            priors[draw] = {
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
                    streams.rng(sweep, Purpose.SLICES, mode, size),  # its own for every fold
                    (cores, own, mode),
                    parts[mode],
                    priors[draw][mode],
                    (posterior.likelihood, draws.nuisance[row]),
                )
                cores[mode][size:] = found.reshape(cores[mode][size:].shape) * own[:, None]
        for mode in modes:
            views[mode][known[mode] :] = cores[mode][known[mode] :]

    grown.engine.map_pieces(fold, range(len(places)))
    return grown


def known_priors(
    posterior: Posterior, prior: RingPrior, axes: dict[int, Axis], seed: int
) -> dict[int, dict[int, SlicePrior]]:
    """Priors of the new slices of every draw and mode, as far as they are known.

    They depend on the known slices and on where the new ones lie, not on observations: a day that
    is folded in again and again, as more of it is known, has the same.
    """
    numbers = 0
    for own in posterior.chains:
        for mode, axis in axes.items():
            size = own.strands * int(own.bonds[mode - 1] * own.bonds[mode])
            numbers += len(own.flat) * size * (size + axis.n)
    if numbers > MOST_KEPT or any(axis.features is not None for axis in axes.values()):
        return {}
    where = {
        mode: (axis.n, None if axis.positions is None else axis.positions.tobytes())
        for mode, axis in axes.items()
    }
    last = posterior.memo.get("beside")
    if last is None or last[:2] != (where, seed) or last[2] is not prior:
        last = posterior.memo["beside"] = (where, seed, prior, {})
    found: dict[int, dict[int, SlicePrior]] = last[3]
    return found


def draw_slices(
    rng: Generator,
    place: tuple[Sequence[FloatArray], FloatArray, int],
    rows: NewRows,
    prior: SlicePrior,
    noise_model: tuple[Likelihood, FloatArray],
) -> FloatArray:
    """Draw the new slices of a mode jointly, (n, K), equations (4) to (6).

    `place` holds the weighted cores, the weights of the mode's bond and the mode.
    """
    (cores, weights, mode), (likelihood, nuisance), data = place, noise_model, rows.data
    n, size = len(rows.of_label), cores[mode][0].size
    needed = likelihood.augments(data.given)
    fitted = ring.entries(cores, data.coords) if needed else np.zeros(data.n)
    given = likelihood.locate(data.given, data.along)
    weight, shift = likelihood.augment(rng, fitted, data.values, nuisance, given)
    flat = ring.flatten(cores)
    precision = np.empty((n, size, size))
    linear = np.broadcast_to(prior.linear, (n, size)).copy()
    diagonal = np.broadcast_to(prior.diagonal, (n, size))
    for i, factor in enumerate(np.broadcast_to(prior.factors, n)):
        own = rows.of_label[i]
        response = WorkingResponse(weight[own], shift[own])
        squares, sums = slice_statistics(flat, weights, mode, rows.others[i], response)
        omega = prior.precision if prior.precision.ndim == 2 else prior.precision[i]
        precision[i] = factor * omega + np.diag(diagonal[i]) + squares
        linear[i] += sums
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
