"""A prior whose slices depend on their neighbours, for tests only: as a chain and as a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from bayesring.model.types import SlicePrior
from bayesring.priors import Coupling, ModePrior


class Precision(NamedTuple):
    psi: np.ndarray
    """(1,)."""


@dataclass(frozen=True)
class Chain(ModePrior):
    """Every entry follows an Ornstein-Uhlenbeck process along the positions of the labels.

    With C_ij = exp(-|x_i - x_j| / length) and Q its inverse, vec G[i] has precision Q_ij psi I
    between slices i and j, and psi ~ Ga(c0, d0).
    """

    length: float = 2.0
    c0: float = 4.0
    d0: float = 3.0
    positions: tuple[float, ...] = ()

    coupling: ClassVar[Coupling] = Coupling.CHAIN

    def bind(self, axis):
        return replace(self, positions=tuple(axis.positions[:, 0].tolist()))

    @property
    def precision(self):
        """Q, (I, I), tridiagonal."""
        x = np.array(self.positions)
        return np.linalg.inv(np.exp(-np.abs(x[:, None] - x) / self.length))

    def draw_hyper(self, rng, shape):
        return Precision(rng.gamma(self.c0, 1 / self.d0, size=1))

    def draw_core(self, rng, shape, hyper):
        root = np.linalg.inv(np.linalg.cholesky(self.precision)).T
        noise = rng.standard_normal((shape[0], int(np.prod(shape[1:]))))
        return (root @ noise / np.sqrt(hyper.psi)).reshape(shape)

    def _square(self, core):
        slices = core.reshape(len(core), -1)
        return float(np.sum(slices * (self.precision @ slices)))

    def update_hyper(self, rng, core, hyper=None):
        shape, rate = self.c0 + 0.5 * core.size, self.d0 + 0.5 * self._square(core)
        return Precision(rng.gamma(shape, 1 / rate, size=1))

    def slice_prior(self, core, hyper):
        size, q = core[0].size, self.precision
        return SlicePrior(
            hyper.psi[0] * np.eye(size),
            np.zeros((1, size)),
            np.zeros((1, size)),
            np.diag(q).copy(),
            -np.diag(q, 1),
        )

    def log_prob(self, core, hyper):
        psi = float(hyper.psi[0])
        log_det = np.linalg.slogdet(self.precision)[1]
        log_core = 0.5 * core.size * np.log(psi / (2 * np.pi)) - 0.5 * psi * self._square(core)
        log_core += 0.5 * core[0].size * log_det
        log_psi = self.c0 * np.log(self.d0) - gammaln(self.c0)
        return float(log_core + log_psi + (self.c0 - 1) * np.log(psi) - self.d0 * psi)

    def new_slices(self, rng, core, noise, axis):
        raise NotImplementedError


class Graph(Chain):
    """The same distribution, told slice by slice given the others."""

    coupling: ClassVar[Coupling] = Coupling.GRAPH

    def colours(self, n_slices):
        return np.arange(n_slices) % 2

    def slice_prior(self, core, hyper):
        own = super().slice_prior(core, hyper)
        others = self.precision - np.diag(np.diag(self.precision))
        linear = -hyper.psi[0] * others @ core.reshape(len(core), -1)
        return own._replace(linear=linear, links=None)
