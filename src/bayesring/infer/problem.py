"""The input of a sampler and its reports."""

from __future__ import annotations

from typing import Any, NamedTuple

from bayesring.engine.operations import JOINT, Update
from bayesring.engine.protocol import Blocks, Engine
from bayesring.engine.threads import ONE_THREAD
from bayesring.likelihoods import Likelihood
from bayesring.model.types import FloatArray, IntArray
from bayesring.priors import Coupling, RingPrior


class Problem(NamedTuple):
    """Data and model of a fit. Never changes while sampling."""

    shape: tuple[int, ...]
    views: tuple[Blocks, ...]
    """The blocks of every mode, as stored by the engine."""
    counts: tuple[IntArray, ...]
    """Observations in each slice of each mode."""
    likelihood: Likelihood
    prior: RingPrior
    """One prior per mode."""
    update: Update
    dtype: str = "float64"
    """dtype of the products around the ring; everything else is float64."""

    @property
    def n_observations(self) -> int:
        """Number of observations."""
        return int(self.counts[0].sum())

    @property
    def information(self) -> float:
        """Number of observations times the information of each."""
        return self.n_observations * self.likelihood.information


class StepInfo(NamedTuple):
    """What users or rank adaption may want to know about a scan."""

    statistics: FloatArray
    """The likelihood's statistics, summed over all observations."""
    log_likelihood: float
    energy: float
    """sum w f^2 over all observations, where noise has energy one per observation."""


class BrokenChain(FloatingPointError):
    """A scan encountered non-finite numbers or a matrix that is not positive definite."""


class Method(NamedTuple):
    """How scans are done."""

    update: Update = JOINT
    block_size: int | None = None
    dtype: str = "float64"


def make_problem(
    data: Any,
    likelihood: Likelihood,
    prior: RingPrior,
    method: Method | Update = JOINT,
    engine: Engine = ONE_THREAD,
) -> Problem:
    """Sort the data, cut them into blocks, and place these with the engine."""
    if isinstance(method, Update):
        method = Method(method)
    update, block_size, dtype = method
    shape, handed = data.shape, [data]
    del data  # so that it can be released while blocks are made
    prior = prior.for_shape(shape)
    cut = [update.cuts_slices and each.coupling is Coupling.NONE for each in prior.modes]
    views, counts = engine.lay_out(handed.pop(), block_size, cut)
    return Problem(shape, views, counts, likelihood, prior, update, dtype)
