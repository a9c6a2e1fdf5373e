"""The prior of a whole ring: one prior per mode and one for the bond weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bayesring.model.types import Axis
from bayesring.priors.bond_prior import BondPrior
from bayesring.priors.gamma_process import GammaProcess
from bayesring.priors.mode_prior import ModePrior
from bayesring.priors.unit_weights import UnitWeights


@dataclass(frozen=True)
class RingPrior:
    """Prior of a whole ring.

    Parameters
    ----------
    modes : prior of the slices of each mode; a single prior applies to all modes
    weights : prior of the bond weights

    Examples
    --------
    >>> from bayesring.priors import NormalWishart, RingPrior, UnitWeights
    >>> len(RingPrior(NormalWishart(), UnitWeights()).modes)    # one prior for all modes
    1
    """

    modes: tuple[ModePrior, ...]
    weights: BondPrior

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
        bound = tuple(prior.bind(axis) for prior, axis in zip(modes, axes, strict=True))
        return replace(self, modes=bound)

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
