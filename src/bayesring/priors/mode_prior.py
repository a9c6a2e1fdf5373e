"""Interface of the prior of one mode's core.

A new prior is one new file in this folder and one line in its `__init__`: a frozen dataclass that
extends `ModePrior`. It sees the whole core and, once bound, the positions and features of the
mode's labels. Its slices may depend on each other.
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
    """How the slices of a core depend on each other given the hyperparameters.

    Examples
    --------
    >>> from bayesring.priors import Coupling, NormalWishart, Smooth
    >>> NormalWishart().coupling is Coupling.NONE, Smooth().coupling is Coupling.CHAIN
    (True, True)
    """

    NONE = "independent"
    """Independent: all slices are drawn at once."""
    CHAIN = "runs"
    """Each slice depends on the ones before and after it: runs of slices are drawn jointly."""
    GRAPH = "slices"
    """Each slice depends on some others: slices are drawn colour by colour."""
    PATCHES = "patches"
    """Each slice depends on some others: patches of slices are drawn jointly, pass after pass."""


class ModePrior(ABC):
    """Prior of the slices of one core, G^(d)[i] for i = 1..I_d, with its hyperparameters.

    `hyper` is a NamedTuple of arrays that only the prior itself inspects.

    Examples
    --------
    >>> from bayesring.priors import ModePrior, NormalWishart
    >>> isinstance(NormalWishart(), ModePrior)
    True
    """

    diagonal: ClassVar[bool] = False
    """Whether the entries of a slice are independent given the hyperparameters."""
    learns_scale: ClassVar[bool] = True
    """Whether the hyperparameters adapt the scale of the entries to the data."""
    coupling: ClassVar[Coupling] = Coupling.NONE
    informed: ClassVar[bool] = False
    """Whether labels without observations differ in what the prior expects of them."""

    def bind(self, axis: Axis) -> ModePrior:
        """Prior for a mode described by `axis`; most priors do not use it."""
        return self

    @property
    def exchangeable(self) -> ModePrior:
        """The same prior without dependence between slices."""
        return self

    def start(self, core: FloatArray, hyper: Any = None) -> FloatArray:
        """Slices to start from, made of independent ones; `hyper` is None in a new chain."""
        return core

    def resized_hyper(self, rng: Generator, core: FloatArray, hyper: Any) -> Any:
        """Draw hyperparameters for a core whose rank has changed; `hyper` had the old rank."""
        return self.update_hyper(rng, core)

    @abstractmethod
    def draw_hyper(self, rng: Generator, shape: CoreShape) -> Any:
        """Draw the hyperparameters of a core of `shape` from their prior."""

    @abstractmethod
    def draw_core(self, rng: Generator, shape: CoreShape, hyper: Any) -> FloatArray:
        """Draw the slices of a core given the hyperparameters."""

    @abstractmethod
    def update_hyper(self, rng: Generator, core: FloatArray, hyper: Any = None) -> Any:
        """Draw the hyperparameters from their conditional given the core.

        It may also move them from `hyper` by a step that leaves the conditional invariant; `hyper`
        is None if there are no hyperparameters yet.
        """

    @abstractmethod
    def slice_prior(self, core: FloatArray, hyper: Any) -> SlicePrior:
        """Gaussian prior of each slice given the hyperparameters.

        For a chain and for patches, with links or a graph, and without the neighbours in the
        linear terms. For a graph, given the current values of the other slices of `core`.
        """

    def alternatives(self, rng: Generator, hyper: Any) -> tuple[Any, ...]:
        """`hyper`, and in a chain or patches perhaps one other that is as likely to propose it.

        A Metropolis step with slices integrated out chooses between them, so that hyperparameters
        that given slices would hold in place can move. Only what `log_constant` and `slice_prior`
        account for may differ.
        """
        return (hyper,)

    def is_exchangeable(self, hyper: Any) -> bool:
        """Whether slices do not depend on each other, given these hyperparameters."""
        return False

    def log_constant(self, shape: CoreShape, hyper: Any) -> float:
        """Terms of log p(core, hyper) that contain neither a slice nor what alternatives share."""
        return 0.0

    def colours(self, n_slices: int) -> IntArray:
        """For a graph: the colour (I_d,) of each slice, from 0; neighbours differ in colour."""
        return np.arange(n_slices)

    def arrangement(self) -> IntArray | None:
        """For patches: an order (I_d,) of the slices in which those that belong together do stand.

        None if they are in order.
        """
        return None

    def patches(self, n_slices: int, scan: int, room: float = np.inf) -> list[IntArray]:
        """For patches: first and end slice (n, 2) of each, for every pass of a scan.

        Patches of a pass do not depend on each other given all other slices. Together, passes have
        every slice once. On a circle, a patch that ends beyond the last slice goes on at the first.
        To draw T slices jointly takes as long as some T^2 / 3 factorisations of each, in a graph
        where all depend on all; `room` is how many are as much work as the observations.
        """
        each = np.arange(n_slices)
        return [np.stack([each, each + 1], axis=1)[place : place + 1] for place in each]

    @abstractmethod
    def log_prob(self, core: FloatArray, hyper: Any) -> float:
        """log p(core, hyper), constants included."""

    @abstractmethod
    def new_slices(
        self, rng: Generator, core: FloatArray, noise: FloatArray, axis: Axis
    ) -> FloatArray:
        """Draw new slices given the whole core.

        What all new slices share is drawn with `rng`; the rest of each slice comes from its own
        standard normal `noise` (n, S, R_{d-1}, R_d). `axis` says what is known about their labels.
        """

    def beside(self, rng: Generator, core: FloatArray, axis: Axis) -> SlicePrior:
        """Gaussian prior of new slices given the whole core, with hyperparameters drawn given it.

        Slices come in the order of `axis`, which increases or decreases as the known positions do.
        """
        found = self.slice_prior(core, self.update_hyper(rng, core))
        if max(len(found.diagonal), len(found.linear), len(found.factors)) > 1:
            raise ValueError(
                f"{type(self).__name__} gives every slice a prior of its own, so new labels "
                "cannot be folded in; use prior='hierarchical'."
            )
        return found

    # ---- Optional: online EM.

    def conditional(self, core: FloatArray, spread: FloatArray | None = None) -> Any:
        """Parameters of the distribution of the hyperparameters given the core.

        `spread` is the uncertainty of the slices around `core`, zero by default: the variance of
        every entry (I_d, K) if the prior is diagonal, or the sum of their covariances (K, K).
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot be learned by online EM; use inference='gibbs'."
        )

    def estimate_hyper(self, parameters: Any) -> Any:
        """Point estimate of the hyperparameters for online EM, given the result of `conditional`.

        Either their expectation or their mode.
        """
        raise NotImplementedError

    def expected_log_prob(self, core: FloatArray, spread: FloatArray, parameters: Any) -> float:
        """E log p(core, hyper) - E log q(hyper), with q from `conditional` and an uncertain core.

        For a prior that estimates by the mode: E log p(core, hyper) at the mode.
        """
        raise NotImplementedError
