"""What likelihoods of real values have in common: units, checks, calibrated tails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtr, ndtri

from bayesring.kernels.mixtures import remap
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.model import latent
from bayesring.model import tails as calibrated_tails
from bayesring.model.tails import KNOTS, LEVELS, NORMAL_TAILS, SIZES, SMALLEST
from bayesring.model.types import NOTHING, FloatArray, Given, Moments
from bayesring.wording import shown

LARGEST = 1e304
"""Maximum size of a value: sums and differences of larger ones overflow."""
FEW, FAR_OFF = 0.001, 1e6
"""Share of the values that may be outliers, and how far off they are, relative to the farthest of
the others, to be worth a warning."""
SMALLEST_SIZE = 0.25
LARGEST_TAIL = 1e100
"""Largest of the `tails`, so that the sum of their squares is a number."""


class Ends(NamedTuple):
    """Quantiles that are asked for, by what lies beyond them, (k,) each."""

    tails: FloatArray
    """Probability, at most one half."""
    sides: FloatArray
    """1 if it lies above, -1 if below."""

    @property
    def scores(self) -> FloatArray:
        """Quantiles of the standard normal that leave `tails` above."""
        return np.asarray(-ndtri(self.tails))


@dataclass(frozen=True)
class RealValued(Likelihood):
    """y_n = f_n + noise of precision tau, tau ~ Ga(alpha0, beta0) cut off above `max_precision`.

    The estimator standardises the values first, so 1 / tau is the share of their variance that is
    noise. A ring with many parameters per observation can fit the noise away: tau runs off, and
    predictions and intervals get worse. The cutoff prevents this. By default it is estimated during
    warm-up, while a tenth of the training data is held out.

    The same held-out values also set `tails`, by which intervals are stretched or shrunk so that
    each level covers what it says; see `bayesring.model.tails`. Samples and standard
    deviations of new observations follow; `log_prob` remains that of the model.
    """

    ranks_calibrate: ClassVar[bool] = True

    alpha0: float = 1.0
    beta0: float = 0.3
    max_precision: float | None = None
    tails: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not (self.alpha0 > 0 and self.beta0 > 0 and self._upper > 0):
            raise ValueError(
                f"alpha0, beta0 and max_precision of {name} must be positive, "
                f"got {self.alpha0!r}, {self.beta0!r} and {self.max_precision!r}."
            )
        if len(self.tails) not in (0, LEVELS.size):
            raise ValueError(
                f"tails of {name} must be {LEVELS.size} numbers or none, got {len(self.tails)}."
            )
        increase = bool(np.all(np.diff(self.tails, prepend=0.0) >= 0))
        if not increase or max(self.tails, default=0.0) > LARGEST_TAIL:
            raise ValueError(
                f"tails of {name} must not decrease, nor be below 0 or above {LARGEST_TAIL:g}, "
                f"got {shown(self.tails)}."
            )

    @abstractmethod
    def mixture_quantiles(
        self, ends: Ends, fitted: FloatArray, nuisance: FloatArray, given: Given
    ) -> FloatArray:
        """Quantiles (k, n) of the mixture over draws, before any calibration."""

    @property
    def calibrates(self) -> bool:
        """Whether the cutoff still has to be estimated."""
        return self.max_precision is None

    @property
    def _upper(self) -> float:
        return inf if self.max_precision is None else self.max_precision

    def check(self, values: FloatArray) -> None:
        """Reject values that arithmetic cannot handle."""
        if values.size and max(float(values.max()), -float(values.min())) > LARGEST:
            row = int(np.argmax(np.abs(values) > LARGEST))
            raise ValueError(
                f"y must lie between {-LARGEST:g} and {LARGEST:g}, got {values[row]:g} in row "
                f"{row}; divide all values by a large number first."
            )

    def check_given(self, given: Given) -> None:
        """Refuse weights of ends for which too many values would have to be drawn."""
        if given.weight is not None and given.censored is not None:
            latent.check_copies(
                np.where(given.censored, given.weight, 0.0), "of value_lower and value_upper"
            )

    def data_concerns(self, values: FloatArray) -> list[str]:
        """A message if a few values are so far off that all others look the same."""
        middle = float(np.median(values))
        with np.errstate(over="ignore"):
            sizes = np.abs(values.astype(float) - middle)
        few = max(1, round(FEW * values.size))
        order = np.argpartition(sizes, -few)
        rest, farthest = float(sizes[order[:-few]].max(initial=0.0)), int(np.argmax(sizes))
        usual = rest or abs(middle)  # if almost all are equal, their size
        if usual == 0.0 or sizes[farthest] <= FAR_OFF * usual:
            return []
        return [
            f"y holds {values[farthest]:g} in row {farthest}, over {FAR_OFF:,.0f} times as far "
            "from the median as almost all others: beside it they look equal, and error bars are "
            "of its size; check it, leave it out, or fit logarithms."
        ]

    def units_from(self, moments: Moments) -> tuple[float, float]:
        """Mean and standard deviation; for constant values, their magnitude."""
        self.check(np.array([moments.smallest, moments.largest]))
        if not np.isfinite(moments.mean + moments.deviation):
            raise ValueError(
                f"The values, from {moments.smallest:g} to {moments.largest:g}, are too large for "
                "their variance to be computed; divide all of them by a large number first."
            )
        largest = max(abs(moments.smallest), abs(moments.largest))
        return moments.mean, _own_size_if_constant(moments.deviation, largest, moments.rounding)

    def mean(self, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING) -> FloatArray:
        """Return f itself."""
        return fitted

    def quantile(
        self, level: float, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """Quantile of the mixture at the level adjusted by `tails`."""
        return np.asarray(self.quantiles((level,), fitted, nuisance, given)[0])

    def quantiles(
        self,
        levels: Sequence[float],
        fitted: FloatArray,
        nuisance: FloatArray,
        given: Given = NOTHING,
    ) -> FloatArray:
        """The same of several levels at once; the smaller tail keeps what rounding would lose."""
        tails = [self.calibrated_level(min(level, 1.0 - level)) for level in levels]
        sides = [1.0 if level > 0.5 else -1.0 for level in levels]
        ends = Ends(np.maximum(tails, SMALLEST), np.array(sides))
        return self.mixture_quantiles(ends, fitted, nuisance, given)

    def calibrate_by_ranks(self, ranks: FloatArray) -> Self:
        """Set the tails by normal scores z_n = Phi^-1(F(y_n)): quantiles of |z_n| are t's values.

        Intervals shrink by no more than `SMALLEST_SIZE`: values that are all equal say little of
        the next.
        """
        if not ranks.size:
            return self
        tails = calibrated_tails.shrunk(np.abs(ndtri(np.clip(ranks, 1e-12, 1 - 1e-12))))
        smallest = SMALLEST_SIZE * NORMAL_TAILS
        return replace(self, tails=tuple(np.maximum(tails, smallest).tolist()))

    def calibrated_level(self, level: float) -> float:
        """Level of the mixture that stands for `level` once `tails` are known."""
        return calibrated_tails.level_of(self.tails, level)

    @property
    def stretch(self) -> float:
        """Deviation of a new observation over that of the mixture."""
        return calibrated_tails.stretch_of(self.tails)

    def calibrated(
        self, samples: FloatArray, fitted: FloatArray, nuisance: FloatArray, given: Given = NOTHING
    ) -> FloatArray:
        """y with normal score z = Phi^-1(F(y)) in the mixture F goes to F^-1(Phi(t(z))).

        F^-1(Phi(z)) is tabulated at `KNOTS` and linear between them, both ways: t(z) = z moves
        nothing, and draws far from the others move no sample beyond them. Where a gap between draws
        lies between two knots, a few samples fall into the gap.
        """
        if not self.tails:
            return samples
        ends = Ends(ndtr(-np.abs(KNOTS)), np.where(KNOTS > 0, 1.0, -1.0))
        x = np.ascontiguousarray(self.mixture_quantiles(ends, fitted, nuisance, given).T)
        return np.asarray(remap(samples, x, KNOTS, SIZES, np.append(0.0, self.tails)))

    def concerns(self, nuisance: FloatArray) -> list[str]:
        """A message if tau sits at its bound, so that the ring would otherwise fit the noise."""
        at_bound = float(np.mean(nuisance[:, 0] > 0.99 * self._upper))
        if at_bound < 0.5:
            return []
        return [
            f"The noise is at its bound in {at_bound:.0%} of the draws (precision "
            f"{self._upper:.3g} of the standardised values): the ring could fit the noise away, "
            "and held-out errors prevent it; a smaller rank= would rely less on the bound."
        ]


def _own_size_if_constant(scale: float, largest: float, rounding: float) -> float:
    """The scale, or the magnitude of the values if it is only rounding (one if all are zero).

    Never less than the smallest number with all its digits, in which error bars can be counted.
    """
    if scale <= rounding * largest:
        scale = largest or 1.0
    return max(scale, float(np.finfo(float).tiny))
