"""What a data type must say about itself. No other module asks which one it is.

A new data type is one new file in this folder and one line in its `__init__`. `fitted` is f_n,
(n,) or (draws, n); `values` is y_n in the units that `units` names; `nuisance` is a small vector
(p,) of the likelihood's own parameters, such as the noise precision, possibly of length zero.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.random import Generator

from bayesring.model.types import FloatArray, Moments, WorkingResponse


@runtime_checkable
class Likelihood(Protocol):
    """How a value arises from its fitted entry."""

    @property
    def augments(self) -> bool:
        """Whether the working response depends on the fitted entries, or is drawn."""

    @property
    def calibrates(self) -> bool:
        """Whether `calibrate` wants to see held-out observations in warm-up."""

    @property
    def information(self) -> float:
        """How much an observation can tell about f, at most, against one that shows it plainly."""

    @property
    def estimator_type(self) -> str:
        """What scikit-learn should take the estimator for: "regressor" or "classifier"."""

    def check(self, values: FloatArray) -> None:
        """Raise a ValueError that names the first row with a value that cannot occur."""

    def data_concerns(self, values: FloatArray) -> list[str]:
        """Sentences on training values that are possible but say little, if any."""

    def units(self, values: FloatArray) -> tuple[float, float]:
        """Location and scale that the estimator takes out before fitting and puts back after."""

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """The same for values too many to hold; a ValueError if some of them cannot occur."""

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw the parameters from their prior."""

    def initial_nuisance(self) -> FloatArray:
        """Return parameters to start a chain from."""

    def augment(
        self, rng: Generator | None, fitted: FloatArray, values: FloatArray, nuisance: FloatArray
    ) -> WorkingResponse:
        """Weight and shift of the Gaussian surrogate; `fitted` and `rng` only if `augments`."""

    def expect(
        self, fitted: FloatArray, values: FloatArray, nuisance: FloatArray
    ) -> WorkingResponse:
        """Expectation of what `augment` draws; s - w f is the slope of log p(y | f)."""

    def statistics(self, fitted: FloatArray, values: FloatArray) -> FloatArray:
        """Sums over observations that the parameters and the log likelihood need.

        They add up over blocks.
        """

    def update_nuisance(self, rng: Generator, statistics: FloatArray) -> FloatArray:
        """Draw the parameters from their conditional given the summed statistics."""

    def expect_nuisance(self, statistics: FloatArray) -> FloatArray:
        """Parameters of largest log p(y | f, nuisance) + log p(nuisance), given the statistics."""

    def total_log_prob(self, statistics: FloatArray, nuisance: FloatArray) -> float:
        """Log p(y | f, nuisance) of all observations, from the summed statistics."""

    def log_prob(self, fitted: FloatArray, values: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Log p(y_n | f_n, nuisance) of each observation."""

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log p(nuisance)."""

    def simulate(self, rng: Generator, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Draw y given f."""

    def mean(self, fitted: FloatArray) -> FloatArray:
        """E[y | f]."""

    def variance(self, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Var[y | f, nuisance]."""

    def quantile(self, level: float, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Quantile (n,) of a new observation under the mixture over draws.

        `fitted` is (draws, n) and `nuisance` (draws, p).
        """

    def loss(self, values: FloatArray, expected: FloatArray) -> float:
        """How far the `values` (n,) are from their expectations, averaged; smaller is better."""

    def calibrate(self, values: FloatArray, mean: FloatArray, variance: FloatArray) -> Likelihood:
        """The likelihood with its open bounds set by held-out observations.

        `values` (n,) are the held-out values, `mean` and `variance` (n,) those of E[y | f] there.
        """

    def concerns(self, nuisance: FloatArray) -> list[str]:
        """Sentences on what is wrong with the draws (draws, p) of the parameters, if anything."""

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Numbers worth showing while sampling, such as noise and training error."""
