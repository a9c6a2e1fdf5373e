"""What the prior of one mode's core must say about itself.

A new prior is one new file in this folder and one line in its `__init__`: a frozen dataclass that
extends `ModePrior`. It sees the whole core, and, once bound, the positions and the features of the
mode's labels; its slices may depend on each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from bayesring.model.types import Axis, FloatArray, IntArray, SlicePrior

CoreShape = tuple[int, int, int, int]
"""(I_d, S, R_{d-1}, R_d)."""


class Coupling(Enum):
    """How the slices of a core depend on each other given the hyperparameters."""

    NONE = "independent"
    """Not at all: they are drawn all at once."""
    CHAIN = "runs"
    """Each on the slices before and behind it: runs of them are drawn jointly."""
    GRAPH = "slices"
    """Each on some others: slices of one colour are drawn at once, one colour after the other."""


class ModePrior(ABC):
    """Prior of the slices of one core, G^(d)[i] for i = 1..I_d, with its hyperparameters.

    `hyper` is a NamedTuple of arrays that only the prior itself looks into.
    """

    diagonal: ClassVar[bool] = False
    """Whether the entries of a slice are independent given the hyperparameters."""
    learns_scale: ClassVar[bool] = True
    """Whether the hyperparameters fit the size of the entries to the data."""
    coupling: ClassVar[Coupling] = Coupling.NONE

    def bind(self, axis: Axis) -> ModePrior:
        """The prior of a mode of which this is known; most priors need nothing of it."""
        return self

    @abstractmethod
    def draw_hyper(self, rng: Generator, shape: CoreShape) -> Any:
        """Draw the hyperparameters of a core of `shape` from their prior."""

    @abstractmethod
    def draw_core(self, rng: Generator, shape: CoreShape, hyper: Any) -> FloatArray:
        """Draw the slices of a core given the hyperparameters."""

    @abstractmethod
    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> Any:
        """Draw the hyperparameters from their conditional given the core.

        Or move them by a step that leaves it invariant, from `hyper`; None if there are none yet.
        """

    @abstractmethod
    def slice_prior(self, core: FloatArray, hyper: Any) -> SlicePrior:
        """Gaussian prior of each slice given the hyperparameters.

        Of a chain, with its links and without the neighbours in the linear terms; of a graph, given
        the other slices of `core` as they stand.
        """

    def colours(self, n_slices: int) -> IntArray:
        """Of a graph: a colour (I_d,) for each slice, from 0; neighbours have different ones."""
        return np.arange(n_slices)

    @abstractmethod
    def log_prob(self, core: FloatArray, hyper: Any) -> float:
        """Log p(core, hyper), constants included."""

    @abstractmethod
    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw slices beyond those of the core, given all of it.

        What all new slices share comes from `rng`, what each has to itself from its own standard
        normal `noise` (n, S, R_{d-1}, R_d); `axis` says what is known of their labels.
        """

    # ---- Optional: online EM.

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> Any:
        """Parameters of the distribution of the hyperparameters given the core.

        `spread` is how uncertain slices are around the `core`, not at all if left out: the variance
        of every entry (I_d, K) if the prior is diagonal, or the sum of their covariances (K, K).
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot be learned by online EM; use inference='gibbs'."
        )

    def estimate_hyper(self, parameters: Any) -> Any:
        """What online EM takes the hyperparameters for, given what `conditional` found.

        Their expectation, or their mode.
        """
        raise NotImplementedError

    def expected_log_prob(self, core: FloatArray, spread: FloatArray, parameters: Any) -> float:
        """E log p(core, hyper) - E log q(hyper), q as `conditional` found it, the core uncertain.

        For a prior that takes the mode for its estimate: E log p(core, hyper) there.
        """
        raise NotImplementedError
