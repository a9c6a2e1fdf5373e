"""Interface of a data type. No other module checks which data type it has.

A new data type is one new file in this folder and one line in its `__init__`: a frozen dataclass
that extends `Likelihood` with the methods below. Everything under *Optional* has a default.

`fitted` is f_n including the offset, (n,) or (draws, n). `values` is y_n in the units given by
`units`. `nuisance` is a small vector of the likelihood's own parameters, such as the noise
precision, possibly of length zero: (p,), or (draws, p) if `fitted` is (draws, n). `given` holds
what else is known about each observation, such as its weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from bayesring.model.types import NOTHING, FloatArray, Given, IntArray, Moments, WorkingResponse

BISECTIONS = 200
"""Maximum number of bisection steps for a quantile; float64 has fewer bits."""
SMALLEST = 1e-100
"""Least that a positive parameter may be, so that its inverse and the square of that are finite."""


class Likelihood(ABC):
    """Distribution of a value given its fitted entry.

    Examples
    --------
    >>> from bayesring.likelihoods import Gaussian, Likelihood
    >>> issubclass(Gaussian, Likelihood)
    True
    """

    # ---- Required: Gibbs needs the first four, prediction the rest.

    @abstractmethod
    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """Weight and shift of the Gaussian surrogate.

        `rng` is a generator, and `fitted` of use, only where `augments` says so.
        """

    @abstractmethod
    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Sums over observations that the parameters and the log likelihood need.

        They are summed over blocks. What they need besides is drawn if there is an `rng`, as
        `draws_for_statistics` asks; otherwise it is expected, by `response` if that is known.
        """

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Draw the parameters from their conditional given the summed statistics."""
        return nuisance

    @abstractmethod
    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """log p(y_n | f_n, nuisance) of each observation."""

    @abstractmethod
    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Draw y given f."""

    @abstractmethod
    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """E[y | f, nuisance]."""

    @abstractmethod
    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Var[y | f, nuisance]."""

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """P(y_n <= values | f_n, nuisance), from which `quantile` works unless it has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf.")

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Quantile (n,) of a new observation under the mixture over draws.

        `fitted` is (draws, n) and `nuisance` (draws, p). By default, bisection on the mixture of
        `cdf`; for discrete values, the smallest value whose cumulative probability reaches `level`.
        """
        means = self.mean(fitted, nuisance, given)
        spread = np.sqrt(self.variance(fitted, nuisance, given)).max(axis=0) + 1.0

        def reaches(values: FloatArray) -> NDArray[np.bool]:
            return np.asarray(self.cdf(values, fitted, nuisance, given).mean(axis=0) >= level)

        low, high = means.min(axis=0) - spread, means.max(axis=0) + spread
        for _ in range(BISECTIONS):  # widen until the quantile is bracketed
            far = ~reaches(high)
            near = reaches(low)
            if not (far.any() or near.any()):
                break
            width = high - low
            high, low = np.where(far, high + width, high), np.where(near, low - width, low)
        if self.discrete:
            low, high = np.floor(low), np.ceil(high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if self.discrete:
                middle = np.floor(middle)
            if np.all((middle <= low) | (middle >= high)):
                break
            below = reaches(middle)
            low, high = np.where(below, low, middle), np.where(below, middle, high)
        return np.asarray(high)

    def quantiles(
        self,
        levels: Sequence[float],
        fitted: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """`quantile` at several levels, (k, n), for likelihoods that share work between them."""
        return np.stack([self.quantile(level, fitted, nuisance, given) for level in levels])

    # ---- Optional: own parameters and the log likelihood.

    def augments(self, given: Given) -> bool:
        """Whether the working response depends on the fitted entries, or is drawn."""
        return False

    def draws_for_statistics(self, given: Given) -> bool:
        """Whether `statistics` draw something at the end of a scan."""
        return False

    group_mode: int | None = None
    """Mode whose slices have parameters of their own."""

    def locate(self, given: Given, along: Callable[[int], IntArray]) -> Given:
        """Complete what is known of observations by their groups; `along(mode)` is an index."""
        return given if self.group_mode is None else given._replace(group=along(self.group_mode))

    carries: ClassVar[frozenset[str]] = frozenset({"weight", "offset"})
    """Fields of `Given` that the likelihood can use."""
    forgets: ClassVar[bool] = False
    """Whether statistics found at other parameters are of no use, so that online EM drops them."""
    discrete: ClassVar[bool] = False
    """Whether values are integers."""
    slice_prior: ClassVar[Mapping[str, Any]] = MappingProxyType({"k0": 0.02, "learned": True})
    """Parameters of the `NormalWishart` prior that goes with this likelihood by default: how large
    the slices may be before anything is seen, and how sure that is."""

    fewest_strands: ClassVar[int] = 2
    """Strands of the smallest ring that is tried where data, unless ample, choose its size."""
    strands_widen: ClassVar[bool] = False
    """Whether more strands make intervals wider though they predict no better."""

    def initial_nuisance(self) -> FloatArray:
        """Return the initial parameters of a chain."""
        return np.empty(0)

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw the parameters from their prior."""
        return self.initial_nuisance()

    def check_nuisance(self, nuisance: FloatArray, where: str) -> None:
        """Raise a ValueError for parameters (..., p) out of their range; by default, positive."""
        if nuisance.size and nuisance.min() < SMALLEST:
            raise ValueError(
                f"{where} holds {nuisance.min():g}, but parameters of {type(self).__name__} are "
                f"at least {SMALLEST:g}."
            )

    def log_prior(self, nuisance: FloatArray) -> float:
        """log p(nuisance)."""
        return 0.0

    def total_log_prob(self, statistics: FloatArray, nuisance: FloatArray) -> float:
        """log p(y | f, nuisance) of all observations; by default the first statistic."""
        return float(statistics[0])

    # ---- Optional: online EM.

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """Expectation of what `augment` draws; s - w f is the slope of log p(y | f)."""
        raise NotImplementedError(
            f"{type(self).__name__} cannot be learned by online EM; use inference='gibbs'."
        )

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Maximise log p(y | f, nuisance) + log p(nuisance), given the statistics."""
        return nuisance

    # ---- Optional: units and checks of the values.

    def bind(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Self:
        """The likelihood with its open settings decided by the training values and the modes."""
        return self

    information: ClassVar[float] = 1.0
    """Maximum information of an observation about f, relative to observing f directly."""
    told: ClassVar[str] = "real numbers"
    """What values are, in reports."""
    binary: ClassVar[bool] = False
    """Whether values are 0 and 1, so that predictions are probabilities of a one."""

    def check(self, values: FloatArray) -> None:
        """Raise a ValueError that names the first row with an invalid value."""
        return

    def check_given(self, given: Given) -> None:
        """Raise a ValueError if what is known besides the values does not fit the likelihood."""
        return

    def check_standard(self, values: FloatArray) -> None:
        """Raise a ValueError for new values, in standard units, that a fitted model cannot have."""
        return

    def data_concerns(self, values: FloatArray) -> list[str]:
        """Messages about training values that are valid but uninformative."""
        return []

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """Location and scale with which the estimator standardises values before fitting.

        Raises a ValueError if some of the values are invalid.
        """
        self.check(np.array([moments.smallest, moments.largest]))
        return 0.0, 1.0

    def check_units(self, location: float, scale: float) -> None:
        """Raise a ValueError for units that `units_from` never gives."""
        if self.discrete and (location, scale) != (0.0, 1.0):
            raise ValueError(
                f"values of {type(self).__name__} have location 0 and scale 1, got {location:g} "
                f"and {scale:g}."
            )

    # ---- Optional: calibration on held-out observations, and messages to users.

    @property
    def calibrates(self) -> bool:
        """Whether `calibrate` needs held-out observations during warm-up."""
        return False

    def loss(self, values: FloatArray, expected: FloatArray, given: Given = NOTHING) -> float:
        """Mean of `losses`."""
        return float(np.average(self.losses(values, expected), weights=given.weight))

    def losses(self, values: FloatArray, expected: FloatArray) -> FloatArray:
        """Loss of each of the `values` (n,) given its expectation; smaller is better."""
        return np.asarray((values - expected) ** 2)

    def calibrate(
        self,
        values: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        nuisance: FloatArray | None = None,
        given: Given = NOTHING,
    ) -> Self:
        """Likelihood with its open bounds set from held-out observations.

        `values` (n,) are the held-out values, `mean` and `variance` (n,) the posterior mean and
        variance of E[y | f] there. `nuisance` (draws, p) are the kept draws, once there are any.
        """
        return self

    @property
    def moves(self) -> bool:
        """Whether `moved` changes anything."""
        return False

    def moved(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """f (draws, n) from which cells are predicted, as calibrated; `log_prob` is of f itself."""
        return fitted

    ranks_calibrate: ClassVar[bool] = False
    """Whether `calibrate_by_ranks` wants to see ranks of values that were left out."""

    def calibrate_by_ranks(self, ranks: FloatArray) -> Self:
        """The likelihood with its quantiles set by F(y_n), (n,), of values that were left out.

        F is the distribution function of the mixture over draws, from `cdf`; for likelihoods that
        calibrate themselves and have too few observations for a tenth of them to say enough.
        """
        return self

    @property
    def stretch(self) -> float:
        """Standard deviation of a new observation as calibrated, over that of the mixture."""
        return 1.0

    def calibrated(
        self, samples: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Samples (m, n) of the mixture over draws, moved so that `quantile` gives their quantiles.

        In every column by an increasing map, so that ranks stay. `fitted` is (draws, n) and
        `nuisance` (draws, p), as for `quantile`.
        """
        return samples

    def matched_cdf(
        self, values: FloatArray, mean: FloatArray, deviation: FloatArray
    ) -> FloatArray:
        """P(y <= values) of a distribution of this kind with given moments, for reports."""
        half = 0.5 if self.discrete else 0.0
        return np.asarray(ndtr((values + half - mean) / deviation))

    def concerns(self, nuisance: FloatArray) -> list[str]:
        """Messages about problems with the draws (draws, p) of the parameters."""
        return []

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Numbers worth showing while sampling, such as noise and training error."""
        return {}
