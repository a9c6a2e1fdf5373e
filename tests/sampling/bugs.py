"""Bugs to plant: mistakes that real code has made, or nearly made. The ladder must catch each."""

from __future__ import annotations

import numpy as np

from bayesring.engine import operations
from bayesring.engine.streams import Purpose
from bayesring.infer import gibbs
from bayesring.likelihoods import Gaussian
from bayesring.model import resizing
from bayesring.priors import GammaProcess


def gain_product_ends_early(monkeypatch):
    """phi_h without delta_h itself: the product of the gain's rate ends one factor early."""

    def conditional(self, index, weights, gains):
        others = gains.copy()
        others[index] = 1.0
        products = np.concatenate([[1.0], np.cumprod(others)[:-1]])[index:]
        shape = self.a0 + 0.5 * (gains.size - index)
        return shape, 1.0 + 0.5 * float(weights[index:] ** 2 @ products)

    monkeypatch.setattr(GammaProcess, "gain_conditional", conditional)


def omega_from_the_wrong_f(monkeypatch):
    """Polya-Gamma variables drawn at the entry of the neighbouring observation."""
    draw = operations.working_response

    def working_response(task, block):
        right = draw(task, block)
        return right._replace(weight=np.roll(right.weight, 1))

    monkeypatch.setattr(operations, "working_response", working_response)


def shifts_of_the_neighbour(monkeypatch):
    """Working shifts s_n taken from the neighbouring observation: the wrong values are fitted."""
    draw = operations.working_response

    def working_response(task, block):
        right = draw(task, block)
        return right._replace(shift=np.roll(right.shift, 1))

    monkeypatch.setattr(operations, "working_response", working_response)


def noise_rate_without_its_prior(monkeypatch):
    """Tau ~ Ga(alpha0 + M/2, SSE/2): beta0 forgotten."""
    right = Gaussian.conditional

    def conditional(self, statistics):
        shape, rate = right(self, statistics)
        return shape, rate - self.beta0 + 1e-12

    monkeypatch.setattr(Gaussian, "conditional", conditional)


def empty_slices_around_zero(monkeypatch):
    """Slices without observations drawn around zero instead of around the mean slice."""
    right = gibbs.draw_core

    def draw_core(task, mode, problem, *engine):
        core, statistics = right(task, mode, problem, *engine)
        diagonal, linear, factors = (each[0] for each in task.slice_prior.rows(slice(0, 1)))
        mean = np.linalg.solve(factors * task.slice_prior.precision + np.diag(diagonal), linear)
        core = core.copy()
        core[problem.counts[mode] == 0] -= mean.reshape(core.shape[1:])
        return core, statistics

    monkeypatch.setattr(gibbs, "draw_core", draw_core)


def transposed_complement(monkeypatch):
    """Entry (r, s) of the slice paired with entry (r, s) of the complement, not (s, r)."""
    right = gibbs.draw_core

    def draw_core(task, mode, problem, *engine):
        core, statistics = right(task, mode, problem, *engine)
        if core.shape[2] == core.shape[3]:
            core = np.ascontiguousarray(np.swapaxes(core, 2, 3))
        return core, statistics

    monkeypatch.setattr(gibbs, "draw_core", draw_core)


def blocks_share_their_noise(monkeypatch):
    """The number of the block is left out of the stream of its slices."""

    def noise(task, block):
        rng = task.streams.rng(task.scan, Purpose.SLICES, block.mode)
        return rng.standard_normal((block.bounds.size - 1, len(task.slice_prior.precision)))

    monkeypatch.setattr(operations, "_noise", noise)


def factor_dropped_in_the_wrong_core(monkeypatch):
    """Column r leaves G^(d), but another row leaves G^(d+1)."""
    right = resizing.drop_factors

    def drop_factors(rng, state, bond, keep, prior):
        after = (bond + 1) % len(state.cores)
        cores = list(state.cores)
        cores[after] = np.roll(cores[after], 1, axis=2)
        return right(rng, state._replace(cores=tuple(cores)), bond, keep, prior)

    monkeypatch.setattr(resizing, "drop_factors", drop_factors)


def scales_with_too_many_degrees(prior, rng, precisions):
    """In place of `NormalWishart.draw_scales`: nu0 + 3 degrees in place of nu0 + 1."""
    shape = 0.5 * (precisions.size + prior.extra_degrees + 3)
    rates = 0.5 * (precisions + 1.0 / prior.scale)
    return rng.standard_gamma(shape, precisions.size) / rates
