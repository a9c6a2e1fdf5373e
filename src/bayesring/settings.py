"""Objects for the settings that users give by name, and sentences on those that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence

from bayesring.checks import check_count, unknown_name
from bayesring.model.rank import FixedRank, RankPolicy, StrandGrowth
from bayesring.engine.operations import UPDATES
from bayesring.likelihoods import Bernoulli, Gaussian, Likelihood
from bayesring.priors import CorePrior, Fixed, NormalWishart, RingPrior
from bayesring.model.types import RingSize

LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
}
PRIORS: dict[str, Callable[[], CorePrior]] = {"hierarchical": NormalWishart, "paper": Fixed}
INFERENCES = ("gibbs", "online-em")
DTYPES = ("float32", "float64")
CHAINS, RINGS, FEW = 4, 8, 2**17
"""Chains; rings that online EM learns from up to so many observations, as many as chains beyond."""


class Model(NamedTuple):
    """What is fitted."""

    likelihood: Likelihood
    prior: RingPrior
    policy: RankPolicy


def resolve(parameters: Any) -> Model:
    """Objects for the names that an estimator was given."""
    if parameters.inference not in INFERENCES:
        raise unknown_name("inference", parameters.inference, INFERENCES, "nothing else")
    if parameters.dtype not in DTYPES:
        raise unknown_name("dtype", parameters.dtype, DTYPES, "nothing else")
    if not isinstance(parameters.update, str) or parameters.update not in UPDATES:
        raise unknown_name("update", parameters.update, UPDATES, "nothing else")
    likelihood = _named(
        "likelihood", parameters.likelihood, LIKELIHOODS, Likelihood, "bayesring.likelihoods"
    )
    if isinstance(parameters.prior, RingPrior):
        prior = parameters.prior
    else:
        prior = RingPrior.of(
            _named("prior", parameters.prior, PRIORS, CorePrior, "bayesring.priors")
        )
    if UPDATES[parameters.update].diagonal_only and not prior.cores.diagonal:
        raise ValueError(
            f"update={parameters.update!r} needs a prior whose entries are independent, but "
            f"{type(prior.cores).__name__} correlates them; use prior='paper', "
            "bayesring.priors.NormalGamma() or update='slice'."
        )
    return Model(likelihood, prior, _policy(parameters.rank))


def _named(
    argument: str, value: Any, known: Mapping[str, Callable[[], Any]], protocol: Any, home: str
) -> Any:
    """Object for a name, or the object itself if it keeps the protocol."""
    if isinstance(value, str):
        if value not in known:
            raise unknown_name(argument, value, known, f"an object of {home}")
        return known[value]()
    if isinstance(value, type) or not isinstance(value, protocol):
        raise unknown_name(argument, value, known, f"an object of {home}")
    return value


def _policy(rank: Any) -> RankPolicy:
    if isinstance(rank, str):
        if rank != "auto":
            raise unknown_name("rank", rank, ["auto"], "a number, or one number per bond")
        return StrandGrowth()
    if hasattr(rank, "adapt"):
        return rank  # type: ignore[no-any-return]
    try:
        numbers = np.atleast_1d(rank).tolist()
        given = tuple(numbers) if np.ndim(rank) else numbers[0]
    except ValueError:
        given = rank
    return FixedRank(given)


def count_chains(parameters: Any, n: int) -> int:
    """Chains of an estimator, or rings learned from independent starts, given `n` observations."""
    if parameters.chains == "auto":
        return RINGS if parameters.inference == "online-em" and n <= FEW else CHAINS
    if isinstance(parameters.chains, str):
        raise ValueError(f"chains must be 'auto' or a whole number, got {parameters.chains!r}.")
    return check_count(parameters.chains, "chains", 1)


def check_draw_fits(shape: tuple[int, ...], size: RingSize, max_memory: int, chains: int) -> None:
    """Refuse a ring of which not even one draw per chain fits into the memory given."""
    budget = check_count(max_memory, "max_memory", 1) // chains
    draw_bytes = 8 * size.parameters(shape)
    if draw_bytes > budget:
        raise ValueError(
            f"One draw of a ring of shape {shape} and rank {size.bonds} takes "
            f"{draw_bytes / 2**30:.2f} GiB, but max_memory leaves {budget / 2**30:.2f} GiB per "
            "chain; give a larger max_memory= or a smaller rank=, or code the modes so that fewer "
            "places are empty."
        )


def seed_of(random_state: Any) -> int:
    """One whole number that stands for the random state."""
    if random_state is None:
        return int(SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, RandomState):
        return int(random_state.randint(2**32, dtype=np.uint32))
    return check_count(random_state, "random_state", 0)
