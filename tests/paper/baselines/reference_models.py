"""Planted data, and brute-force twins of what the variational baselines compute."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from bayesring.data.observations import Observations, in_order
from bayesring.model import ring
from paper.baselines import bayesian_cp, ring_vi
from paper.baselines.ring_moments import unpack_transposed
from paper.baselines.variational import GammaPriors
from tests.models import random_coords

PRIORS = GammaPriors(2.0, 1.5, 3.0, 2.5)
"""Proper priors, so that no term of the bound is hidden by vague ones."""


def planted(seed, shape, n, draw_entries, noise=0.1):
    """Observations and clean test values of a tensor with unit variance; both (coords, values)."""
    rng = np.random.default_rng(seed)
    cells = rng.permutation(int(np.prod(shape)))[: n + 500]
    coords = np.stack(np.unravel_index(cells, shape), axis=1)
    entries = draw_entries(rng, shape, coords)
    entries /= entries.std()
    values = entries + noise * rng.standard_normal(len(entries))
    return (coords[:n], values[:n]), (coords[n:], values[n:])


def cp_entries(rng, shape, coords, rank=3):
    """Of mean zero over the first mode: a mean that fitting takes out would be a component more."""
    factors = [rng.standard_normal((size, rank)) for size in shape]
    factors[0] -= factors[0].mean(axis=0)
    rows = [factor[coords[:, d]] for d, factor in enumerate(factors)]
    return np.prod(rows, axis=0).sum(axis=1)


def ring_entries(rng, shape, coords, rank=2):
    return ring.entries([rng.standard_normal((size, 1, rank, rank)) for size in shape], coords)


def train_entries(rng, shape, coords, rank=2):
    bonds = [1, *[rank] * (len(shape) - 1), 1]
    cores = [rng.standard_normal((size, 1, bonds[d], bonds[d + 1])) for d, size in enumerate(shape)]
    return ring.entries(cores, coords)


class CP:
    """The CP model as the tests see it: rows of every mode with means and second moments."""

    module = bayesian_cp

    def __init__(self, rng, shape=(4, 3, 5), rank=3, n=40):
        coords = random_coords(rng, shape, n)
        self.data = in_order(Observations(coords, rng.standard_normal(n), shape))
        self.views = bayesian_cp.mode_views(self.data)
        self.state = bayesian_cp.initial_state(rng, shape, rank, 5.0)

    def slices(self, state):
        """Per mode: means (I, K), E[g g'] (I, K, K), E[pi] (K,), E[log pi] (K,)."""
        rank = state.relevance.shape.size
        rows, columns = np.tril_indices(rank)
        for factor in state.factors:
            second = np.empty((len(factor.mean), rank, rank))
            second[:, rows, columns] = second[:, columns, rows] = factor.second
            yield factor.mean, second, state.relevance.mean, state.relevance.log_mean

    def precision_of(self, relevance):
        """Prior precisions of all modes from values of lambda (R,)."""
        return [relevance] * len(self.views)

    def entries(self, slices):
        """F at the data for slices (..., I, K) of every mode."""
        rows = [each[..., self.data.coords[:, d], :] for d, each in enumerate(slices)]
        return np.prod(rows, axis=0).sum(axis=-1)

    def mean_squares(self, seconds):
        """E[f_n^2], by the whole product of second moments."""
        rows = [each[self.data.coords[:, d]] for d, each in enumerate(seconds)]
        return np.prod(rows, axis=0).sum(axis=(1, 2))

    def gammas(self, state):
        return [state.relevance]

    def with_slices(self, state, slices):
        """The state with other means and second moments."""
        factors = (
            bayesian_cp.Factor(mean, bayesian_cp._triangles(second), 0.0) for mean, second in slices
        )
        return state._replace(factors=tuple(factors))


class Ring:
    """The ring model as the tests see it."""

    module = ring_vi

    def __init__(self, rng, shape=(4, 3, 5), rank=(2, 3, 1), n=40):
        order = len(shape)
        rank = ring.expand_rank(rank, order)
        coords = random_coords(rng, shape, n)
        self.data = in_order(Observations(coords, rng.standard_normal(n), shape))
        self.views = [
            ring_vi.sorted_view(self.data, mode, ring.ring_order(mode, order))
            for mode in range(order)
        ]
        self.state = ring_vi.initial_state(rng, shape, rank, 5.0)

    def slices(self, state):
        for mode, core in enumerate(state.cores):
            before, after = state.relevance[mode - 1], state.relevance[mode]
            n, rows, columns = core.mean.shape
            moments = unpack_transposed(core.second, rows, columns)
            second = moments.reshape(n, columns, rows, columns, rows).transpose(0, 2, 1, 4, 3)
            yield (
                core.mean.reshape(n, -1),
                second.reshape(n, rows * columns, rows * columns),
                np.multiply.outer(before.mean, after.mean).ravel(),
                np.add.outer(before.log_mean, after.log_mean).ravel(),
            )

    def precision_of(self, *relevance):
        """Prior precisions of all modes from values of lambda, (..., R_d) each."""
        return [
            (relevance[d - 1][..., :, None] * relevance[d][..., None, :]).reshape(
                *relevance[d].shape[:-1], -1
            )
            for d in range(len(relevance))
        ]

    def entries(self, slices):
        product = None
        for d, each in enumerate(slices):
            rows, columns = self._sizes(d)
            matrices = each[..., self.data.coords[:, d], :]
            matrices = matrices.reshape(*matrices.shape[:-1], rows, columns)
            product = matrices if product is None else product @ matrices
        return np.trace(product, axis1=-2, axis2=-1)

    def mean_squares(self, seconds):
        """E[f_n^2] = tr prod E[G ⊗ G], with all R^2 rows and columns."""
        product = None
        for d, each in enumerate(seconds):
            rows, columns = self._sizes(d)
            moments = each.reshape(-1, rows, columns, rows, columns).transpose(0, 1, 3, 2, 4)
            matrices = moments.reshape(-1, rows**2, columns**2)[self.data.coords[:, d]]
            product = matrices if product is None else product @ matrices
        return np.trace(product, axis1=1, axis2=2)

    def gammas(self, state):
        return list(state.relevance)

    def with_slices(self, state, slices):
        """The state with other means and second moments."""
        cores = []
        for core, (mean, second) in zip(self.state.cores, slices, strict=True):
            blocks = ring_vi.pack(second, *core.mean.shape[1:])
            cores.append(ring_vi.Core(mean.reshape(core.mean.shape), blocks, core.squares, 0.0))
        return state._replace(cores=tuple(cores))

    def _sizes(self, mode):
        rank = self.state.rank
        return rank[mode - 1], rank[mode]


def brute_bound(model, state):
    """The lower bound, term by term, from means and second moments alone."""
    slices = list(model.slices(state))
    y, tau = model.data.values, state.noise
    mean = model.entries([each[0] for each in slices])
    square = model.mean_squares([each[1] for each in slices])
    error = np.sum(y**2 - 2 * y * mean + square)
    bound = 0.5 * (y.size * (tau.log_mean - np.log(2 * np.pi)) - tau.mean * error)
    for means, seconds, precision, log_precision in slices:
        covariances = seconds - means[:, :, None] * means[:, None, :]
        for covariance, second in zip(covariances, seconds, strict=True):
            bound += 0.5 * np.sum(log_precision - np.log(2 * np.pi) - precision * np.diag(second))
            bound += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    priors = [(PRIORS.c0, PRIORS.d0)] * len(model.gammas(state)) + [(PRIORS.alpha0, PRIORS.beta0)]
    for gamma, (a, b) in zip([*model.gammas(state), tau], priors, strict=True):
        log_prior = a * np.log(b) - gammaln(a) + (a - 1) * gamma.log_mean - b * gamma.mean
        shape = gamma.shape
        entropy = shape - np.log(gamma.rate) + gammaln(shape) + (1 - shape) * digamma(shape)
        bound += np.sum(log_prior + entropy)
    return float(bound)
