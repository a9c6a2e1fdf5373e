"""Turns the estimator's parameters into objects and checked numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import Generator, RandomState, SeedSequence

from bayesring.checks import check_choice, check_count, unknown_name
from bayesring.data.positions import mode_of
from bayesring.engine.operations import UPDATES
from bayesring.engine.threads import count_threads
from bayesring.infer.chains import Sampling
from bayesring.infer.length import Length
from bayesring.infer.members import Learning
from bayesring.infer.problem import Method
from bayesring.likelihoods import (
    Bernoulli,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from bayesring.model.growth import JointGrowth
from bayesring.model.rank import FixedRank, RankPolicy, StrandGrowth
from bayesring.model.spec import Model
from bayesring.model.types import Moments, RingSize
from bayesring.priors import Circular, Fixed, ModePrior, NormalWishart, RingPrior, Spatial
from bayesring.wording import shown

LONGEST = 1e9
"""Seconds of a run that might as well be endless."""
LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "gaussian": Gaussian,
    "student-t": StudentT,
    "bernoulli": Bernoulli,
    "negative-binomial": NegativeBinomial,
    "poisson": Poisson,
    "ordinal": Ordinal,
}
HIERARCHICAL, PAPER = "hierarchical", "paper"
INFERENCES = ("gibbs", "online-em")
DTYPES = ("float32", "float64")
CHAINS, RINGS, FEW = 4, 8, 2**17
"""Chains; rings of online EM, for up to FEW observations (above, as many as chains)."""
RING_DRAWS = 200
"""Draws around every ring of online EM, unless given."""
OWN_SETTINGS: dict[str, dict[str, Any]] = {
    "online-em": {"batch_size": "auto", "epochs": 200},
    "gibbs": {"update": "slice", "dtype": "float64", "max_time": None},
}
"""Settings that only one algorithm uses, with the defaults that say nothing to the other."""
MOST_BYTES = 2**80
"""More than this are said to be as many."""
MOST_MODES = 63
"""Modes whose indices NumPy can turn into numbers of cells and back."""
BATCH, LARGE_BATCH, MANY = 512, 2048, 2**20
"""Observations per step (512 is the paper's), the larger size for MANY observations or more, where
small steps cost more than they gain."""


How = bool | float | Literal["map"]
"""Whether a mode is ordered, the period after which it repeats, or that it lies on a map."""


class Order(NamedTuple):
    """Which modes are ordered."""

    asked: tuple[int, ...] | None
    """Modes that the user named; None to decide by their labels."""
    free: tuple[int, ...] | None
    """Modes whose prior is the default, so that it may be decided; None if all are."""
    detailed: tuple[tuple[int, How], ...] = ()
    """Modes of which the user said whether they are ordered, or how."""

    @property
    def told(self) -> str | tuple[Any, ...] | None:
        """As the user would say it."""
        if self.detailed:
            return self.detailed
        return "auto" if self.asked is None else self.asked or None

    @property
    def named(self) -> tuple[int, ...]:
        """Modes that are ordered because the user says so."""
        return (self.asked or ()) + tuple(mode for mode, how in self.detailed if how is not False)


class Settings(NamedTuple):
    """The checked parameters of an estimator."""

    model: Model
    order: Order
    inference: str
    method: Method
    warmup: int | None
    draws: int | None
    """None to end when the answer stands."""
    chains: int | None
    """None to choose by the number of observations."""
    max_time: float | None
    """Seconds."""
    max_memory: int
    batch_size: int | None
    """None to choose by the number of observations."""
    epochs: int
    seed: int
    n_jobs: int
    progress: bool

    def bound(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Settings:
        """The settings with a likelihood that knows the values and the modes."""
        likelihood = self.model.likelihood.bind(moments, names, shape)
        return self._replace(model=self.model._replace(likelihood=likelihood))

    def sized(self, shape: tuple[int, ...], n: int) -> Settings:
        """The settings with a search for a size that begins where it should with so much data."""
        likelihood, _, policy = self.model
        if not isinstance(policy, StrandGrowth):
            return self
        policy = policy.for_data(shape, n * likelihood.information)
        return self._replace(model=self.model._replace(policy=policy))

    def facts(self) -> dict[str, str]:
        """Everything but the data that a result depends on, as text."""
        left_out = ("model", "seed", "n_jobs", "progress")
        facts = {name: value for name, value in self._asdict().items() if name not in left_out}
        facts |= {"random_state": self.seed, "rank": self.model.policy, "order": self.order.told}
        facts |= {"likelihood": self.model.likelihood, "prior": self.model.prior}
        return {name: _as_text(value) for name, value in facts.items()}

    def count_chains(self, n: int) -> int:
        """Chains, or rings learned from independent starts, given `n` observations."""
        if self.chains is None:
            return RINGS if self.inference == "online-em" and n <= FEW else CHAINS
        return self.chains

    def sampling(self, n: int, scale: float) -> Sampling:
        """How chains are run on `n` observations."""
        chains = self.count_chains(n)
        length = Length(self.warmup, self.draws, self.max_memory // chains, self.max_time)
        return Sampling(length, self.seed, chains, self.method, scale)

    def learning(self, n: int, scale: float = 1.0, rings: int | None = None) -> Learning:
        """How rings learn from `n` observations; `rings` overrides their number."""
        members = self.count_chains(n) if rings is None else rings
        batch_size = self.batch_size or (BATCH if n < MANY else LARGE_BATCH)
        budget = self.max_memory // members
        draws = RING_DRAWS if self.draws is None else self.draws
        return Learning(
            self.seed, members, draws, budget, batch_size, self.epochs, scale, self.warmup
        )

    def check_ring_fits(self, shape: tuple[int, ...], n: int) -> None:
        """Refuse a shape for which even the smallest ring is too large, before any work."""
        size = self.model.policy.start(len(shape))
        self.check_draw_fits(shape, size, self.count_chains(n))

    def check_draw_fits(self, shape: tuple[int, ...], size: RingSize, chains: int) -> None:
        """Refuse a ring if one draw per chain exceeds `max_memory`."""
        if len(shape) > MOST_MODES:
            raise ValueError(f"The data have {len(shape)} modes, but at most {MOST_MODES} can be.")
        budget, draw_bytes = self.max_memory // chains, 8 * size.parameters(shape)
        if draw_bytes > budget:
            raise ValueError(
                f"One draw of a ring of shape {shape} and rank {shown(size.bonds)} takes "
                f"{min(draw_bytes, MOST_BYTES) / 2**30:.2f} GiB, but max_memory leaves "
                f"{budget / 2**30:.2f} GiB per chain; give a larger max_memory= or a smaller "
                "rank=, or code the modes so that fewer places are empty."
            )


def _as_text(value: Any) -> str:
    """Text that is equal for equal values, in every process."""
    if is_dataclass(value):
        inner = (f"{each.name}={_as_text(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__name__}({', '.join(inner)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_as_text, value))})"
    plain = isinstance(value, str | int | float | np.ndarray | range | type(None))
    return repr(value) if plain else type(value).__name__


def resolve(parameters: Mapping[str, Any], names: Sequence[str] = ()) -> Settings:
    """Check the parameters of an estimator whose modes have these `names`."""
    given = dict(parameters)
    for argument, known in (("inference", INFERENCES), ("dtype", DTYPES), ("update", UPDATES)):
        check_choice(given[argument], argument, known)
    _refuse_unused(given)
    likelihood = _named(
        "likelihood",
        given["likelihood"],
        LIKELIHOODS,
        Likelihood,
        "bayesring.likelihoods",
        ["auto"],
    )
    update, prior = UPDATES[given["update"]], _prior(given["prior"], names, likelihood)
    if update.diagonal_only and not prior.diagonal:
        name = next(type(each).__name__ for each in prior.modes if not each.diagonal)
        raise ValueError(
            f"update={given['update']!r} needs a prior whose entries are independent, but "
            f"{name} correlates them; use prior='paper', bayesring.priors.NormalGamma() or "
            "update='slice'."
        )
    return Settings(
        Model(likelihood, prior, _policy(given, likelihood)),
        _order(given["order"], given["prior"], names),
        given["inference"],
        Method(update, dtype=given["dtype"]),
        _count_or_auto(given["warmup"], "warmup", 0),
        _count_or_auto(given["draws"], "draws"),
        _count_or_auto(given["chains"], "chains"),
        _seconds(given["max_time"]),
        check_count(given["max_memory"], "max_memory", 1),
        _count_or_auto(given["batch_size"], "batch_size"),
        check_count(given["epochs"], "epochs", 1),
        seed_of(given["random_state"]),
        count_threads(given["n_jobs"]),
        _yes_or_no(given["progress"], "progress"),
    )


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not value > 0:
        raise ValueError(f"max_time must be None or a positive number, got {shown(value)}.")
    return float(min(value, LONGEST))


def _refuse_unused(given: Mapping[str, Any]) -> None:
    """Refuse settings of the other algorithm, which nothing would use."""
    for algorithm, defaults in OWN_SETTINGS.items():
        for name, default in defaults.items():
            if given["inference"] != algorithm and not np.array_equal(given[name], default):
                raise ValueError(
                    f"{name}={shown(given[name])} is for inference={algorithm!r}, but inference "
                    f"is {given['inference']!r}."
                )


def _count_or_auto(value: Any, name: str, least: int = 1) -> int | None:
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f"{name} must be 'auto' or an integer, got {shown(value)}.")
    return check_count(value, name, least)


def _yes_or_no(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def _prior(prior: Any, names: Sequence[str], likelihood: Likelihood) -> RingPrior:
    """The prior of a ring from a name, an object, or a mapping from modes to either."""
    if isinstance(prior, RingPrior):
        return prior
    hierarchical = partial(NormalWishart, **likelihood.slice_prior)
    known: dict[str, Callable[[], ModePrior]] = {HIERARCHICAL: hierarchical, PAPER: Fixed}
    if not isinstance(prior, Mapping):
        return RingPrior.of(_named("prior", prior, known, ModePrior, "bayesring.priors"))
    modes: list[ModePrior] = [hierarchical()] * len(names)
    for name, own in prior.items():
        modes[mode_of(name, names, "prior")] = _named(
            "prior", own, known, ModePrior, "bayesring.priors"
        )
    return RingPrior.of(*modes)


def _order(order: Any, prior: Any, names: Sequence[str]) -> Order:
    """Which modes are ordered, or may be."""
    if isinstance(prior, Mapping):
        given = {mode_of(name, names, "prior") for name in prior}
        free: tuple[int, ...] | None = tuple(set(range(len(names))) - given)
    else:
        free = None if isinstance(prior, str) and prior == HIERARCHICAL else ()
    if order is None:
        return Order((), free)
    if isinstance(order, str):
        if order == "auto":
            return Order(None, free)
        raise ValueError(
            f"order must be 'auto', None or a list of modes, got {shown(order)}; for one mode, "
            f"give [{shown(order)}]."
        )
    if isinstance(order, Mapping):
        found = {mode_of(name, names, "order"): _detail(name, how) for name, how in order.items()}
        if len(found) < len(order):
            raise ValueError(f"order names a mode twice: {shown(list(order))}.")
        return Order(None, free, tuple(sorted(found.items())))
    listed = order.tolist() if hasattr(order, "tolist") else order
    if not isinstance(listed, list | tuple):
        raise ValueError(f"order must be 'auto', None or a list of modes, got {shown(order)}.")
    asked = tuple(mode_of(name, names, "order") for name in listed)
    if len(set(asked)) < len(asked):
        raise ValueError(f"order names a mode twice: {shown(listed)}.")
    return Order(asked, free)


def _detail(name: Any, how: Any) -> How:
    """Whether a mode is ordered, and how; priors only say which kind it is."""
    if isinstance(how, bool | np.bool_):
        return bool(how)
    if isinstance(how, Circular | Spatial):
        plain = Circular(how.period) if isinstance(how, Circular) else Spatial()
        if how != plain:
            raise ValueError(
                f"order of the mode {shown(name)} is a prior with parameters of its own, which "
                f"order does not take; give it as prior={{{shown(name)}: ...}}."
            )
        return float(how.period) if isinstance(how, Circular) else "map"
    number = isinstance(how, int | float | np.integer | np.floating)
    if not number or not 0 < how < np.inf:
        raise ValueError(
            f"order of the mode {shown(name)} must be True, False, the period of a circle, "
            f"Circular(period) or Spatial(), got {shown(how)}."
        )
    return float(how)


def _named(
    argument: str,
    value: Any,
    known: Mapping[str, Callable[[], Any]],
    protocol: Any,
    home: str,
    also: Sequence[str] = (),
) -> Any:
    """The object with this name, or the given object if it is of the right kind.

    `also` are names that a user may give, but that stand for one of the others by now.
    """
    if isinstance(value, str) and value in known:
        return known[value]()
    if isinstance(value, str | type) or not isinstance(value, protocol):
        raise unknown_name(argument, value, [*known, *also], f"an object of {home}")
    return value


def _policy(given: Mapping[str, Any], likelihood: Likelihood) -> RankPolicy:
    rank = given["rank"]
    if isinstance(rank, str):
        if rank != "auto":
            raise unknown_name("rank", rank, ["auto"], "a number, or one number per bond")
        together = isinstance(given["warmup"], str) and given["inference"] == "gibbs"
        if together:
            return JointGrowth(sparse=likelihood.fewest_strands, widening=likelihood.strands_widen)
        return StrandGrowth(sparse=likelihood.fewest_strands)
    if hasattr(rank, "adapt"):
        return rank  # type: ignore[no-any-return]
    try:
        numbers = np.atleast_1d(rank).tolist()
    except ValueError:  # a ragged list, which FixedRank refuses
        return FixedRank(rank)
    return FixedRank(tuple(numbers) if np.ndim(rank) else numbers[0])


def seed_of(random_state: Any) -> int:
    """The random state as one integer."""
    if random_state is None:
        return int(SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, RandomState):
        return int(random_state.randint(2**32, dtype=np.uint32))
    return check_count(random_state, "random_state", 0)
