"""The prior of a whole ring: one prior per mode and one for the bond weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesring.model.types import Axis, FloatArray, SlicePrior
from bayesring.priors.bond_prior import BondPrior
from bayesring.priors.gamma_process import GammaProcess
from bayesring.priors.mode_prior import ModePrior
from bayesring.priors.unit_weights import UnitWeights

Pairs = tuple[tuple[int, int], ...]
"""Pairs of modes."""


@dataclass(frozen=True)
class RingPrior:
    """Prior of a whole ring.

    Parameters
    ----------
    modes : prior of the slices of each mode; a single prior applies to all modes
    weights : prior of the bond weights
    share : pairs of modes with the same labels: slices of the second are regressed on those of the
        first, g2_i = mu + A' g1_i + deviation, so that its prior is `Featured` with these as
        features, equation (46) of docs/model.md

    Examples
    --------
    >>> from bayesring.priors import NormalWishart, RingPrior, UnitWeights
    >>> len(RingPrior(NormalWishart(), UnitWeights()).modes)    # one prior for all modes
    1
    """

    modes: tuple[ModePrior, ...]
    weights: BondPrior
    share: Pairs = ()

    def __post_init__(self) -> None:
        modes = (self.modes,) if isinstance(self.modes, ModePrior) else self.modes
        if not isinstance(modes, tuple | list) or not modes:
            raise TypeError(f"modes of RingPrior must be priors of modes, got {modes!r}.")
        for each in modes:
            if not isinstance(each, ModePrior):
                raise TypeError(f"modes of RingPrior must be priors of modes, got {each!r}.")
        if not isinstance(self.weights, BondPrior):
            raise TypeError(
                f"weights of RingPrior must be a prior of bond weights, got {self.weights!r}."
            )
        object.__setattr__(self, "modes", tuple(modes))

    @classmethod
    def of(cls, *modes: ModePrior) -> RingPrior:
        """Unit weights if all cores learn their scale, otherwise the gamma process."""
        learned = all(prior.learns_scale for prior in modes)
        return cls(modes, UnitWeights() if learned else GammaProcess())

    @property
    def diagonal(self) -> bool:
        """Whether the entries of every slice are independent given the hyperparameters."""
        return all(prior.diagonal for prior in self.modes)

    def bind(self, axes: Sequence[Axis]) -> RingPrior:
        """Prior of a ring with known modes: one prior per mode."""
        modes = self.modes * len(axes) if len(self.modes) == 1 else self.modes
        if len(modes) != len(axes):
            raise ValueError(
                f"prior has priors for {len(modes)} modes, but the data have {len(axes)}."
            )
        seconds = {second for _, second in self.share}
        bound = tuple(
            prior if mode in seconds else prior.bind(axis)
            for mode, (prior, axis) in enumerate(zip(modes, axes, strict=True))
        )
        return replace(self, modes=bound)

    def of_mode(self, mode: int, cores: Sequence[FloatArray]) -> ModePrior:
        """The prior of a mode given the cores of those before it."""
        prior = self.modes[mode]
        for first, second in self.share:
            if second == mode:
                axis = Axis(len(cores[first]), features=cores[first].reshape(len(cores[first]), -1))
                return prior.bind(axis)
        return prior

    def slice_prior(
        self, mode: int, cores: Sequence[FloatArray], hyper: Sequence[Any]
    ) -> SlicePrior:
        """Gaussian prior of the slices of a mode, given those of a mode that shares its labels.

        Slices of a first mode are pulled towards what the second ones say of them: precision
        A Omega A' and linear terms A Omega (g2_i - mu).
        """
        found = self.of_mode(mode, cores).slice_prior(cores[mode], hyper[mode])
        for first, second in self.share:
            if first == mode:
                mean, precision, slopes = hyper[second][:3]
                pull = slopes @ precision
                gaps = cores[second].reshape(len(cores[second]), -1) - mean
                linear = found.linear + gaps @ pull.T
                own = found.precision + pull @ slopes.T
                found = SlicePrior(own, np.zeros(linear.shape), linear)
        return found

    def affected(self, modes: set[int]) -> set[int]:
        """Modes whose hyperparameters no longer fit when the cores of some have another size."""
        return modes | {second for first, second in self.share if first in modes}

    @property
    def exchangeable(self) -> RingPrior:
        """The same prior without dependence between slices."""
        return replace(self, modes=tuple(prior.exchangeable for prior in self.modes))

    def for_shape(self, shape: Sequence[int]) -> RingPrior:
        """One prior per mode, bound to its number of labels unless it is already bound."""
        return (
            self
            if len(self.modes) == len(shape)
            else self.bind([Axis.of_coordinates(n) for n in shape])
        )
