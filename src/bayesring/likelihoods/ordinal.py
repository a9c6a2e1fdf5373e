"""Ordered categories, such as ratings and grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, pi
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model import candidates, latent
from bayesring.model.types import NOTHING, FloatArray, Given, Moments, WorkingResponse

MOST_LEVELS = 30


@dataclass(frozen=True)
class Ordinal(Likelihood):
    """y_n = k if a latent z_n ~ N(f_n, 1) lies between the cut points c_k and c_{k+1}.

    c_1 ~ N(first, spread^2), logarithms of the gaps between cut points ~ N(gap, gap_spread^2).
    Gaussian in f_n given z_n (Albert and Chib, 1993). Values are consecutive integers, of which the
    lowest is taken as zero. Parameters are the cut points and candidates for all of them, chosen
    with z integrated out; see `bayesring.model.candidates`.

    Parameters
    ----------
    levels : number of categories; None to take the range of the values
    first, spread : of the first cut point
    gap, gap_spread : of the logarithms of the gaps

    Examples
    --------
    >>> from bayesring import TensorRing
    >>> from bayesring.likelihoods import Ordinal
    >>> TensorRing(likelihood=Ordinal(levels=5)).likelihood.levels
    5
    """

    told: ClassVar[str] = "ordered categories"
    discrete: ClassVar[bool] = True
    information: ClassVar[float] = 0.6
    slice_prior: ClassVar[Mapping[str, Any]] = MappingProxyType({"extra_degrees": 3.0})
    forgets: ClassVar[bool] = True

    levels: int | None = None
    first: float = -1.0
    spread: float = 2.0
    gap: float = -0.3
    gap_spread: float = 1.0

    def __post_init__(self) -> None:
        if self.levels is not None and not 2 <= self.levels <= MOST_LEVELS:
            raise ValueError(
                f"levels of Ordinal must be between 2 and {MOST_LEVELS}, got {self.levels!r}."
            )
        if not (0 < self.spread < inf and 0 < self.gap_spread < inf):
            raise ValueError(
                "spread and gap_spread of Ordinal must be positive, got "
                f"{self.spread!r} and {self.gap_spread!r}."
            )

    def bind(self, moments: Moments, names: Sequence[str], shape: tuple[int, ...]) -> Ordinal:
        """Count the categories."""
        levels = int(moments.largest - moments.smallest) + 1
        return replace(self, levels=max(levels, self.levels or 2))

    @property
    def _cuts(self) -> int:
        return (self.levels or 2) - 1

    def augments(self, given: Given) -> bool:
        """z is drawn."""
        return True

    # ---- Parameters.

    def initial_nuisance(self) -> FloatArray:
        """Start with equal gaps around zero."""
        cuts = np.arange(self._cuts) - 0.5 * (self._cuts - 1)
        return self._searching(0.7 * cuts, 0)

    def draw_nuisance(self, rng: Generator) -> FloatArray:
        """Draw cut points from their prior, and candidates."""
        scores = rng.standard_normal(self._cuts)
        scales = np.append(self.spread, np.full(self._cuts - 1, self.gap_spread))
        centres = np.append(self.first, np.full(self._cuts - 1, self.gap))
        return self._beside(rng, _natural(centres + scales * scores))

    def check_nuisance(self, nuisance: FloatArray, where: str) -> None:
        """Cut points do not decrease, nor do candidates for them."""
        gaps = np.diff(nuisance.reshape(-1, self._cuts), axis=-1)
        if np.any(gaps < 0):
            raise ValueError(
                f"{where} holds cut points of which one is {-gaps.min():g} below the one before "
                "it, but cut points of Ordinal do not decrease."
            )

    def _beside(self, rng: Generator, cuts: FloatArray) -> FloatArray:
        """Cut points with fresh candidates."""
        return np.append(cuts, _natural(candidates.put_down(rng, _unbounded(cuts))))

    def _searching(self, cuts: FloatArray, turn: int) -> FloatArray:
        return np.append(cuts, _natural(candidates.around(_unbounded(cuts), turn)))

    def _log_prior_unbounded(self, x: FloatArray) -> float:
        """Log density of the first cut point and the logarithms of the gaps."""
        first = -0.5 * ((x[0] - self.first) / self.spread) ** 2 - log(self.spread)
        gaps = -0.5 * ((x[1:] - self.gap) / self.gap_spread) ** 2 - log(self.gap_spread)
        return float(first + gaps.sum() - 0.5 * x.size * log(2 * pi))

    def log_prior(self, nuisance: FloatArray) -> float:
        """Log density of the cut points."""
        cuts = nuisance[: self._cuts]
        if np.any(np.diff(cuts) <= 0):
            return -inf
        x = _unbounded(cuts)
        return self._log_prior_unbounded(x) - float(x[1:].sum())

    def _densities(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """Log densities of the unbounded coordinates at the present point and the candidates."""
        points = _unbounded(nuisance.reshape(-1, self._cuts))
        logs = np.append(statistics[0], statistics[2:])
        return logs + [self._log_prior_unbounded(point) for point in points]

    def update_nuisance(
        self, rng: Generator, statistics: FloatArray, nuisance: FloatArray
    ) -> FloatArray:
        """Choose among the candidates."""
        chosen = candidates.choose(rng, self._densities(statistics, nuisance))
        return self._beside(rng, nuisance.reshape(-1, self._cuts)[chosen])

    def expect_nuisance(self, statistics: FloatArray, nuisance: FloatArray) -> FloatArray:
        """The best of the candidates; the next ones move another coordinate."""
        points = _unbounded(nuisance.reshape(-1, self._cuts))
        moved = np.flatnonzero(np.any(points[1:] != points[0], axis=0))
        turn = int(moved[0]) + 1 if moved.size else 0
        best = points[int(np.argmax(self._densities(statistics, nuisance)))]
        return self._searching(_natural(best), turn)

    # ---- Observations.

    def _ends(
        self, fitted: FloatArray, values: FloatArray, nuisance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """c_y - f and c_{y+1} - f, with infinite ends."""
        cuts = nuisance[..., : self._cuts]
        ends = np.full((*cuts.shape[:-1], 1), inf)
        padded = np.concatenate([-ends, cuts, ends], axis=-1)
        index = values.astype(np.int64)
        return np.asarray(padded[..., index] - fitted), np.asarray(padded[..., index + 1] - fitted)

    def augment(
        self,
        rng: Generator | None,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """w = 1, s = z; of an observation of weight m, m and the sum of m draws."""
        assert rng is not None  # as `augments` asks
        low, high = self._ends(fitted, values, nuisance)
        if given.weight is None:
            drawn = fitted + latent.draw_normal_between(rng, low, high)
            return WorkingResponse(np.ones(values.shape), drawn)
        total = given.weight * fitted
        for copy in range(int(given.weight.max(initial=0.0))):
            more = given.weight > copy
            total[more] += latent.draw_normal_between(rng, low[more], high[more])
        return WorkingResponse(given.weight.astype(float), total)

    def expect(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> WorkingResponse:
        """The same with E[z]."""
        mean, _ = latent.mean_normal_between(*self._ends(fitted, values, nuisance))
        weight = np.ones(values.shape) if given.weight is None else given.weight.astype(float)
        return WorkingResponse(weight, weight * (fitted + mean))

    def statistics(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
        rng: Generator | None = None,
        response: WorkingResponse | None = None,
    ) -> FloatArray:
        """Log likelihood, count, log likelihood at every candidate."""
        first, *others = (
            self.log_prob(fitted, values, cuts, given).sum()
            for cuts in nuisance.reshape(-1, self._cuts)
        )
        count = values.size if given.weight is None else given.weight.sum()
        return np.array([first, count, *others])

    def log_prob(
        self,
        fitted: FloatArray,
        values: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """log(Phi(c_{y+1} - f) - Phi(c_y - f))."""
        each = latent.log_mass(*self._ends(fitted, values, nuisance))
        return each if given.weight is None else np.asarray(given.weight * each)

    def probabilities(self, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """P(y = k | f) of every category, (levels, ...) before the shape of `fitted`."""
        above = self._reached(fitted, nuisance)
        whole, none = np.ones((1, *fitted.shape)), np.zeros((1, *fitted.shape))
        return -np.diff(np.concatenate([whole, above, none]), axis=0)

    def _reached(self, fitted: FloatArray, nuisance: FloatArray) -> FloatArray:
        """P(y >= k | f) for k = 1, 2, ..., (levels - 1, ...)."""
        return np.stack([ndtr(fitted - nuisance[..., k : k + 1]) for k in range(self._cuts)])

    def simulate(
        self, rng: Generator, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Draw z and see between which cut points it lies."""
        z = fitted + rng.standard_normal(fitted.shape)
        return np.asarray(
            sum((z > nuisance[..., k : k + 1]).astype(float) for k in range(self._cuts))
        )

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """E[y] = sum_k P(y >= k)."""
        return np.asarray(self._reached(fitted, nuisance).sum(axis=0))

    def variance(
        self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """E[y^2] = sum_k (2 k - 1) P(y >= k), less the square of the mean."""
        reached = self._reached(fitted, nuisance)
        square = np.tensordot(2.0 * np.arange(1, self._cuts + 1) - 1.0, reached, axes=1)
        return np.asarray(np.maximum(square - reached.sum(axis=0) ** 2, 0.0))

    def cdf(
        self, values: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Phi(c_{y+1} - f)."""
        index = np.clip(np.floor(values), -1, self._cuts).astype(np.int64)
        cuts = nuisance[..., : self._cuts]
        ends = np.full((*cuts.shape[:-1], 1), inf)
        padded = np.concatenate([-ends, cuts, ends], axis=-1)
        return np.asarray(ndtr(padded[..., index + 1] - fitted))

    # ---- Values.

    def check(self, values: FloatArray) -> None:
        """Raise an error for values that are not integers close to each other."""
        wrong = np.flatnonzero(values % 1 != 0)
        if wrong.size:
            row = wrong[0]
            raise ValueError(
                "y must hold integers for the Ordinal likelihood, the numbers of categories, got "
                f"{values[row]:g} in row {row}."
            )
        if values.size and values.max() - values.min() >= MOST_LEVELS:
            raise ValueError(
                f"y must hold at most {MOST_LEVELS} consecutive integers for the Ordinal "
                f"likelihood, got {values.min():g} to {values.max():g}."
            )

    def check_given(self, given: Given) -> None:
        """Weights must be whole: each stands for so many ratings."""
        if given.weight is not None and np.any(given.weight % 1 != 0):
            row = int(np.argmax(given.weight % 1 != 0))
            raise ValueError(
                "sample_weight must be whole numbers for the Ordinal likelihood, got "
                f"{given.weight[row]:g} in row {row}."
            )
        if given.weight is not None:
            latent.check_copies(given.weight, "for the Ordinal likelihood")

    def check_standard(self, values: FloatArray) -> None:
        """Refuse categories that the fit has not seen."""
        wrong = (values < 0) | (values > self._cuts)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"y holds a category in row {row} outside of the {self._cuts + 1} that the fit "
                "has seen; fit anew with it."
            )

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """The lowest category is zero."""
        self.check(np.array([moments.smallest, moments.largest]))
        if not moments.whole:
            raise ValueError("The data hold values other than integers; use likelihood='gaussian'.")
        return moments.smallest, 1.0

    def check_units(self, location: float, scale: float) -> None:
        """The lowest category is a whole number."""
        if location % 1 or scale != 1.0:
            raise ValueError(
                "values of Ordinal have a whole number as location and scale 1, got "
                f"{location:g} and {scale:g}."
            )

    def describe(
        self, statistics: FloatArray, nuisance: FloatArray, scale: float
    ) -> dict[str, float]:
        """Mean log score on the training data, and the distance of the outer cut points."""
        found = {"log score": statistics[0] / statistics[1]}
        cuts = nuisance[: self._cuts]
        return found | ({"range of cut points": float(cuts[-1] - cuts[0])} if cuts.size > 1 else {})


def _unbounded(cuts: FloatArray) -> FloatArray:
    """First cut point and logarithms of the gaps."""
    return np.concatenate([cuts[..., :1], np.log(np.diff(cuts, axis=-1))], axis=-1)


def _natural(x: FloatArray) -> FloatArray:
    gaps = np.concatenate([x[..., :1], np.exp(x[..., 1:])], axis=-1)
    return np.asarray(np.cumsum(gaps, axis=-1))
