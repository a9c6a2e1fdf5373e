"""What a sampler works on and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bayesring.engine.operations import JOINT, Update
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Block, Observations, mode_views
from bayesring.priors.protocol import RingPrior
from bayesring.model.types import FloatArray

BlockMap = Callable[[Callable[[Block], Any], Iterable[Block]], Iterable[Any]]
"""Anything that works like the built-in `map`, and keeps the order."""


class Problem(NamedTuple):
    """Data and model of a fit. Never changes while sampling."""

    shape: tuple[int, ...]
    views: tuple[tuple[Block, ...], ...]
    likelihood: Likelihood
    prior: RingPrior
    update: Update
    dtype: str = "float64"
    """Of the products round the ring; everything else is float64."""

    @property
    def n_observations(self) -> int:
        """Number of observations."""
        return sum(block.values.size for block in self.views[0])


class StepInfo(NamedTuple):
    """What a person, or rank adaption, may want to know about a scan."""

    statistics: FloatArray
    """The likelihood's statistics, summed over all observations."""
    log_likelihood: float
    energy: float
    """sum w f^2 over all observations: what f weighs against noise of energy one each."""


class BrokenChain(FloatingPointError):
    """A scan met numbers that are not finite, or a matrix that is not positive definite."""


def make_problem(
    data: Observations,
    likelihood: Likelihood,
    prior: RingPrior,
    update: Update = JOINT,
    block_size: int | None = None,
    dtype: str = "float64",
) -> Problem:
    """Sort and cut the data."""
    views = mode_views(data, block_size, cut_slices=update.cuts_slices)
    return Problem(data.shape, views, likelihood, prior, update, dtype)
